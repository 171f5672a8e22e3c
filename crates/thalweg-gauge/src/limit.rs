//! The limit: the lower bound on time that this machine sets, and the term that dominates it.
//!
//! A program can't deliver the values of a file before three things have happened: the store has
//! answered the requests and delivered the stored bytes, the cores have decoded them, and memory
//! has received the decoded values. The terms of the store and of memory belong to the machine, and
//! form the *floor*. The term of the CPU depends on the build, so it is reported separately and
//! never excuses a slow result. [`probe()`] measures the figures, and this module does the
//! arithmetic.

mod model;
mod probe;

use serde::{Deserialize, Serialize};

use crate::cache::ReadTwice;

pub use probe::{ObjectProbeLimits, ProbeOptions, probe, probe_object};

/// A measurement of reads of `block_bytes` each, with `depth` of them in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbePoint {
    /// The size of a request in bytes.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: usize,
    /// Whether the requests were scattered over the file rather than in file order.
    pub scattered: bool,
    /// The short measurements.
    pub windows: Vec<ProbeWindow>,
    /// Median over the windows, in stored bytes a second.
    pub bytes_per_s: f64,
}

/// One short measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeWindow {
    /// The offset in the file at which the measurement began.
    pub offset_bytes: u64,
    /// Bytes read.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
}

/// How long small requests take while few are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them take this many seconds or fewer.
    pub median_s: f64,
    /// The mean, in seconds. Older probes have none.
    pub mean_s: Option<f64>,
    /// 99 of 100 take this many seconds or fewer.
    pub p99_s: f64,
    /// The number of requests.
    pub requests: u64,
}

/// A copy in memory with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// The number of threads.
    pub threads: usize,
    /// Bytes copied per second; each is read once and written once.
    pub bytes_per_s: f64,
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The file that was read.
    pub file: String,
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// Whether the page cache was bypassed (O_DIRECT); if not, the file was evicted before each
    /// point.
    pub direct: bool,
    /// All points of the sweep.
    pub points: Vec<ProbePoint>,
    /// The times of small requests, of an object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The bandwidth of one buffered reader from start to end, after a proved eviction, for
    /// comparison; `None` if it was not measured.
    pub single_stream_bytes_per_s: Option<f64>,
    /// The copies in memory.
    pub memory: Vec<MemoryPoint>,
    /// The throttle of the store during the probe, in the form of `thalweg read --throttle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<String>,
    /// Times of parts of the file that were read twice before any trial, to detect a cache beneath
    /// this system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twice: Option<ReadTwice>,
    /// Reasons to doubt these figures.
    pub notes: Vec<String>,
}

/// The demand of a piece of work on the machine; `None` where it is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkDemand {
    /// Bytes from the store.
    pub stored_bytes: Option<u64>,
    /// Requests to the store.
    pub requests: Option<u64>,
    /// The number of requests in the longest chain in which each request waits for the one before.
    pub dependent_requests: Option<u64>,
    /// Decoded bytes.
    pub decoded_bytes: Option<u64>,
    /// CPU seconds of all threads, including the kernel's work for them.
    pub cpu_s: Option<f64>,
    /// The consumer's part of these CPU seconds.
    pub consumer_s: Option<f64>,
    /// The number of cores that the work may use.
    pub cores: f64,
}

