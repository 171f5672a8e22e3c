//! Conversions between formats: nothing is lost unless the report says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use thalweg::Error;
use thalweg::convert::{Conversion, ConvertReport, convert};
use thalweg::format::pod5::fields::{END_REASONS, FIELDS};
use thalweg::format::pod5::write::{Pod5Layout, SignalCoding};
use thalweg::format::slow5::{
    Attribute, AuxField, AuxType, AuxValue, Encoding, Header, Record, RecordEncoder, RecordPress,
    Scalar, SignalPress, Version,
};
use thalweg::reads::{Options, ReadFile, ReadSet, Selection};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::{Coding, ReadWriter};

const BLOW5: Coding = Coding::Blow5(RecordPress::Zstd, SignalPress::SvbZd);

fn pod5() -> Coding {
    Coding::Pod5(Pod5Layout::default())
}

/// Everything about a read, auxiliary values by name.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    read_id: String,
    run: Option<String>,
    numbers: [u64; 4],
    aux: Vec<(String, String)>,
    samples: Vec<i16>,
}

fn seen(path: &Path) -> Vec<Seen> {
    let file = ReadFile::open(path, Options::default()).unwrap();
    let reads = file.map(&Selection::All, |read| {
        let r = read.record;
        let aux = r.aux_values(read.header).map(|value| {
            let (field, value) = value.unwrap();
            let text = match value {
                AuxValue::Enum(code) => field.label(code).unwrap().to_owned(),
                other => format!("{other:?}"),
            };
            (field.name.clone(), text)
        });
        let mut aux: Vec<_> = aux.filter(|(_, value)| value != "Missing").collect();
        aux.sort();
        Seen {
            read_id: r.read_id.to_owned(),
            run: read.header.attribute("run_id", r.read_group).map(str::to_owned),
            numbers: [r.digitisation, r.offset, r.range, r.sampling_rate].map(f64::to_bits),
            aux,
            samples: read.samples.to_vec(),
        }
    });
    reads.unwrap().map(Result::unwrap).collect()
}

/// The reads, without the fields that none of `others` has.
fn with_fields_of(reads: &[Seen], others: &[Seen]) -> Vec<Seen> {
    let known =
        |name: &str| others.iter().any(|read| read.aux.iter().any(|(other, _)| other == name));
    let keep = |read: &Seen| Seen {
        aux: read.aux.iter().filter(|(name, _)| known(name)).cloned().collect(),
        ..read.clone()
    };
    reads.iter().map(keep).collect()
}

fn converted(from: &[&Path], to: &Path, conversion: &Conversion) -> Result<ConvertReport, Error> {
    convert(&ReadSet::open(from, Options::default()).unwrap(), &Selection::All, to, conversion)
}

fn exactly(from: &Path, to: &Path, coding: Coding) {
    let conversion = Conversion { verify: Some(Options::default()), ..Conversion::new(coding) };
    let report = converted(&[from], to, &conversion).unwrap();
    assert!(report.verified && report.lost.is_empty(), "{report:?}");
}

fn synth(path: &Path, recipe: Recipe) {
    let synth = Synth::new(recipe).unwrap();
    let header = synth.header(RecordPress::Zstd, SignalPress::SvbZd);
    let mut out = ReadWriter::create(path, &header).unwrap();
    let (mut read, mut encoder) = (SynthRead::default(), RecordEncoder::new().unwrap());
    for i in 0..synth.recipe().reads {
        synth.read(i, &mut read);
        out.push(&read.read_id, &read.frame(&header, &mut encoder).unwrap()).unwrap();
    }
    out.finish().unwrap();
}

fn small(seed: u64, reads: u64) -> Recipe {
    Recipe { seed, reads, mean_length: 3000.0, ..Recipe::default() }
}

