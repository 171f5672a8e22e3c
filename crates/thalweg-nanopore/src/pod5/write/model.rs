//! Reads of any format as rows of POD5, and what of them POD5 cannot hold.

use std::collections::HashMap;

use arrow_array::new_empty_array;
use arrow_schema::DataType;
use thalweg_io::Fault;

use super::column::{ColumnValue, retyped, type_of};
use super::reads::{More, ReadsRow};
use crate::losses::{Loss, Losses};
use crate::pod5::fields::{
    COLUMNS_ATTRIBUTE, END_REASON_TEXT, END_REASONS, FIELDS, PRIMARY, RUN_INFO, StoredType,
    WIDE_CHANNEL, calibration_scale, range,
};
use crate::pod5::run_info::attributes;
use crate::pod5::{RunInfo, RunValue, format_uuid, parse_uuid};
use crate::record::{AuxField, AuxType, AuxValue, Header, Record, Scalar};

/// Where an auxiliary field goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuxColumn {
    /// A column of [`FIELDS`].
    Field(usize),
    /// A column that POD5 does not define.
    More(usize),
    /// The end reason's text.
    EndReason,
    Nowhere,
}

/// What the runs of a file say of their converters and clocks.
#[derive(Debug, Clone, PartialEq)]
struct RunClock {
    info: RunInfo,
    digitisation: f64,
    sampling_rate: f64,
}

/// How the reads of one header become rows. Converters and clocks that the header does not tell are
/// those of each group's first read: see [`Runs::note`].
#[derive(Debug, Clone)]
pub struct Mapping {
    places: Vec<(AuxField, AuxColumn)>,
    more: Vec<More>,
    groups: Vec<RunInfo>,
    /// Of reads that do not say it themselves.
    pore_types: Vec<Option<Box<str>>>,
    has_reasons: bool,
    /// What stands in columns that the header has no field for.
    absent: [ColumnValue; FIELDS.len()],
    /// What of the header POD5 cannot hold, in words.
    lost: Vec<String>,
}

/// Runs are numbered by an `int16`.
const MOST_RUNS: u32 = 1 << 15;

/// Where a column of [`FIELDS`] stands there.
fn field_at(column: &str) -> usize {
    FIELDS.iter().position(|field| field.column == column).unwrap_or(usize::MAX)
}

/// What MinKNOW writes where it does not know better.
pub(super) const NO_PORE_TYPE: &str = "not_set";

/// Names that a column of another meaning has.
fn is_taken(name: &str) -> bool {
    PRIMARY.contains(&name)
        || name == WIDE_CHANNEL
        || FIELDS.iter().any(|field| field.column == name)
}

/// The column that holds any value of a field; `None` where Arrow or POD5's readers have no such
/// type.
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

/// Bytes of a value of fixed width at most.
const WIDEST: i32 = 1 << 12;

/// Longer names of types than this are nobody's.
const LONGEST_TYPE: usize = 200;

/// The types that a header names for columns that POD5 does not define.
fn types(header: &Header) -> HashMap<String, DataType> {
    let texts =
        (0..header.read_groups).filter_map(|group| header.attribute(COLUMNS_ATTRIBUTE, group));
    let maps = texts.filter_map(|text| serde_json::from_str::<HashMap<String, String>>(text).ok());
    let kinds = maps.flatten().filter(|(_, kind)| kind.len() <= LONGEST_TYPE);
    kinds.filter_map(|(name, kind)| Some((name, kind.parse().ok()?))).collect()
}

/// Whether a column of a type holds these values.
fn fits(stored: StoredType, kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(index, texts) => {
            return stored == StoredType::Text
                && (&**index, &**texts) == (&DataType::Int16, &DataType::Utf8);
        }
        // A missing value takes as many bytes as another.
        DataType::FixedSizeBinary(width) if !(1..=WIDEST).contains(width) => return false,
        _ => {}
    }
    retyped(new_empty_array(&type_of(stored)), kind).is_ok_and(|made| made.data_type() == kind)
}

