//! Writes FAST5 files and reads them again, with every field and every compression.

use std::path::Path;
use std::sync::Arc;

use thalweg::convert::{Conversion, convert};
use thalweg::format::fast5::{Compression, SignalCompressor, lost};
use thalweg::format::slow5::{
    Attribute, AuxField, AuxType, AuxValue, Encoding, Header, Record, RecordPress, Scalar,
    SignalPress, Version,
};
use thalweg::reads::{Options, Read, ReadFile, ReadSet, Selection};
use thalweg::write::{Coding, Fast5Writer};
use thalweg_testing::slow5::{id, signal};

use crate::convert::one_read;

fn header() -> Header {
    let mut reason = AuxField::new("end_reason", AuxType::Scalar(Scalar::Enum));
    reason.labels = vec!["unknown".into(), "signal_positive".into(), "signal_negative".into()];
    let scalar = |name: &str, scalar| AuxField::new(name, AuxType::Scalar(scalar));
    let attribute = |name: &str, a: &str, b: &str| Attribute {
        name: name.into(),
        values: [a, b].iter().map(|v| (!v.is_empty()).then(|| (*v).to_owned())).collect(),
    };
    Header {
        version: Version::V1_0_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups: 2,
        attributes: vec![
            attribute("asic_id", "123", ""),
            attribute("experiment_type", "rna", "genomic_dna"),
            attribute("file_type", "multi-read", "multi-read"),
            attribute("file_version", "2.3", "2.3"),
            attribute("pore_type", "not_set", "not_set"),
            attribute("run_id", "run a", "run b"),
        ],
        aux: vec![
            AuxField::new("channel_number", AuxType::STRING),
            scalar("median_before", Scalar::Double),
            scalar("read_number", Scalar::Int32),
            scalar("start_mux", Scalar::Uint8),
            scalar("start_time", Scalar::Uint64),
            reason,
            scalar("a8", Scalar::Int8),
            scalar("b16", Scalar::Int16),
            scalar("c64", Scalar::Int64),
            scalar("d16", Scalar::Uint16),
            scalar("e32", Scalar::Uint32),
            scalar("f32", Scalar::Float),
            AuxField::new("g_text", AuxType::STRING),
            AuxField::new("channel_id/h", AuxType::STRING),
        ],
        data_offset: 0,
    }
}

/// The values of read `i`; the first read has all of them.
fn values(i: usize) -> Vec<AuxValue<'static>> {
    let missing = |at: usize, value| {
        if i.is_multiple_of(5) || !(i + at).is_multiple_of(3) { value } else { AuxValue::Missing }
    };
    vec![
        missing(0, AuxValue::String(b"1078")),
        missing(1, AuxValue::Double(200.5 + i as f64)),
        missing(2, AuxValue::Int32(-7 + i as i32)),
        missing(3, AuxValue::Uint8(3)),
        missing(4, AuxValue::Uint64(1 << 40)),
        missing(5, AuxValue::Enum((i % 3) as u8)),
        missing(6, AuxValue::Int8(-5)),
        missing(7, AuxValue::Int16(-300)),
        missing(8, AuxValue::Int64(-(1 << 50))),
        missing(9, AuxValue::Uint16(65_000)),
        missing(10, AuxValue::Uint32(4_000_000_000)),
        missing(11, AuxValue::Float(1.25)),
        missing(12, AuxValue::String("naïve".as_bytes())),
        missing(13, AuxValue::String(b"x")),
    ]
}

fn samples(i: usize) -> Vec<i16> {
    // Read 3 is empty, and read 4 has one sample.
    match i {
        3 => Vec::new(),
        4 => vec![i16::MIN],
        _ => signal(i as u64, 100 + 977 * i),
    }
}

fn write(path: &Path, compression: Compression, reads: usize) {
    write_with(path, compression, reads, |i| ((i % 2) as u32, values(i)));
}

