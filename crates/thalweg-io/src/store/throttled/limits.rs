//! The limits of a throttled store, and their text form:
//! `bandwidth=150MB/s,latency=2ms,requests=2000/s,parallel=8`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{seconds, splitmix};
use crate::error::{Error, Result};
use crate::model::StoreModel;

/// The greatest depth of a throttled model: more than any store that is worth simulating needs.
const MOST_DEPTH: usize = 64;

/// The limits of a [`ThrottledStore`](super::ThrottledStore). By default there are none.
///
/// ```
/// use std::time::Duration;
/// use thalweg_io::store::throttled::Limits;
/// use thalweg_io::store::throttled::Schedule;
/// let limits = Limits { latency: Duration::from_millis(10), bandwidth: 1e6, ..Limits::default() };
/// let mut schedule = Schedule::new(limits);
/// // 10 ms until the first byte, 5 ms for the 5000 bytes.
/// assert_eq!(schedule.admit(Duration::ZERO, 0, 5_000), Duration::from_millis(15));
/// // The second overlaps its latency with the first, but not its transfer.
/// assert_eq!(schedule.admit(Duration::ZERO, 5_000, 5_000), Duration::from_millis(20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Time from a request to its first byte.
    pub latency: Duration,
    /// Mean of a random, exponentially distributed addition to the latency, as object stores have.
    pub jitter: Duration,
    /// Bytes per second over all requests.
    pub bandwidth: f64,
    /// Requests per second.
    pub request_rate: f64,
    /// The most requests answered at a time; further requests wait.
    pub parallel: usize,
    /// Seed of the jitter. The same seed and offset give the same jitter, whatever the order of the
    /// requests.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            bandwidth: f64::INFINITY,
            request_rate: f64::INFINITY,
            parallel: usize::MAX,
            seed: 0,
        }
    }
}

impl Limits {
    /// Limits under which a store behaves as `model` says.
    pub fn of_model(model: &StoreModel) -> Self {
        Self {
            latency: seconds(model.latency_s),
            bandwidth: model.bandwidth,
            request_rate: model.request_rate,
            ..Self::default()
        }
    }

    /// The model of a store of `model` under these limits. Its depth is large enough to keep the
    /// bandwidth busy during one latency.
    pub fn applied_to(&self, model: &StoreModel) -> StoreModel {
        let latency_s = model.latency_s.max((self.latency + self.jitter).as_secs_f64());
        let bandwidth = model.bandwidth.min(self.bandwidth);
        let hands = self.parallel.max(1);
        let on_their_way = (bandwidth * latency_s / model.block as f64).ceil() as usize + 1;
        StoreModel {
            latency_s,
            latency_p99_s: model.latency_p99_s.filter(|p99_s| *p99_s > latency_s),
            bandwidth,
            connection: model.connection.map(|rate| rate.min(bandwidth)),
            request_rate: model.request_rate.min(self.request_rate).min(hands as f64 / latency_s),
            depth: model.depth.max(on_their_way).min(hands).min(MOST_DEPTH),
            block: model.block,
        }
    }

    /// Extra latency of a request for `offset`.
    pub(super) fn jitter(&self, offset: u64) -> Duration {
        let random = splitmix(self.seed ^ splitmix(offset));
        // 53 bits make a double in (0, 1]; the magnitude of its logarithm is at most 37.
        let uniform = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.jitter.mul_f64(-uniform.ln())
    }
}

impl FromStr for Limits {
    type Err = Error;

