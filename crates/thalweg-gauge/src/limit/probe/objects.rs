//! Measures the line to an object store by ranged requests for one large object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_io::control::Control;
use thalweg_io::pool;
use thalweg_io::store::{AlignedBuf, Store};

use super::metered::MeteredStore;
use super::{RequestShape, SCATTERED_BLOCK, window};
use crate::limit::{Latency, Probe, ProbePoint, ProbeWindow};
use crate::{Error, Result, stats};

/// Request sizes of the sweep, the most useful first, because the time may not suffice for all.
const BLOCKS: [u64; 4] = [1 << 20, 8 << 20, 4 << 20, 256 << 10];
/// Requests in flight. A size is measured until more of them gain little.
const DEPTHS: [usize; 5] = [4, 16, 32, 64, 128];
/// A depth that is faster by less than this factor ends the measurement of a request size.
const GAIN: f64 = 1.05;
/// The most bytes in flight.
const MOST_IN_FLIGHT: u64 = 128 << 20;
/// Small requests in flight while the latency is measured: few enough that none waits for another,
/// and enough for a 99th percentile.
const CALM: usize = 16;
/// Small requests in flight while their rate is measured: about as many as a read by id has.
/// Services answer thousands a second, each after tens of milliseconds.
const BUSY: usize = 128;
/// The windows of a point. The first opens connections; the median leaves it out.
const WINDOWS: usize = 3;
/// Bytes at the start that came when the object was opened, and that take no request.
const HEAD: u64 = 64 << 10;
/// A connection is measured with at least so many different requests.
const FEW: u64 = 3;
/// A window takes the time divided by this. What a model needs takes up to 29 windows, and those of
/// a line that is busy end late.
const SHARES: u32 = 60;
/// A smaller object may be in a cache of the service.
const LARGE: u64 = 64 << 20;
/// So many small requests tell the latency, its 99th percentile included. A service that is near
/// would answer ten times as many in the time.
const ENOUGH: u64 = 5_000;

/// What probing a service may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectProbeLimits {
    /// The time for which the measurement is laid out.
    pub time: Duration,
    /// When it is over.
    pub end: Instant,
    /// Requests, without those that are tried again or made a second time.
    pub requests: u64,
    /// Bytes that are asked for.
    pub bytes: u64,
}

impl ObjectProbeLimits {
    /// Requests of a probe. It takes a few thousand of a service that answers after tens of
    /// milliseconds, and some ten thousands of one that answers after one.
    pub const REQUESTS: u64 = 50_000;

    /// The limits of a probe that begins now.
    pub fn new(time: Duration, bytes: u64) -> Self {
        Self { time, end: Instant::now() + time, requests: Self::REQUESTS, bytes }
    }
}

/// Probes the service that has an object, whose requests must end with `limits`, as
/// [`Control::until`] has it. Nothing is written. Returns `None` if the limits were reached before
/// what a model needs was measured: the latency, the rate of requests, the bandwidth of a
/// connection, and the bandwidth with the first request size.
///
/// # Errors
/// [`Error::Usage`] for an object below 512 KiB; the store's [`Cancelled`](thalweg_io::Error) soon
/// after `control` is cancelled, and its every failure to read the object.
pub fn probe_object(
    store: &Arc<dyn Store>,
    limits: ObjectProbeLimits,
    control: &Control,
) -> Result<Option<Probe>> {
    let least = BLOCKS.into_iter().min().unwrap_or_default() + HEAD * 4;
    if store.size() < least {
        return Err(Error::Usage(format!(
            "{}: an object of {} bytes is too small: {least} are needed, and {LARGE} are better",
            store.name(),
            store.size()
        )));
    }
    let store = MeteredStore::new(store.clone(), limits.requests, limits.bytes);
    let line = Line { store: &store, control, end: limits.end, window: limits.time / SHARES };
    let calm = line.shape(SCATTERED_BLOCK, CALM, true);
    let Some((calm, latency)) = line.measured(line.latency(calm, limits.time / 8))? else {
        return Ok(None);
    };
    let mut points = vec![calm];
    let busy = line.shape(SCATTERED_BLOCK, BUSY, true);
    // One connection: with long requests, if the object has some.
    let alone = BLOCKS.into_iter().map(|block| line.shape(block, 1, false));
    let alone = alone.filter(|shape| shape.blocks >= FEW).max_by_key(|shape| shape.block_bytes);
    for shape in [Some(busy), alone].into_iter().flatten() {
        let Some(point) = line.measured(line.point(shape))? else { return Ok(None) };
        points.push(point);
    }
    let mut rows = BLOCKS.into_iter().filter(|block| line.shape(*block, 1, false).blocks > 0);
    let first = rows.next().map_or(Ok(true), |block| line.row(block, &mut points))?;
    if !first {
        return Ok(None);
    }
    let mut is_whole = true;
    for block in rows {
        is_whole = is_whole && line.row(block, &mut points)?;
    }
    let mut notes = Vec::new();
    if !is_whole {
        let what = if store.is_spent() { "as many bytes or requests as allowed" } else { "time" };
        notes.push(format!("there was not enough {what} to measure all request sizes"));
    }
    if store.size() < LARGE {
        notes.push("a small object: the service may have answered from a cache".into());
    }
    Ok(Some(Probe {
        file: store.name().to_string(),
        file_bytes: store.size(),
        direct: true,
        points,
        latency: Some(latency),
        single_stream_bytes_per_s: None,
        memory: Vec::new(),
        throttle: None,
        twice: None,
        notes,
    }))
}