/// Writes reads. `of` gives the read group and the fields of each read.
fn write_with(
    path: &Path,
    compression: Compression,
    reads: usize,
    of: impl Fn(usize) -> (u32, Vec<AuxValue<'static>>),
) {
    let header = header();
    assert!(lost(&header).is_empty());
    let mut file = Fast5Writer::create(path, &header, compression).unwrap();
    let mut compressor = SignalCompressor::new(compression).unwrap();
    for i in 0..reads {
        let (read_group, values) = of(i);
        let mut aux = Vec::new();
        for (field, value) in header.aux.iter().zip(values) {
            field.push(value, &mut aux).unwrap();
        }
        let id = id(i);
        let record = Record {
            read_id: &id,
            read_group,
            digitisation: 8192.0,
            offset: 6.5,
            range: 1467.61,
            sampling_rate: 4000.0 + i as f64,
            signal: &[],
            aux: &aux,
        };
        file.push(&compressor.encode(&record, &samples(i)).unwrap()).unwrap();
    }
    file.finish().unwrap();
}

fn check(read: &Read<'_>) -> usize {
    let i: usize = read.record.read_id[5..9].parse().unwrap();
    assert_eq!(read.record.read_id, id(i));
    assert_eq!(read.samples, samples(i));
    let record = read.record;
    assert_eq!((record.digitisation, record.offset, record.range), (8192.0, 6.5, 1467.61));
    assert_eq!((record.sampling_rate, record.read_group), (4000.0 + i as f64, (i % 2) as u32));
    let wanted = header();
    let got: Vec<_> = record.aux_values(read.header).map(|value| value.unwrap()).collect();
    for (field, want) in wanted.aux.iter().zip(values(i)) {
        let (kind, value) = got.iter().find(|(known, _)| known.name == field.name).unwrap();
        assert_eq!(kind.kind, field.kind, "{}", field.name);
        // Enumerations are compared by label, because FAST5 has other codes.
        match (*value, want) {
            (AuxValue::Enum(code), AuxValue::Enum(wanted)) => {
                assert_eq!(kind.label(code), field.label(wanted));
            }
            (value, want) => assert_eq!(value, want, "{} of read {i}", field.name),
        }
    }
    i
}

#[test]
fn written_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [
        Compression::default(),
        Compression::Vbz(0),
        Compression::Vbz(5),
        Compression::Gzip(1),
        Compression::None,
    ] {
        let path = folder.path().join("out.fast5");
        write(&path, compression, 40);
        let file = ReadFile::open(&path, Options::default()).unwrap();
        assert!(file.left_out().is_empty(), "{:?}", file.left_out());
        assert_eq!(file.header().attributes, header().attributes);
        assert_eq!(file.header().read_groups, 2);
        let seen: Vec<usize> =
            file.map(&Selection::All, check).unwrap().map(Result::unwrap).collect();
        assert_eq!(seen, (0..40).collect::<Vec<_>>(), "reads in the order of the file");
        let ids = Selection::Ids(Arc::new(vec![id(39), id(3), id(4), id(3)]));
        let seen: Vec<usize> = file.map(&ids, check).unwrap().map(Result::unwrap).collect();
        assert_eq!(seen, [39, 3, 4, 3]);
    }
}

/// From this read on, reads belong to another run and have new fields.
const LATE: usize = 50;

fn late(i: usize) -> (u32, Vec<AuxValue<'static>>) {
    let known = if i < LATE { 3 } else { 14 };
    let values = values(0).into_iter().enumerate();
    (
        u32::from(i >= LATE),
        values.map(|(at, value)| if at < known { value } else { AuxValue::Missing }).collect(),
    )
}

/// Checks a read against the header that it came with, and returns the number of the read.
fn check_late(read: &Read<'_>) -> usize {
    let i: usize = read.record.read_id[5..9].parse().unwrap();
    let (group, values) = late(i);
    assert_eq!(read.samples, samples(i));
    assert_eq!(read.record.read_group, group);
    assert_eq!(read.header.attribute("run_id", group), Some(["run a", "run b"][group as usize]));
    let got: Vec<_> = read.record.aux_values(read.header).map(|value| value.unwrap()).collect();
    for (field, want) in header().aux.iter().zip(values) {
        let found = got.iter().find(|(known, _)| known.name == field.name).map(|(_, value)| *value);
        assert_eq!(found.unwrap_or(AuxValue::Missing), want, "{} of read {i}", field.name);
    }
    i
}

