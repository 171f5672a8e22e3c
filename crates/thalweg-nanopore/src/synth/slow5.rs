//! Synthetic reads as SLOW5 records.

use thalweg_io::Fault;

use super::{Synth, SynthRead};
use crate::pod5::fields::END_REASONS;
use crate::record::{
    Attribute, AuxField, AuxType, AuxValue, Encoding, Header, Record, RecordPress, Scalar,
    SignalPress, Version,
};
use crate::slow5::RecordEncoder;

/// The auxiliary fields of a current run, in their order in real files. FAST5 files have only the
/// first ones.
const AUX: [(&str, AuxType); 13] = [
    ("channel_number", AuxType::STRING),
    ("median_before", AuxType::Scalar(Scalar::Double)),
    ("read_number", AuxType::Scalar(Scalar::Int32)),
    ("start_mux", AuxType::Scalar(Scalar::Uint8)),
    ("start_time", AuxType::Scalar(Scalar::Uint64)),
    ("end_reason", AuxType::Scalar(Scalar::Enum)),
    ("tracked_scaling_shift", AuxType::Scalar(Scalar::Float)),
    ("tracked_scaling_scale", AuxType::Scalar(Scalar::Float)),
    ("predicted_scaling_shift", AuxType::Scalar(Scalar::Float)),
    ("predicted_scaling_scale", AuxType::Scalar(Scalar::Float)),
    ("num_reads_since_mux_change", AuxType::Scalar(Scalar::Uint32)),
    ("time_since_mux_change", AuxType::Scalar(Scalar::Float)),
    ("num_minknow_events", AuxType::Scalar(Scalar::Uint64)),
];

/// The number of these fields in a BLOW5 file of synthetic reads.
const BLOW5_AUX: usize = 6;

impl Synth {
    /// The header of a BLOW5 file of these reads.
    pub fn header(&self, record_press: RecordPress, signal_press: SignalPress) -> Header {
        self.header_with(BLOW5_AUX, record_press, signal_press)
    }

    /// A header with all fields that a POD5 file of these reads has.
    pub fn full_header(&self) -> Header {
        self.header_with(AUX.len(), RecordPress::None, SignalPress::None)
    }

    fn header_with(
        &self,
        fields: usize,
        record_press: RecordPress,
        signal_press: SignalPress,
    ) -> Header {
        let groups = self.recipe().read_groups;
        let per_group: Vec<_> = (0..groups).map(|group| self.attributes(group)).collect();
        let names =
            per_group.first().map(|first| first.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let value = |name: &str, of: &[(&str, String)]| {
            of.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone())
        };
        let attributes = names
            .unwrap_or_default()
            .into_iter()
            .map(|name| Attribute {
                name: name.to_owned(),
                values: per_group
                    .iter()
                    .map(|group| value(name, group).filter(|v| !v.is_empty()))
                    .collect(),
            })
            .collect();
        let aux = AUX
            .iter()
            .take(fields)
            .map(|(name, kind)| {
                let mut field = AuxField::new(*name, *kind);
                if *name == "end_reason" {
                    field.labels = END_REASONS.iter().map(ToString::to_string).collect();
                }
                field
            })
            .collect();
        Header {
            version: Version::V0_2_0,
            encoding: Encoding::Binary,
            record_press,
            signal_press,
            read_groups: groups,
            attributes,
            aux,
            data_offset: 0, // unknown before the header is written, and not used
        }
    }
}

impl SynthRead {
    /// The read as a record without its samples. The record belongs to a file with `header`, which
    /// [`Synth::header`] or [`Synth::full_header`] made. `aux` is scratch memory for it.
    ///
    /// # Errors
    /// If the read does not fit the header.
    pub fn record<'a>(
        &'a self,
        header: &Header,
        aux: &'a mut Vec<u8>,
    ) -> Result<Record<'a>, Fault> {
        let values = [
            AuxValue::String(self.aux.channel_number.as_bytes()),
            AuxValue::Double(self.aux.median_before),
            AuxValue::Int32(self.aux.read_number),
            AuxValue::Uint8(self.aux.start_mux),
            AuxValue::Uint64(self.aux.start_time),
            AuxValue::Enum(self.aux.end_reason),
            AuxValue::Float(self.aux.tracked_scaling_shift),
            AuxValue::Float(self.aux.tracked_scaling_scale),
            AuxValue::Float(self.aux.predicted_scaling_shift),
            AuxValue::Float(self.aux.predicted_scaling_scale),
            AuxValue::Uint32(self.aux.num_reads_since_mux_change),
            AuxValue::Float(self.aux.time_since_mux_change),
            AuxValue::Uint64(self.aux.num_minknow_events),
        ];
        aux.clear();
        for (field, value) in header.aux.iter().zip(values) {
            field.push(value, aux)?;
        }
        Ok(Record {
            read_id: &self.read_id,
            read_group: self.read_group,
            digitisation: self.digitisation,
            offset: self.offset,
            range: self.range,
            sampling_rate: self.sampling_rate,
            signal: &[],
            aux,
        })
    }

    /// The read as a stored record of a file with `header`, which [`Synth::header`] made.
    ///
    /// # Errors
    /// If the read does not fit the header.
    pub fn frame(&self, header: &Header, encoder: &mut RecordEncoder) -> Result<Vec<u8>, Fault> {
        let mut aux = Vec::new();
        let mut frame = Vec::new();
        let record = self.record(header, &mut aux)?;
        encoder.record(header, &record, &self.samples, &mut frame)?;
        Ok(frame)
    }
}