impl Mapping {
    /// Prepares to map reads of `header`.
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
        let mut more = Vec::new();
        let types = types(header);
        let place = |field: &AuxField| {
            let known = FIELDS.iter().position(|known| known.aux == field.name);
            let place = match known {
                Some(i) if FIELDS[i].kind == field.kind => AuxColumn::Field(i),
                _ if field.name == END_REASON_TEXT && field.kind == AuxType::STRING => {
                    AuxColumn::EndReason
                }
                None if !is_taken(&field.name) => {
                    natural(field.kind).map_or(AuxColumn::Nowhere, |stored| {
                        let arrow =
                            types.get(&field.name).filter(|kind| fits(stored, kind)).cloned();
                        more.push(More { name: field.name.clone(), stored, arrow });
                        AuxColumn::More(more.len() - 1)
                    })
                }
                _ => AuxColumn::Nowhere,
            };
            if place == AuxColumn::Nowhere {
                let why = match known {
                    Some(i) => format!("POD5 has it as {}", FIELDS[i].aux_field().type_name()),
                    None if is_taken(&field.name) => {
                        "POD5 has another column of that name".to_owned()
                    }
                    None => "POD5 has no column of that type".to_owned(),
                };
                lost.push(format!(
                    "auxiliary field {} of type {}: {why}",
                    field.name,
                    field.type_name()
                ));
            }
            (field.clone(), place)
        };
        let places: Vec<(AuxField, AuxColumn)> = header.aux.iter().map(place).collect();
        let groups: Vec<RunInfo> =
            (0..header.read_groups).map(|group| RunInfo::of_group(header, group)).collect();
        lost.extend(lost_attributes(header, &groups));
        lost.extend(lost_groups(&groups));
        let has_pores = header.aux.iter().any(|field| field.name == "pore_type");
        let pore_type = |group| {
            (!has_pores)
                .then(|| header.attribute("pore_type", group).unwrap_or(NO_PORE_TYPE).into())
        };
        let pore_types = (0..header.read_groups).map(pore_type).collect();
        let reason = AuxColumn::Field(field_at("end_reason"));
        let has_reasons = header.aux.iter().any(|field| field.name == END_REASON_TEXT)
            || places.iter().any(|(_, place)| *place == reason);
        let mut absent: [ColumnValue; FIELDS.len()] = std::array::from_fn(absent);
        for (_, place) in &places {
            if let AuxColumn::Field(i) = *place {
                absent[i] = ColumnValue::Missing;
            }
        }
        Ok(Self { places, more, groups, pore_types, has_reasons, absent, lost })
    }

    /// What of the header POD5 cannot hold: fields, attributes and read groups, in words.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Whether there is a column for the auxiliary field of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.places.iter().any(|(field, place)| field.name == name && *place != AuxColumn::Nowhere)
    }

    /// The columns of the Reads table that POD5 does not define.
    pub fn more(&self) -> &[More] {
        &self.more
    }

    /// A record's row, and what of it is lost.
    ///
    /// # Errors
    /// When the read id is no UUID, or an auxiliary field is damaged.
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
            more: vec![ColumnValue::Missing; self.more.len()],
        };
        let end_reason = field_at("end_reason");
        for (value, (field, place)) in record.aux_values(header).zip(&self.places) {
            let (_, value) = value?;
            match *place {
                AuxColumn::Field(i) => row.fields[i] = known(i, field, value, &mut losses),
                AuxColumn::More(i) => row.more[i] = plain(value, &mut losses),
                AuxColumn::EndReason => match plain(value, &mut losses) {
                    ColumnValue::Missing => {}
                    text => row.fields[end_reason] = text,
                },
                AuxColumn::Nowhere => {}
            }
        }
        self.complete(&mut row, &mut losses);
        Ok((row, losses))
    }

    /// What other fields tell of those that are missing.
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
        }
        let pore = field_at("pore_type");
        if row.fields[pore] == ColumnValue::Missing
            && let Some(Some(text)) = self.pore_types.get(row.run_info)
        {
            row.fields[pore] = ColumnValue::Text(text.clone());
        }
    }

    /// The runs, to be completed from the reads in their order.
    pub fn runs(&self) -> Runs {
        Runs {
            runs: self
                .groups
                .iter()
                .map(|info| RunClock { info: info.clone(), digitisation: 0.0, sampling_rate: 0.0 })
                .collect(),
        }
    }
}

