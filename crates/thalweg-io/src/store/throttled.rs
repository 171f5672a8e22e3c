//! A store that is slowed down on purpose, to find out how long a plan would take on another store.
//!
//! The wrapper answers each request when a store with the given [`Limits`] would have answered it.
//! [`Schedule`] computes these times as a queue, without a clock, so that errors of sleeps do not
//! add up.

mod limits;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg_codec::splitmix::{STEP, mix};

use super::{Request, Store};
use crate::control::Control;
use crate::error::Result;

pub use limits::Limits;

/// Computes when requests would be answered: a pure function of [`Limits`] and of the earlier
/// requests and their times.
///
/// A request waits until fewer than `parallel` are being answered and until the request rate allows
/// it. Then its bytes queue for the bandwidth. They arrive one latency after their transfer.
#[derive(Debug)]
pub struct Schedule {
    limits: Limits,
    /// End times of the requests that are being answered. Only filled if `parallel` is limited.
    busy: BinaryHeap<Reverse<Duration>>,
    next_start: Duration,
    pipe_free: Duration,
}

impl Schedule {
    /// A schedule of an idle store.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            busy: BinaryHeap::new(),
            next_start: Duration::ZERO,
            pipe_free: Duration::ZERO,
        }
    }

    /// When a request made at `now` is answered. `now` must not run backwards; all times count from
    /// the same moment.
    pub fn admit(&mut self, now: Duration, offset: u64, len: usize) -> Duration {
        let limits = self.limits;
        let mut start = now.max(self.next_start);
        while self.busy.peek().is_some_and(|Reverse(end)| *end <= start) {
            self.busy.pop();
        }
        if self.busy.len() >= limits.parallel.max(1)
            && let Some(Reverse(end)) = self.busy.pop()
        {
            start = start.max(end);
        }
        self.next_start = start + seconds(1.0 / limits.request_rate);
        self.pipe_free = self.pipe_free.max(start) + seconds(len as f64 / limits.bandwidth);
        let end = self.pipe_free + limits.latency + limits.jitter(offset);
        if limits.parallel < usize::MAX {
            self.busy.push(Reverse(end));
        }
        end
    }
}

/// How often a wait looks whether the read was cancelled.
const POLL: Duration = Duration::from_millis(50);

/// The longest wait, in seconds, so that a limit of 0 per second does not overflow a duration.
const AN_HOUR: f64 = 3600.0;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, AN_HOUR))
}

/// One output of SplitMix64: a reproducible pseudorandom number for `x`.
pub fn splitmix(x: u64) -> u64 {
    mix(x.wrapping_add(STEP))
}

/// A store that answers as slowly as [`Limits`] say. Errors take as long as answers.
///
/// [`Store::bytes`] is always `None`, even over memory, because direct access would bypass the
/// limits.
#[derive(Debug)]
pub struct ThrottledStore {
    inner: Arc<dyn Store>,
    start: Instant,
    schedule: Mutex<Schedule>,
    control: Control,
}

impl ThrottledStore {
    /// Slows `inner` down.
    pub fn new(inner: Arc<dyn Store>, limits: Limits) -> Self {
        let schedule = Mutex::new(Schedule::new(limits));
        Self { inner, start: Instant::now(), schedule, control: Control::new() }
    }

    /// Ends waits when `control` is cancelled.
    #[must_use]
    pub fn heeding(self, control: &Control) -> Self {
        Self { control: control.clone(), ..self }
    }

    fn slowly(&self, offset: u64, len: usize, read: impl FnOnce() -> Result<()>) -> Result<()> {
        let end = {
            let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
            // The clock is read under the lock, so that it does not run backwards from one request
            // to the next.
            schedule.admit(self.start.elapsed(), offset, len)
        };
        let outcome = read();
        loop {
            let left = end.saturating_sub(self.start.elapsed());
            if left.is_zero() {
                return outcome;
            }
            self.control.check()?;
            std::thread::sleep(left.min(POLL));
        }
    }
}

