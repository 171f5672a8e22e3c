//! Truncates a small POD5 file at every byte, and flips bits in every byte. Reading gives a typed
//! error that names the place, or the reads of the file. It never panics, hangs, exceeds the memory
//! budget, or silently returns fewer reads.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::alloc::System;
use std::sync::{Arc, PoisonError, RwLock};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use thalweg::format::pod5::write::{Identity, Pod5Layout, SignalCoding};
use thalweg::plan::Budget;
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::store::MemoryStore;
use thalweg::{Error, Result};
use thalweg_testing::{no_hang, one_of, pod5};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The most bytes that one pass may allocate in total: its budget of 2 MiB, and repeated
/// allocations of block buffers and footers.
const MOST: usize = 16 << 20;

/// The allocator counts for the whole process, including the library's own threads. Passes run side
/// by side, each with this lock shared, so a count may include allocations of other passes. A pass
/// whose count is too high is repeated alone.
static PASSES: RwLock<()> = RwLock::new(());

type Reads = Vec<(String, Vec<i16>)>;

fn small(coding: SignalCoding) -> Vec<u8> {
    let identity = Some(Identity::from_seed(1));
    let layout = Pod5Layout {
        coding,
        row_samples: 100,
        signal_rows: 2,
        reads_rows: 3,
        identity,
        software: "test".into(),
    };
    pod5::file(layout, &[120, 0, 250, 30, 100])
}

type Outcome = Result<Option<String>>;

/// All reads until the first error, the note, and the number of bytes that were allocated.
fn pass(bytes: &[u8]) -> (Reads, Outcome, usize) {
    let region = Region::new(ALLOCATOR);
    let mut reads = Vec::new();
    let mut all = || {
        let options =
            Options { budget: Budget { threads: 1, memory: 2 << 20 }, ..Options::default() };
        let file =
            ReadFile::from_store(Arc::new(MemoryStore::new("damaged", bytes.to_vec())), options)?;
        for item in file
            .map(&Selection::All, |read| (read.record.read_id.to_owned(), read.samples.to_vec()))?
        {
            reads.push(item?);
        }
        Ok(file.note().map(str::to_owned))
    };
    let outcome = all();
    let asked = region.change().bytes_allocated;
    (reads, outcome, asked)
}

/// All reads until the first error, and the note. Asserts that the pass stays within its memory.
fn read(bytes: &[u8]) -> (Reads, Outcome) {
    let shared = PASSES.read().unwrap_or_else(PoisonError::into_inner);
    let (reads, outcome, asked) = pass(bytes);
    drop(shared);
    if asked >= MOST {
        let _alone = PASSES.write().unwrap_or_else(PoisonError::into_inner);
        let (_, outcome, asked) = pass(bytes);
        assert!(asked < MOST, "{asked} bytes for {outcome:?}");
    }
    (reads, outcome)
}

/// Whether an error names the place.
fn is_told(error: &Error, size: usize) -> bool {
    match error {
        Error::Malformed { file, offset, .. } | Error::Truncated { file, offset, .. } => {
            &**file == "damaged" && *offset <= size as u64
        }
        Error::Unsupported { file, .. } => &**file == "damaged",
        _ => false,
    }
}

#[test]
fn every_truncation_is_reported() {
    no_hang(|| {
        let bytes = small(SignalCoding::default());
        let (whole, outcome) = read(&bytes);
        assert!(outcome.unwrap().is_none() && whole.len() == 5);
        let mut noted = 0;
        for len in (0..bytes.len()).step_by(one_of()) {
            let (reads, outcome) = read(&bytes[..len]);
            match outcome {
                Ok(Some(_)) => {
                    assert_eq!(reads, whole, "cut at {len}");
                    noted += 1;
                }
                Ok(None) => panic!("cut at {len}: nothing is said"),
                Err(error) => {
                    assert!(is_told(&error, len), "cut at {len}: {error:?}");
                    assert!(whole.starts_with(&reads), "cut at {len}");
                }
            }
        }
        assert!(noted > 100 / one_of(), "{noted}");
    });
}

fn flips(coding: SignalCoding, changes: [u8; 3]) {
    no_hang(move || {
        let bytes = small(coding);
        let (whole, _) = read(&bytes);
        let lengths =
            |reads: &Reads| reads.iter().map(|(_, samples)| samples.len()).collect::<Vec<_>>();
        let wanted = lengths(&whole);
        let mut told = 0;
        for at in (0..bytes.len()).step_by(one_of()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= changes[at % changes.len()];
            let (reads, outcome) = read(&damaged);
            match outcome {
                // A value may have changed. Only a checksum would show this, and POD5 has none.
                Ok(_) => assert_eq!(lengths(&reads), wanted, "byte {at}"),
                Err(error) => {
                    assert!(is_told(&error, bytes.len()), "byte {at}: {error:?}");
                    assert!(wanted.starts_with(&lengths(&reads)), "byte {at}");
                    told += 1;
                }
            }
        }
        assert!(told > bytes.len() / 10 / one_of(), "{told} of {}", bytes.len());
    });
}

#[test]
fn flipped_bits_are_reported_or_change_a_value() {
    flips(SignalCoding::default(), [0x01, 0x80, 0x10]);
}

#[test]
fn flipped_bits_beside_plain_samples_are_reported_or_change_a_value() {
    flips(SignalCoding::Plain, [0x80, 0x02, 0x01]);
}