#[test]
fn blow5_to_pod5_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Some of these reads have several rows of signal.
    synth(
        &at("a.blow5"),
        Recipe { read_groups: 3, max_length: 400_000, mean_length: 60_000.0, ..small(3, 40) },
    );
    let wanted = seen(&at("a.blow5"));
    let layouts = [
        Pod5Layout::default(),
        Pod5Layout { coding: SignalCoding::Plain, ..Pod5Layout::default() },
        Pod5Layout { row_samples: 777, signal_rows: 7, reads_rows: 3, ..Pod5Layout::default() },
        Pod5Layout { coding: SignalCoding::Vbz { level: 9 }, ..Pod5Layout::default() },
    ];
    for layout in layouts {
        exactly(&at("a.blow5"), &at("a.pod5"), Coding::Pod5(layout));
        assert_eq!(with_fields_of(&seen(&at("a.pod5")), &wanted), wanted);
        exactly(&at("a.pod5"), &at("b.blow5"), BLOW5);
        assert_eq!(with_fields_of(&seen(&at("b.blow5")), &wanted), wanted);
        exactly(&at("b.blow5"), &at("b.pod5"), pod5());
        assert_eq!(seen(&at("b.pod5")), seen(&at("a.pod5")));
        // Text has as many decimals as the numbers need.
        exactly(&at("b.pod5"), &at("b.slow5"), Coding::Slow5);
        assert_eq!(seen(&at("b.slow5")), seen(&at("a.pod5")));
    }
    let header =
        |name: &str| ReadFile::open(at(name), Options::default()).unwrap().header().clone();
    let (original, again) = (header("a.blow5"), header("b.blow5"));
    for attribute in &original.attributes {
        for group in 0..original.read_groups {
            let name = &attribute.name;
            assert_eq!(
                again.attribute(name, group),
                original.attribute(name, group),
                "{name} of {group}"
            );
        }
    }
}

#[test]
fn many_files_are_merged_into_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    synth(&at("a.blow5"), small(1, 5));
    synth(&at("b.blow5"), Recipe { read_groups: 2, ..small(2, 6) });
    exactly(&at("a.blow5"), &at("c.pod5"), pod5());
    // The set contains the reads of a.blow5 twice. BLOW5 refuses duplicate ids, because its index
    // could not distinguish them.
    let set = [at("a.blow5"), at("b.blow5"), at("c.pod5")];
    let all: Vec<&Path> = set.iter().map(PathBuf::as_path).collect();
    let error = converted(&all, &at("all.blow5"), &Conversion::new(BLOW5)).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert!(!at("all.blow5").exists());

    for (coding, name) in [(BLOW5, "ab.blow5"), (pod5(), "ab.pod5")] {
        let conversion = Conversion { verify: Some(Options::default()), ..Conversion::new(coding) };
        let report = converted(&all[..2], &at(name), &conversion).unwrap();
        assert_eq!(report.reads, 11);
        let wanted: Vec<Seen> = [seen(all[0]), seen(all[1])].concat();
        assert_eq!(with_fields_of(&seen(&at(name)), &wanted), wanted);
        let header = ReadFile::open(at(name), Options::default()).unwrap().header().clone();
        assert_eq!(header.read_groups, 3);
    }
    // If two files have the same run, it becomes one read group.
    synth(&at("d.blow5"), small(1, 8));
    let ids = seen(&at("d.blow5"))[5..].iter().map(|read| read.read_id.clone()).collect();
    let d = ReadSet::open([at("d.blow5")], Options::default()).unwrap();
    convert(&d, &Selection::Ids(Arc::new(ids)), &at("e.blow5"), &Conversion::new(BLOW5)).unwrap();
    converted(&[&at("a.blow5"), &at("e.blow5")], &at("ae.blow5"), &Conversion::new(BLOW5)).unwrap();
    let header = ReadFile::open(at("ae.blow5"), Options::default()).unwrap().header().clone();
    assert_eq!((header.read_groups, seen(&at("ae.blow5")).len()), (1, 8));
}

