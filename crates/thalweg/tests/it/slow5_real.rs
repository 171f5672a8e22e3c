//! Compares real SLOW5 and BLOW5 files with the values that pyslow5 decoded, and byte for byte
//! after they are written again. See `thalweg_testing::real_files` for the place of the files.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};
use thalweg::Fault;
use thalweg::format::slow5::{
    Encoding, Entry, Frame, Framing, Header, Index, Parsed, Record, RecordDecoder, RecordEncoder,
    RecordPress, SignalPress, Version, ascii,
};
use thalweg_testing::real_files::nanopore;

/// A limit far larger than any of these records.
const LIMIT: usize = 1 << 28;

/// Every SLOW5 and BLOW5 file: name, bytes, expectation.
fn files() -> Vec<(String, Vec<u8>, Value)> {
    let Some(folder) = nanopore() else { return Vec::new() };
    let text = fs::read(folder.join("expect/expectations.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
    let mut files = Vec::new();
    for sub in ["blow5", "slow5"] {
        for entry in fs::read_dir(folder.join(sub)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == sub) {
                let name = format!("{sub}/{}", path.file_name().unwrap().to_str().unwrap());
                let expected = expected
                    .get(&name)
                    .unwrap_or_else(|| panic!("nothing is known of {name}"))
                    .clone();
                files.push((name, fs::read(&path).unwrap(), expected));
            }
        }
    }
    assert!(files.len() >= 24, "{} files", files.len());
    files
}

/// The files that are expected to be valid.
fn good_files() -> impl Iterator<Item = (String, Vec<u8>, Header)> {
    files().into_iter().filter(|(.., expected)| !is_error(expected)).map(|(name, bytes, _)| {
        let header = parse(&bytes).unwrap();
        (name, bytes, header)
    })
}

fn is_error(expected: &Value) -> bool {
    expected["expect"].as_str().is_some_and(|text| text.starts_with("error"))
}

fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    match Header::parse(bytes)? {
        Parsed::Done(header) => Ok(header),
        Parsed::NeedMore(n) => {
            Err(Fault::new(bytes.len(), "the end of the file", format!("{n} bytes")))
        }
    }
}

/// The frames of a file: offset and length of each, and its stored bytes.
fn frames<'a>(
    bytes: &'a [u8],
    header: &Header,
) -> impl Iterator<Item = Result<(Entry, &'a [u8]), Fault>> {
    let framing = Framing::new(header.encoding);
    let mut at = usize::try_from(header.data_offset).unwrap();
    let mut done = false;
    std::iter::from_fn(move || {
        let rest = &bytes[at..];
        if std::mem::take(&mut done) {
            return None;
        }
        match framing.next(rest, rest.len() as u64) {
            Ok(Frame::Record { stored, len }) => {
                let entry = Entry { offset: at as u64, size: len as u64 };
                at += len;
                Some(Ok((entry, &rest[stored])))
            }
            Ok(Frame::End) => None,
            Ok(Frame::NeedMore(n)) => panic!("{n} bytes wanted, of {}", rest.len()),
            Err(fault) => {
                done = true;
                Some(Err(fault))
            }
        }
    })
}

