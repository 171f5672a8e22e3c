//! The Reads table: from a row to a [`Record`], whatever the table's version.
//!
//! What lies behind a dictionary (strings, and version 0's structs) is translated once, when the table is opened; a row
//! then copies what its index stands for.

use std::ops::Range;

use crate::Fault;
use crate::format::slow5::{AuxField, AuxType, Encoding, Header, Record, RecordPress, Scalar, SignalPress, Version};

use super::batch::{Array, Batch};
use super::dictionary::Dictionaries;
use super::fields::{self, END_REASON_TEXT, END_REASONS, FIELDS, PRIMARY, Stored, WIDE_CHANNEL};
use super::run_info::{RunInfo, attributes};
use super::schema::{Column, Kind, Schema};
use super::uuid::{UUID_BYTES, format_uuid};

/// What turns rows into records.
#[derive(Debug)]
pub struct ReadsTable {
    read_id: Column,
    signal: Column,
    rows: Column,
    num_samples: Option<Column>,
    offset: Source<Vec<f32>>,
    scale: Source<Vec<f32>>,
    group: Source<Vec<u32>>,
    runs: Vec<Run>,
    aux: Vec<Aux>,
    wide_channel: Option<Column>,
    fields: Vec<AuxField>,
    /// The version that the columns show.
    pub version: u8,
    /// Columns that a record cannot hold.
    pub lost: Vec<String>,
    /// The runs, a read group each.
    pub run_infos: Vec<RunInfo>,
}

/// A column, or the translation of what its indices stand for.
#[derive(Debug)]
enum Source<T> {
    Plain(Column),
    Indexed(Column, T),
}

/// What a record takes from its run.
#[derive(Debug)]
struct Run {
    acquisition_id: String,
    digitisation: f64,
    sampling_rate: f64,
}

#[derive(Debug)]
struct Aux {
    how: How,
    kind: AuxType,
    source: Source<Encoded>,
    is_channel: bool,
}

/// How a value changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Copy(usize),
    Decimal,
    Widen,
    Bit,
    Text,
    Label,
    /// The text of end reasons that are none of POD5's.
    Unlabelled,
}

/// Auxiliary bytes of each entry of a dictionary.
#[derive(Debug, Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Encoded {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }
}

/// Memory that a record borrows from.
#[derive(Debug, Default)]
pub struct RecordScratch {
    id: String,
    aux: Vec<u8>,
}

/// What a row says about its signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRows {
    /// Its part of [`ReadsTable::signal_rows`].
    pub span: Range<usize>,
    /// Samples in all, where the table says.
    pub samples: Option<u64>,
}

/// Before version 3, columns were fields of structs.
const STRUCTS: [(&str, &str, &str); 7] = [
    ("channel", "pore", "channel"),
    ("well", "pore", "well"),
    ("pore_type", "pore", "pore_type"),
    ("calibration_offset", "calibration", "offset"),
    ("calibration_scale", "calibration", "scale"),
    ("end_reason", "end_reason", "name"),
    ("end_reason_forced", "end_reason", "forced"),
];

/// The top-level column that holds a flat column's values, and which child of it.
fn locate<'a>(schema: &'a Schema, name: &str) -> Option<(&'a Column, &'a Column)> {
    if let Some(column) = schema.column(name).filter(|column| column.kind != Kind::Struct) {
        return Some((column, column));
    }
    let (_, outer, inner) = STRUCTS.iter().find(|(flat, ..)| *flat == name)?;
    let outer = schema.column(outer).filter(|column| column.kind == Kind::Struct && column.dictionary.is_some())?;
    Some((outer, outer.child(inner)?))
}

fn missing(name: &str) -> Fault {
    Fault::new(0, "a Reads table without it", format!("a column `{name}`"))
}

fn odd(column: &Column, expected: &'static str) -> Fault {
    Fault::new(0, format!("the column {:?} of type {:?}", column.name, column.kind), expected)
}

