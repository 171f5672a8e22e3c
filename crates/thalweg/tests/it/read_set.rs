//! Several files as one data set, and Arrow files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, UInt8Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use thalweg::Error;
use thalweg::condition::Condition;
use thalweg::format::slow5::{
    AuxField, AuxType, AuxValue, Encoding, Header, Record, RecordEncoder, RecordPress, Scalar,
    SignalPress, Version,
};
use thalweg::new_file::ArrowWriter;
use thalweg::reads::{
    BatchOptions, Options, Order, Read, ReadSet, ScanOptions, Selection, Visitor,
};
use thalweg::write::ReadWriter;

fn header(aux: Vec<AuxField>) -> Header {
    Header {
        version: Version::V0_2_0,
        encoding: Encoding::Binary,
        record_press: RecordPress::Zstd,
        signal_press: SignalPress::SvbZd,
        read_groups: 1,
        attributes: Vec::new(),
        aux,
        data_offset: 0,
    }
}

fn reason(labels: &[&str]) -> AuxField {
    let labels = labels.iter().map(ToString::to_string).collect();
    AuxField { labels, ..AuxField::new("end_reason", AuxType::Scalar(Scalar::Enum)) }
}

fn mux() -> AuxField {
    AuxField::new("mux", AuxType::Scalar(Scalar::Int32))
}

fn write(path: &Path, header: &Header, ids: &[&str], values: &[AuxValue<'_>]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (mut out, mut encoder) =
        (ReadWriter::create(path, header).unwrap(), RecordEncoder::new().unwrap());
    for id in ids {
        let mut aux = Vec::new();
        for (field, value) in header.aux.iter().zip(values) {
            field.push(*value, &mut aux).unwrap();
        }
        let record = Record {
            read_id: id,
            read_group: 0,
            digitisation: 8192.0,
            offset: 1.0,
            range: 1400.0,
            sampling_rate: 4000.0,
            signal: &[],
            aux: &aux,
        };
        let samples: Vec<i16> = id.bytes().map(i16::from).collect();
        let mut frame = Vec::new();
        encoder.record(header, &record, &samples, &mut frame).unwrap();
        out.push(id, &frame).unwrap();
    }
    out.finish().unwrap();
}

/// A folder of three files with different fields.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| folder.path().join(name);
    let old = header(vec![reason(&["unknown", "mux_change"]), mux()]);
    write(&at("a/1.blow5"), &old, &["a", "bb"], &[AuxValue::Enum(1), AuxValue::Int32(5)]);
    let new = header(vec![reason(&["other", "mux_change"])]);
    write(&at("b.blow5"), &new, &["ccc", "dddd"], &[AuxValue::Enum(0)]);
    let none = header(vec![mux()]);
    write(&at("c/deep/x.blow5"), &none, &["eeeee", "a"], &[AuxValue::Missing]);
    std::fs::write(at("c/notes.txt"), "not reads").unwrap();
    folder
}

fn ids(batch: &RecordBatch) -> Vec<String> {
    batch.column(0).as_string::<i32>().iter().map(|id| id.unwrap().to_owned()).collect()
}

fn select(ids: &[&str]) -> Selection {
    Selection::Ids(Arc::new(ids.iter().map(ToString::to_string).collect()))
}

fn in_order(set: &ReadSet, selection: &Selection) -> Vec<String> {
    let from_batches: Vec<String> =
        set.batches(selection).unwrap().flat_map(|batch| ids(&batch.unwrap())).collect();
    let from_map: Vec<String> = set
        .map(selection, |read| read.record.read_id.to_owned())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(from_batches, from_map);
    from_map
}

#[derive(Debug, Default)]
struct Ids(Vec<String>);

impl Visitor for Ids {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        self.0.push(read.record.read_id.to_owned());
        Ok(())
    }
}

fn any_order(set: &ReadSet, selection: &Selection) -> Vec<String> {
    let (visitors, summary) = set.visit(selection, Ids::default).unwrap();
    let mut visited: Vec<String> = visitors.into_iter().flat_map(|ids| ids.0).collect();
    assert_eq!(summary.reads, visited.len() as u64);
    visited.sort();
    let options = BatchOptions { order: Order::AsTheyCome, ..BatchOptions::default() };
    let batches = set.batches_with(selection, options).unwrap();
    let mut came: Vec<String> = batches.flat_map(|batch| ids(&batch.unwrap())).collect();
    came.sort();
    assert_eq!(came, visited);
    visited
}

