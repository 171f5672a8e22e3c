use proptest::prelude::*;

use super::*;
use crate::record::{AuxField, AuxType, Scalar, Version};
use crate::slow5::Frame;

const LIMIT: usize = 1 << 20;

fn header(record_press: RecordPress, signal_press: SignalPress) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press,
        signal_press,
        read_groups: 1,
        attributes: Vec::new(),
        aux: vec![AuxField::new("mux", AuxType::Scalar(Scalar::Uint8))],
        data_offset: 0,
    }
}

fn record(read_id: &str) -> Record<'_> {
    Record {
        read_id,
        read_group: 0,
        digitisation: 8192.0,
        offset: 23.0,
        range: 1467.61,
        sampling_rate: 4000.0,
        signal: &[],
        aux: &[3],
    }
}

/// A header for each combination of compressions that can be written and read.
fn written() -> impl Iterator<Item = Header> {
    let records = [RecordPress::None, RecordPress::Zlib, RecordPress::Zstd];
    let binary = records
        .into_iter()
        .flat_map(|record| SignalPress::ALL.map(|signal| header(record, signal)));
    let text = Header { encoding: Encoding::Ascii, ..header(RecordPress::None, SignalPress::None) };
    binary.chain([text])
}

fn stored(header: &Header, bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    match Framing::new(header.encoding).next(bytes, bytes.len() as u64) {
        Ok(Frame::Record { stored, len }) if len == bytes.len() => Some(stored),
        _ => None,
    }
}

fn check_round_trip(read_id: &str, samples: &[i16]) {
    let mut encoder = RecordEncoder::new().unwrap_or_else(|e| unreachable!("{e:?}"));
    let mut decoder = RecordDecoder::new(LIMIT);
    for header in written() {
        let mut bytes = Vec::new();
        assert_eq!(
            encoder.record(&header, &record(read_id), samples, &mut bytes),
            Ok(()),
            "{header:?}"
        );
        let range = stored(&header, &bytes).unwrap_or_default();
        let bytes = bytes.get(range).unwrap_or_default();
        let mut out = vec![7];
        let back = decoder.record(&header, bytes, &mut out);
        let expected = record(read_id);
        assert_eq!(
            back.map(|r| (r.read_id, r.range, r.aux)),
            Ok((expected.read_id, expected.range, expected.aux))
        );
        assert_eq!(out.split_first(), Some((&7, samples)), "{header:?}");
        let fields = decoder.fields(&header, bytes);
        assert_eq!(
            fields.as_ref().map(|(r, count)| (r.read_id, *count)),
            Ok((read_id, samples.len() as u64))
        );
        let count = fields.and_then(|(r, _)| r.sample_count(header.signal_press));
        let known = header.encoding == Encoding::Binary;
        assert!(
            !known || matches!(count, Ok(None)) || count == Ok(Some(samples.len())),
            "{header:?} {count:?}"
        );
        assert_eq!(decoder.read_id(&header, bytes), Ok(read_id));
    }
}

#[test]
fn every_compression_round_trips() {
    check_round_trip("r1", &[]);
    check_round_trip("r2", &[500]);
    check_round_trip(&"long".repeat(1000), &[i16::MIN, i16::MAX, 0, -1, 1]);
    let long: Vec<i16> = (0..5000i32).map(|i| (500 + i * i % 97 - i % 13) as i16).collect();
    check_round_trip("00000000-0000-0000-0000-000000000000", &long);
}

#[test]
fn a_bomb_is_refused() {
    let mut encoder = RecordEncoder::new().unwrap_or_else(|e| unreachable!("{e:?}"));
    let mut decoder = RecordDecoder::new(1000);
    let samples = vec![0; 100_000];
    for header in written().filter(|h| h.encoding == Encoding::Binary) {
        let inner =
            matches!(header.signal_press, SignalPress::Zlib | SignalPress::Zstd | SignalPress::Vbz);
        if header.record_press == RecordPress::None && !inner {
            continue;
        }
        let mut bytes = Vec::new();
        assert_eq!(encoder.record(&header, &record("r"), &samples, &mut bytes), Ok(()));
        let bytes = bytes.get(8..).unwrap_or_default();
        let mut out = vec![7];
        let decoded = decoder.record(&header, bytes, &mut out);
        // If zeros are compressed twice, the first decompression stays within the limit, and the
        // second one exceeds it.
        assert!(decoded.is_err(), "{header:?}");
        assert_eq!(out, [7]);
    }
    decoder.trim(0);
    assert_eq!(decoder.payload(RecordPress::None, b"abc"), Ok(b"abc".as_slice()));
}

