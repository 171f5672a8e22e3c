//! How POD5's columns and the fields of a read correspond: one table for reading and writing.
//!
//! Names and types on the side of the read are those that blue-crab gives a BLOW5 file made from a
//! POD5 file, in its order; columns that it drops follow under their POD5 names. Column names and
//! types are POD5's, "Table Schema" of its specification, with version 0's structs flattened as
//! version 3 does.

use crate::record::{AuxField, AuxType, Scalar};

/// What a column holds. Text may be stored plain or through a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredType {
    /// `uint8`
    U8,
    /// `uint16`
    U16,
    /// `uint32`
    U32,
    /// `uint64`
    U64,
    /// `int8`
    I8,
    /// `int16`
    I16,
    /// `int32`
    I32,
    /// `int64`
    I64,
    /// `float`
    F32,
    /// `double`
    F64,
    /// `bool`, a bit a value
    Bool,
    /// `utf8`
    Text,
    /// `list` of numbers
    List(Scalar),
}

impl StoredType {
    /// The type of an auxiliary field that holds any value of this one: what a column that is in no
    /// table becomes.
    pub(crate) const fn natural(self) -> AuxType {
        AuxType::Scalar(match self {
            Self::U8 | Self::Bool => Scalar::Uint8,
            Self::U16 => Scalar::Uint16,
            Self::U32 => Scalar::Uint32,
            Self::U64 => Scalar::Uint64,
            Self::I8 => Scalar::Int8,
            Self::I16 => Scalar::Int16,
            Self::I32 => Scalar::Int32,
            Self::I64 => Scalar::Int64,
            Self::F32 => Scalar::Float,
            Self::F64 => Scalar::Double,
            Self::Text => return AuxType::STRING,
            Self::List(items) => return AuxType::Array(items),
        })
    }
}

/// A column of the Reads table that becomes an auxiliary field.
///
/// The pair of types says how a value changes: `uint16` to `char*` is written in decimal, `float`
/// to `double` widened, `utf8` to `enum` is the label's code; all others keep their bytes
/// ([`StoredType::Bool`] takes one, 0 or 1), so that a `read_number` of 2^31 or more is negative
/// as an `int32_t` and comes back as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The column.
    pub column: &'static str,
    /// What it holds.
    pub stored: StoredType,
    /// The version of the Reads table that brought it.
    pub since: u8,
    /// The auxiliary field.
    pub aux: &'static str,
    /// Its type. [`Scalar::Enum`] has the labels of [`END_REASONS`] first.
    pub kind: AuxType,
}

const fn field(
    column: &'static str,
    stored: StoredType,
    since: u8,
    aux: &'static str,
    kind: AuxType,
) -> Field {
    Field { column, stored, since, aux, kind }
}

const fn same(column: &'static str, stored: StoredType, since: u8) -> Field {
    field(column, stored, since, column, stored.natural())
}

/// The columns that become auxiliary fields, in the order of those.
///
/// The others are the read's own: `read_id`, `signal` (the numbers of its rows in the Signal
/// table), `num_samples`, `calibration_offset` and `calibration_scale` (see [`range`]), `run_info`
/// (the read group), and [`WIDE_CHANNEL`].
pub const FIELDS: [Field; 18] = [
    field("channel", StoredType::U16, 0, "channel_number", AuxType::STRING),
    field("median_before", StoredType::F32, 0, "median_before", AuxType::Scalar(Scalar::Double)),
    field("read_number", StoredType::U32, 0, "read_number", AuxType::Scalar(Scalar::Int32)),
    field("well", StoredType::U8, 0, "start_mux", AuxType::Scalar(Scalar::Uint8)),
    field("start", StoredType::U64, 0, "start_time", AuxType::Scalar(Scalar::Uint64)),
    field("end_reason", StoredType::Text, 0, "end_reason", AuxType::Scalar(Scalar::Enum)),
    same("tracked_scaling_shift", StoredType::F32, 1),
    same("tracked_scaling_scale", StoredType::F32, 1),
    same("predicted_scaling_shift", StoredType::F32, 1),
    same("predicted_scaling_scale", StoredType::F32, 1),
    same("num_reads_since_mux_change", StoredType::U32, 1),
    same("time_since_mux_change", StoredType::F32, 1),
    same("num_minknow_events", StoredType::U64, 1),
    same("open_pore_level", StoredType::F32, 4),
    same("expected_open_pore_level", StoredType::F32, 4),
    same("selected_read_level", StoredType::F32, 4),
    same("pore_type", StoredType::Text, 0),
    same("end_reason_forced", StoredType::Bool, 0),
];

/// The channel in 32 bits, written since 0.3.49. Where it is not zero, it is the channel; `channel`
/// is then zero if the channel needs more than its 16 bits.
pub const WIDE_CHANNEL: &str = "channel_32bit";

/// The columns that become a read's primary fields.
pub(crate) const PRIMARY: [&str; 6] =
    ["read_id", "signal", "num_samples", "calibration_offset", "calibration_scale", "run_info"];

