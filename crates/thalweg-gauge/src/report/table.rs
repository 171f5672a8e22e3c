//! The report for a terminal: plain text in aligned columns.

use super::bottleneck::bottlenecks;
use super::columns::{aligned, wrapped};
use super::facts;
use super::headline::headline;
use crate::comparison::Comparison;

/// The text of a cell without a value.
pub(super) const NOTHING: &str = "-";

/// The comparison as plain text. `width`: that of the terminal in characters; `None` for lines of
/// any length.
pub fn text(c: &Comparison, width: Option<usize>) -> String {
    let mut out = wrapped(&c.session.name, 0, 2, width);
    for line in headline(c).text().lines() {
        out.push_str(&wrapped(line, 0, 2, width));
    }
    out.push('\n');
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&(wrapped(&alarm, 0, 2, width) + "\n"));
    }
    let header = facts::header(c);
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    out.push_str(&aligned(&header, &rows, 1, width));
    let (header, rows) = bottlenecks(c);
    if !rows.is_empty() {
        // The section indents its lines.
        let width = width.map(|width| width.saturating_sub(2));
        let lines = aligned(&header, &rows, 1, width);
        let lines: String = lines.lines().map(|line| format!("  {line}\n")).collect();
        out.push_str(&format!("\nWhat holds them back\n{lines}"));
    }
    out.push_str(&section("Remarks", facts::remarks(c), width));
    out
}

/// The machine and the files as plain text. The comparisons of one run share the machine.
/// `width`: as of [`text`].
pub fn machine(c: &Comparison, width: Option<usize>) -> String {
    let facts = facts::environment(c);
    let lines = facts.into_iter().map(|(name, value)| format!("{name}: {value}"));
    section("Machine", lines.collect(), width)
}

pub(super) fn section(title: &str, lines: Vec<String>, width: Option<usize>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let item = |item: &String| -> String {
        let indents = [2].into_iter().chain(std::iter::repeat(4));
        item.lines().zip(indents).map(|(line, indent)| wrapped(line, indent, 4, width)).collect()
    };
    format!("\n{}{}", wrapped(title, 0, 2, width), lines.iter().map(item).collect::<String>())
}

/// Removes the columns that are empty in every row.
pub(super) fn without_empty(
    header: Vec<String>,
    rows: Vec<Vec<String>>,
) -> (Vec<String>, Vec<Vec<String>>) {
    let says = |i: usize| rows.iter().any(|r| r.get(i).is_some_and(|cell| cell != NOTHING));
    let kept: Vec<usize> = (0..header.len()).filter(|&i| says(i)).collect();
    let pick = |cells: &Vec<String>| {
        kept.iter().filter_map(|&i| cells.get(i).cloned()).collect::<Vec<_>>()
    };
    (pick(&header), rows.iter().map(pick).collect())
}
