//! Cells of Arrow columns of any type as numbers and text.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::DataType;

/// Key of the field metadata that holds the SLOW5 type, such as `enum{unknown,mux_change}`.
pub const TYPE_KEY: &str = "slow5:type";

/// A number. Integers are exact.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// An integer.
    Whole(i128),
    /// Any other number.
    Real(f64),
}

impl Number {
    /// Parses a number. `None` if `text` is not a number, or is infinite.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse()
            .map(Self::Whole)
            .ok()
            .or_else(|| text.parse().ok().filter(|n: &f64| n.is_finite()).map(Self::Real))
    }

    /// The number rounded to a 32-bit float. Rounding makes `x == 0.1` true for a 32-bit column
    /// that holds 0.1.
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

    /// The order of two numbers; `None` if one of them is NaN.
    pub fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }
}

/// A function from a row to its number in `column`. Text is parsed as a number.
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

/// A function from a row to its text in `column`: the string itself, or the dictionary label.
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

/// A function from a row to its cell as text, for columns of text, labels or numbers. For other
/// columns it returns `None`.
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
