//! The lower bound on time that this machine sets, and which part of it rules.
//!
//! Nothing can deliver a file's values sooner than its device gives the stored bytes, its cores decode them and its
//! memory takes the decoded ones. The first and the last are the machine's own: the *floor*. Decoding is this build's
//! own doing, so it is told apart and never excuses a slow result. Finding the figures is [`probe`]'s work; here is only
//! arithmetic.

mod model;
mod probe;

use serde::{Deserialize, Serialize};

use crate::units;
pub use probe::{ProbeOptions, probe};

/// Reads of `block_bytes`, `depth` of them in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: usize,
    /// Whether the requests were scattered over the file rather than in file order.
    pub scattered: bool,
    /// Each short measurement.
    pub windows: Vec<Window>,
    /// Median over the windows, in stored bytes a second.
    pub bytes_per_s: f64,
}

/// One short measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Where in the file it began.
    pub offset_bytes: u64,
    /// Bytes read.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
}

/// Copying in memory with a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Threads.
    pub threads: usize,
    /// Bytes copied a second; each is read once and written once.
    pub bytes_per_s: f64,
}

/// Everything that was probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The file whose own bytes were read.
    pub file: String,
    /// Its size.
    pub file_bytes: u64,
    /// Whether the page cache was bypassed (O_DIRECT); if not, the file was evicted before each point.
    pub direct: bool,
    /// The whole table.
    pub points: Vec<Point>,
    /// One ordinary buffered reader from start to end, for comparison; after an eviction that was proved.
    pub single_stream_bytes_per_s: Option<f64>,
    /// Copying in memory.
    pub memory: Vec<MemoryPoint>,
    /// What limits the trust in these figures.
    pub notes: Vec<String>,
}

impl Probe {
    /// The fastest point in file order: what the device sustains.
    pub fn best(&self) -> Option<&Point> {
        let ordered = self.points.iter().filter(|p| !p.scattered && p.bytes_per_s > 0.0);
        ordered.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// What the device gives at best: the fastest point, or the single stream where read-ahead beats all of them.
    pub fn device_bytes_per_s(&self) -> Option<f64> {
        let sweep = self.best().map(|p| p.bytes_per_s);
        sweep.into_iter().chain(self.single_stream_bytes_per_s).max_by(f64::total_cmp).filter(|&r| r > 0.0)
    }

    /// The highest rate of small scattered requests, a second.
    pub fn requests_per_s(&self) -> Option<f64> {
        let rate = |p: &Point| p.bytes_per_s / p.block_bytes as f64;
        self.points.iter().filter(|p| p.scattered).map(rate).max_by(f64::total_cmp).filter(|&r| r > 0.0)
    }

    /// The fastest copy.
    pub fn memory_bytes_per_s(&self) -> Option<f64> {
        self.memory.iter().map(|m| m.bytes_per_s).max_by(f64::total_cmp).filter(|&r| r > 0.0)
    }

    /// The limit on work that needs `stored` bytes from the device (0 if the file is in memory), writes `decoded` bytes,
    /// and takes `cpu_s` CPU seconds (of a warm run) on `cores`.
    pub fn limit(&self, stored: Option<u64>, decoded: Option<u64>, cpu_s: Option<f64>, cores: f64) -> Limit {
        let device_rate = self.device_bytes_per_s();
        Limit {
            device_s: stored.zip(device_rate).map(|(bytes, rate)| bytes as f64 / rate),
            decode_s: cpu_s.filter(|_| cores > 0.0).map(|s| s / cores),
            memcpy_s: decoded.zip(self.memory_bytes_per_s()).map(|(bytes, rate)| bytes as f64 / rate),
        }
    }
}

/// The terms of the lower bound, in seconds; none where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Stored bytes at the device's best bandwidth.
    pub device_s: Option<f64>,
    /// CPU seconds spread over all cores.
    pub decode_s: Option<f64>,
    /// Decoded bytes at the bandwidth of a copy.
    pub memcpy_s: Option<f64>,
}

/// A term of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The device.
    Device,
    /// Decoding, with all cores.
    Decode,
    /// Memory.
    Memory,
}

impl Limit {
    /// What no build can beat on this machine: the device and the memory.
    pub fn floor_s(&self) -> Option<f64> {
        [self.device_s, self.memcpy_s].into_iter().flatten().max_by(f64::total_cmp).filter(|&s| s > 0.0)
    }

