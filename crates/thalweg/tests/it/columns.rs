//! Compares Arrow batches with the values that were written, for every type of field.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use proptest::prelude::*;
use thalweg::format::slow5::{
    AuxField, AuxType, Encoding, Framing, Header, Record, RecordEncoder, RecordPress, Scalar,
    SignalPress, Version,
};
use thalweg::model::StoreModel;
use thalweg::plan::Budget;
use thalweg::reads::{
    BatchOptions, Options, Order, ReadFile, Selection, Strings, TYPE_KEY, picoampere_of,
};
use thalweg::store::MemoryStore;

/// One value, without the width of its type.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Int(i128),
    Float(u64),
    Bytes(Vec<u8>),
    List(Vec<Cell>),
}

fn cell(array: &dyn Array, row: usize) -> Cell {
    if array.is_null(row) {
        return Cell::Null;
    }
    match array.data_type() {
        DataType::Int8 => Cell::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Cell::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Cell::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row).into()),
        DataType::UInt8 => Cell::Int(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Cell::Int(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Cell::Int(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Cell::Int(array.as_primitive::<UInt64Type>().value(row).into()),
        DataType::Float32 => {
            Cell::Float(array.as_primitive::<Float32Type>().value(row).to_bits().into())
        }
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Utf8 => Cell::Bytes(array.as_string::<i32>().value(row).as_bytes().to_vec()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            Cell::List((0..list.len()).map(|i| cell(&list, i)).collect())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<UInt8Type>();
            let key = dictionary.keys().value(row);
            cell(dictionary.values(), key.into())
        }
        other => panic!("{other}"),
    }
}

/// The expected value of the stored bytes of one element. In arrays, only an unknown label is a
/// missing value.
fn expected_element(field: &AuxField, bytes: &[u8], in_array: bool) -> Cell {
    let mut missing = Vec::new();
    field.kind.element().push_missing(&mut missing);
    let int = |v: i128| if bytes == missing && !in_array { Cell::Null } else { Cell::Int(v) };
    match field.kind.element() {
        Scalar::Int8 => int(i8::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Int16 => int(i16::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Int32 => int(i32::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Int64 => int(i64::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Uint8 => int(bytes[0].into()),
        Scalar::Uint16 => int(u16::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Uint32 => int(u32::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Uint64 => int(u64::from_le_bytes(bytes.try_into().unwrap()).into()),
        Scalar::Float => match f32::from_le_bytes(bytes.try_into().unwrap()) {
            v if v.is_nan() && !in_array => Cell::Null,
            v => Cell::Float(v.to_bits().into()),
        },
        Scalar::Double => match f64::from_le_bytes(bytes.try_into().unwrap()) {
            v if v.is_nan() && !in_array => Cell::Null,
            v => Cell::Float(v.to_bits()),
        },
        Scalar::Char if bytes == missing => Cell::Null,
        Scalar::Char => Cell::Bytes(bytes.to_vec()),
        Scalar::Enum if bytes == missing => Cell::Null,
        Scalar::Enum => Cell::Bytes(field.labels[usize::from(bytes[0])].clone().into_bytes()),
    }
}

fn expected(field: &AuxField, bytes: &[u8]) -> Cell {
    match field.kind {
        AuxType::Scalar(_) => expected_element(field, bytes, false),
        AuxType::Array(_) if bytes.is_empty() => Cell::Null,
        AuxType::Array(Scalar::Char) => Cell::Bytes(bytes.to_vec()),
        AuxType::Array(element) => Cell::List(
            bytes
                .chunks(element.size())
                .map(|bytes| expected_element(field, bytes, true))
                .collect(),
        ),
    }
}

/// A field of every type, as a scalar and as an array.
fn fields() -> Vec<AuxField> {
    let mut fields = Vec::new();
    for scalar in Scalar::ALL {
        for kind in [AuxType::Scalar(scalar), AuxType::Array(scalar)] {
            let mut field = AuxField::new(format!("{kind:?}"), kind);
            if scalar == Scalar::Enum {
                field.labels =
                    ["unknown", "mux_change", "signal_positive"].map(String::from).to_vec();
            }
            fields.push(field);
        }
    }
    fields
}

#[derive(Debug, Clone)]
struct Written {
    id: String,
    group: u32,
    numbers: [f64; 4],
    samples: Vec<i16>,
    /// Stored bytes of each field, without counts.
    aux: Vec<Vec<u8>>,
}

fn stored_value(field: &AuxField) -> BoxedStrategy<Vec<u8>> {
    let element = field.kind.element();
    let mut missing = Vec::new();
    element.push_missing(&mut missing);
    let labels = field.labels.len() as u8;
    let one = match element {
        Scalar::Char => (0..128_u8).prop_map(|b| vec![b]).boxed(),
        Scalar::Enum => (0..labels).prop_map(|b| vec![b]).boxed(),
        _ => prop::collection::vec(any::<u8>(), element.size()).boxed(),
    };
    let one = prop_oneof![5 => one, 1 => Just(missing)].boxed();
    if field.kind.is_array() {
        prop::collection::vec(one, 0..4).prop_map(|values| values.concat()).boxed()
    } else {
        one
    }
}

fn reads(most: usize) -> impl Strategy<Value = Vec<Written>> {
    let aux: Vec<_> = fields().iter().map(stored_value).collect();
    let samples = prop_oneof![(0..20_usize), (0..30_000_usize)];
    let number = prop_oneof![Just(f64::NAN), any::<f64>()];
    let read = (0..3_u32, prop::array::uniform4(number), samples, any::<i16>(), aux);
    prop::collection::vec(read, 0..most).prop_map(|reads| {
        let mut written = Vec::new();
        for (i, (group, numbers, len, first, aux)) in reads.into_iter().enumerate() {
            let samples = (0..len).map(|j| first.wrapping_add((j * j % 91) as i16)).collect();
            written.push(Written { id: format!("read-{i}"), group, numbers, samples, aux });
        }
        written
    })
}

fn header(aux: Vec<AuxField>) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::Zstd,
        signal_press: SignalPress::SvbZd,
        read_groups: 3,
        attributes: Vec::new(),
        aux,
        data_offset: 0,
    }
}

fn file_bytes(header: &Header, reads: &[Written]) -> Vec<u8> {
    let mut bytes = header.write().unwrap();
    let mut encoder = RecordEncoder::new().unwrap();
    for read in reads {
        let mut aux = Vec::new();
        for (field, stored) in header.aux.iter().zip(&read.aux) {
            if field.kind.is_array() {
                aux.extend(
                    (stored.len() as u64 / field.kind.element().size() as u64).to_le_bytes(),
                );
            }
            aux.extend(stored);
        }
        let [digitisation, offset, range, sampling_rate] = read.numbers;
        let record = Record {
            read_id: &read.id,
            read_group: read.group,
            digitisation,
            offset,
            range,
            sampling_rate,
            signal: &[],
            aux: &aux,
        };
        encoder.record(header, &record, &read.samples, &mut bytes).unwrap();
    }
    bytes.extend(Framing::new(header.encoding).end_marker());
    bytes
}

fn open(bytes: Vec<u8>, threads: usize) -> ReadFile {
    // A small budget and small blocks give many groups and batches.
    let options = Options {
        budget: Budget { threads, memory: 1 << 20 },
        model: Some(StoreModel { block: 64 << 10, ..StoreModel::MEMORY }),
        ..Options::default()
    };
    ReadFile::from_store(Arc::new(MemoryStore::new("test.blow5", bytes)), options).unwrap()
}

fn check_row(batch: &RecordBatch, row: usize, read: &Written, fields: &[AuxField]) {
    let text = |s: &str| Cell::Bytes(s.as_bytes().to_vec());
    assert_eq!(cell(batch.column(0), row), text(&read.id));
    assert_eq!(cell(batch.column(1), row), Cell::Int(read.group.into()));
    for (i, number) in read.numbers.iter().enumerate() {
        assert_eq!(
            cell(batch.column(2 + i), row),
            Cell::Float(number.to_bits()),
            "a number is never missing"
        );
    }
    let signal = batch.column(6).as_list::<i32>().value(row);
    assert_eq!(signal.as_primitive::<Int16Type>().values(), &read.samples[..]);
    for (i, (field, stored)) in fields.iter().zip(&read.aux).enumerate() {
        assert_eq!(
            cell(batch.column(7 + i), row),
            expected(field, stored),
            "{} of {}",
            field.name,
            read.id
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn batches_hold_what_was_written(
        reads in reads(60),
        threads in 1..3_usize,
        picks in prop::collection::vec(any::<u16>(), 0..60),
        keep in 1..4_usize,
    ) {
        let fields = fields();
        let file = open(file_bytes(&header(fields.clone()), &reads), threads);
        let picks: Vec<usize> =
            picks.iter().filter(|_| !reads.is_empty()).map(|&p| p as usize % reads.len()).collect();
        let ids = Selection::Ids(Arc::new(picks.iter().map(|&p| reads[p].id.clone()).collect()));
        for (selection, order) in [
            (&Selection::All, Order::Selection), (&Selection::All, Order::AsTheyCome),
            (&ids, Order::Selection), (&ids, Order::AsTheyCome),
        ] {
            let mut want: Vec<usize> = if *selection == Selection::All {
                (0..reads.len()).collect()
            } else {
                picks.clone()
            };
            // Some batches are kept. They must not change when later batches are delivered.
            let mut kept = Vec::new();
            let mut got = Vec::new();
            let batches = file
                .batches_with(selection, BatchOptions { order, ..BatchOptions::default() })
                .unwrap();
            let schema = batches.schema();
            for (i, batch) in batches.enumerate() {
                let batch = batch.unwrap();
                prop_assert_eq!(batch.schema(), schema.clone());
                for row in 0..batch.num_rows() {
                    let id = batch.column(0).as_string::<i32>().value(row);
                    let number = id.strip_prefix("read-").unwrap().parse::<usize>().unwrap();
                    check_row(&batch, row, &reads[number], &fields);
                    got.push(number);
                }
                match i % (keep + 1) {
                    0 => kept.push(RecordBatch::clone(&batch)),
                    1 => kept.push(batch.into_inner()),
                    _ => {}
                }
            }
            for &pick in picks.iter().take(4) {
                let row = file.row(&reads[pick].id, Strings::Text).unwrap();
                prop_assert_eq!((row.schema(), row.num_rows()), (schema.clone(), 1));
                check_row(&row, 0, &reads[pick], &fields);
            }
            if order == Order::AsTheyCome {
                got.sort_unstable();
                want.sort_unstable();
            }
            prop_assert_eq!(got, want);
            for batch in kept {
                for row in 0..batch.num_rows() {
                    let id = batch.column(0).as_string::<i32>().value(row);
                    let number = id.strip_prefix("read-").unwrap().parse::<usize>().unwrap();
                    check_row(&batch, row, &reads[number], &fields);
                }
            }
        }
    }
}

#[test]
fn picoampere_are_the_samples_calibrated() {
    let numbers = |i: usize| [8192.0, 6.5 * i as f64, 1467.61, 4000.0];
    let reads: Vec<Written> =
        (0..500).map(|i| Written { numbers: numbers(i), ..plain(i, 10 * i) }).collect();
    let file = open(file_bytes(&header(Vec::new()), &reads), 4);
    let expected = |read: &Written| -> Vec<f32> {
        let [digitisation, offset, range, _] = read.numbers;
        let scale = range / digitisation;
        read.samples.iter().map(|&it| ((f64::from(it) + offset) * scale) as f32).collect()
    };
    let backwards: Vec<&Written> = reads.iter().rev().collect();
    let ids = backwards.iter().map(|read| read.id.clone()).collect();
    for (selection, reads) in [
        (Selection::All, reads.iter().collect::<Vec<_>>()),
        (Selection::Ids(Arc::new(ids)), backwards),
    ] {
        let options = BatchOptions { picoampere: true, ..BatchOptions::default() };
        let mut seen = 0;
        for batch in file.batches_with(&selection, options).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.schema(), file.schema(options).unwrap());
            assert!(batch.column_by_name("signal").is_none());
            let lists = batch.column_by_name("signal_pa").unwrap().as_list::<i32>();
            for row in 0..batch.num_rows() {
                let values = lists.value(row);
                let values = values.as_primitive::<Float32Type>().values();
                assert_eq!(values, &expected(reads[seen])[..], "{}", reads[seen].id);
                seen += 1;
            }
        }
        assert_eq!(seen, reads.len());
        // Those of single rows, also of a slice.
        let batch = file.batches(&selection).unwrap().next().unwrap().unwrap().into_inner();
        assert!(batch.num_rows() > 3);
        assert_eq!(picoampere_of(&batch, 2).unwrap(), expected(reads[2]));
        assert_eq!(picoampere_of(&batch.slice(1, 2), 1).unwrap(), expected(reads[2]));
        assert!(picoampere_of(&batch.slice(1, 2), 2).is_err());
    }
}

fn plain(i: usize, samples: usize) -> Written {
    Written {
        id: format!("read-{i}"),
        group: 0,
        numbers: [1.0; 4],
        samples: (0..samples).map(|j| (i * 7 + j * 13 % 1000) as i16).collect(),
        aux: Vec::new(),
    }
}

#[test]
fn memory_of_dropped_batches_is_used_again() {
    let reads: Vec<Written> = (0..2000).map(|i| plain(i, 3000)).collect();
    let file = open(file_bytes(&header(Vec::new()), &reads), 2);
    let ids = Selection::Ids(Arc::new(reads.iter().rev().map(|read| read.id.clone()).collect()));
    for selection in [Selection::All, ids] {
        let mut places = HashSet::new();
        let mut batches = 0;
        for batch in file.batches(&selection).unwrap() {
            let batch = batch.unwrap();
            let signal = batch
                .column(6)
                .as_list::<i32>()
                .values()
                .as_primitive::<Int16Type>()
                .values()
                .clone();
            places.insert(signal.as_ptr() as usize);
            batches += 1;
        }
        // A pooled batch is reallocated a few times until it has its full size.
        assert!(
            batches >= 50 && places.len() * 2 < batches,
            "{batches} batches in {} places",
            places.len()
        );
    }
}

#[test]
fn the_schema_says_the_types_of_the_file() {
    let file = open(file_bytes(&header(fields()), &[]), 1);
    let schema = file.schema(BatchOptions::default()).unwrap();
    let names: Vec<&str> =
        schema.fields().iter().take(7).map(|field| field.name().as_str()).collect();
    assert_eq!(
        names,
        ["read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "signal"]
    );
    assert_eq!(schema.field(6).metadata()[TYPE_KEY], "int16_t*");
    assert!(schema.fields().iter().take(7).all(|field| !field.is_nullable()));
    for (field, column) in fields().iter().zip(schema.fields().iter().skip(7)) {
        assert_eq!((column.name(), column.is_nullable()), (&field.name, true));
        assert_eq!(column.metadata()[TYPE_KEY], field.type_name());
    }
    assert_eq!(*schema.field_with_name("Array(Char)").unwrap().data_type(), DataType::Utf8);
    let options = BatchOptions { strings: Strings::Bytes, ..BatchOptions::default() };
    let bytes = file.schema(options).unwrap();
    assert_eq!(*bytes.field_with_name("Array(Char)").unwrap().data_type(), DataType::Binary);
    assert_eq!(*bytes.field_with_name("read_id").unwrap().data_type(), DataType::Utf8);
}

#[test]
fn strings_that_are_not_text_are_an_error_or_bytes() {
    let aux = vec![AuxField::new("note", AuxType::STRING)];
    let read = Written { aux: vec![b"caf\xe9".to_vec()], ..plain(0, 5) };
    let file = open(file_bytes(&header(aux), &[plain_with(1, b"fine"), read]), 1);
    let error = file.batches(&Selection::All).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(
        error.contains("read-0") && error.contains("note") && error.contains("UTF-8"),
        "{error}"
    );
    let options = BatchOptions { strings: Strings::Bytes, ..BatchOptions::default() };
    let batch = file.batches_with(&Selection::All, options).unwrap().next().unwrap().unwrap();
    assert_eq!(cell(batch.column(7), 1), Cell::Bytes(b"caf\xe9".to_vec()));
}

fn plain_with(i: usize, note: &[u8]) -> Written {
    Written { aux: vec![note.to_vec()], ..plain(i, 5) }
}

#[test]
fn a_code_without_a_label_is_an_error() {
    let field = AuxField {
        labels: vec!["only".into()],
        ..AuxField::new("reason", AuxType::Scalar(Scalar::Enum))
    };
    let file = open(file_bytes(&header(vec![field]), &[plain_with(0, &[7])]), 1);
    let error = file.batches(&Selection::All).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("code 7") && error.contains("enum{only}"), "{error}");
}

#[test]
fn reads_before_a_defect_are_delivered() {
    let reads: Vec<Written> = (0..200).map(|i| plain(i, 3000)).collect();
    let mut bytes = file_bytes(&header(Vec::new()), &reads);
    bytes.truncate(bytes.len() - 100);
    let file = open(bytes, 2);
    let (mut rows, mut errors) = (0, 0);
    for batch in file.batches(&Selection::All).unwrap() {
        match batch {
            Ok(batch) => rows += batch.num_rows(),
            Err(_) => errors += 1,
        }
    }
    assert_eq!((rows, errors), (199, 1));
}

/// A row that fails leaves nothing behind, and all rows before it are delivered, however reads are
/// grouped.
#[test]
fn a_row_that_fails_takes_no_other_with_it() {
    let enums = AuxField {
        labels: vec!["a".into(), "b".into()],
        ..AuxField::new("reasons", AuxType::Array(Scalar::Enum))
    };
    let fields = vec![AuxField::new("mux", AuxType::Scalar(Scalar::Uint8)), enums];
    for defect in 0..70 {
        let reads: Vec<Written> = (0..70)
            .map(|i| {
                // Every seventh has neither; the defect is a code without a label, after two with.
                let missing = i % 7 == 0;
                let mux = if missing { u8::MAX } else { i as u8 };
                let reasons = if missing { vec![] } else { vec![1, u8::MAX, 0] };
                let reasons = if i == defect { vec![1, 0, 7] } else { reasons };
                Written { aux: vec![vec![mux], reasons], ..plain(i, 1500) }
            })
            .collect();
        let file = open(file_bytes(&header(fields.clone()), &reads), 1 + defect % 3);
        let ids = Selection::Ids(Arc::new(reads.iter().map(|read| read.id.clone()).collect()));
        for selection in [&Selection::All, &ids] {
            let (mut rows, mut errors) = (0, 0);
            for batch in file.batches(selection).unwrap() {
                let Ok(batch) = batch else {
                    errors += 1;
                    continue;
                };
                for row in 0..batch.num_rows() {
                    check_row(&batch, row, &reads[rows], &fields);
                    rows += 1;
                }
            }
            assert_eq!((rows, errors), (defect, 1));
        }
    }
}
