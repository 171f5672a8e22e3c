//! The mapping between POD5's columns and the fields of a read: one table for reading and writing.
//!
//! The read's field names, types and order are those of a BLOW5 file that blue-crab makes from a
//! POD5 file. Columns that blue-crab drops follow under their POD5 names. Column names and types
//! are those of "Table Schema" in the POD5 specification. Version 0's structs are flattened as in
//! version 3.

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
    /// `bool`, one bit per value
    Bool,
    /// `utf8`
    Text,
    /// `list` of numbers
    List(Scalar),
}

impl StoredType {
    /// The type of an auxiliary field that holds every value of this type. A column that
    /// [`FIELDS`] does not list becomes a field of this type.
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
/// The pair of types determines how a value is converted. `uint16` to `char*` is written in
/// decimal, `float` to `double` is widened, and `utf8` to `enum` becomes the label's code. All
/// other values keep their bytes ([`StoredType::Bool`] takes one byte, 0 or 1). A `read_number` of
/// 2^31 or more is therefore negative as an `int32_t`, and converts back to the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The column's name.
    pub column: &'static str,
    /// The column's type.
    pub stored: StoredType,
    /// The version of the Reads table that introduced the column.
    pub since: u8,
    /// The auxiliary field's name.
    pub aux: &'static str,
    /// The auxiliary field's type. The labels of [`Scalar::Enum`] start with [`END_REASONS`].
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

/// The columns that become auxiliary fields, in the order of the auxiliary fields.
///
/// The other columns of the specification are `read_id`, `signal` (the numbers of the read's rows
/// in the Signal table), `num_samples`, `calibration_offset` and `calibration_scale` (see
/// [`range`]), `run_info` (the read group), and [`WIDE_CHANNEL`].
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

/// The column with the channel in 32 bits, written since 0.3.49. A value other than zero is the
/// channel; `channel` is then zero if the channel does not fit in 16 bits.
pub const WIDE_CHANNEL: &str = "channel_32bit";

/// The columns that become a read's primary fields.
pub(crate) const PRIMARY: [&str; 6] =
    ["read_id", "signal", "num_samples", "calibration_offset", "calibration_scale", "run_info"];

/// The reasons why a read ends, by code. Further reasons of a file get the codes after these.
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

/// The auxiliary field with the end reason's text. Only files with a reason that cannot be the
/// label of an enumeration have it (a SLOW5 label is a C identifier). The enumeration's value is
/// then `unknown`.
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

/// The columns of the RunInfo table (and of version 0's `run_info` struct), in the table's order.
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

/// The tags that MinKNOW writes as `context_tags` of a run, in POD5 and in FAST5. Other tags are
/// `tracking_id`. No specification defines this split; the list is taken from existing files.
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

/// The attribute with the Arrow types of columns that POD5 does not define. It lists a column only
/// if the type of its auxiliary field does not imply the Arrow type. Its value is JSON, with types
/// as Arrow's Rust library writes them.
pub(crate) const COLUMNS_ATTRIBUTE: &str = "pod5_columns";

/// The number of steps of the analog-to-digital converter.
pub fn digitisation(adc_min: i64, adc_max: i64) -> f64 {
    adc_max as f64 - adc_min as f64 + 1.0
}

/// The converter's full scale. The product is exact: a scale has 24 significant bits and a
/// digitisation has 17.
pub fn range(calibration_scale: f32, digitisation: f64) -> f64 {
    f64::from(calibration_scale) * digitisation
}

/// The calibration scale that [`range`] was computed from.
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
        fn a_scale_survives_as_a_range(
            scale in any::<f32>(),
            min in any::<i16>(),
            max in any::<i16>(),
        ) {
            prop_assume!(scale.is_finite() && max >= min);
            let steps = digitisation(min.into(), max.into());
            let back = calibration_scale(range(scale, steps), steps);
            prop_assert_eq!(back.to_bits(), scale.to_bits());
        }
    }
}