    /// The largest term and its seconds.
    pub fn largest(&self) -> Option<(Term, f64)> {
        let terms = [(Term::Device, self.device_s), (Term::Decode, self.decode_s), (Term::Memory, self.memcpy_s)];
        let known = terms.into_iter().filter_map(|(term, s)| Some((term, s.filter(|&s| s > 0.0)?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// How close `time_s` comes to the floor: 1 is perfect.
    pub fn fraction_of_floor(&self, time_s: f64) -> Option<f64> {
        self.floor_s().map(|s| s / time_s)
    }

    /// How close `time_s` comes to the largest term, decoding included.
    pub fn fraction(&self, time_s: f64) -> Option<f64> {
        self.largest().map(|(_, s)| s / time_s)
    }

    /// What keeps `time_s` from being shorter, in words.
    pub fn verdict(&self, time_s: f64) -> String {
        let Some((term, bound_s)) = self.largest() else { return "no limit known".into() };
        let fraction = bound_s / time_s;
        let name = match term {
            Term::Device => "the device",
            Term::Decode => "decoding",
            Term::Memory => "memory",
        };
        let percent = units::digits(fraction * 100.0);
        // The probe and the trial are minutes apart on a machine that is never quite steady: 5 % is no contradiction.
        if fraction > 1.05 {
            return format!("faster than the probe of {name} allows ({percent} %): the probe is not the limit");
        }
        match (term, fraction) {
            (Term::Device, f) if f >= CLOSE => format!("bound by the device ({percent} % of its bandwidth)"),
            (Term::Memory, f) if f >= CLOSE => format!("bound by memory ({percent} % of a plain copy)"),
            (Term::Decode, f) if f >= CLOSE => {
                format!("bound by decoding (CPU on all cores for {percent} % of the time)")
            }
            _ => format!("waits: {name} is the largest term and explains {percent} % of the time"),
        }
    }
}

/// From here on a term is called the bound: what is left is start-up and imperfect overlap.
const CLOSE: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(scattered: bool, block: u64, rate: f64) -> Point {
        Point { block_bytes: block, depth: 1, scattered, windows: Vec::new(), bytes_per_s: rate }
    }

    fn probed() -> Probe {
        Probe {
            file: "f".into(),
            file_bytes: 1,
            direct: true,
            points: vec![point(false, 1 << 20, 1e9), point(false, 4 << 20, 2e9), point(true, 4096, 4.096e9)],
            single_stream_bytes_per_s: None,
            memory: vec![MemoryPoint { threads: 1, bytes_per_s: 8e9 }, MemoryPoint { threads: 2, bytes_per_s: 10e9 }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_best_of_the_sweep_is_the_device() {
        let p = probed();
        assert_eq!(p.best().map(|b| b.bytes_per_s), Some(2e9), "scattered reads are no bandwidth");
        assert_eq!(p.requests_per_s(), Some(1e6));
        let faster = Probe { single_stream_bytes_per_s: Some(3e9), ..p.clone() };
        assert_eq!(faster.device_bytes_per_s(), Some(3e9), "whatever was seen is possible");
        let limit = p.limit(Some(4_000_000_000), Some(10_000_000_000), Some(3.0), 2.0);
        assert_eq!(limit, Limit { device_s: Some(2.0), decode_s: Some(1.5), memcpy_s: Some(1.0) });
        assert_eq!(limit.floor_s(), Some(2.0));
        assert_eq!(limit.fraction(2.5), Some(0.8));
    }

    #[test]
    fn decoding_is_never_part_of_the_floor() {
        let limit = Limit { device_s: Some(1.0), decode_s: Some(3.0), memcpy_s: None };
        assert_eq!(limit.floor_s(), Some(1.0));
        assert_eq!(limit.largest(), Some((Term::Decode, 3.0)));
        assert!(limit.verdict(3.2).starts_with("bound by decoding"));
    }

    #[test]
    fn verdicts_name_the_largest_term() {
        let limit = Limit { device_s: Some(1.0), decode_s: Some(0.2), memcpy_s: Some(0.1) };
        assert_eq!(limit.verdict(1.25), "bound by the device (80.0 % of its bandwidth)");
        assert!(limit.verdict(4.0).starts_with("waits: the device"));
        assert!(limit.verdict(0.5).contains("the probe is not the limit"));
        assert_eq!(Limit::default().verdict(1.0), "no limit known");
        let hot = Limit { device_s: Some(0.0), ..Limit::default() };
        assert_eq!(hot.floor_s(), None, "a file in memory sets no limit");
    }
}
