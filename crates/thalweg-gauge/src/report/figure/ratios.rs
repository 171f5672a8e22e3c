//! Ratios with their intervals. The noise between identical arms is shaded behind them.

use serde_json::{Value, json};

use super::{Figure, height, plotly_text, rows_axis};
use crate::comparison::{Comparison, pairs};
use crate::stats::{Ratio, RatioFinding};
use crate::units::digits;

/// One row of the figure.
#[derive(Debug, Clone)]
pub(in crate::report) struct Interval {
    pub(in crate::report) name: String,
    pub(in crate::report) ratio: Ratio,
    pub(in crate::report) finding: Option<RatioFinding>,
    /// The factor by which identical arms differed; `None` if it was not measured.
    pub(in crate::report) noise: Option<f64>,
    /// Each pair: its round from 0, and its ratio.
    pub(in crate::report) pairs: Vec<(usize, f64)>,
}

/// The rows of one comparison. With `beside_others`, they contain the name of the comparison, and
/// the control appears only as noise.
pub(in crate::report) fn of_comparison(c: &Comparison, beside_others: bool) -> Vec<Interval> {
    let Some(baseline) = c.session.arms.first().filter(|_| c.refused.is_none()) else {
        return Vec::new();
    };
    let control = c.session.control.and_then(|i| c.session.arms.get(i)).map(|a| a.name.as_str());
    c.summaries
        .iter()
        .filter(|s| !beside_others || Some(s.arm.as_str()) != control)
        .filter_map(|s| {
            let name = if beside_others {
                format!("{}: {}", c.session.name, s.arm)
            } else {
                s.arm.clone()
            };
            let pairs = pairs(&c.trials, &s.arm, &baseline.name);
            let pairs = pairs.iter().map(|p| (p.round, p.arm_s / p.baseline_s)).collect();
            Some(Interval {
                name,
                ratio: s.ratio?,
                finding: s.finding,
                noise: c.noise_floor,
                pairs,
            })
        })
        .collect()
}

/// The figure; `None` without rows. `against` names the baseline, whose ratio is 1.
pub(in crate::report) fn ratios(
    rows: &[Interval],
    title: &str,
    against: &str,
    note: &str,
) -> Option<Figure> {
    if rows.is_empty() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
    let ends = |r: &Interval| {
        let (low, high) = r.ratio.interval.unwrap_or((r.ratio.median, r.ratio.median));
        let pairs = r.pairs.iter().map(|p| p.1);
        pairs
            .chain([low, high, r.noise.unwrap_or(1.0), 1.0 / r.noise.unwrap_or(1.0)])
            .collect::<Vec<_>>()
    };
    let all: Vec<f64> = rows.iter().flat_map(ends).filter(|v| v.is_finite() && *v > 0.0).collect();
    let low = all.iter().copied().fold(1.0, f64::min) / 1.04;
    let high = all.iter().copied().fold(1.0, f64::max) * 1.04;
    let (values, labels) = ticks(low, high);
    let mut data: Vec<Value> = noise(rows).into_iter().chain(pair_points(rows)).collect();
    for (finding, name, symbol, colour) in KINDS {
        data.extend(medians(rows, *finding, name, symbol, colour));
    }
    let in_words: Vec<String> = rows.iter().map(in_words).collect();
    Some(Figure {
        title: title.into(),
        alt: format!("Ratios of time, 1 being {against}: {}.", in_words.join(", ")),
        note: note.into(),
        height: height(rows.len()),
        data,
        layout: json!({
            "yaxis": rows_axis(&names),
            "xaxis": {
                "type": "log", "range": [low.log10(), high.log10()], "tickmode": "array",
                "tickvals": values,
                "ticktext": labels,
                "title": {
                    "text": format!(
                        "← less time · times as long as {} · more time →",
                        plotly_text(against)
                    ),
                },
            },
            "shapes": [{
                "type": "line", "xref": "x", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
                "layer": "below",
                "line": { "color": "var(--soft)", "width": 1 },
            }],
        }),
    })
}

fn in_words(r: &Interval) -> String {
    let finding = r.finding.map_or(String::new(), |f| format!(" ({f})"));
    format!("{} {}{finding}", r.name, r.ratio)
}

/// The symbol and the colour of each finding.
const KINDS: &[(Option<RatioFinding>, &str, &str, &str)] = &[
    (Some(RatioFinding::Faster), "faster", "triangle-left", "var(--c0)"),
    (Some(RatioFinding::Slower), "slower", "triangle-right", "var(--c5)"),
    (Some(RatioFinding::NoDifferenceShown), "no difference shown", "circle-open", "var(--soft)"),
    (Some(RatioFinding::TooFewPairs), "too few for an interval", "x-thin-open", "var(--soft)"),
    (None, "nothing concluded", "x-thin-open", "var(--soft)"),
];