const fn stored_kind(stored: Stored) -> Kind {
    match stored {
        Stored::U8 => Kind::Unsigned(1),
        Stored::U16 => Kind::Unsigned(2),
        Stored::U32 => Kind::Unsigned(4),
        Stored::U64 => Kind::Unsigned(8),
        Stored::I8 => Kind::Signed(1),
        Stored::I16 => Kind::Signed(2),
        Stored::I32 => Kind::Signed(4),
        Stored::I64 => Kind::Signed(8),
        Stored::F32 => Kind::Float(4),
        Stored::F64 => Kind::Float(8),
        Stored::Bool => Kind::Bool,
        Stored::Text => Kind::Text(4),
    }
}

fn stored_of(kind: Kind) -> Option<Stored> {
    const ALL: [Stored; 12] = [
        Stored::U8,
        Stored::U16,
        Stored::U32,
        Stored::U64,
        Stored::I8,
        Stored::I16,
        Stored::I32,
        Stored::I64,
        Stored::F32,
        Stored::F64,
        Stored::Bool,
        Stored::Text,
    ];
    let kind = if matches!(kind, Kind::Text(_)) { Kind::Text(4) } else { kind };
    ALL.into_iter().find(|&stored| stored_kind(stored) == kind)
}

fn how(stored: Stored, kind: AuxType) -> How {
    match (stored, kind) {
        (Stored::Text, AuxType::Scalar(_)) => How::Label,
        (Stored::Text, _) => How::Text,
        (_, AuxType::Array(_)) => How::Decimal,
        (Stored::Bool, _) => How::Bit,
        (Stored::F32, AuxType::Scalar(Scalar::Double)) => How::Widen,
        _ => How::Copy(kind.element().size()),
    }
}

