//! The times of a pipeline by step: bars of every arm with its speed-up, and the sum of all steps.

use serde_json::{Value, json};

use super::{FRAME, Figure, bars, grouped, height, lane, plotly_text, rows_axis, seconds_axis};
use crate::results::ResultEntry;
use crate::units::{bandwidth, digits, seconds};

/// One figure for each suite that has steps.
pub(in crate::report) fn steps(entries: &[ResultEntry]) -> Vec<Figure> {
    let timed = entries.iter().filter(|e| e.step.is_some() && e.time_s.is_some());
    let groups = grouped(timed, |e| {
        let suite = e.suite.clone().unwrap_or_default();
        // Steps with different settings, such as sizes or threads, form separate pipelines.
        let settings: Vec<String> = e.settings.iter().map(|(k, v)| format!("{k} {v}")).collect();
        if settings.is_empty() || !e.published {
            suite
        } else {
            format!("{suite}, {}", settings.join(", "))
        }
    });
    groups.iter().filter_map(|(suite, entries)| draw(suite, entries)).collect()
}

/// The rows and the arms of one pipeline.
struct PipelineFigure<'a> {
    entries: &'a [&'a ResultEntry],
    /// The steps, in the order of the entries.
    steps: Vec<&'a str>,
    /// The arms; the first is the baseline.
    arms: Vec<&'a str>,
    /// The steps, followed by "all steps" if every arm has a time for each step.
    rows: Vec<String>,
}

impl<'a> PipelineFigure<'a> {
    fn new(entries: &'a [&'a ResultEntry]) -> Self {
        let mut steps: Vec<&str> = Vec::new();
        let mut arms: Vec<&str> = Vec::new();
        for e in entries {
            let step = e.step.as_deref().unwrap_or_default();
            if !steps.contains(&step) {
                steps.push(step);
            }
            if !arms.contains(&e.arm.as_str()) {
                arms.push(&e.arm);
            }
        }
        let rows = steps.iter().map(|s| (*s).to_owned()).collect();
        let mut pipeline = Self { entries, steps, arms, rows };
        let complete = pipeline.arms.iter().all(|arm| pipeline.total(arm).is_some());
        if complete && pipeline.steps.len() > 1 {
            pipeline.rows.push("all steps".into());
        }
        pipeline
    }

    fn entry(&self, step: &str, arm: &str) -> Option<&'a ResultEntry> {
        let mut entries = self.entries.iter();
        entries.find(|e| e.step.as_deref() == Some(step) && e.arm == arm).copied()
    }

    fn time(&self, step: &str, arm: &str) -> Option<f64> {
        Some(self.entry(step, arm)?.time_s?.median)
    }

    fn total(&self, arm: &str) -> Option<f64> {
        self.steps.iter().map(|step| self.time(step, arm)).sum()
    }

    /// The time of an arm in row number `row`.
    fn value(&self, row: usize, arm: &str) -> Option<f64> {
        match self.steps.get(row) {
            Some(step) => self.time(step, arm),
            None => self.total(arm),
        }
    }

    fn hover(&self, row: usize, arm: &str, time_s: f64) -> String {
        let step = self.steps.get(row).copied();
        let entry = step.and_then(|step| self.entry(step, arm));
        let rate = entry.and_then(ResultEntry::rate);
        let rate = rate.map_or(String::new(), |r| format!("<br>{}", bandwidth(r)));
        let paired = entry.and_then(|e| e.ratio);
        let paired = paired.map_or(String::new(), |r| format!("<br>{r}, paired"));
        let step = plotly_text(step.unwrap_or("all steps"));
        format!("<b>{}, {step}</b><br>{}{rate}{paired}", plotly_text(arm), seconds(time_s))
    }

    /// The bars of arm number `i`.
    fn bars(&self, i: usize, arm: &str) -> Value {
        let row = |row: usize| {
            let time_s = self.value(row, arm)?;
            Some((row, time_s, self.hover(row, arm, time_s)))
        };
        let rows: Vec<_> = (0..self.rows.len()).filter_map(row).collect();
        bars(arm, i, self.arms.len(), &rows)
    }

    /// The labels beside the bars of arm number `i`: its times, and its speed-up over the baseline.
    fn labels(&self, i: usize, arm: &str, baseline: &str) -> Vec<Value> {
        let (offset, _) = lane(i, self.arms.len());
        let label = |row: usize| {
            let time_s = self.value(row, arm)?;
            let speed = self.value(row, baseline).filter(|_| i > 0);
            let speed = speed.map(|b| format!("  {}x as fast", digits(b / time_s)));
            Some(json!({
                "x": time_s, "y": row as f64 + offset, "xanchor": "left", "xshift": 4,
                "showarrow": false, "font": { "size": 11 },
                "text": format!("{}{}", seconds(time_s), speed.unwrap_or_default()),
            }))
        };
        (0..self.rows.len()).filter_map(label).collect()
    }

    fn in_words(&self) -> String {
        let row = |(i, row): (usize, &String)| {
            let arm = |a: &&str| Some(format!("{a} {}", seconds(self.value(i, a)?)));
            let each: Vec<String> = self.arms.iter().filter_map(arm).collect();
            format!("{row}: {}", each.join(", "))
        };
        self.rows.iter().enumerate().map(row).collect::<Vec<_>>().join("; ")
    }

    fn largest(&self) -> f64 {
        let values = (0..self.rows.len())
            .flat_map(|i| self.arms.iter().filter_map(move |a| self.value(i, a)));
        values.fold(0.0, f64::max)
    }
}

fn draw(suite: &str, entries: &[&ResultEntry]) -> Option<Figure> {
    let pipeline = PipelineFigure::new(entries);
    let baseline = *pipeline.arms.first()?;
    let arms = || pipeline.arms.iter().enumerate();
    let labels: Vec<Value> = arms().flat_map(|(i, a)| pipeline.labels(i, a, baseline)).collect();
    let mut axis = seconds_axis("");
    if let Some(axis) = axis.as_object_mut() {
        // The range leaves room for the label after the longest bar.
        axis.insert("range".into(), json!([0, pipeline.largest() * 1.3]));
    }
    Some(Figure {
        title: format!("{suite}: step by step"),
        alt: format!("Bars of the time of each step by arm. {}.", pipeline.in_words()),
        note: format!("Medians; as fast as {baseline} is 1x. \"All steps\" is their sum."),
        height: height(&pipeline.rows)
            .max(FRAME + pipeline.rows.len() * (16 + 24 * pipeline.arms.len())),
        data: arms().map(|(i, arm)| pipeline.bars(i, arm)).collect(),
        layout: json!({
            "xaxis": axis, "yaxis": rows_axis(&pipeline.rows), "barmode": "overlay",
            "annotations": labels,
        }),
    })
}
