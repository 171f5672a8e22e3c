//! Figures of the HTML page: JSON for Plotly, with title, description and note.
//!
//! Colours are names of CSS variables (`var(--c0)`), which the script of the page replaces. So the
//! figure itself is the same on a light screen, a dark screen and paper.

mod fractions;
mod probe;
mod ratios;
mod scaling;
mod stages;
mod steps;
mod table;
mod times;

use serde_json::{Value, json};

use crate::results::ResultEntry;

pub(super) use fractions::fractions;
pub(super) use probe::probe;
pub(super) use ratios::{Interval, of_comparison, ratios};
pub(super) use scaling::scaling;
pub(super) use stages::{busy, waits};
pub(super) use steps::steps;
pub(super) use table::table;
pub(super) use times::times;

/// One figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The title above the figure.
    pub title: String,
    /// A description for readers who do not see the figure.
    pub alt: String,
    /// How to read the figure.
    pub note: String,
    /// The height in CSS pixels.
    pub height: usize,
    /// Plotly's traces.
    pub data: Vec<Value>,
    /// Plotly's layout. The script of the page adds the settings that all figures share.
    pub layout: Value,
}

/// The height of a row with a name to its left, in CSS pixels.
const ROW: usize = 50;
/// The height of the axis with its title and of a legend of one line, in CSS pixels.
const FRAME: usize = 96;

/// The height of a figure with this many rows.
fn height(rows: usize) -> usize {
    FRAME + ROW * rows.max(1)
}

/// The number of colours in the style sheet.
const COLOURS: usize = 7;

/// The `i`-th colour. Colour-blind readers can distinguish the colours, which repeat after the last
/// one.
fn colour(i: usize) -> String {
    format!("var(--c{})", i % COLOURS)
}

/// The pattern of a bar: stripes if `striped`, so that arms also differ in greyscale print.
fn hatch(striped: bool) -> Value {
    let shape = if striped { "/" } else { "" };
    json!({
        "shape": shape, "fillmode": "overlay", "fgcolor": "var(--bg)", "size": 9,
        "solidity": 0.25,
    })
}

/// Groups entries by a key. Groups are in the order of their first entries.
fn grouped<'a>(
    entries: impl Iterator<Item = &'a ResultEntry>,
    key: impl Fn(&ResultEntry) -> String,
) -> Vec<(String, Vec<&'a ResultEntry>)> {
    let mut groups: Vec<(String, Vec<&ResultEntry>)> = Vec::new();
    for e in entries {
        let key = key(e);
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(e),
            None => groups.push((key, vec![e])),
        }
    }
    groups
}

/// The offset of bar number `i` from the middle of a row with `lanes` bars side by side, and its
/// width.
fn lane(i: usize, lanes: usize) -> (f64, f64) {
    let band = 0.8 / lanes as f64;
    ((i as f64 - (lanes as f64 - 1.0) / 2.0) * band, band * 0.9)
}

/// The bars in lane `i` of `lanes`. Each bar has its row, its length and its hover text.
fn bars(name: &str, i: usize, lanes: usize, bars: &[(usize, f64, String)]) -> Value {
    let (offset, width) = lane(i, lanes);
    json!({
        "type": "bar", "orientation": "h", "name": plotly_text(name), "width": width,
        "x": bars.iter().map(|b| b.1).collect::<Vec<_>>(),
        "y": bars.iter().map(|b| b.0 as f64 + offset).collect::<Vec<_>>(),
        "text": bars.iter().map(|b| b.2.as_str()).collect::<Vec<_>>(), "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": { "color": colour(i), "pattern": hatch(i % 2 == 1) },
    })
}

/// Escapes a text for Plotly, which interprets a few HTML tags and entities in all texts. Names may
/// contain any characters.
pub fn plotly_text(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The largest width of a line of a name beside an axis, in characters.
const NAME: usize = 22;

/// The number of lines of a name that fit in a row.
const LINES: usize = 3;

/// A name broken into lines that fit beside an axis.
fn wrapped(name: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < NAME => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let cut = |line: &String| match line.char_indices().nth(NAME + 6) {
        Some((at, _)) => plotly_text(line.get(..at).unwrap_or(line)) + "…",
        None => plotly_text(line),
    };
    let mut shown: Vec<String> = lines.iter().take(LINES).map(cut).collect();
    if let Some(last) = shown.last_mut().filter(|_| lines.len() > LINES) {
        last.push('…');
    }
    shown.join("<br>")
}

/// The vertical axis of a figure with a name for each row. The first row is on top.
fn rows_axis(names: &[String]) -> Value {
    let at: Vec<usize> = (0..names.len()).collect();
    let text: Vec<String> = names.iter().map(|n| wrapped(n)).collect();
    json!({
        "tickmode": "array", "tickvals": at, "ticktext": text,
        "range": [names.len() as f64 - 0.5, -0.5],
        "showgrid": false, "zeroline": false, "fixedrange": true, "ticks": "",
        "tickfont": { "size": 12 },
    })
}

/// A horizontal axis of seconds from zero.
fn seconds_axis(title: &str) -> Value {
    json!({
        "title": { "text": title }, "rangemode": "tozero", "ticksuffix": " s", "tickformat": "~g",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wrap_and_cannot_be_markup() {
        assert_eq!(wrapped("thalweg"), "thalweg");
        assert_eq!(
            wrapped("slow5lib fork-join with many threads"),
            "slow5lib fork-join<br>with many threads"
        );
        assert_eq!(wrapped("a<b> & c"), "a&lt;b&gt; &amp; c");
        assert!(wrapped(&"x".repeat(99)).ends_with('…'));
        assert_eq!(wrapped(""), "");
    }
}
