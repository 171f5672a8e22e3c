//! Curves of time or bandwidth over a swept variable: threads, ranks, batch, size.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Figure, colour, grouped, plotly_text};
use crate::comparison::Spread;
use crate::results::ResultEntry;
use crate::units::{bandwidth, seconds};

/// A point of a curve.
struct ScalingPoint<'a> {
    x: f64,
    entry: &'a ResultEntry,
}

/// One figure for each variable and group of comparisons.
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
            // A curve joins the entries that differ in this variable only.
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
            (!curves.is_empty()).then(|| draw(suite, &Curves::new(variable, curves)))
        })
        .collect()
}

/// The name of an entry's curve: its experiment, its arm, and the other varying settings that these
/// names do not contain.
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
    // The experiment is left out if it is the only one of the suite.
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

/// The curves of one figure.
struct Curves<'a> {
    by_name: BTreeMap<String, Vec<ScalingPoint<'a>>>,
    variable: &'a str,
    /// Whether bandwidth is drawn, because the bytes of every point are known. Otherwise time is
    /// drawn.
    rates: bool,
    /// The values of the variable, in ascending order.
    at: Vec<f64>,
}

/// The symbols of the curves. They repeat if there are more curves.
const SYMBOLS: [&str; 7] =
    ["circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon"];

impl<'a> Curves<'a> {
    fn new(variable: &'a str, by_name: BTreeMap<String, Vec<ScalingPoint<'a>>>) -> Self {
        let rates = by_name.values().flatten().all(|p| p.entry.rate().is_some());
        let mut at: Vec<f64> = by_name.values().flatten().map(|p| p.x).collect();
        at.sort_by(f64::total_cmp);
        at.dedup();
        Self { by_name, variable, rates, at }
    }

    /// Bandwidth or time of an entry.
    fn value(&self, e: &ResultEntry) -> f64 {
        if self.rates { e.rate() } else { e.time_s.map(|t| t.median) }.unwrap_or(0.0)
    }

    /// The values of the slowest and of the fastest trial, the smaller value first.
    fn range(&self, e: &ResultEntry) -> (f64, f64) {
        let t = e.time_s.unwrap_or(Spread { median: 0.0, min: 0.0, max: 0.0 });
        match (self.rates, e.stored_bytes) {
            (true, Some(b)) => (b as f64 / t.max, b as f64 / t.min),
            _ => (t.min, t.max),
        }
    }

    fn hover(&self, name: &str, p: &ScalingPoint<'_>) -> String {
        let e = p.entry;
        let rate = e.rate().map_or(String::new(), |r| format!("<br>{} stored", bandwidth(r)));
        let time = e.time_s.map_or(String::new(), |t| seconds(t.median));
        let variable = self.variable;
        let trials = e.times.len();
        format!(
            "<b>{}</b><br>{} {variable}<br>{time}{rate}<br>{trials} trials",
            plotly_text(name),
            p.x
        )
    }

    /// The Plotly trace of curve number `i`.
    fn trace(&self, i: usize, name: &str, points: &[ScalingPoint<'_>]) -> Value {
        let above = |p: &ScalingPoint<'_>| self.range(p.entry).1 - self.value(p.entry);
        let below = |p: &ScalingPoint<'_>| self.value(p.entry) - self.range(p.entry).0;
        json!({
            "type": "scatter", "mode": "lines+markers", "name": plotly_text(name),
            "x": points.iter().map(|p| p.x).collect::<Vec<_>>(),
            "y": points.iter().map(|p| self.value(p.entry)).collect::<Vec<_>>(),
            "error_y": {
                "type": "data", "symmetric": false, "thickness": 1, "width": 4,
                "color": colour(i),
                "array": points.iter().map(above).collect::<Vec<_>>(),
                "arrayminus": points.iter().map(below).collect::<Vec<_>>(),
            },
            "text": points.iter().map(|p| self.hover(name, p)).collect::<Vec<_>>(),
            "hovertemplate": "%{text}<extra></extra>",
            "line": { "color": colour(i) },
            "marker": { "symbol": SYMBOLS.get(i % SYMBOLS.len()), "size": 8 },
        })
    }

    /// The limit of the machine as a dashed line; `None` if time is drawn, or if the limit is
    /// unknown.
    fn limit(&self) -> Option<Value> {
        let first = self.by_name.values().flatten().next().filter(|_| self.rates)?;
        let (limit_s, bytes) = first.entry.limit_s.zip(first.entry.stored_bytes)?;
        let rate = bytes as f64 / limit_s;
        let hover = format!("this machine's limit: {}<extra></extra>", bandwidth(rate));
        Some(json!({
            "type": "scatter", "mode": "lines", "name": "this machine's limit",
            "x": [self.at.first(), self.at.last()], "y": [rate, rate], "hovertemplate": hover,
            "line": { "color": "var(--limit)", "width": 2.5, "dash": "dash" },
        }))
    }

    /// The first and the last value of each curve, in words.
    fn in_words(&self) -> String {
        let show = |p: &ScalingPoint<'_>| {
            let value = self.value(p.entry);
            let value = if self.rates { bandwidth(value) } else { seconds(value) };
            format!("{value} at {}", p.x)
        };
        let curve = |(name, points): (&String, &Vec<ScalingPoint<'_>>)| {
            let ends: Vec<String> =
                [points.first(), points.last()].into_iter().flatten().map(show).collect();
            format!("{name}: {}", ends.join(", "))
        };
        self.by_name.iter().map(curve).collect::<Vec<_>>().join("; ")
    }

    fn layout(&self, what: &str) -> Value {
        let (suffix, format) = if self.rates { ("B/s", "~s") } else { (" s", "~g") };
        // If the values span a factor of more than eight, a linear axis would crowd the small
        // values.
        let low = self.at.first().copied().unwrap_or(1.0);
        let wide_x = self.at.last().copied().unwrap_or(1.0) / low > 8.0;
        let values = self.by_name.values().flatten().map(|p| self.value(p.entry));
        let values: Vec<f64> = values.filter(|v| *v > 0.0).collect();
        let wide_y = values.iter().copied().fold(0.0, f64::max)
            > 30.0 * values.iter().copied().fold(f64::MAX, f64::min);
        let scale = |wide: bool| if wide { "log" } else { "linear" };
        let labels: Vec<String> = self.at.iter().map(f64::to_string).collect();
        json!({
            "xaxis": {
                "type": scale(wide_x), "tickmode": "array", "tickvals": self.at,
                "ticktext": labels, "title": { "text": plotly_text(self.variable) },
            },
            "yaxis": {
                "type": scale(wide_y), "rangemode": "tozero", "tickformat": format,
                "ticksuffix": suffix, "title": { "text": what },
            },
        })
    }
}

fn draw(suite: &str, curves: &Curves<'_>) -> Figure {
    let what = if curves.rates { "stored bytes a second" } else { "time" };
    let traces = curves.by_name.iter().enumerate();
    let traces = traces.map(|(i, (name, points))| curves.trace(i, name, points));
    let variable = curves.variable;
    // A line of the legend holds about three names.
    let lines = curves.by_name.len().div_ceil(3);
    Figure {
        title: format!("{suite}: {what} by {variable}"),
        alt: format!("Curves of {what} over {variable}. {}.", curves.in_words()),
        note: "Points: medians, with the slowest and the fastest trial.".into(),
        height: 330 + 22 * lines,
        data: traces.chain(curves.limit()).collect(),
        layout: curves.layout(what),
    }
}
