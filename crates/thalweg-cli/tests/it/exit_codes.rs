//! Exit codes: 0 done, 1 failed, 2 usage, 130 interrupted. An interrupted command leaves no files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use thalweg::format::slow5::{Encoding, Framing, RecordPress, SignalPress};
use thalweg_testing::one_of;
use thalweg_testing::slow5::{frame, header, headers, sample};

use crate::command::{Ended, PATIENCE, THALWEG, run, thalweg, wait};

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
        let ended = thalweg(&["check", &path, "--force", "--salvage", out.to_str().unwrap()]);
        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        for words in ["damaged; 2 reads, 400 samples", "found", "lost in all", "salvaged: 2 reads"]
        {
            assert!(ended.out.contains(words), "{name}: {words:?} in {}", ended.out);
        }
        let hole = &file.frames[1];
        assert!(
            ended.out.contains(&format!("lost: bytes {} to {}", hole.start, hole.end)),
            "{name}: {}",
            ended.out
        );
        let mut expected = file.bytes.clone();
        expected.drain(hole.clone());
        assert!(fs::read(&out).unwrap() == expected, "{name}");
        assert_eq!(thalweg(&["check", out.to_str().unwrap()]).code, Some(0), "{name}");
    }
}

/// A file that takes long to read and is quick to make: many copies of a record that decompresses
/// to a million samples.
fn long_file(path: &Path, distinct_ids: bool) -> String {
    let kind = header(Encoding::Binary, RecordPress::Zstd, SignalPress::None);
    let mut bytes = kind.write().unwrap();
    let samples = vec![7; 1 << 20];
    if distinct_ids {
        for i in 0..900 {
            bytes.extend(frame(&kind, &format!("{i:08}-0000-4000-8000-000000000000"), &samples));
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

/// What a command that must succeed has written at `path`.
fn made(path: &Path, args: &[&str]) -> String {
    let path = path.to_str().unwrap();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "OUT" { path } else { arg }).collect();
    let ended = thalweg(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    path.to_owned()
}

/// A file of eight million events, which take long to write as text.
fn live_file(path: &Path) -> String {
    made(path, &["synth", "OUT", "--kind", "nexus-live", "--size", "100MB"])
}

/// A file of a network of millions of edges, which take long to import.
fn network_file(path: &Path) -> String {
    made(path, &["synth", "OUT", "--kind", "neuroglial", "--neurons", "20000"])
}

/// The state of a process, and the processor time that it and its threads have taken. This works
/// also after the process has ended, until it is waited for.
fn state_and_cpu(pid: u32) -> (char, Duration) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program comes before these fields, in parentheses.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    let hertz = rustix::param::clock_ticks_per_second();
    (fields[0].chars().next().unwrap(), Duration::from_millis(ticks * 1000 / hertz))
}

/// Whether a process handles a signal. Until then, the signal ends it like any other program.
fn handles(pid: u32, signal: Signal) -> bool {
    has_signal(&pid.to_string(), "SigCgt:", signal)
}

/// Whether a process's set of signals that `/proc` calls `set` has `signal`.
fn has_signal(pid: &str, set: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let signals = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
    u64::from_str_radix(signals.trim(), 16).unwrap() & 1 << (signal.as_raw() - 1) != 0
}

/// Starts a command, sends it a signal once `ready` is true, and waits. Returns the processor time
/// that it took to stop, which does not depend on the load of the machine. `None` if the command
/// ended before, as it may on a busy machine.
fn interrupt(args: &[&str], signal: Signal, ready: &dyn Fn() -> bool) -> Option<(Ended, Duration)> {
    let mut command = Command::new(THALWEG);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    let running = |child: &mut std::process::Child| child.try_wait().unwrap().is_none();
    while running(&mut child) && !(handles(child.id(), signal) && ready()) {
        assert!(started.elapsed() < PATIENCE, "{args:?}: nothing to interrupt");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    if child.try_wait().unwrap().is_some() {
        return None;
    }
    let pid = rustix::process::Pid::from_child(&child);
    let (_, before) = state_and_cpu(child.id());
    rustix::process::kill_process(pid, signal).unwrap();
    let sent = Instant::now();
    let took = loop {
        let (state, cpu) = state_and_cpu(child.id());
        if state == 'Z' {
            break cpu - before;
        }
        assert!(sent.elapsed() < PATIENCE, "{args:?}: it goes on");
        std::thread::sleep(Duration::from_millis(5));
    };
    Some((wait(child), took))
}

/// How often a command is started that must be interrupted before it ends.
const ATTEMPTS: usize = 20;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn interrupted_commands_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let again = long_file(&folder.path().join("again.blow5"), false);
    let long = long_file(&folder.path().join("long.blow5"), true);
    let mut live = String::new();
    let mut network = String::new();
    let mut store = String::new();
    if cfg!(feature = "hdf5") {
        live = live_file(&folder.path().join("live.nxs"));
        network = network_file(&folder.path().join("network.h5"));
        store = made(&folder.path().join("store"), &["graph", "import", &network, "OUT"]);
    }
    let parts = work.path().join("parts");
    let writing =
        || names(work.path()).iter().any(|name| name != "parts") || !names(&parts).is_empty();
    let at_once = || true;
    // Each command, and whether it is interrupted only once there is an output in progress.
    let cases = [
        ("read AGAIN", false),
        ("check AGAIN", false),
        ("check AGAIN --salvage OUT/salvaged.blow5", true),
        ("convert LONG OUT/converted.slow5", true),
        ("convert LONG OUT/converted.blow5", true),
        ("convert LONG OUT/converted.pod5", true),
        ("convert LONG OUT/converted.fast5", true),
        ("filter LONG --where samples>0 --out OUT/some.slow5", true),
        ("filter LONG --where samples>0 --out OUT/some.pod5", true),
        ("filter AGAIN --where samples>0 --out OUT/some.pod5", false),
        ("merge LONG --out OUT/all.slow5", true),
        ("merge LONG --out OUT/all.pod5", true),
        ("merge LONG --out OUT/all.fast5", true),
        ("split AGAIN --reads 4k --out OUT/parts", false),
        ("split LONG --reads 50 --out OUT/parts --to slow5", true),
        ("split LONG --reads 50 --out OUT/parts --to pod5", true),
        ("split LONG --reads 50 --out OUT/parts --to fast5", true),
        ("scan AGAIN --out OUT/table.csv", true),
        ("scan AGAIN --out OUT/table.arrow", true),
        ("scan AGAIN --out OUT/table.parquet", true),
        ("read LIVE --events --out OUT/events.csv", true),
        ("read LIVE --events --out OUT/events.parquet", true),
        ("read LIVE --events --order file --out OUT/events.tsv", true),
        ("read LIVE --events --out OUT/events.npy", true),
        ("read LIVE --out OUT/arrays.npy --throttle bandwidth=20MB/s", true),
        ("read LIVE --ranks 2 --throttle bandwidth=1MB/s", false),
        ("index AGAIN -o OUT/again.idx --throttle bandwidth=300kB/s", false),
        ("graph import NETWORK OUT/store --keep-every 1000", true),
        ("graph import NETWORK OUT/folder/store --keep-every 1000", true),
        ("graph export STORE OUT/edges.csv --edges Astrocyte-Synapse", true),
        ("graph export STORE OUT/edges.parquet --edges Astrocyte-Synapse", true),
        ("graph export STORE OUT/some.csv --edges Astrocyte-Neuron --where to>3", true),
        (
            "graph export STORE OUT/part.csv --edges Astrocyte-Neuron --between Astrocyte:0-900",
            true,
        ),
        ("graph export STORE OUT/network.h5", true),
        ("graph neighbors STORE --from Astrocyte --measured --repeat 60000", false),
        ("graph neighbors STORE --from Astrocyte --measured --arrays --repeat 60000", false),
        ("graph insert STORE --edges 2000000", false),
        ("plot AGAIN --out OUT/run.html", false),
        ("plot AGAIN --out OUT/run.png", false),
        ("synth OUT/made.blow5 --samples 2G", true),
        ("synth OUT/made.pod5 --kind pod5 --samples 2G", true),
        ("synth OUT/made.h5 --kind neuroglial --neurons 40000", true),
        ("probe OUT --file-size 2GB", true),
        ("probe AGAIN", false),
    ];
    let mut signals = vec![(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    // So it is below nohup(1).
    signals.retain(|(signal, _)| !has_signal("self", "SigIgn:", *signal));
    let one_of = if one_of() > 1 { signals.len() } else { 1 };
    for (number, (case, when_writing)) in cases.into_iter().enumerate() {
        let needs_hdf5 = ["fast5", "LIVE", "NETWORK", "STORE", "neuroglial"];
        if cfg!(not(feature = "hdf5")) && needs_hdf5.iter().any(|word| case.contains(word)) {
            continue;
        }
        let place = work.path().to_str().unwrap();
        let named = [
            ("AGAIN", &*again),
            ("LONG", &*long),
            ("LIVE", &*live),
            ("NETWORK", &*network),
            ("STORE", &*store),
            ("OUT", place),
        ];
        let fill = |word: &str| {
            named.iter().fold(word.to_owned(), |word, (name, path)| word.replace(name, path))
        };
        let mut args: Vec<String> = case.split(' ').map(fill).collect();
        if !case.starts_with("synth") && !case.starts_with("probe") {
            args.extend(["-t".into(), "1".into()]);
        }
        // The calibration of these reads loses digits in POD5.
        if case.contains("pod5") && case.contains("LONG") {
            args.push("--lossy".into());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ready: &dyn Fn() -> bool = if when_writing { &writing } else { &at_once };
        for (signal, code) in signals.iter().skip(number % one_of).step_by(one_of) {
            // A command that ends when the signal comes has another exit code, and outputs.
            let interrupted = (0..ATTEMPTS).find_map(|_| {
                std::fs::remove_dir_all(work.path()).unwrap();
                std::fs::create_dir_all(&parts).unwrap();
                interrupt(&args, *signal, ready).filter(|(ended, _)| ended.code == Some(*code))
            });
            let (ended, took) = interrupted.unwrap_or_else(|| panic!("{case}: never interrupted"));
            // A command that does not stop is ended, and says so.
            let is_note = |line: &&str| {
                line.starts_with("thalweg: left out: ") || line.contains(".idx: an index")
            };
            let said = ended.err.lines().filter(|line| !is_note(line));
            assert_eq!(said.collect::<Vec<_>>(), ["thalweg: interrupted"], "{case}");
            // Commands must stop within a second. In that second, two threads take at most two
            // seconds of processor time.
            assert!(took < Duration::from_secs(2), "{case}: {took:?} of processor time");
            assert_eq!(
                (names(work.path()), names(&parts)),
                (vec!["parts".to_owned()], Vec::new()),
                "{case}"
            );
        }
    }
}

/// The processes that a process has started and that have not ended.
#[cfg(feature = "hdf5")]
fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state and the parent follow the name of the program.
        let fields: Option<Vec<&str>> =
            stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').take(2).collect());
        fields.is_some_and(|fields| fields[0] != "Z" && fields[1] == parent.to_string())
    };
    pids.filter(is_child).collect()
}

/// However a read by several processes ends, none of them goes on.
#[test]
#[cfg(feature = "hdf5")]
fn the_processes_of_a_read_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let live = live_file(&folder.path().join("live.nxs"));
    let args = ["read", &live, "--ranks", "2", "--throttle", "bandwidth=1MB/s", "-t", "1"];
    let signals = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    for signal in signals.into_iter().filter(|signal| !has_signal("self", "SigIgn:", *signal)) {
        let mut command = Command::new(THALWEG);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let wait = || {
            assert!(started.elapsed() < PATIENCE, "{signal:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut ranks = Vec::new();
        while ranks.len() < 2 {
            ranks = children(child.id());
            wait();
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        // A process that has ended, but that nobody waited for, has no command line.
        let runs = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| !command.is_empty())
        };
        while ranks.iter().any(runs) {
            wait();
        }
    }
}

/// What a killed probe leaves is removed by the next one, whatever their process ids are.
#[test]
fn a_probe_removes_what_a_killed_one_left() {
    let folder = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let place = work.path().to_str().unwrap();
    let probe = |size: &str| {
        let mut command = Command::new(THALWEG);
        command.args(["probe", place, "--budget-s", "1", "--file-size", size]);
        command.env("XDG_CACHE_HOME", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut child = probe("2GB").spawn().unwrap();
    let started = Instant::now();
    while !names(work.path()).iter().any(|name| name.ends_with(".tmp")) {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(names(work.path()), [""; 0]);
    run(probe("1MB"));
    assert_eq!(names(work.path()), [""; 0]);
}

/// nohup(1) has its command ignore SIGHUP, so that it goes on after the terminal is closed.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let again = long_file(&folder.path().join("again.blow5"), false);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" check \"$1\" -t 1", THALWEG, &again]);
    let mut child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !handles(child.id(), Signal::TERM) {
        assert!(started.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!handles(child.id(), Signal::HUP));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What a verb found stands in its exit code, whether or not somebody reads what it prints.
#[test]
fn a_closed_pipe_hides_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let kind = header(Encoding::Binary, RecordPress::None, SignalPress::SvbZd);
    let file = sample("cut", &kind, &[10; 50]).bytes;
    let cut = write(&folder.path().join("cut.blow5"), &file[..file.len() - 9]);
    let list = write(&folder.path().join("e.csv"), b"source,target\n1,2\n");
    let net = folder.path().join("net").to_str().unwrap().to_owned();
    assert_eq!(thalweg(&["graph", "import", &list, &net]).code, Some(0));
    let segment = folder.path().join("net/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[100] ^= 1;
    fs::write(segment, bytes).unwrap();
    let runs = write(&folder.path().join("runs.jsonl"), PUBLISHED.as_bytes());
    let compare = ["compare", &runs, "--fail-if", "time_s > 0"];
    for (code, args) in [(1, &["check", &cut][..]), (1, &["graph", "check", &net]), (3, &compare)] {
        for more in [&[][..], &["--json"]] {
            let script = "set -o pipefail; (sleep 0.3; exec \"$0\" \"$@\") | true";
            let args = [args, more].concat();
            let output = Command::new("bash").args(["-c", script, THALWEG]).args(&args).output();
            let output = output.unwrap();
            assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        }
    }
}

/// Results in which the condition `time_s > 0` holds.
const PUBLISHED: &str = r#"{"schema":"thalweg.published/1","id":"a","name":"A","title":"T"}
{"schema":"thalweg.figure/1","source":"a","experiment":"e","arm":"x","time_s":1}
{"schema":"thalweg.figure/1","source":"a","experiment":"e","arm":"y","time_s":2}
"#;

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
