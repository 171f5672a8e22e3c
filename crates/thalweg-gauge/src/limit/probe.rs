//! Measures the device and the memory, on the file of the trials and in their session.

mod metered;
mod objects;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_io::pool;
use thalweg_io::store::throttled::Limits;
use thalweg_io::store::{AlignedBuf, FileStore, Store, ThrottledStore};

use super::{MemoryPoint, Probe, ProbePoint, ProbeWindow};
use crate::cache::{EvictOptions, evict};
use crate::{Error, Result, stats};

pub use objects::{ObjectProbeLimits, probe_object};

/// Options of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeOptions {
    /// Request sizes, multiples of 4 KiB.
    pub blocks: Vec<u64>,
    /// Numbers of requests in flight.
    pub depths: Vec<usize>,
    /// The duration of one window.
    pub window: Duration,
    /// The number of windows for each point. Each window is at another place of the file.
    pub windows: usize,
    /// The most bytes that the single buffered stream reads. 0 leaves the stream out, and then the
    /// probe does not change the page cache.
    pub single_stream_bytes: u64,
    /// A throttle of the store, for work that runs with the same throttle. The single stream is
    /// then left out.
    pub throttle: Option<Limits>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            blocks: vec![128 << 10, 512 << 10, 1 << 20, 4 << 20],
            depths: vec![1, 4, 8, 16, 32],
            // 17 points (see MAX_IN_FLIGHT) and two scattered ones take about 12 s.
            window: Duration::from_millis(200),
            windows: 3,
            single_stream_bytes: 1 << 30,
            throttle: None,
        }
    }
}

impl ProbeOptions {
    /// Options for the sweep without the single stream. It takes about `time`.
    #[must_use]
    pub fn sweep_within(time: Duration) -> Self {
        let options = Self { single_stream_bytes: 0, ..Self::default() };
        let sweep = options
            .blocks
            .iter()
            .flat_map(|block| options.depths.iter().map(move |depth| (*block, *depth)));
        let points = sweep.filter(|&(block, depth)| block * depth as u64 <= MAX_IN_FLIGHT).count()
            + SCATTERED;
        // Copying in memory takes a window for each of up to three numbers of threads.
        let windows = (points * options.windows + 3) as f64;
        let window = Duration::from_secs_f64(time.as_secs_f64() / windows);
        Self { window: window.clamp(SHORTEST, LONGEST), ..options }
    }
}

/// The number of points with scattered requests.
const SCATTERED: usize = 2;
/// The shortest and the longest window: a shorter window measures mainly its start, and a longer
/// one is not more precise.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(2);

/// The most bytes in flight. Points with more spend most of a short window on filling and draining
/// the queue, and need much memory.
const MAX_IN_FLIGHT: u64 = 64 << 20;
/// The alignment that every device and file system of Linux accepts for O_DIRECT, except those with
/// 16 KiB sectors (blocks are multiples of more than that).
const ALIGNMENT: usize = 4096;
const SCATTERED_BLOCK: u64 = 4096;