impl Probe {
    /// The fastest point in file order, which is the sustained bandwidth of the device.
    pub fn best(&self) -> Option<&ProbePoint> {
        let ordered = self.points.iter().filter(|p| !p.scattered && p.bytes_per_s > 0.0);
        ordered.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// The best bandwidth of the device: that of the fastest point, or that of the single stream if
    /// read-ahead makes it faster than all points.
    pub(crate) fn device_bytes_per_s(&self) -> Option<f64> {
        let sweep = self.best().map(|p| p.bytes_per_s);
        sweep
            .into_iter()
            .chain(self.single_stream_bytes_per_s)
            .max_by(f64::total_cmp)
            .filter(|&r| r > 0.0)
    }

    /// The highest rate of small scattered requests, per second.
    pub fn requests_per_s(&self) -> Option<f64> {
        let rate = |p: &ProbePoint| p.bytes_per_s / p.block_bytes as f64;
        self.points
            .iter()
            .filter(|p| p.scattered)
            .map(rate)
            .max_by(f64::total_cmp)
            .filter(|&r| r > 0.0)
    }

    /// How many seconds one small request takes while no other is in flight.
    pub fn latency_s(&self) -> Option<f64> {
        if let Some(latency) = self.latency {
            return Some(latency.median_s);
        }
        let alone =
            self.points.iter().find(|p| p.scattered && p.depth == 1 && p.bytes_per_s > 0.0)?;
        Some(alone.block_bytes as f64 / alone.bytes_per_s)
    }

    /// The bandwidth of one connection to an object store: that of one large request after the
    /// other, without the latency.
    pub fn connection_bytes_per_s(&self) -> Option<f64> {
        let latency = self.latency?;
        let latency_s = latency.mean_s.unwrap_or(latency.median_s);
        let alone = self.points.iter().filter(|p| !p.scattered && p.depth == 1);
        let longest = alone.filter(|p| p.bytes_per_s > 0.0).max_by_key(|p| p.block_bytes)?;
        let block = longest.block_bytes as f64;
        let transfer_s = block / longest.bytes_per_s - latency_s;
        // An answer that takes no longer than a small one says nothing about the connection.
        (transfer_s > 0.0).then(|| block / transfer_s)
    }

    /// The bandwidth of the fastest copy in memory.
    pub fn memory_bytes_per_s(&self) -> Option<f64> {
        self.memory.iter().map(|m| m.bytes_per_s).max_by(f64::total_cmp).filter(|&r| r > 0.0)
    }

    /// The limit on `work`.
    pub fn limit(&self, work: &WorkDemand) -> Limit {
        let over = |amount: Option<u64>, rate: Option<f64>| {
            amount.zip(rate).map(|(amount, rate)| amount as f64 / rate)
        };
        let spread =
            |cpu_s: Option<f64>| cpu_s.filter(|_| work.cores > 0.0).map(|s| s / work.cores);
        let own = work.cpu_s.map(|cpu| (cpu - work.consumer_s.unwrap_or(0.0)).max(0.0));
        Limit {
            device_s: over(work.stored_bytes, self.device_bytes_per_s()),
            requests_s: over(work.requests, self.requests_per_s()),
            latency_s: work.dependent_requests.zip(self.latency_s()).map(|(n, s)| n as f64 * s),
            decode_s: spread(own),
            consumer_s: spread(work.consumer_s),
            memcpy_s: over(work.decoded_bytes, self.memory_bytes_per_s()),
        }
    }
}

/// The terms of the lower bound, in seconds; `None` where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The time of the stored bytes at the best bandwidth of the device.
    pub device_s: Option<f64>,
    /// The time of the requests at the highest rate of the device.
    pub requests_s: Option<f64>,
    /// The time of the requests that wait for each other, at the latency of a single request.
    pub latency_s: Option<f64>,
    /// CPU seconds without the consumer's, divided by the number of cores.
    pub decode_s: Option<f64>,
    /// The consumer's CPU seconds, divided by the number of cores.
    pub consumer_s: Option<f64>,
    /// The time of the decoded bytes at the bandwidth of a copy in memory.
    pub memcpy_s: Option<f64>,
}

/// A term of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The bandwidth of the store.
    Device,
    /// The rate at which the store answers requests.
    Requests,
    /// The latency of the store, for requests that wait for each other.
    Latency,
    /// Decoding (and the CPU work of fetching), with all cores.
    Decode,
    /// The consumer of the decoded values.
    Consumer,
    /// The bandwidth of memory.
    Memory,
}

impl Term {
    /// Whether the term belongs to the store. Work whose bytes are in memory does not have it.
    pub(crate) fn is_store(self) -> bool {
        matches!(self, Self::Device | Self::Requests | Self::Latency)
    }
}

impl Limit {
    /// The floor: the terms of the store and the memory, which no build can beat on this machine
    /// with these requests.
    pub(crate) fn floor_s(&self) -> Option<f64> {
        let terms = [self.device_s, self.requests_s, self.latency_s, self.memcpy_s];
        terms.into_iter().flatten().max_by(f64::total_cmp).filter(|&s| s > 0.0)
    }