#[test]
fn late_fields_are_known_when_they_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.fast5");
    write_with(&path, Compression::default(), LATE + 20, late);
    let open = || ReadFile::open(&path, Options::default()).unwrap();
    let seen: Vec<usize> =
        open().map(&Selection::All, check_late).unwrap().map(Result::unwrap).collect();
    assert_eq!(seen, (0..LATE + 20).collect::<Vec<_>>());
    let order = [LATE + 5, 2, LATE, 2];
    let ids = Selection::Ids(Arc::new(order.map(id).to_vec()));
    let seen: Vec<usize> = open().map(&ids, check_late).unwrap().map(Result::unwrap).collect();
    assert_eq!(seen, order);
    let file = open();
    let mut getter = file.getter().unwrap();
    assert_eq!(order.map(|i| getter.get(&id(i), check_late).unwrap()), order);
    // The header covers all reads, even before any read was parsed.
    for file in [&file, &open()] {
        assert_eq!(file.header().read_groups, 2);
        assert_eq!(file.header().attributes, header().attributes);
        assert_eq!(file.header().aux.len(), 14);
        assert!(file.left_out().is_empty());
        let rows = |batches: thalweg::reads::Batches| -> usize {
            let columns = file.schema(Default::default()).unwrap().fields().len();
            batches
                .map(Result::unwrap)
                .map(|batch| (batch.num_rows(), assert!(batch.num_columns() + 1 >= columns)).0)
                .sum()
        };
        assert_eq!(rows(file.batches(&Selection::All).unwrap()), LATE + 20);
        assert_eq!(rows(file.scan(&Selection::All, Default::default()).unwrap()), LATE + 20);
        let report = file.check().unwrap();
        assert!(report.is_whole(), "{:?}", report.defects);
        assert_eq!(report.reads, (LATE + 20) as u64);
    }
}

#[test]
fn a_file_without_reads_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.fast5");
    write(&path, Compression::default(), 0);
    let file = ReadFile::open(&path, Options::default()).unwrap();
    assert_eq!(file.map(&Selection::All, |_| ()).unwrap().count(), 0);
}

#[test]
fn the_losses_of_a_format_are_reported() {
    let mut header = header();
    header.aux.push(AuxField::new("moves", AuxType::Array(Scalar::Uint8)));
    assert_eq!(lost(&header), ["the auxiliary field moves of type uint8_t*"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.fast5");
    let mut file = Fast5Writer::create(&path, &header, Compression::default()).unwrap();
    let mut compressor = SignalCompressor::new(Compression::default()).unwrap();
    let mut aux = Vec::new();
    for field in &header.aux {
        field.push(AuxValue::Missing, &mut aux).unwrap();
    }
    let record = |read_id| Record {
        read_id,
        read_group: 0,
        digitisation: 1.0,
        offset: 0.0,
        range: 1.0,
        sampling_rate: 1.0,
        signal: &[],
        aux: &aux,
    };
    compressor.encode(&record("a/b"), &[1]).unwrap_err();
    let read = compressor.encode(&record("a"), &[1]).unwrap();
    file.push(&read).unwrap();
    let error = file.push(&read).unwrap_err();
    assert!(
        error.to_string().contains("twice.fast5") && error.to_string().contains("exist"),
        "{error}"
    );
    Fast5Writer::create(&folder.path().join("no/such/folder"), &header, Compression::None)
        .unwrap_err();
    // An unfinished file is removed.
    drop(file);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// FAST5 has labels of end reasons that the header need not have, and no text that is not UTF-8.
#[test]
fn codes_without_a_label_and_bytes_that_are_no_text_are_losses() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let reason = AuxField {
        labels: vec!["unknown".into(), "partial".into()],
        ..AuxField::new("end_reason", AuxType::Scalar(Scalar::Enum))
    };
    let text = AuxField::new("note", AuxType::STRING);
    for (field, aux, what) in [
        (reason, &[7][..], "a value does not fit its column"),
        (text, &[2, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe][..], "a text is not UTF-8"),
    ] {
        one_read(&path("a.blow5"), |header, record| {
            header.aux = vec![field.clone()];
            record.aux = aux;
        });
        let set = ReadSet::open([path("a.blow5")], Options::default()).unwrap();
        let conversion = Conversion::new(Coding::Fast5(Compression::default()));
        let to = path("a.fast5");
        let error = convert(&set, &Selection::All, &to, &conversion).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        convert(&set, &Selection::All, &to, &Conversion { lossy: true, ..conversion }).unwrap();
        let back = ReadFile::open(&to, Options::default()).unwrap();
        assert!(back.header().aux.iter().all(|known| known.name != field.name));
        std::fs::remove_file(&to).unwrap();
    }
}
