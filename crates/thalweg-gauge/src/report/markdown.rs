//! The report as Markdown, for a README or a pull request.

use super::bottleneck::bottlenecks;
use super::facts;
use super::headline::headline;
use crate::comparison::Comparison;

/// The first line of a file of reports, which Markdown does not show. It says who made the file.
const MARK: &str = "<!-- made by thalweg bench -->\n";

/// A file with the reports of comparisons.
pub fn markdown_file(comparisons: &[Comparison]) -> String {
    let reports: Vec<String> = comparisons.iter().map(markdown).collect();
    format!("{MARK}{}", reports.join("\n"))
}

/// Whether a file that begins so is one of [`markdown_file`].
pub fn is_markdown_file(head: &[u8]) -> bool {
    head.starts_with(MARK.as_bytes())
}

/// The comparison as Markdown.
pub fn markdown(c: &Comparison) -> String {
    let mut out = format!("## {}\n\n", escape(&c.session.name));
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&format!("**{}**\n\n", escape(&alarm)));
    }
    out.push_str(&format!("{}\n\n", escape(&headline(c).text())));
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    out.push_str(&table(&facts::header(c), &rows));
    let (header, rows) = bottlenecks(c);
    if !rows.is_empty() {
        out.push_str(&format!("\nWhat holds them back:\n\n{}", table(&header, &rows)));
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}\n\n"));
            for line in lines {
                out.push_str(&format!("- {}\n", escape(&line)));
            }
        }
    };
    list("Remarks:", facts::remarks(c));
    list(
        "Machine:",
        facts::environment(c).into_iter().map(|(name, value)| format!("{name}: {value}")).collect(),
    );
    list("Method:", facts::method(c));
    out
}

fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    let rows: String = rows.iter().map(|cells| row(cells)).collect();
    format!("{}{rule}{rows}", row(header))
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Escapes a name for a cell: a pipe would end the cell, and a line break would end the row.
fn escape(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_reports_is_told_from_other_markdown() {
        assert!(is_markdown_file(markdown_file(&[]).as_bytes()));
        assert!(!is_markdown_file(b"## one\n\n| arm | caches |\n"));
    }

    #[test]
    fn cells_can_hold_anything() {
        assert_eq!(row(&["a|b".into(), "c\nd".into()]), "| a\\|b | c d |\n");
    }
}