/// What may end a read, by code. A file's own reasons that are not among them follow.
pub const END_REASONS: [&str; 10] = [
    "unknown",
    "mux_change",
    "unblock_mux_change",
    "data_service_unblock_mux_change",
    "signal_positive",
    "signal_negative",
    "api_request",
    "device_data_error",
    "analysis_config_change",
    "paused",
];

/// The end reason's text where it cannot be the label of an enumeration (a SLOW5 label is a C
/// identifier): an auxiliary field that only such files have. The enumeration then says `unknown`.
pub(crate) const END_REASON_TEXT: &str = "pod5_end_reason";

impl Field {
    /// The auxiliary field of the header; an enumeration gets the labels of [`END_REASONS`].
    pub fn aux_field(&self) -> AuxField {
        let labels = match self.kind {
            AuxType::Scalar(Scalar::Enum) => END_REASONS.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        AuxField { labels, ..AuxField::new(self.aux, self.kind) }
    }
}

/// What a column of the RunInfo table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStored {
    /// `utf8`
    Text,
    /// `timestamp[ms, UTC]`
    Millis,
    /// `int16`
    I16,
    /// `uint16`
    U16,
    /// `map<utf8, utf8>`
    Tags,
}

/// The columns of the RunInfo table (and of version 0's `run_info` struct), in their order there.
pub const RUN_INFO: [(&str, RunStored); 20] = [
    ("acquisition_id", RunStored::Text),
    ("acquisition_start_time", RunStored::Millis),
    ("adc_max", RunStored::I16),
    ("adc_min", RunStored::I16),
    ("context_tags", RunStored::Tags),
    ("experiment_name", RunStored::Text),
    ("flow_cell_id", RunStored::Text),
    ("flow_cell_product_code", RunStored::Text),
    ("protocol_name", RunStored::Text),
    ("protocol_run_id", RunStored::Text),
    ("protocol_start_time", RunStored::Millis),
    ("sample_id", RunStored::Text),
    ("sample_rate", RunStored::U16),
    ("sequencing_kit", RunStored::Text),
    ("sequencer_position", RunStored::Text),
    ("sequencer_position_type", RunStored::Text),
    ("software", RunStored::Text),
    ("system_name", RunStored::Text),
    ("system_type", RunStored::Text),
    ("tracking_id", RunStored::Tags),
];

/// What MinKNOW has among the `context_tags` of a run, in POD5 and FAST5 alike; other tags are in
/// `tracking_id`. No specification says which: these are what files have.
pub const CONTEXT_TAGS: [&str; 30] = [
    "barcoding_enabled",
    "barcoding_kits",
    "basecall_config_filename",
    "basecall_model_simplex",
    "basecall_models",
    "basecall_models_modified",
    "basecaller_version",
    "estimate_poly_a",
    "experiment_duration_set",
    "experiment_type",
    "fast5_output_fastq_in_hdf",
    "fast5_raw",
    "fast5_reads_per_folder",
    "fastq_enabled",
    "fastq_reads_per_file",
    "filename",
    "flowcell_type",
    "kit_classification",
    "local_basecalling",
    "local_bc_comp_model",
    "local_bc_temp_model",
    "model_type",
    "package",
    "package_version",
    "protocol_type",
    "sample_frequency",
    "selected_speed_bases_per_second",
    "sequencing_kit",
    "set_temperature",
    "user_filename_input",
];

/// An attribute that says of which Arrow type columns are that POD5 does not define, where their
/// auxiliary field does not: JSON, the types as Arrow's Rust library writes them.
pub(crate) const COLUMNS_ATTRIBUTE: &str = "pod5_columns";

/// Steps of the converter.
pub fn digitisation(adc_min: i16, adc_max: i16) -> f64 {
    f64::from(adc_max) - f64::from(adc_min) + 1.0
}

/// The converter's full scale. No bit is lost: a scale has 24 and a digitisation 17.
pub fn range(calibration_scale: f32, digitisation: f64) -> f64 {
    f64::from(calibration_scale) * digitisation
}

/// What [`range`] was made from.
pub(crate) fn calibration_scale(range: f64, digitisation: f64) -> f32 {
    (range / digitisation) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_distinct() {
        for (i, field) in FIELDS.iter().enumerate() {
            assert!(
                FIELDS[..i]
                    .iter()
                    .all(|other| other.aux != field.aux && other.column != field.column)
            );
            assert!(!PRIMARY.contains(&field.column));
        }
    }

    proptest! {
        #[test]
        fn a_scale_survives_being_a_range(
            scale in any::<f32>(),
            min in any::<i16>(),
            max in any::<i16>(),
        ) {
            prop_assume!(scale.is_finite() && max >= min);
            let steps = digitisation(min, max);
            let back = calibration_scale(range(scale, steps), steps);
            prop_assert_eq!(back.to_bits(), scale.to_bits());
        }
    }
}
