//! Columns of text, and lines, that fit a terminal. Nothing is cut: what is too wide goes on in
//! further lines, and columns that do not fit stand in a further block below, with their labels.

use thalweg_io::text::{escaped_if, is_hidden};

/// The gap between two columns.
const GAP: &str = "  ";
/// The indent of a label's further lines.
const INDENT: usize = 2;
/// The least width of a column, and of a line beside its indent. A terminal may say that it has
/// none.
const LEAST: usize = 8;

/// Aligns all columns to the left, without trailing blanks, because many cells hold words. The
/// first `labels` columns say what a row is. `width`: that of the terminal in characters; `None`
/// for lines of any length.
pub(super) fn aligned(
    header: &[String],
    rows: &[Vec<String>],
    labels: usize,
    width: Option<usize>,
) -> String {
    let header: Vec<String> = header.iter().map(|cell| shown(cell)).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
    let columns: Vec<Column> = (0..header.len())
        .map(|i| {
            let cells = rows.iter().filter_map(|row| row.get(i));
            let cells = cells.map(|cell| length(cell)).max().unwrap_or(0);
            let header = header.get(i).map_or("", String::as_str);
            Column { index: i, is_label: i < labels, cells, width: cells.max(length(header)) }
        })
        .collect();
    let blocks = match width {
        Some(width) if total(&columns) > width => fitted(columns, &header, width),
        _ => vec![columns],
    };
    let blocks: Vec<String> = blocks.iter().map(|columns| block(columns, &header, &rows)).collect();
    blocks.join("\n")
}

