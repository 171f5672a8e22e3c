//! Time by stage. What an arm does not tell is hatched.

use serde_json::{Value, json};

use super::times::limits;
use super::{Figure, height, pattern, plotly_text, rows_axis, seconds_axis, untold};
use crate::comparison::{ArmSummary, Comparison};
use crate::units::seconds;
use crate::workload::StageTimes;

/// The elapsed time, split by the stages that the consumer waited for, with the limit.
pub(in crate::report) fn waits(c: &Comparison) -> Option<Figure> {
    let arms: Vec<&ArmSummary> = c.summaries.iter().filter(|s| s.time_s.is_some()).collect();
    let tells = |s: &ArmSummary| s.stages.iter().any(|g| g.exposed_s.is_some());
    let rest = |s: &ArmSummary| {
        let exposed: f64 = s.stages.iter().filter_map(|g| g.exposed_s).sum();
        s.time_s.map_or(0.0, |t| (t.median - exposed).max(0.0))
    };
    let mut parts = stages(&arms, |_, g| g.exposed_s, "waited for")?;
    let of = |wanted: bool| -> Vec<f64> {
        arms.iter().map(|s| if tells(s) == wanted { rest(s) } else { 0.0 }).collect()
    };
    let idle = json!({ "color": "var(--rest)" });
    parts.push(StagePart { name: "not waiting", marker: idle, values: of(true), verb: "took" });
    parts.push(not_told(of(false)));
    let mut figure = stacked(&arms, &parts);
    figure.data.extend(limits(arms.iter().copied()));
    Some(Figure {
        title: "On the clock: what the consumer waited for".into(),
        note: "Medians. Hatched: the time of an arm that does not tell what it waits for. An arm \
             that overlaps its stages hardly waits."
            .into(),
        ..figure
    })
}

/// The CPU time of every arm, split by its stages as far as it tells them.
pub(in crate::report) fn cpu_time(c: &Comparison) -> Option<Figure> {
    let arms: Vec<&ArmSummary> = c.summaries.iter().filter(|s| s.cpu_s.is_some()).collect();
    if arms.is_empty() {
        return None;
    }
    // A request in flight counts as work of fetching, but it takes hardly any CPU time.
    let busy = |g: &StageTimes| g.busy_s.filter(|_| g.name != "fetch");
    let cpu = |s: &ArmSummary| s.cpu_s.unwrap_or(0.0);
    let told = |s: &ArmSummary| s.stages.iter().filter_map(busy).sum::<f64>();
    // The clocks of the stages go on while another process has the core.
    let scale = |s: &ArmSummary| if told(s) > cpu(s) { cpu(s) / told(s) } else { 1.0 };
    let own = |s: &ArmSummary, g: &StageTimes| busy(g).map(|b| b * scale(s));
    let mut parts = stages(&arms, own, "busy for").unwrap_or_default();
    parts.push(not_told(arms.iter().map(|s| (cpu(s) - told(s)).max(0.0)).collect()));
    Some(Figure {
        title: "CPU time by stage, on all cores together".into(),
        note: "Medians. The kernel counts the CPU time of every arm alike; the arm's own clocks \
             split it. Hatched: CPU time that the arm does not tell, with that of fetching and of \
             starting the process."
            .into(),
        ..stacked(&arms, &parts)
    })
}

/// A part of the bars, with its length in each row.
struct StagePart<'a> {
    name: &'a str,
    marker: Value,
    values: Vec<f64>,
    verb: &'static str,
}

fn not_told(values: Vec<f64>) -> StagePart<'static> {
    StagePart { name: "not told by the arm", marker: untold(), values, verb: "took" }
}

/// One part for each stage that has a value in any row; `None` if no stage has one.
fn stages<'a>(
    arms: &[&'a ArmSummary],
    value: impl Fn(&ArmSummary, &StageTimes) -> Option<f64>,
    verb: &'static str,
) -> Option<Vec<StagePart<'a>>> {
    let mut names: Vec<&str> = Vec::new();
    for s in arms {
        for g in &s.stages {
            if value(s, g).is_some_and(|v| v > 0.0) && !names.contains(&g.name.as_str()) {
                names.push(&g.name);
            }
        }
    }
    let part = |(i, name): (usize, &&'a str)| {
        let of = |s: &&ArmSummary| {
            s.stages.iter().find(|g| g.name == **name).and_then(|g| value(s, g)).unwrap_or(0.0)
        };
        let values = arms.iter().map(of).collect();
        StagePart { name, marker: marker(&names, i), values, verb }
    };
    (!names.is_empty()).then(|| names.iter().enumerate().map(part).collect())
}

/// The marker of a stage. The known stages of the pipeline have the same colours in every figure,
/// and other stages follow in their order. A colour that repeats gets dots.
fn marker(names: &[&str], i: usize) -> Value {
    let known = ["fetch", "decode", "deliver", "index", "fetch_decode", "sum", "open"];
    let of = |name: &str| known.iter().position(|k| *k == name);
    let before = names.iter().take(i).filter(|n| of(n).is_none()).count();
    let hue = names.get(i).and_then(|n| of(n)).unwrap_or(known.len() + before);
    json!({
        "color": format!("var(--stage{})", hue % HUES), "pattern": pattern(hue >= HUES),
        "line": { "color": "var(--bg)", "width": 1 },
    })
}

/// The number of colours for stages in the style sheet.
const HUES: usize = 8;

fn stacked(arms: &[&ArmSummary], parts: &[StagePart<'_>]) -> Figure {
    let names: Vec<String> = arms.iter().map(|s| s.arm.clone()).collect();
    let shown = || parts.iter().filter(|part| part.values.iter().any(|v| *v > 0.0));
    let row = |(i, name): (usize, &String)| {
        let of = |part: &StagePart<'_>| {
            let value = part.values.get(i).copied().filter(|v| *v > 0.0)?;
            Some(format!("{} {}", part.name, seconds(value)))
        };
        format!("{name}: {}", shown().filter_map(of).collect::<Vec<_>>().join(", "))
    };
    let in_words: Vec<String> = names.iter().enumerate().map(row).collect();
    Figure {
        title: String::new(),
        alt: format!("Stacked bars by arm. {}.", in_words.join("; ")),
        note: String::new(),
        height: height(&names),
        data: shown().map(bars).collect(),
        layout: json!({
            "xaxis": seconds_axis(""), "yaxis": rows_axis(&names), "barmode": "stack",
            "legend": { "traceorder": "normal" },
        }),
    }
}

fn bars(part: &StagePart<'_>) -> Value {
    let y: Vec<usize> = (0..part.values.len()).collect();
    let name = plotly_text(part.name);
    let text: Vec<String> = part
        .values
        .iter()
        .map(|v| format!("<b>{name}</b><br>{} {}", part.verb, seconds(*v)))
        .collect();
    json!({
        "type": "bar", "orientation": "h", "name": name, "x": part.values, "y": y, "text": text,
        "textposition": "none", "hovertemplate": "%{text}<extra></extra>", "width": 0.6,
        "marker": part.marker,
    })
}