impl Store for ThrottledStore {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.slowly(offset, buf.len(), || self.inner.read_at(offset, buf))
    }

    fn answer(&self, request: &mut Request) -> Result<()> {
        self.slowly(request.offset, request.len, || self.inner.answer(request))
    }

    fn missing(&self, range: Range<u64>) -> Range<u64> {
        self.inner.missing(range)
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StoreModel;
    use crate::plan::Load;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn last_of(limits: Limits, requests: u64, len: usize) -> Duration {
        let mut schedule = Schedule::new(limits);
        (0..requests).map(|i| schedule.admit(Duration::ZERO, i, len)).max().unwrap_or_default()
    }

    #[test]
    fn a_wait_ends_when_it_is_cancelled() {
        let control = Control::new();
        let memory = Arc::new(crate::store::MemoryStore::new("bytes", vec![0; 100]));
        let limits = Limits { bandwidth: 1.0, ..Limits::default() };
        let store = ThrottledStore::new(memory, limits).heeding(&control);
        control.cancel();
        let outcome = store.read_at(0, &mut [0; 100]);
        assert!(matches!(outcome, Err(crate::error::Error::Cancelled)), "{outcome:?}");
    }

    #[test]
    fn a_throttle_without_limits_adds_no_delay() {
        assert_eq!(last_of(Limits::default(), 1000, 1 << 30), Duration::ZERO);
    }

    #[test]
    fn latencies_overlap_and_transfers_do_not() {
        let limits = Limits { latency: 7 * MS, bandwidth: 1e6, ..Limits::default() };
        assert_eq!(last_of(limits, 10, 1000), 7 * MS + 10 * MS);
    }

    #[test]
    fn the_request_rate_spaces_requests() {
        let limits = Limits { latency: 3 * MS, request_rate: 500.0, ..Limits::default() };
        assert_eq!(last_of(limits, 11, 1), 10 * 2 * MS + 3 * MS);
    }

    #[test]
    fn a_store_with_few_threads_serves_requests_in_turn() {
        let limits = Limits { latency: 5 * MS, parallel: 4, ..Limits::default() };
        assert_eq!(last_of(limits, 4, 1), 5 * MS);
        assert_eq!(last_of(limits, 5, 1), 10 * MS);
        assert_eq!(last_of(limits, 16, 1), 20 * MS);
    }

    #[test]
    fn an_idle_throttled_store_accumulates_no_allowance() {
        let limits =
            Limits { latency: MS, bandwidth: 1e6, request_rate: 1000.0, ..Limits::default() };
        let mut schedule = Schedule::new(limits);
        schedule.admit(Duration::ZERO, 0, 1000);
        assert_eq!(schedule.admit(1000 * MS, 0, 1000), 1002 * MS);
        assert_eq!(schedule.admit(1000 * MS, 0, 1000), 1003 * MS);
    }

    #[test]
    fn jitter_has_the_mean_that_was_asked_for_and_depends_on_the_seed() {
        let limits = |seed| Limits { jitter: 10 * MS, seed, ..Limits::default() };
        let mean = (0..20_000).map(|i| limits(1).jitter(i * 4096)).sum::<Duration>() / 20_000;
        assert!(mean > 9 * MS && mean < 11 * MS, "{mean:?}");
        assert_ne!(limits(1).jitter(0), limits(2).jitter(0));
        assert_eq!(limits(1).jitter(99), limits(1).jitter(99));
    }

    #[test]
    fn it_takes_as_long_as_the_model_predicts() {
        for model in [StoreModel::LOCAL, StoreModel::NETWORK, StoreModel::FUSE] {
            for (requests, len) in [(1, 1), (100, 4096), (50, 4 << 20)] {
                let took = last_of(Limits::of_model(&model), requests, len).as_secs_f64();
                let load = Load { requests, bytes: requests * len as u64 };
                // Under the throttle, the shorter of transfer and requests overlaps fully with the
                // longer.
                let busy_s = load.transfer_s(&model).max(load.requests_s(&model));
                let said = model.latency_s + busy_s;
                // Request rate and bandwidth overlap, except for the first and last request.
                let slack = len as f64 / model.bandwidth + 1.0 / model.request_rate;
                assert!(
                    (took - said).abs() <= slack + 1e-6,
                    "{model:?} {requests}x{len}: {took} {said}"
                );
            }
        }
    }

    #[test]
    fn a_rate_of_zero_does_not_panic() {
        let limits = Limits { bandwidth: 0.0, request_rate: 0.0, parallel: 0, ..Limits::default() };
        assert!(last_of(limits, 3, 1) > Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn limits_are_kept(
            asked in prop::collection::vec((0..5_000u64, 0..100_000usize), 1..80),
            latency in 0..20u32, jitter in 0..5u32,
            bandwidth in 1e5..1e9, request_rate in 10.0..1e5, parallel in 1..9usize, seed: u64,
        ) {
            let (latency, jitter) = (latency * MS, jitter * MS);
            let limits = Limits { latency, jitter, bandwidth, request_rate, parallel, seed };
            let (mut one, mut other) = (Schedule::new(limits), Schedule::new(limits));
            let mut now = Duration::ZERO;
            let mut bytes = 0;
            let mut ends = Vec::new();
            for (i, (pause, len)) in asked.iter().enumerate() {
                now += Duration::from_micros(*pause);
                bytes += len;
                let end = one.admit(now, i as u64, *len);
                prop_assert_eq!(end, other.admit(now, i as u64, *len));
                // Rounding of seconds loses a few nanoseconds.
                let slack = 1e-6;
                let took = (end - now).as_secs_f64() + slack;
                let answer_s = (limits.latency + limits.jitter(i as u64)).as_secs_f64();
                prop_assert!(took >= answer_s + *len as f64 / bandwidth);
                prop_assert!(end.as_secs_f64() + slack >= bytes as f64 / bandwidth);
                prop_assert!(end.as_secs_f64() + slack >= i as f64 / request_rate);
                // Fewer than `parallel` earlier requests are still being answered when this one
                // starts.
                let start = end.saturating_sub(limits.latency + limits.jitter(i as u64));
                let working = ends.iter().filter(|e| **e > start).count();
                prop_assert!(working < parallel, "{} of {}", working, parallel);
                ends.push(end);
            }
        }
    }
}