#[test]
fn records_of_the_same_compressions_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let coding = Coding::Blow5(RecordPress::None, SignalPress::SvbZd);
    synth(&path("zstd.blow5"), small(5, 6));
    exactly(&path("zstd.blow5"), &path("a.blow5"), coding.clone());
    // Keys of four bytes a sample, for which there are not enough bytes: only decoding the signal
    // finds that.
    let mut bytes = fs::read(path("a.blow5")).unwrap();
    let file = ReadFile::open(path("a.blow5"), Options::default()).unwrap();
    let ids = file.read_ids().unwrap();
    let at = file.getter().unwrap().fetch(&ids[2]).unwrap() as usize;
    let signal = at + 8 + 2 + ids[2].len() + 4 + 4 * 8 + 8 + 4;
    bytes[signal..signal + 64].fill(0xff);
    drop(file);
    fs::write(path("a.blow5"), &bytes).unwrap();
    fs::remove_file(path("a.blow5.idx")).ok();
    let to = path("to.blow5");
    let convert_with = |conversion: Conversion| converted(&[&path("a.blow5")], &to, &conversion);
    convert_with(Conversion::new(coding.clone())).unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
    // What is verified, encoded again, or stored in another way is decoded.
    let verify = Some(Options::default());
    for conversion in [
        Conversion { verify, ..Conversion::new(coding.clone()) },
        Conversion { copy: false, ..Conversion::new(coding.clone()) },
        Conversion::new(BLOW5),
    ] {
        let error = convert_with(conversion).unwrap_err().to_string();
        assert!(error.contains("a.blow5") && error.contains("record 3"), "{error}");
    }
    // So is a record whose read group gets another number.
    one_read(&path("0.blow5"), |header, _| {
        header.attributes[0].values = vec![Some("other".to_owned())];
    });
    let both = [&*path("0.blow5"), &*path("a.blow5")];
    let error = converted(&both, &path("both.blow5"), &Conversion::new(coding)).unwrap_err();
    assert!(error.to_string().contains("record 3"), "{error}");
}

/// Writes a file of one read in which `change` has changed the header or the record.
pub(crate) fn one_read(path: &Path, change: impl Fn(&mut Header, &mut Record<'_>)) {
    let mut header = Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 1,
        attributes: vec![Attribute { name: "run_id".into(), values: vec![Some("run".into())] }],
        aux: Vec::new(),
        data_offset: 0,
    };
    let mut record = Record {
        read_id: "00f7a3c1-0000-4abc-bdef-0123456789ff",
        read_group: 0,
        digitisation: 8192.0,
        offset: 6.0,
        range: 1500.0,
        sampling_rate: 4000.0,
        signal: &[],
        aux: &[],
    };
    change(&mut header, &mut record);
    let mut out = ReadWriter::create(path, &header).unwrap();
    let mut frame = Vec::new();
    RecordEncoder::new().unwrap().record(&header, &record, &[1, 2, 3], &mut frame).unwrap();
    out.push(record.read_id, &frame).unwrap();
    out.finish().unwrap();
}

#[test]
fn losses_of_pod5_are_refused_or_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.blow5"), folder.path().join("a.pod5"));
    let lossless = |change: &dyn Fn(&mut Header, &mut Record<'_>)| {
        one_read(&from, change);
        exactly(&from, &to, pod5());
    };
    lossless(&|_, _| {});
    lossless(&|_, r| r.digitisation = 2048.0);
    lossless(&|_, r| r.offset = -0.0);
    let attribute =
        |name: &str, value: &str| Attribute { name: name.into(), values: vec![Some(value.into())] };
    lossless(&|h, _| {
        h.attributes.extend([
            attribute("protocol_start_time", "yesterday"),
            attribute("acquisition_start_time", "2023-06-02T16:09:10.618973+02:00"),
            attribute("sample_rate", "4000.0"),
            attribute("anything", "at all"),
        ]);
    });

    const RED: [u8; 11] = [3, 0, 0, 0, 0, 0, 0, 0, b'r', b'e', b'd'];
    let lost = |told: &str, change: &dyn Fn(&mut Header, &mut Record<'_>)| {
        one_read(&from, change);
        let _ = fs::remove_file(&to);
        let error = converted(&[&from], &to, &Conversion::new(pod5())).unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains(told),
            "{told}: {error}"
        );
        assert!(!to.exists());
        let lossy =
            Conversion { lossy: true, verify: Some(Options::default()), ..Conversion::new(pod5()) };
        let report = converted(&[&from], &to, &lossy).unwrap();
        let [loss] = report.lost.as_slice() else { panic!("{told}: {report:?}") };
        assert!(loss.what.contains(told), "{told}: {loss:?}");
        assert_eq!(seen(&to)[0].samples, [1, 2, 3]);
    };
    lost("the offset", &|_, r| r.offset = 0.1);
    lost("range", &|_, r| r.range = 1467.61);
    lost("sampling rate", &|_, r| r.sampling_rate = 4000.5);
    lost("sampling rate", &|_, r| r.sampling_rate = 1e6);
    lost("digitisation", &|_, r| {
        r.digitisation = 8192.5;
        r.range = 8192.5;
    });
    let field = |header: &mut Header, name: &str, kind| header.aux.push(AuxField::new(name, kind));
    lost("auxiliary field end", &|h, r| {
        field(h, "end", AuxType::Array(Scalar::Enum));
        h.aux[0].labels = vec!["red".into()];
        r.aux = &[0; 8];
    });
    lost("auxiliary field letter", &|h, r| {
        field(h, "letter", AuxType::Scalar(Scalar::Char));
        r.aux = b"a";
    });
    lost("auxiliary field start", &|h, r| {
        field(h, "start", AuxType::Scalar(Scalar::Uint8));
        r.aux = b"a";
    });
    lost("auxiliary field start_mux", &|h, r| {
        field(h, "start_mux", AuxType::STRING);
        r.aux = &RED;
    });
    lost("channel_number", &|h, r| {
        field(h, "channel_number", AuxType::STRING);
        r.aux = &RED;
    });
    lost("end reason", &|h, r| {
        field(h, "end_reason", AuxType::Scalar(Scalar::Enum));
        h.aux[0].labels = vec!["unknown".into(), "partial".into()];
        r.aux = &[1];
    });
    lost("end reason", &|h, r| {
        field(h, "end_reason", AuxType::Scalar(Scalar::Enum));
        h.aux[0].labels = vec!["unknown".into()];
        r.aux = &[u8::MAX];
    });
    lost("read group 1", &|h, _| {
        h.read_groups = 2;
        h.attributes[0].values = vec![Some("run".into()), Some("run".into())];
    });
    for (name, text) in [
        ("pod5_columns", "{\"a\":"),
        ("pod5_columns", "{\"a\":\"Int9\"}"),
        ("pod5_run_info", "{\"a\":"),
        ("pod5_run_info", "{\"a\":[1]}"),
        ("pod5_tracking_id", "[a"),
    ] {
        lost(name, &|h, _| h.attributes.push(attribute(name, text)));
    }
}

