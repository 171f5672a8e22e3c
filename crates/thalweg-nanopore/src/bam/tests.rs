#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

/// A record with a name, two cigar operations, five bases, and these tags.
fn record(name: &str, tags: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend([0xff; 8]);
    bytes.extend([name.len() as u8 + 1, 0, 0, 0, 2, 0, 4, 0]);
    bytes.extend(5_u32.to_le_bytes());
    bytes.extend([0xff; 12]);
    bytes.extend(name.as_bytes());
    bytes.push(0);
    bytes.extend([0; 2 * 4 + 3 + 5]);
    bytes.extend(tags);
    let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
    framed.extend(bytes);
    framed
}

fn bam(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(7_u32.to_le_bytes());
    bytes.extend(b"@HD\tx\n\0");
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(5_u32.to_le_bytes());
    bytes.extend(b"chr1\0\x10\x27\0\0");
    bytes.extend(records.concat());
    bytes
}

fn ids(bytes: &[u8]) -> Result<Vec<String>> {
    BamIds::new("x.bam".into(), bytes)?.collect()
}

#[test]
fn names_and_parents() {
    let tags = b"mvBc\x03\0\0\0\x01\x02\x03RGZrun\0qsi\x01\0\0\0piZparent\0dxA1";
    let bytes = bam(&[record("a", b""), record("b", tags), record("c", b"dxA1")]);
    assert_eq!(ids(&bytes).ok(), Some(vec!["a".into(), "parent".into(), "c".into()]));
    assert_eq!(ids(&bam(&[])).ok(), Some(vec![]));
}

#[test]
fn every_cut_is_an_error_or_falls_between_records() {
    let records = [record("a", b"piZparent\0"), record("b", b"")];
    let whole = bam(&records);
    let first = whole.len() - records.concat().len();
    let ends = [first, first + records[0].len(), whole.len()];
    for len in 0..=whole.len() {
        let outcome = ids(&whole[..len]);
        assert_eq!(outcome.is_ok(), ends.contains(&len), "{len}: {outcome:?}");
    }
}

#[test]
fn false_lengths_are_refused() {
    let whole = bam(&[record("a", b"dxA1")]);
    let at = whole.len() - record("a", b"dxA1").len();
    // The size of the record, the length of the header's text, the number of references, and the
    // number of bases of a read.
    for (offset, value) in [
        (at, 3_u32),
        (at, u32::MAX),
        (4, u32::MAX),
        (4, i32::MAX as u32),
        (15, i32::MAX as u32),
        (at + 20, u32::MAX),
    ] {
        let mut bytes = whole.clone();
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        assert!(ids(&bytes).is_err(), "{offset} {value}");
    }
    for tags in [&b"mvBc\xff\xff\xff\xff"[..], b"mvBx\x01\0\0\0\0", b"RGZrun", b"RG", b"RGx1"] {
        assert!(ids(&bam(&[record("a", tags)])).is_err(), "{tags:?}");
    }
    assert!(ids(b"@HD\tVN:1.6\n").is_err_and(|error| error.to_string().contains("BAM")));
}

proptest! {
    #[test]
    fn flipped_bits_never_panic(at in 0usize..200, bit in 0u32..8) {
        let first = record("a", b"mvBc\x03\0\0\0\x01\x02\x03piZparent\0");
        let mut bytes = bam(&[first, record("b", b"")]);
        let len = bytes.len();
        bytes[at % len] ^= 1 << bit;
        let _ = ids(&bytes);
    }
}
