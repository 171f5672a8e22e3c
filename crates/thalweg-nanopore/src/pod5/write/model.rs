//! Converting reads of any format to rows of POD5, and listing content that POD5 cannot hold.

use std::collections::{BTreeMap, HashMap};

use arrow_array::new_empty_array;
use arrow_schema::DataType;
use thalweg_io::Fault;

use super::column::{ColumnValue, retyped, type_of};
use super::reads::{ExtraColumn, ReadsRow};
use crate::losses::{Loss, Losses};
use crate::pod5::fields::{
    COLUMNS_ATTRIBUTE, END_REASON_TEXT, END_REASONS, FIELDS, PRIMARY, RUN_INFO, StoredType,
    WIDE_CHANNEL, calibration_scale, range,
};
use crate::pod5::run_info::attributes;
use crate::pod5::{RunInfo, RunValue, format_uuid, parse_uuid};
use crate::record::{AuxField, AuxType, AuxValue, Header, Record, Scalar};

/// The destination of an auxiliary field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuxColumn {
    /// A column of [`FIELDS`].
    Field(usize),
    /// A column that POD5 does not define.
    Extra(usize),
    /// The column of end reasons, which takes the text of this field.
    EndReason,
    /// No column: the field is lost.
    Nowhere,
}

/// A run, with the digitisation and sampling rate that its columns store. Both are 0 before the
/// first read.
#[derive(Debug, Clone, PartialEq)]
struct CalibratedRun {
    info: RunInfo,
    digitisation: f64,
    sampling_rate: f64,
}

/// Converts the reads of one header to rows. A digitisation or sampling rate that the header does
/// not have is taken from the first read of each group: see [`Runs::note`].
#[derive(Debug, Clone)]
pub struct Mapping {
    places: Vec<(AuxField, AuxColumn)>,
    extra_columns: Vec<ExtraColumn>,
    groups: Vec<RunInfo>,
    /// For each read group, the pore type of reads without one. `None` if reads have a field for
    /// it.
    pore_types: Vec<Option<Box<str>>>,
    /// Whether reads have an end reason.
    has_reasons: bool,
    /// The initial values of a row's fields: missing, or a default if the header has no such field.
    absent: [ColumnValue; FIELDS.len()],
    /// Descriptions of the header's content that POD5 cannot hold.
    lost: Vec<String>,
}

/// Most runs of a file. Runs are numbered by an `int16`.
const MOST_RUNS: u32 = 1 << 15;

/// The index of a column in [`FIELDS`].
fn field_at(column: &str) -> usize {
    FIELDS.iter().position(|field| field.column == column).unwrap_or(usize::MAX)
}

/// The pore type that MinKNOW writes if it is unknown.
pub(super) const NO_PORE_TYPE: &str = "not_set";

/// Whether POD5 has a column of this name.
fn is_taken(name: &str) -> bool {
    PRIMARY.contains(&name)
        || name == WIDE_CHANNEL
        || FIELDS.iter().any(|field| field.column == name)
}

/// The type of a column that holds every value of a field; `None` if Arrow or POD5's readers have
/// no such type.
fn natural(kind: AuxType) -> Option<StoredType> {
    Some(match kind {
        AuxType::Array(Scalar::Char) => StoredType::Text,
        AuxType::Array(Scalar::Enum) => return None,
        AuxType::Array(items) => StoredType::List(items),
        AuxType::Scalar(scalar) => match scalar {
            Scalar::Int8 => StoredType::I8,
            Scalar::Int16 => StoredType::I16,
            Scalar::Int32 => StoredType::I32,
            Scalar::Int64 => StoredType::I64,
            Scalar::Uint8 => StoredType::U8,
            Scalar::Uint16 => StoredType::U16,
            Scalar::Uint32 => StoredType::U32,
            Scalar::Uint64 => StoredType::U64,
            Scalar::Float => StoredType::F32,
            Scalar::Double => StoredType::F64,
            Scalar::Char | Scalar::Enum => return None,
        },
    })
}

/// Most bytes of a binary value of fixed width.
const WIDEST: i32 = 1 << 12;

/// Longest name of a type that is parsed. No type of these columns has a longer name.
const LONGEST_TYPE: usize = 200;