/// The runs of a file that is being written.
#[derive(Debug, Clone)]
pub struct Runs {
    runs: Vec<RunClock>,
}

impl Runs {
    /// Takes note of a read's converter and clock; what of them its run cannot hold.
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

impl RunClock {
    /// Takes the converter and the clock of the first read, where the header's do not agree with
    /// them.
    fn begin(&mut self, digitisation: f64, sampling_rate: f64) {
        let of = |info: &RunInfo| (info.integer("adc_min"), info.integer("adc_max"));
        let (low, high) = of(&self.info);
        if (high - low + 1) as f64 != digitisation {
            // Flongle and MinION digitise symmetrically, PromethION from zero: by their number of
            // steps.
            let steps =
                if (1.0..=65_536.0).contains(&digitisation) { digitisation as i64 } else { 1 };
            let low = if steps == PROMETHION_STEPS { 0 } else { -(steps / 2) };
            self.set("adc_min", low);
            self.set("adc_max", low + steps - 1);
        }
        if self.info.integer("sample_rate") as f64 != sampling_rate {
            // Casts saturate.
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

/// Digitisation of a PromethION.
const PROMETHION_STEPS: i64 = 2048;

/// What a column of [`FIELDS`] holds where nobody ever knew its values: what the POD5 library puts
/// there when it brings files from before the column up to date. Its readers rely on numbers being
/// there.
fn absent(i: usize) -> ColumnValue {
    match FIELDS.get(i).map(|field| (field.column, field.stored)) {
        Some((_, StoredType::U8 | StoredType::U16 | StoredType::U32 | StoredType::U64)) => {
            ColumnValue::Unsigned(0)
        }
        Some(("time_since_mux_change", _)) => ColumnValue::Float(0.0),
        _ => ColumnValue::Missing,
    }
}

/// Whether something other than the signal ends a read for this reason, as the POD5 library has it.
fn is_forced(reason: &str) -> bool {
    !matches!(reason, "unknown" | "signal_positive" | "signal_negative")
}

/// The value of a column of [`FIELDS`].
fn known(i: usize, field: &AuxField, value: AuxValue<'_>, losses: &mut Losses) -> ColumnValue {
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
        // As its bits: see `Field`.
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
        (_, value) => return plain(value, losses),
    };
    value.unwrap_or_else(|| {
        losses.add(loss);
        ColumnValue::Missing
    })
}

/// A value as it is.
fn plain(value: AuxValue<'_>, losses: &mut Losses) -> ColumnValue {
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
        // Missing, or of a type that no column was made for.
        AuxValue::Missing | AuxValue::Char(_) | AuxValue::Enum(_) => ColumnValue::Missing,
        AuxValue::Array(items) => ColumnValue::List(items.bytes().into()),
    }
}

/// A number from 1 to 2^32 - 1 as it is usually written.
fn decimal(text: &[u8]) -> Option<u64> {
    if !text.first()?.is_ascii_digit() || text[0] == b'0' {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse::<u32>().ok().map(u64::from)
}

/// Attributes that do not come back from the runs made of them.
fn lost_attributes(header: &Header, groups: &[RunInfo]) -> Vec<String> {
    // Reads complete these.
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

/// Groups that readers cannot tell apart: reads name their run by its acquisition id.
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