/// Probes the device under `path` and the memory. `progress` gets the number of finished points and
/// the number of all points.
///
/// # Errors
/// [`Error::Usage`] for options without windows or with blocks that are not multiples of 4 KiB,
/// [`Error::Cancelled`] soon after `stop` is set, and every failure to open or read the file.
pub fn probe(
    path: &Path,
    options: &ProbeOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Probe> {
    let file_bytes = std::fs::metadata(path).map_err(|e| Error::io(path, "looking up", e))?.len();
    if options.blocks.iter().any(|b| *b == 0 || b % ALIGNMENT as u64 != 0) || options.windows == 0 {
        return Err(Error::Usage(
            "a probe needs windows, and blocks that are multiples of 4 KiB".into(),
        ));
    }
    let (store, direct) = open(path, options.throttle)?;
    let mut notes = notes(options, file_bytes, direct);
    let grid = grid(options, file_bytes);
    let total = grid.len() + 2;
    let mut device = DeviceProbe { path, store, direct, file_bytes, options, stop, place: 0.0 };
    let mut points = Vec::new();
    for (done, &point) in grid.iter().enumerate() {
        progress(done, total);
        points.push(device.point(point)?);
    }
    drop(device); // otherwise this process would be among the holders of the file
    let read_bytes: u64 = points.iter().flat_map(|p| &p.windows).map(|w| w.bytes).sum();
    if read_bytes > file_bytes {
        notes.push(format!(
            "the probe read {:.1} times the file: caches beneath this system (device, \
             hypervisor, server) may have answered, so the limit may be too high, and fractions \
             of it too low",
            read_bytes as f64 / file_bytes.max(1) as f64
        ));
    }
    progress(total - 2, total);
    let stream_bytes = if options.throttle.is_none() { options.single_stream_bytes } else { 0 };
    let single_stream_bytes_per_s = single_stream(path, stream_bytes, stop, &mut notes)?;
    progress(total - 1, total);
    let memory = memory(options.window, stop)?;
    progress(total, total);
    Ok(Probe {
        file: path.display().to_string(),
        file_bytes,
        direct,
        points,
        latency: None,
        single_stream_bytes_per_s,
        memory,
        throttle: options.throttle.map(|limits| limits.to_string()),
        twice: None,
        notes,
    })
}

/// Notes that a reader of the probe should know.
fn notes(options: &ProbeOptions, file_bytes: u64, direct: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let smallest = options.blocks.iter().copied().min().unwrap_or(SCATTERED_BLOCK);
    if file_bytes < smallest {
        notes.push("the file is smaller than one block: the device was not probed".into());
    }
    if let Some(limits) = options.throttle {
        notes.push(format!("the store was slowed down on purpose: {limits}"));
    }
    if !direct {
        notes.push(
            "this file system refuses O_DIRECT: buffered reads, evicted before each window".into(),
        );
    }
    notes
}

/// A point of the sweep: block size, requests in flight, and whether requests are scattered.
type GridPoint = (u64, usize, bool);

/// The points of the sweep that fit the file and the memory.
fn grid(options: &ProbeOptions, file_bytes: u64) -> Vec<GridPoint> {
    let forward = options
        .blocks
        .iter()
        .flat_map(|&block| options.depths.iter().map(move |&depth| (block, depth, false)));
    // A small depth would measure only the latency of one request, which depth 1 measures already.
    let scattered = [(SCATTERED_BLOCK, 1, true), (SCATTERED_BLOCK, 32, true)];
    let fits = |&(block, depth, _): &GridPoint| {
        depth > 0 && block * depth as u64 <= MAX_IN_FLIGHT && block <= file_bytes
    };
    forward.chain(scattered).filter(fits).collect()
}

/// The file while its device is probed.
struct DeviceProbe<'a> {
    path: &'a Path,
    store: Arc<dyn Store>,
    direct: bool,
    file_bytes: u64,
    options: &'a ProbeOptions,
    stop: &'a AtomicBool,
    /// Where the last window began, as a share of the file.
    place: f64,
}

impl DeviceProbe<'_> {
    /// Measures one point: the median over its windows.
    fn point(&mut self, (block_bytes, depth, scattered): GridPoint) -> Result<ProbePoint> {
        let mut windows = Vec::new();
        for _ in 0..self.options.windows {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if !self.direct {
                evict(self.path, EvictOptions::default())?;
            }
            // Multiples of the fraction of the golden ratio are spread evenly, for any number of
            // windows.
            self.place = (self.place + 0.618_033_988_749_895_f64).fract();
            let blocks = self.file_bytes / block_bytes;
            let shape = RequestShape { from: 0, block_bytes, depth, scattered, blocks };
            windows.push(window(&*self.store, shape, self.place, self.options.window)?);
        }
        Ok(ProbePoint::of(block_bytes, depth, scattered, windows))
    }
}

impl ProbePoint {
    /// The point of these windows: their median.
    fn of(block_bytes: u64, depth: usize, scattered: bool, windows: Vec<ProbeWindow>) -> Self {
        let rates: Vec<f64> = windows.iter().map(|w| w.bytes as f64 / w.seconds).collect();
        let bytes_per_s = stats::median(&rates).unwrap_or(0.0);
        Self { block_bytes, depth, scattered, windows, bytes_per_s }
    }
}

/// Opens the file for direct reads if a test read works, because some file systems accept the flag
/// and refuse the read. Returns whether reads are direct.
fn open(path: &Path, throttle: Option<Limits>) -> Result<(Arc<dyn Store>, bool)> {
    let store = FileStore::open_direct(path)?;
    if store.size() > 0 {
        let len = usize::try_from(store.size()).unwrap_or(ALIGNMENT).min(ALIGNMENT);
        store.read_at(0, &mut AlignedBuf::new(len))?;
    }
    let direct = store.is_direct();
    let store: Arc<dyn Store> = Arc::new(store);
    Ok(match throttle {
        Some(limits) => (Arc::new(ThrottledStore::new(store, limits)), direct),
        None => (store, direct),
    })
}

#[derive(Clone, Copy)]
struct RequestShape {
    /// Where the first block begins.
    from: u64,
    block_bytes: u64,
    depth: usize,
    scattered: bool,
    /// The number of whole blocks in the file.
    blocks: u64,
}

impl RequestShape {
    /// The offset of the `i`-th request after block `first`. Requests past the end of the file
    /// continue at its start.
    fn offset(&self, first: u64, i: u64) -> u64 {
        // An odd 64-bit constant (splitmix64's) scatters neighbours over the whole file.
        let i = if self.scattered { i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8 } else { i };
        self.from + (first.wrapping_add(i) % self.blocks.max(1)) * self.block_bytes
    }
}