fn sha256(samples: &[i16]) -> String {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reads of a file, in the form of the expectations.
fn reads(bytes: &[u8]) -> Result<Vec<Value>, Fault> {
    let header = parse(bytes)?;
    let mut decoder = RecordDecoder::new(LIMIT);
    let mut samples = Vec::new();
    let mut reads = Vec::new();
    for frame in frames(bytes, &header) {
        let (_, stored) = frame?;
        samples.clear();
        let id = decoder.read_id(&header, stored)?.to_owned();
        let record = decoder.record(&header, stored, &mut samples)?;
        assert_eq!(id, record.read_id);
        reads.push(serde_json::json!({
            "read_id": record.read_id,
            "read_group": record.read_group,
            "digitisation": record.digitisation,
            "offset": record.offset,
            "range": record.range,
            "sampling_rate": record.sampling_rate,
            "n": samples.len(),
            "sum": samples.iter().map(|&s| i64::from(s)).sum::<i64>(),
            "sha256": sha256(&samples),
        }));
        assert!(record.aux_values(&header).all(|value| value.is_ok()));
    }
    Ok(reads)
}

#[test]
fn samples_are_what_pyslow5_decoded() {
    let files = files();
    let known = |name: &str| {
        files.iter().find(|(other, ..)| other == name).map(|(.., expected)| expected.clone())
    };
    for (name, bytes, expected) in &files {
        let found = reads(bytes);
        if is_error(expected) {
            assert!(found.is_err_and(|f| f.expected.contains("--salvage")), "{name}");
            continue;
        }
        // slow5lib refuses the file of version 1.1.0, whose reads are those of another file.
        let expected = match expected["reads"].as_array() {
            Some(reads) => reads.clone(),
            None => known("blow5/example_multi_rg_v0.2.0_zstd_svb-zd.blow5").unwrap()["reads"]
                .as_array()
                .unwrap()
                .clone(),
        };
        assert_eq!(found.as_ref(), Ok(&expected), "{name}");
        println!("{name}: {} reads", expected.len());
    }
}

#[test]
fn headers_are_written_as_they_were() {
    for (name, bytes, header) in good_files() {
        let written = header.write();
        assert_eq!(
            written.as_deref(),
            Ok(&bytes[..usize::try_from(header.data_offset).unwrap()]),
            "{name}"
        );
        assert_eq!(header.written_version(), header.version, "{name}");
    }
}

#[test]
fn payloads_are_encoded_as_they_were() {
    let mut checked = 0;
    for (name, bytes, header) in
        good_files().filter(|(.., header)| header.encoding == Encoding::Binary)
    {
        let mut decoder = RecordDecoder::new(LIMIT);
        let mut encoder = RecordEncoder::new().unwrap();
        for frame in frames(&bytes, &header) {
            let (_, stored) = frame.unwrap();
            let payload = decoder.payload(header.record_press, stored).unwrap().to_vec();
            let record = Record::parse(&payload, &header).unwrap();
            let (mut samples, mut signal, mut again) = (Vec::new(), Vec::new(), Vec::new());
            decoder.signal(header.signal_press, record.signal, &mut samples).unwrap();
            encoder.signal(header.signal_press, &samples, &mut signal).unwrap();
            assert!(signal == record.signal, "{name}: the signal of {} differs", record.read_id);
            Record { signal: &signal, ..record }.encode(header.signal_press, &mut again).unwrap();
            assert!(again == payload, "{name}: the record of {} differs", record.read_id);
            checked += 1;
        }
    }
    assert!(checked > 40 || nanopore().is_none(), "{checked} records");
}

#[test]
fn uncompressed_files_and_rows_are_written_as_they_were() {
    for (name, bytes, header) in good_files() {
        if header.record_press != RecordPress::None {
            continue;
        }
        let mut decoder = RecordDecoder::new(LIMIT);
        let mut encoder = RecordEncoder::new().unwrap();
        let mut again = header.write().unwrap();
        let mut samples = Vec::new();
        for frame in frames(&bytes, &header) {
            samples.clear();
            let record = decoder.record(&header, frame.unwrap().1, &mut samples).unwrap();
            encoder.record(&header, &record, &samples, &mut again).unwrap();
        }
        again.extend(Framing::new(header.encoding).end_marker());
        assert!(again == bytes, "{name} differs");
    }
}

/// A binary file that is converted to text equals the text file of the same reads, and the reverse.
#[test]
fn text_and_binary_hold_the_same() {
    let Some(folder) = nanopore() else { return };
    let text = fs::read(folder.join("slow5/exp_1_lossless.slow5")).unwrap();
    let binary = fs::read(folder.join("blow5/exp_1_lossless.blow5")).unwrap();
    for (from, to) in [(&text, &binary), (&binary, &text)] {
        let header = parse(from).unwrap();
        let target = parse(to).unwrap();
        let mut out = Header { encoding: target.encoding, ..header.clone() }.write().unwrap();
        let (mut decoder, mut encoder, mut samples) =
            (RecordDecoder::new(LIMIT), RecordEncoder::new().unwrap(), Vec::new());
        for frame in frames(from, &header) {
            samples.clear();
            let record = decoder.record(&header, frame.unwrap().1, &mut samples).unwrap();
            encoder.record(&target, &record, &samples, &mut out).unwrap();
        }
        out.extend(Framing::new(target.encoding).end_marker());
        assert!(out == *to, "{:?}", target.encoding);
    }
}

/// Every valid file is converted to every compression and to text, and gives the same reads.
#[test]
fn every_file_converts_to_every_compression() {
    let records = [RecordPress::None, RecordPress::Zlib, RecordPress::Zstd];
    for (name, bytes, header) in good_files().filter(|(_, bytes, _)| bytes.len() < 150_000) {
        let expected = reads(&bytes).unwrap();
        for record_press in records {
            for signal_press in SignalPress::ALL {
                let header_out = Header {
                    encoding: Encoding::Binary,
                    record_press,
                    signal_press,
                    ..header.clone()
                };
                let mut out = header_out.write().unwrap();
                let (mut decoder, mut encoder, mut samples) =
                    (RecordDecoder::new(LIMIT), RecordEncoder::new().unwrap(), Vec::new());
                for frame in frames(&bytes, &header) {
                    samples.clear();
                    let record = decoder.record(&header, frame.unwrap().1, &mut samples).unwrap();
                    encoder.record(&header_out, &record, &samples, &mut out).unwrap();
                }
                out.extend(Framing::new(Encoding::Binary).end_marker());
                assert_eq!(
                    reads(&out),
                    Ok(expected.clone()),
                    "{name} as {record_press} and {signal_press}"
                );
                let version = parse(&out).unwrap().version;
                assert!(
                    version >= header.version
                        && version.max(Version::V0_2_0) >= header_out.written_version()
                );
            }
        }
    }
}

#[test]
fn indexes_are_written_as_they_were() {
    let Some(folder) = nanopore() else { return };
    for name in [
        "blow5/example3.blow5",
        "blow5/example_multi_rg_v0.2.0_zstd_svb-zd.blow5",
        "slow5/example.slow5",
    ] {
        let bytes = fs::read(folder.join(name)).unwrap();
        let stored = fs::read(folder.join(format!("{name}.idx"))).unwrap();
        let header = parse(&bytes).unwrap();
        let mut decoder = RecordDecoder::new(LIMIT);
        let mut built = Index::new(header.version);
        for frame in frames(&bytes, &header) {
            let (entry, stored) = frame.unwrap();
            built.push(decoder.read_id(&header, stored).unwrap(), entry).unwrap();
        }
        assert!(built.parts().concat() == stored, "{name}");
        let index = Index::parse(stored).unwrap();
        index.check(&header, bytes.len() as u64).unwrap();
        assert!(index.check(&header, bytes.len() as u64 - 1).is_err(), "{name}");
        for (read_id, entry) in built.iter() {
            assert_eq!(index.get(read_id), Some(entry));
        }
    }
}

/// A file that is truncated anywhere gives an error.
#[test]
fn every_truncation_is_noticed() {
    let Some(folder) = nanopore() else { return };
    for (name, step) in [
        ("blow5/exp_1_lossless_zstd_svb_v0.2.0.blow5", 1),
        ("blow5/example_multi_rg_v0.2.0_zstd_svb-zd.blow5", 1),
        ("slow5/example_multi_rg_v0.1.0.slow5", 97),
    ] {
        let bytes = fs::read(folder.join(name)).unwrap();
        let header = parse(&bytes).unwrap();
        let whole_rows: Vec<u64> = frames(&bytes, &header).map(|f| f.unwrap().0.offset).collect();
        for len in (0..bytes.len()).step_by(step) {
            // Text has no end marker, so a file that is cut between two rows or after the header is
            // a valid file with fewer rows.
            if header.encoding == Encoding::Ascii && whole_rows.contains(&(len as u64)) {
                continue;
            }
            let cut = &bytes[..len];
            // If the header is complete, it need not be parsed again.
            let in_header = (len as u64) < header.data_offset;
            let noticed = if in_header {
                parse(cut).is_err()
            } else {
                frames(cut, &header).any(|frame| frame.is_err())
            };
            assert!(noticed, "{name} cut to {len}");
        }
    }
}

/// Flipped bits give errors or other values, but never a panic.
#[test]
fn flipped_bits_never_panic() {
    let Some(folder) = nanopore() else { return };
    for name in [
        "blow5/exp_1_lossless_zlib_ex_zd.blow5",
        "blow5/exp_1_lossless_zlib_svb_v0.2.0.blow5",
        "blow5/exp_1_lossless_zstd_svb_v0.2.0.blow5",
        "blow5/derived_zstd_svb16-zd_253.blow5",
        "slow5/exp_1_lossless.slow5",
    ] {
        let mut bytes = fs::read(folder.join(name)).unwrap();
        let end_of_fields = usize::try_from(parse(&bytes).unwrap().data_offset).unwrap() + 200;
        let everywhere = (0..bytes.len()).step_by(1009);
        for at in (0..end_of_fields).step_by(7).chain(everywhere) {
            let bit = 1u8 << (at % 8);
            bytes[at] ^= bit;
            if let Ok(header) = parse(&bytes) {
                let (mut decoder, mut samples) = (RecordDecoder::new(1 << 20), Vec::new());
                for frame in frames(&bytes, &header) {
                    let Ok((_, stored)) = frame else { break };
                    let _ = decoder.record(&header, stored, &mut samples);
                    let _ = decoder.read_id(&header, stored);
                }
            }
            bytes[at] ^= bit;
        }
    }
}

/// A text file with Windows line endings is refused with a message about them.
#[test]
fn carriage_returns_are_named() {
    let Some(folder) = nanopore() else { return };
    let bytes = fs::read(folder.join("slow5/exp_1_lossless.slow5")).unwrap();
    let mut dos = Vec::new();
    for &byte in &bytes {
        if byte == b'\n' {
            dos.push(b'\r');
        }
        dos.push(byte);
    }
    assert!(parse(&dos).is_err_and(|fault| fault.expected.contains("Windows")));
    let header = parse(&bytes).unwrap();
    let (_, row) = frames(&bytes, &header).next().unwrap().unwrap();
    let row = [row, b"\r"].concat();
    let mut aux = Vec::new();
    let fault = ascii::parse_row(&row, &header, &mut aux, &mut Vec::new());
    assert!(fault.is_err_and(|fault| fault.expected.contains("Windows")));
}
