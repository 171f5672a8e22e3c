//! POD5 files of millions of reads stay within the memory budget, whatever the job.
//!
//! The default is 300,000 reads. Ten million reads take 2 GB on the disk:
//! `THALWEG_POD5_READS=10000000 cargo test -p thalweg --test it -- pod5_scale --nocapture`

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use thalweg::engine::Delivery;
use thalweg::format::pod5::format_uuid;
use thalweg::format::pod5::write::{EncodedSignal, Identity, Mapping, Pod5Layout, SignalEncoder};
use thalweg::plan::Budget;
use thalweg::reads::{
    BatchOptions, IndexOrigin, Options, Read, ReadFile, ReadSet, Selection, Visitor, index_path,
};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::Pod5Writer;

use crate::memory::{MIB, SLACK_MIB, peak_of};

/// The number of reads that are read by id.
const SOME: u64 = 1000;

fn reads() -> u64 {
    std::env::var("THALWEG_POD5_READS").map_or(300_000, |reads| reads.parse().unwrap())
}

fn uuid(i: u64) -> [u8; 16] {
    Identity::from_seed(i).section_marker
}

fn some_ids(reads: u64) -> Vec<String> {
    let id = |i| {
        let mut text = String::new();
        format_uuid(&uuid(i * 7_368_787 % reads), &mut text);
        text
    };
    (0..SOME).map(id).collect()
}

/// Writes a file of `reads` reads of a few samples each, which differ only in their ids.
fn write(path: &Path, reads: u64) {
    let synth =
        Synth::new(Recipe { mean_length: 120.0, min_length: 60, ..Recipe::default() }).unwrap();
    let header = synth.full_header();
    let mapping = Mapping::new(&header).unwrap();
    let (mut read, mut aux) = (SynthRead::default(), Vec::new());
    synth.read(0, &mut read);
    read.samples.truncate(12);
    let record = read.record(&header, &mut aux).unwrap();
    let (mut row, _) = mapping.row(&record, &header).unwrap();
    let mut runs = mapping.runs();
    let _ = runs.note(0, record.digitisation, record.sampling_rate);
    let layout = Pod5Layout::default();
    let signal = SignalEncoder::new(layout.coding, layout.row_samples)
        .unwrap()
        .encode(&read.samples)
        .unwrap();
    let mut out = Pod5Writer::create(path, layout, mapping.extra_columns()).unwrap();
    for i in 0..reads {
        row.read_id = uuid(i);
        out.push(&row, EncodedSignal::clone(&signal)).unwrap();
    }
    out.finish(&runs.into_infos()).unwrap();
}

#[derive(Default)]
struct Count(u64);

impl Visitor for Count {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        self.0 += read.samples.len() as u64;
        Ok(())
    }
}

/// Runs a job, and returns the number of reads that it found.
fn job(name: &str, path: &Path, memory: usize) -> u64 {
    let options = Options { budget: Budget { threads: 2, memory }, ..Options::default() };
    let file = ReadFile::open(path, options.clone()).unwrap();
    let reads = reads();
    match name {
        "visit" => file.visit(&Selection::All, Count::default).unwrap().1.reads,
        "scan" => {
            let rows = file.scan(&Selection::All, BatchOptions::default()).unwrap();
            rows.map(|batch| batch.unwrap().num_rows() as u64).sum()
        }
        "summary" => ReadSet::open([path], options).unwrap().summary().unwrap().reads,
        "count" => file.known_reads().unwrap().unwrap(),
        "explain" => {
            let plan = file.explain(&Selection::All, Delivery::Worker).unwrap();
            assert!(plan.wanted_bytes > reads);
            plan.reads.unwrap()
        }
        "index" => {
            let _ = std::fs::remove_file(index_path(path));
            assert_eq!(file.load_index().unwrap(), IndexOrigin::Built);
            reads
        }
        "ids" => {
            assert_eq!(file.load_index().unwrap(), IndexOrigin::Loaded);
            let ids = some_ids(reads);
            let got = file
                .map(&Selection::Ids(Arc::new(ids.clone())), |read| read.record.read_id.to_owned())
                .unwrap();
            assert!(got.map(Result::unwrap).eq(ids));
            SOME
        }
        "getter" => {
            let mut getter = file.getter().unwrap();
            for id in some_ids(reads) {
                assert_eq!(getter.get(&id, |read| read.samples.len()).unwrap(), 12);
            }
            SOME
        }
        "check" => file.check().unwrap().reads,
        other => panic!("{other}"),
    }
}

#[test]
fn millions_of_reads_stay_within_the_budget() {
    if let Ok(case) = std::env::var("THALWEG_POD5_CASE") {
        let parts: Vec<&str> = case.split('\n').collect();
        let (path, memory) = (PathBuf::from(parts[1]), parts[2].parse::<usize>().unwrap());
        let (count, peak) = peak_of(|| job(parts[0], &path, memory << 20));
        println!("\nresult {count} {peak}");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("many.pod5");
    let started = Instant::now();
    write(&path, reads());
    println!(
        "{} reads in {} MB, written in {:.1?}",
        reads(),
        path.metadata().unwrap().len() / 1_000_000,
        started.elapsed()
    );
    // With a larger budget, only the jobs that use all of their budget are repeated.
    const JOBS: [&str; 9] =
        ["index", "ids", "getter", "visit", "count", "scan", "summary", "explain", "check"];
    let budgets: &[(u64, &[&str])] =
        if reads() > 1_000_000 { &[(64, &JOBS), (192, &JOBS[..4])] } else { &[(16, &JOBS)] };
    for (memory, jobs) in budgets {
        for job in *jobs {
            let wanted = if ["ids", "getter"].contains(job) { SOME } else { reads() };
            let started = Instant::now();
            let output = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "pod5_scale::millions_of_reads_stay_within_the_budget",
                    "--nocapture",
                ])
                .env("THALWEG_POD5_CASE", format!("{job}\n{}\n{memory}", path.display()))
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let result = text.lines().find_map(|line| line.strip_prefix("result "));
            let result = result
                .unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
            let (count, peak) = result.split_once(' ').unwrap();
            let peak = peak.parse::<u64>().unwrap();
            println!("{job} in {memory} MiB: {} MiB, {:.1?}", peak / MIB, started.elapsed());
            assert_eq!(count.parse::<u64>().unwrap(), wanted, "{job}");
            assert!(
                peak <= (memory + SLACK_MIB) * MIB,
                "{job} in {memory} MiB took {} MiB",
                peak / MIB
            );
        }
    }
}