#[test]
fn files_come_in_the_order_of_their_paths() {
    let folder = folder();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let paths: Vec<PathBuf> =
        set.paths().map(|path| path.strip_prefix(folder.path()).unwrap().into()).collect();
    assert_eq!(paths, ["a/1.blow5", "b.blow5", "c/deep/x.blow5"].map(PathBuf::from));
    assert_eq!(in_order(&set, &Selection::All), ["a", "bb", "ccc", "dddd", "eeeee", "a"]);
    assert_eq!(any_order(&set, &Selection::All), ["a", "a", "bb", "ccc", "dddd", "eeeee"]);
    // The same files, named one by one in reverse order, and one of them twice.
    let mut named: Vec<PathBuf> = set.paths().map(Path::to_owned).collect();
    named.reverse();
    named.push(named[0].clone());
    let again = ReadSet::open(&named, Options::default()).unwrap();
    assert!(again.paths().eq(set.paths()));
}

#[test]
fn ids_are_found_in_whichever_file_has_them_first() {
    let folder = folder();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let wanted = ["eeeee", "a", "bb", "ccc", "a", "eeeee"];
    assert_eq!(in_order(&set, &select(&wanted)), wanted);
    assert_eq!(any_order(&set, &select(&wanted)), ["a", "a", "bb", "ccc", "eeeee", "eeeee"]);
    let batches = set.batches(&select(&["a"])).unwrap();
    assert!(batches.map(Result::unwrap).all(|batch| batch.file() == 0), "the first file's");
    let error = set.visit(&select(&["a", "nowhere"]), Ids::default).unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { .. }) && error.to_string().contains("nowhere"),
        "{error}"
    );
}

#[test]
fn fields_of_all_files_become_columns() {
    let folder = folder();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let (mut reasons, mut muxes) = (Vec::new(), Vec::new());
    for batch in set.batches(&Selection::All).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.schema(), set.schema(BatchOptions::default()).unwrap());
        let reason =
            batch.column_by_name("end_reason").unwrap().as_dictionary::<UInt8Type>().clone();
        let reason = reason.downcast_dict::<arrow_array::StringArray>().unwrap();
        reasons.extend(reason.into_iter().map(|label| label.map(str::to_owned)));
        muxes.extend(batch.column_by_name("mux").unwrap().as_primitive::<Int32Type>().iter());
    }
    let some = |label: &str| Some(label.to_owned());
    assert_eq!(
        reasons,
        [some("mux_change"), some("mux_change"), some("other"), some("other"), None, None]
    );
    assert_eq!(muxes, [Some(5), Some(5), None, None, None, None]);
}

#[test]
fn a_field_of_two_types_is_an_error() {
    let folder = folder();
    let other = header(vec![AuxField::new("mux", AuxType::Scalar(Scalar::Uint8))]);
    write(&folder.path().join("z.blow5"), &other, &["z"], &[AuxValue::Uint8(1)]);
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let error = set.schema(BatchOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.contains("z.blow5") && error.contains("uint8_t") && error.contains("int32_t"),
        "{error}"
    );
    assert_eq!(
        set.visit(&Selection::All, Ids::default).unwrap().1.reads,
        7,
        "visitors see each file's own fields"
    );
}

#[test]
fn a_folder_without_reads_is_an_error() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not reads").unwrap();
    let error = ReadSet::open([folder.path()], Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[test]
fn patterns_match_files_and_folders() {
    let folder = folder();
    let open = |pattern: &str| ReadSet::open([folder.path().join(pattern)], Options::default());
    let names = |pattern: &str| -> Vec<String> {
        let set = open(pattern).unwrap();
        set.paths()
            .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
            .collect()
    };
    assert_eq!(names("*.blow5"), ["b.blow5"]);
    assert_eq!(names("[ac]"), ["a/1.blow5", "c/deep/x.blow5"]);
    assert_eq!(names("**/?.blow5"), ["a/1.blow5", "b.blow5", "c/deep/x.blow5"]);
    std::fs::rename(folder.path().join("b.blow5"), folder.path().join("[b].blow5")).unwrap();
    assert_eq!(names("[b].blow5"), ["[b].blow5"], "a file that is there is no pattern");
    for nothing in ["*.slow5", "a[", "c/*.txt*x"] {
        let error = open(nothing).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. } | Error::Usage(_)), "{error}");
    }
}

#[test]
fn an_error_in_one_file_is_the_end() {
    let folder = folder();
    let path = folder.path().join("b.blow5");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 8]).unwrap();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let rows: Vec<_> =
        set.map(&Selection::All, |read| read.record.read_id.to_owned()).unwrap().collect();
    assert!(rows.last().unwrap().is_err());
    let before: Vec<&str> = rows.iter().flatten().map(String::as_str).collect();
    assert_eq!(before, ["a", "bb", "ccc"]);
}