/// The Arrow types that a header has for columns that POD5 does not define, by column name. What is
/// no such type is described in `lost`.
fn types(header: &Header, lost: &mut Vec<String>) -> HashMap<String, DataType> {
    let mut types = HashMap::new();
    for group in 0..header.read_groups {
        let Some(text) = header.attribute(COLUMNS_ATTRIBUTE, group) else { continue };
        let mut lose = |what: &str, expected: &str| {
            lost.push(format!(
                "attribute {COLUMNS_ATTRIBUTE} of read group {group} ({what}): expected {expected}"
            ));
        };
        let Ok(kinds) = serde_json::from_str::<BTreeMap<String, String>>(text) else {
            lose(text, "JSON, names of columns and their types");
            continue;
        };
        for (name, kind) in kinds {
            let known = if kind.len() <= LONGEST_TYPE { kind.parse().ok() } else { None };
            match known {
                Some(known) => {
                    types.insert(name, known);
                }
                None => lose(&kind, "a type of Arrow"),
            }
        }
    }
    types
}

/// Whether a column of the type `kind` can hold values of this stored type.
fn fits(stored: StoredType, kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(index, texts) => {
            return stored == StoredType::Text
                && (&**index, &**texts) == (&DataType::Int16, &DataType::Utf8);
        }
        // A missing value also takes `width` bytes, so that the width is limited.
        DataType::FixedSizeBinary(width) if !(1..=WIDEST).contains(width) => return false,
        _ => {}
    }
    retyped(new_empty_array(&type_of(stored)), kind).is_ok_and(|made| made.data_type() == kind)
}

/// The destination of an auxiliary field. A column that POD5 does not define is added to `extra`.
fn place(
    field: &AuxField,
    types: &HashMap<String, DataType>,
    extra: &mut Vec<ExtraColumn>,
) -> AuxColumn {
    match FIELDS.iter().position(|known| known.aux == field.name) {
        Some(i) if FIELDS[i].kind == field.kind => AuxColumn::Field(i),
        _ if field.name == END_REASON_TEXT && field.kind == AuxType::STRING => AuxColumn::EndReason,
        None if !is_taken(&field.name) => {
            natural(field.kind).map_or(AuxColumn::Nowhere, |stored| {
                let arrow = types.get(&field.name).filter(|kind| fits(stored, kind)).cloned();
                extra.push(ExtraColumn { name: field.name.clone(), stored, arrow });
                AuxColumn::Extra(extra.len() - 1)
            })
        }
        _ => AuxColumn::Nowhere,
    }
}

/// Describes an auxiliary field that has no column, and why.
fn lost_field(field: &AuxField) -> String {
    let why = match FIELDS.iter().find(|known| known.aux == field.name) {
        Some(known) => format!("POD5 has it as {}", known.aux_field().type_name()),
        None if is_taken(&field.name) => "POD5 has another column of that name".to_owned(),
        None => "POD5 has no column of that type".to_owned(),
    };
    format!("auxiliary field {} of type {}: {why}", field.name, field.type_name())
}

/// For each read group, the pore type of reads without one. `None` if reads have a field for it.
fn pore_types(header: &Header) -> Vec<Option<Box<str>>> {
    let has_pores = header.aux.iter().any(|field| field.name == "pore_type");
    let pore_type = |group| {
        (!has_pores).then(|| header.attribute("pore_type", group).unwrap_or(NO_PORE_TYPE).into())
    };
    (0..header.read_groups).map(pore_type).collect()
}

impl Mapping {
    /// Prepares to convert reads of `header`.
    ///
    /// # Errors
    /// When there are more read groups than POD5 can number.
    pub fn new(header: &Header) -> Result<Self, Fault> {
        if header.read_groups > MOST_RUNS {
            let found = format!("{} read groups", header.read_groups);
            return Err(Fault::new(
                0,
                found,
                format!("at most {MOST_RUNS}, as many as POD5 can number"),
            ));
        }
        let mut lost = Vec::new();
        let mut extra_columns = Vec::new();
        let types = types(header, &mut lost);
        let mut places = Vec::with_capacity(header.aux.len());
        for field in &header.aux {
            let place = place(field, &types, &mut extra_columns);
            if place == AuxColumn::Nowhere {
                lost.push(lost_field(field));
            }
            places.push((field.clone(), place));
        }
        let groups: Vec<RunInfo> =
            (0..header.read_groups).map(|group| RunInfo::of_group(header, group)).collect();
        lost.extend(lost_attributes(header, &groups));
        lost.extend(lost_groups(&groups));
        let reason = AuxColumn::Field(field_at("end_reason"));
        let has_reasons = header.aux.iter().any(|field| field.name == END_REASON_TEXT)
            || places.iter().any(|(_, place)| *place == reason);
        let mut absent: [ColumnValue; FIELDS.len()] = std::array::from_fn(absent);
        for (_, place) in &places {
            if let AuxColumn::Field(i) = *place {
                absent[i] = ColumnValue::Missing;
            }
        }
        let pore_types = pore_types(header);
        Ok(Self { places, extra_columns, groups, pore_types, has_reasons, absent, lost })
    }

