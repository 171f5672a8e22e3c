//! If a store fails in the middle of a run, the run ends with the store's error, which names the
//! file and the byte, and never hangs.

use std::ops::Range;
use std::sync::Arc;

use thalweg::control::Control;
use thalweg::engine::{Decoder, Delivery, Run, Shape};
use thalweg::extent::{Fetch, Framer, Group, Source, Step, Wanted};
use thalweg::store::{MemoryStore, Store};
use thalweg::{Error, Result};
use thalweg_testing::{Faulty, StoreFault, no_hang, sample};

const RECORD: usize = 1000;
const SIZE: usize = 400 * RECORD;

struct Fixed;

impl Framer for Fixed {
    fn frame(
        &mut self,
        _: u64,
        bytes: &[u8],
        _: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let whole = bytes.len() / RECORD;
        found.extend((0..whole).map(|i| i * RECORD..(i + 1) * RECORD));
        Ok(Step::More { used: whole * RECORD, need: RECORD })
    }
}

struct Offsets;

impl Decoder for Offsets {
    type Worker = ();
    type Batch = Vec<u64>;

    fn worker(&self) {}

    fn batch(&self) -> Vec<u64> {
        Vec::new()
    }

    fn decode(
        &self,
        _: &mut (),
        group: &Group,
        next: &mut usize,
        batch: &mut Vec<u64>,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            batch.push(extent.offset);
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(_: &()) -> u64 {
        0
    }
}

fn planned(ranges: impl Iterator<Item = Range<u64>> + Send + 'static) -> Source {
    Source::Planned(Box::new(ranges.enumerate().map(|(i, range)| {
        let extents = vec![Wanted { range: range.clone(), ordinal: i as u64 }];
        Fetch { range, extents }
    })))
}

fn framed() -> Source {
    Source::Framed { range: 0..SIZE as u64, framer: Box::new(Fixed) }
}

fn shapes() -> impl Iterator<Item = Shape> {
    [Delivery::Ordered, Delivery::AsTheyCome, Delivery::Worker].into_iter().flat_map(|delivery| {
        [1, 5].into_iter().map(move |depth| Shape {
            threads: 2,
            depth,
            max_depth: depth + 1,
            flight_bytes: 0,
            flight_requests: 0,
            block: 8192,
            usual: None,
            headroom: 4096,
            buffers: depth + 2,
            group: 3000,
            batches: 3,
            delivery,
        })
    })
}

/// Runs a source, and returns the delivered rows and the error.
fn run(store: Arc<dyn Store>, source: Source, shape: Shape) -> (Vec<u64>, Option<Error>) {
    no_hang(move || {
        let run = Run::start(store, source, Offsets, shape, Control::new()).unwrap();
        let mut rows = Vec::new();
        for batch in run {
            match batch {
                Ok(batch) => rows.extend(batch),
                Err(error) => return (rows, Some(error)),
            }
        }
        (rows, None)
    })
}

#[test]
fn an_unreadable_byte_is_named() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new("a/file", sample(SIZE)));
    for shape in shapes() {
        for at in [0, 8191, 8192, 200_123, SIZE as u64 - 1] {
            let store = Arc::new(Faulty::new(memory.clone(), StoreFault::Byte(at)));
            let (rows, error) = run(store, framed(), shape);
            let error = error.expect("the run went on over an unreadable byte");
            let Error::Io { file, offset, source, .. } = &error else { panic!("{error:?}") };
            assert_eq!((&**file, *offset), ("a/file", Some(at)));
            assert_eq!(source.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
            assert!(rows.iter().all(|row| *row <= at), "a record beyond the defect");
            if shape.delivery == Delivery::Ordered {
                assert!(rows.iter().copied().eq((0..rows.len() as u64).map(|i| i * RECORD as u64)));
            }
        }
    }
}

#[test]
fn a_failing_read_ends_the_run() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new("a/file", sample(SIZE)));
    for shape in shapes() {
        for fault in [StoreFault::Read(0), StoreFault::Read(17), StoreFault::From(3)] {
            for source in [framed(), planned((0..300).map(|i| i * 1000..i * 1000 + 900))] {
                let (_, error) = run(Arc::new(Faulty::new(memory.clone(), fault)), source, shape);
                assert!(
                    matches!(error, Some(Error::Io { offset: Some(_), .. })),
                    "{fault:?}: {error:?}"
                );
            }
        }
    }
}

#[test]
fn an_extent_outside_the_store_is_an_error() {
    let bytes = sample(SIZE);
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new("a/file", bytes));
    let copied: Arc<dyn Store> = Arc::new(Faulty::new(memory.clone(), StoreFault::None));
    for store in [memory, copied] {
        for shape in shapes() {
            for beyond in [SIZE as u64 - 10..SIZE as u64 + 1, 1 << 40..(1 << 40) + 5] {
                let ranges = (0..30u64).map(|i| i * 10..i * 10 + 10).chain([beyond]);
                let (_, error) = run(store.clone(), planned(ranges), shape);
                assert!(matches!(error, Some(Error::Truncated { .. })), "{error:?}");
            }
        }
    }
}
