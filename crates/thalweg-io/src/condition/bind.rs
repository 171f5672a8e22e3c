//! A condition bound to the columns of one table. Types are checked once; then the condition is
//! evaluated batch by batch.

use std::cmp::Ordering;
use std::collections::HashSet;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::{Condition, ConditionKind, Expr, Sign, Test, Word, wrong};
use crate::cells::{Number, TYPE_KEY, numbers, texts};
use crate::error::Result;

/// A condition bound to the columns of a schema.
#[derive(Debug, Clone)]
pub struct Bound(Check);

#[derive(Debug, Clone)]
enum Check {
    Any(Vec<Check>),
    All(Vec<Check>),
    Not(Box<Check>),
    Number(usize, Sign, Number),
    Text(usize, Sign, String),
    /// Any of these numbers.
    Numbers(usize, Vec<Number>),
    /// Any of these texts.
    Texts(usize, HashSet<String>),
    Missing(usize),
}

impl Sign {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// The kind of values in a column, as far as conditions distinguish them.
enum Class {
    Number { single: bool },
    Text,
    Labels(Vec<String>),
    Other,
}

fn class(field: &Field) -> Class {
    match field.data_type() {
        DataType::Float32 => Class::Number { single: true },
        kind if kind.is_integer() || *kind == DataType::Float64 => Class::Number { single: false },
        DataType::Utf8 => Class::Text,
        DataType::Dictionary(_, _) => {
            let kind = field.metadata().get(TYPE_KEY).map_or("", String::as_str);
            match kind.strip_prefix("enum{").and_then(|kind| kind.strip_suffix('}')) {
                Some(labels) => Class::Labels(labels.split(',').map(str::to_owned).collect()),
                None => Class::Text,
            }
        }
        _ => Class::Other,
    }
}

impl Condition {
    /// Looks up the columns in `schema` and checks the types of the values.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a column that does not exist or holds lists or
    /// bytes, a value of the wrong type, or a label that the enumeration does not have.
    pub fn bind(&self, schema: &Schema) -> Result<Bound> {
        self.check(&self.expr, schema).map(Bound)
    }

    fn check(&self, expr: &Expr, schema: &Schema) -> Result<Check> {
        let each = |parts: &[Expr]| {
            parts.iter().map(|part| self.check(part, schema)).collect::<Result<Vec<_>>>()
        };
        Ok(match expr {
            Expr::Any(parts) => Check::Any(each(parts)?),
            Expr::All(parts) => Check::All(each(parts)?),
            Expr::Not(inner) => Check::Not(Box::new(self.check(inner, schema)?)),
            Expr::Test(test) => self.test(test, schema)?,
        })
    }

    fn test(&self, test: &Test, schema: &Schema) -> Result<Check> {
        let Word { at, text: name } = &test.column;
        let Some((column, field)) = schema.column_with_name(name) else {
            let names: Vec<&str> =
                schema.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(wrong(
                &self.text,
                *at,
                &format!("{name:?}"),
                &format!("one of {}", names.join(", ")),
            ));
        };
        let class = class(field);
        Ok(match &test.kind {
            ConditionKind::Missing => Check::Missing(column),
            ConditionKind::Compare(sign, value) => match &class {
                Class::Number { single } => {
                    Check::Number(column, *sign, self.number(value, *single)?)
                }
                Class::Text => match Number::parse(&value.text).filter(|_| *sign != Sign::Equal) {
                    Some(number) => Check::Number(column, *sign, number),
                    None => Check::Text(column, *sign, value.text.clone()),
                },
                Class::Labels(labels) => {
                    if *sign != Sign::Equal {
                        let expected = "\"==\", \"!=\" or \"in\": labels have no order";
                        return Err(wrong(
                            &self.text,
                            *at,
                            &format!("the enumeration {name:?}"),
                            expected,
                        ));
                    }
                    Check::Text(column, *sign, self.label(value, labels)?)
                }
                Class::Other => return Err(self.no_scalar(*at, field)),
            },
            ConditionKind::OneOf(values) => match &class {
                Class::Number { single } => Check::Numbers(
                    column,
                    values.iter().map(|v| self.number(v, *single)).collect::<Result<_>>()?,
                ),
                Class::Text => {
                    Check::Texts(column, values.iter().map(|v| v.text.clone()).collect())
                }
                Class::Labels(labels) => Check::Texts(
                    column,
                    values.iter().map(|v| self.label(v, labels)).collect::<Result<_>>()?,
                ),
                Class::Other => return Err(self.no_scalar(*at, field)),
            },
        })
    }

    fn number(&self, value: &Word, single: bool) -> Result<Number> {
        let number = Number::parse(&value.text);
        let number = number
            .ok_or_else(|| wrong(&self.text, value.at, &format!("{:?}", value.text), "a number"))?;
        Ok(if single { number.single() } else { number })
    }

