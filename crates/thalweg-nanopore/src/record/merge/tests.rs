#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::{AuxType, Encoding, RecordPress, SignalPress, Version};
use super::*;

fn header(runs: &[Option<&str>], aux: Vec<AuxField>) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::Zstd,
        signal_press: SignalPress::SvbZd,
        read_groups: runs.len() as u32,
        attributes: vec![Attribute {
            name: "run_id".into(),
            values: runs.iter().map(|run| run.map(str::to_owned)).collect(),
        }],
        aux,
        data_offset: 0,
    }
}

fn labels(kind: AuxType, labels: &[&str]) -> AuxField {
    AuxField {
        labels: labels.iter().map(ToString::to_string).collect(),
        ..AuxField::new("reason", kind)
    }
}

const ENUM: AuxType = AuxType::Scalar(Scalar::Enum);

fn record<'a>(read_group: u32, aux: &'a [u8]) -> Record<'a> {
    Record {
        read_id: "r",
        read_group,
        digitisation: 1.0,
        offset: 2.0,
        range: 3.0,
        sampling_rate: 4.0,
        signal: b"s",
        aux,
    }
}

#[test]
fn groups_with_the_same_attributes_become_one() {
    let mut c = header(&[Some("b"), None], Vec::new());
    c.attributes.push(Attribute { name: "kit".into(), values: vec![Some("k".into()), None] });
    let (a, b) = (header(&[Some("a"), Some("b")], Vec::new()), header(&[Some("b")], Vec::new()));
    let merged = Merged::new([&a, &b, &c]).unwrap();
    let groups: Vec<_> = [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2), (3, 0)]
        .map(|(file, group)| merged.group(file, group))
        .to_vec();
    // The same run with another kit is another group.
    assert_eq!(groups, [Some(0), Some(1), Some(1), Some(2), Some(3), None, None]);
    let values =
        |name: &str| (0..4).map(|group| merged.header().attribute(name, group)).collect::<Vec<_>>();
    assert_eq!(values("run_id"), [Some("a"), Some("b"), Some("b"), None]);
    assert_eq!(values("kit"), [None, None, Some("k"), None]);
    assert!(merged.header().write().is_ok());

    let some = merged.only(&BTreeSet::from([1, 3]));
    assert_eq!(
        [(0, 0), (0, 1), (2, 1)].map(|(file, group)| some.group(file, group)),
        [None, Some(0), Some(1)]
    );
    assert_eq!(some.header().attribute("run_id", 0), Some("b"));
    assert!(some.header().attributes.iter().all(|attribute| attribute.name != "kit"));
    assert!(some.header().write().is_ok());
    assert!(some.record(0, &a, &record(0, b""), &mut Vec::new()).is_err());
}

#[test]
fn fields_and_labels_are_combined() {
    let number = || AuxField::new("n", AuxType::Scalar(Scalar::Int32));
    let a = header(&[None], vec![labels(ENUM, &["x", "y"]), number()]);
    let b = header(
        &[None],
        vec![number(), labels(ENUM, &["y", "z"]), AuxField::new("text", AuxType::STRING)],
    );
    let merged = Merged::new([&a, &b]).unwrap();
    assert_eq!(
        merged.header().aux.iter().map(|f| f.type_name()).collect::<Vec<_>>(),
        ["enum{x,y,z}", "int32_t", "char*"]
    );

    let values = |file, from: &Header, bytes: &[u8]| {
        let mut aux = Vec::new();
        let moved = merged.record(file, from, &record(0, bytes), &mut aux).unwrap();
        assert_eq!((moved.read_id, moved.signal), ("r", &b"s"[..]));
        moved.aux_values(merged.header()).map(|v| format!("{:?}", v.unwrap().1)).collect::<Vec<_>>()
    };
    assert_eq!(values(0, &a, &[1, 5, 0, 0, 0]), ["Enum(1)", "Int32(5)", "Missing"]);
    let text = b"\x07\0\0\0\x01\x02\0\0\0\0\0\0\0hi";
    assert_eq!(values(1, &b, text), ["Enum(2)", "Int32(7)", "String([104, 105])"]);
    // A missing value stays missing.
    assert_eq!(
        values(1, &b, b"\x07\0\0\0\xff\0\0\0\0\0\0\0\0"),
        ["Missing", "Int32(7)", "Missing"]
    );
}

#[test]
fn codes_in_arrays_are_translated() {
    let array = AuxType::Array(Scalar::Enum);
    let (a, b) = (
        header(&[None], vec![labels(array, &["x", "y"])]),
        header(&[None], vec![labels(array, &["y"])]),
    );
    let merged = Merged::new([&a, &b]).unwrap();
    let mut aux = Vec::new();
    let moved = merged.record(1, &b, &record(0, b"\x02\0\0\0\0\0\0\0\0\xff"), &mut aux).unwrap();
    assert_eq!(moved.aux, b"\x02\0\0\0\0\0\0\0\x01\xff");
    // The auxiliary bytes of the first file stay unchanged.
    let mut unused = Vec::new();
    assert_eq!(
        merged.record(0, &a, &record(0, b"\x01\0\0\0\0\0\0\0\x01"), &mut unused).unwrap().aux,
        b"\x01\0\0\0\0\0\0\0\x01"
    );
    assert!(unused.is_empty());
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let a = header(&[None], vec![AuxField::new("n", AuxType::Scalar(Scalar::Int32))]);
    let b = header(&[None], vec![AuxField::new("n", AuxType::STRING)]);
    assert!(
        Merged::new([&a, &a, &b])
            .is_err_and(|(file, fault)| file == 2 && fault.found.contains("char*"))
    );
    let many: Vec<String> = (0..400).map(|i| format!("l{i}")).collect();
    let half = |part: &[String]| {
        header(&[None], vec![AuxField { labels: part.to_vec(), ..AuxField::new("e", ENUM) }])
    };
    assert!(Merged::new([&half(&many[..200]), &half(&many[200..])]).is_err());
    assert!(Merged::new(std::iter::empty::<&Header>()).is_err());
}
