use proptest::prelude::*;

use super::*;
use crate::record::{AuxField, AuxType, AuxValue, Encoding, RecordPress, Scalar, Version};

fn header(signal_press: SignalPress) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::None,
        signal_press,
        read_groups: 2,
        attributes: Vec::new(),
        aux: vec![
            AuxField::new("channel", AuxType::STRING),
            AuxField::new("mux", AuxType::Scalar(Scalar::Uint8)),
        ],
        data_offset: 0,
    }
}

const AUX: &[u8] = b"\x02\0\0\0\0\0\0\0ab\x07";

fn record(signal: &[u8]) -> Record<'_> {
    Record {
        read_id: "read-1",
        read_group: 1,
        digitisation: 8192.0,
        offset: 23.0,
        range: 1467.61,
        sampling_rate: 4000.0,
        signal,
        aux: AUX,
    }
}

#[test]
fn the_signal_length_counts_samples_or_bytes() {
    for (press, count) in [(SignalPress::None, 2u64), (SignalPress::SvbZd, 4)] {
        let record = record(&[1, 0, 2, 0]);
        let mut payload = Vec::new();
        assert_eq!(record.encode(press, &mut payload), Ok(()));
        // 2 + 6 of the id, 4 of the group, four doubles.
        assert_eq!(payload.get(44..52), Some(count.to_le_bytes().as_slice()));
        let header = header(press);
        let back = Record::parse(&payload, &header);
        assert_eq!(back, Ok(record));
        let values: Vec<_> =
            record.aux_values(&header).filter_map(|v| v.ok()).map(|(_, v)| v).collect();
        assert_eq!(values, [AuxValue::String(b"ab"), AuxValue::Uint8(7)]);
    }
    assert!(record(&[1]).encode(SignalPress::None, &mut Vec::new()).is_err());
    let id = "x".repeat(65_536);
    assert!(
        Record { read_id: &id, ..record(&[]) }.encode(SignalPress::None, &mut Vec::new()).is_err()
    );
}

#[test]
fn every_truncation_and_every_extra_byte_is_a_fault() {
    let mut payload = Vec::new();
    assert_eq!(record(&[1, 0, 2, 0]).encode(SignalPress::SvbZd, &mut payload), Ok(()));
    let header = header(SignalPress::SvbZd);
    for len in 0..payload.len() {
        let cut = payload.get(..len).unwrap_or_default();
        assert!(Record::parse(cut, &header).is_err(), "{len}");
        let id = Record::read_id_of(cut);
        assert_eq!(id, Ok((len >= 8).then_some("read-1")), "{len}");
    }
    payload.push(0);
    assert!(Record::parse(&payload, &header).is_err_and(|f| f.found.contains("1 bytes after")));
}

#[test]
fn hostile_lengths() {
    let mut payload = Vec::new();
    assert_eq!(record(&[1, 0, 2, 0]).encode(SignalPress::None, &mut payload), Ok(()));
    for len in [3, 1 << 31, 1 << 63, (1 << 63) + 2, u64::MAX] {
        for press in [SignalPress::None, SignalPress::SvbZd] {
            let mut bytes = payload.clone();
            bytes.splice(44..52, u64::to_le_bytes(len));
            assert!(Record::parse(&bytes, &header(press)).is_err(), "{len}");
        }
    }
    let mut bytes = payload.clone();
    bytes.splice(8..12, 2u32.to_le_bytes());
    assert!(
        Record::parse(&bytes, &header(SignalPress::None)).is_err_and(|f| f.found == "read group 2")
    );
    bytes.splice(2..3, [0xff]);
    assert!(
        Record::parse(&bytes, &header(SignalPress::None))
            .is_err_and(|f| f.expected == "UTF-8 text")
    );
    assert!(Record::read_id_of(&bytes).is_err());
}

proptest! {
    #[test]
    fn records_round_trip(
        id in "\\PC{0,40}",
        group in 0u32..2,
        doubles: [f64; 4],
        signal: Vec<u8>,
        press in 0usize..7,
    ) {
        let press = SignalPress::ALL[press];
        let even = signal.len() / 2 * 2;
        let signal = if press == SignalPress::None { &signal[..even] } else { &signal };
        let [digitisation, offset, range, sampling_rate] = doubles;
        let record = Record {
            read_id: &id,
            read_group: group,
            digitisation,
            offset,
            range,
            sampling_rate,
            signal,
            aux: AUX,
        };
        let mut payload = Vec::new();
        prop_assert_eq!(record.encode(press, &mut payload), Ok(()));
        prop_assert_eq!(Record::read_id_of(&payload), Ok(Some(id.as_str())));
        let back = Record::parse(&payload, &header(press));
        let mut again = Vec::new();
        prop_assert_eq!(back.and_then(|back| back.encode(press, &mut again)), Ok(()));
        prop_assert_eq!(again, payload);
    }

    #[test]
    fn any_bytes_parse_or_not(bytes: Vec<u8>, press in 0usize..7) {
        let _ = Record::parse(&bytes, &header(SignalPress::ALL[press]));
        let _ = Record::read_id_of(&bytes);
    }
}
