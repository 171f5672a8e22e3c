//! Small SLOW5 and BLOW5 files of every encoding and compression, for tests that damage them.

use std::ops::Range;
use std::path::Path;

use thalweg_nanopore::slow5::{
    Attribute, AuxField, AuxType, AuxValue, Encoding, Framing, Header, Index, Record,
    RecordEncoder, RecordPress, Scalar, SignalPress, Version,
};
use thalweg_nanopore::synth::{Recipe, Synth, SynthRead};
use thalweg_nanopore::write::ReadWriter;

/// A file in memory.
#[derive(Debug, Clone)]
pub struct SampleFile {
    /// The encoding and the compressions: `text`, or `zstd+svb-zd`.
    pub name: String,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The bytes of each record, in file order.
    pub frames: Vec<Range<usize>>,
}

/// The record compressions to test.
pub const RECORDS: [RecordPress; 3] = [RecordPress::None, RecordPress::Zlib, RecordPress::Zstd];

/// A header with one read group, one attribute and two auxiliary fields: `channel`, a string, and
/// `end_reason`, an enumeration.
pub fn header(encoding: Encoding, record_press: RecordPress, signal_press: SignalPress) -> Header {
    let mut reason = AuxField::new("end_reason", AuxType::Scalar(Scalar::Enum));
    reason.labels = vec!["unknown".into(), "signal_positive".into()];
    Header {
        version: Version::V0_2_0,
        encoding,
        record_press,
        signal_press,
        read_groups: 1,
        attributes: vec![Attribute { name: "run_id".into(), values: vec![Some("run".into())] }],
        aux: vec![AuxField::new("channel", AuxType::STRING), reason],
        data_offset: 0,
    }
}

/// The headers of every encoding and every pair of compressions, with names for messages.
pub fn headers() -> Vec<(String, Header)> {
    let mut headers =
        vec![("text".into(), header(Encoding::Ascii, RecordPress::None, SignalPress::None))];
    for record in RECORDS {
        for signal in SignalPress::ALL {
            headers.push((format!("{record}+{signal}"), header(Encoding::Binary, record, signal)));
        }
    }
    headers
}

/// A random walk, as real signals are, with flat stretches. `seed` determines the samples.
pub fn signal(seed: u64, len: usize) -> Vec<i16> {
    // The golden ratio's fraction, and the multiplier and increment of Knuth's MMIX generator.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut level = 500i32;
    (0..len)
        .map(|i| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if i % 97 < 80 {
                level = (level + (state >> 58) as i32 - 31).clamp(-2000, 2000);
            }
            level as i16
        })
        .collect()
}

/// The id of the `i`th read of a [`sample`].
pub fn id(i: usize) -> String {
    format!("read-{i:04}-{:08x}", i.wrapping_mul(2_654_435_761) & 0xffff_ffff)
}

/// One record as a file stores it, with its length before it or a line feed after it.
pub fn frame(header: &Header, read_id: &str, samples: &[i16]) -> Vec<u8> {
    let mut aux = Vec::new();
    header.aux[0].push(AuxValue::String(b"channel 7"), &mut aux).unwrap();
    header.aux[1].push(AuxValue::Enum(1), &mut aux).unwrap();
    let record = Record {
        read_id,
        read_group: 0,
        digitisation: 8192.0,
        offset: 6.0,
        range: 1467.61,
        sampling_rate: 4000.0,
        signal: &[],
        aux: &aux,
    };
    let mut frame = Vec::new();
    RecordEncoder::new().unwrap().record(header, &record, samples, &mut frame).unwrap();
    frame
}

/// A file with one read for each length, in samples.
pub fn sample(name: &str, header: &Header, lengths: &[usize]) -> SampleFile {
    let mut bytes = header.write().unwrap();
    let mut frames = Vec::new();
    for (i, &len) in lengths.iter().enumerate() {
        let start = bytes.len();
        bytes.extend(frame(header, &id(i), &signal(i as u64 + 1, len)));
        frames.push(start..bytes.len());
    }
    bytes.extend(Framing::new(header.encoding).end_marker());
    SampleFile { name: name.into(), bytes, frames }
}

/// One file for each of [`headers`], all with the same reads.
pub fn samples(lengths: &[usize]) -> Vec<SampleFile> {
    headers().iter().map(|(name, header)| sample(name, header, lengths)).collect()
}

/// Writes synthetic reads to `path` as BLOW5. Returns the index of the file, and the ids in file
/// order.
pub fn write_synthetic(path: &Path, recipe: Recipe) -> (Index, Vec<String>) {
    let synth = Synth::new(recipe).unwrap();
    let header = synth.header(RecordPress::Zstd, SignalPress::SvbZd);
    let mut out = ReadWriter::create(path, &header).unwrap();
    let mut read = SynthRead::default();
    let mut encoder = RecordEncoder::new().unwrap();
    let mut ids = Vec::new();
    for i in 0..synth.recipe().reads {
        synth.read(i, &mut read);
        out.push(&read.read_id, &read.frame(&header, &mut encoder).unwrap()).unwrap();
        ids.push(read.read_id.clone());
    }
    (out.finish().unwrap(), ids)
}
