//! Files that people name, or that lie beside them: pipes, devices, sparse files, and names that
//! are long or not UTF-8.

use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use thalweg::format::slow5::{Encoding, RecordPress, SignalPress};
use thalweg_testing::slow5::{header, sample};

use crate::command::{Ended, THALWEG, after, run, thalweg, wait};
use crate::hostile::Place;

/// KiB for `ulimit -v`: room for the program and its memory, and for no large file.
const ADDRESSES: &str = "ulimit -v 700000; ulimit -c 0";
/// Larger than any memory that a verb may use.
const LARGE: u64 = 3 << 30;

fn reads() -> Vec<u8> {
    sample("r", &header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd), &[10, 20]).bytes
}

fn pipe(place: &Place, name: &str) -> String {
    mknodat(CWD, place.path(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    place.at(name)
}

fn sparse(path: &Path) {
    File::options().create(true).append(true).open(path).unwrap().set_len(LARGE).unwrap();
}

fn network(place: &Place) -> String {
    let [net, list] = [place.at("net"), place.write("e.csv", b"source,target\n1,2\n3,4\n")];
    assert_eq!(thalweg(&["graph", "import", &list, &net]).code, Some(0));
    net
}

fn refuses(code: i32, ended: &Ended, words: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.err.contains(words), "{words:?} in {ended:?}");
}

#[test]
fn pipes_and_devices_are_no_small_files() {
    let place = Place::new();
    let file = place.write("r.blow5", &reads());
    let [suite, bam, out] = [pipe(&place, "p.toml"), pipe(&place, "bam"), place.at("o.blow5")];
    symlink("/dev/zero", place.path("z.toml")).unwrap();
    let zeros = place.at("z.toml");
    for args in [
        &["bench", &suite][..],
        &["bench", &suite, "--list"],
        &["bench", &zeros, "--list"],
        &["filter", &file, "--bam", &bam, "--out", &out],
    ] {
        refuses(1, &after(ADDRESSES, args), "a pipe or device is not supported");
    }
    let net = network(&place);
    for args in [
        ["graph", "degree", &net, "--from", "vertex:/dev/zero"],
        ["graph", "neighbors", &net, "--from", "vertex:/dev/zero"],
        ["graph", "add", &net, "--edges", "e:/dev/zero"],
    ] {
        refuses(1, &after(ADDRESSES, &args), "in a folder or device is not supported");
    }
}

#[test]
fn large_files_are_not_loaded() {
    let place = Place::new();
    let net = network(&place);
    for name in ["big.jsonl", "big.toml", "big.ids"] {
        sparse(&place.path(name));
    }
    let [results, suite] = [place.at("big.jsonl"), place.at("big.toml")];
    let most = "found 3221225472 bytes, expected at most";
    refuses(1, &after(ADDRESSES, &["compare", &results]), most);
    refuses(1, &after(ADDRESSES, &["bench", "--resume", &results]), most);
    refuses(1, &after(ADDRESSES, &["bench", &suite, "--list"]), most);
    let ids = format!("vertex:{}", place.at("big.ids"));
    let ended = after(ADDRESSES, &["graph", "degree", &net, "--from", &ids]);
    refuses(1, &ended, "a line of more than 65536 bytes");
    sparse(&place.path("net/manifest"));
    // Files of a network are mapped.
    refuses(1, &after("ulimit -v 6000000; ulimit -c 0", &["graph", "info", &net]), most);
}

/// Zeros after an index, in its place, and after its head.
#[test]
fn an_index_takes_memory_for_the_reads_of_its_file_only() {
    let place = Place::new();
    let file = place.write("r.blow5", &reads());
    assert_eq!(thalweg(&["index", &file]).code, Some(0));
    let index = place.path("r.blow5.idx");
    let whole = fs::read(&index).unwrap();
    let list = place.write("list", b"x\n");
    for begin in [&whole[..], &[], &whole[..64]] {
        fs::write(&index, begin).unwrap();
        sparse(&index);
        let ended = after(ADDRESSES, &["read", &file, "--ids", &list]);
        refuses(1, &ended, "r.blow5.idx: index, byte ");
        let ended = after(ADDRESSES, &["info", &file]);
        assert!(ended.code == Some(0) && ended.out.contains("r.blow5.idx: index"), "{ended:?}");
    }
}

#[test]
fn long_lists_of_vertices_keep_to_the_budget() {
    let place = Place::new();
    let net = network(&place);
    let lines: String = (0..300_000).map(|id| format!("{}\n", id * 2 + 1)).collect();
    let ids = format!("vertex:{}", place.write("ids", lines.as_bytes()));
    let args = ["graph", "degree", &net, "--from", &ids, "--memory", "4MiB"];
    refuses(2, &thalweg(&args), "give more --memory");
    let ended = thalweg(&args[..5]);
    assert!(ended.err.contains("not there: 5, 7, 9, 11, 13 and"), "{ended:?}");
    let mut stdin = Command::new("sh");
    stdin.args(["-c", "echo 1 | \"$0\" graph degree \"$1\" --from vertex:-", THALWEG, &net]);
    assert_eq!(run(stdin).out, "1\t1\n");
}

/// The values of a line take many times the memory of its text.
#[test]
fn results_with_long_lines_are_refused_before_they_are_parsed() {
    let place = Place::new();
    let path = place.path("r.jsonl.gz");
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    let line = format!("{{\"kind\":[{}0]}}\n", "0,".repeat(20_000_000));
    std::io::Write::write_all(&mut packed, line.as_bytes()).unwrap();
    packed.finish().unwrap();
    let ended = after("ulimit -v 500000; ulimit -c 0", &["compare", &place.at("r.jsonl.gz")]);
    refuses(1, &ended, "line 1: has 40000012 bytes, more than 2097152");
}

/// Opening a pipe without a writer cannot be cancelled, so that the signal ends the process.
#[test]
fn a_signal_ends_the_wait_for_a_list() {
    let place = Place::new();
    let net = network(&place);
    let from = format!("vertex:{}", pipe(&place, "pipe"));
    let mut command = Command::new(THALWEG);
    command.args(["graph", "degree", &net, "--from", &from]).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let sent = std::time::Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(wait(child).code, Some(143));
    // Otherwise it takes five seconds of patience.
    assert!(sent.elapsed() < Duration::from_secs(4), "{:?}", sent.elapsed());
}

#[test]
fn an_index_whose_name_is_too_long_is_in_the_cache_folder() {
    let place = Place::new();
    let name = "x".repeat(249);
    let blow5 = place.write(&format!("{name}.blow5"), &reads());
    let cut = header(Encoding::Ascii, RecordPress::None, SignalPress::None);
    let slow5 = place.write(&format!("{name}.slow5"), &sample("t", &cut, &[10, 20]).bytes);
    let pod5 = place.at(&format!("{name}.pod5"));
    assert_eq!(thalweg(&["synth", &pod5, "--kind", "pod5", "--samples", "10k"]).code, Some(0));
    for file in [&blow5, &slow5, &pod5] {
        assert_eq!(thalweg(&["check", file]).code, Some(0), "{file}");
        let ended = thalweg(&["index", file]);
        assert!(ended.code == Some(0) && ended.err.contains("cache/thalweg/index/"), "{ended:?}");
        assert_eq!(thalweg(&["check", file]).code, Some(0), "{file}");
    }
    let ended = thalweg(&["info", &blow5]);
    assert!(ended.out.contains("2 (by index)"), "{ended:?}");
    for force in [&[][..], &["--force"]] {
        let made = place.at(&format!("{}.blow5", "q".repeat(248)));
        let ended = thalweg(&[&["synth", &made, "--samples", "10k"], force].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(thalweg(&["check", &made]).code, Some(0));
    }
}

/// The command with an argument that is not UTF-8.
fn with_path(before: &[&str], path: &Path, after: &[&str]) -> Ended {
    let mut command = Command::new(THALWEG);
    command.args(before).arg(path).args(after);
    run(command)
}

#[test]
fn names_that_are_not_utf8_do_no_harm() {
    let place = Place::new();
    let file = place.write("r.blow5", &reads());
    let mut command = Command::new(THALWEG);
    command.args(["read", &file, "--json"]).env("X", std::ffi::OsString::from_vec(vec![0xff]));
    assert_eq!(run(command).code, Some(0));
    let other = |name: &[u8]| place.path("").join(std::ffi::OsString::from_vec(name.to_vec()));
    fs::rename(network(&place), other(b"net\xff")).unwrap();
    let ended = with_path(&["graph", "info"], &other(b"net\xff"), &["--json"]);
    assert!(ended.code == Some(0) && ended.out.contains("net\u{fffd}"), "{ended:?}");
}

#[test]
#[cfg(feature = "hdf5")]
fn references_name_the_file_or_are_not_written() {
    let place = Place::new();
    let [made, out] = [place.at("r.nxs"), place.at("o.json")];
    let synth = ["synth", &made, "--kind", "nexus-live", "--size", "100kB"];
    assert_eq!(thalweg(&synth).code, Some(0));
    let file = place.path("").join(std::ffi::OsString::from_vec(b"a\xff.nxs".to_vec()));
    fs::rename(made, &file).unwrap();
    let ended = with_path(&["index"], &file, &["--kerchunk", &out]);
    refuses(1, &ended, "a path that is not UTF-8");
    assert!(!place.path("o.json").exists());
}

#[test]
fn reads_are_counted_whatever_lies_in_the_place_of_the_index() {
    let place = Place::new();
    let file = place.write("r.blow5", &reads());
    pipe(&place, "r.blow5.idx");
    let ended = thalweg(&["info", &file, "--count"]);
    assert!(ended.out.contains("2 (by count)"), "{ended:?}");
    assert!(thalweg(&["info", &file]).out.contains("--count reads the file"));
}

#[test]
fn many_files_need_few_descriptors() {
    let place = Place::new();
    fs::create_dir(place.path("run")).unwrap();
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let file = sample("r", &kind, &[10]).bytes;
    for number in 0..200 {
        place.write(&format!("run/{number}.blow5"), &file);
    }
    let [folder, slow5] = [place.at("run"), place.at("slow5")];
    for args in [
        &["info", &folder][..],
        &["read", &folder],
        &["scan", &folder],
        &["check", &folder],
        &["index", &folder],
        &["convert", &folder, &slow5, "--per-file", "--to", "slow5"],
    ] {
        let ended = after("ulimit -n 64", args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    }
}

#[test]
fn many_segments_need_few_descriptors() {
    let place = Place::new();
    let net = place.at("net");
    for number in 0..20 {
        let edges = format!("{number}.csv");
        place.write(&edges, b"source,target,weight\n1,2,0.5\n3,4,1.5\n");
        let ended = thalweg(&["graph", "import", &place.at(&edges), &net]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    let segments = fs::read_dir(&net).unwrap().filter(|file| {
        file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "seg")
    });
    assert!(segments.count() > 30);
    let more = place.at("0.csv");
    for args in [
        &["graph", "info", &net][..],
        &["graph", "import", &more, &net],
        &["graph", "neighbors", &net, "--from", "vertex"],
        &["graph", "compact", &net],
    ] {
        let ended = after("ulimit -n 64", args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    }
}