    /// Descriptions of the header's fields, attributes and read groups that POD5 cannot hold.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Whether the auxiliary field of this name has a column.
    pub fn holds(&self, name: &str) -> bool {
        self.places.iter().any(|(field, place)| field.name == name && *place != AuxColumn::Nowhere)
    }

    /// The value of a field in reads of files that lack it: what its column has in a file without
    /// the field.
    pub(crate) fn absent(&self, field: &AuxField) -> AuxValue<'static> {
        let place = self.places.iter().find(|(known, _)| known.name == field.name);
        let Some((_, AuxColumn::Field(i))) = place else { return AuxValue::Missing };
        let label = |label| field.code(label).map_or(AuxValue::Missing, AuxValue::Enum);
        match (absent(*i), field.kind) {
            (ColumnValue::Unsigned(_) | ColumnValue::Float(_), AuxType::Scalar(scalar)) => {
                scalar.zero()
            }
            (_, AuxType::STRING) if field.name == "pore_type" => {
                AuxValue::String(NO_PORE_TYPE.as_bytes())
            }
            (_, AuxType::Scalar(Scalar::Enum)) if field.name == "pore_type" => label(NO_PORE_TYPE),
            (_, AuxType::Scalar(Scalar::Enum)) if field.name == "end_reason" => label("unknown"),
            _ => AuxValue::Missing,
        }
    }

    /// The columns of the Reads table that POD5 does not define.
    pub fn extra_columns(&self) -> &[ExtraColumn] {
        &self.extra_columns
    }

    /// The row of a record, and the values that it loses.
    ///
    /// # Errors
    /// When the read id is not a UUID in lower case, or an auxiliary field is damaged.
    pub fn row(&self, record: &Record<'_>, header: &Header) -> Result<(ReadsRow, Losses), Fault> {
        let read_id = parse_uuid(record.read_id).filter(|id| {
            let mut text = String::new();
            format_uuid(id, &mut text);
            text == record.read_id
        });
        let read_id = read_id.ok_or_else(|| {
            let expected = "a UUID in lower case with hyphens: POD5 stores no other read ids";
            Fault::new(0, format!("the read id {:?}", record.read_id), expected)
        })?;
        let mut losses = Losses::default();
        let offset = record.offset as f32;
        if f64::from(offset).to_bits() != record.offset.to_bits() && !record.offset.is_nan() {
            losses.add(Loss::Offset);
        }
        let scale = calibration_scale(record.range, record.digitisation);
        if range(scale, record.digitisation).to_bits() != record.range.to_bits()
            && !record.range.is_nan()
        {
            losses.add(Loss::Range);
        }
        let mut row = ReadsRow {
            read_id,
            run_info: record.read_group as usize,
            calibration_offset: offset,
            calibration_scale: scale,
            fields: self.absent.clone(),
            extra: vec![ColumnValue::Missing; self.extra_columns.len()],
        };
        let end_reason = field_at("end_reason");
        for (value, (field, place)) in record.aux_values(header).zip(&self.places) {
            let (_, value) = value?;
            match *place {
                AuxColumn::Field(i) => row.fields[i] = field_value(i, field, value, &mut losses),
                AuxColumn::Extra(i) => row.extra[i] = same_value(value, &mut losses),
                AuxColumn::EndReason => match same_value(value, &mut losses) {
                    ColumnValue::Missing => {}
                    text => row.fields[end_reason] = text,
                },
                AuxColumn::Nowhere => {}
            }
        }
        self.complete(&mut row, &mut losses);
        Ok((row, losses))
    }

    /// Fills in missing values that follow from other fields, and replaces end reasons that POD5
    /// does not define by `unknown`.
    fn complete(&self, row: &mut ReadsRow, losses: &mut Losses) {
        let reason = field_at("end_reason");
        let forced = field_at("end_reason_forced");
        let known = match &row.fields[reason] {
            ColumnValue::Text(text) => END_REASONS.contains(&&**text),
            _ => false,
        };
        if !known {
            if self.has_reasons {
                losses.add(Loss::EndReason);
            }
            row.fields[reason] = ColumnValue::Text("unknown".into());
        }
        if row.fields[forced] == ColumnValue::Missing
            && let ColumnValue::Text(text) = &row.fields[reason]
        {
            row.fields[forced] = ColumnValue::Unsigned(u64::from(is_forced(text)));
            losses.complete();
        }
        let pore = field_at("pore_type");
        if row.fields[pore] == ColumnValue::Missing
            && let Some(Some(text)) = self.pore_types.get(row.run_info)
        {
            row.fields[pore] = ColumnValue::Text(text.clone());
            losses.complete();
        }
    }

    /// The runs of the header. The caller completes them with [`Runs::note`] for each read, in
    /// order.
    pub fn runs(&self) -> Runs {
        Runs {
            runs: self
                .groups
                .iter()
                .map(|info| CalibratedRun {
                    info: info.clone(),
                    digitisation: 0.0,
                    sampling_rate: 0.0,
                })
                .collect(),
        }
    }
}

