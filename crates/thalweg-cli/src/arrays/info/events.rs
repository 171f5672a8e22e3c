//! `thalweg info` of the events of a NeXus file: banks, pulses, times, and defects.

use serde_json::{Value, json};
use thalweg::Error;
use thalweg::arrays::ArrayFile;
use thalweg::nexus::{Bank, EventColumn, EventFinding, Log, Nexus, NexusEntry, iso};
use thalweg_gauge::units::digits;

use super::super::events::finding_as_json;
use crate::common::{Failure, counted};

/// A description of a file's events and logs.
pub(super) struct EventSummary {
    /// Lines of a description: a name, which may be empty, and a value.
    pub(super) lines: Vec<(&'static str, String)>,
    pub(super) json: Value,
}

const NS: f64 = 1e9;

/// Describes the banks and logs of a file; `None` if there are neither. An error about events
/// becomes a line, so that the rest of the file is still described.
pub(super) fn look(file: &ArrayFile) -> Result<Option<EventSummary>, Failure> {
    match found(file) {
        Err(Error::Cancelled) => Err(Error::Cancelled.into()),
        Err(error) => {
            let lines = vec![("events", format!("not read: {error}"))];
            Ok(Some(EventSummary { lines, json: json!({ "not_read": error.to_string() }) }))
        }
        Ok(events) => Ok(events),
    }
}

fn found(file: &ArrayFile) -> thalweg::Result<Option<EventSummary>> {
    let nexus = Nexus::find(file)?;
    let is_empty = nexus.banks().is_empty() && nexus.logs().is_empty();
    if is_empty && nexus.unread_logs().is_empty() {
        return Ok(None);
    }
    let mut findings: Vec<EventFinding> = Vec::new();
    let mut spans: Vec<Option<(i64, i64)>> = Vec::new();
    nexus.each_pulses(nexus.banks(), &mut |_, pulses, found| {
        spans.push(pulses.span());
        findings.extend(found);
    })?;
    let from = spans.iter().flatten().map(|span| span.0).min();
    let to = spans.iter().flatten().map(|span| span.1).max();
    let span = from.zip(to);
    let found = EventsFound { nexus, findings, spans, span };
    Ok(Some(EventSummary { lines: found.lines(), json: found.json() }))
}

/// The events and logs of a file.
struct EventsFound<'a> {
    nexus: Nexus<'a>,
    findings: Vec<EventFinding>,
    /// The times of the first and the last pulse of each bank.
    spans: Vec<Option<(i64, i64)>>,
    /// The times of the first and the last pulse of all banks.
    span: Option<(i64, i64)>,
}

impl EventsFound<'_> {
    fn banks(&self) -> impl Iterator<Item = (&Bank, Option<(i64, i64)>)> {
        self.nexus.banks().iter().zip(self.spans.iter().copied())
    }

    fn events(&self) -> u64 {
        self.nexus.banks().iter().map(Bank::events).sum()
    }

    fn json(&self) -> Value {
        let bank = |(bank, span): (&Bank, Option<(i64, i64)>)| {
            json!({
                "bank": bank.name(), "path": bank.path(), "events": bank.events(),
                "pulses": bank.pulses(), "unit": bank.unit().to_string(),
                "weights": weighted(bank), "first_pulse": span.map(|span| iso(span.0)),
                "duration_s": span.map(seconds),
            })
        };
        let entry = |entry: &NexusEntry| {
            let NexusEntry { path, start_time, title, .. } = entry;
            json!({ "path": path, "start_time": start_time, "title": title })
        };
        let log =
            |log: &Log| json!({ "path": log.path(), "entries": log.len(), "units": log.units() });
        let unread = |(path, why): &(String, String)| json!({ "path": path, "why": why });
        json!({
            "entries": self.nexus.entries().iter().map(entry).collect::<Vec<_>>(),
            "banks": self.banks().map(bank).collect::<Vec<_>>(),
            "events": self.events(),
            "first_pulse": self.span.map(|span| iso(span.0)),
            "duration_s": self.span.map(seconds),
            "logs": self.nexus.logs().iter().map(log).collect::<Vec<_>>(),
            "logs_not_read": self.nexus.unread_logs().iter().map(unread).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding_as_json).collect::<Vec<_>>(),
        })
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let count = self.nexus.banks().len();
        let plural = if count == 1 { "" } else { "s" };
        let all = format!("{} of {count} bank{plural}{}", self.events(), span_in_words(self.span));
        let mut lines = vec![("events", all)];
        lines.extend(self.banks().map(|(bank, span)| {
            let weights = if weighted(bank) { " with weights" } else { "" };
            let words = format!(
                "{}: {}{weights}, {}, times of flight in {}{}",
                bank.path(),
                counted(bank.events(), "event"),
                counted(bank.pulses(), "pulse"),
                bank.unit(),
                span_in_words(span)
            );
            ("", words)
        }));
        let logs = self.nexus.logs();
        if !logs.is_empty() {
            let entries: u64 = logs.iter().map(Log::len).sum();
            lines.push(("logs", format!("{} with {entries} entries", logs.len())));
        }
        for (at, (path, why)) in self.nexus.unread_logs().iter().enumerate() {
            lines.push((if at == 0 { "not read" } else { "" }, format!("the log {path}: {why}")));
        }
        for (at, finding) in self.findings.iter().enumerate() {
            lines.push((if at == 0 { "findings" } else { "" }, finding.to_string()));
        }
        lines
    }
}

fn weighted(bank: &Bank) -> bool {
    bank.number(EventColumn::Weight).is_some()
}

fn seconds(span: (i64, i64)) -> f64 {
    (i128::from(span.1) - i128::from(span.0)) as f64 / NS
}

fn span_in_words(span: Option<(i64, i64)>) -> String {
    span.map(|span| format!(", pulses from {} on for {} s", iso(span.0), digits(seconds(span))))
        .unwrap_or_default()
}
