use proptest::prelude::*;
use thalweg_io::Fault;

use super::*;
use crate::record::{Attribute, AuxField, Encoding, RecordPress, SignalPress, Version};
use crate::record::{AuxType, Scalar};

fn sample(encoding: Encoding) -> Header {
    let attribute = |name: &str, values: [Option<&str>; 2]| Attribute {
        name: name.into(),
        values: values.map(|v| v.map(String::from)).to_vec(),
    };
    Header {
        version: Version::V0_1_0,
        encoding,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 2,
        attributes: vec![
            attribute("run_id", [Some("b"), None]),
            attribute("asic_id", [Some("x y"), Some("")]),
        ],
        aux: vec![
            AuxField::new("channel_number", AuxType::STRING),
            AuxField::new("t", AuxType::Scalar(Scalar::Uint64)),
        ],
        data_offset: 0,
    }
}

fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    match Header::parse(bytes)? {
        Parsed::Done(header) => Ok(header),
        Parsed::NeedMore(n) => Err(Fault::new(bytes.len(), "too little", format!("{n} bytes"))),
    }
}

#[test]
fn written_text() {
    let text =
        sample(Encoding::Ascii).write().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let expected = "#slow5_version\t0.1.0\n#num_read_groups\t2\n@asic_id\tx y\t.\n@run_id\tb\t.\n\
        #char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\tchar*\tuint64_t\n\
        #read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\t\
        raw_signal\tchannel_number\tt\n";
    assert_eq!(text.as_deref(), Ok(expected));
}

#[test]
fn the_file_version_rises_with_its_content() {
    let mut header = sample(Encoding::Binary);
    assert_eq!(header.written_version(), Version::V0_1_0);
    header.record_press = RecordPress::Zlib;
    assert_eq!(header.written_version(), Version::V0_1_0);
    header.record_press = RecordPress::Zstd;
    assert_eq!(header.written_version(), Version::V0_2_0);
    header.encoding = Encoding::Ascii;
    assert_eq!(header.written_version(), Version::V0_1_0);
    header.aux.push(AuxField {
        name: "e".into(),
        kind: AuxType::Scalar(Scalar::Enum),
        labels: vec!["a".into()],
    });
    assert_eq!(header.written_version(), Version::V0_2_0);
    header.version = Version::V1_0_0;
    assert_eq!(header.written_version(), Version::V1_0_0);
}

#[test]
fn a_growing_prefix_ends_in_the_header() {
    for encoding in [Encoding::Ascii, Encoding::Binary] {
        let bytes = sample(encoding).write().unwrap_or_default();
        let whole = parse(&bytes);
        assert!(whole.is_ok(), "{whole:?}");
        for len in 0..bytes.len() {
            let parsed = Header::parse(bytes.get(..len).unwrap_or_default());
            assert!(
                matches!(parsed, Ok(Parsed::NeedMore(n)) if n > len as u64),
                "{encoding:?} {len} {parsed:?}"
            );
        }
        let mut longer = bytes.clone();
        longer.extend(b"records");
        assert_eq!(parse(&longer), whole);
    }
}

#[test]
fn malformed_headers_are_refused() {
    let good = sample(Encoding::Ascii).write().unwrap_or_default();
    let good = String::from_utf8_lossy(&good);
    let cases = [
        ("#slow5_version\t0.1.0", "#slow5_version\t2.0.0", "newer reader"),
        ("#num_read_groups\t2", "#num_read_groups\t0", "at least one"),
        ("#num_read_groups\t2", "#num_read_groups\t3", "one for each read group"),
        ("#num_read_groups\t2\n", "#num_read_groups\t2\r\n", "Windows"),
        ("@asic_id", "@run_id", "distinct"),
        ("@asic_id\tx y\t.", "@asic_id", "one for each read group"),
        ("@asic_id", "asic_id", "starts with"),
        ("\tchar*\tuint64_t\n", "\tchar*\tuint64\n", "type of an auxiliary field"),
        ("\tchar*\tuint64_t\n", "\tchar*\n", "as many types"),
        ("\tchannel_number\tt\n", "\tt\tt\n", "distinct"),
        ("\tchannel_number\tt\n", "\tchannel_number\n", "as many names"),
        ("raw_signal\tchannel", "raw_signalchannel", "a tab"),
    ];
    for (from, to, expected) in cases {
        let fault = parse(good.replacen(from, to, 1).as_bytes()).err();
        assert!(fault.as_ref().is_some_and(|f| f.expected.contains(expected)), "{to:?}: {fault:?}");
    }
    let mut latin1 = good.into_owned().into_bytes();
    if let Some(b) = latin1.iter_mut().find(|b| **b == b'x') {
        *b = 0xb5;
    }
    assert!(parse(&latin1).is_err_and(|f| f.expected == "UTF-8 text"));
    assert!(Header::parse(b"\x89HDF\r\n\x1a\n").is_err());
}

