//! The process stays within its memory budget, whatever the size of the file.
//!
//! Each case runs in a process of its own, because freed memory is not always returned to the
//! system. The test starts itself again with the case in the environment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use thalweg::convert::{Conversion, convert};
use thalweg::format::pod5::write::Pod5Layout;
use thalweg::format::slow5::{RecordEncoder, RecordPress, SignalPress};
use thalweg::plan::Budget;
use thalweg::reads::{
    BatchOptions, Options, Order, Read, ReadFile, ReadSet, Selection, Visitor, index_path,
};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::{Coding, ReadWriter, save_index};
use thalweg_testing::one_of;

#[cfg(feature = "hdf5")]
use thalweg::format::fast5::Compression;

pub(crate) const MIB: u64 = 1 << 20;

/// The memory that the process may take beyond its budget: docs/design.md, section 6.
pub(crate) const SLACK_MIB: u64 = 64;

/// The size of the large file in stored bytes.
const LARGE: u64 = 300_000_000;

/// The size of the converted file in stored bytes.
const CONVERTED: u64 = 60_000_000;

/// The size of the uncompressed file in stored bytes.
const PLAIN: u64 = 200_000_000;

/// Writes a file of about `bytes` stored bytes. A few reads are made, and written repeatedly under
/// different ids.
fn write(path: &Path, bytes: u64, recipe: Recipe) {
    write_as(path, bytes, recipe, (RecordPress::Zstd, SignalPress::SvbZd));
}

/// Writes such a file with these compressions.
fn write_as(path: &Path, bytes: u64, recipe: Recipe, press: (RecordPress, SignalPress)) {
    let synth = Synth::new(Recipe { reads: 40, ..recipe }).unwrap();
    let header = synth.header(press.0, press.1);
    let mut reads = vec![SynthRead::default(); 40];
    reads.iter_mut().enumerate().for_each(|(i, read)| synth.read(i as u64, read));
    let (mut out, mut encoder) =
        (ReadWriter::create(path, &header).unwrap(), RecordEncoder::new().unwrap());
    let mut written = 0;
    for number in 0.. {
        let read = &mut reads[number % 40];
        read.read_id = format!("{number:08x}-0000-4000-8000-000000000000");
        let frame = read.frame(&header, &mut encoder).unwrap();
        written += frame.len() as u64;
        out.push(&read.read_id, &frame).unwrap();
        if written > bytes {
            break;
        }
    }
    save_index(&out.finish().unwrap(), &index_path(path)).unwrap();
}

#[derive(Default)]
struct Sum(i64);

impl Visitor for Sum {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        self.0 += read.samples.iter().map(|&s| i64::from(s)).sum::<i64>();
        Ok(())
    }
}

