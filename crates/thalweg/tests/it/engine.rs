//! The engine delivers exactly the stored records, in order, for all sizes, and reports an error if
//! it cannot.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use thalweg::control::Control;
use thalweg::engine::{Decoder, Delivery, Run, Shape};
use thalweg::extent::{Fetch, Framer, Group, Source, Step, Wanted};
use thalweg::store::throttled::Limits;
use thalweg::store::{FileStore, MemoryStore, MmapStore, Store, ThrottledStore, UringStore};
use thalweg::{Error, Result};

/// Records with a u16 length and that many bytes.
struct Prefixed;

impl Framer for Prefixed {
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let need = match rest {
                [] if last => return Ok(Step::End),
                [a, b, ..] => 2 + usize::from(u16::from_le_bytes([*a, *b])),
                _ => 2,
            };
            if rest.len() < need {
                if last {
                    return Err(Error::Truncated {
                        file: "test".into(),
                        what: "a record".into(),
                        offset: at + used as u64,
                        size: at + bytes.len() as u64,
                        advice: "",
                    });
                }
                return Ok(Step::More { used, need });
            }
            found.push(used..used + need);
            used += need;
        }
    }
}

/// Copies records, at most `limit` per batch, and refuses the record with ordinal `poison`.
struct Copy {
    limit: usize,
    poison: u64,
}

#[derive(Default)]
struct Worker {
    seen: Vec<(u64, Vec<u8>)>,
    bytes: u64,
}

impl Decoder for Copy {
    type Worker = Worker;
    type Batch = Vec<(u64, u64, Vec<u8>)>;