#[test]
fn arrow_files_hold_the_batches() {
    let folder = folder();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let path = folder.path().join("out.arrow");
    let schema = set.schema(BatchOptions::default()).unwrap();
    let mut out = ArrowWriter::create(&path, &schema).unwrap();
    for batch in set.batches(&Selection::All).unwrap() {
        out.push(&batch.unwrap()).unwrap();
    }
    assert!(!path.exists(), "it appears when it is whole");
    out.finish().unwrap();
    let reader = FileReader::try_new(File::open(&path).unwrap(), None).unwrap();
    assert_eq!(reader.schema(), schema);
    let read: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let made: Vec<RecordBatch> =
        set.batches(&Selection::All).unwrap().map(|batch| batch.unwrap().into_inner()).collect();
    assert_eq!(read, made);
    let samples = read[0].column(6).as_list::<i32>().value(1);
    assert_eq!(samples.as_primitive::<Int16Type>().values(), &[98, 98]);
    let abandoned = ArrowWriter::create(&folder.path().join("gone.arrow"), &schema).unwrap();
    drop(abandoned);
    let left = std::fs::read_dir(folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("gone"));
    assert_eq!(left.count(), 0);
}

#[test]
fn scans_have_everything_but_the_signal() {
    let folder = folder();
    let set = ReadSet::open([folder.path()], Options::default()).unwrap();
    let rows = |options: &ScanOptions| -> Vec<RecordBatch> {
        set.scan(&Selection::All, options).unwrap().map(Result::unwrap).collect()
    };
    let all = rows(&ScanOptions::default());
    assert_eq!(all.len(), 1, "batches of a few reads are put together");
    let names: Vec<String> =
        all[0].schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns =
        ["read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "samples"];
    assert_eq!(names, [&columns[..], &["end_reason", "mux", "file"]].concat());
    assert_eq!(ids(&all[0]), ["a", "bb", "ccc", "dddd", "eeeee", "a"]);
    let samples = all[0].column_by_name("samples").unwrap().as_primitive::<UInt64Type>();
    assert_eq!(samples.values(), &[1, 2, 3, 4, 5, 1]);
    // The labels of all files form one list. Rows of a file without the field have missing values.
    let reasons = all[0].column_by_name("end_reason").unwrap().as_dictionary::<UInt8Type>();
    let labels = reasons.values().as_string::<i32>();
    let reason = |row: usize| reasons.key(row).map(|key| labels.value(key));
    let shown: Vec<_> = (0..6).map(reason).collect();
    assert_eq!(
        shown,
        [Some("mux_change"), Some("mux_change"), Some("other"), Some("other"), None, None]
    );
    let files = all[0].column_by_name("file").unwrap().as_dictionary::<Int32Type>();
    assert_eq!(files.keys().values(), &[0, 0, 1, 1, 2, 2]);

    let condition = Condition::parse("end_reason == other or samples > 4").unwrap();
    let columns = vec!["samples".to_owned(), "read_id".to_owned()];
    let some = rows(&ScanOptions { columns, condition: Some(condition), ..ScanOptions::default() });
    assert_eq!(some[0].num_columns(), 2);
    assert_eq!(some[0].column(0).as_primitive::<UInt64Type>().values(), &[3, 4, 5]);
    let of_ids = set.scan(&select(&["dddd", "a", "dddd"]), &ScanOptions::default()).unwrap();
    assert_eq!(
        of_ids.flat_map(|batch| ids(&batch.unwrap())).collect::<Vec<_>>(),
        ["dddd", "a", "dddd"]
    );

    let unknown = |columns: &str| {
        let options = ScanOptions { columns: vec![columns.to_owned()], ..ScanOptions::default() };
        set.scan(&Selection::All, &options).unwrap_err()
    };
    assert!(matches!(unknown("nothing"), Error::NotFound { .. }));
    let wanted: Vec<String> = ["eeeee", "nobody", "a"].map(Into::into).to_vec();
    let found = set.locate(&wanted).map(|found| (found.files, found.missing)).unwrap();
    assert_eq!(
        found,
        (vec![(0, vec!["a".to_owned()]), (2, vec!["eeeee".to_owned()])], vec!["nobody"])
    );
    let summary = set.summary().unwrap();
    assert_eq!(
        (summary.reads, summary.samples, summary.lengths.map(|l| (l.n50, l.median))),
        (6, 16, Some((4, 2)))
    );
    assert_eq!(summary.end_reasons.get("mux_change"), Some(&2));
}
