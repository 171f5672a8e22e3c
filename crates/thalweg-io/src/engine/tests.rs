#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Barrier};

use super::{Decoder, Delivery, Run, Shape};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::extent::{Fetch, Group, Source, Wanted};
use crate::store::{FileStore, JoinedStore, MemoryStore, Store};

/// Bytes of a range.
pub(super) const LEN: u64 = 8;
/// Ranges of a store.
pub(super) const COUNT: u64 = 6;

/// A store whose bytes are copied, and which cannot read the range `bad`.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) name: Arc<str>,
    pub(super) bad: Option<u64>,
}

impl Store for Copied {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        LEN * COUNT
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.bad == Some(offset / LEN) {
            return Err(Error::io(&self.name, "reading", std::io::ErrorKind::Other));
        }
        (offset..).zip(buf).for_each(|(at, byte)| *byte = (at / LEN) as u8);
        Ok(())
    }
}

/// Copies extents, and panics at the one with the ordinal `bad`.
pub(super) struct Copies {
    pub(super) bad: u64,
}

impl Decoder for Copies {
    /// Extents that it has copied.
    type Worker = u64;
    type Batch = Vec<Vec<u8>>;

    fn worker(&self) -> u64 {
        0
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        copied: &mut u64,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            assert_ne!(extent.ordinal, self.bad, "a defect of the decoder");
            batch.push(extent.bytes.to_vec());
            *copied += 1;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(_: &u64) -> u64 {
        0
    }
}

/// One request and one group at a time.
const SHAPE: Shape = Shape {
    threads: 1,
    depth: 1,
    max_depth: 1,
    flight_bytes: 0,
    flight_requests: 0,
    block: 4096,
    usual: None,
    headroom: 4096,
    buffers: 4,
    group: 1,
    batches: 1,
    delivery: Delivery::Ordered,
};

/// One fetch for each range.
pub(super) fn planned(
    ranges: impl IntoIterator<Item = Range<u64>, IntoIter: Send + 'static>,
) -> Source {
    let fetches = ranges.into_iter().zip(0..).map(|(range, ordinal)| Fetch {
        range: range.clone(),
        extents: vec![Wanted { range, ordinal }],
    });
    Source::Planned(Box::new(fetches))
}

#[test]
fn views_of_a_run_outlive_the_first_piece_of_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, b"piece").unwrap();
    let store = Arc::new(JoinedStore::new(Arc::new(MemoryStore::new("main", vec![7; 40]))));
    let source = planned((0..10).map(|at| at * 4..at * 4 + 4));
    let decoder = Copies { bad: u64::MAX };
    let mut run = Run::start(store.clone(), source, decoder, SHAPE, Control::new()).unwrap();
    let first = run.next().unwrap().unwrap();
    let open = |path: &Path| -> Result<Arc<dyn Store>> { Ok(Arc::new(FileStore::open(path)?)) };
    let at = store.append(&[(other, 0, 5)], open).unwrap().unwrap();
    run.recycle(first);
    let rest: Vec<_> = run.by_ref().map(|batch| batch.unwrap().concat()).collect();
    assert_eq!(rest, vec![vec![7; 4]; 9]);
    let both = planned([0..4, at..at + 5]);
    let run = Run::start(store, both, Copies { bad: u64::MAX }, SHAPE, Control::new()).unwrap();
    let values: Vec<_> = run.map(|batch| batch.unwrap().concat()).collect();
    assert_eq!(values, [&[7; 4][..], b"piece"]);
}

#[test]
fn a_run_ends_after_an_error() {
    let store = Arc::new(Copied { name: "store".into(), bad: Some(1) });
    let source = planned((0..COUNT).map(|at| at * LEN..(at + 1) * LEN));
    let decoder = Copies { bad: u64::MAX };
    let mut run = Run::start(store, source, decoder, SHAPE, Control::new()).unwrap();
    assert!(run.next().unwrap().is_ok());
    assert!(matches!(run.next(), Some(Err(Error::Io { .. }))));
    assert!(run.next().is_none());
}

#[test]
fn a_panic_is_not_the_end_of_the_file() {
    let store = Arc::new(MemoryStore::new("main", vec![7; 40]));
    let source = planned((0..10).map(|at| at * 4..at * 4 + 4));
    let decoder = Copies { bad: 3 };
    let mut run = Run::start(store, source, decoder, SHAPE, Control::new()).unwrap();
    let mut seen = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for batch in run.by_ref() {
            seen += batch.unwrap().len();
        }
    }));
    assert!(outcome.is_err() && seen == 3, "{seen} extents, then {outcome:?}");
}

/// A store that holds some requests until several wait. The bytes of a range are its number.
#[derive(Debug)]
struct Line {
    name: Arc<str>,
    /// Whether the request at an offset is held.
    holds: fn(u64) -> bool,
    waiting: Barrier,
}

impl Line {
    fn new(holds: fn(u64) -> bool, waiting: usize) -> Arc<Self> {
        Arc::new(Self { name: "line".into(), holds, waiting: Barrier::new(waiting) })
    }
}

impl Store for Line {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        LEN * COUNT
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if (self.holds)(offset) {
            self.waiting.wait();
        }
        buf.fill((offset / LEN) as u8);
        Ok(())
    }
}

/// The most requests in flight of a run over all ranges, on a store that waits for so many.
fn deepest(flight_bytes: usize, flight_requests: usize, waits_for: usize) -> usize {
    let store = Line::new(|_| true, waits_for);
    let source = planned((0..COUNT).map(|at| at * LEN..(at + 1) * LEN));
    let max_depth = flight_requests.max(1);
    let shape = Shape { max_depth, buffers: 8, flight_bytes, flight_requests, ..SHAPE };
    let copies = Copies { bad: u64::MAX };
    let mut run = Run::start(store, source, copies, shape, Control::new()).unwrap();
    let batches = run.by_ref().map(|batch| batch.unwrap().len()).sum::<usize>();
    assert_eq!(batches, COUNT as usize);
    run.finish().unwrap().clocks.max_depth
}

#[test]
fn a_long_line_is_filled_before_the_first_answer() {
    let bytes = LEN as usize;
    assert_eq!(deepest(0, 0, 1), 1, "a local disc");
    assert_eq!(deepest(100 * bytes, 3, 3), 3);
    assert_eq!(deepest(2 * bytes, 6, 2), 2, "two requests fill the line");
    assert_eq!(deepest(100 * bytes, 100, COUNT as usize), COUNT as usize);
}

#[test]
fn a_slow_answer_holds_up_no_other_where_the_order_is_free() {
    let store = Line::new(|offset| offset == 0, 2);
    let source = planned((0..COUNT).map(|at| at * LEN..(at + 1) * LEN));
    let shape = Shape { depth: 2, max_depth: 2, delivery: Delivery::AsTheyCome, ..SHAPE };
    let copies = Copies { bad: u64::MAX };
    let mut run = Run::start(store.clone(), source, copies, shape, Control::new()).unwrap();
    let mut values: Vec<u8> = Vec::new();
    while let Some(batch) = run.next() {
        let batch = batch.unwrap();
        values.extend(batch.iter().map(|extent| extent[0]));
        run.recycle(batch);
        if values.len() == COUNT as usize - 1 {
            store.waiting.wait();
        }
    }
    values.sort_unstable();
    assert_eq!(values, (0..COUNT as u8).collect::<Vec<_>>());
}
