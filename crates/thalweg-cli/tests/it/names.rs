//! The name of an output says what is written, and `-` is a stream or refused.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::Command;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::Folder;

fn names(folder: &Folder) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.0.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A folder with a file of each kind that this build writes.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["synth", "a.fastq", "--bases", "5k"]);
    fs::write(folder.path("ids"), "").unwrap();
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "a.nxs", "--size", "200kB", "--banks", "2"]);
    }
    folder
}

#[test]
fn a_name_that_says_another_format_is_refused() {
    let folder = folder();
    let before = names(&folder);
    let mut cases = vec![
        ("synth x.pod5 --kind blow5", "BLOW5"),
        ("synth x.csv --kind blow5", "BLOW5"),
        ("synth x.blow5 --kind pod5", "POD5"),
        ("synth x.blow5 --kind fastq", "FASTQ"),
        ("synth x.fastq --gzip", "gzip"),
        ("synth x.nxs --kind neuroglial", "HDF5"),
        ("synth x.foo", "--kind"),
        ("synth x.gz", "--kind"),
        ("convert a.blow5 x.blow5 --to slow5", "SLOW5"),
        ("convert a.blow5 x.fastq --to pod5", "POD5"),
        ("convert a.blow5 x.nxs", ".blow5"),
        ("convert a.fastq x.blow5", ".fastq"),
        ("merge a.blow5 --out x.slow5 --to blow5", "BLOW5"),
        ("filter a.blow5 --where samples>0 --out x.csv --to blow5", "BLOW5"),
        ("check a.blow5 --salvage x.pod5", "BLOW5"),
        ("index a.blow5 -o x.blow5", ".idx"),
        ("read a.blow5 --out x.blow5", ".arrow"),
        ("read a.blow5 --out x", ".arrow"),
        ("read a.blow5 --out x.csv --to parquet", "Parquet"),
        ("scan a.blow5 --out - --to arrow", "CSV and TSV can"),
        ("read a.fastq --out x.npy", "no arrays"),
        ("scan a.blow5 --out x.npy", "no arrays"),
        ("plot a.blow5 --out x.csv", ".png"),
    ];
    if cfg!(feature = "hdf5") {
        cases.extend([
            ("convert --repack a.nxs x.blow5", "HDF5"),
            ("index a.nxs --kerchunk x.nxs", "JSON"),
            ("read a.nxs --out x.json", ".arrow"),
            ("read a.nxs --events --out x.json", ".arrow"),
            ("read a.nxs --logs --out x.json", ".arrow"),
        ]);
    }
    for (words, said) in cases {
        let told = folder.fails(2, &words.split(' ').collect::<Vec<_>>());
        assert!(told.contains(said), "{words}: {told}");
        assert_eq!(names(&folder), before, "{words}");
    }
}

#[test]
fn the_name_of_synthetic_fastq_says_whether_it_is_compressed() {
    let folder = Folder::new();
    for (words, is_gzip) in [
        ("synth a.fastq --bases 5k", false),
        ("synth a.fq.gz --bases 5k", true),
        ("synth b.gz --kind fastq --bases 5k", true),
        ("synth plain --kind fastq --bases 5k", false),
        ("synth packed --kind fastq --gzip --bases 5k", true),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        folder.ok(&words);
        assert_eq!(fs::read(folder.path(words[1])).unwrap().starts_with(b"\x1f\x8b"), is_gzip);
    }
}

#[test]
fn no_verb_takes_a_file_called_like_a_stream() {
    let folder = folder();
    let before = names(&folder);
    let mut cases = vec![
        "synth - --kind fastq --bases 5k",
        "convert a.blow5 - --to blow5 --verify",
        "convert a.blow5 - --per-file --to slow5",
        "merge a.blow5 --out - --to blow5 --json",
        "view a.blow5 --json",
        "view - --to blow5",
        "get - ID",
        "merge - --out x.blow5",
        "split a.blow5 --reads 1 --out -",
        "check a.blow5 --salvage -",
        "check -",
        "info -",
        "doctor -",
        "evict -",
        "plot - --out x.png",
        "plot a.blow5 --out -",
        "scan -",
        "index -",
        "index a.blow5 -o -",
        "graph import - x",
        "graph import a.blow5 -",
        "graph check -",
        "compare -",
        "bench --json - --dry-run",
        "bench --out - --dry-run",
        "read a.blow5 --out - --json",
    ];
    if cfg!(feature = "hdf5") {
        cases.extend([
            "convert --repack a.nxs -",
            "index a.nxs --kerchunk -",
            "convert a.blow5 - --to fast5",
            "filter a.blow5 --where samples>0 --out - --to fast5",
        ]);
    }
    for words in cases {
        let told = folder.fails(2, &words.split(' ').collect::<Vec<_>>());
        let is_told = ["standard output", ".png", "are for files"].iter().any(|w| told.contains(w));
        assert!(is_told, "{words}: {told}");
        assert_eq!(names(&folder), before, "{words}");
    }
    folder.ok(&["convert", "a.blow5", "./-", "--to", "slow5"]);
    assert!(folder.path("-").is_file());
}