#[test]
fn reads_without_a_uuid_have_no_place_in_pod5() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.blow5"), folder.path().join("a.pod5"));
    for id in ["read-1", "00F7A3C1-0000-4abc-bdef-0123456789ff", ""] {
        one_read(&from, |_, record| record.read_id = id);
        let lossy = Conversion { lossy: true, ..Conversion::new(pod5()) };
        let error = converted(&[&from], &to, &lossy).unwrap_err();
        assert!(error.to_string().contains("UUID"), "{error}");
        assert!(fs::read_dir(folder.path()).unwrap().count() == 1);
    }
}

fn any_value(kind: AuxType, labels: usize) -> BoxedStrategy<Vec<u8>> {
    match kind {
        AuxType::Array(_) => (1..u32::MAX)
            .prop_map(|n| {
                let text = n.to_string();
                [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
            })
            .boxed(),
        AuxType::Scalar(Scalar::Enum) => (0..labels as u8).prop_map(|code| vec![code]).boxed(),
        AuxType::Scalar(Scalar::Double) => {
            any::<f32>().prop_map(|v| f64::from(v).to_le_bytes().to_vec()).boxed()
        }
        AuxType::Scalar(Scalar::Uint8) => (0..2_u8).prop_map(|v| vec![v]).boxed(),
        AuxType::Scalar(scalar) => prop::collection::vec(any::<u8>(), scalar.size()).boxed(),
    }
}

/// A read with any values that POD5 can hold.
fn any_read() -> impl Strategy<Value = ([u8; 16], f32, f32, Vec<Vec<u8>>, Vec<i16>)> {
    let fields: Vec<_> =
        FIELDS.iter().map(|field| any_value(field.kind, END_REASONS.len())).collect();
    let finite = || any::<f32>().prop_filter("finite", |v| v.is_finite());
    (any::<[u8; 16]>(), finite(), finite(), fields, prop::collection::vec(any::<i16>(), 0..3000))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_reads_survive(
        reads in prop::collection::vec(any_read(), 0..12),
        rows in 1..4_usize,
        row_samples in 1..2000_u32,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let header = Header {
            version: Version::V0_2_0,
            encoding: Encoding::Binary,
            record_press: RecordPress::Zstd,
            signal_press: SignalPress::SvbZd,
            read_groups: 1,
            attributes: vec![Attribute { name: "run_id".into(), values: vec![Some("run".into())] }],
            aux: FIELDS.iter().map(|field| field.aux_field()).collect(),
            data_offset: 0,
        };
        let mut out = ReadWriter::create(&at("a.blow5"), &header).unwrap();
        let mut encoder = RecordEncoder::new().unwrap();
        for (i, (uuid, offset, scale, fields, samples)) in reads.iter().enumerate() {
            let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
            // Ids must differ.
            let id =
                format!("{i:08x}-{}-{}-{}-{}", &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
            let aux = fields.concat();
            let record = Record {
                read_id: &id,
                read_group: 0,
                digitisation: 2048.0,
                offset: f64::from(*offset),
                range: f64::from(*scale) * 2048.0,
                sampling_rate: 5000.0,
                signal: &[],
                aux: &aux,
            };
            let mut frame = Vec::new();
            encoder.record(&header, &record, samples, &mut frame).unwrap();
            out.push(&id, &frame).unwrap();
        }
        out.finish().unwrap();
        let layout = Pod5Layout {
            row_samples,
            signal_rows: rows,
            reads_rows: rows,
            ..Pod5Layout::default()
        };
        exactly(&at("a.blow5"), &at("a.pod5"), Coding::Pod5(layout));
        prop_assert_eq!(seen(&at("a.pod5")), seen(&at("a.blow5")));
        exactly(&at("a.pod5"), &at("b.blow5"), BLOW5);
        prop_assert_eq!(seen(&at("b.blow5")), seen(&at("a.blow5")));
    }
}

/// A code without a label in its own file must not get a label of another file.
#[test]
fn a_code_without_a_label_is_refused_beside_other_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str, id: &'static str, labels: &[&str], code: u8| {
        one_read(&path(name), |header, record| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            let kind = AuxType::Scalar(Scalar::Enum);
            header.aux = vec![AuxField { labels, ..AuxField::new("end_reason", kind) }];
            record.read_id = id;
            record.aux = if code == 3 { &[3] } else { &[0] };
        });
    };
    file("a.blow5", "00f7a3c1-0000-4abc-bdef-0123456789aa", &["x", "y", "z"], 3);
    file("b.blow5", "00f7a3c1-0000-4abc-bdef-0123456789bb", &["x", "y", "z", "w"], 0);
    let both = ReadSet::open([path("a.blow5"), path("b.blow5")], Options::default()).unwrap();
    let coding = Coding::Blow5(RecordPress::None, SignalPress::None);
    let to = path("to.blow5");
    let merged = convert(&both, &Selection::All, &to, &Conversion::new(coding));
    let error = merged.unwrap_err().to_string();
    assert!(error.contains("code 3") && error.contains("end_reason"), "{error}");
    let rows = both.batches(&Selection::All).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(rows.contains("code 3"), "{rows}");
}

