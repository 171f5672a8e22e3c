//! How time or bandwidth changes along a variable that was swept: threads, ranks, batch, size.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Figure, colour, grouped, plain};
use crate::results::ResultEntry;
use crate::units::{bandwidth, seconds};

/// A point of a curve.
struct ScalingPoint<'a> {
    x: f64,
    entry: &'a ResultEntry,
}

/// One figure a variable and group of comparisons.
pub(in crate::report) fn scaling(entries: &[ResultEntry]) -> Vec<Figure> {
    let timed = entries.iter().filter(|e| e.time_s.is_some());
    let groups = grouped(timed, |e| e.suite.clone().unwrap_or_else(|| e.experiment.clone()));
    groups.iter().flat_map(|(suite, entries)| of_group(suite, entries)).collect()
}

fn of_group(suite: &str, entries: &[&ResultEntry]) -> Vec<Figure> {
    let names: BTreeSet<&String> = entries.iter().flat_map(|e| e.settings.keys()).collect();
    let varies = |name: &&&String| {
        entries.iter().map(|e| e.settings.get(**name).map(text)).collect::<BTreeSet<_>>().len() > 1
    };
    let variables: Vec<&String> = names.iter().filter(varies).copied().collect();
    variables
        .iter()
        .copied()
        .filter_map(|variable| {
            // A curve is what remains the same when the variable changes.
            let mut curves: BTreeMap<String, Vec<ScalingPoint<'_>>> = BTreeMap::new();
            for entry in entries {
                let Some(x) =
                    entry.settings.get(variable).and_then(Value::as_f64).filter(|x| *x > 0.0)
                else {
                    continue;
                };
                curves
                    .entry(curve(entry, variable, &variables))
                    .or_default()
                    .push(ScalingPoint { x, entry });
            }
            for points in curves.values_mut() {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            curves.retain(|_, points| {
                points.iter().map(|p| p.x.to_bits()).collect::<BTreeSet<_>>().len() > 1
            });
            (!curves.is_empty()).then(|| draw(suite, variable, &curves))
        })
        .collect()
}

/// The name of an entry without the variable: its experiment, its arm, and what else varies that
/// they do not say.
fn curve(e: &ResultEntry, variable: &str, varying: &[&String]) -> String {
    let value = e.settings.get(variable).map(text).unwrap_or_default();
    let strip = |name: &str| {
        let mut name = name.to_owned();
        for sign in ["=", " ", ": "] {
            name = name.replace(&format!("{variable}{sign}{value}"), "");
        }
        let name =
            name.replace(&format!("{value} {variable}"), "").replace("()", "").replace("[]", "");
        name.trim_matches(|c: char| c.is_whitespace() || ",;:".contains(c)).to_owned()
    };
    let arm = strip(&e.arm);
    let experiment = strip(&e.experiment);
    let mut parts = vec![arm];
    // The experiment is left out where it is the suite's only one.
    if e.suite.is_some()
        && e.suite.as_deref() != Some(experiment.as_str())
        && !experiment.is_empty()
    {
        parts.insert(0, experiment);
    }
    for (name, value) in
        e.settings.iter().filter(|(name, _)| *name != variable && varying.contains(name))
    {
        let value = text(value);
        if !e.arm.contains(&value) && !e.experiment.contains(&value) {
            parts.push(format!("{name} {value}"));
        }
    }
    parts.join(", ")
}

fn text(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

fn draw(suite: &str, variable: &str, curves: &BTreeMap<String, Vec<ScalingPoint<'_>>>) -> Figure {
    let all = || curves.values().flatten();
    // Bandwidth where every point knows its bytes, else time.
    let rates = all().all(|p| p.entry.rate().is_some());
    let y =
        |e: &ResultEntry| if rates { e.rate() } else { e.time_s.map(|t| t.median) }.unwrap_or(0.0);
    let ends = |e: &ResultEntry| {
        let t = e.time_s.unwrap_or(crate::comparison::Spread { median: 0.0, min: 0.0, max: 0.0 });
        match (rates, e.stored_bytes) {
            (true, Some(b)) => (b as f64 / t.max, b as f64 / t.min),
            _ => (t.min, t.max),
        }
    };
    let mut at: Vec<f64> = all().map(|p| p.x).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let symbols = ["circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon"];
    let data: Vec<Value> = curves
        .iter()
        .enumerate()
        .map(|(i, (name, points))| {
            let hover = |p: &ScalingPoint<'_>| {
                let e = p.entry;
                let rate = e.rate().map_or(String::new(), |r| format!("<br>{} stored", bandwidth(r)));
                let time = e.time_s.map_or(String::new(), |t| seconds(t.median));
                format!("<b>{}</b><br>{} {variable}<br>{time}{rate}<br>{} trials", plain(name), p.x, e.times.len())
            };
            json!({
                "type": "scatter", "mode": "lines+markers", "name": plain(name),
                "x": points.iter().map(|p| p.x).collect::<Vec<_>>(), "y": points.iter().map(|p| y(p.entry)).collect::<Vec<_>>(),
                "error_y": {
                    "type": "data", "symmetric": false, "thickness": 1, "width": 4, "color": colour(i),
                    "array": points.iter().map(|p| ends(p.entry).1 - y(p.entry)).collect::<Vec<_>>(),
                    "arrayminus": points.iter().map(|p| y(p.entry) - ends(p.entry).0).collect::<Vec<_>>(),
                },
                "text": points.iter().map(hover).collect::<Vec<_>>(), "hovertemplate": "%{text}<extra></extra>",
                "line": { "color": colour(i) }, "marker": { "symbol": symbols.get(i % symbols.len()), "size": 8 },
            })
        })
        .chain(all().next().and_then(|p| p.entry.limit_s.zip(p.entry.stored_bytes)).filter(|_| rates).map(|(s, b)| {
            let rate = b as f64 / s;
            json!({
                "type": "scatter", "mode": "lines", "name": "this machine's limit", "x": [at.first(), at.last()], "y": [rate, rate],
                "hovertemplate": format!("this machine's limit: {}<extra></extra>", bandwidth(rate)),
                "line": { "color": "var(--limit)", "width": 2.5, "dash": "dash" },
            })
        }))
        .collect();
    let what = if rates { "stored bytes a second" } else { "time" };
    let said: Vec<String> = curves
        .iter()
        .map(|(name, points)| {
            let show = |p: &ScalingPoint<'_>| {
                let value = if rates { bandwidth(y(p.entry)) } else { seconds(y(p.entry)) };
                format!("{value} at {}", p.x)
            };
            let ends: Vec<String> =
                [points.first(), points.last()].into_iter().flatten().map(show).collect();
            format!("{name}: {}", ends.join(", "))
        })
        .collect();
    let (suffix, format) = if rates { ("B/s", "~s") } else { (" s", "~g") };
    // Beyond a factor of eight the small values would lie on the axis.
    let low = at.first().copied().unwrap_or(1.0);
    let kind = if at.last().copied().unwrap_or(1.0) / low > 8.0 { "log" } else { "linear" };
    let extremes: Vec<f64> = all().map(|p| y(p.entry)).filter(|v| *v > 0.0).collect();
    let wide = extremes.iter().copied().fold(0.0, f64::max)
        > 30.0 * extremes.iter().copied().fold(f64::MAX, f64::min);
    let labels: Vec<String> = at.iter().map(f64::to_string).collect();
    let lines = curves.len().div_ceil(3);
    Figure {
        title: format!("{suite}: {what} by {variable}"),
        alt: format!("Curves of {what} over {variable}. {}.", said.join("; ")),
        note: "Points: medians, with the slowest and the fastest trial.".into(),
        height: 330 + 22 * lines,
        data,
        layout: json!({
            "xaxis": { "type": kind, "tickmode": "array", "tickvals": at, "ticktext": labels, "title": { "text": plain(variable) } },
            "yaxis": {
                "type": if wide { "log" } else { "linear" }, "rangemode": "tozero", "tickformat": format, "ticksuffix": suffix,
                "title": { "text": what },
            },
        }),
    }
}
