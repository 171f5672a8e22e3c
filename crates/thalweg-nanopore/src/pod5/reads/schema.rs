//! Preparing a [`ReadsTable`] from a schema of any version: finding the columns, and converting
//! their dictionaries.

use arrow_schema::DataType;
use thalweg_io::Fault;

use super::value::{AuxSource, ColumnSource, DictionaryBytes, How, encode};
use super::{ReadsTable, RunFields, no_run};
use crate::pod5::dictionary::Dictionaries;
use crate::pod5::fields::{END_REASON_TEXT, FIELDS, PRIMARY, StoredType, WIDE_CHANNEL};
use crate::pod5::run_info::RunInfo;
use crate::pod5::schema::{ColumnKind, ColumnSchema, Schema};
use crate::pod5::uuid::UUID_BYTES;
use crate::pod5::write;
use crate::record::{AuxField, AuxType, Scalar};

/// The columns that were fields of structs before version 3: column, struct, and field.
const STRUCTS: [(&str, &str, &str); 7] = [
    ("channel", "pore", "channel"),
    ("well", "pore", "well"),
    ("pore_type", "pore", "pore_type"),
    ("calibration_offset", "calibration", "offset"),
    ("calibration_scale", "calibration", "scale"),
    ("end_reason", "end_reason", "name"),
    ("end_reason_forced", "end_reason", "forced"),
];

/// The top-level column that holds the values of the column `name`, and the column itself: the
/// same one, or a child of a struct.
fn locate<'a>(schema: &'a Schema, name: &str) -> Option<(&'a ColumnSchema, &'a ColumnSchema)> {
    if let Some(column) = schema.column(name).filter(|column| column.kind != ColumnKind::Struct) {
        return Some((column, column));
    }
    let (_, outer, inner) = STRUCTS.iter().find(|(flat, ..)| *flat == name)?;
    let outer = schema
        .column(outer)
        .filter(|column| column.kind == ColumnKind::Struct && column.dictionary.is_some())?;
    Some((outer, outer.child(inner)?))
}

fn missing(name: &str) -> Fault {
    Fault::new(0, "a Reads table without it", format!("a column `{name}`"))
}

fn odd(column: &ColumnSchema, expected: &'static str) -> Fault {
    Fault::new(0, format!("the column {:?} of type {:?}", column.name, column.kind), expected)
}

const fn stored_kind(stored: StoredType) -> ColumnKind {
    match stored {
        StoredType::U8 => ColumnKind::Unsigned(1),
        StoredType::U16 => ColumnKind::Unsigned(2),
        StoredType::U32 => ColumnKind::Unsigned(4),
        StoredType::U64 => ColumnKind::Unsigned(8),
        StoredType::I8 => ColumnKind::Signed(1),
        StoredType::I16 => ColumnKind::Signed(2),
        StoredType::I32 => ColumnKind::Signed(4),
        StoredType::I64 => ColumnKind::Signed(8),
        StoredType::F32 => ColumnKind::Float(4),
        StoredType::F64 => ColumnKind::Float(8),
        StoredType::Bool => ColumnKind::Bool,
        StoredType::Text => ColumnKind::Text(4),
        StoredType::List(_) => ColumnKind::List(4),
    }
}

fn stored_of(kind: ColumnKind) -> Option<StoredType> {
    const ALL: [StoredType; 12] = [
        StoredType::U8,
        StoredType::U16,
        StoredType::U32,
        StoredType::U64,
        StoredType::I8,
        StoredType::I16,
        StoredType::I32,
        StoredType::I64,
        StoredType::F32,
        StoredType::F64,
        StoredType::Bool,
        StoredType::Text,
    ];
    let kind = if matches!(kind, ColumnKind::Text(_)) { ColumnKind::Text(4) } else { kind };
    ALL.into_iter().find(|&stored| stored_kind(stored) == kind)
}

/// The stored type of a column that POD5 does not define; `None` if a record cannot hold it.
fn more_of(column: &ColumnSchema) -> Option<StoredType> {
    let plain = column.dictionary.is_none();
    Some(match (&column.arrow, column.kind) {
        (_, ColumnKind::Text(_)) => StoredType::Text,
        (None, _) => return None,
        (Some(DataType::Timestamp(..) | DataType::Duration(_) | DataType::Date64), _) => {
            StoredType::I64
        }
        (Some(DataType::Date32), _) => StoredType::I32,
        (Some(DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_)), _)
            if plain =>
        {
            StoredType::List(Scalar::Uint8)
        }
        (_, ColumnKind::List(_)) if plain => {
            match stored_of(column.children.first()?.kind)?.natural() {
                AuxType::Scalar(items) => StoredType::List(items),
                AuxType::Array(_) => return None,
            }
        }
        (_, kind) => stored_of(kind)?,
    })
}