/// Fields that one of the files lacks have in POD5 what they have in a file without them: POD5's
/// programs fail on missing numbers.
#[test]
fn fields_that_a_file_lacks_have_the_values_of_pod5() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    one_read(&path("a.blow5"), |_, _| {});
    synth(&path("b.blow5"), small(3, 4));
    converted(&[&path("b.blow5")], &path("b.pod5"), &Conversion::new(pod5())).unwrap();
    let conversion =
        Conversion { verify: Some(Options::default()), lossy: true, ..Conversion::new(pod5()) };
    converted(&[&path("a.blow5"), &path("b.pod5")], &path("ab.pod5"), &conversion).unwrap();
    let file = ReadFile::open(path("ab.pod5"), Options::default()).unwrap();
    let first = file.read_ids().unwrap()[0].clone();
    let header = file.header().clone();
    let fields = |read: &thalweg::reads::Read<'_>| {
        let values = read.record.aux_values(read.header).map(Result::unwrap);
        values.map(|(field, value)| (field.name.clone(), format!("{value:?}"))).collect()
    };
    let values: std::collections::HashMap<String, String> =
        file.getter().unwrap().get(&first, fields).unwrap();
    assert_eq!(values["num_minknow_events"], "Uint64(0)");
    assert_eq!(values["num_reads_since_mux_change"], "Uint32(0)");
    assert_eq!(values["time_since_mux_change"], "Float(0.0)");
    assert!(header.aux.iter().any(|field| field.name == "pore_type"));
    assert_ne!(values["pore_type"], "Missing");
}