    fn label(&self, value: &Word, labels: &[String]) -> Result<String> {
        if labels.contains(&value.text) {
            return Ok(value.text.clone());
        }
        let expected = format!("one of {}", labels.join(", "));
        Err(wrong(&self.text, value.at, &format!("{:?}", value.text), &expected))
    }

    fn no_scalar(&self, at: usize, field: &Field) -> crate::Error {
        let found = format!("the column {:?} of type {}", field.name(), field.data_type());
        wrong(&self.text, at, &found, "a column of numbers, text or labels, or \"is missing\"")
    }
}

impl Bound {
    /// For each row, whether the condition holds; null if that depends on a missing value. The
    /// batch must have the columns that the condition was bound to.
    pub fn holds(&self, batch: &RecordBatch) -> BooleanArray {
        let evaluator = evaluator(&self.0, batch);
        (0..batch.num_rows()).map(evaluator).collect()
    }
}

/// A row that is in no batch: its cells by the places of the columns in the schema. `None` is a
/// missing value.
pub trait Row {
    /// The number in a column of numbers, or the text of one parsed as a number.
    fn number(&self, column: usize) -> Option<Number>;
    /// The text in a column of text.
    fn text(&self, column: usize) -> Option<&str>;
    /// Whether the value is missing.
    fn is_missing(&self, column: usize) -> bool;
}

impl Bound {
    /// Whether the condition holds for a row; `None` if that depends on a missing value.
    pub fn holds_for(&self, row: &impl Row) -> Option<bool> {
        self.0.holds_for(row)
    }
}

impl Check {
    fn holds_for(&self, row: &impl Row) -> Option<bool> {
        match self {
            Self::Any(parts) => outcome(parts.iter().map(|part| part.holds_for(row)), true),
            Self::All(parts) => outcome(parts.iter().map(|part| part.holds_for(row)), false),
            Self::Not(inner) => inner.holds_for(row).map(|holds| !holds),
            Self::Number(column, sign, value) => {
                row.number(*column)?.order(*value).map(|order| sign.holds(order))
            }
            Self::Numbers(column, values) => {
                let number = row.number(*column)?;
                Some(values.iter().any(|value| number.order(*value).is_some_and(Ordering::is_eq)))
            }
            Self::Text(column, sign, value) => Some(sign.holds(row.text(*column)?.cmp(value))),
            Self::Texts(column, values) => Some(values.contains(row.text(*column)?)),
            Self::Missing(column) => Some(row.is_missing(*column)),
        }
    }
}

/// Evaluates a check for one row: true, false, or `None` if unknown.
type Evaluate<'a> = Box<dyn Fn(usize) -> Option<bool> + 'a>;

fn evaluator<'a>(check: &'a Check, batch: &'a RecordBatch) -> Evaluate<'a> {
    let all = |parts: &'a [Check]| -> Vec<Evaluate<'a>> {
        parts.iter().map(|part| evaluator(part, batch)).collect()
    };
    match check {
        Check::Any(parts) => decided(all(parts), true),
        Check::All(parts) => decided(all(parts), false),
        Check::Not(inner) => {
            let inner = evaluator(inner, batch);
            Box::new(move |row| inner(row).map(|holds| !holds))
        }
        Check::Number(column, sign, value) => {
            let number = numbers(batch.column(*column));
            Box::new(move |row| number(row)?.order(*value).map(|order| sign.holds(order)))
        }
        Check::Numbers(column, values) => {
            let number = numbers(batch.column(*column));
            Box::new(move |row| {
                let number = number(row)?;
                Some(values.iter().any(|value| number.order(*value).is_some_and(Ordering::is_eq)))
            })
        }
        Check::Text(column, sign, value) => {
            let text = texts(batch.column(*column));
            Box::new(move |row| Some(sign.holds(text(row)?.cmp(value))))
        }
        Check::Texts(column, values) => {
            let text = texts(batch.column(*column));
            Box::new(move |row| Some(values.contains(text(row)?)))
        }
        Check::Missing(column) => {
            let column = batch.column(*column);
            Box::new(move |row| Some(column.is_null(row)))
        }
    }
}

/// Combines parts in three-valued logic. One part equal to `decisive` decides the outcome: a true
/// part decides "or", a false part decides "and".
fn decided<'a>(parts: Vec<Evaluate<'a>>, decisive: bool) -> Evaluate<'a> {
    Box::new(move |row| outcome(parts.iter().map(|part| part(row)), decisive))
}

/// The outcome of parts of which one that is `decisive` decides.
fn outcome(parts: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut outcome = Some(!decisive);
    for part in parts {
        match part {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => outcome = None,
        }
    }
    outcome
}