/// The runs of a file that is being written.
#[derive(Debug, Clone)]
pub struct Runs {
    runs: Vec<CalibratedRun>,
}

impl Runs {
    /// Completes a run from a read's digitisation and sampling rate. Returns losses if they differ
    /// from those of the run.
    pub fn note(&mut self, run: usize, digitisation: f64, sampling_rate: f64) -> Losses {
        let mut losses = Losses::default();
        let Some(run) = self.runs.get_mut(run) else { return losses };
        if run.digitisation == 0.0 {
            run.begin(digitisation, sampling_rate);
        }
        if run.digitisation.to_bits() != digitisation.to_bits() {
            losses.add(Loss::Digitisation);
        }
        if run.sampling_rate.to_bits() != sampling_rate.to_bits() {
            losses.add(Loss::SamplingRate);
        }
        losses
    }

    /// The rows of the RunInfo table.
    pub fn into_infos(self) -> Vec<RunInfo> {
        self.runs.into_iter().map(|run| run.info).collect()
    }
}

impl CalibratedRun {
    /// Takes the digitisation and the sampling rate of the first read, if those of the header
    /// differ.
    fn begin(&mut self, digitisation: f64, sampling_rate: f64) {
        let of = |info: &RunInfo| (info.integer("adc_min"), info.integer("adc_max"));
        let (low, high) = of(&self.info);
        if (high - low + 1) as f64 != digitisation {
            // The range of a Flongle or MinION is symmetric about zero. That of a PromethION starts
            // at zero. The number of steps tells them apart.
            let steps =
                if (1.0..=65_536.0).contains(&digitisation) { digitisation as i64 } else { 1 };
            let low = if steps == PROMETHION_STEPS { 0 } else { -(steps / 2) };
            self.set("adc_min", low);
            self.set("adc_max", low + steps - 1);
        }
        if self.info.integer("sample_rate") as f64 != sampling_rate {
            // The cast saturates.
            self.set("sample_rate", i64::from(sampling_rate.round() as u16));
        }
        let (low, high) = of(&self.info);
        self.digitisation = (high - low + 1) as f64;
        self.sampling_rate = self.info.integer("sample_rate") as f64;
    }

    fn set(&mut self, name: &str, value: i64) {
        match self.info.columns.iter_mut().find(|(column, _)| column == name) {
            Some((_, old)) => *old = RunValue::Integer(value),
            None => self.info.columns.push((name.to_owned(), RunValue::Integer(value))),
        }
    }
}

/// The digitisation of a PromethION.
const PROMETHION_STEPS: i64 = 2048;

/// The default of a column of [`FIELDS`] if the header has no field for it. These are the values
/// that the POD5 library writes when it migrates files that are older than the column. Its readers
/// require the numbers to be present.
fn absent(i: usize) -> ColumnValue {
    match FIELDS.get(i).map(|field| (field.column, field.stored)) {
        Some((_, StoredType::U8 | StoredType::U16 | StoredType::U32 | StoredType::U64)) => {
            ColumnValue::Unsigned(0)
        }
        Some(("time_since_mux_change", _)) => ColumnValue::Float(0.0),
        _ => ColumnValue::Missing,
    }
}

/// Whether something other than the signal ends a read with this reason. The POD5 library uses the
/// same rule.
fn is_forced(reason: &str) -> bool {
    !matches!(reason, "unknown" | "signal_positive" | "signal_negative")
}

