use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, ListArray, RecordBatch,
    StringArray, UInt8Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;

use super::*;
use crate::cells::{Number, TYPE_KEY, numbers, texts};

/// A table of four rows. In the last row, every value but the number of samples is missing.
fn table() -> RecordBatch {
    let reason: DictionaryArray<UInt8Type> = DictionaryArray::new(
        UInt8Array::from(vec![Some(0), Some(1), Some(0), None]),
        Arc::new(StringArray::from(vec!["unknown", "signal_positive"])),
    );
    let labels = HashMap::from([(TYPE_KEY.to_owned(), "enum{unknown,signal_positive}".to_owned())]);
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(vec![
        None::<
            Vec<Option<i32>>,
        >;
        4
    ]);
    let columns: Vec<(Field, ArrayRef)> = vec![
        (
            Field::new("samples", DataType::UInt64, false),
            Arc::new(UInt64Array::from(vec![100, 5000, u64::MAX, 7])),
        ),
        (
            Field::new("median", DataType::Float32, true),
            Arc::new(Float32Array::from(vec![Some(0.1), Some(-2.0), None, None])),
        ),
        (
            Field::new("channel", DataType::Utf8, true),
            Arc::new(StringArray::from(vec![Some("9"), Some("10"), Some("x y"), None])),
        ),
        (Field::new("reason", reason_type(), true).with_metadata(labels), Arc::new(reason)),
        (Field::new("list", lists_type(), true), Arc::new(lists)),
    ];
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap_or_else(|_| unreachable!())
}

fn reason_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
}

fn lists_type() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))
}

/// A row of the table, which is evaluated alone.
struct Alone<'a>(&'a RecordBatch, usize);

impl Row for Alone<'_> {
    fn number(&self, column: usize) -> Option<Number> {
        numbers(self.0.column(column))(self.1)
    }

    fn text(&self, column: usize) -> Option<&str> {
        texts(self.0.column(column))(self.1)
    }

    fn is_missing(&self, column: usize) -> bool {
        self.0.column(column).is_null(self.1)
    }
}

/// Whether a condition holds for each row, which is the same for rows alone.
fn holds(bound: &Bound, table: &RecordBatch) -> BooleanArray {
    let mask = bound.holds(table);
    let alone = (0..table.num_rows()).map(|row| bound.holds_for(&Alone(table, row)));
    assert_eq!(mask, alone.collect::<BooleanArray>());
    mask
}

/// The rows for which a condition holds.
fn rows(text: &str) -> Vec<usize> {
    let table = table();
    let bound = Condition::parse(text).and_then(|condition| condition.bind(&table.schema()));
    let mask = bound.map(|bound| holds(&bound, &table));
    assert!(mask.is_ok(), "{text}: {mask:?}");
    let mask = mask.unwrap_or_else(|_| Vec::<bool>::new().into());
    mask.iter().enumerate().filter(|(_, holds)| *holds == Some(true)).map(|(row, _)| row).collect()
}

#[test]
fn rows_that_hold() {
    let cases: &[(&str, &[usize])] = &[
        ("samples >= 5000", &[1, 2]),
        ("samples>=5000", &[1, 2]),
        ("samples == 18446744073709551615", &[2]),
        ("samples < 18446744073709551615", &[0, 1, 3]),
        ("samples < 1e3", &[0, 3]),
        ("samples in (7, 100)", &[0, 3]),
        ("samples not in (7, 100)", &[1, 2]),
        ("median == 0.1", &[0]),
        ("median < 0", &[1]),
        ("median != 0.1", &[1]),
        ("not median == 0.1", &[1]),
        ("median is missing", &[2, 3]),
        ("median is not missing", &[0, 1]),
        ("channel == 9", &[0]),
        ("channel == \"x y\"", &[2]),
        ("channel = 'x y'", &[2]),
        ("channel < 10", &[0]),
        ("channel in (9, 10)", &[0, 1]),
        ("reason == unknown", &[0, 2]),
        ("reason != unknown", &[1]),
        ("reason in (unknown, signal_positive)", &[0, 1, 2]),
        ("list is missing", &[0, 1, 2, 3]),
        // "and" binds closer than "or".
        ("samples == 7 or samples == 100 and reason == signal_positive", &[3]),
        ("(samples == 7 or samples == 100) and reason == unknown", &[0]),
        // "unknown or true" is true. "unknown and false" is false, and its negation is true.
        ("median > 0 or samples == 7", &[0, 3]),
        ("not (median > 0 and samples == 100)", &[1, 2, 3]),
        ("NOT samples == 7 AND samples < 200", &[0]),
    ];
    for (text, expected) in cases {
        assert_eq!(rows(text), *expected, "{text}");
    }
}

