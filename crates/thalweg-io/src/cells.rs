//! Cells of Arrow columns as numbers and text, whatever the column's type.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::DataType;

/// Name of the field metadata that hold the SLOW5 type, as in `enum{unknown,mux_change}`.
pub const TYPE_KEY: &str = "slow5:type";

/// A number, exact if it is whole.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// An integer.
    Whole(i128),
    /// Any other number.
    Real(f64),
}

impl Number {
    /// The number that a text spells; `None` for infinities and what is no number.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse()
            .map(Self::Whole)
            .ok()
            .or_else(|| text.parse().ok().filter(|n: &f64| n.is_finite()).map(Self::Real))
    }

    /// What a 32-bit float would make of it, so that `x == 0.1` holds where the file says 0.1.
    pub fn single(self) -> Self {
        Self::Real(f64::from(self.real() as f32))
    }

    /// The nearest floating-point number.
    pub fn real(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Real(n) => n,
        }
    }

    /// Which of two numbers is greater; `None` where one is no number.
    pub fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }
}

/// The numbers of a column, those that text spells included.
pub fn numbers(column: &dyn Array) -> Box<dyn Fn(usize) -> Option<Number> + '_> {
    macro_rules! whole {
        ($kind:ty) => {{
            let values = column.as_primitive::<$kind>();
            Box::new(move |row| {
                values.is_valid(row).then(|| Number::Whole(values.value(row).into()))
            })
        }};
    }
    match column.data_type() {
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => whole!(UInt64Type),
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            Box::new(move |row| {
                values.is_valid(row).then(|| Number::Real(values.value(row).into()))
            })
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            Box::new(move |row| values.is_valid(row).then(|| Number::Real(values.value(row))))
        }
        _ => {
            let text = texts(column);
            Box::new(move |row| Number::parse(text(row)?))
        }
    }
}

/// The texts of a column: its own, or those of its dictionary.
pub fn texts<'a>(column: &'a dyn Array) -> Box<dyn Fn(usize) -> Option<&'a str> + 'a> {
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Box::new(move |row| texts.is_valid(row).then(|| texts.value(row)));
    }
    let Some(dictionary) = column.as_any_dictionary_opt() else { return Box::new(|_| None) };
    let codes = dictionary.normalized_keys();
    let Some(labels) = dictionary.values().as_string_opt::<i32>() else {
        return Box::new(|_| None);
    };
    Box::new(move |row| {
        dictionary.is_valid(row).then(|| codes.get(row).map(|&code| labels.value(code))).flatten()
    })
}

/// The cells of a column of text, labels or numbers as text; nothing of other columns.
pub fn shown<'a>(column: &'a dyn Array) -> Box<dyn Fn(usize) -> Option<Cow<'a, str>> + 'a> {
    if column.data_type().is_numeric() {
        let number = numbers(column);
        return Box::new(move |row| {
            Some(Cow::Owned(match number(row)? {
                Number::Whole(n) => n.to_string(),
                Number::Real(n) => n.to_string(),
            }))
        });
    }
    let text = texts(column);
    Box::new(move |row| text(row).map(Cow::Borrowed))
}
