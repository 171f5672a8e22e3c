//! The report for a terminal: plain text in aligned columns.

use super::bottleneck::bottlenecks;
use super::facts;
use super::headline::headline;
use crate::comparison::Comparison;

/// The text of a cell without a value.
pub(super) const NOTHING: &str = "-";

/// The comparison as plain text.
pub fn text(c: &Comparison) -> String {
    let mut out = format!("{}\n{}\n\n", c.session.name, headline(c).text());
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&format!("{alarm}\n\n"));
    }
    let header = facts::header(c);
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    out.push_str(&aligned(&header, &rows));
    let (header, rows) = bottlenecks(c);
    if !rows.is_empty() {
        let lines = aligned(&header, &rows).lines().map(str::to_owned).collect();
        out.push_str(&section("What holds them back", lines));
    }
    out.push_str(&section("Remarks", facts::remarks(c)));
    out
}

/// The machine and the files as plain text. The comparisons of one run share the machine.
pub fn machine(c: &Comparison) -> String {
    section(
        "Machine",
        facts::environment(c).into_iter().map(|(name, value)| format!("{name}: {value}")).collect(),
    )
}

pub(super) fn section(title: &str, lines: Vec<String>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String =
        lines.iter().map(|line| format!("  {}\n", line.replace('\n', "\n    "))).collect();
    format!("\n{title}\n{lines}")
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

/// Aligns all columns to the left, without trailing blanks, because many cells hold words.
pub(super) fn aligned(header: &[String], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let width = |i: usize| {
        all().filter_map(|r| r.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &w)| format!("{cell:<w$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let rule: Vec<String> = widths.iter().map(|&w| "-".repeat(w)).collect();
    let mut out = format!("{}\n{}\n", line(header), rule.join("  ").trim_end());
    for row in rows {
        out.push_str(&line(row));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_characters_not_bytes() {
        let rows = [vec!["µs".to_owned(), "1".to_owned()], vec!["long".to_owned(), "2".to_owned()]];
        assert_eq!(
            aligned(&["a".into(), "b".into()], &rows),
            "a     b\n----  -\nµs    1\nlong  2\n"
        );
    }
}
