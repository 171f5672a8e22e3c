//! The events of a NeXus file: banks, pulses, times, and what is wrong with them.

use serde_json::{Value, json};
use thalweg::Error;
use thalweg::arrays::ArrayFile;
use thalweg::nexus::{Bank, Column, Finding, Nexus, iso};
use thalweg_gauge::units::digits;

use super::super::events::finding_as_json;
use crate::common::Failure;

/// What a file has of events and logs.
pub(super) struct EventSummary {
    /// Lines of a description: a name, which may be empty, and a value.
    pub(super) lines: Vec<(&'static str, String)>,
    pub(super) json: Value,
}

const NS: f64 = 1e9;

/// Looks at the pulses of every bank; nothing where there are neither banks nor logs. What is wrong
/// with events keeps nobody from learning what else is in the file.
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
    if nexus.banks().is_empty() && nexus.logs().is_empty() {
        return Ok(None);
    }
    let mut findings: Vec<Finding> = Vec::new();
    let mut spans: Vec<Option<(i64, i64)>> = Vec::new();
    for bank in nexus.banks() {
        let (pulses, found) = nexus.pulses(bank)?;
        spans.push(pulses.span());
        findings.extend(found);
    }
    let from = spans.iter().flatten().map(|span| span.0).min();
    let to = spans.iter().flatten().map(|span| span.1).max();
    let span = from.zip(to);
    let banks = || nexus.banks().iter().zip(&spans);
    let events: u64 = nexus.banks().iter().map(Bank::events).sum();
    let rows: Vec<Value> = banks()
        .map(|(bank, span)| {
            json!({
                "bank": bank.name(), "path": bank.path(), "events": bank.events(), "pulses": bank.pulses(),
                "unit": bank.unit().to_string(), "weights": weighted(bank), "first_pulse": span.map(|span| iso(span.0)), "duration_s": span.map(seconds),
            })
        })
        .collect();
    let json = json!({
        "entries": nexus.entries().iter().map(|entry| json!({ "path": entry.path, "start_time": entry.start_time, "title": entry.title })).collect::<Vec<_>>(),
        "banks": rows, "events": events, "first_pulse": from.map(iso), "duration_s": span.map(seconds),
        "logs": nexus.logs().iter().map(|log| json!({ "path": log.path(), "entries": log.len(), "units": log.units() })).collect::<Vec<_>>(),
        "findings": findings.iter().map(finding_as_json).collect::<Vec<_>>(),
    });
    let mut lines = vec![(
        "events",
        format!(
            "{events} of {} bank{}{}",
            nexus.banks().len(),
            if nexus.banks().len() == 1 { "" } else { "s" },
            words(span)
        ),
    )];
    lines.extend(banks().map(|(bank, span)| {
        (
            "",
            format!(
                "{}: {} events{}, {} pulses, times of flight in {}{}",
                bank.path(),
                bank.events(),
                if weighted(bank) { " with weights" } else { "" },
                bank.pulses(),
                bank.unit(),
                words(*span)
            ),
        )
    }));
    if !nexus.logs().is_empty() {
        let entries: u64 = nexus.logs().iter().map(thalweg::nexus::Log::len).sum();
        lines.push(("logs", format!("{} with {entries} entries", nexus.logs().len())));
    }
    lines.extend(
        findings
            .iter()
            .enumerate()
            .map(|(at, finding)| (if at == 0 { "findings" } else { "" }, finding.to_string())),
    );
    Ok(Some(EventSummary { lines, json }))
}

fn weighted(bank: &Bank) -> bool {
    bank.number(Column::Weight).is_some()
}

fn seconds(span: (i64, i64)) -> f64 {
    (i128::from(span.1) - i128::from(span.0)) as f64 / NS
}

fn words(span: Option<(i64, i64)>) -> String {
    span.map(|span| format!(", pulses from {} on for {} s", iso(span.0), digits(seconds(span))))
        .unwrap_or_default()
}