impl ReadsTable {
    /// Prepares a table of this schema, whose dictionaries are `dictionaries`. `runs` are the rows of the RunInfo table;
    /// version 0 has none, but a dictionary of runs.
    ///
    /// # Errors
    /// Columns that are missing, or not of their type.
    pub fn new(schema: &Schema, dictionaries: &Dictionaries, runs: Vec<RunInfo>) -> Result<Self, Fault> {
        let top = |name: &str, kind: Kind| {
            let column = schema.column(name).ok_or_else(|| missing(name))?;
            let right = column.kind == kind && column.dictionary.is_none();
            if right { Ok(column.clone()) } else { Err(odd(column, "another type")) }
        };
        let signal = top("signal", Kind::List(4))?;
        let rows = signal.children.first().filter(|item| item.kind == Kind::Unsigned(8) && item.dictionary.is_none());
        let rows = rows.cloned().ok_or_else(|| odd(&signal, "a list of uint64"))?;
        let float = |name: &str| -> Result<Source<Vec<f32>>, Fault> {
            let (outer, leaf) = locate(schema, name).ok_or_else(|| missing(name))?;
            if leaf.kind != Kind::Float(4) {
                return Err(odd(leaf, "float"));
            }
            if outer.dictionary.is_none() {
                return Ok(Source::Plain(outer.clone()));
            }
            let mut values = Vec::new();
            dictionaries.each(outer, leaf, |array, i| {
                values.push(if array.is_valid(i) { f32::from_le_bytes(array.fixed(i)?) } else { f32::NAN });
                Ok(())
            })?;
            Ok(Source::Indexed(outer.clone(), values))
        };
        let (group, run_infos) = groups(schema, dictionaries, runs)?;
        let runs = run_infos.iter().map(Run::of).collect();
        let mut table = Self {
            read_id: top("read_id", Kind::Fixed(UUID_BYTES))?,
            signal,
            rows,
            num_samples: schema
                .column("num_samples")
                .filter(|c| c.kind == Kind::Unsigned(8) && c.dictionary.is_none())
                .cloned(),
            offset: float("calibration_offset")?,
            scale: float("calibration_scale")?,
            group,
            runs,
            aux: Vec::new(),
            wide_channel: schema
                .column(WIDE_CHANNEL)
                .filter(|c| c.kind == Kind::Unsigned(4) && c.dictionary.is_none())
                .cloned(),
            fields: Vec::new(),
            version: version(schema),
            lost: Vec::new(),
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
            let usable = !taken && !column.name.is_empty() && !column.name.contains(['\t', '\n', '\r']);
            match stored_of(column.kind).filter(|_| usable) {
                Some(stored) => {
                    let aux = AuxField::new(column.name.clone(), stored.natural());
                    self.add(aux, stored, dictionaries, column, column)?;
                }
                None => self.lost.push(column.name.clone()),
            }
        }
        if let Some((outer, leaf)) = unlabelled {
            let aux = AuxField::new(END_REASON_TEXT, AuxType::STRING);
            self.add(aux, Stored::Text, dictionaries, outer, leaf)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        field: AuxField,
        stored: Stored,
        dictionaries: &Dictionaries,
        outer: &Column,
        leaf: &Column,
    ) -> Result<(), Fault> {
        let how = if field.name == END_REASON_TEXT { How::Unlabelled } else { how(stored, field.kind) };
        let source = if outer.dictionary.is_none() {
            Source::Plain(outer.clone())
        } else {
            let mut encoded = Encoded::default();
            dictionaries.each(outer, leaf, |array, i| {
                encode(how, &field.labels, field.kind, array, i, &mut encoded.bytes)?;
                encoded.ends.push(encoded.bytes.len());
                Ok(())
            })?;
            Source::Indexed(outer.clone(), encoded)
        };
        self.aux.push(Aux { how, kind: field.kind, source, is_channel: field.name == "channel_number" });
        self.fields.push(field);
        Ok(())
    }

    /// The header that the file presents.
    pub fn header(&self) -> Header {
        Header {
            version: Version::V1_0_0,
            encoding: Encoding::Binary,
            record_press: RecordPress::None,
            signal_press: SignalPress::None,
            read_groups: (self.run_infos.len() as u32).max(1),
            attributes: attributes(&self.run_infos),
            aux: self.fields.clone(),
            data_offset: 0,
        }
    }

    /// The id of a row.
    ///
    /// # Errors
    /// When the batch has no such row.
    pub fn read_id(&self, batch: &Batch<'_>, row: usize) -> Result<[u8; UUID_BYTES], Fault> {
        batch.column(&self.read_id)?.fixed(row)
    }

    /// The ids of a batch.
    ///
    /// # Errors
    /// When the batch has no such column.
    pub fn read_ids<'a>(&self, batch: &Batch<'a>) -> Result<Array<'a>, Fault> {
        batch.column(&self.read_id)
    }

    /// The numbers of all signal rows of a batch's reads.
    ///
    /// # Errors
    /// When the batch has no such column.
    pub fn signal_rows<'a>(&self, batch: &Batch<'a>) -> Result<Array<'a>, Fault> {
        batch.array(&self.rows)
    }

    /// A row's signal.
    ///
    /// # Errors
    /// When its list leads out of the batch.
    pub fn signal(&self, batch: &Batch<'_>, row: usize) -> Result<SignalRows, Fault> {
        let lists = batch.column(&self.signal)?;
        let span = if lists.is_valid(row) { lists.span(row)? } else { 0..0 };
        let rows = self.signal_rows(batch)?.len();
        if span.end > rows {
            return Err(Fault::new(0, format!("signal rows up to {} of a batch", span.end), format!("at most {rows}")));
        }
        let samples = match &self.num_samples {
            None => None,
            Some(column) => {
                let counts = batch.column(column)?;
                if counts.is_valid(row) { Some(u64::from_le_bytes(counts.fixed(row)?)) } else { None }
            }
        };
        Ok(SignalRows { span, samples })
    }

    /// A row as a record without its signal.
    ///
    /// # Errors
    /// When its values are not there, or its run is in no table.
    pub fn record<'s>(
        &self,
        batch: &Batch<'_>,
        row: usize,
        scratch: &'s mut RecordScratch,
    ) -> Result<Record<'s>, Fault> {
        format_uuid(&self.read_id(batch, row)?, &mut scratch.id);
        scratch.aux.clear();
        for (aux, field) in self.aux.iter().zip(&self.fields) {
            if aux.is_channel
                && let Some(channel) = self.wide_channel(batch, row)?
            {
                push_decimal(i64::from(channel), &mut scratch.aux);
                continue;
            }
            aux.push(batch, row, &field.labels, &mut scratch.aux)?;
        }
        let read_group = self.group(batch, row)?;
        let run =
            self.runs.get(read_group as usize).ok_or_else(|| Fault::new(0, "a read of no run", "one of a run"))?;
        let scale = pick(&self.scale, batch, row)?;
        Ok(Record {
            read_id: &scratch.id,
            read_group,
            digitisation: run.digitisation,
            offset: f64::from(pick(&self.offset, batch, row)?),
            range: fields::range(scale, run.digitisation),
            sampling_rate: run.sampling_rate,
            signal: &[],
            aux: &scratch.aux,
        })
    }

    fn wide_channel(&self, batch: &Batch<'_>, row: usize) -> Result<Option<u32>, Fault> {
        let Some(column) = &self.wide_channel else { return Ok(None) };
        let channels = batch.column(column)?;
        let channel = if channels.is_valid(row) { u32::from_le_bytes(channels.fixed(row)?) } else { 0 };
        Ok((channel != 0).then_some(channel))
    }

    fn group(&self, batch: &Batch<'_>, row: usize) -> Result<u32, Fault> {
        match &self.group {
            Source::Indexed(column, groups) => {
                let index = index(batch, column, row)?;
                let group = index.and_then(|index| groups.get(index)).copied();
                group.ok_or_else(|| Fault::new(0, format!("run {index:?}"), format!("one of {} runs", groups.len())))
            }
            Source::Plain(column) => {
                let id = batch.column(column)?.text(row)?;
                let group = self.runs.iter().position(|run| run.acquisition_id == id);
                group.map(|group| group as u32).ok_or_else(|| no_run(id))
            }
        }
    }
}