#[test]
fn records_coded_as_signals_are_read() {
    let header = header(RecordPress::SvbZd, SignalPress::None);
    let mut payload = Vec::new();
    let signal = [1, 0, 2, 0];
    // 51 bytes of fields and an id of one byte give an even number.
    let record = Record { signal: &signal, ..record("r") };
    assert_eq!(record.encode(SignalPress::None, &mut payload), Ok(()));
    let (pairs, rest) = payload.as_chunks::<2>();
    assert!(rest.is_empty(), "{}", payload.len());
    let shorts: Vec<i16> = pairs.iter().map(|&pair| i16::from_le_bytes(pair)).collect();
    let mut stored = Vec::new();
    assert_eq!(svb::zd::encode(&shorts, &mut stored), Ok(()));
    let mut decoder = RecordDecoder::new(LIMIT);
    let mut out = Vec::new();
    assert_eq!(decoder.record(&header, &stored, &mut out), Ok(record));
    assert_eq!(out, [1, 2]);
    assert_eq!(decoder.read_id(&header, &stored), Ok("r"));
    let mut encoder = RecordEncoder::new().unwrap_or_else(|e| unreachable!("{e:?}"));
    assert!(encoder.record(&header, &record, &out, &mut Vec::new()).is_err());
}

#[test]
fn unwritable_values_are_refused() {
    let mut encoder = RecordEncoder::new().unwrap_or_else(|e| unreachable!("{e:?}"));
    for header in written() {
        let mut out = Vec::new();
        assert!(
            encoder
                .record(&header, &Record { read_group: 1, ..record("r") }, &[1], &mut out)
                .is_err()
        );
        assert!(
            encoder.record(&header, &Record { aux: &[], ..record("r") }, &[1], &mut out).is_err()
        );
        assert!(out.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_samples_round_trip(id in "[!-~]{0,80}", samples: Vec<i16>) {
        check_round_trip(&id, &samples);
    }

    #[test]
    fn flipped_bits_never_panic(
        samples in prop::collection::vec(400i16..600, 0..300),
        at: usize,
        bit in 0u32..8,
    ) {
        let mut encoder = RecordEncoder::new().unwrap_or_else(|e| unreachable!("{e:?}"));
        let mut decoder = RecordDecoder::new(LIMIT);
        for header in written() {
            let mut bytes = Vec::new();
            prop_assert_eq!(encoder.record(&header, &record("read"), &samples, &mut bytes), Ok(()));
            let range = stored(&header, &bytes).unwrap_or_default();
            let bytes = &mut bytes[range];
            let len = bytes.len();
            bytes[at % len] ^= 1 << bit;
            let mut out = Vec::new();
            let decoded = decoder.record(&header, bytes, &mut out).is_ok();
            prop_assert!(decoded || out.is_empty());
            let _ = decoder.read_id(&header, bytes);
        }
    }

    #[test]
    fn any_bytes_decode_or_not(bytes: Vec<u8>, record in 0usize..4, signal in 0usize..7) {
        let header = header(RecordPress::ALL[record], SignalPress::ALL[signal]);
        let mut decoder = RecordDecoder::new(LIMIT);
        let mut out = Vec::new();
        let _ = decoder.record(&header, &bytes, &mut out);
        let signal = Record { signal: &bytes, ..self::record("r") };
        let count = signal.sample_count(header.signal_press);
        out.clear();
        if decoder.signal(header.signal_press, &bytes, &mut out).is_ok() {
            prop_assert!(matches!(count, Ok(None)) || count == Ok(Some(out.len())));
        }
        let _ = decoder.read_id(&header, &bytes);
    }
}
