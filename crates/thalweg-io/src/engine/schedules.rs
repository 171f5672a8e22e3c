//! Runs under many interleavings of their threads: `make schedules`.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::tests::{COUNT, Copied, Copies, LEN, planned};
use super::{Delivery, Run, Shape};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::extent::{Fetch, Framer, Plan, Source, Step, Wanted};
use crate::sync::{Condvar, Mutex, explore, thread};

/// Finds extents of [`LEN`] bytes.
struct Equals;

impl Framer for Equals {
    fn frame(
        &mut self,
        _: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let need = LEN as usize;
        let used = bytes.len() / need * need;
        found.extend((0..used).step_by(need).map(|start| start..start + need));
        Ok(if last { Step::End } else { Step::More { used, need } })
    }
}

/// Fetches that another thread plans, one at a time.
struct PlannedElsewhere(Arc<(Mutex<Planned>, Condvar)>);

#[derive(Default)]
struct Planned {
    next: Option<Fetch>,
    is_over: bool,
}

impl PlannedElsewhere {
    /// Starts the thread, which ends when all fetches were taken, or when the plan is dropped.
    fn start() -> (Source, thread::JoinHandle<()>) {
        let shared = Arc::<(Mutex<Planned>, Condvar)>::default();
        let plan = Self(shared.clone());
        let planner = thread::spawn(move || {
            let (planned, changed) = &*shared;
            for ordinal in 0..=COUNT {
                let mut planned = planned.lock().unwrap();
                while planned.next.is_some() && !planned.is_over {
                    planned = changed.wait(planned).unwrap();
                }
                let range = ordinal * LEN..(ordinal + 1) * LEN;
                let extents = vec![Wanted { range: range.clone(), ordinal }];
                planned.next = (ordinal < COUNT).then_some(Fetch { range, extents });
                planned.is_over |= ordinal == COUNT;
                changed.notify_all();
            }
        });
        (Source::Planned(Box::new(plan)), planner)
    }
}

impl Plan for PlannedElsewhere {
    fn poll(&mut self) -> Poll<Option<Fetch>> {
        let mut planned = self.0.0.lock().unwrap();
        let next = planned.next.take();
        self.0.1.notify_all();
        if next.is_none() && !planned.is_over { Poll::Pending } else { Poll::Ready(next) }
    }

    fn wait(&mut self, _most: Duration) {
        let mut planned = self.0.0.lock().unwrap();
        while planned.next.is_none() && !planned.is_over {
            planned = self.0.1.wait(planned).unwrap();
        }
    }
}

impl Drop for PlannedElsewhere {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().is_over = true;
        self.0.1.notify_all();
    }
}

fn shape(delivery: Delivery) -> Shape {
    Shape {
        threads: 2,
        depth: 2,
        max_depth: 3,
        flight_bytes: 0,
        flight_requests: 0,
        // Extents lie across blocks of a streaming run.
        block: 20,
        usual: None,
        headroom: 4096,
        buffers: 3,
        group: 1,
        batches: 2,
        delivery,
    }
}

fn start(delivery: Delivery, bad: Option<u64>, horizon: u64) -> Run<Copies> {
    let source = planned((0..COUNT).map(|at| at * LEN..(at + 1) * LEN));
    start_source(source, delivery, bad, horizon)
}

fn start_source(source: Source, delivery: Delivery, bad: Option<u64>, horizon: u64) -> Run<Copies> {
    let store = Arc::new(Copied { name: "store".into(), bad });
    let copies = Copies { bad: u64::MAX };
    let control = Control::new();
    Run::start_below(store, source, copies, shape(delivery), control, horizon).unwrap()
}

