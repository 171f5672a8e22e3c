//! A file that a verb cannot use is told what it is, and which verb takes it.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::Folder;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

#[test]
fn files_of_other_formats_are_named() {
    let folder = Folder::new();
    let files: [(&str, &[u8], &str); 9] = [
        ("a.fasta", b">r\nACGT\n", "FASTA"),
        ("a.bam", &gzip(b"BAM\x01\0\0\0\0\0\0\0\0"), "BAM"),
        ("a.sam", b"@HD\tVN:1.6\n", "SAM"),
        ("a.fastq.zst", b"\x28\xb5\x2f\xfd\x04\x58\0\0", "zstd"),
        ("a.fastq.bz2", b"BZh91AY&SY", "bzip2"),
        ("a.xz", b"\xfd7zXZ\0\0\x04", "xz"),
        ("a.zip", b"PK\x03\x04\x14\0", "zip"),
        ("a.parquet", b"PAR1\x15\x04\x15", "Parquet"),
        ("a.txt", b"hello\n", "\"hello\\n\""),
    ];
    let verbs = ["info IN", "read IN", "check IN", "index IN", "scan IN", "doctor IN"];
    let more = ["merge IN --out x.blow5", "convert IN x.blow5", "plot IN --out x.svg"];
    for (name, bytes, what) in files {
        fs::write(folder.path(name), bytes).unwrap();
        for verb in verbs.iter().chain(&more) {
            let words = verb.replace("IN", name);
            let told = folder.fails(1, &words.split(' ').collect::<Vec<_>>());
            for part in [name, what, "SLOW5, BLOW5, POD5, FAST5, other HDF5", "FASTQ"] {
                assert!(told.contains(part), "{words}: {part}: {told}");
            }
        }
    }
}

#[test]
fn another_verb_is_named_where_one_fits() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["synth", "a.fastq", "--bases", "5k"]);
    fs::create_dir(folder.path("fastq")).unwrap();
    fs::copy(folder.path("a.fastq"), folder.path("fastq/a.fq")).unwrap();
    fs::write(folder.path("edges.csv"), "source,target\n1,2\n").unwrap();
    folder.ok(&["graph", "import", "edges.csv", "store"]);
    let mut cases = vec![
        ("info store", "`thalweg graph info`"),
        ("read store", "`thalweg graph info`"),
        ("scan fastq", "`thalweg check` takes the folder"),
        ("info fastq", "a folder of FASTQ (1 file)"),
        ("scan a.fastq a.fastq", "FASTQ in place of signal"),
        ("compare a.fastq", "`thalweg bench`"),
    ];
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "a.nxs", "--size", "100kB", "--banks", "2"]);
        folder.ok(&["convert", "a.blow5", "a.fast5"]);
        cases.extend([
            ("convert a.nxs x.blow5", "--repack"),
            ("convert a.nxs x.nxs", "--repack"),
            ("index a.fast5", "none is needed: the file itself lists its reads"),
        ]);
    }
    for (words, said) in cases {
        let ended = folder.run(&words.split(' ').collect::<Vec<_>>());
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && told.contains(said), "{words}: {told}");
        assert!(!told.contains("damaged"), "{words}: {told}");
    }
    let told = folder.fails(2, &["compare", "x.jsonl", "--fail-if", "speed > 1"]);
    assert!(told.contains("\"speed\", expected one of ratio, low"), "{told}");
}

#[test]
fn a_check_of_a_folder_leaves_nothing_out() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    folder.synth("in/a.blow5", "60k");
    folder.ok(&["synth", "in/b.fastq.gz", "--bases", "5k"]);
    let mut files = 2;
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "in/c.nxs", "--size", "100kB", "--banks", "2"]);
        files = 3;
    }
    assert_eq!(folder.ok(&["check", "in"]).lines().count(), files);
    let path = folder.path("in/b.fastq.gz");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let told = folder.fails(1, &["check", "in"]);
    assert!(told.contains("b.fastq.gz") && told.contains("1 of"), "{told}");
}

/// Rust's runtime opens /dev/null in the place of a closed standard output.
#[test]
fn a_closed_standard_output_is_an_error_where_output_is_written() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["synth", "a.fastq", "--bases", "5k"]);
    fs::write(folder.path("edges.csv"), "source,target\n1,2\n").unwrap();
    folder.ok(&["graph", "import", "edges.csv", "store"]);
    let mut verbs = vec![
        "read a.blow5",
        "read a.blow5 --json",
        "read a.blow5 --digest",
        "read a.blow5 --explain",
        "read a.blow5 --out -",
        "read a.fastq",
        "convert a.fastq -",
        "convert a.blow5 x.slow5 --json --force",
        "info a.blow5",
        "info a.blow5 --run",
        "check a.blow5",
        "scan a.blow5",
        "doctor a.blow5",
        "evict a.blow5",
        "split a.blow5 --reads 5 --out parts",
        "graph info store",
        "graph degree store --from vertex",
        "graph neighbors store --from vertex",
        "graph check store",
        "bench --list",
        "cache info",
        "--help",
        "--version",
        "read --help",
    ];
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "a.nxs", "--size", "100kB", "--banks", "2"]);
        verbs.extend([
            "read a.nxs",
            "read a.nxs --digest",
            "read a.nxs --events",
            "read a.nxs --logs",
            "read a.nxs --slices 2",
            "info a.nxs",
        ]);
    }
    let run = |redirection: &str, words: &str| {
        let mut shell = Command::new("sh");
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_thalweg")]).args(words.split(' '));
        shell.env("XDG_CACHE_HOME", folder.path("cache"));
        shell.current_dir(folder.0.path()).output().unwrap()
    };
    for words in verbs {
        for (unwritable, parts) in [(">&-", "parts"), ("1< /dev/null", "other")] {
            let ended = run(unwritable, &words.replace("parts", parts));
            let told = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(1), "{words}: {told}");
            let expected = "standard output: writing: Bad file descriptor";
            assert!(told.contains(expected), "{words} {unwritable}: {told}");
        }
        let ended = run("> /dev/null", &words.replace("parts", "more"));
        assert!(ended.status.success(), "{words}: {ended:?}");
    }
    // Nothing was to be written.
    assert!(run(">&-", "index a.blow5").status.success());
}