/// Keeps `depth` requests in flight for the given time, with one thread for each.
fn window(
    store: &dyn Store,
    shape: RequestShape,
    place: f64,
    time: Duration,
) -> Result<ProbeWindow> {
    let first = (place * shape.blocks as f64) as u64;
    let next = AtomicU64::new(0);
    let bytes = AtomicU64::new(0);
    let len = usize::try_from(shape.block_bytes)
        .map_err(|_| Error::Usage("a block larger than memory".into()))?;
    let read = |mut buffer: AlignedBuf| -> Result<(Instant, Instant)> {
        let start = Instant::now();
        loop {
            let offset = shape.offset(first, next.fetch_add(1, Ordering::Relaxed));
            store.read_at(offset, &mut buffer)?;
            bytes.fetch_add(shape.block_bytes, Ordering::Relaxed);
            let now = Instant::now();
            if now - start >= time {
                return Ok((start, now));
            }
        }
    };
    let times = pool::together(store.name(), shape.depth, || AlignedBuf::new(len), read)?;
    let times = times.into_iter().collect::<Result<Vec<_>>>()?;
    let start = times.iter().map(|t| t.0).min();
    let last = times.iter().map(|t| t.1).max();
    // The duration has a lower bound, so that the rate is finite.
    let seconds =
        last.zip(start).map_or(0.0, |(last, start)| (last - start).as_secs_f64()).max(1e-6);
    let offset_bytes = shape.offset(first, 0);
    Ok(ProbeWindow { offset_bytes, bytes: bytes.into_inner(), seconds })
}

/// The bandwidth of one buffered reader like `cat` or `dd`. It is not the limit of the device, but
/// the bandwidth that most programs get.
fn single_stream(
    path: &Path,
    most: u64,
    stop: &AtomicBool,
    notes: &mut Vec<String>,
) -> Result<Option<f64>> {
    if most == 0 {
        return Ok(None);
    }
    let eviction = evict(path, EvictOptions::default())?;
    if let Some(why) = eviction.objection() {
        notes.push(format!(
            "no single buffered stream was timed: the file could not be proved cold ({why})"
        ));
        return Ok(None);
    }
    let mut file = File::open(path).map_err(|e| Error::io(path, "opening", e))?;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    let start = Instant::now();
    while bytes < most {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let n = file.read(&mut buffer).map_err(|e| Error::io(path, "reading", e))?;
        if n == 0 {
            break;
        }
        bytes += n as u64;
    }
    Ok((bytes > 0).then(|| bytes as f64 / start.elapsed().as_secs_f64().max(1e-6)))
}

/// The size of each of the two buffers of a thread. Both together exceed the last-level cache of
/// most machines. On other machines the copy is too fast, and the limit is too strict.
const COPY_BYTES: usize = 64 << 20;

/// Measures copies in memory with one, four and all threads (at most 16). Each thread has its own
/// pair of buffers.
fn memory(time: Duration, stop: &AtomicBool) -> Result<Vec<MemoryPoint>> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    // Four threads often saturate one socket. More than 16 threads (2 GiB of buffers) give no
    // further information.
    let mut counts = vec![1, 4, all.min(16)];
    counts.retain(|&n| n <= all);
    counts.sort_unstable();
    counts.dedup();
    counts
        .into_iter()
        .map(|threads| {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            // The buffers are written here, so that no page fault occurs in the timed part.
            let buffers = || (vec![1; COPY_BYTES], vec![2; COPY_BYTES]);
            let copy = |(from, to)| copy_rate(time, from, to);
            let rates = pool::together(&"memory".into(), threads, buffers, copy)?;
            Ok(MemoryPoint { threads, bytes_per_s: rates.iter().sum() })
        })
        .collect()
}

fn copy_rate(time: Duration, from: Vec<u8>, mut to: Vec<u8>) -> f64 {
    let start = Instant::now();
    let mut bytes = 0_u64;
    while start.elapsed() < time {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        bytes += COPY_BYTES as u64;
    }
    bytes as f64 / start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_inside_the_file() {
        for scattered in [false, true] {
            let shape =
                RequestShape { from: 0, block_bytes: 4096, depth: 1, scattered, blocks: 10 };
            for i in 0..1000 {
                let offset = shape.offset(9, i);
                assert!(offset.is_multiple_of(4096) && offset + 4096 <= 40_960);
            }
        }
        let ordered =
            RequestShape { from: 5, block_bytes: 4096, depth: 1, scattered: false, blocks: 10 };
        assert_eq!(ordered.offset(9, 1), 5, "round the end");
    }
}