/// Checks that a run delivers every range once.
fn check_all(mut run: Run<Copies>, delivery: Delivery) {
    let mut seen = Vec::new();
    while let Some(batch) = run.next() {
        let batch = batch.unwrap();
        seen.extend(ranges(&batch));
        run.recycle(batch);
    }
    if delivery == Delivery::AsTheyCome {
        seen.sort_unstable();
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    run.finish().unwrap();
}

/// The ranges in a batch, each checked to be whole.
fn ranges(batch: &[Vec<u8>]) -> Vec<u64> {
    let whole = batch.iter().inspect(|bytes| assert_eq!(bytes[..], [bytes[0]; LEN as usize]));
    whole.map(|bytes| u64::from(bytes[0])).collect()
}

#[test]
fn every_range_is_delivered_once() {
    for delivery in [Delivery::Ordered, Delivery::AsTheyCome] {
        explore(move || check_all(start(delivery, None, u64::MAX), delivery));
    }
}

#[test]
fn every_range_that_is_found_while_streaming_is_delivered_once() {
    for delivery in [Delivery::Ordered, Delivery::AsTheyCome] {
        explore(move || {
            let source = Source::Framed { range: 0..COUNT * LEN, framer: Box::new(Equals) };
            check_all(start_source(source, delivery, None, u64::MAX), delivery);
        });
    }
}

#[test]
fn every_range_that_another_thread_plans_is_delivered_once() {
    for delivery in [Delivery::Ordered, Delivery::AsTheyCome] {
        explore(move || {
            let (source, _) = PlannedElsewhere::start();
            check_all(start_source(source, delivery, None, u64::MAX), delivery);
        });
    }
}

#[test]
fn the_plan_of_a_run_that_failed_is_dropped() {
    explore(|| {
        let (source, planner) = PlannedElsewhere::start();
        let store = Arc::new(Copied { name: "store".into(), bad: Some(1) });
        // One thread fetches: `shuttle` wakes the one that waits here when others end.
        let shape = Shape { depth: 1, max_depth: 1, ..shape(Delivery::Ordered) };
        let copies = Copies { bad: u64::MAX };
        let mut run = Run::start(store, source, copies, shape, Control::new()).unwrap();
        // It keeps the state of the run.
        let recycler = run.recycler();
        assert!(run.by_ref().any(|batch| batch.is_err()));
        drop(run);
        planner.join().unwrap();
        drop(recycler);
    });
}

#[test]
fn the_batches_before_a_defect_are_delivered() {
    explore(|| {
        let mut run = start(Delivery::Ordered, Some(4), u64::MAX);
        let mut seen = Vec::new();
        let error = loop {
            match run.next().unwrap() {
                Ok(batch) => seen.extend(ranges(&batch)),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Io { .. }), "{error}");
        // Requests that went out after the bad one may be answered before it.
        assert!(seen.iter().copied().eq(0..seen.len() as u64) && seen.len() <= 4, "{seen:?}");
        assert!(run.next().is_none());
    });
}

#[test]
fn workers_see_every_range_once() {
    explore(|| {
        let finished = start(Delivery::Worker, None, u64::MAX).finish().unwrap();
        assert_eq!(finished.workers.iter().sum::<u64>(), COUNT);
    });
}

#[test]
fn nothing_beyond_the_horizon_is_decoded() {
    explore(|| {
        let mut run = start(Delivery::AsTheyCome, None, 2);
        let mut seen = Vec::new();
        for horizon in [2, 3, COUNT] {
            run.extend(horizon);
            while seen.len() < horizon as usize {
                let batch = run.next().unwrap().unwrap();
                seen.extend(ranges(&batch));
                assert!(seen.iter().all(|range| *range < horizon), "{seen:?} below {horizon}");
                run.recycle(batch);
            }
        }
        assert!(run.next().is_none());
    });
}

#[test]
fn a_run_can_be_dropped_at_any_time() {
    for taken in 0..3 {
        explore(move || {
            let mut run = start(Delivery::Ordered, None, u64::MAX);
            let recycler = run.recycler();
            let kept: Vec<_> = run.by_ref().take(taken).collect();
            drop(run);
            for batch in kept {
                recycler.recycle(batch.unwrap());
            }
        });
    }
}
