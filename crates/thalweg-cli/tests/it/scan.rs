//! `thalweg scan`: rows are complete, correct for every format, and selected as requested.

use std::fs::{self, File};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::Folder;

/// The rows of a table as text, the header first.
fn table(text: &str, delimiter: char) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(delimiter).map(str::to_owned).collect()).collect()
}

/// `read_id<TAB>samples` of every read, found by decoding.
fn decoded(folder: &Folder, file: &str) -> Vec<(String, u64)> {
    let rows = folder.ok(&["read", "--digest", file]);
    rows.lines()
        .map(|row| {
            let mut cells = row.split('\t');
            (cells.next().unwrap().to_owned(), cells.next().unwrap().parse().unwrap())
        })
        .collect()
}

fn of_batches(batches: &[RecordBatch]) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column_by_name("read_id").unwrap().as_string::<i32>();
        let samples = batch.column_by_name("samples").unwrap().as_primitive::<UInt64Type>();
        rows.extend(
            (0..batch.num_rows()).map(|row| (ids.value(row).to_owned(), samples.value(row))),
        );
    }
    rows
}

#[test]
fn every_format_has_the_same_rows_as_decoding() {
    let folder = Folder::new();
    folder.synth("a.blow5", "800k");
    folder.ok(&["convert", "a.blow5", "a.slow5"]);
    for file in ["a.blow5", "a.slow5"] {
        let expected = decoded(&folder, file);
        let text = table(&folder.ok(&["scan", file]), ',');
        let column = |name: &str| text[0].iter().position(|c| c == name).unwrap();
        let (id, samples, at) = (column("read_id"), column("samples"), column("file"));
        let rows: Vec<(String, u64)> =
            text[1..].iter().map(|r| (r[id].clone(), r[samples].parse().unwrap())).collect();
        assert_eq!(rows, expected);
        assert!(text[1..].iter().all(|row| row[at] == file && row.len() == text[0].len()));
        for aux in ["channel_number", "start_time", "end_reason"] {
            assert!(text[1..].iter().all(|row| !row[column(aux)].is_empty()), "{aux}");
        }
        assert!(!text[0].contains(&"signal".to_owned()));

        folder.ok(&["scan", file, "--out", "out.arrow", "--force"]);
        let reader =
            FileReader::try_new(File::open(folder.path("out.arrow")).unwrap(), None).unwrap();
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(of_batches(&batches), expected);
        assert_eq!(batches.len(), 1, "small batches are put together");

        folder.ok(&["scan", file, "--out", "out.parquet", "--force"]);
        let reader = ParquetRecordBatchReaderBuilder::try_new(
            File::open(folder.path("out.parquet")).unwrap(),
        )
        .unwrap();
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(of_batches(&batches), expected);

        folder.ok(&["scan", file, "--out", "out.tsv", "--force"]);
        assert_eq!(table(&fs::read_to_string(folder.path("out.tsv")).unwrap(), '\t'), text);
        assert_eq!(table(&folder.ok(&["scan", file, "--tsv"]), '\t'), text);
    }
}

#[test]
fn columns_attributes_conditions_and_ids() {
    let folder = Folder::new();
    fs::create_dir(folder.path("run")).unwrap();
    folder.synth("run/a.blow5", "800k");
    folder.ok(&["synth", "run/b.blow5", "--samples", "800k", "--seed", "7"]);
    let mut expected = decoded(&folder, "run/a.blow5");
    expected.extend(decoded(&folder, "run/b.blow5"));
    let text = table(&folder.ok(&["scan", "run", "--columns", "samples,run_id,read_id,file"]), ',');
    assert_eq!(text[0], ["samples", "run_id", "read_id", "file"]);
    let rows: Vec<(String, u64)> =
        text[1..].iter().map(|r| (r[2].clone(), r[0].parse().unwrap())).collect();
    assert_eq!(rows, expected);
    assert!(text[1..].iter().all(|row| !row[1].is_empty()));
    assert!(
        text[1].ends_with(&["run/a.blow5".into()])
            && text.last().unwrap().ends_with(&["run/b.blow5".into()])
    );

    let mut lengths: Vec<u64> = expected.iter().map(|row| row.1).collect();
    lengths.sort_unstable();
    let middle = lengths[lengths.len() / 2];
    let condition = format!("samples >= {middle} and run_id is not missing");
    let some = folder.ok(&["scan", "run", "--columns", "read_id", "--where", &condition]);
    let ids: Vec<&str> = some.lines().skip(1).collect();
    let wanted: Vec<&str> =
        expected.iter().filter(|row| row.1 >= middle).map(|row| row.0.as_str()).collect();
    assert_eq!(ids, wanted);
    assert!(!wanted.is_empty() && wanted.len() < expected.len());

    let list: Vec<&str> = wanted.iter().rev().copied().collect();
    fs::write(folder.path("list"), list.join("\n")).unwrap();
    let listed = folder.ok(&["scan", "run", "--columns", "read_id", "--ids", "list"]);
    assert_eq!(listed.lines().skip(1).collect::<Vec<_>>(), list);
    // A selection without reads is not an error: the result is the header alone.
    assert_eq!(
        folder.ok(&["scan", "run", "--columns", "read_id", "--where", "samples < 0"]),
        "read_id\n"
    );
}

#[test]
fn senseless_requests_are_refused_and_leave_nothing() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    assert!(folder.fails(2, &["scan", "a.blow5", "--out", "out.txt"]).contains(".parquet"));
    assert!(folder.fails(2, &["scan", "a.blow5", "--where", "samples >> 5"]).contains("column 9"));
    assert!(
        folder.fails(2, &["scan", "a.blow5", "--where", "samples > many"]).contains("a number")
    );
    assert!(
        folder
            .fails(2, &["scan", "a.blow5", "--where", "end_reason == tired"])
            .contains("signal_positive")
    );
    let said = folder.fails(1, &["scan", "a.blow5", "--columns", "lenght"]);
    assert!(
        said.contains("\"lenght\"") && said.contains("samples") && said.contains("run_id"),
        "{said}"
    );
    let whole = fs::read(folder.path("a.blow5")).unwrap();
    fs::write(folder.path("cut.blow5"), &whole[..whole.len() - 100]).unwrap();
    for out in ["out.arrow", "out.parquet", "out.csv"] {
        assert!(folder.fails(1, &["scan", "cut.blow5", "--out", out]).contains("cut.blow5"));
    }
    let left: Vec<_> =
        fs::read_dir(folder.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("out.")), "{left:?}");
}

#[test]
fn nothing_is_printed_where_an_id_is_not_there() {
    let folder = Folder::new();
    folder.synth("a.blow5", "50k");
    fs::write(folder.path("ids"), "nobody\n").unwrap();
    let output = folder.run(&["scan", "a.blow5", "--ids", "ids"]);
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    // Where no read is chosen, the names of the columns are.
    let rows = folder.ok(&["scan", "a.blow5", "--where", "samples < 0"]);
    assert!(rows.starts_with("read_id,") && rows.lines().count() == 1, "{rows}");
}
