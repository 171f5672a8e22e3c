use proptest::prelude::*;

use super::*;
use crate::record::{Encoding, RecordPress, SignalPress, Version};

fn header(aux: Vec<AuxField>) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Ascii,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 2,
        attributes: Vec::new(),
        aux,
        data_offset: 0,
    }
}

/// A field of every type.
fn every_field() -> Vec<AuxField> {
    let kinds = Scalar::ALL.into_iter().flat_map(|s| [AuxType::Scalar(s), AuxType::Array(s)]);
    let labels =
        |kind: AuxType| if kind.element() == Scalar::Enum { vec!["a".into()] } else { Vec::new() };
    kinds
        .enumerate()
        .map(|(i, kind)| AuxField { name: format!("f{i}"), kind, labels: labels(kind) })
        .collect()
}

/// Parses a row and writes it again.
fn again(row: &[u8], header: &Header) -> Result<Vec<u8>, Fault> {
    let mut aux = Vec::new();
    let mut samples = Vec::new();
    let mut out = Vec::new();
    let record = parse_row(row, header, &mut aux, &mut samples)?;
    write_row(&record, &samples, header, &mut out)?;
    Ok(out)
}

#[test]
fn rows_of_every_type() {
    let header = header(every_field());
    let values = "-1\t-1,.,0\t-300\t1,2\t70000\t.\t-9223372036854775808\t5\t254\t.\t\
        65534\t1\t4294967294\t2,3\t18446744073709551614\t7\t89.182999\t0.5,.\t-0.25\t\
        1,2\tx\tsome text, with commas\t3\t0,.,1";
    let row = format!("r1\t1\t8192\t-237\t748.580139\t4000\t3\t-32768,0,32767\t{values}\n");
    let body = row.trim_end_matches('\n');
    assert_eq!(
        again(body.as_bytes(), &header).map(|b| String::from_utf8_lossy(&b).into_owned()),
        Ok(row.clone())
    );
    let missing =
        format!("r1\t1\t8192\t-237\t748.580139\t4000\t0\t{}\n", "\t.".repeat(header.aux.len()));
    assert_eq!(again(missing.trim_end_matches('\n').as_bytes(), &header), Ok(missing.into_bytes()));
    assert_eq!(read_id_of(body.as_bytes()), Ok(Some("r1")));
    assert_eq!(read_id_of(b"r1"), Ok(None));
    assert!(read_id_of(b"r1\n").is_err());
}

#[test]
fn malformed_rows_are_refused() {
    let header = header(vec![AuxField::new("mux", AuxType::Scalar(Scalar::Uint8))]);
    let good = "r1\t1\t8192\t3\t748.5\t4000\t3\t1,-2,3\t77";
    assert_eq!(again(good.as_bytes(), &header), Ok(format!("{good}\n").into_bytes()));
    let cases = [
        ("\t77", "\t77\r", "Windows"),
        ("\t77", "", "the column \"mux\""),
        ("\t77", "\t77\t", "no more columns"),
        ("\t77", "\t256", "uint8_t"),
        ("\t77", "\t", "uint8_t"),
        ("\t3\t1", "\t2\t1", "len_raw_signal"),
        ("\t3\t1", "\t18446744073709551615\t1", "len_raw_signal"),
        ("\t3\t1", "\t18446744073709551616\t1", "number of samples"),
        ("1,-2,3", "1,-2,32768", "32767"),
        ("1,-2,3", "1,,3", "32767"),
        ("1,-2,3", "1,02,3", "32767"),
        ("1,-2,3", "", "len_raw_signal"),
        ("\t1\t8192", "\t2\t8192", "read groups"),
        ("\t1\t8192", "\t-1\t8192", "decimal"),
        ("8192", "8e3", "decimal"),
        ("8192", ".", "decimal"),
        ("r1\t1\t8192\t3\t748.5\t4000\t3\t1,-2,3\t77", "r1", "read_group"),
        ("r1\t1\t8192\t3\t748.5\t4000\t3\t1,-2,3\t77", "", "read_group"),
    ];
    for (from, to, expected) in cases {
        let fault = again(good.replacen(from, to, 1).as_bytes(), &header).err();
        assert!(fault.as_ref().is_some_and(|f| f.expected.contains(expected)), "{to:?}: {fault:?}");
    }
    let mut samples = vec![7];
    assert!(
        parse_row(b"r\t1\t1\t1\t1\t1\t2\t5,x\t4", &header, &mut Vec::new(), &mut samples).is_err()
    );
    assert_eq!(samples, [7]);
}

