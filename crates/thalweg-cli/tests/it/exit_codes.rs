//! Exit codes: 0 done, 1 failed, 2 usage, 130 interrupted; and what an interrupted command leaves: nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{Ended, THALWEG, run, thalweg, wait};
use crate::files::{frame, header, headers, sample};
use thalweg::format::slow5::{Encoding, Framing, RecordPress, SignalPress};

fn write(path: &Path, bytes: &[u8]) -> String {
    fs::write(path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn done_failed_and_usage() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    let file = sample("good", &kind, &[10, 20]);
    let good = write(&at("good.blow5"), &file.bytes);
    let cut = write(&at("cut.blow5"), &file.bytes[..file.frames[1].end - 3]);
    let out = at("out.slow5");
    let out = out.to_str().unwrap();
    let none = at("none.blow5");
    let none = none.to_str().unwrap();
    let list = write(&at("list"), b"nobody\n");
    let cases: &[(i32, &[&str])] = &[
        (0, &["--help"]),
        (0, &["--version"]),
        (0, &["check", "--help"]),
        (0, &["read", &good]),
        (0, &["read", &good, "--digest"]),
        (0, &["index", &good]),
        (0, &["convert", &good, out]),
        (0, &["check", &good]),
        (0, &["check", &good, out, "--json"]),
        (1, &["read", &cut]),
        (1, &["read", none]),
        (1, &["read", &good, "--ids", &list]),
        (1, &["read", &good, "--ids", none]),
        (1, &["index", &cut]),
        (1, &["convert", &cut, out]),
        (1, &["check", &cut]),
        (1, &["check", &cut, &good, "--json"]),
        (1, &["check", none, &good]),
        (2, &[]),
        (2, &["nonsense"]),
        (2, &["read"]),
        (2, &["read", &good, "--nonsense"]),
        (2, &["read", &good, "--memory", "1kB"]),
        (2, &["read", &good, "--threads", "0"]),
        (2, &["check"]),
        (2, &["check", &good, &cut, "--salvage", out]),
        (2, &["check", &good, "--salvage", &good]),
        (2, &["convert", &good, "out.txt"]),
        (2, &["convert", &good]),
        (2, &["convert", &good, "folder", "--per-file"]),
        (2, &["convert", &good, "out.pod5", "--record", "zstd"]),
        (2, &["convert", &good, "out.pod5", "--signal", "svb-zd"]),
        (2, &["convert", &good, "out.blow5", "--level", "3"]),
        (2, &["convert", &good, "out.blow5", "--resume"]),
        (2, &["convert", &good, out, "--record", "zstd"]),
    ];
    for (code, args) in cases {
        let ended = thalweg(args);
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        assert!(*code != 1 || ended.err.starts_with("thalweg: "), "{args:?}: {ended:?}");
    }
}

#[test]
fn a_check_says_what_and_salvages_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in headers() {
        let file = sample(&name, &kind, &[100, 200, 300]);
        let mut bytes = file.bytes.clone();
        let at = file.frames[1].start;
        bytes[at..at + 20].fill(0xff);
        let path = write(&folder.path().join("damaged"), &bytes);
        let out = folder.path().join("out");
        let ended = thalweg(&["check", &path, "--salvage", out.to_str().unwrap()]);
        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        for words in ["damaged; 2 reads, 400 samples", "found", "lost in all", "salvaged: 2 reads"] {
            assert!(ended.out.contains(words), "{name}: {words:?} in {}", ended.out);
        }
        let hole = &file.frames[1];
        assert!(ended.out.contains(&format!("lost: bytes {} to {}", hole.start, hole.end)), "{name}: {}", ended.out);
        let mut expected = file.bytes.clone();
        expected.drain(hole.clone());
        assert!(fs::read(&out).unwrap() == expected, "{name}");
        assert_eq!(thalweg(&["check", out.to_str().unwrap()]).code, Some(0), "{name}");
    }
}

/// A file that takes long to read and little to make: a record that unfolds to a million samples, many times over.
fn long_file(path: &Path, distinct_ids: bool) -> String {
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::None);
    let mut bytes = kind.write().unwrap();
    let samples = vec![7; 1 << 20];
    if distinct_ids {
        for i in 0..300 {
            bytes.extend(frame(&kind, &format!("read-{i}"), &samples));
        }
    } else {
        let record = frame(&kind, "again", &samples);
        for _ in 0..30_000 {
            bytes.extend(&record);
        }
    }
    bytes.extend(Framing::new(Encoding::Binary).end_marker());
    write(path, &bytes)
}

/// Starts a command, interrupts it once `ready`, and waits; how long it took to stop.
fn interrupt(args: &[&str], ready: impl Fn() -> bool) -> (Ended, Duration) {
    let mut command = Command::new(THALWEG);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while !ready() && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "{args:?}: over before it could be interrupted");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let sent = Instant::now();
    (wait(child), sent.elapsed())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn interrupted_commands_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let again = long_file(&folder.path().join("again.blow5"), false);
    let long = long_file(&folder.path().join("long.blow5"), true);
    let out = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    let writing = || !names(work.path()).is_empty();
    let salvaged = out("salvaged.blow5");
    let converted = out("converted.slow5");
    let made = out("made.blow5");
    let pod5 = out("made.pod5");
    type Ready<'a> = &'a dyn Fn() -> bool;
    let cases: [(&[&str], Ready<'_>); 6] = [
        (&["read", &again, "-t", "1"], &|| true),
        (&["check", &again, "-t", "1"], &|| true),
        (&["check", &again, "-t", "1", "--salvage", &salvaged], &writing),
        (&["convert", &long, &converted, "-t", "1"], &writing),
        (&["synth", &made, "--samples", "2G"], &writing),
        (&["synth", &pod5, "--kind", "pod5", "--samples", "2G"], &writing),
    ];
    for (args, ready) in cases {
        let (ended, took) = interrupt(args, ready);
        assert_eq!(ended.code, Some(130), "{args:?}: {ended:?}");
        assert_eq!(ended.err, "thalweg: interrupted\n", "{args:?}");
        // A second is promised; a loaded machine gets more.
        assert!(took < Duration::from_secs(5), "{args:?}: {took:?}");
        assert_eq!(names(work.path()), [""; 0], "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let kind = header(Encoding::Binary, RecordPress::None, SignalPress::SvbZd);
    let good = write(&folder.path().join("good.blow5"), &sample("good", &kind, &[10; 5000]).bytes);
    let mut shell = Command::new("bash");
    shell.args(["-c", "set -o pipefail; \"$0\" read \"$1\" --digest | head -1", THALWEG, &good]);
    let ended = run(shell);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}
