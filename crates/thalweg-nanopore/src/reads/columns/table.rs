//! The columns for one or more headers, and the mapping from a file's fields to them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use thalweg_io::cells::TYPE_KEY;
use thalweg_io::{Error, Result};

use super::{Signal, Strings};
use crate::reads::PICOAMPERE_COLUMN;
use crate::record::{AuxField, AuxType, Header, Scalar};

/// The index of the column of samples, of picoampere, or of the number of samples.
pub(super) const SIGNAL: usize = 6;

/// The indices of digitisation, offset and range.
pub(super) const CALIBRATION: [usize; 3] = [2, 3, 4];

/// The column of the signal.
fn signal_column(signal: Signal) -> (&'static str, AuxType) {
    match signal {
        Signal::Samples => ("signal", AuxType::Array(Scalar::Int16)),
        Signal::Picoampere => (PICOAMPERE_COLUMN, AuxType::Array(Scalar::Float)),
        Signal::Length => ("samples", AuxType::Scalar(Scalar::Uint64)),
    }
}

/// The columns before the auxiliary ones (SLOW5 specification, "SLOW5 header"). The length of the
/// signal is not a column of its own.
const PRIMARY: [(&str, AuxType); SIGNAL] = [
    ("read_id", AuxType::STRING),
    ("read_group", AuxType::Scalar(Scalar::Uint32)),
    ("digitisation", AuxType::Scalar(Scalar::Double)),
    ("offset", AuxType::Scalar(Scalar::Double)),
    ("range", AuxType::Scalar(Scalar::Double)),
    ("sampling_rate", AuxType::Scalar(Scalar::Double)),
];

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) kind: AuxType,
    pub(super) type_name: String,
    pub(super) data_type: DataType,
    /// The labels of an enumeration, shared by all batches.
    pub(super) labels: Option<ArrayRef>,
}

/// The columns of batches.
#[derive(Debug, Clone)]
pub(in crate::reads) struct Table {
    pub(in crate::reads) schema: SchemaRef,
    pub(super) specs: Vec<Spec>,
    pub(super) signal: Signal,
    /// The auxiliary fields, with the labels of all files.
    aux: Vec<AuxField>,
}

impl Table {
    /// The columns for files with these names and headers: the primary ones, then the auxiliary
    /// fields of all files in the order of their first appearance. The labels of an enumeration
    /// that differ between files are merged.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a field has different types in different files.
    pub(in crate::reads) fn new<'a>(
        files: impl IntoIterator<Item = (&'a Arc<str>, &'a Header)>,
        strings: Strings,
        signal: Signal,
    ) -> Result<Self> {
        let mut aux: Vec<AuxField> = Vec::new();
        for (name, header) in files {
            for field in &header.aux {
                match aux.iter_mut().find(|known| known.name == field.name) {
                    Some(known) => merge(known, field, name)?,
                    None => aux.push(field.clone()),
                }
            }
        }
        let primary = PRIMARY
            .into_iter()
            .chain([signal_column(signal)])
            .map(|(name, kind)| spec(&AuxField::new(name, kind), Strings::Text));
        let specs: Vec<Spec> =
            primary.chain(aux.iter().map(|field| spec(field, strings))).collect();
        let fields = specs.iter().enumerate().map(|(i, spec)| {
            let (key, value) = match i == SIGNAL && signal == Signal::Picoampere {
                true => ("unit", "pA"),
                false => (TYPE_KEY, &*spec.type_name),
            };
            let metadata = HashMap::from([(key.to_owned(), value.to_owned())]);
            Field::new(&spec.name, spec.data_type.clone(), i > SIGNAL).with_metadata(metadata)
        });
        Ok(Self { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), specs, signal, aux })
    }

    /// The columns of rows whose picoampere are still to be calculated. They have no schema of
    /// their own, for no batch is made of them.
    pub(super) fn with_samples(&self) -> Self {
        let mut table = self.clone();
        if table.signal == Signal::Picoampere
            && let Some(column) = table.specs.get_mut(SIGNAL)
        {
            table.signal = Signal::Samples;
            let (name, kind) = signal_column(Signal::Samples);
            *column = spec(&AuxField::new(name, kind), Strings::Text);
        }
        table
    }
}

fn merge(known: &mut AuxField, field: &AuxField, file: &Arc<str>) -> Result<()> {
    let unsupported = |what: String| Error::Unsupported {
        file: file.clone(),
        what: what.into(),
        advice: "read files with different fields on their own".into(),
    };
    if known.kind != field.kind {
        let name = &field.name;
        let here = field.type_name();
        let before = known.type_name();
        return Err(unsupported(format!(
            "the auxiliary field {name:?} of type {here}, {before} in other files,"
        )));
    }
    for label in &field.labels {
        if !known.labels.contains(label) {
            known.labels.push(label.clone());
        }
    }
    // Code 255 is a missing value.
    if known.labels.len() > usize::from(u8::MAX) {
        return Err(unsupported(format!(
            "more than 255 labels of the enumeration {:?} in all files",
            field.name
        )));
    }
    Ok(())
}

fn spec(field: &AuxField, strings: Strings) -> Spec {
    let element = field.kind.element();
    let is_enum = element == Scalar::Enum;
    let scalar = match element {
        Scalar::Int8 => DataType::Int8,
        Scalar::Int16 => DataType::Int16,
        Scalar::Int32 => DataType::Int32,
        Scalar::Int64 => DataType::Int64,
        Scalar::Uint8 => DataType::UInt8,
        Scalar::Uint16 => DataType::UInt16,
        Scalar::Uint32 => DataType::UInt32,
        Scalar::Uint64 => DataType::UInt64,
        Scalar::Float => DataType::Float32,
        Scalar::Double => DataType::Float64,
        Scalar::Char => match strings {
            Strings::Text => DataType::Utf8,
            Strings::Bytes => DataType::Binary,
        },
        Scalar::Enum => DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)),
    };
    let data_type = match field.kind {
        AuxType::Array(Scalar::Char) | AuxType::Scalar(_) => scalar,
        AuxType::Array(_) => DataType::List(Arc::new(Field::new("item", scalar, is_enum))),
    };
    let labels =
        is_enum.then(|| Arc::new(StringArray::from_iter_values(&field.labels)) as ArrayRef);
    Spec {
        name: field.name.clone(),
        kind: field.kind,
        type_name: field.type_name(),
        data_type,
        labels,
    }
}

/// The mapping from the fields of one file to the columns of a table.
#[derive(Debug)]
pub(super) struct Fit {
    pub(super) table: Arc<Table>,
    /// For each field of the file, its column. If the labels of an enumeration differ, also the
    /// table's code for each of the file's codes.
    pub(super) fields: Vec<(usize, Option<Box<[u8]>>)>,
    /// Columns that the file does not have.
    pub(super) absent: Vec<usize>,
}

impl Fit {
    /// The mapping for `header`, which is one of the headers that `table` was made for.
    pub(super) fn new(table: Arc<Table>, header: &Header) -> Self {
        let mut absent: Vec<usize> = (0..table.aux.len()).map(|i| SIGNAL + 1 + i).collect();
        let mut fields = Vec::new();
        for field in &header.aux {
            let Some((i, known)) =
                table.aux.iter().enumerate().find(|(_, known)| known.name == field.name)
            else {
                continue;
            };
            absent.retain(|&column| column != SIGNAL + 1 + i);
            fields.push((SIGNAL + 1 + i, field.codes_in(known)));
        }
        Self { table, fields, absent }
    }
}
