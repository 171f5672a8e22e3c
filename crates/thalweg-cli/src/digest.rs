//! The digests of decoded reads: one for people, and one for benchmarks.

use sha2::{Digest as _, Sha256};
use thalweg::format::slow5::AuxValue;
use thalweg::reads::Read;
use thalweg::text::escaped;

/// The id is escaped, so that a row is one line with four columns:
/// `read_id<TAB>samples<TAB>sum<TAB>sha256 of the little-endian int16 samples`.
pub(crate) fn row(read: &Read<'_>) -> String {
    let mut hash = Sha256::new();
    let mut bytes = [0_u8; 8192];
    for chunk in read.samples.chunks(bytes.len() / 2) {
        for (pair, sample) in bytes.chunks_exact_mut(2).zip(chunk) {
            pair.copy_from_slice(&sample.to_le_bytes());
        }
        hash.update(&bytes[..chunk.len() * 2]);
    }
    let hash = hex(&hash.finalize());
    let id = escaped(read.record.read_id);
    format!("{id}\t{}\t{}\t{hash}", read.samples.len(), read.sum())
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the published comparison of SLOW5 and POD5 takes from a read besides its samples and
/// calibration, each after a tab: channel, number, mux, start, run, experiment, flow cell and
/// position. What is missing, empty or damaged is a dot.
pub(crate) fn metadata(read: &Read<'_>) -> String {
    const FIELDS: [&str; 4] = ["channel_number", "read_number", "start_mux", "start_time"];
    const ATTRIBUTES: [&str; 4] =
        ["run_id", "experiment_name", "flow_cell_id", "sequencer_position"];
    let mut fields = [const { String::new() }; 4];
    for (field, value) in read.record.aux_values(read.header).flatten() {
        if let Some(at) = FIELDS.iter().position(|name| *name == field.name) {
            fields[at] = in_text(value);
        }
    }
    let attributes = ATTRIBUTES
        .map(|name| read.header.attribute(name, read.record.read_group).unwrap_or_default());
    let all = fields.iter().map(String::as_str).chain(attributes);
    all.fold(String::new(), |text, one| text + "\t" + if one.is_empty() { "." } else { one })
}

/// A value of the types that these fields have.
fn in_text(value: AuxValue<'_>) -> String {
    match value {
        AuxValue::String(text) => String::from_utf8_lossy(text).into_owned(),
        AuxValue::Uint8(value) => value.to_string(),
        AuxValue::Int32(value) => value.to_string(),
        AuxValue::Uint32(value) => value.to_string(),
        AuxValue::Uint64(value) => value.to_string(),
        _ => ".".to_owned(),
    }
}

/// FNV-1a, 64 bits, over `read_id<TAB>samples<TAB>sum`, and `metadata` behind it. The hashes of a
/// file's reads are added (wrapping), so that the order in which they were decoded does not matter.
pub(crate) fn light(read_id: &str, samples: usize, sum: i64, metadata: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let text = format!("{read_id}\t{samples}\t{sum}{metadata}");
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_light_digest_is_fnv1a() {
        // FNV-1a of "a\t0\t0", by the published algorithm.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in *b"a\t0\t0" {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x100_0000_01b3);
        }
        assert_eq!(light("a", 0, 0, ""), hash);
    }
}
