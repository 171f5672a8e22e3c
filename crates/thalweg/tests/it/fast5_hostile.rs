//! Real FAST5 files with flipped bits. libhdf5 is written in C and may crash on them, so each file
//! is parsed in a child process. The crashes are counted, and their number may not grow.
//!
//! `THALWEG_FLIPS` sets the number of mutations of each file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use thalweg::Error;
use thalweg::plan::Budget;
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::store::MemoryStore;
use thalweg_testing::one_of;
use thalweg_testing::real_files::nanopore;

/// The number of mutations of each file without `THALWEG_FLIPS`.
const FLIPS: u64 = 60;
/// The time limit of one mutation.
const PATIENCE: Duration = Duration::from_secs(600);

fn files() -> Vec<PathBuf> {
    let Some(folder) = nanopore() else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.join("fast5")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn random(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Flips bits near signatures and names of the metadata, because most random flips would hit
/// signals.
fn mutate(bytes: &mut [u8], seed: u64) {
    let marks = [
        &b"TREE"[..],
        b"SNOD",
        b"HEAP",
        b"run_id",
        b"read_id",
        b"Signal",
        b"digitisation",
        b"\x89HDF",
        b"pore_type",
    ];
    let count = 1 + random(seed) % 4;
    for i in 0..count {
        let pick = random(seed.wrapping_mul(31).wrapping_add(i));
        let mark = marks[pick as usize % marks.len()];
        let places: Vec<usize> = bytes
            .windows(mark.len())
            .enumerate()
            .filter(|(_, w)| *w == mark)
            .map(|(at, _)| at)
            .take(400)
            .collect();
        let near = match places.get(random(pick) as usize % places.len().max(1)) {
            Some(&place) => (place + random(pick ^ 1) as usize % 160).saturating_sub(60),
            None => random(pick ^ 2) as usize,
        } % bytes.len();
        match random(pick ^ 3) % 4 {
            0 => bytes[near] = 0xff,
            1 => bytes[near] = 0,
            _ => bytes[near] ^= 1 << (random(pick ^ 4) % 8),
        }
    }
}

fn read_all(bytes: Vec<u8>) -> Result<usize, Error> {
    let budget = Budget { threads: 1, memory: 16 << 20 };
    let file = ReadFile::from_store(
        Arc::new(MemoryStore::new("flipped", bytes)),
        Options { budget, ..Options::default() },
    )?;
    file.map(&Selection::All, |read| read.samples.len())?.try_fold(0, |sum, len| Ok(sum + len?))
}

/// Runs in the child process: tries the mutations that the environment names, and prints each one
/// before it starts.
#[test]
#[ignore = "run by damaged_metadata_is_refused_or_read, in a process of its own"]
fn child() {
    let Ok(task) = std::env::var("THALWEG_FLIP_TASK") else { return };
    let mut parts = task.splitn(3, ' ');
    let (from, to) =
        (parts.next().unwrap().parse().unwrap(), parts.next().unwrap().parse().unwrap());
    let whole = fs::read(parts.next().unwrap()).unwrap();
    for seed in from..to {
        println!("\nflip {seed}");
        let mut bytes = whole.clone();
        mutate(&mut bytes, seed);
        let outcome = read_all(bytes);
        println!("\ndone {}", outcome.is_ok());
    }
}

/// Runs mutations until one kills the child. Returns how many mutated files were read, how many
/// were refused, and the mutation that killed the child, with the reason.
fn run(task: &str) -> (u64, u64, Option<(u64, String)>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fast5_hostile::child", "--ignored", "--nocapture"])
        .env("THALWEG_FLIP_TASK", task)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let errors = child.stderr.take().unwrap();
    let errors = std::thread::spawn(move || std::io::read_to_string(errors).unwrap_or_default());
    let (mut at, mut open, mut read, mut refused) = (None, false, 0, 0);
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if let Some(seed) = line.strip_prefix("flip ") {
                    (at, open) = (seed.parse().ok(), true);
                } else if let Some(outcome) = line.strip_prefix("done ") {
                    open = false;
                    if outcome == "true" { read += 1 } else { refused += 1 }
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                child.wait().unwrap();
                return (read, refused, Some((at.unwrap_or(0), "a hang".into())));
            }
            Err(_) => break,
        }
    }
    let status = child.wait().unwrap();
    let errors = errors.join().unwrap();
    assert!(!errors.contains("HDF5-DIAG"), "libhdf5 printed: {errors}");
    let died = (!status.success())
        .then(|| (at.unwrap_or(0), format!("{status}: {}", errors.lines().next().unwrap_or(""))));
    assert!(died.is_some() || !open, "the child went away");
    (read, refused, died)
}

#[test]
fn damaged_metadata_is_refused_or_read() {
    let flips =
        std::env::var("THALWEG_FLIPS").map_or(FLIPS / one_of() as u64, |n| n.parse().unwrap());
    let mut fatal = Vec::new();
    let mut tried = 0;
    for path in files() {
        let (mut from, mut read, mut refused) = (0, 0, 0);
        while from < flips {
            let outcome = run(&format!("{from} {flips} {}", path.display()));
            (read, refused) = (read + outcome.0, refused + outcome.1);
            let Some((seed, how)) = outcome.2 else { break };
            println!("{} flip {seed}: {how}", path.display());
            fatal.push((path.clone(), seed, how));
            from = seed + 1;
        }
        tried += flips;
        println!("{}: {read} read, {refused} refused", path.display());
        assert!(refused > 0 && read > 0, "the mutations do not reach what they should");
    }
    assert!(fatal.is_empty(), "{} of {tried} mutations ended the process: {fatal:?}", fatal.len());
}
