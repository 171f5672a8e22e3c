//! Ratios with their intervals, and the values at both ends. The interval of the control is shaded
//! behind them.

use serde_json::{Value, json};

use super::{Figure, height, plotly_text, rows_axis};
use crate::comparison::{Comparison, pairs};
use crate::stats::{Ratio, RatioFinding};
use crate::units::{digits, seconds};

/// One row of the figure.
#[derive(Debug, Clone)]
pub(in crate::report) struct RatioRow {
    pub(in crate::report) name: String,
    /// `None` for the baseline, whose ratio is 1.
    pub(in crate::report) ratio: Option<Ratio>,
    pub(in crate::report) finding: Option<RatioFinding>,
    /// The median time in seconds, if the baseline has one.
    pub(in crate::report) time_s: Option<f64>,
    /// Each pair: its round from 0, and its ratio.
    pub(in crate::report) pairs: Vec<(usize, f64)>,
}

/// The ratios that identical arms gave.
#[derive(Debug, Clone)]
pub(in crate::report) struct NoiseBand {
    /// The least and the greatest ratio.
    pub(in crate::report) ends: (f64, f64),
    /// How it was found.
    pub(in crate::report) note: String,
}

/// The rows of one comparison, the baseline first, and its noise. The control has a row only if
/// there is no other arm.
pub(in crate::report) fn of_comparison(c: &Comparison) -> (Vec<RatioRow>, Option<NoiseBand>) {
    let Some(baseline) = c.session.arms.first().filter(|_| c.refused.is_none()) else {
        return (Vec::new(), None);
    };
    let control = c.session.control.filter(|_| c.session.arms.len() > 2);
    let row = |(i, s): (usize, &crate::comparison::ArmSummary)| {
        if Some(i) == control || (i > 0 && s.ratio.is_none()) {
            return None;
        }
        let pairs = pairs(&c.trials, &s.arm, &baseline.name);
        let pairs = pairs.iter().map(|p| (p.round, p.arm_s / p.baseline_s));
        Some(RatioRow {
            name: s.arm.clone(),
            ratio: s.ratio,
            finding: s.finding,
            time_s: s.time_s.map(|t| t.median),
            pairs: if i == 0 { Vec::new() } else { pairs.collect() },
        })
    };
    let rows: Vec<RatioRow> = c.summaries.iter().enumerate().filter_map(row).collect();
    let band = c.noise.and_then(|noise| {
        let note = format!("Noise band: the baseline against itself, {noise}.");
        Some(NoiseBand { ends: noise.interval?, note })
    });
    (rows, band)
}

/// The figure; `None` without a ratio. `against` names the baseline, whose ratio is 1.
pub(in crate::report) fn ratios(
    rows: &[RatioRow],
    band: Option<&NoiseBand>,
    against: &str,
    note: &str,
) -> Option<Figure> {
    let known: Vec<&Ratio> = rows.iter().filter_map(|r| r.ratio.as_ref()).collect();
    if known.is_empty() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
    let (low, high) = range(rows, band);
    let (values, labels) = ticks(low, high);
    let mut data: Vec<Value> = pair_points(rows).into_iter().collect();
    data.extend(baseline(rows, low, high));
    for (finding, name, symbol, colour) in KINDS {
        data.extend(medians(rows, *finding, name, symbol, colour));
    }
    data.extend(texts(rows, low, high));
    let in_words: Vec<String> = rows.iter().map(in_words).collect();
    let noise = band.map(|band| band.note.as_str()).unwrap_or_default();
    let mut shapes = vec![vertical(1.0, 1.0, "line")];
    shapes.extend(band.map(|band| vertical(band.ends.0, band.ends.1, "rect")));
    Some(Figure {
        title: String::new(),
        alt: format!("Ratios of time, 1 being {against}: {}. {noise}", in_words.join(", ")),
        note: [note, noise].into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(" "),
        height: height(&names) - LEGEND,
        data,
        layout: json!({
            "yaxis": rows_axis(&names), "showlegend": false, "shapes": shapes,
            "margin": { "b": 6 },
            "xaxis": {
                "side": "top", "type": "log", "range": [low.log10(), high.log10()],
                "tickmode": "array", "tickvals": values, "ticktext": labels,
                "title": {
                    "text": format!(
                        "← less time · times as long as {} · more time →",
                        plotly_text(against)
                    ),
                },
            },
        }),
    })
}

/// The height of the legend, which this figure has not, in CSS pixels.
const LEGEND: usize = 34;