/// The line to the service.
struct Line<'a> {
    store: &'a MeteredStore,
    control: &'a Control,
    /// When the measurement should end.
    end: Instant,
    /// The time of a window.
    window: Duration,
}

impl Line<'_> {
    fn shape(&self, block_bytes: u64, depth: usize, scattered: bool) -> RequestShape {
        let blocks = (self.store.size() - HEAD) / block_bytes;
        RequestShape { from: HEAD, block_bytes, depth, scattered, blocks }
    }

    /// What was measured; `None` if the limits were reached before.
    fn measured<T>(&self, outcome: Result<T>) -> Result<Option<T>> {
        let is_over = || Instant::now() >= self.end || self.store.is_spent();
        match outcome {
            Err(Error::Store(thalweg_io::Error::Cancelled)) if is_over() => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Measures a point: the median over its windows.
    fn point(&self, shape: RequestShape) -> Result<ProbePoint> {
        let mut windows = Vec::new();
        for number in 0..WINDOWS {
            self.control.check()?;
            let place = number as f64 / WINDOWS as f64;
            windows.push(window(self.store, shape, place, self.window)?);
        }
        Ok(ProbePoint::of(shape.block_bytes, shape.depth, shape.scattered, windows))
    }

    /// Measures a request size with more and more requests in flight. Returns whether the limits
    /// sufficed.
    fn row(&self, block: u64, points: &mut Vec<ProbePoint>) -> Result<bool> {
        let mut best = 0.0;
        for depth in DEPTHS {
            let shape = self.shape(block, depth, false);
            if shape.blocks == 0 || block * depth as u64 > MOST_IN_FLIGHT {
                break;
            }
            let Some(point) = self.measured(self.point(shape))? else { return Ok(false) };
            let rate = point.bytes_per_s;
            points.push(point);
            if rate < best * GAIN {
                break;
            }
            best = rate;
        }
        Ok(true)
    }

    /// Measures how long small requests take. Each thread's first one, for which a connection may
    /// have to be made, does not count.
    fn latency(&self, shape: RequestShape, time: Duration) -> Result<(ProbePoint, Latency)> {
        let next = AtomicU64::new(0);
        let read = |mut buffer: AlignedBuf| -> Result<(Instant, Vec<f64>)> {
            let mut read = || {
                self.control.check()?;
                let offset = shape.offset(0, next.fetch_add(1, Ordering::Relaxed));
                self.store.read_at(offset, &mut buffer)
            };
            read()?;
            let start = Instant::now();
            let mut times = Vec::new();
            let is_enough = || next.load(Ordering::Relaxed) >= ENOUGH;
            while start.elapsed() < time && !is_enough() || times.is_empty() {
                let before = Instant::now();
                read()?;
                times.push(before.elapsed().as_secs_f64());
            }
            Ok((start, times))
        };
        let buffer = || AlignedBuf::new(SCATTERED_BLOCK as usize);
        let read = pool::together(self.store.name(), shape.depth, buffer, read)?;
        let read = read.into_iter().collect::<Result<Vec<_>>>()?;
        let start = read.iter().map(|(start, _)| *start).min().unwrap_or(self.end);
        let seconds = start.elapsed().as_secs_f64();
        let mut times: Vec<f64> = read.into_iter().flat_map(|(_, times)| times).collect();
        times.sort_by(f64::total_cmp);
        let requests = times.len() as u64;
        let median_s = stats::median(&times).unwrap_or_default();
        let p99_s = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
        let mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let bytes = requests * SCATTERED_BLOCK;
        let whole = ProbeWindow { offset_bytes: shape.offset(0, 0), bytes, seconds };
        let point = ProbePoint::of(SCATTERED_BLOCK, shape.depth, true, vec![whole]);
        Ok((point, Latency { median_s, mean_s: Some(mean_s), p99_s, requests }))
    }
}

#[cfg(test)]
mod tests {
    use thalweg_io::store::throttled::{Limits, ThrottledStore};
    use thalweg_io::store::{CountedStore, Counter, MemoryStore};

    use super::*;

    fn within(
        bytes: usize,
        limits: Limits,
        most: ObjectProbeLimits,
        control: &Control,
    ) -> Result<Option<Probe>> {
        let object = Arc::new(MemoryStore::new("object", vec![1; bytes]));
        let (store, counter) = (Arc::new(ThrottledStore::new(object, limits)), Counter::default());
        let store: Arc<dyn Store> = Arc::new(CountedStore::new(store, counter.clone()));
        let probe = probe_object(&store, most, control);
        let asked = counter.asked();
        assert!(asked.requests <= most.requests && asked.bytes <= most.bytes, "{asked:?}");
        probe
    }

    fn probed(bytes: usize, limits: Limits, control: &Control) -> Result<Probe> {
        // Laid out for a fifth of a second; a busy machine takes longer.
        let end = Instant::now() + Duration::from_secs(60);
        let most = ObjectProbeLimits::new(Duration::from_millis(200), u64::MAX);
        let probe = within(bytes, limits, ObjectProbeLimits { end, ..most }, control)?;
        probe.ok_or_else(|| Error::Usage("cut short".into()))
    }

    #[test]
    fn a_throttled_line_is_measured() -> Result<()> {
        let latency = Duration::from_millis(2);
        let limits = Limits { latency, bandwidth: 100e6, ..Limits::default() };
        let probe = probed(4 << 20, limits, &Control::new())?;
        // Sleeps end late, and never early: times are at least, and rates at most these.
        assert!(probe.latency.is_some_and(|l| l.median_s >= 2e-3 && l.p99_s >= l.median_s));
        assert!(probe.latency_s().is_some_and(|latency_s| latency_s >= 2e-3));
        let most = BUSY as f64 / 2e-3;
        assert!(probe.requests_per_s().is_some_and(|rate| rate > 0.0 && rate <= most));
        let bandwidth = probe.best().map(|best| best.bytes_per_s);
        assert!(bandwidth.is_some_and(|rate| rate > 0.0 && rate < 110e6), "{bandwidth:?}");
        assert!(probe.store_model().is_some_and(|model| (1..=64).contains(&model.depth)));
        assert!(probe.points.iter().all(|point| point.block_bytes < 4 << 20));
        Ok(())
    }

    /// A model that was cut short is none.
    #[test]
    fn the_limits_of_a_probe_are_held() -> Result<()> {
        let control = Control::new();
        let latency = Duration::from_millis(2);
        let limits = Limits { latency, bandwidth: 100e6, ..Limits::default() };
        let most = ObjectProbeLimits::new(Duration::from_millis(200), u64::MAX);
        let end = Instant::now() + Duration::from_secs(60);
        let long = ObjectProbeLimits { end, ..most };
        let few = ObjectProbeLimits { requests: 20, ..long };
        assert_eq!(within(4 << 20, limits, few, &control)?, None);
        let short = ObjectProbeLimits { bytes: 3 << 20, ..long };
        assert_eq!(within(4 << 20, limits, short, &control)?, None);
        // A line that gives a small range after a second.
        let slow = Limits { latency: Duration::from_secs(1), ..limits };
        let started = Instant::now();
        let most = ObjectProbeLimits::new(Duration::from_millis(200), u64::MAX);
        let part = control.until(most.end);
        assert_eq!(within(4 << 20, slow, most, &part)?, None);
        assert!(started.elapsed() < Duration::from_secs(20));
        Ok(())
    }

    #[test]
    fn an_object_that_is_too_small_is_refused() {
        let told = probed(1000, Limits::default(), &Control::new()).map_err(|e| e.to_string());
        assert!(told.is_err_and(|told| told.contains("too small")));
    }

    #[test]
    fn a_probe_can_be_cancelled() {
        let control = Control::new();
        control.cancel();
        assert!(probed(4 << 20, Limits::default(), &control).is_err());
    }
}
