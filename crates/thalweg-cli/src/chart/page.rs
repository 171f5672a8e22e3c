//! Panels as a page that can be zoomed, with the figures of the reports.

use serde_json::{Value, json};
use thalweg_gauge::report::{Figure, figures_page, plotly_text};

use super::{Axis, Marks, Panel, rounded, short};

pub(super) fn page(title: &str, panels: &[Panel]) -> String {
    figures_page(title, panels.iter().map(|panel| figure(title, panel)).collect())
}

fn figure(page: &str, panel: &Panel) -> Figure {
    let title = if panel.title.is_empty() { page.to_owned() } else { panel.title.clone() };
    let (data, height) = match &panel.marks {
        Marks::Line(points) => (line(points), 420),
        Marks::Bars(bars) => (self::bars(bars), 360),
        Marks::Named(rows) => (named(rows), 110 + 30 * rows.len()),
        Marks::Grid { columns, cells } => (grid(*columns, cells), 520),
    };
    let (x, y) = match &panel.marks {
        Marks::Named(_) => (axis(&panel.x), json!({ "autorange": "reversed", "automargin": true })),
        Marks::Grid { .. } => {
            let hidden = |extra: Value| {
                let mut axis = json!({ "visible": false });
                if let (Some(axis), Some(extra)) = (axis.as_object_mut(), extra.as_object()) {
                    axis.extend(extra.clone());
                }
                axis
            };
            (hidden(json!({})), hidden(json!({ "autorange": "reversed", "scaleanchor": "x" })))
        }
        // Bars show counts, so an axis of small counts has no ticks between whole numbers.
        Marks::Bars(_) if panel.y.to < 6.0 => {
            let mut y = axis(&panel.y);
            y["dtick"] = json!(1);
            (axis(&panel.x), y)
        }
        Marks::Line(_) | Marks::Bars(_) => (axis(&panel.x), axis(&panel.y)),
    };
    let alt = match &panel.marks {
        Marks::Named(rows) => {
            let rows: Vec<String> =
                rows.iter().map(|(name, value)| format!("{name} {}", rounded(*value))).collect();
            format!("{title}: {}.", rows.join(", "))
        }
        _ => format!(
            "{title}, from {} to {} ({}).",
            short(panel.x.from),
            short(panel.x.to),
            panel.x.label
        ),
    };
    let layout = json!({ "xaxis": x, "yaxis": y, "showlegend": false, "bargap": 0.3 });
    Figure { title, alt, note: panel.note.clone(), height, data: vec![data], layout }
}

fn axis(axis: &Axis) -> Value {
    let ends = if axis.log { [axis.from.log10(), axis.to.log10()] } else { [axis.from, axis.to] };
    // The units are those of the pictures: 1.5M, 20k, 0.25.
    let mut shown = json!({
        "title": { "text": axis.label }, "range": ends,
        "tickformat": tick_format(axis.from.abs().max(axis.to.abs())),
        "type": if axis.log { "log" } else { "linear" },
    });
    if axis.log {
        shown["dtick"] = axis.tick_decades().map_or(json!("D2"), |decades| json!(decades));
        shown["tickformat"] = json!("~s");
    }
    shown
}

/// The format of ticks up to `most`. Plotly would print 0.2M and 8000 by itself. Its units would be
/// thousandths below 1, so small numbers have none.
fn tick_format(most: f64) -> &'static str {
    if most >= 1000.0 { "~s" } else { "" }
}

fn line(points: &[(f64, f64)]) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "line": { "color": "var(--data)", "width": 1 },
        "x": points.iter().map(|p| p.0).collect::<Vec<_>>(),
        "y": points.iter().map(|p| p.1).collect::<Vec<_>>(),
        "hovertemplate": "%{x}, %{y}<extra></extra>",
    })
}

fn bars(bars: &[(f64, f64, f64)]) -> Value {
    let text: Vec<String> = bars
        .iter()
        .map(|b| format!("{} to {}: {}", rounded(b.0), rounded(b.1), rounded(b.2)))
        .collect();
    json!({
        "type": "bar", "marker": { "color": "var(--data)" }, "text": text, "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>", "offset": 0,
        "x": bars.iter().map(|b| b.0).collect::<Vec<_>>(),
        "width": bars.iter().map(|b| b.1 - b.0).collect::<Vec<_>>(),
        "y": bars.iter().map(|b| b.2).collect::<Vec<_>>(),
    })
}

fn named(rows: &[(String, f64)]) -> Value {
    let total: f64 = rows.iter().map(|row| row.1).sum();
    let text: Vec<String> = rows
        .iter()
        .map(|row| format!("{} ({:.1} %)", rounded(row.1), row.1 * 100.0 / total.max(1.0)))
        .collect();
    json!({
        "type": "bar", "orientation": "h", "marker": { "color": "var(--data)" },
        "x": rows.iter().map(|row| row.1).collect::<Vec<_>>(),
        "y": rows.iter().map(|row| plotly_text(&row.0)).collect::<Vec<_>>(),
        "text": text, "textposition": "outside", "cliponaxis": false,
        "hovertemplate": "%{y}: %{text}<extra></extra>",
    })
}

/// Squares instead of a heat map, which the bundled Plotly does not have.
fn grid(columns: usize, cells: &[Option<(String, f64)>]) -> Value {
    let shown: Vec<(usize, &(String, f64))> =
        cells.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?))).collect();
    let columns = columns.max(1);
    let most = shown.iter().map(|(_, cell)| cell.1).fold(0.0, f64::max);
    json!({
        "type": "scatter", "mode": "markers",
        "x": shown.iter().map(|(i, _)| i % columns).collect::<Vec<_>>(),
        "y": shown.iter().map(|(i, _)| i / columns).collect::<Vec<_>>(),
        "text": shown.iter().map(|(_, cell)| &cell.0).collect::<Vec<_>>(),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "symbol": "square", "size": 640 / columns.max(32),
            "color": shown.iter().map(|(_, cell)| cell.1).collect::<Vec<_>>(),
            // By the square root of the share, as in pictures: small shares are then visible.
            "colorscale": [[0, "var(--scale0)"], [0.25, "var(--scale1)"], [1, "var(--scale2)"]],
            "cmin": 0, "showscale": true,
            "colorbar": {
                "title": { "text": "samples" }, "thickness": 12, "tickformat": tick_format(most),
            },
        },
    })
}
