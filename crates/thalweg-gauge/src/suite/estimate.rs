//! Estimates how long a comparison takes, before anything is measured.

use std::time::Duration;

use super::files::{FileOrigin, NeededFile};
use crate::cache;

/// Seconds for the process, eviction and verification of a trial.
const EACH_S: f64 = 0.3;
/// Bytes per second of typical decoders and tools with one or two cores.
const BYTES_PER_S: f64 = 250e6;
/// Seconds for the probe of one file.
const PROBE_S: f64 = 8.0;
/// Bytes per second at which a synthetic file is made.
const MADE_BYTES_PER_S: f64 = 60e6;

/// An estimate from file sizes for a typical machine. Measured times replace it after the first
/// trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TimeEstimate {
    /// Seconds of one trial, with its preparation.
    pub trial_s: f64,
    /// The largest number of trials.
    pub trials: usize,
    /// Seconds to make the absent files.
    pub files_s: f64,
    /// Seconds to probe the limit.
    pub probe_s: f64,
}

impl TimeEstimate {
    pub(super) fn new(
        bytes_of_arms: &[u64],
        pairs: usize,
        needed: &[NeededFile],
        probed: usize,
    ) -> Self {
        let arms = bytes_of_arms.len().max(1);
        let bytes: u64 = bytes_of_arms.iter().sum();
        let trial_s = EACH_S + bytes as f64 / arms as f64 / BYTES_PER_S;
        let made: f64 = needed
            .iter()
            .filter(|n| !n.path.exists())
            .map(|n| n.about_bytes().unwrap_or(0) as f64)
            .sum();
        let probe_s = PROBE_S * probed as f64;
        Self { trial_s, trials: arms * (pairs + 1), files_s: made / MADE_BYTES_PER_S, probe_s }
    }

    /// The whole duration.
    pub fn total(&self) -> Duration {
        Duration::try_from_secs_f64(self.trial_s * self.trials as f64 + self.files_s + self.probe_s)
            .unwrap_or(Duration::MAX)
    }
}

impl NeededFile {
    /// The size of the file if it exists, else the approximate size of a synthetic file; `None` if
    /// unknown.
    pub fn about_bytes(&self) -> Option<u64> {
        match (cache::state_of(&self.path), &self.make) {
            (Ok((bytes, _)), _) => Some(bytes),
            (Err(_), FileOrigin::Synth(synthetic)) => Some(synthetic.about_bytes()),
            _ => None,
        }
    }
}
