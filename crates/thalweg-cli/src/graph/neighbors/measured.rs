//! `thalweg graph neighbors --measured`: how long reading lists of neighbours takes.

use std::io::Write;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use serde_json::json;
use thalweg::graph::{Adjacency, Neighbours, Network};
use thalweg::pool;

use super::GraphNeighborsArgs;
use super::digest::sha256;
use crate::common::{Failure, VerbResult, output, shown_path};
use crate::timing::{Started, with_build};

/// The network and the vertices that are read repeatedly, and the result of the first read.
struct Measured<'a> {
    network: &'a Network,
    adjacencies: &'a [Adjacency],
    ids: &'a [u64],
    threads: usize,
    links: Links,
}

/// The number of neighbours of all vertices, and the wrapping sum of their ids.
type Links = (u64, u64);

/// The times of one read, or of several.
#[derive(Default)]
struct Times {
    /// Seconds of the read, or of the median read.
    seconds: f64,
    /// CPU seconds of a read; of several, the mean.
    cpu_s: f64,
    fastest_s: Option<f64>,
    slowest_s: Option<f64>,
    /// Seconds of the median copy of all lists.
    copy_s: Option<f64>,
}

/// Reads all lists and sums their ids, which every arm of a benchmark does. `started`: before the
/// network was opened.
pub(super) fn run(
    args: &GraphNeighborsArgs,
    network: &Network,
    adjacencies: &[Adjacency],
    ids: &[u64],
    started: &Started,
    threads: usize,
) -> VerbResult {
    let links = read_and_sum(network, adjacencies, ids)?;
    let (seconds, cpu_s) = started.seconds();
    let planned = network.planned();
    let mut times = Times { seconds, cpu_s, ..Times::default() };
    let measured = Measured { network, adjacencies, ids, threads, links };
    let mut lists = Neighbours::default();
    if let Some(repeats) = args.repeat {
        times = if args.arrays {
            measured.repeat_into_array(repeats, &mut lists)?
        } else {
            measured.repeat(repeats)?
        };
    }
    if args.digest && !args.arrays {
        network.neighbours(adjacencies, ids, &mut lists)?;
    }
    let (count, sum) = links;
    let report = json!({
        "workload": "thalweg-graph-read",
        "open_to_last_s": times.seconds,
        "cpu_s": times.cpu_s,
        "repeats": args.repeat,
        "fastest_s": times.fastest_s,
        "slowest_s": times.slowest_s,
        "copy_s": times.copy_s,
        "vertices": ids.len(),
        "links": count,
        "sum": sum,
        "bytes_decoded": 8 * count,
        "bytes_stored": network.storage().bytes,
        "needed_bytes": network.needed(adjacencies, ids)?,
        "digest": args.digest.then(|| sha256(&lists.ids)),
        "threads": threads,
        "throttle": args.throttle.map(|limits| limits.to_string()),
        "planned": {
            "requests": planned.load.requests,
            "fetched_bytes": planned.load.bytes,
            "predicted_s": planned.predicted_s,
        },
        "stages": {},
    });
    let mut out = output();
    writeln!(out, "{}", with_build(report, [shown_path(&args.store)]))?;
    out.flush()?;
    Ok(())
}

/// Reads the lists, and sums each while it is in the cache.
fn read_and_sum(
    network: &Network,
    adjacencies: &[Adjacency],
    ids: &[u64],
) -> thalweg::Result<Links> {
    let count = AtomicU64::new(0);
    let sum = AtomicU64::new(0);
    network.visit(adjacencies, ids, || {
        |_, ids: &[u64]| {
            count.fetch_add(ids.len() as u64, Relaxed);
            sum.fetch_add(ids.iter().fold(0, |sum, id| sum.wrapping_add(*id)), Relaxed);
        }
    })?;
    Ok((count.into_inner(), sum.into_inner()))
}

impl Measured<'_> {
    /// Reads and sums the lists `repeats` times.
    fn repeat(&self, repeats: u16) -> Result<Times, Failure> {
        let mut seconds = Vec::new();
        let mut cpu_s = 0.0;
        for _ in 0..repeats {
            let started = Started::now();
            let links = read_and_sum(self.network, self.adjacencies, self.ids)?;
            let (wall, cpu) = started.seconds();
            seconds.push(wall);
            cpu_s += cpu;
            self.check(links)?;
        }
        Ok(times(seconds, cpu_s, None))
    }

    /// Reads the lists into one array `repeats` times, and copies the array each time.
    fn repeat_into_array(&self, repeats: u16, lists: &mut Neighbours) -> Result<Times, Failure> {
        self.network.neighbours(self.adjacencies, self.ids, lists)?;
        let mut target = lists.ids.clone();
        let mut seconds = Vec::new();
        let mut copy_seconds = Vec::new();
        let mut cpu_s = 0.0;
        for _ in 0..repeats {
            let started = Started::now();
            self.network.neighbours(self.adjacencies, self.ids, lists)?;
            let (wall, cpu) = started.seconds();
            seconds.push(wall);
            cpu_s += cpu;
            // The ids are not summed here, so the sum of the first read is used.
            self.check((lists.ids.len() as u64, self.links.1))?;
            let began = Instant::now();
            copy(&lists.ids, &mut target, self.threads);
            copy_seconds.push(began.elapsed().as_secs_f64());
        }
        let [copy_s, ..] = median_least_greatest(copy_seconds);
        Ok(times(seconds, cpu_s, copy_s))
    }

    /// Fails if the result of a repeated read differs from that of the first.
    fn check(&self, links: Links) -> VerbResult {
        if links == self.links {
            return Ok(());
        }
        Err(Failure::Said(format!("{links:?} now, {:?} before", self.links)))
    }
}

/// The times of repeated reads that took `cpu_s` of CPU time together.
fn times(seconds: Vec<f64>, cpu_s: f64, copy_s: Option<f64>) -> Times {
    let cpu_s = cpu_s / seconds.len() as f64;
    let [median, fastest_s, slowest_s] = median_least_greatest(seconds);
    Times { seconds: median.unwrap_or_default(), cpu_s, fastest_s, slowest_s, copy_s }
}

/// The median, the least and the greatest of some times.
fn median_least_greatest(mut times: Vec<f64>) -> [Option<f64>; 3] {
    times.sort_by(f64::total_cmp);
    [times.get(times.len() / 2).copied(), times.first().copied(), times.last().copied()]
}

/// Copies numbers; each thread copies a part.
fn copy(from: &[u64], to: &mut [u64], threads: usize) {
    let part = from.len().div_ceil(threads.max(1)).max(1);
    let parts = from.chunks(part).zip(to.chunks_mut(part));
    pool::map(threads, parts, |(from, to)| to.copy_from_slice(from));
}