    /// Parses `bandwidth=150MB/s,latency=2ms,jitter=500us,requests=2000/s,parallel=8,seed=1`: any
    /// of these keys in any order, or `none`.
    fn from_str(text: &str) -> Result<Self> {
        let mut limits = Self::default();
        if text == "none" {
            return Ok(limits);
        }
        for part in text.split(',').map(str::trim) {
            let wrong =
                |wanted: &str| Error::Usage(format!("throttle {part:?}: expected {wanted}").into());
            let (key, value) =
                part.split_once('=').ok_or_else(|| wrong("key=value, as in latency=2ms"))?;
            let key = key.trim();
            let value = value.trim();
            match key {
                "bandwidth" => {
                    limits.bandwidth = quantity(value, BANDWIDTHS)
                        .ok_or_else(|| wrong("bytes a second, as in 150MB/s"))?;
                }
                "requests" => {
                    limits.request_rate = quantity(value, RATES)
                        .ok_or_else(|| wrong("requests a second, as in 2000/s"))?;
                }
                "latency" | "jitter" => {
                    let time = quantity(value, TIMES)
                        .ok_or_else(|| wrong("a time, as in 2ms or 150us"))?;
                    *(if key == "latency" { &mut limits.latency } else { &mut limits.jitter }) =
                        seconds(time);
                }
                "parallel" => {
                    limits.parallel = value
                        .parse()
                        .ok()
                        .filter(|&n| n > 0)
                        .ok_or_else(|| wrong("a number from 1"))?;
                }
                "seed" => limits.seed = value.parse().map_err(|_| wrong("a whole number"))?,
                _ => return Err(wrong("bandwidth, latency, jitter, requests, parallel or seed")),
            }
        }
        Ok(limits)
    }
}

type Units = &'static [(&'static str, f64)];

const BANDWIDTHS: Units = &[
    ("GB/s", 1e9),
    ("MB/s", 1e6),
    ("kB/s", 1e3),
    ("GiB/s", 1_073_741_824.0),
    ("MiB/s", 1_048_576.0),
    ("KiB/s", 1024.0),
    ("B/s", 1.0),
];
const RATES: Units = &[("/s", 1.0)];
const TIMES: Units = &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// A positive number and one of the units.
fn quantity(text: &str, units: Units) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<f64>().ok().map(|n| n * factor).filter(|n| n.is_finite() && *n > 0.0)
}

/// Writes the text form that [`Limits::from_str`] parses, without the limits that are not set.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |name: &str, t: Duration| {
            (!t.is_zero()).then(|| format!("{name}={}us", t.as_nanos() as f64 / 1e3))
        };
        let parts = [
            self.bandwidth.is_finite().then(|| format!("bandwidth={}B/s", self.bandwidth)),
            time("latency", self.latency),
            time("jitter", self.jitter),
            self.request_rate.is_finite().then(|| format!("requests={}/s", self.request_rate)),
            (self.parallel < usize::MAX).then(|| format!("parallel={}", self.parallel)),
            (self.seed > 0).then(|| format!("seed={}", self.seed)),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read() -> Result<()> {
        let text = "bandwidth=150MB/s, latency=2ms,requests=2000/s,parallel=8,jitter=500us,seed=7";
        let limits: Limits = text.parse()?;
        let expected = Limits {
            latency: Duration::from_millis(2),
            jitter: Duration::from_micros(500),
            bandwidth: 150e6,
            request_rate: 2000.0,
            parallel: 8,
            seed: 7,
        };
        assert_eq!(limits, expected);
        assert_eq!(limits.to_string().parse::<Limits>()?, limits);
        assert_eq!("bandwidth=1.5GiB/s".parse::<Limits>()?.bandwidth, 1_610_612_736.0);
        assert_eq!(
            ("none".parse::<Limits>()?, Limits::default().to_string()),
            (Limits::default(), String::new())
        );
        Ok(())
    }

    #[test]
    fn senseless_settings_are_reported_with_the_expected_form() {
        for text in [
            "",
            "fast",
            "latency",
            "latency=2",
            "latency=-2ms",
            "bandwidth=0MB/s",
            "bandwidth=9MB",
            "parallel=0",
        ] {
            let told = text.parse::<Limits>().map_err(|e| e.to_string());
            assert!(told.as_ref().is_err_and(|e| e.contains("expected")), "{text}: {told:?}");
        }
    }

    #[test]
    fn a_slow_store_is_read_deeper() -> Result<()> {
        let limits: Limits = "bandwidth=100MB/s,latency=100ms".parse()?;
        let model = limits.applied_to(&StoreModel::LOCAL);
        // Ten megabytes are in flight at any time.
        assert_eq!((model.depth, model.bandwidth, model.latency_s), (11, 100e6, 0.1));
        let few: Limits = "latency=10ms,parallel=2".parse()?;
        let model = few.applied_to(&StoreModel::LOCAL);
        assert_eq!((model.depth, model.request_rate), (2, 200.0));
        assert_eq!(Limits::default().applied_to(&StoreModel::LOCAL), StoreModel::LOCAL);
        Ok(())
    }
}