/// Bytes of anonymous memory that the process has in RAM.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The result of a job, and the largest anonymous memory while it ran.
pub(crate) fn peak_of<T>(job: impl FnOnce() -> T) -> (T, u64) {
    let (stop, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = {
        let (stop, peak) = (stop.clone(), peak.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let came = job();
    stop.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    (came, peak.load(Ordering::Relaxed))
}

/// Runs a job, and prints the largest anonymous memory, the bytes of oversize records and the
/// number of reads.
fn child(job: &str, path: &Path, budget: Budget) {
    let ((oversize, count), peak) = peak_of(|| did(job, path, budget));
    println!("\nresult {peak} {oversize} {count}");
}

/// Runs a job, and returns the bytes of oversize records and the number of reads.
fn did(job: &str, path: &Path, budget: Budget) -> (u64, usize) {
    let options = Options { budget, ..Options::default() };
    let file = ReadFile::open(path, options.clone()).unwrap();
    let rows = |selection: &Selection, order| {
        let options = BatchOptions { order, ..BatchOptions::default() };
        let batches = file.batches_with(selection, options).unwrap();
        batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    let mut oversize = 0;
    let count = match job {
        "visit" => {
            let (_, summary) = file.visit(&Selection::All, Sum::default).unwrap();
            oversize = summary.clocks.peak_oversize;
            summary.reads as usize
        }
        "map" => file
            .map(&Selection::All, |read| read.samples.len())
            .unwrap()
            .map(Result::unwrap)
            .count(),
        "batches" => rows(&Selection::All, Order::Selection),
        "as they come" => rows(&Selection::All, Order::AsTheyCome),
        "ids" => {
            let mut ids: Vec<String> =
                file.index().unwrap().0.iter().map(|(id, _)| id.to_owned()).collect();
            // An order that jumps between distant parts of the file.
            let all = ids.len();
            ids = (0..all).map(|i| ids[i * 7919 % all].clone()).collect();
            rows(&Selection::Ids(Arc::new(ids)), Order::Selection)
        }
        "set" => {
            let set = ReadSet::open([path.parent().unwrap()], options).unwrap();
            set.batches(&Selection::All).unwrap().map(|batch| batch.unwrap().num_rows()).sum()
        }
        // Conversion also covers merging and splitting, which write in the same way.
        "slow5" | "blow5" | "pod5" | "fast5" => {
            let coding = match job {
                "slow5" => Coding::Slow5,
                "blow5" => Coding::Blow5(RecordPress::Zstd, SignalPress::SvbZd),
                "pod5" => Coding::Pod5(Pod5Layout::default()),
                #[cfg(feature = "hdf5")]
                _ => Coding::Fast5(Compression::default()),
                #[cfg(not(feature = "hdf5"))]
                other => panic!("{other}"),
            };
            let set = ReadSet::open([path], options.clone()).unwrap();
            let conversion =
                Conversion { verify: Some(options), lossy: true, ..Conversion::new(coding) };
            let report =
                convert(&set, &Selection::All, &path.with_extension("out"), &conversion).unwrap();
            report.reads as usize
        }
        other => panic!("{other}"),
    };
    (oversize, count)
}

/// Runs a job with some threads in a child process. Returns the peak of anonymous memory, the peak
/// of oversize bytes, and the number of reads.
fn run(threads: usize, job: &str, path: &Path, memory_mib: u64) -> (u64, u64, u64) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::stays_within_the_budget", "--nocapture"])
        .env("THALWEG_MEMORY_CASE", format!("{job}\n{}\n{memory_mib}\n{threads}", path.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find_map(|line| line.strip_prefix("result "));
    let result =
        result.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let numbers: Vec<u64> = result.split(' ').map(|n| n.parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2])
}

/// Runs a job, which must stay within the budget. Returns the number of reads.
fn count_within(threads: usize, job: &str, path: &Path, memory: u64) -> u64 {
    let (peak, oversize, count) = run(threads, job, path, memory);
    println!("{job} in {memory} MiB: {} MiB, {} MiB oversize", peak / MIB, oversize / MIB);
    assert!(peak <= (memory + SLACK_MIB) * MIB, "{job} in {memory} MiB took {} MiB", peak / MIB);
    count
}

#[test]
fn stays_within_the_budget() {
    if let Ok(case) = std::env::var("THALWEG_MEMORY_CASE") {
        let parts: Vec<&str> = case.split('\n').collect();
        let number = |place: usize| parts[place].parse::<usize>().unwrap();
        let budget = Budget { memory: number(2) << 20, threads: number(3) };
        return child(parts[0], &PathBuf::from(parts[1]), budget);
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("large.blow5");
    write(&path, LARGE, Recipe::default());
    let mut counts = Vec::new();
    let jobs = [
        ("visit", 32),
        ("as they come", 32),
        ("batches", 32),
        ("visit", 192),
        ("ids", 32),
        ("set", 32),
        ("map", 32),
        ("ids", 192),
        ("batches", 192),
    ];
    for (job, memory) in jobs.into_iter().step_by(one_of().min(2)) {
        counts.push(count_within(2, job, &path, memory));
    }
    assert!(counts.iter().all(|&count| count == counts[0] && count > 1000), "{counts:?}");
}

#[test]
fn conversions_stay_within_the_budget() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("middle.blow5");
    write(&path, CONVERTED, Recipe { mean_length: 20_000.0, ..Recipe::default() });
    let formats: &[&str] = if cfg!(feature = "hdf5") {
        &["slow5", "blow5", "pod5", "fast5"]
    } else {
        &["slow5", "blow5", "pod5"]
    };
    for format in formats.iter().step_by(one_of().min(2)) {
        let count = count_within(2, format, &path, 32);
        assert!(count > 2000, "{count}");
    }
}

/// Nothing is decoded here, so that reading ahead is limited by the budget alone.
#[test]
fn uncompressed_files_stay_within_the_budget() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("plain.blow5");
    write_as(&path, PLAIN, Recipe::default(), (RecordPress::None, SignalPress::None));
    for job in ["visit", "batches", "ids", "blow5"] {
        let count = count_within(2, job, &path, 32);
        assert!(count > 500, "{count}");
    }
}

/// The budget is of all threads together, however many there are.
#[test]
fn many_threads_stay_within_the_budget() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("middle.blow5");
    write(&path, CONVERTED, Recipe::default());
    for job in ["visit", "batches", "blow5"] {
        let count = count_within(64, job, &path, 64);
        assert!(count > 200, "{count}");
    }
}

#[test]
fn a_read_larger_than_the_budget_is_read_and_reported() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("long.blow5");
    // Reads of 6 M samples: 12 MB decoded, with a budget of 8 MiB.
    let long = 6_000_000;
    let recipe = Recipe {
        mean_length: f64::from(long),
        length_sigma: 0.0,
        max_length: long,
        ..Recipe::default()
    };
    let synth = Synth::new(recipe).unwrap();
    let header = synth.header(RecordPress::Zstd, SignalPress::SvbZd);
    let (mut read, mut encoder) = (SynthRead::default(), RecordEncoder::new().unwrap());
    synth.read(0, &mut read);
    let mut out = ReadWriter::create(&path, &header).unwrap();
    for number in 0..4 {
        read.read_id = format!("long-{number}");
        out.push(&read.read_id, &read.frame(&header, &mut encoder).unwrap()).unwrap();
    }
    out.finish().unwrap();
    for job in ["visit", "batches", "ids"] {
        let (_, oversize, count) = run(2, job, &path, 8);
        assert_eq!(count, 4, "{job}");
        assert!(job != "visit" || oversize > 4_000_000, "{oversize} bytes oversize");
    }
}