#[test]
fn a_table_on_standard_output_is_that_of_a_file() {
    let folder = folder();
    let mut cases = vec!["read a.blow5", "read a.blow5 --pa", "scan a.blow5", "read a.fastq"];
    if cfg!(feature = "hdf5") {
        cases.extend([
            "read a.nxs --events",
            "read a.nxs --logs",
            "read a.nxs /entry/bank1_events/event_id",
        ]);
    }
    for words in cases {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--force", "--out"]);
        let streamed = folder.ok(&[&words[..], &["-"]].concat());
        folder.ok(&[&words[..], &["to.csv"]].concat());
        assert!(streamed.lines().count() > 1, "{words:?}");
        let stored = fs::read_to_string(folder.path("to.csv")).unwrap();
        assert!(streamed == stored, "{words:?}");
        assert!(!folder.path("-").exists());
    }
    assert_eq!(folder.ok(&["scan", "a.blow5", "--out", "-"]), folder.ok(&["scan", "a.blow5"]));
}

/// The ids and signals of a table of reads.
fn signals(batches: impl Iterator<Item = RecordBatch>) -> Vec<(String, Vec<i16>)> {
    let mut reads = Vec::new();
    for batch in batches {
        let ids = batch.column_by_name("read_id").unwrap().as_string::<i32>();
        let signals = batch.column_by_name("signal").unwrap().as_list::<i32>();
        for (id, signal) in ids.iter().zip(signals.iter()) {
            let signal = signal.unwrap().as_primitive::<Int16Type>().values().to_vec();
            reads.push((id.unwrap().to_owned(), signal));
        }
    }
    reads
}

/// The values of a file of numpy's: the bytes behind the header.
fn npy(folder: &Folder, name: &str) -> Vec<u8> {
    let bytes = fs::read(folder.path(name)).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..].to_vec()
}

#[test]
fn reads_are_the_same_in_every_table() {
    let folder = Folder::new();
    folder.synth("a.blow5", "600k");
    for end in ["arrow", "parquet", "csv", "tsv", "npy"] {
        folder.ok(&["read", "a.blow5", "--out", &format!("a.{end}")]);
    }
    let open = |name: &str| File::open(folder.path(name)).unwrap();
    let reads = signals(FileReader::try_new(open("a.arrow"), None).unwrap().map(Result::unwrap));
    assert!(reads.len() > 3);
    let parquet = ParquetRecordBatchReaderBuilder::try_new(open("a.parquet")).unwrap();
    assert!(signals(parquet.build().unwrap().map(Result::unwrap)) == reads);
    for (end, delimiter) in [("csv", b','), ("tsv", b'\t')] {
        let mut table = csv::ReaderBuilder::new();
        let mut table = table.delimiter(delimiter).from_reader(open(&format!("a.{end}")));
        let column = table.headers().unwrap().iter().position(|name| name == "signal").unwrap();
        for (row, (id, signal)) in table.records().map(Result::unwrap).zip(&reads) {
            assert_eq!((&row[0], &row[column]), (&**id, &*format!("{signal:?}")), "{end}");
        }
    }
    let signal: Vec<u8> = reads.iter().flat_map(|(_, s)| s).flat_map(|s| s.to_le_bytes()).collect();
    assert!(npy(&folder, "a.npy/signal.npy") == signal);
    let samples = reads.iter().flat_map(|(_, signal)| (signal.len() as u64).to_le_bytes());
    assert_eq!(npy(&folder, "a.npy/samples.npy"), samples.collect::<Vec<u8>>());
    let ids: String = reads.iter().map(|(id, _)| &**id).collect();
    assert_eq!(npy(&folder, "a.npy/read_id.npy"), ids.as_bytes());
    for name in ["read_group", "digitisation", "offset", "range", "sampling_rate"] {
        assert_eq!(npy(&folder, &format!("a.npy/{name}.npy")).len() % (4 * reads.len()), 0);
    }
    folder.ok(&["read", "a.blow5", "--pa", "--out", "pa.npy"]);
    assert_eq!(npy(&folder, "pa.npy/signal_pa.npy").len(), signal.len() * 2);
    // A stream of ids is a list.
    let mut list = Command::new("sh");
    let script = "echo \"$1\" | \"$0\" read a.blow5 --ids - --out one.arrow";
    list.args(["-c", script, env!("CARGO_BIN_EXE_thalweg"), &reads[1].0]);
    assert!(list.current_dir(folder.0.path()).output().unwrap().status.success());
    let one = FileReader::try_new(open("one.arrow"), None).unwrap().map(Result::unwrap);
    assert!(signals(one) == reads[1..2]);
}
