//! Tests that reading allocates per block and per batch, not per read.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::alloc::System;
use std::path::{Path, PathBuf};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use thalweg::format::slow5::{RecordEncoder, RecordPress, SignalPress};
use thalweg::plan::Budget;
use thalweg::reads::{BatchOptions, Options, Order, Read, ReadFile, Selection, Visitor};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::ReadWriter;
use thalweg_testing::one_of;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Default)]
struct Count(u64);

impl Visitor for Count {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        self.0 += read.samples.len() as u64;
        Ok(())
    }
}

/// A file of `reads` reads of `length` samples.
fn file(
    folder: &Path,
    reads: u64,
    length: u32,
    record: RecordPress,
    signal: SignalPress,
) -> PathBuf {
    let recipe = Recipe {
        reads,
        mean_length: f64::from(length),
        length_sigma: 0.0,
        min_length: length,
        max_length: length,
        ..Recipe::default()
    };
    let synth = Synth::new(recipe).unwrap();
    let header = synth.header(record, signal);
    let path = folder.join(format!("{reads}-{length}-{}-{}.blow5", record.name(), signal.name()));
    let mut out = ReadWriter::create(&path, &header).unwrap();
    let (mut read, mut encoder) = (SynthRead::default(), RecordEncoder::new().unwrap());
    for i in 0..reads {
        synth.read(i, &mut read);
        out.push(&read.read_id, &read.frame(&header, &mut encoder).unwrap()).unwrap();
    }
    out.finish().unwrap();
    path
}

/// The number of allocations during `job`, including reallocations.
fn allocations(job: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    job();
    let change = region.change();
    change.allocations + change.reallocations
}

/// The allocations of a visit, of ordered batches and of unordered batches, and the number of
/// blocks that were read.
fn measure(path: &Path) -> ([usize; 3], usize) {
    let options = Options { budget: Budget { threads: 2, memory: 64 << 20 }, ..Options::default() };
    let file = ReadFile::open(path, options).unwrap();
    let mut blocks = 0;
    let visit = allocations(|| {
        blocks = file.visit(&Selection::All, Count::default).unwrap().1.clocks.requests;
    });
    let batches = [Order::Selection, Order::AsTheyCome].map(|order| {
        allocations(|| {
            let options = BatchOptions { order, ..BatchOptions::default() };
            let rows: usize = file
                .batches_with(&Selection::All, options)
                .unwrap()
                .map(|batch| batch.unwrap().num_rows())
                .sum();
            assert!(rows > 0);
        })
    });
    ([visit, batches[0], batches[1]], blocks as usize)
}

/// Reads of a file: more than the allocations that its blocks and batches may take. How many
/// batches there are depends on what else the machine does.
const MANY: usize = 100_000;

// There is only one test, because the allocator counts for the whole process.
#[test]
fn no_allocation_for_a_read() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let presses = [
        (RecordPress::Zstd, SignalPress::SvbZd),
        (RecordPress::Zlib, SignalPress::SvbZd),
        (RecordPress::None, SignalPress::ExZd),
        (RecordPress::None, SignalPress::None),
    ];
    for (record, signal) in presses.into_iter().step_by(one_of()) {
        let (many, many_blocks) = measure(&file(folder.path(), MANY as u64, 80, record, signal));
        let what = format!("{record:?} {signal:?}: {many:?} in {many_blocks} blocks");
        // At most five groups per block. Each group allocates its place in the queue, and for
        // batches about three times per column, of which there are 13.
        let groups = 5 * many_blocks;
        assert!(many[0] < 200 + 10 * groups, "visit: {what}");
        assert!(many[1] < 600 + 70 * groups && many[2] < 600 + 70 * groups, "batches: {what}");
        // An allocation for each read would be more than that.
        assert!(MANY > 600 + 70 * groups, "{what}");
        println!("{what}");
    }
}
