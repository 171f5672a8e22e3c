//! Synthetic nanopore reads, of any number and size, that are as hard to compress as real ones.
//!
//! A [`Recipe`] describes a run, a [`Synth`] holds the tables of a recipe, and [`Synth::read`]
//! makes read number `i` in buffers that the caller reuses. A read depends only on the recipe and
//! on `i`, not on the order of the calls, the number of threads or the machine. All arithmetic that
//! IEEE does not define exactly goes through the Rust crate `libm`.
//!
//! The defaults imitate a PromethION run of R10.4.1 chemistry at 5 kHz. The signal codecs see only
//! the differences between neighbouring samples; the distribution of these differences lies between
//! those of two real runs.
//!
//! ```
//! use thalweg_nanopore::synth::Recipe;
//! use thalweg_nanopore::synth::Synth;
//! use thalweg_nanopore::synth::SynthRead;
//!
//! # fn main() -> thalweg_io::Result<()> {
//! let synth = Synth::new(Recipe { seed: 1, reads: 3, mean_length: 4000.0, ..Recipe::default() })?;
//! let mut read = SynthRead::default();
//! for i in 0..synth.recipe().reads {
//!     synth.read(i, &mut read);
//!     assert_eq!(read.read_id.len(), 36);
//!     assert!(!read.samples.is_empty());
//! }
//! # Ok(())
//! # }
//! ```

mod fastq;
mod file;
mod header;
mod pore;
mod record;
mod signal;
mod slow5;

pub use fastq::Basecalls;
pub use header::attributes;
pub use record::{Aux, SynthRead};
use thalweg_io::{Error, Result};

/// The description of a synthetic run. Currents are in picoampere, and times in samples unless
/// stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of reads of the run, which is also the number of reads in a file. [`Synth::read`]
    /// accepts larger numbers as well.
    pub reads: u64,
    /// Mean number of samples of a read. Lengths are log-normal.
    pub mean_length: f64,
    /// Standard deviation of the logarithm of the lengths; 0 gives every read the same length.
    pub length_sigma: f64,
    /// The least length of a read, in samples.
    pub min_length: u32,
    /// The greatest length of a read, in samples.
    pub max_length: u32,
    /// Samples per second.
    pub sample_rate: f64,
    /// Bases per second that pass the pore. The time that a base stays is at least a quarter of a
    /// sample.
    pub bases_per_second: f64,
    /// Shape of the gamma distribution of the time that a base stays: the larger, the more regular.
    pub dwell_shape: f64,
    /// Mean current over the 9-mers.
    pub level_mean: f64,
    /// Spread of the current over the 9-mers.
    pub level_sd: f64,
    /// Median of the noise, which differs between 9-mers.
    pub noise_sd: f64,
    /// Correlation of the noise of neighbouring samples, between -0.5 and 0.5.
    pub noise_correlation: f64,
    /// Standard deviation of a slow drift of the current, in addition to the noise.
    pub drift_sd: f64,
    /// Current of an open pore.
    pub open_pore: f64,
    /// Share of the reads that begin while the current still falls from the open-pore level.
    pub open_pore_share: f64,
    /// Mean length of the adapter at the start of a read, in samples. The adapter moves slowly.
    pub adapter_length: f64,
    /// Stalls per base. During a stall, a base stays for 5 to 40 times its usual time.
    pub stalls_per_base: f64,
    /// Single-sample spikes per sample.
    pub spikes_per_sample: f64,
    /// Number of values of the digitiser.
    pub digitisation: f64,
    /// Range of the digitiser.
    pub range: f64,
    /// Mean of the channels' offsets, in digitiser steps.
    pub offset: f64,
    /// Channels of the flow cell.
    pub channels: u32,
    /// Read groups (runs that were merged). Read `i` belongs to a random one.
    pub read_groups: u32,
}

