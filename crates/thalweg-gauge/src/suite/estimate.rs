//! About how long a comparison takes, before anything was measured.

use std::time::Duration;

use super::files::{Make, NeededFile};
use crate::cache;

/// Process, eviction and proof of a trial.
const EACH_S: f64 = 0.3;
/// What decoders and tools of the trade do with one core or two.
const BYTES_PER_S: f64 = 250e6;
/// What the sweep over one file takes.
const PROBE_S: f64 = 8.0;
/// What making a synthetic file gives.
const MADE_BYTES_PER_S: f64 = 60e6;

/// A guess from file sizes. It errs by the machine's speed; from the first trials on, what was
/// measured takes its place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TimeEstimate {
    /// One trial, what is around it included.
    pub trial_s: f64,
    /// Trials, at most.
    pub trials: usize,
    /// Making the files that are not there yet.
    pub files_s: f64,
    /// Probing the limit.
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

    /// All of it.
    pub fn total(&self) -> Duration {
        Duration::try_from_secs_f64(self.trial_s * self.trials as f64 + self.files_s + self.probe_s)
            .unwrap_or(Duration::MAX)
    }
}

impl NeededFile {
    /// Its size: that of the file which is there, else about what a synthetic one will have; none
    /// if it is not known.
    pub fn about_bytes(&self) -> Option<u64> {
        match (cache::state_of(&self.path), &self.make) {
            (Ok((bytes, _)), _) => Some(bytes),
            (Err(_), Make::Synth(synthetic)) => Some(synthetic.about_bytes()),
            _ => None,
        }
    }
}
