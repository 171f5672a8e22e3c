//! The report as Markdown, for a README or a pull request.

use super::facts;
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
    let header = facts::header(c);
    out.push_str(&row(&header));
    out.push_str(&format!("|{}\n", "---|".repeat(header.len())));
    for cells in facts::rows(c) {
        out.push_str(&row(&cells));
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}\n\n"));
            for line in lines {
                out.push_str(&format!("- {}\n", escape(&line)));
            }
        }
    };
    list("What holds them back:", facts::verdicts(c));
    list("Remarks:", facts::remarks(c));
    list(
        "Machine:",
        facts::environment(c).into_iter().map(|(name, value)| format!("{name}: {value}")).collect(),
    );
    list("Method:", facts::method(c));
    out
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