fn medians(
    rows: &[Interval],
    finding: Option<RatioFinding>,
    name: &str,
    symbol: &str,
    colour: &str,
) -> Option<Value> {
    let mine: Vec<(usize, &Interval)> =
        rows.iter().enumerate().filter(|(_, r)| r.finding == finding).collect();
    let end = |f: &dyn Fn(&Ratio) -> Option<f64>| -> Vec<f64> {
        mine.iter().map(|(_, r)| f(&r.ratio).unwrap_or(0.0)).collect()
    };
    let text: Vec<String> = mine
        .iter()
        .map(|(_, r)| {
            let pairs = if r.ratio.pairs > 0 {
                format!("<br>{} pairs", r.ratio.pairs)
            } else {
                String::new()
            };
            format!("<b>{}</b><br>{}{pairs}<br>{name}", plotly_text(&r.name), r.ratio)
        })
        .collect();
    (!mine.is_empty()).then(|| {
        json!({
            "type": "scatter", "mode": "markers", "name": name, "text": text,
            "hovertemplate": "%{text}<extra></extra>",
            "x": mine.iter().map(|(_, r)| r.ratio.median).collect::<Vec<_>>(),
            "y": mine.iter().map(|(i, _)| *i).collect::<Vec<_>>(),
            "error_x": {
                "type": "data", "symmetric": false, "thickness": 2.5, "width": 6, "color": colour,
                "array": end(&|r| Some(r.interval?.1 - r.median)),
                "arrayminus": end(&|r| Some(r.median - r.interval?.0)),
            },
            "marker": {
                "symbol": symbol, "color": colour, "size": 11,
                "line": { "width": 2, "color": colour },
            },
        })
    })
}

fn noise(rows: &[Interval]) -> Option<Value> {
    let mut x: Vec<Option<f64>> = Vec::new();
    let mut y: Vec<Option<f64>> = Vec::new();
    for (i, r) in rows.iter().enumerate() {
        let Some(n) = r.noise else { continue };
        let top = Some(i as f64 - 0.5);
        let bottom = Some(i as f64 + 0.5);
        x.extend([Some(1.0 / n), Some(n), Some(n), Some(1.0 / n), Some(1.0 / n), None]);
        y.extend([top, top, bottom, bottom, top, None]);
    }
    (!x.is_empty()).then(|| {
        json!({
            "type": "scatter", "mode": "lines", "fill": "toself",
            "name": "noise between identical arms", "x": x, "y": y,
            "fillcolor": "var(--noise)", "opacity": 0.55, "line": { "width": 0 },
            "hoverinfo": "skip",
        })
    })
}

fn pair_points(rows: &[Interval]) -> Option<Value> {
    let all: Vec<(usize, usize, f64)> = rows
        .iter()
        .enumerate()
        .flat_map(|(i, r)| r.pairs.iter().map(move |p| (i, p.0, p.1)))
        .collect();
    let rounds = all.iter().map(|p| p.1 + 1).max()? as f64;
    // The pairs are in the order of their rounds from top to bottom of the row, so that a drift is
    // visible as a slope.
    let height =
        |row: usize, round: usize| row as f64 + 0.56 * ((round as f64 + 0.5) / rounds - 0.5);
    let hover = |round: usize, ratio: f64| format!("round {}: {}x", round + 1, digits(ratio));
    Some(json!({
        "type": "scatter", "mode": "markers", "name": "a pair",
        "x": all.iter().map(|p| p.2).collect::<Vec<_>>(),
        "y": all.iter().map(|p| height(p.0, p.1)).collect::<Vec<_>>(),
        "text": all.iter().map(|p| hover(p.1, p.2)).collect::<Vec<_>>(),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": { "symbol": "circle", "color": "var(--c6)", "size": 4 },
    }))
}

/// Ticks at round factors of a logarithmic axis, with their labels. A short axis has denser ticks.
fn ticks(low: f64, high: f64) -> (Vec<f64>, Vec<String>) {
    let steps: &[f64] = match high / low {
        r if r < 1.35 => &[1.0, 1.025, 1.05, 1.1, 1.15, 1.2, 1.3, 8.0, 8.5, 9.0, 9.5, 9.75],
        r if r < 4.0 => &[1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        r if r < 100.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        _ => &[1.0],
    };
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10_f64.powi(d)));
    let kept: Vec<f64> = all.filter(|v| (low..=high).contains(v)).collect();
    let label = |v: &f64| {
        let text = format!("{v:.3}");
        format!("{}x", text.trim_end_matches('0').trim_end_matches('.'))
    };
    let labels = kept.iter().map(label).collect();
    (kept, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_hold_one_and_are_few() {
        for (low, high) in [(0.97, 1.04), (0.8, 3.1), (0.9, 40.0), (0.001, 900.0)] {
            let (values, labels) = ticks(low, high);
            assert!(labels.contains(&"1x".to_owned()), "{labels:?}");
            assert!((3..=12).contains(&values.len()), "{low}..{high}: {labels:?}");
        }
    }
}