/// A cell without what would break its line.
fn shown(cell: &str) -> String {
    escaped_if(cell, is_hidden).into_owned()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// A column of a table.
#[derive(Clone)]
struct Column {
    index: usize,
    is_label: bool,
    /// The width of the widest cell below the header.
    cells: usize,
    width: usize,
}

/// The width of columns beside each other.
fn total(columns: &[Column]) -> usize {
    let gaps = columns.len().saturating_sub(1) * GAP.len();
    columns.iter().map(|column| column.width).sum::<usize>() + gaps
}

/// Blocks of columns that fit a width. Headers go on in further lines, and cells only where they
/// are wider than the terminal leaves for them.
fn fitted(columns: Vec<Column>, header: &[String], width: usize) -> Vec<Vec<Column>> {
    let (mut labels, values): (Vec<_>, Vec<_>) = columns.into_iter().partition(|c| c.is_label);
    // Labels get two fifths; short ones leave their part to the others.
    let mut left = width * 2 / 5;
    let mut by_width: Vec<usize> = (0..labels.len()).collect();
    by_width.sort_by_key(|&i| labels.get(i).map(|label| label.width));
    for (done, i) in by_width.iter().enumerate() {
        let share = (left / (labels.len() - done)).max(LEAST);
        if let Some(label) = labels.get_mut(*i) {
            label.width = label.width.min(share);
            left = left.saturating_sub(label.width);
        }
    }
    let most = width.saturating_sub(total(&labels) + GAP.len()).max(LEAST);
    let mut blocks: Vec<Vec<Column>> = Vec::new();
    let mut open = labels.clone();
    for mut column in values {
        let words = header.get(column.index).map_or("", String::as_str).split(' ');
        let word = words.map(length).max().unwrap_or(0);
        column.width = column.cells.max(word).min(most);
        if open.len() > labels.len() && total(&open) + GAP.len() + column.width > width {
            blocks.push(std::mem::replace(&mut open, labels.clone()));
        }
        open.push(column);
    }
    blocks.push(open);
    blocks
}

/// The lines of some of the columns.
fn block(columns: &[Column], header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(columns).map(|(cell, c)| format!("{cell:<w$}", w = c.width));
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let lines = |row: &[String]| -> String {
        let cells: Vec<Vec<String>> = columns
            .iter()
            .map(|column| {
                let cell = row.get(column.index).map_or("", String::as_str);
                let indent = if column.is_label && column.width > LEAST { INDENT } else { 0 };
                pieces(cell, column.width, indent)
            })
            .collect();
        let most = cells.iter().map(Vec::len).max().unwrap_or(0);
        let piece = |i: usize| -> Vec<&str> {
            cells.iter().map(|cell| cell.get(i).map_or("", String::as_str)).collect()
        };
        (0..most).map(|i| line(&piece(i))).collect()
    };
    let rules: Vec<String> = columns.iter().map(|column| "-".repeat(column.width)).collect();
    let rule = line(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    lines(header) + &rule + &rows.iter().map(|row| lines(row)).collect::<String>()
}

/// A line that goes on in further lines where it is wider than the terminal. `indent` is that of
/// its first line, `further` that of the others.
pub fn wrapped(line: &str, indent: usize, further: usize, width: Option<usize>) -> String {
    let first = " ".repeat(indent);
    let Some(width) = width.filter(|&width| length(line) + indent > width) else {
        return format!("{first}{line}\n");
    };
    let width = width.max(further + LEAST);
    let all = pieces(&format!("{first}{line}"), width, further);
    all.iter().map(|piece| format!("{}\n", piece.trim_end())).collect()
}

/// A text in pieces of at most `width` characters: whole words where they fit. Further pieces begin
/// with `indent` blanks.
fn pieces(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    loop {
        let is_first = pieces.is_empty();
        let indent = if is_first { 0 } else { indent };
        let room = width.saturating_sub(indent).max(1);
        let blanks = rest.iter().take_while(|c| **c == ' ').count();
        // The blanks that a line begins with are its indent, and no place for a break.
        let ends = rest.iter().take(room + 1).rposition(|c| *c == ' ').filter(|&end| end > blanks);
        let end = if rest.len() <= room { rest.len() } else { ends.unwrap_or(room) };
        let after = rest.split_off(end);
        pieces.push(" ".repeat(indent) + &rest.into_iter().collect::<String>());
        // The blank at the break is not shown.
        rest = after.strip_prefix(&[' ']).map(<[char]>::to_vec).unwrap_or(after);
        if rest.is_empty() {
            return pieces;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
    }

    fn widest(text: &str) -> usize {
        text.lines().map(length).max().unwrap_or(0)
    }

    #[test]
    fn columns_align_by_characters_not_bytes() {
        let rows = table(&[&["µs", "1"], &["long", "2"]]);
        assert_eq!(
            aligned(&["a".into(), "b".into()], &rows, 1, None),
            "a     b\n----  -\nµs    1\nlong  2\n"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_further_lines_and_blocks() {
        let header = ["arm", "wall time of it", "CPU s"].map(str::to_owned);
        let rows = table(&[&["gzip -dc reads.gz", "1.2 s", "3.45"]]);
        let expected = [
            "arm           wall   CPU",
            "              time   s",
            "              of it",
            "------------  -----  ----",
            "gzip -dc      1.2 s  3.45",
            "  reads.gz",
        ];
        let text = aligned(&header, &rows, 1, Some(30));
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let narrow = aligned(&header, &rows, 1, Some(20));
        assert_eq!(narrow.matches("gzip").count(), 2, "labels of both blocks: {narrow}");
        assert!(widest(&narrow) <= 20, "{narrow}");
    }

    #[test]
    fn labels_stay_different_and_lines_fit() {
        let long = "x".repeat(100);
        let header = ["experiment", "arm", "a time", "another time"].map(str::to_owned);
        let cell = "1.234 s [1.2 s..1.3 s]";
        let rows = table(&[
            &[&long, &format!("{long}1"), cell, cell],
            &[&long, &format!("{long}2"), cell, cell],
            &["a\nb", "µ 3", cell, "-"],
        ]);
        for width in [1, 8, 20, 40, 60, 80, 100, 200, 1000] {
            let text = aligned(&header, &rows, 2, Some(width));
            assert!(widest(&text) <= width.max(30), "{width}: {text}");
            let all: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            assert!(all.matches('x').count() >= 400, "{width}: {text}");
            assert!(text.contains("a\\nb"), "{width}: {text}");
        }
    }

    #[test]
    fn lines_break_at_words() {
        assert_eq!(wrapped("one two three", 2, 4, Some(10)), "  one two\n    three\n");
        assert_eq!(wrapped("one two three", 2, 4, None), "  one two three\n");
        assert_eq!(wrapped("aaaaaaaaaaaaaaaa", 0, 2, Some(10)), "aaaaaaaaaa\n  aaaaaa\n");
    }
}