#[test]
fn text_with_nuls_is_refused() {
    let header = header(vec![AuxField::new("s", AuxType::STRING)]);
    let row = |text: &str| {
        let row = format!("r1\t0\t8192\t3\t748.5\t4000\t3\t1,-2,3\t{text}");
        parse_row(row.as_bytes(), &header, &mut Vec::new(), &mut Vec::new()).map(drop)
    };
    assert!(row("ab").is_ok());
    for text in ["\0\0", "ab\0", "a\0b"] {
        let fault = row(text).err();
        assert!(fault.is_some_and(|f| f.found.contains("the auxiliary field")), "{text:?}");
    }
}

#[test]
fn unwritable_values_are_refused() {
    let header = header(vec![AuxField::new("s", AuxType::STRING)]);
    let write = |read_id: &str, text: &[u8]| {
        let mut aux = (text.len() as u64).to_le_bytes().to_vec();
        aux.extend(text);
        let record = Record {
            read_id,
            read_group: 0,
            digitisation: 1.0,
            offset: 0.0,
            range: 1.0,
            sampling_rate: 1.0,
            signal: &[],
            aux: &aux,
        };
        let mut out = vec![b'x'];
        let written = write_row(&record, &[], &header, &mut out);
        assert!(written.is_ok() || out == b"x");
        written.map(|()| out)
    };
    assert_eq!(write("r", b"text\0"), Ok(b"xr\t0\t1\t0\t1\t1\t0\t\ttext\n".to_vec()));
    for bad in [b"a\tb".as_slice(), b"a\nb", b"a\0b", b"a\r"] {
        assert!(write("r", bad).is_err(), "{bad:?}");
    }
    assert!(write("r\t1", b"").is_err());
}

proptest! {
    #[test]
    fn rows_round_trip(
        id in "[^\t\n\r\0]{1,20}",
        numbers in prop::array::uniform4(-1e6f64..1e6),
        samples: Vec<i16>,
        float: f32,
    ) {
        let header = header(vec![AuxField::new("f", AuxType::Scalar(Scalar::Float))]);
        let aux = float.to_le_bytes();
        let [digitisation, offset, range, sampling_rate] = numbers;
        let record = Record {
            read_id: &id,
            read_group: 1,
            digitisation,
            offset,
            range,
            sampling_rate,
            signal: &[],
            aux: &aux,
        };
        let mut out = Vec::new();
        prop_assert_eq!(write_row(&record, &samples, &header, &mut out), Ok(()));
        let row = out.strip_suffix(b"\n").unwrap_or_default();
        let mut aux = Vec::new();
        let mut back = Vec::new();
        let read_id = parse_row(row, &header, &mut aux, &mut back).map(|r| r.read_id);
        prop_assert_eq!(read_id, Ok(id.as_str()));
        prop_assert_eq!(&back, &samples);
        prop_assert_eq!(again(row, &header), Ok(out));
    }

    #[test]
    fn any_bytes_parse_or_not(bytes: Vec<u8>, at in 0usize..60, byte: u8) {
        let header = header(every_field());
        let _ = again(&bytes, &header);
        let _ = read_id_of(&bytes);
        let mut row = b"r1\t1\t8192\t3\t748.5\t4000\t3\t1,-2,3".to_vec();
        if let Some(slot) = row.get_mut(at) {
            *slot = byte;
        }
        let header = Header { aux: Vec::new(), ..header };
        let _ = again(&row, &header);
    }
}
