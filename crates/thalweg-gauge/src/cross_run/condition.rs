//! The little language of `--fail-if`: `ratio > 1.05`, `low > 1.05 and normalised > 1`.
//!
//! ```text
//! condition := all ("or" all)*
//! all       := bar ("and" bar)*
//! bar       := field (">" | ">=" | "<" | "<=") number
//! ```

use std::fmt;

use super::{Against, Row};
use crate::results::Entry;

/// A bar that results may miss.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Any of these, each of which is all of some bars.
    any: Vec<Vec<Bar>>,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    field: Field,
    sign: Sign,
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Ratio,
    Low,
    High,
    Normalised,
    Fraction,
    Time,
    Cpu,
    Memory,
}

/// Names, fields, meanings.
const FIELDS: &[(&str, Field)] = &[
    ("ratio", Field::Ratio),
    ("low", Field::Low),
    ("high", Field::High),
    ("normalised", Field::Normalised),
    ("fraction", Field::Fraction),
    ("time_s", Field::Time),
    ("cpu_ratio", Field::Cpu),
    ("memory_ratio", Field::Memory),
];

/// What a condition says of one ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds: the bar was missed.
    Holds,
    /// It does not.
    DoesNot,
    /// A field that would decide it is not known.
    Unknown,
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// A message that names the column (from 1), what was found and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = words(text);
        let mut at = 0;
        let mut any = vec![Vec::new()];
        loop {
            let bar = bar(&words, &mut at, text)?;
            if let Some(all) = any.last_mut() {
                all.push(bar);
            }
            match words.get(at) {
                None => return Ok(Self { any, text: text.to_owned() }),
                Some((_, "and")) => {}
                Some((_, "or")) => any.push(Vec::new()),
                other => return Err(wrong(text, other, "\"and\", \"or\" or the end")),
            }
            at += 1;
        }
    }

    /// Whether it holds for one ratio of a row. `base` is the entry that stands for 1.
    pub fn check(&self, row: &Row, against: &Against, base: Option<&Entry>) -> Verdict {
        let entry = row.cells.get(against.run).and_then(Option::as_ref);
        let one = |bar: &Bar| match value(bar.field, against, entry, base) {
            None => Verdict::Unknown,
            Some(v) => {
                let holds = match bar.sign {
                    Sign::More => v > bar.number,
                    Sign::AtLeast => v >= bar.number,
                    Sign::Less => v < bar.number,
                    Sign::AtMost => v <= bar.number,
                };
                if holds { Verdict::Holds } else { Verdict::DoesNot }
            }
        };
        // "and" is decided by one that does not hold, "or" by one that does.
        let all = |bars: &Vec<Bar>| {
            let verdicts: Vec<Verdict> = bars.iter().map(one).collect();
            decide(&verdicts, Verdict::DoesNot, Verdict::Holds)
        };
        decide(&self.any.iter().map(all).collect::<Vec<_>>(), Verdict::Holds, Verdict::DoesNot)
    }
}

fn decide(verdicts: &[Verdict], decisive: Verdict, otherwise: Verdict) -> Verdict {
    match verdicts {
        v if v.contains(&decisive) => decisive,
        v if v.contains(&Verdict::Unknown) => Verdict::Unknown,
        _ => otherwise,
    }
}

fn value(field: Field, a: &Against, entry: Option<&Entry>, base: Option<&Entry>) -> Option<f64> {
    match field {
        Field::Ratio => Some(a.ratio?.median),
        Field::Low => Some(a.ratio?.interval?.0),
        Field::High => Some(a.ratio?.interval?.1),
        Field::Normalised => a.normalised,
        Field::Fraction => entry?.fraction(),
        Field::Time => Some(entry?.time_s?.median),
        Field::Cpu => Some(entry?.cpu_s? / base?.cpu_s?),
        Field::Memory => Some(entry?.anon_bytes? as f64 / base?.anon_bytes? as f64),
    }
    .filter(|v| v.is_finite())
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Words and signs, with their columns from 1.
fn words(text: &str) -> Vec<(usize, &str)> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        '<' | '>' | '=' | '!' => 1,
        _ => 2,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if kind(c) != last {
            if let Some(word) = text.get(start..at).filter(|_| last != 0) {
                let first = text.get(..start).map_or(0, |t| t.chars().count()) + 1;
                words.push((first, word));
            }
            start = at;
            last = kind(c);
        }
    }
    words
}

fn bar(words: &[(usize, &str)], at: &mut usize, text: &str) -> Result<Bar, String> {
    let mut next = || {
        *at += 1;
        words.get(*at - 1)
    };
    let known: Vec<&str> = FIELDS.iter().map(|f| f.0).collect();
    let word = next();
    let field = word.and_then(|w| FIELDS.iter().find(|f| f.0 == w.1)).map(|f| f.1);
    let field = field.ok_or_else(|| wrong(text, word, &format!("one of {}", known.join(", "))))?;
    let word = next();
    let sign = match word.map(|w| w.1) {
        Some(">") => Sign::More,
        Some(">=") => Sign::AtLeast,
        Some("<") => Sign::Less,
        Some("<=") => Sign::AtMost,
        _ => return Err(wrong(text, word, "one of > >= < <=")),
    };
    let word = next();
    let number = word.and_then(|w| w.1.parse().ok()).filter(|n: &f64| n.is_finite());
    Ok(Bar { field, sign, number: number.ok_or_else(|| wrong(text, word, "a number"))? })
}

fn wrong(text: &str, found: Option<&(usize, &str)>, expected: &str) -> String {
    let (column, what) = match found {
        Some((column, word)) => (*column, format!("{word:?}")),
        None => (text.chars().count() + 1, "the end".into()),
    };
    format!("column {column}: found {what}, expected {expected}")
}