/// The line at the baseline, or the noise band.
fn vertical(from: f64, to: f64, kind: &str) -> Value {
    let fill = if kind == "rect" { "var(--noise)" } else { "rgba(0,0,0,0)" };
    json!({
        "type": kind, "xref": "x", "x0": from, "x1": to, "yref": "paper", "y0": 0, "y1": 1,
        "layer": "below", "fillcolor": fill,
        "line": { "color": "var(--soft)", "width": if kind == "rect" { 0 } else { 1 } },
    })
}

/// The ends of the axis. Beside the whiskers, there is room for their values.
fn range(rows: &[RatioRow], band: Option<&NoiseBand>) -> (f64, f64) {
    let ends = |r: &RatioRow| {
        let whiskers = r.ratio.map(|q| q.interval.unwrap_or((q.median, q.median)));
        let mut ends: Vec<f64> = r.pairs.iter().map(|p| p.1).collect();
        ends.extend(whiskers.into_iter().flat_map(|(low, high)| [low, high]));
        ends
    };
    let noise = band.into_iter().flat_map(|band| [band.ends.0, band.ends.1]);
    let all: Vec<f64> = rows.iter().flat_map(ends).chain(noise).collect();
    let usable = || all.iter().copied().filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = (usable().fold(1.0, f64::min), usable().fold(1.0, f64::max));
    let room = (high / low).powf(0.17).max(1.01);
    (low / room, high * room)
}

fn in_words(r: &RatioRow) -> String {
    let finding = r.finding.map_or(String::new(), |f| format!(" ({f})"));
    let ratio = r.ratio.map_or("1 (baseline)".into(), |ratio| ratio.to_string());
    format!("{} {ratio}{finding}", r.name)
}

/// The symbol and the colour of each finding.
const KINDS: &[(Option<RatioFinding>, &str, &str, &str)] = &[
    (Some(RatioFinding::Faster), "faster", "triangle-left", "var(--faster)"),
    (Some(RatioFinding::Slower), "slower", "triangle-right", "var(--slower)"),
    (Some(RatioFinding::NoDifferenceShown), "no difference shown", "circle-open", "var(--soft)"),
    (Some(RatioFinding::TooFewPairs), "too few for an interval", "x-thin-open", "var(--soft)"),
    (None, "nothing concluded", "x-thin-open", "var(--soft)"),
];