    fn worker(&self) -> Worker {
        Worker::default()
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        worker: &mut Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            if extent.ordinal == self.poison {
                return Err(Error::Usage(format!("poison {}", extent.ordinal).into()));
            }
            if batch.len() == self.limit {
                return Ok(());
            }
            batch.push((extent.ordinal, extent.offset, extent.bytes.to_vec()));
            worker.seen.push((extent.ordinal, extent.bytes.to_vec()));
            worker.bytes += extent.bytes.len() as u64;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(worker: &Worker) -> u64 {
        worker.bytes
    }
}

fn records(lengths: &[u16]) -> (Vec<u8>, Vec<Range<u64>>) {
    let mut bytes = Vec::new();
    let mut ranges = Vec::new();
    for (i, &len) in lengths.iter().enumerate() {
        let start = bytes.len() as u64;
        bytes.extend(len.to_le_bytes());
        bytes.extend((0..len).map(|j| (i as u8).wrapping_mul(31).wrapping_add(j as u8)));
        ranges.push(start..bytes.len() as u64);
    }
    (bytes, ranges)
}

fn stores(bytes: &[u8], dir: &tempfile::TempDir) -> Vec<Arc<dyn Store>> {
    let path = dir.path().join("records");
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    vec![
        Arc::new(MemoryStore::new("records", bytes.to_vec())),
        Arc::new(FileStore::open(&path).unwrap()),
        Arc::new(FileStore::open_direct(&path).unwrap()),
        Arc::new(MmapStore::open(&path).unwrap()),
        Arc::new(UringStore::open(&path, false).unwrap()),
        Arc::new(UringStore::open(&path, true).unwrap()),
        Arc::new(ThrottledStore::new(
            Arc::new(FileStore::open(&path).unwrap()),
            Limits { jitter: Duration::from_micros(50), parallel: 2, ..Limits::default() },
        )),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    (
        1..4usize,
        1..5usize,
        1..4usize,
        0..3usize,
        2..6usize,
        1..3000usize,
        1..4usize,
        (0..3usize, any::<bool>()),
    )
        .prop_map(
            |(threads, depth, block, headroom, buffers, group, batches, (delivery, small))| Shape {
                threads,
                depth,
                max_depth: depth + batches,
                flight_bytes: 0,
                flight_requests: 0,
                block: block * 4096,
                usual: small.then_some(4096),
                headroom: headroom * 4096,
                buffers,
                group,
                batches,
                delivery: [Delivery::Ordered, Delivery::AsTheyCome, Delivery::Worker][delivery],
            },
        )
}

type Rows = Vec<(u64, u64, Vec<u8>)>;

fn run(store: Arc<dyn Store>, source: Source, decoder: Copy, shape: Shape) -> Result<Rows> {
    let mut run = Run::start(store, source, decoder, shape, Control::new())?;
    let mut rows = Vec::new();
    while let Some(batch) = run.next() {
        let batch = batch?;
        rows.extend(batch.iter().cloned());
        run.recycle(batch);
    }
    let finished = run.finish()?;
    if shape.delivery == Delivery::Worker {
        rows.extend(finished.workers.into_iter().flat_map(|w| w.seen).map(|(o, b)| (o, 0, b)));
    }
    if shape.delivery != Delivery::Ordered {
        rows.sort();
    }
    Ok(rows)
}

fn framed(bytes: &[u8]) -> Source {
    framed_from(0, bytes)
}

fn framed_from(start: u64, bytes: &[u8]) -> Source {
    Source::Framed { range: start..bytes.len() as u64, framer: Box::new(Prefixed) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn streams_every_record(
        lengths in prop::collection::vec(
            prop_oneof![4 => 0..300u16, 2 => 0..9000u16, 1 => 0..=u16::MAX],
            0..80,
        ),
        shape in shapes(), limit in 1..40usize, first in any::<u16>(),
    ) {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (bytes, ranges) = records(&lengths);
        for store in stores(&bytes, &dir) {
            // Reading may start at the first byte of any record, as it does after the header of a
            // file.
            let first = first as usize % (lengths.len() + 1);
            let start = ranges.get(first).map_or(bytes.len() as u64, |r| r.start);
            let rows =
                run(store, framed_from(start, &bytes), Copy { limit, poison: u64::MAX }, shape)
                    .unwrap();
            prop_assert_eq!(rows.len(), lengths.len() - first);
            for (i, (ordinal, offset, row)) in rows.iter().enumerate() {
                prop_assert_eq!(*ordinal, i as u64);
                let i = i + first;
                let range = ranges[i].start as usize..ranges[i].end as usize;
                if shape.delivery != Delivery::Worker {
                    prop_assert_eq!(*offset, ranges[i].start);
                }
                prop_assert_eq!(&row[..], &bytes[range]);
            }
        }
    }

    #[test]
    fn gathers_planned_extents(
        lengths in prop::collection::vec(0..9000u16, 1..60),
        picks in prop::collection::vec(any::<u16>(), 0..40),
        shape in shapes(), together in 1..5usize,
    ) {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (bytes, ranges) = records(&lengths);
        let mut picks: Vec<usize> = picks.iter().map(|p| *p as usize % lengths.len()).collect();
        picks.sort_unstable();
        let wanted: Vec<Wanted> =
            picks
                .iter()
                .enumerate()
                .map(|(i, p)| Wanted { range: ranges[*p].clone(), ordinal: i as u64 })
                .collect();
        let fetches: Vec<Fetch> = wanted
            .chunks(together)
            .map(|c| Fetch {
                range: c[0].range.start..c[c.len() - 1].range.end,
                extents: c.to_vec(),
            })
            .collect();
        for store in stores(&bytes, &dir) {
            let source = Source::Planned(Box::new(fetches.clone().into_iter()));
            let rows = run(store, source, Copy { limit: 7, poison: u64::MAX }, shape).unwrap();
            let got: Vec<&[u8]> = rows.iter().map(|r| &r.2[..]).collect();
            let want: Vec<&[u8]> =
                picks
                    .iter()
                    .map(|p| &bytes[ranges[*p].start as usize..ranges[*p].end as usize])
                    .collect();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn delivers_the_reads_before_a_defect(
        lengths in prop::collection::vec(0..3000u16, 2..60),
        cut in any::<u16>(),
        shape in shapes(),
        poisoned in any::<bool>(),
    ) {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let shape = Shape { delivery: Delivery::Ordered, ..shape };
        let (mut bytes, ranges) = records(&lengths);
        let bad = cut as usize % lengths.len();
        if !poisoned {
            bytes.truncate(ranges[bad].start as usize + 1);
        }
        for store in stores(&bytes, &dir) {
            let decoder = Copy { limit: 3, poison: if poisoned { bad as u64 } else { u64::MAX } };
            let mut run =
                Run::start(store, framed(&bytes), decoder, shape, Control::new()).unwrap();
            let mut rows = 0;
            let error = loop {
                match run.next() {
                    Some(Ok(batch)) => { rows += batch.len(); run.recycle(batch); }
                    Some(Err(error)) => break error,
                    None => panic!("no error"),
                }
            };
            if poisoned {
                prop_assert!(matches!(error, Error::Usage(_)), "{}", error);
                prop_assert!(rows <= bad);
            } else {
                prop_assert!(matches!(error, Error::Truncated { .. }), "{}", error);
                prop_assert_eq!(rows, bad);
            }
        }
    }
}

#[test]
fn stops_when_cancelled_or_dropped() {
    let (bytes, _) = records(&[1000; 5000]);
    let shape = Shape {
        threads: 2,
        depth: 2,
        max_depth: 3,
        flight_bytes: 0,
        flight_requests: 0,
        block: 4096,
        usual: None,
        headroom: 4096,
        buffers: 4,
        group: 1000,
        batches: 2,
        delivery: Delivery::Ordered,
    };
    let store = Arc::new(MemoryStore::new("records", bytes.clone()));
    let cancel = Control::new();
    let mut stopped = Run::start(
        store.clone(),
        framed(&bytes),
        Copy { limit: 1, poison: u64::MAX },
        shape,
        cancel.clone(),
    )
    .unwrap();
    assert!(stopped.next().unwrap().is_ok());
    cancel.cancel();
    let error = loop {
        match stopped.next() {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("ended without an error"),
        }
    };
    assert!(matches!(error, Error::Cancelled), "{error}");
    let dropped = Run::start(
        store,
        framed(&bytes),
        Copy { limit: 1, poison: u64::MAX },
        shape,
        Control::new(),
    )
    .unwrap();
    drop(dropped);
}

#[test]
fn no_extent_beyond_the_horizon_is_decoded() {
    let (bytes, ranges) = records(&[1000; 400]);
    let store = Arc::new(MemoryStore::new("records", bytes));
    let shape = Shape {
        threads: 3,
        depth: 2,
        max_depth: 3,
        flight_bytes: 0,
        flight_requests: 0,
        block: 4096,
        usual: None,
        headroom: 4096,
        buffers: 8,
        group: 1000,
        batches: 1000,
        delivery: Delivery::AsTheyCome,
    };
    let wanted = (0..).zip(ranges);
    let fetches = wanted.map(|(ordinal, range)| Fetch {
        range: range.clone(),
        extents: vec![Wanted { range, ordinal }],
    });
    let source = Source::Planned(Box::new(fetches));
    let copy = Copy { limit: 10, poison: u64::MAX };
    let mut run = Run::start_below(store, source, copy, shape, Control::new(), 20).unwrap();
    let mut seen = 0;
    for horizon in [20, 40, 41, 400] {
        run.extend(horizon);
        while seen < horizon {
            for (ordinal, _, _) in run.next().unwrap().unwrap() {
                assert!(ordinal < horizon, "{ordinal} of {horizon}");
                seen += 1;
            }
        }
    }
    assert!(run.next().is_none());
    run.finish().unwrap();
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (bytes, _) = records(&[1000; 50]);
    let path = dir.path().join("shrinking");
    for direct in [false, true] {
        std::fs::write(&path, &bytes).unwrap();
        let store =
            if direct { FileStore::open_direct(&path) } else { FileStore::open(&path) }.unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        let shape = Shape {
            threads: 1,
            depth: 2,
            max_depth: 3,
            flight_bytes: 0,
            flight_requests: 0,
            block: 4096,
            usual: None,
            headroom: 4096,
            buffers: 4,
            group: 1000,
            batches: 2,
            delivery: Delivery::Ordered,
        };
        let error =
            run(Arc::new(store), framed(&bytes), Copy { limit: 9, poison: u64::MAX }, shape)
                .unwrap_err();
        assert!(matches!(error, Error::Truncated { size: 10_000, .. }), "{error:?}");
        assert!(error.to_string().contains("shortened"), "{error}");
    }
}

#[test]
fn a_slow_store_gets_more_requests_in_flight() {
    use std::time::Duration;
    use thalweg::store::throttled::{Limits, ThrottledStore};
    let (bytes, _) = records(&[4000; 200]);
    // The store has latency only: a request takes the same time however many are in flight.
    let limits = Limits { latency: Duration::from_millis(3), ..Limits::default() };
    let store =
        Arc::new(ThrottledStore::new(Arc::new(MemoryStore::new("records", bytes.clone())), limits));
    let shape = Shape {
        threads: 1,
        depth: 1,
        max_depth: 6,
        flight_bytes: 0,
        flight_requests: 0,
        block: 4096,
        usual: None,
        headroom: 4096,
        buffers: 9,
        group: 1000,
        batches: 2,
        delivery: Delivery::Worker,
    };
    let deepest = || {
        let copy = Copy { limit: 9, poison: u64::MAX };
        let run = Run::start(store.clone(), framed(&bytes), copy, shape, Control::new()).unwrap();
        run.finish().unwrap().clocks.max_depth
    };
    // A worker that waits for a processor does not wait for the store. On a busy machine, some runs
    // do not reach the full depth.
    let depths: Vec<_> = (0..10).map(|_| deepest()).take_while(|depth| *depth != 6).collect();
    assert!(depths.len() < 10, "{depths:?}");
}
