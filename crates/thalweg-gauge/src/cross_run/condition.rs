//! Conditions of `--fail-if`: `ratio > 1.05`, `low > 1.05 and normalised > 1`.
//!
//! ```text
//! condition := all ("or" all)*
//! all       := bar ("and" bar)*
//! bar       := field (">" | ">=" | "<" | "<=") number
//! ```

use std::fmt;

use super::{Against, ComparedRow};
use crate::results::ResultEntry;

/// A condition on results.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultCondition {
    /// Alternatives; one holds if all of its bars hold.
    any: Vec<Vec<Bar>>,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    field: ConditionField,
    sign: Relation,
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Relation {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// The fields of a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ConditionField {
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
const FIELDS: &[(&str, ConditionField)] = &[
    ("ratio", ConditionField::Ratio),
    ("low", ConditionField::Low),
    ("high", ConditionField::High),
    ("normalised", ConditionField::Normalised),
    ("fraction", ConditionField::Fraction),
    ("time_s", ConditionField::Time),
    ("cpu_ratio", ConditionField::Cpu),
    ("memory_ratio", ConditionField::Memory),
];

/// The value of a condition for one ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionVerdict {
    /// The condition holds.
    Holds,
    /// The condition does not hold.
    DoesNot,
    /// A field that decides the condition is unknown.
    Unknown,
}

impl ResultCondition {
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

    /// Evaluates the condition for one ratio of a row. `base` is the entry that the ratio divides
    /// by.
    pub fn check(
        &self,
        row: &ComparedRow,
        against: &Against,
        base: Option<&ResultEntry>,
    ) -> ConditionVerdict {
        let entry = row.cells.get(against.run).and_then(Option::as_ref);
        let one = |bar: &Bar| match value(bar.field, against, entry, base) {
            None => ConditionVerdict::Unknown,
            Some(v) => {
                let holds = match bar.sign {
                    Relation::More => v > bar.number,
                    Relation::AtLeast => v >= bar.number,
                    Relation::Less => v < bar.number,
                    Relation::AtMost => v <= bar.number,
                };
                if holds { ConditionVerdict::Holds } else { ConditionVerdict::DoesNot }
            }
        };
        // One condition that does not hold decides "and"; one that holds decides "or".
        let all = |bars: &Vec<Bar>| {
            let verdicts: Vec<ConditionVerdict> = bars.iter().map(one).collect();
            decide(&verdicts, ConditionVerdict::DoesNot, ConditionVerdict::Holds)
        };
        decide(
            &self.any.iter().map(all).collect::<Vec<_>>(),
            ConditionVerdict::Holds,
            ConditionVerdict::DoesNot,
        )
    }
}

fn decide(
    verdicts: &[ConditionVerdict],
    decisive: ConditionVerdict,
    otherwise: ConditionVerdict,
) -> ConditionVerdict {
    match verdicts {
        v if v.contains(&decisive) => decisive,
        v if v.contains(&ConditionVerdict::Unknown) => ConditionVerdict::Unknown,
        _ => otherwise,
    }
}

fn value(
    field: ConditionField,
    a: &Against,
    entry: Option<&ResultEntry>,
    base: Option<&ResultEntry>,
) -> Option<f64> {
    match field {
        ConditionField::Ratio => Some(a.ratio?.median),
        ConditionField::Low => Some(a.ratio?.interval?.0),
        ConditionField::High => Some(a.ratio?.interval?.1),
        ConditionField::Normalised => a.normalised,
        ConditionField::Fraction => entry?.fraction(),
        ConditionField::Time => Some(entry?.time_s?.median),
        ConditionField::Cpu => Some(entry?.cpu_s? / base?.cpu_s?),
        ConditionField::Memory => Some(entry?.anon_bytes? as f64 / base?.anon_bytes? as f64),
    }
    .filter(|v| v.is_finite())
}

impl fmt::Display for ResultCondition {
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
        Some(">") => Relation::More,
        Some(">=") => Relation::AtLeast,
        Some("<") => Relation::Less,
        Some("<=") => Relation::AtMost,
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
