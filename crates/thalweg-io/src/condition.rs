//! Conditions on the rows of a table: `samples >= 5000 and end_reason == signal_positive`.
//!
//! ```text
//! condition := all ("or" all)*
//! all       := not ("and" not)*
//! not       := "not" not | "(" condition ")" | test
//! test      := column ("==" | "!=" | "<" | "<=" | ">" | ">=") value
//!            | column ["not"] "in" "(" value ("," value)* ")"
//!            | column "is" ["not"] "missing"
//! value     := a word, a number, or text in quotation marks of either kind
//! ```
//!
//! A comparison with a missing value is neither true nor false, and neither is its negation by
//! `not`. Such rows are left out; `is missing` finds them. If text is compared with a number by
//! `<`, `<=`, `>` or `>=`, the text is parsed as a number, because SLOW5 files keep channel numbers
//! as text.
//!
//! ```
//! use arrow_schema::{DataType, Field, Schema};
//! use thalweg_io::condition::Condition;
//!
//! let schema = Schema::new(vec![Field::new("samples", DataType::UInt64, false)]);
//! assert!(Condition::parse("samples >= 5000")?.bind(&schema).is_ok());
//! assert!(Condition::parse("samples >= many")?.bind(&schema).is_err());
//! # Ok::<(), thalweg_io::Error>(())
//! ```

mod bind;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::error::{Error, Result};

pub use bind::{Bound, Row};

/// A parsed condition that is not bound to a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    expr: Expr,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Expr {
    Any(Vec<Expr>),
    All(Vec<Expr>),
    Not(Box<Expr>),
    Test(Test),
}

/// One test of one column.
#[derive(Debug, Clone, PartialEq)]
struct Test {
    column: Word,
    kind: ConditionKind,
}

#[derive(Debug, Clone, PartialEq)]
enum ConditionKind {
    Compare(Sign, Word),
    OneOf(Vec<Word>),
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A name or value, and its byte offset in the condition.
#[derive(Debug, Clone, PartialEq)]
struct Word {
    at: usize,
    text: String,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// [`Error::Usage`], which names the position in the text (in characters, from 1), what was
    /// found there and what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self { expr: parse::parse(text)?, text: text.to_owned() })
    }

    /// The names of the columns that the condition tests.
    pub fn columns(&self) -> BTreeSet<&str> {
        fn gather<'a>(expr: &'a Expr, names: &mut BTreeSet<&'a str>) {
            match expr {
                Expr::Any(parts) | Expr::All(parts) => {
                    parts.iter().for_each(|part| gather(part, names));
                }
                Expr::Not(inner) => gather(inner, names),
                Expr::Test(test) => {
                    names.insert(&test.column.text);
                }
            }
        }
        let mut names = BTreeSet::new();
        gather(&self.expr, &mut names);
        names
    }
}

/// The error about byte `at` of the condition `text`.
fn wrong(text: &str, at: usize, found: &str, expected: &str) -> Error {
    let column = text.get(..at).unwrap_or(text).chars().count() + 1;
    Error::Usage(
        format!("condition {text:?}, column {column}: found {found}, expected {expected}").into(),
    )
}
