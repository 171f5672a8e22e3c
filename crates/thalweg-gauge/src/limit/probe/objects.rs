//! Measures the line to an object store by ranged requests for one large object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_io::control::Control;
use thalweg_io::pool;
use thalweg_io::store::{AlignedBuf, Store};

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
/// A smaller object may be in a cache of the service.
const LARGE: u64 = 64 << 20;

/// Probes the service that has an object, for about `time`. Nothing is written.
///
/// # Errors
/// [`Error::Usage`] for an object below 512 KiB; the store's [`Cancelled`](thalweg_io::Error) soon
/// after `control` is cancelled, and its every failure to read the object.
pub fn probe_object(store: &Arc<dyn Store>, time: Duration, control: &Control) -> Result<Probe> {
    let least = BLOCKS.into_iter().min().unwrap_or_default() + HEAD * 4;
    if store.size() < least {
        return Err(Error::Usage(format!(
            "{}: an object of {} bytes is too small: {least} are needed, and {LARGE} are better",
            store.name(),
            store.size()
        )));
    }
    let line = Line { store, control, end: Instant::now() + time, window: time / 40 };
    let (calm, latency) = line.latency(line.shape(SCATTERED_BLOCK, CALM, true), time / 8)?;
    let mut points = vec![calm, line.point(line.shape(SCATTERED_BLOCK, BUSY, true))?];
    // One connection: with long requests, if the object has some.
    let alone = BLOCKS.into_iter().filter(|block| line.shape(*block, 1, false).blocks >= FEW);
    if let Some(block) = alone.max() {
        points.push(line.point(line.shape(block, 1, false))?);
    }
    let mut is_whole = true;
    for block in BLOCKS {
        is_whole &= line.row(block, &mut points)?;
    }
    let mut notes = Vec::new();
    if !is_whole {
        notes.push("the time was over before all sizes were measured: give more".into());
    }
    if store.size() < LARGE {
        notes.push("a small object: the service may have answered from a cache".into());
    }
    Ok(Probe {
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
    })
}

/// The line to the service.
struct Line<'a> {
    store: &'a Arc<dyn Store>,
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

    /// Measures a point: the median over its windows.
    fn point(&self, shape: RequestShape) -> Result<ProbePoint> {
        let mut windows = Vec::new();
        for number in 0..WINDOWS {
            self.control.check()?;
            let place = number as f64 / WINDOWS as f64;
            windows.push(window(&**self.store, shape, place, self.window)?);
        }
        Ok(ProbePoint::of(shape.block_bytes, shape.depth, shape.scattered, windows))
    }

    /// Measures a request size with more and more requests in flight. Returns whether the time
    /// sufficed. The first point of all is measured in any case.
    fn row(&self, block: u64, points: &mut Vec<ProbePoint>) -> Result<bool> {
        let mut best = 0.0;
        for depth in DEPTHS {
            let shape = self.shape(block, depth, false);
            if shape.blocks == 0 || block * depth as u64 > MOST_IN_FLIGHT {
                break;
            }
            if Instant::now() > self.end && points.iter().any(|point| !point.scattered) {
                return Ok(false);
            }
            let point = self.point(shape)?;
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
            while start.elapsed() < time || times.is_empty() {
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
    use thalweg_io::store::MemoryStore;
    use thalweg_io::store::throttled::{Limits, ThrottledStore};

    use super::*;

    fn probed(bytes: usize, limits: Limits, control: &Control) -> Result<Probe> {
        let object = Arc::new(MemoryStore::new("object", vec![1; bytes]));
        let store: Arc<dyn Store> = Arc::new(ThrottledStore::new(object, limits));
        probe_object(&store, Duration::from_millis(200), control)
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