impl Default for Recipe {
    /// 1.2 G samples in 18,462 reads of a PromethION run: R10.4.1, 5 kHz, 400 bases per second.
    fn default() -> Self {
        Self {
            seed: 1,
            reads: 18_462,
            mean_length: 65_000.0,
            length_sigma: 0.9,
            min_length: 1_000,
            max_length: 4_000_000,
            sample_rate: 5_000.0,
            bases_per_second: 400.0,
            dwell_shape: 2.0,
            level_mean: 88.0,
            level_sd: 17.5,
            noise_sd: 1.95,
            noise_correlation: 0.1,
            drift_sd: 2.5,
            open_pore: 205.0,
            open_pore_share: 0.4,
            adapter_length: 2_000.0,
            stalls_per_base: 3e-4,
            spikes_per_sample: 5e-5,
            digitisation: 2048.0,
            range: 383.119_049_072_265_6,
            offset: -245.0,
            channels: 3_000,
            read_groups: 1,
        }
    }
}

impl Recipe {
    /// The default recipe with about `total` samples: the expected number, rounded up to whole
    /// reads.
    #[must_use]
    pub fn with_samples(seed: u64, total: u64) -> Self {
        let recipe = Self { seed, ..Self::default() };
        // Float to integer casts saturate, so no total is too large.
        Self { reads: (total as f64 / recipe.mean_length).ceil() as u64, ..recipe }
    }

    fn check(&self) -> Result<()> {
        let ranges = [
            ("mean_length", self.mean_length, 0.0, 1e15),
            ("length_sigma", self.length_sigma, 0.0, 5.0),
            ("sample_rate", self.sample_rate, 1e-3, 1e12),
            ("bases_per_second", self.bases_per_second, 1e-3, 1e12),
            ("dwell_shape", self.dwell_shape, 0.5, 1e6),
            ("level_mean", self.level_mean, -1e6, 1e6),
            ("level_sd", self.level_sd, 0.0, 1e6),
            ("noise_sd", self.noise_sd, 0.0, 1e6),
            ("noise_correlation", self.noise_correlation, -0.5, 0.5),
            ("drift_sd", self.drift_sd, 0.0, 1e6),
            ("open_pore", self.open_pore, -1e6, 1e6),
            ("open_pore_share", self.open_pore_share, 0.0, 1.0),
            ("adapter_length", self.adapter_length, 0.0, 1e9),
            ("stalls_per_base", self.stalls_per_base, 0.0, 1.0),
            ("spikes_per_sample", self.spikes_per_sample, 0.0, 1.0),
            ("digitisation", self.digitisation, 1.0, 65_536.0),
            ("range", self.range, 1e-3, 1e9),
            ("offset", self.offset, -32_768.0, 32_767.0),
        ];
        for (name, value, low, high) in ranges {
            // A comparison with NaN is false, so NaN is refused.
            if !(low..=high).contains(&value) {
                return Err(Error::Usage(
                    format!("recipe: {name} is {value}, expected {low} to {high}").into(),
                ));
            }
        }
        if self.min_length > self.max_length {
            let min = self.min_length;
            let max = self.max_length;
            return Err(Error::Usage(
                format!("recipe: min_length {min} exceeds max_length {max}").into(),
            ));
        }
        if self.channels == 0 || self.read_groups == 0 {
            return Err(Error::Usage("recipe: channels and read_groups must be at least 1".into()));
        }
        Ok(())
    }
}

/// A recipe with its tables. It can be shared between threads, because making a read takes `&self`.
#[derive(Debug)]
pub struct Synth {
    recipe: Recipe,
    tables: pore::PoreTables,
}

impl Synth {
    /// Checks the recipe and computes its tables (a few milliseconds, about 2 MB).
    pub fn new(recipe: Recipe) -> Result<Self> {
        recipe.check()?;
        let tables = pore::PoreTables::new(&recipe);
        Ok(Self { recipe, tables })
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Makes read number `i`, in the buffers of `read`.
    pub fn read(&self, i: u64, read: &mut SynthRead) {
        let (mut chance, len) = record::describe(&self.recipe, i, read);
        let bases = signal::fill(
            &self.recipe,
            &self.tables,
            &mut chance,
            read.offset,
            len,
            &mut read.samples,
        );
        // MinKNOW finds about 1.5 events per base.
        read.aux.num_minknow_events = bases + bases / 2;
    }

    /// The length of read number `i`, without making its samples.
    pub fn len_of(&self, i: u64) -> u64 {
        record::length(&self.recipe, &mut record::chance(&self.recipe, i)) as u64
    }

    /// Header attributes of a read group as in the files of a real run, sorted by name.
    pub fn attributes(&self, read_group: u32) -> Vec<(&'static str, String)> {
        attributes(&self.recipe, read_group)
    }
}
