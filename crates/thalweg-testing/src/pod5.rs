//! Small POD5 files, for tests that damage them.

use thalweg_nanopore::pod5::write::{Mapping, Pod5Encoder, Pod5Layout, SignalEncoder};
use thalweg_nanopore::reads::RUN_ATTRIBUTES;
use thalweg_nanopore::slow5::Header;
use thalweg_nanopore::synth::{Recipe, Synth, SynthRead};

/// Returns the bytes of a POD5 file with one synthetic read for each length, in samples. The bytes
/// are always the same if `layout` has an identity.
pub fn file(layout: Pod5Layout, lengths: &[usize]) -> Vec<u8> {
    let recipe =
        Recipe { mean_length: 120.0, min_length: 60, adapter_length: 20.0, ..Recipe::default() };
    let synth = Synth::new(recipe).unwrap();
    let mut header: Header = synth.full_header();
    header.attributes.retain(|attribute| RUN_ATTRIBUTES.contains(&attribute.name.as_str()));
    let mapping = Mapping::new(&header).unwrap();
    let mut runs = mapping.runs();
    let mut encoder = SignalEncoder::new(layout.coding, layout.row_samples).unwrap();
    let mut out = Vec::new();
    let mut kept = Vec::new();
    let mut tables = Pod5Encoder::start(layout, mapping.extra_columns(), &mut out);
    let mut read = SynthRead::default();
    let mut aux = Vec::new();
    for (i, &len) in lengths.iter().enumerate() {
        synth.read(i as u64, &mut read);
        let samples: Vec<i16> = read.samples.iter().copied().cycle().take(len).collect();
        let record = read.record(&header, &mut aux).unwrap();
        let (row, _) = mapping.row(&record, &header).unwrap();
        let _ = runs.note(row.run_info, record.digitisation, record.sampling_rate);
        tables.push(&row, encoder.encode(&samples).unwrap(), &mut out, &mut kept).unwrap();
    }
    let ending = tables.end_signal(&runs.into_infos(), &mut out, &mut kept).unwrap();
    out.append(&mut kept);
    ending.finish(&mut out);
    out
}