fn medians(
    rows: &[RatioRow],
    finding: Option<RatioFinding>,
    name: &str,
    symbol: &str,
    colour: &str,
) -> Option<Value> {
    let mine: Vec<(usize, &RatioRow, Ratio)> = rows
        .iter()
        .enumerate()
        .filter(|(_, r)| r.finding == finding)
        .filter_map(|(i, r)| Some((i, r, r.ratio?)))
        .collect();
    let end = |f: &dyn Fn(&Ratio) -> Option<f64>| -> Vec<f64> {
        mine.iter().map(|(.., ratio)| f(ratio).unwrap_or(0.0)).collect()
    };
    let text: Vec<String> = mine
        .iter()
        .map(|(_, r, ratio)| {
            let pairs =
                if ratio.pairs > 0 { format!("<br>{} pairs", ratio.pairs) } else { String::new() };
            format!("<b>{}</b><br>{ratio}{pairs}<br>{name}", plotly_text(&r.name))
        })
        .collect();
    (!mine.is_empty()).then(|| {
        json!({
            "type": "scatter", "mode": "markers", "name": name, "text": text,
            "hovertemplate": "%{text}<extra></extra>",
            "x": mine.iter().map(|(.., ratio)| ratio.median).collect::<Vec<_>>(),
            "y": mine.iter().map(|(i, ..)| *i).collect::<Vec<_>>(),
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

/// The baseline at 1, with its time on the side that has more room between `low` and `high`.
fn baseline(rows: &[RatioRow], low: f64, high: f64) -> Option<Value> {
    let place = if high * low < 1.0 { "middle left" } else { "middle right" };
    let at = rows.iter().position(|r| r.ratio.is_none())?;
    let row = rows.get(at)?;
    let time = row.time_s.map_or("baseline".into(), |s| format!(" baseline, {} ", seconds(s)));
    Some(json!({
        "type": "scatter", "mode": "markers+text", "name": "baseline", "x": [1], "y": [at],
        "text": [time], "textposition": place, "textfont": { "size": 11 },
        "hovertemplate": format!("{}<extra></extra>", plotly_text(&row.name)),
        "marker": { "symbol": "diamond", "color": "var(--fg)", "size": 9 },
    }))
}

/// The values at the whiskers, and the median above its symbol. Where a whisker ends within the
/// symbol, its value has more distance.
fn texts(rows: &[RatioRow], low: f64, high: f64) -> Vec<Value> {
    let known: Vec<(usize, Ratio)> =
        rows.iter().enumerate().filter_map(|(i, r)| Some((i, r.ratio?))).collect();
    let write = |place: &str, rise: f64, of: &dyn Fn(&Ratio) -> Option<f64>| {
        let points: Vec<(usize, f64, String)> = known
            .iter()
            .filter_map(|(i, ratio)| {
                let at = of(ratio)?;
                let near = (at / ratio.median).ln().abs() < 0.025 * (high / low).ln();
                let text = match (rise > 0.0, near) {
                    (true, _) => format!("{}x", digits(at)),
                    (false, false) => format!(" {} ", digits(at)),
                    (false, true) => format!("    {}    ", digits(at)),
                };
                Some((*i, at, text))
            })
            .collect();
        json!({
            "type": "scatter", "mode": "text", "hoverinfo": "skip", "textposition": place,
            "x": points.iter().map(|p| p.1).collect::<Vec<_>>(),
            "y": points.iter().map(|p| p.0 as f64 - rise).collect::<Vec<_>>(),
            "text": points.iter().map(|p| p.2.as_str()).collect::<Vec<_>>(),
            "textfont": { "size": 11 }, "cliponaxis": false,
        })
    };
    vec![
        write("middle left", 0.0, &|r| Some(r.interval?.0)),
        write("middle right", 0.0, &|r| Some(r.interval?.1)),
        write("middle center", 0.3, &|r| Some(r.median)),
    ]
}

/// The single pairs, below the whiskers.
fn pair_points(rows: &[RatioRow]) -> Option<Value> {
    let all: Vec<(usize, usize, f64)> = rows
        .iter()
        .enumerate()
        .flat_map(|(i, r)| r.pairs.iter().map(move |p| (i, p.0, p.1)))
        .collect();
    let rounds = all.iter().map(|p| p.1 + 1).max()? as f64;
    // The pairs are in the order of their rounds from top to bottom, so that a drift is visible as
    // a slope.
    let height =
        |row: usize, round: usize| row as f64 + 0.16 + 0.26 * (round as f64 + 0.5) / rounds;
    let hover = |round: usize, ratio: f64| format!("round {}: {}x", round + 1, digits(ratio));
    Some(json!({
        "type": "scatter", "mode": "markers", "name": "a pair",
        "x": all.iter().map(|p| p.2).collect::<Vec<_>>(),
        "y": all.iter().map(|p| height(p.0, p.1)).collect::<Vec<_>>(),
        "text": all.iter().map(|p| hover(p.1, p.2)).collect::<Vec<_>>(),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": { "symbol": "circle", "color": "var(--dot)", "size": 4 },
    }))
}

/// Ticks at round factors of a logarithmic axis, with their labels. A short axis has denser ticks.
/// Ticks that would be closer than a ninth of the axis are left out.
fn ticks(low: f64, high: f64) -> (Vec<f64>, Vec<String>) {
    let steps: &[f64] = match high / low {
        r if r < 1.35 => &[1.0, 1.025, 1.05, 1.1, 1.15, 1.2, 1.3, 8.0, 8.5, 9.0, 9.5, 9.75],
        r if r < 4.0 => &[1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        r if r < 100.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        _ => &[1.0],
    };
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10_f64.powi(d)));
    let least = (high / low).ln() / 9.0;
    let mut kept: Vec<f64> = Vec::new();
    for value in all.filter(|v| (low..=high).contains(v)) {
        let near = |other: &f64| (value / other).ln().abs() < least;
        // The tick at 1 stays, whatever is near.
        if near(&1.0) && value != 1.0 {
            continue;
        }
        if !kept.last().is_some_and(near) {
            kept.push(value);
        }
    }
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
    fn ticks_hold_one_and_are_few_and_apart() {
        for (low, high) in [(0.97, 1.04), (0.8, 3.1), (0.9, 40.0), (0.001, 900.0), (0.5, 1.3)] {
            let (values, labels) = ticks(low, high);
            assert!(labels.contains(&"1x".to_owned()), "{labels:?}");
            assert!((3..=10).contains(&values.len()), "{low}..{high}: {labels:?}");
            let least = (high / low).ln() / 9.0 - 1e-9;
            assert!(values.windows(2).all(|w| (w[1] / w[0]).ln() >= least), "{labels:?}");
        }
    }
}