fn no_run(id: &str) -> Fault {
    Fault::new(0, format!("the acquisition {id:?}"), "one that the RunInfo table has")
}

impl Run {
    fn of(run: &RunInfo) -> Self {
        let adc = |name| i16::try_from(run.integer(name)).unwrap_or_default();
        Self {
            acquisition_id: run.text("acquisition_id").to_owned(),
            digitisation: fields::digitisation(adc("adc_min"), adc("adc_max")),
            sampling_rate: run.integer("sample_rate") as f64,
        }
    }
}

impl Aux {
    fn push(&self, batch: &Batch<'_>, row: usize, labels: &[String], out: &mut Vec<u8>) -> Result<(), Fault> {
        match &self.source {
            Source::Plain(column) => encode(self.how, labels, self.kind, &batch.column(column)?, row, out),
            Source::Indexed(column, encoded) => match index(batch, column, row)? {
                None => {
                    push_missing(self.kind, out);
                    Ok(())
                }
                Some(index) => {
                    let bytes = encoded.get(index).ok_or_else(|| no_entry(column, index, encoded.ends.len()))?;
                    out.extend_from_slice(bytes);
                    Ok(())
                }
            },
        }
    }
}

/// The dictionary index of a row; `None` where the value is missing.
fn index(batch: &Batch<'_>, column: &Column, row: usize) -> Result<Option<usize>, Fault> {
    let indices = batch.column(column)?;
    if !indices.is_valid(row) {
        return Ok(None);
    }
    let index = indices.integer(row)?;
    usize::try_from(index).map(Some).map_err(|_| no_entry(column, usize::MAX, 0))
}

