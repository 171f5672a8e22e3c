//! Every trial of a comparison, the medians behind them, and the machine's limit.

use serde_json::{Value, json};

use super::{Figure, height, plotly_text, rows_axis, seconds_axis};
use crate::comparison::{ArmSummary, Comparison, Flag, Trial};
use crate::units::{digits, seconds};

/// A bar for each arm (its median), a point for each trial (hollow if rejected), and a line for the
/// limit.
pub(in crate::report) fn times(c: &Comparison) -> Option<Figure> {
    let mut points: Vec<(f64, f64, String)> = Vec::new();
    let mut rejected = points.clone();
    let mut outlying = points.clone();
    for (i, s) in c.summaries.iter().enumerate() {
        for t in c.trials.iter().filter(|t| t.arm == s.arm) {
            let (Some(time), Some(round)) = (t.time_s, t.round) else { continue };
            // The trials are in the order of their rounds from top to bottom, so that a drift is
            // visible as a slope.
            let y = i as f64 + 0.56 * ((round as f64 + 0.5) / rounds(c) as f64 - 0.5);
            let list = match &t.rejected {
                Some(_) => &mut rejected,
                None if outlier(c, t) => &mut outlying,
                None => &mut points,
            };
            list.push((time, y, hover(t)));
        }
    }
    if points.len() + rejected.len() + outlying.len() == 0 {
        return None;
    }
    let names: Vec<String> = c.summaries.iter().map(|s| s.arm.clone()).collect();
    let clock = c.session.clock.name();
    let mut data = vec![medians(c)];
    data.push(scatter("a trial", "circle", "var(--dot)", &points));
    if !outlying.is_empty() {
        data.push(scatter("far from the others, counted", "diamond", "var(--dot)", &outlying));
    }
    if !rejected.is_empty() {
        data.push(scatter("rejected, not averaged", "circle-open", "var(--bad)", &rejected));
    }
    data.extend(limits(&c.summaries));
    let labels: Vec<Value> = c.summaries.iter().enumerate().map(|(i, s)| label(i, s)).collect();
    let in_words: Vec<String> = c
        .summaries
        .iter()
        .filter_map(|s| Some(format!("{} {}", s.arm, seconds(s.time_s?.median))))
        .collect();
    Some(Figure {
        title: format!("{}, every trial", capital(clock)),
        alt: format!(
            "Bars of the median {clock} by arm, with every trial as a point: {}.",
            in_words.join(", ")
        ),
        note: "Bar: median. Points: trials, the first round on top; point at one for its round, \
             level and load. Dashed line: what this machine's device and memory allow at best."
            .into(),
        height: height(&names),
        data,
        layout: json!({
            "xaxis": seconds_axis(""), "yaxis": rows_axis(&names), "annotations": labels,
            "margin": { "r": 70 }, "barmode": "overlay",
        }),
    })
}

/// Whether the trial is flagged as far from its arm's others.
fn outlier(c: &Comparison, t: &Trial) -> bool {
    c.flags.iter().any(|flag| match flag {
        Flag::Outliers { arm, rounds, .. } => {
            *arm == t.arm && t.round.is_some_and(|r| rounds.contains(&r))
        }
        _ => false,
    })
}

fn rounds(c: &Comparison) -> usize {
    let seen = c.trials.iter().filter_map(|t| t.round).max().map_or(1, |r| r + 1);
    seen.max(1)
}

fn capital(s: &str) -> String {
    let mut chars = s.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn medians(c: &Comparison) -> Value {
    let with: Vec<(usize, f64)> =
        c.summaries.iter().enumerate().filter_map(|(i, s)| Some((i, s.time_s?.median))).collect();
    json!({
        "type": "bar", "orientation": "h", "name": "median", "hoverinfo": "skip", "width": 0.7,
        "showlegend": false,
        "x": with.iter().map(|w| w.1).collect::<Vec<_>>(),
        "y": with.iter().map(|w| w.0).collect::<Vec<_>>(),
        "marker": { "color": "var(--bar)" },
    })
}

/// The median in figures, or the reason for its absence, at the right end of the row.
fn label(i: usize, s: &ArmSummary) -> Value {
    let text = match (&s.time_s, &s.failed) {
        (_, Some(_)) => "failed".into(),
        (Some(t), _) => seconds(t.median),
        (None, _) => "no trial".into(),
    };
    json!({
        "xref": "paper", "x": 1, "xanchor": "left", "xshift": 6, "yref": "y", "y": i,
        "text": text, "showarrow": false,
    })
}

fn scatter(name: &str, symbol: &str, colour: &str, points: &[(f64, f64, String)]) -> Value {
    json!({
        "type": "scatter", "mode": "markers", "name": name,
        "x": points.iter().map(|p| p.0).collect::<Vec<_>>(),
        "y": points.iter().map(|p| p.1).collect::<Vec<_>>(),
        "text": points.iter().map(|p| p.2.as_str()).collect::<Vec<_>>(),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": { "symbol": symbol, "color": colour, "size": 6 },
    })
}

/// The limit as a dashed line through each row that has one.
pub(super) fn limits<'a>(rows: impl IntoIterator<Item = &'a ArmSummary>) -> Option<Value> {
    let mut x: Vec<Option<f64>> = Vec::new();
    let mut y: Vec<Option<f64>> = Vec::new();
    for (i, s) in rows.into_iter().enumerate() {
        let Some(floor) = s.limit.as_ref().and_then(crate::limit::Limit::floor_s) else { continue };
        x.extend([Some(floor), Some(floor), None]);
        y.extend([Some(i as f64 - 0.45), Some(i as f64 + 0.45), None]);
    }
    (!x.is_empty()).then(|| {
        json!({
            "type": "scatter", "mode": "lines", "name": "this machine's limit", "x": x, "y": y,
            "hovertemplate": "this machine's limit: %{x:.3~s} s<extra></extra>",
            "line": { "color": "var(--limit)", "width": 2.5, "dash": "dash" },
        })
    })
}

/// The hover text of a trial.
fn hover(t: &Trial) -> String {
    let mut lines = vec![format!("<b>{}</b>", plotly_text(&t.arm))];
    let round = t.round.map_or(0, |r| r + 1);
    let again = if t.attempt > 0 { format!(", attempt {}", t.attempt + 1) } else { String::new() };
    lines.push(format!("round {round}, place {}{again}", t.position + 1));
    lines.extend(t.time_s.map(seconds));
    lines.push(format!("{} caches", t.level.unwrap_or(t.level_asked)));
    if let Some(o) = &t.outcome {
        let mut load = Vec::new();
        load.extend(o.load.load_average_before.map(|l| format!("load {} before", digits(l))));
        load.extend(o.load.cpu_pressure.map(|p| format!("CPU waited for {} %", digits(p * 100.0))));
        load.extend(o.load.io_pressure.map(|p| format!("I/O waited for {} %", digits(p * 100.0))));
        load.extend(
            o.load.stolen_cpu_s.filter(|&s| s > 0.0).map(|s| format!("{} stolen", seconds(s))),
        );
        if !load.is_empty() {
            lines.push(load.join(", "));
        }
    }
    lines.extend(t.rejected.as_ref().map(|why| format!("rejected: {}", broken(why))));
    lines.join("<br>")
}

/// Breaks a text into lines that fit into the hover box.
fn broken(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            out.push_str(if length + word.chars().count() > 60 { "<br>" } else { " " });
        }
        length = if out.ends_with("<br>") { 0 } else { length } + word.chars().count() + 1;
        out.push_str(&plotly_text(word));
    }
    out
}