/// Converts an auxiliary value for column `i` of [`FIELDS`].
fn field_value(
    i: usize,
    field: &AuxField,
    value: AuxValue<'_>,
    losses: &mut Losses,
) -> ColumnValue {
    let stored = FIELDS.get(i).map(|field| field.stored);
    let (value, loss) = match (stored, value) {
        (_, AuxValue::Missing) => return ColumnValue::Missing,
        (Some(StoredType::U16), AuxValue::String(text)) => {
            (decimal(text).map(ColumnValue::Unsigned), Loss::Channel)
        }
        (Some(StoredType::F32), AuxValue::Double(value)) => {
            if f64::from(value as f32).to_bits() != value.to_bits() {
                losses.add(Loss::Current);
            }
            (Some(ColumnValue::Float(value as f32)), Loss::Current)
        }
        // The bits are kept: see `Field`.
        (Some(StoredType::U32), AuxValue::Int32(value)) => {
            (Some(ColumnValue::Unsigned(u64::from(value.cast_unsigned()))), Loss::Value)
        }
        (Some(StoredType::Text), AuxValue::Enum(code)) => {
            (field.label(code).map(|label| ColumnValue::Text(label.into())), Loss::EndReason)
        }
        (Some(StoredType::Bool), AuxValue::Uint8(value @ 0..=1)) => {
            (Some(ColumnValue::Unsigned(u64::from(value))), Loss::Value)
        }
        (Some(StoredType::Bool), _) => (None, Loss::Value),
        (_, value) => return same_value(value, losses),
    };
    value.unwrap_or_else(|| {
        losses.add(loss);
        ColumnValue::Missing
    })
}

/// Converts an auxiliary value to a column value of the same type.
fn same_value(value: AuxValue<'_>, losses: &mut Losses) -> ColumnValue {
    match value {
        AuxValue::Int8(n) => ColumnValue::Signed(n.into()),
        AuxValue::Int16(n) => ColumnValue::Signed(n.into()),
        AuxValue::Int32(n) => ColumnValue::Signed(n.into()),
        AuxValue::Int64(n) => ColumnValue::Signed(n),
        AuxValue::Uint8(n) => ColumnValue::Unsigned(n.into()),
        AuxValue::Uint16(n) => ColumnValue::Unsigned(n.into()),
        AuxValue::Uint32(n) => ColumnValue::Unsigned(n.into()),
        AuxValue::Uint64(n) => ColumnValue::Unsigned(n),
        AuxValue::Float(n) => ColumnValue::Float(n),
        AuxValue::Double(n) => ColumnValue::Double(n),
        AuxValue::String(text) => std::str::from_utf8(text).map_or_else(
            |_| {
                losses.add(Loss::Text);
                ColumnValue::Missing
            },
            |text| ColumnValue::Text(text.into()),
        ),
        // `natural` makes no column for the other types.
        AuxValue::Missing | AuxValue::Char(_) | AuxValue::Enum(_) => ColumnValue::Missing,
        AuxValue::Array(items) => ColumnValue::List(items.bytes().into()),
    }
}

/// Parses a decimal number from 1 to 2^32 - 1 without leading zeros or sign.
fn decimal(text: &[u8]) -> Option<u64> {
    if !text.first()?.is_ascii_digit() || text[0] == b'0' {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse::<u32>().ok().map(u64::from)
}

/// Describes the attributes that the runs do not preserve.
fn lost_attributes(header: &Header, groups: &[RunInfo]) -> Vec<String> {
    // These are completed from reads, or kept as the types of columns.
    const COMPLETED: [&str; 4] = ["adc_min", "adc_max", "sample_rate", COLUMNS_ATTRIBUTE];
    let back = attributes(groups);
    let back: HashMap<&str, &[Option<String>]> = back
        .iter()
        .map(|attribute| (attribute.name.as_str(), attribute.values.as_slice()))
        .collect();
    let mut lost = Vec::new();
    for attribute in
        header.attributes.iter().filter(|attribute| !COMPLETED.contains(&attribute.name.as_str()))
    {
        for (group, value) in attribute.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let again =
                back.get(attribute.name.as_str()).and_then(|values| values.get(group)?.as_deref());
            if again != Some(value) {
                let column = RUN_INFO.iter().any(|(name, _)| *name == attribute.name);
                let why = if column {
                    "POD5 has a column of that name and another type"
                } else {
                    "POD5 has no place for it"
                };
                lost.push(format!(
                    "attribute {} of read group {group} ({value}): {why}",
                    attribute.name
                ));
            }
        }
    }
    lost
}

/// Describes the groups that readers cannot distinguish. Reads refer to their run by acquisition
/// id.
fn lost_groups(groups: &[RunInfo]) -> Vec<String> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut lost = Vec::new();
    for (group, run) in groups.iter().enumerate() {
        let id = run.text("acquisition_id");
        if let Some(other) = first.get(id) {
            lost.push(format!(
                "read group {group}: its run id {id:?} is that of read group {other}, \
                 where its reads go"
            ));
        } else {
            first.insert(id, group);
        }
    }
    lost
}