/// The Arrow type of a column, if it differs from the type that the auxiliary field implies.
fn type_of(column: &ColumnSchema, stored: StoredType) -> Option<DataType> {
    let kind = match column.dictionary {
        // The type of POD5's own dictionaries of text.
        Some((_, ColumnKind::Signed(2))) if stored == StoredType::Text => {
            return Some(DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8)));
        }
        Some(_) => return None,
        None => column.arrow.clone()?,
    };
    (kind != write::type_of(stored) || stored == StoredType::Bool).then_some(kind)
}

fn how(stored: StoredType, kind: AuxType) -> How {
    match (stored, kind) {
        (StoredType::List(items), _) => How::Items(items),
        (StoredType::Text, AuxType::Scalar(_)) => How::Label,
        (StoredType::Text, _) => How::Text,
        (_, AuxType::Array(_)) => How::Decimal,
        (StoredType::Bool, _) => How::Bit,
        (StoredType::F32, AuxType::Scalar(Scalar::Double)) => How::Widen,
        _ => How::Copy(kind.element().size()),
    }
}

impl ReadsTable {
    /// Prepares a table with this schema and these dictionaries. `runs` are the rows of the RunInfo
    /// table. Version 0 has no such table; its runs are in a dictionary.
    ///
    /// # Errors
    /// Columns that are missing or have a wrong type.
    pub fn new(
        schema: &Schema,
        dictionaries: &Dictionaries,
        runs: Vec<RunInfo>,
    ) -> Result<Self, Fault> {
        let signal = required(schema, "signal", ColumnKind::List(4))?;
        let item = signal.children.first();
        let rows = item.filter(|item| item.is_plain(ColumnKind::Unsigned(8)));
        let rows = rows.cloned().ok_or_else(|| odd(&signal, "a list of uint64"))?;
        let (group, run_infos) = groups(schema, dictionaries, runs)?;
        let runs = run_infos.iter().map(RunFields::of).collect();
        let mut table = Self {
            read_id: required(schema, "read_id", ColumnKind::Fixed(UUID_BYTES))?,
            signal,
            rows,
            num_samples: optional(schema, "num_samples", ColumnKind::Unsigned(8)),
            offset: float_source(schema, dictionaries, "calibration_offset")?,
            scale: float_source(schema, dictionaries, "calibration_scale")?,
            group,
            runs,
            aux: Vec::new(),
            wide_channel: optional(schema, WIDE_CHANNEL, ColumnKind::Unsigned(4)),
            fields: Vec::new(),
            version: version(schema),
            lost: Vec::new(),
            types: Vec::new(),
            run_infos,
        };
        table.add_fields(schema, dictionaries)?;
        Ok(table)
    }