    /// The largest term and its seconds. Decoder and consumer share the cores, so their seconds are
    /// added; the larger of the two gives the sum its name.
    pub fn largest(&self) -> Option<(Term, f64)> {
        let consumer = self.consumer_s.unwrap_or(0.0);
        let cpu = self.decode_s.map(|s| s + consumer);
        let whose =
            if consumer > self.decode_s.unwrap_or(0.0) { Term::Consumer } else { Term::Decode };
        let terms = [
            (Term::Device, self.device_s),
            (Term::Requests, self.requests_s),
            (Term::Latency, self.latency_s),
            (whose, cpu),
            (Term::Memory, self.memcpy_s),
        ];
        let known = terms.into_iter().filter_map(|(term, s)| Some((term, s.filter(|&s| s > 0.0)?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// How close `time_s` comes to the floor: 1 is perfect.
    pub fn fraction_of_floor(&self, time_s: f64) -> Option<f64> {
        self.floor_s().map(|s| s / time_s)
    }

    /// How close `time_s` comes to the largest term, the CPU's included.
    pub fn fraction(&self, time_s: f64) -> Option<f64> {
        self.largest().map(|(_, s)| s / time_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(scattered: bool, block: u64, rate: f64) -> ProbePoint {
        ProbePoint {
            block_bytes: block,
            depth: 1,
            scattered,
            windows: Vec::new(),
            bytes_per_s: rate,
        }
    }

    fn probed() -> Probe {
        Probe {
            file: "f".into(),
            file_bytes: 1,
            direct: true,
            points: vec![
                point(false, 1 << 20, 1e9),
                point(false, 4 << 20, 2e9),
                point(true, 4096, 4.096e7),
                ProbePoint { depth: 32, ..point(true, 4096, 4.096e8) },
            ],
            latency: None,
            single_stream_bytes_per_s: None,
            memory: vec![
                MemoryPoint { threads: 1, bytes_per_s: 8e9 },
                MemoryPoint { threads: 2, bytes_per_s: 10e9 },
            ],
            throttle: None,
            twice: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_best_of_the_sweep_is_the_device() {
        let p = probed();
        assert_eq!(p.best().map(|b| b.bytes_per_s), Some(2e9), "scattered reads are no bandwidth");
        assert_eq!((p.requests_per_s(), p.latency_s()), (Some(1e5), Some(1e-4)));
        let faster = Probe { single_stream_bytes_per_s: Some(3e9), ..p };
        assert_eq!(faster.device_bytes_per_s(), Some(3e9), "whatever was seen is possible");
    }

    #[test]
    fn the_latency_is_no_part_of_the_bandwidth_of_a_connection() {
        // 100 ms for each 8 MB, 20 ms of which are latency.
        let points = vec![point(false, 1_000_000, 1e6), point(false, 8_000_000, 80e6)];
        let latency = Latency { median_s: 0.01, mean_s: Some(0.02), p99_s: 0.2, requests: 100 };
        let object = Probe { latency: Some(latency), points, ..probed() };
        assert!(object.connection_bytes_per_s().is_some_and(|rate| (rate - 100e6).abs() < 1.0));
        assert_eq!(object.latency_s(), Some(0.01));
        assert_eq!(probed().connection_bytes_per_s(), None);
    }

    #[test]
    fn each_term_has_its_amount_and_its_rate() {
        let work = WorkDemand {
            stored_bytes: Some(4_000_000_000),
            requests: Some(50_000),
            dependent_requests: Some(2000),
            decoded_bytes: Some(10_000_000_000),
            cpu_s: Some(3.0),
            consumer_s: Some(1.0),
            cores: 2.0,
        };
        let limit = probed().limit(&work);
        let expected = Limit {
            device_s: Some(2.0),
            requests_s: Some(0.5),
            latency_s: Some(0.2),
            decode_s: Some(1.0),
            consumer_s: Some(0.5),
            memcpy_s: Some(1.0),
        };
        assert_eq!(limit, expected);
        assert_eq!((limit.floor_s(), limit.fraction(2.5)), (Some(2.0), Some(0.8)));
        assert_eq!(
            probed().limit(&WorkDemand::default()),
            Limit::default(),
            "what nobody knows is no zero"
        );
    }

    #[test]
    fn the_cpu_is_never_part_of_the_floor() {
        let limit = Limit {
            device_s: Some(1.0),
            decode_s: Some(2.0),
            consumer_s: Some(1.0),
            ..Limit::default()
        };
        assert_eq!(limit.floor_s(), Some(1.0));
        assert_eq!(limit.largest(), Some((Term::Decode, 3.0)));
        let consumed = Limit { consumer_s: Some(5.0), ..limit };
        assert_eq!(consumed.largest(), Some((Term::Consumer, 7.0)));
        let hot = Limit { device_s: Some(0.0), ..Limit::default() };
        assert_eq!(hot.floor_s(), None, "a file in memory sets no limit");
    }
}
