//! Time by stage.

use serde_json::{Value, json};

use super::times::limits;
use super::{COLOURS, Figure, colour, hatch, height, plotly_text, rows_axis, seconds_axis};
use crate::comparison::{ArmSummary, Comparison};
use crate::units::seconds;
use crate::workload::StageTimes;

/// The elapsed time, split by the stages that the consumer waited for, with the limit.
pub(in crate::report) fn waits(c: &Comparison) -> Option<Figure> {
    let with: Vec<&ArmSummary> =
        c.summaries.iter().filter(|s| s.stages.iter().any(|g| g.exposed_s.is_some())).collect();
    let figure = stacked(&with, |g| g.exposed_s, "waited for")?;
    let mut data = figure.data;
    let rest: Vec<f64> = with.iter().map(|s| rest(s)).collect();
    data.push(bar("the rest", None, &rest, "took"));
    data.extend(limits(with.iter().copied()));
    Some(Figure {
        title: "On the clock: what the consumer waited for".into(),
        note: "Medians. The rest is time in which the consumer was not waiting, or which the arm \
             does not tell apart; in an arm that overlaps its stages it is nearly everything."
            .into(),
        data,
        ..figure
    })
}

fn rest(s: &ArmSummary) -> f64 {
    let exposed: f64 = s.stages.iter().filter_map(|g| g.exposed_s).sum();
    s.time_s.map_or(0.0, |t| (t.median - exposed).max(0.0))
}

/// Work by stage, summed over workers. The sum may exceed the elapsed time.
pub(in crate::report) fn busy(c: &Comparison) -> Option<Figure> {
    let with: Vec<&ArmSummary> =
        c.summaries.iter().filter(|s| s.stages.iter().any(|g| g.busy_s.is_some())).collect();
    let figure = stacked(&with, |g| g.busy_s, "busy for")?;
    Some(Figure {
        title: "Work: busy time by stage, summed over workers".into(),
        note: "Medians. It may exceed the time on the clock: stages overlap, workers are many, \
             and a request in flight counts as work of fetching. An arm shows the stages that \
             its program tells."
            .into(),
        ..figure
    })
}

fn stacked(
    with: &[&ArmSummary],
    value: impl Fn(&StageTimes) -> Option<f64>,
    verb: &str,
) -> Option<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for stage in with.iter().flat_map(|s| &s.stages) {
        if value(stage).is_some_and(|v| v > 0.0) && !names.contains(&stage.name.as_str()) {
            names.push(&stage.name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let data: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let of = |s: &&ArmSummary| {
                s.stages.iter().find(|g| g.name == *name).and_then(&value).unwrap_or(0.0)
            };
            let values: Vec<f64> = with.iter().map(of).collect();
            bar(name, Some(hue(&names, i)), &values, verb)
        })
        .collect();
    let arms: Vec<String> = with.iter().map(|s| s.arm.clone()).collect();
    let in_words: Vec<String> = with
        .iter()
        .map(|s| {
            let stages: Vec<String> = s
                .stages
                .iter()
                .filter_map(|g| Some(format!("{} {}", g.name, seconds(value(g)?))))
                .collect();
            format!("{}: {}", s.arm, stages.join(", "))
        })
        .collect();
    Some(Figure {
        title: String::new(),
        alt: format!("Stacked bars by arm. {}.", in_words.join("; ")),
        note: String::new(),
        height: height(with.len()),
        data,
        layout: json!({
            "xaxis": seconds_axis(""), "yaxis": rows_axis(&arms), "barmode": "stack",
            "legend": { "traceorder": "normal" },
        }),
    })
}

/// The colour of a stage. The known stages of the pipeline have the same colours in every figure,
/// and other stages follow in their order.
fn hue(names: &[&str], i: usize) -> usize {
    let known = ["fetch", "decode", "deliver", "index", "fetch_decode"];
    let of = |name: &str| known.iter().position(|k| *k == name);
    let before = names.iter().take(i).filter(|n| of(n).is_none()).count();
    names.get(i).and_then(|n| of(n)).unwrap_or(known.len() + before)
}

/// The bars of one stage, one in each row. Without a hue they show the rest of the time.
fn bar(name: &str, hue: Option<usize>, x: &[f64], verb: &str) -> Value {
    let y: Vec<usize> = (0..x.len()).collect();
    let text: Vec<String> = x
        .iter()
        .map(|v| format!("<b>{}</b><br>{verb} {}", plotly_text(name), seconds(*v)))
        .collect();
    // A repeated colour gets stripes.
    let pattern = hatch(hue.is_some_and(|h| h >= COLOURS));
    json!({
        "type": "bar", "orientation": "h", "name": plotly_text(name), "x": x, "y": y, "text": text,
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>", "width": 0.6,
        "marker": {
            "color": hue.map_or("var(--rest)".into(), colour), "pattern": pattern,
            "line": { "color": "var(--bg)", "width": 1 },
        },
    })
}