#[cold]
fn no_entry(column: &Column, index: usize, entries: usize) -> Fault {
    let found = format!("entry {index} of the dictionary of {:?}", column.name);
    Fault::new(0, found, format!("one of {entries}"))
}

fn pick(source: &Source<Vec<f32>>, batch: &Batch<'_>, row: usize) -> Result<f32, Fault> {
    match source {
        Source::Plain(column) => batch.column(column)?.fixed(row).map(f32::from_le_bytes),
        Source::Indexed(column, values) => match index(batch, column, row)? {
            None => Ok(f32::NAN),
            Some(index) => values.get(index).copied().ok_or_else(|| no_entry(column, index, values.len())),
        },
    }
}

/// Appends value `i` of `array` as an auxiliary field of `kind` stores it.
fn encode(
    how: How,
    labels: &[String],
    kind: AuxType,
    array: &Array<'_>,
    i: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if !array.is_valid(i) {
        push_missing(kind, out);
        return Ok(());
    }
    match how {
        How::Copy(1) => out.extend(array.fixed::<1>(i)?),
        How::Copy(2) => out.extend(array.fixed::<2>(i)?),
        How::Copy(4) => out.extend(array.fixed::<4>(i)?),
        How::Copy(_) => out.extend(array.fixed::<8>(i)?),
        How::Decimal => push_decimal(array.integer(i)?, out),
        How::Widen => out.extend(f64::from(f32::from_le_bytes(array.fixed(i)?)).to_le_bytes()),
        How::Bit => out.push(u8::from(array.bool(i)?)),
        How::Text => push_text(array.text(i)?, out),
        How::Label => {
            let text = array.text(i)?;
            out.push(labels.iter().position(|label| label == text).unwrap_or(0) as u8);
        }
        How::Unlabelled => {
            let text = array.text(i)?;
            push_text(if END_REASONS.contains(&text) { "" } else { text }, out);
        }
    }
    Ok(())
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn push_decimal(mut value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let negative = value < 0;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10).unsigned_abs() as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    let len = digits.len() - at + usize::from(negative);
    out.extend((len as u64).to_le_bytes());
    if negative {
        out.push(b'-');
    }
    out.extend(&digits[at..]);
}

fn push_missing(kind: AuxType, out: &mut Vec<u8>) {
    match kind {
        AuxType::Scalar(scalar) => scalar.push_missing(out),
        AuxType::Array(_) => out.extend(0_u64.to_le_bytes()),
    }
}

/// Whether a text can be the label of an enumeration.
fn is_label(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// Adds the dictionary's texts to `labels`; whether all are there.
fn add_labels(
    labels: &mut Vec<String>,
    dictionaries: &Dictionaries,
    outer: &Column,
    leaf: &Column,
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

/// Which group a row's `run_info` stands for, and the groups.
fn groups(
    schema: &Schema,
    dictionaries: &Dictionaries,
    mut runs: Vec<RunInfo>,
) -> Result<(Source<Vec<u32>>, Vec<RunInfo>), Fault> {
    let column = schema.column("run_info").ok_or_else(|| missing("run_info"))?;
    let mut groups = Vec::new();
    match (column.kind, column.dictionary) {
        (Kind::Text(_), None) => return Ok((Source::Plain(column.clone()), runs)),
        (Kind::Text(_), Some(_)) => dictionaries.each(column, column, |array, i| {
            let id = if array.is_valid(i) { array.text(i)? } else { "" };
            let group = runs.iter().position(|run| run.text("acquisition_id") == id);
            groups.push(group.ok_or_else(|| no_run(id))? as u32);
            Ok(())
        })?,
        (Kind::Struct, Some(_)) => {
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
    Ok((Source::Indexed(column.clone(), groups), runs))
}

/// The version of the table, from the columns that came with each.
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
