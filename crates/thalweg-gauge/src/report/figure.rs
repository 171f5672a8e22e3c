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
pub(super) use ratios::{NoiseBand, RatioRow, of_comparison, ratios};
pub(super) use scaling::scaling;
pub(super) use stages::{cpu_time, waits};
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

/// The least height of a row with a name to its left, and the height of a line of the name, in CSS
/// pixels.
const ROW: usize = 46;
const LINE: usize = 16;
/// The height of the axis with its title and of a legend of one line, in CSS pixels.
const FRAME: usize = 104;

/// The height of a figure with these rows. A row has room for its whole name.
fn height(names: &[String]) -> usize {
    let lines = labels(names).iter().map(|label| label.matches("<br>").count() + 1).max();
    FRAME + (LINE * lines.unwrap_or(1) + 12).max(ROW) * names.len().max(1)
}

/// The number of colours for series in the style sheet.
const COLOURS: usize = 7;

/// The colour of series number `i`. Colour-blind readers can distinguish these colours, which
/// repeat after the last one. They mean nothing but their name in the legend.
fn colour(i: usize) -> String {
    format!("var(--c{})", i % COLOURS)
}

/// The pattern of a bar: dots if `dotted`, so that arms also differ in greyscale print.
fn pattern(dotted: bool) -> Value {
    let shape = if dotted { "." } else { "" };
    json!({
        "shape": shape, "fillmode": "overlay", "fgcolor": "var(--bg)", "size": 6,
        "solidity": 0.25,
    })
}

/// The marker of bars that show what an arm does not tell: hatched, and nothing else is.
fn untold() -> Value {
    json!({
        "color": "var(--untold)", "line": { "color": "var(--untold)", "width": 1 },
        "pattern": {
            "shape": "/", "fillmode": "replace", "fgcolor": "var(--untold)", "size": 7,
            "bgcolor": "var(--bg)", "solidity": 0.3,
        },
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
        "marker": { "color": colour(i), "pattern": pattern(i % 2 == 1) },
    })
}

/// Escapes a text for Plotly, which interprets a few HTML tags and entities in all texts. Names may
/// contain any characters.
pub fn plotly_text(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The largest width of a line of a name beside an axis, in characters.
const NAME: usize = 22;

/// The most lines of a name. Longer names lose their middle, because names of arms often begin
/// alike or end alike.
const LINES: usize = 6;

/// The labels of rows with these names. Each is broken into lines, and no two are alike.
fn labels(names: &[String]) -> Vec<String> {
    let wrapped: Vec<String> = names.iter().map(|name| wrapped(name)).collect();
    let label = |(i, text): (usize, &String)| {
        let before = wrapped.iter().take(i).filter(|other| *other == text).count();
        if before > 0 { format!("{text}<br>({})", before + 1) } else { text.clone() }
    };
    wrapped.iter().enumerate().map(label).collect()
}

/// A name broken into lines that fit beside an axis.
fn wrapped(name: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < NAME => {
                line.push(' ');
                line.push_str(word);
            }
            _ => {
                let chars: Vec<char> = word.chars().collect();
                lines.extend(chars.chunks(NAME + 6).map(|part| part.iter().collect::<String>()));
            }
        }
    }
    if lines.len() > LINES {
        let tail = lines.split_off(lines.len() - LINES / 2);
        lines.truncate(LINES - tail.len() - 1);
        lines.push("…".into());
        lines.extend(tail);
    }
    lines.iter().map(|line| plotly_text(line)).collect::<Vec<_>>().join("<br>")
}

/// The vertical axis of a figure with a name for each row. The first row is on top.
fn rows_axis(names: &[String]) -> Value {
    let at: Vec<usize> = (0..names.len()).collect();
    json!({
        "tickmode": "array", "tickvals": at, "ticktext": labels(names),
        "range": [names.len() as f64 - 0.5, -0.5],
        "showgrid": false, "zeroline": false, "fixedrange": true, "ticks": "",
        "tickfont": { "size": 12 },
    })
}

/// A horizontal axis of seconds from zero, above the rows.
fn seconds_axis(title: &str) -> Value {
    json!({
        "title": { "text": title }, "side": "top", "rangemode": "tozero", "ticksuffix": " s",
        "tickformat": "~g",
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
        assert_eq!(wrapped(""), "");
    }

    #[test]
    fn no_two_labels_are_alike() {
        let long = "data: POD5 by id, 1 % of all reads, in runs of neighbours, cold, from the disc";
        let mut names: Vec<String> =
            ["pod5 C mmap", "pod5 C io"].map(|arm| format!("{long}: {arm}")).to_vec();
        names.extend(["x".repeat(99), "x".repeat(98), "x ".repeat(900), "x ".repeat(901)]);
        names.extend(["the same".to_owned(), "the same".to_owned()]);
        let shown = labels(&names);
        let different: std::collections::BTreeSet<&String> = shown.iter().collect();
        assert_eq!(different.len(), names.len(), "{shown:?}");
        assert!(shown.iter().all(|label| label.matches("<br>").count() <= LINES));
        let widest = |label: &String| label.split("<br>").map(|l| l.chars().count()).max();
        assert!(shown.iter().all(|label| widest(label) <= Some(NAME + 6)), "{shown:?}");
        assert!(shown[0].ends_with("mmap") && !shown[0].contains('…'), "{}", shown[0]);
        assert!(height(&names) > FRAME + names.len() * LINE * LINES, "labels overlap");
    }

    /// The variables that name colours in `css`, with their values.
    fn colours(css: &str) -> Vec<(String, String)> {
        let parts = css.split(['{', ';', '}']).filter_map(|part| part.trim().split_once(": "));
        let named = parts.filter(|(name, value)| name.starts_with("--") && value.starts_with('#'));
        named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn every_colour_has_one_meaning() {
        let style = include_str!("style.css");
        let (light, rest) = style.split_once("@media screen").unwrap_or_default();
        let (dark, _) = rest.split_once("* {").unwrap_or_default();
        let names = |css| colours(css).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(light), names(dark), "a theme lacks a colour");
        for theme in [light, dark] {
            let mut values: Vec<_> = colours(theme).into_iter().map(|(_, value)| value).collect();
            assert!(values.len() > 25, "{values:?}");
            values.sort();
            let all = values.len();
            values.dedup();
            assert_eq!(values.len(), all, "two meanings have the same colour: {values:?}");
        }
    }
}