#[test]
fn binary_lengths_are_questions_not_allocations() {
    let mut bytes = sample(Encoding::Binary).write().unwrap_or_default();
    if let Some(len) = bytes.get_mut(TEXT_LEN_AT..TEXT_AT) {
        len.fill(0xff);
    }
    assert_eq!(Header::parse(&bytes), Ok(Parsed::NeedMore(u64::from(u32::MAX) + 68)));
    for len in [0u8, 1] {
        let mut short = sample(Encoding::Binary).write().unwrap_or_default();
        if let Some(slot) = short.get_mut(TEXT_LEN_AT) {
            *slot = len;
        }
        assert!(Header::parse(&short).is_err(), "{len}");
    }
    for (at, value) in [(6, 2), (9, 3), (14, 3)] {
        let mut header = sample(Encoding::Binary);
        header.version = Version::V0_2_0;
        let mut bytes = header.write().unwrap_or_default();
        if let Some(slot) = bytes.get_mut(at) {
            *slot = value;
        }
        assert!(Header::parse(&bytes).is_err(), "{at}");
    }
}

#[test]
fn unwritable_values_are_refused() {
    let broken: [fn(&mut Header); 9] = [
        |h| h.read_groups = 0,
        |h| h.read_groups = 3,
        |h| h.version = Version::new(2, 0, 0),
        |h| h.attributes[0].name = "asic_id".into(),
        |h| h.attributes[0].name = "a\tb".into(),
        |h| h.attributes[0].values[0] = Some("a\nb".into()),
        |h| h.aux[0].name = "t".into(),
        |h| h.aux[0].labels = vec!["a".into()],
        |h| h.aux[0].kind = AuxType::Scalar(Scalar::Enum),
    ];
    for (i, breaking) in broken.into_iter().enumerate() {
        let mut header = sample(Encoding::Binary);
        breaking(&mut header);
        assert!(header.write().is_err(), "{i}");
    }
}

prop_compose! {
    fn any_header()(
        groups in 1u32..4, binary: bool, record in 0usize..4, signal in 0usize..7,
        names in prop::collection::btree_set("[a-z_]{1,9}", 0..5),
        values in prop::collection::vec(prop::option::of("[^\t\n\r.]{1,12}"), 16),
        kinds in prop::collection::vec((0usize..12, any::<bool>()), 0..6),
    ) -> Header {
        let encoding = if binary { Encoding::Binary } else { Encoding::Ascii };
        let mut values = values.into_iter();
        let mut column = || values.by_ref().take(groups as usize).collect::<Vec<_>>();
        let field = |(i, (scalar, array)): (usize, (usize, bool))| {
            let element = Scalar::ALL[scalar];
            let is_enum = element == Scalar::Enum;
            let labels = if is_enum { vec![format!("l{i}"), "other".into()] } else { Vec::new() };
            let kind = if array { AuxType::Array(element) } else { AuxType::Scalar(element) };
            AuxField { name: format!("field{i}"), kind, labels }
        };
        Header {
            version: Version::V0_2_0,
            encoding,
            record_press: if binary { RecordPress::ALL[record] } else { RecordPress::None },
            signal_press: if binary { SignalPress::ALL[signal] } else { SignalPress::None },
            read_groups: groups,
            attributes: names
                .into_iter()
                .map(|name| Attribute { name, values: column() })
                .collect(),
            aux: kinds.into_iter().enumerate().map(field).collect(),
            data_offset: 0,
        }
    }
}

proptest! {
    #[test]
    fn headers_round_trip(mut header in any_header()) {
        let bytes = header.write();
        let bytes = bytes.as_deref().unwrap_or_default();
        header.data_offset = bytes.len() as u64;
        prop_assert_eq!(parse(bytes), Ok(header));
    }

    #[test]
    fn any_bytes_parse_or_not(binary: bool, tail: Vec<u8>) {
        let mut bytes = if binary { MAGIC.to_vec() } else { VERSION_LINE.as_bytes().to_vec() };
        bytes.extend(tail);
        let _ = Header::parse(&bytes);
    }

    #[test]
    fn flipped_bits_never_panic(binary: bool, at in 0usize..400, bit in 0u32..8) {
        let encoding = if binary { Encoding::Binary } else { Encoding::Ascii };
        let mut bytes = sample(encoding).write().unwrap_or_default();
        let len = bytes.len();
        bytes[at % len] ^= 1 << bit;
        let _ = Header::parse(&bytes);
    }
}
