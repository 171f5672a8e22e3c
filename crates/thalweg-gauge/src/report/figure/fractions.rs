//! A figure of how close each run came to the limit of its own machine.

use serde_json::{Value, json};

use super::{Figure, bars, height, plotly_text, rows_axis};
use crate::cross_run::Compared;
use crate::units::digits;

/// A bar for each run, in every row that has a limit in at least two runs; `None` without such a
/// row.
pub(in crate::report) fn fractions(c: &Compared) -> Option<Figure> {
    let known = |r: &crate::cross_run::ComparedRow| {
        r.cells.iter().flatten().filter(|e| e.fraction().is_some()).count()
    };
    let with: Vec<_> = c.rows.iter().filter(|r| known(r) > 1).collect();
    if with.is_empty() {
        return None;
    }
    let data: Vec<Value> = c
        .runs
        .iter()
        .enumerate()
        .map(|(i, run)| {
            let of = |(row, r): (usize, &&crate::cross_run::ComparedRow)| {
                let fraction = r.cells.get(i)?.as_ref()?.fraction()?;
                Some((
                    row,
                    fraction,
                    format!(
                        "{}<br>{} % of its limit",
                        plotly_text(&r.arm),
                        digits(fraction * 100.0)
                    ),
                ))
            };
            let points: Vec<(usize, f64, String)> =
                with.iter().enumerate().filter_map(of).collect();
            bars(&run.name, i, c.runs.len(), &points)
        })
        .collect();
    let names: Vec<String> = with.iter().map(|r| format!("{}: {}", r.experiment, r.arm)).collect();
    let in_words: Vec<String> = with
        .iter()
        .map(|r| {
            let each = r
                .cells
                .iter()
                .flatten()
                .filter_map(|e| Some(format!("{} %", digits(e.fraction()? * 100.0))));
            format!("{}, {}: {}", r.experiment, r.arm, each.collect::<Vec<_>>().join(", "))
        })
        .collect();
    Some(Figure {
        title: "How near to its own machine's limit".into(),
        alt: format!("Bars of the fraction of each machine's limit. {}.", in_words.join("; ")),
        note: "Limit over median time; 100 % is the best that device and memory allow. This \
             compares programs across machines that are not equally fast."
            .into(),
        height: height(&names).max(96 + names.len() * (14 + 20 * c.runs.len())),
        data,
        layout: json!({
            "barmode": "overlay", "yaxis": rows_axis(&names),
            "xaxis": { "side": "top", "tickformat": ".0%", "rangemode": "tozero" },
            "shapes": [{
                "type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
                "line": { "color": "var(--limit)", "width": 2.5, "dash": "dash" },
            }],
        }),
    })
}
