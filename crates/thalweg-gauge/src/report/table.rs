//! The report for a terminal: plain text in aligned columns.

use super::columns::{aligned, wrapped};
use super::facts;
use crate::comparison::Comparison;

/// The comparison as plain text. `width`: that of the terminal in characters; `None` for lines of
/// any length.
pub fn text(c: &Comparison, width: Option<usize>) -> String {
    let mut out = wrapped(&c.session.name, 0, 2, width) + "\n";
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&(wrapped(&alarm, 0, 2, width) + "\n"));
    }
    let header = facts::header(c);
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    out.push_str(&aligned(&header, &rows, 1, width));
    out.push_str(&section("What holds them back", facts::verdicts(c), width));
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