    fn add_fields(&mut self, schema: &Schema, dictionaries: &Dictionaries) -> Result<(), Fault> {
        let mut unlabelled = None;
        for field in &FIELDS {
            let Some((outer, leaf)) = locate(schema, field.column) else { continue };
            if stored_of(leaf.kind) != Some(field.stored) {
                return Err(odd(leaf, "the type that POD5 gives it"));
            }
            let mut aux = field.aux_field();
            if field.kind == AuxType::Scalar(Scalar::Enum) {
                let is_whole = add_labels(&mut aux.labels, dictionaries, outer, leaf)?;
                unlabelled = (!is_whole).then_some((outer, leaf));
            }
            self.add(aux, field.stored, dictionaries, outer, leaf)?;
        }
        for column in &schema.columns {
            let known = |name: &str| name == column.name;
            if PRIMARY.into_iter().any(known)
                || FIELDS.iter().any(|field| known(field.column))
                || (known(WIDE_CHANNEL) && self.wide_channel.is_some())
                || STRUCTS.iter().any(|(_, outer, _)| known(outer))
            {
                continue;
            }
            let taken = self.fields.iter().any(|field| field.name == column.name);
            let usable =
                !taken && !column.name.is_empty() && !column.name.contains(['\t', '\n', '\r']);
            match more_of(column).filter(|_| usable) {
                Some(stored) => {
                    let aux = AuxField::new(column.name.clone(), stored.natural());
                    self.types
                        .extend(type_of(column, stored).map(|kind| (column.name.clone(), kind)));
                    self.add(aux, stored, dictionaries, column, column)?;
                }
                None => self.lost.push(column.name.clone()),
            }
        }
        if let Some((outer, leaf)) = unlabelled {
            let aux = AuxField::new(END_REASON_TEXT, AuxType::STRING);
            self.add(aux, StoredType::Text, dictionaries, outer, leaf)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        field: AuxField,
        stored: StoredType,
        dictionaries: &Dictionaries,
        outer: &ColumnSchema,
        leaf: &ColumnSchema,
    ) -> Result<(), Fault> {
        let how = match how(stored, field.kind) {
            _ if field.name == END_REASON_TEXT => How::Unlabelled,
            How::Items(_) if !matches!(leaf.kind, ColumnKind::List(_)) => How::Bytes,
            how => how,
        };
        let source = if outer.dictionary.is_none() {
            ColumnSource::Plain(outer.clone())
        } else {
            let mut encoded = DictionaryBytes::default();
            dictionaries.each(outer, leaf, |array, i| {
                encode(how, &field.labels, field.kind, array, i, &mut encoded.bytes)?;
                encoded.ends.push(encoded.bytes.len());
                Ok(())
            })?;
            ColumnSource::Indexed(outer.clone(), encoded)
        };
        self.aux.push(AuxSource {
            how,
            kind: field.kind,
            source,
            is_channel: field.name == "channel_number",
        });
        self.fields.push(field);
        Ok(())
    }
}

/// A top-level column of this kind, without a dictionary.
fn required(schema: &Schema, name: &str, kind: ColumnKind) -> Result<ColumnSchema, Fault> {
    let column = schema.column(name).ok_or_else(|| missing(name))?;
    if column.is_plain(kind) { Ok(column.clone()) } else { Err(odd(column, "another type")) }
}

/// A top-level column that is used only if it is of this kind and has no dictionary.
fn optional(schema: &Schema, name: &str, kind: ColumnKind) -> Option<ColumnSchema> {
    schema.column(name).filter(|column| column.is_plain(kind)).cloned()
}

/// A column of `float`, with the values of its dictionary if it has one. A missing value in a
/// dictionary is NaN.
fn float_source(
    schema: &Schema,
    dictionaries: &Dictionaries,
    name: &str,
) -> Result<ColumnSource<Vec<f32>>, Fault> {
    let (outer, leaf) = locate(schema, name).ok_or_else(|| missing(name))?;
    if leaf.kind != ColumnKind::Float(4) {
        return Err(odd(leaf, "float"));
    }
    if outer.dictionary.is_none() {
        return Ok(ColumnSource::Plain(outer.clone()));
    }
    let mut values = Vec::new();
    dictionaries.each(outer, leaf, |array, i| {
        values.push(if array.is_valid(i) { f32::from_le_bytes(array.fixed(i)?) } else { f32::NAN });
        Ok(())
    })?;
    Ok(ColumnSource::Indexed(outer.clone(), values))
}

/// Whether a text can be the label of an enumeration.
fn is_label(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// Adds the dictionary's texts to `labels`. Returns whether `labels` then contains all of them.
fn add_labels(
    labels: &mut Vec<String>,
    dictionaries: &Dictionaries,
    outer: &ColumnSchema,
    leaf: &ColumnSchema,
) -> Result<bool, Fault> {
    if outer.dictionary.is_none() {
        return Ok(false);
    }
    let mut is_whole = true;
    dictionaries.each(outer, leaf, |array, i| {
        let text = if array.is_valid(i) { array.text(i)? } else { return Ok(()) };
        if labels.iter().all(|label| label != text) {
            let fits = is_label(text) && labels.len() < usize::from(u8::MAX);
            is_whole &= fits;
            if fits {
                labels.push(text.to_owned());
            }
        }
        Ok(())
    })?;
    Ok(is_whole)
}

/// The source of a row's read group, and the runs that the groups are.
fn groups(
    schema: &Schema,
    dictionaries: &Dictionaries,
    mut runs: Vec<RunInfo>,
) -> Result<(ColumnSource<Vec<u32>>, Vec<RunInfo>), Fault> {
    let column = schema.column("run_info").ok_or_else(|| missing("run_info"))?;
    let mut groups = Vec::new();
    match (column.kind, column.dictionary) {
        (ColumnKind::Text(_), None) => return Ok((ColumnSource::Plain(column.clone()), runs)),
        (ColumnKind::Text(_), Some(_)) => dictionaries.each(column, column, |array, i| {
            let id = if array.is_valid(i) { array.text(i)? } else { "" };
            let group = runs.iter().position(|run| run.text("acquisition_id") == id);
            groups.push(group.ok_or_else(|| no_run(id))? as u32);
            Ok(())
        })?,
        (ColumnKind::Struct, Some(_)) => {
            for part in dictionaries.parts(column) {
                let inner = column.in_dictionary();
                let (rows, _) = RunInfo::rows(&part?, &inner.children)?;
                for row in rows {
                    let known = runs.iter().position(|run| *run == row);
                    groups.push(known.unwrap_or(runs.len()) as u32);
                    if known.is_none() {
                        runs.push(row);
                    }
                }
            }
        }
        _ => return Err(odd(column, "an acquisition id, or a run behind a dictionary")),
    }
    Ok((ColumnSource::Indexed(column.clone(), groups), runs))
}

/// The version of the table, derived from the columns that each version introduced.
fn version(schema: &Schema) -> u8 {
    let has = |name| schema.column(name).is_some();
    match () {
        () if has("open_pore_level") => 4,
        () if has("channel") => 3,
        () if has("num_samples") => 2,
        () if has("num_minknow_events") => 1,
        () => 0,
    }
}