#[test]
fn refusals_name_the_column_and_what_is_expected() {
    let cases = [
        ("", 1, "the name of a column"),
        ("samples", 8, "=="),
        ("samples 5", 9, "=="),
        ("samples => 5", 9, "=="),
        ("samples >", 10, "a value"),
        ("samples > 5 reason", 13, "\"and\", \"or\" or the end"),
        ("samples > 5 and", 16, "the name of a column"),
        ("(samples > 5", 13, "\")\""),
        ("samples > 5)", 12, "the end"),
        ("samples in 5", 12, "\"(\""),
        ("samples in ()", 13, "a value"),
        ("samples in (5", 14, "\",\""),
        ("samples is 5", 12, "\"missing\""),
        ("samples not 5", 13, "\"in\""),
        ("channel == 'x", 12, "after it"),
        ("lenght > 5", 1, "one of samples, median, channel, reason, list"),
        ("samples > many", 11, "a number"),
        ("median > nan", 10, "a number"),
        ("reason == signal_negative", 11, "one of unknown, signal_positive"),
        ("reason > unknown", 1, "have no order"),
        ("list == 5", 1, "is missing"),
        ("µ == 1 and samples > many", 22, "a number"),
    ];
    let schema = table().schema();
    let schema = Schema::new(
        schema
            .fields()
            .iter()
            .cloned()
            .chain([Arc::new(Field::new("µ", DataType::Utf8, true))])
            .collect::<Vec<_>>(),
    );
    for (text, column, expected) in cases {
        let error =
            Condition::parse(text).and_then(|condition| condition.bind(&schema)).map(|_| ());
        let words = error.map_or_else(|error| error.to_string(), |()| "accepted".into());
        assert!(
            words.contains(&format!("column {column}: ")) && words.contains(expected),
            "{text}: {words}"
        );
    }
}

#[test]
fn depth_is_bounded() {
    for open in ["(", "not "] {
        let deep = format!("{}samples > 1{}", open.repeat(100_000), ")".repeat(100_000));
        assert!(
            Condition::parse(&deep)
                .is_err_and(|error| error.to_string().contains("inside each other"))
        );
    }
    let wide = vec!["samples > 1"; 50_000].join(" or ");
    assert_eq!(rows(&wide), [0, 1, 2, 3]);
}

#[test]
fn columns_that_are_asked_for() {
    let condition = Condition::parse("b == 1 and (a is missing or not b in (c, d))");
    assert_eq!(
        condition.map(|c| c.columns().into_iter().map(str::to_owned).collect::<Vec<_>>()).ok(),
        Some(vec!["a".into(), "b".into()])
    );
}

proptest! {
    #[test]
    fn any_text_parses_or_not(text: String) {
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.bind(&table().schema()).map(|bound| holds(&bound, &table()));
        }
    }

    #[test]
    fn near_conditions_parse_or_not(words in prop::collection::vec(prop::sample::select(vec![
        "samples", "reason", "and", "or", "not", "in", "is", "missing", "(", ")", ",", "==", "<",
        "5", "'a b'", "unknown",
    ]), 0..12)) {
        if let Ok(condition) = Condition::parse(&words.join(" ")) {
            let _ = condition.bind(&table().schema()).map(|bound| holds(&bound, &table()));
        }
    }
}
