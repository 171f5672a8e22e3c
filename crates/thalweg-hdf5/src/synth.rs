//! Synthetic neutron events, in NeXus files laid out as an acquisition writes them, or as a reader
//! prefers them.
//!
//! A [`NexusRecipe`] describes a file, and a [`SynthRun`] holds what the recipe determines. Event
//! `i` of a bank depends only on the seed, the bank and `i`: files that differ in layout, order or
//! compression hold the same values. The values are the same on every machine.
//!
//! ```
//! use thalweg_hdf5::synth::NexusRecipe;
//! use thalweg_hdf5::synth::SynthRun;
//!
//! # fn main() -> thalweg_io::Result<()> {
//! let run = SynthRun::new(NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 100_000) })?;
//! let mut ids = Vec::new();
//! run.ids(0, 0..10, &mut ids);
//! assert_eq!(ids.len(), 10 * 4);
//! assert!(run.events(0) > run.events(1));
//! # Ok(())
//! # }
//! ```

mod chunk_encoding;
mod diffractometer;
#[cfg(not(feature = "libhdf5"))]
mod no_libhdf5;
mod pulses;
mod write_order;
#[cfg(feature = "libhdf5")]
mod writer;

use std::ops::Range;
use std::str::FromStr;

use thalweg_codec::splitmix::{STEP, mix};
use thalweg_io::{Error, Fault, Result};

use diffractometer::BankTable;
use pulses::SynthPulses;

pub use chunk_encoding::{ChunkCoding, EncodedPiece, Encoder, Press};
#[cfg(not(feature = "libhdf5"))]
pub use no_libhdf5::NexusWriter;
pub use write_order::{BankField, ChunkOrder, DatasetPiece, DatasetPieces};
#[cfg(feature = "libhdf5")]
pub use writer::NexusWriter;

/// Bytes per event: its pixel and its time of flight.
const EVENT_BYTES: u64 = 8;
/// The most elements of a chunk: 16 MiB of events' ids.
const MOST_CHUNK: u64 = 4 << 20;
const MOST_BANKS: u32 = 1000;
/// Elements that are written together in a contiguous dataset.
const CONTIGUOUS_PIECE: u64 = 1 << 20;

/// The storage of a dataset's elements in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetLayout {
    /// Contiguous.
    Contiguous,
    /// In chunks of this many elements.
    Chunked(u64),
}

/// Parses `contiguous`, or the elements of a chunk such as `2048` or `1Mi`.
impl FromStr for DatasetLayout {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        if text == "contiguous" {
            return Ok(Self::Contiguous);
        }
        let (number, factor) = match text.strip_suffix("Ki").map(|n| (n, 1 << 10)) {
            Some(found) => found,
            None => text.strip_suffix("Mi").map_or((text, 1), |n| (n, 1 << 20)),
        };
        let elements =
            number.parse().ok().and_then(|n: u64| n.checked_mul(factor)).filter(|n| *n > 0);
        let expected = "\"contiguous\", or a chunk's elements as in 2048 or 1Mi";
        elements.map(Self::Chunked).ok_or_else(|| Fault::new(0, format!("{text:?}"), expected))
    }
}

/// How the events spread over the banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// All banks get the same number.
    Even,
    /// Each bank gets fewer than the previous one, by a constant factor: the first 3.5 times the
    /// mean, the last a ninth of the mean.
    Skewed,
}

/// Parses `even` or `skewed`.
impl FromStr for Weights {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        match name {
            "even" => Ok(Self::Even),
            "skewed" => Ok(Self::Skewed),
            _ => Err(Fault::new(0, format!("{name:?}"), "even or skewed")),
        }
    }
}

/// The versions of libhdf5 that a file is for. They determine the structure of its chunk indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Libver {
    /// Any: B-trees.
    Earliest,
    /// 1.10 and later: extensible arrays.
    Latest,
}

/// Parses `earliest` or `latest`, the names in h5py.
impl FromStr for Libver {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        match name {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            _ => Err(Fault::new(0, format!("{name:?}"), "earliest or latest")),
        }
    }
}

/// The representation of `event_time_zero`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PulseTimes {
    /// Seconds since its attribute `offset`, as float64.
    Seconds,
    /// Nanoseconds since 1970, as uint64. The attribute `offset` states 1970.
    Nanoseconds,
}

/// Parses `seconds` or `nanoseconds`.
impl FromStr for PulseTimes {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        match name {
            "seconds" => Ok(Self::Seconds),
            "nanoseconds" => Ok(Self::Nanoseconds),
            _ => Err(Fault::new(0, format!("{name:?}"), "seconds or nanoseconds")),
        }
    }
}

/// The parameters of a synthetic run.
#[derive(Debug, Clone, PartialEq)]
pub struct NexusRecipe {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The approximate number of events of all banks.
    pub events: u64,
    /// The number of banks of detectors.
    pub banks: u32,
    /// How the events spread over the banks.
    pub weights: Weights,
    /// The storage of each dataset of events. Chunks are no longer than their dataset.
    pub layout: DatasetLayout,
    /// The order of the chunks in the file.
    pub order: ChunkOrder,
    /// The chunks' filters.
    pub coding: ChunkCoding,
    /// The versions of libhdf5 that the file is for.
    pub libver: Libver,
    /// The representation of `event_time_zero`.
    pub pulse_times: PulseTimes,
    /// Mean number of events per pulse.
    pub events_per_pulse: f64,
    /// Pulses per second.
    pub frequency: f64,
}

impl Default for NexusRecipe {
    /// 1.6 GB: 200 million events in 40 banks, in chunks of 2,048 in the order of arrival.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 200_000_000,
            banks: 40,
            weights: Weights::Skewed,
            layout: DatasetLayout::Chunked(2048),
            order: ChunkOrder::Live,
            coding: ChunkCoding::NONE,
            libver: Libver::Earliest,
            pulse_times: PulseTimes::Seconds,
            events_per_pulse: 20_000.0,
            frequency: 60.0,
        }
    }
}

impl NexusRecipe {
    /// The default recipe with about `bytes` bytes of uncompressed events.
    #[must_use]
    pub fn with_bytes(seed: u64, bytes: u64) -> Self {
        Self { seed, events: bytes / EVENT_BYTES, ..Self::default() }
    }

    /// Sets the layout, and the order that it requires: contiguous datasets lie one after another.
    pub fn lay(&mut self, layout: DatasetLayout) {
        self.layout = layout;
        if layout == DatasetLayout::Contiguous {
            self.order = ChunkOrder::Ordered;
        }
    }

    /// A file name that encodes the recipe.
    #[must_use]
    pub fn file_name(&self) -> String {
        let Self { seed, events, banks, weights, layout, order, coding, libver, .. } = self;
        let layout = match layout {
            DatasetLayout::Contiguous => "contiguous".into(),
            DatasetLayout::Chunked(elements) => format!("{elements}-{}", order.name()),
        };
        let mut name = format!("synth-{events}-events-{banks}-banks-{layout}");
        let usual = Self::default();
        if *coding != ChunkCoding::NONE {
            name += &format!("-{}", coding.to_string().replace(':', ""));
        }
        if *weights != usual.weights {
            name += "-even";
        }
        if *libver != usual.libver {
            name += "-latest";
        }
        if self.pulse_times != usual.pulse_times {
            name += "-ns";
        }
        if self.events_per_pulse != usual.events_per_pulse {
            name += &format!("-{}-a-pulse", self.events_per_pulse);
        }
        if self.frequency != usual.frequency {
            name += &format!("-{}Hz", self.frequency);
        }
        if *seed != usual.seed {
            name += &format!("-seed{seed}");
        }
        name + "-v1.nxs"
    }

    /// Checks that a run of this recipe can be made.
    ///
    /// # Errors
    /// [`Error::Usage`] about an invalid field.
    pub fn check(&self) -> Result<()> {
        let wrong = match self.layout {
            _ if !(1..=MOST_BANKS).contains(&self.banks) => {
                format!("banks is {}, expected 1 to {MOST_BANKS}", self.banks)
            }
            DatasetLayout::Chunked(n) if !(1..=MOST_CHUNK).contains(&n) => {
                format!("a chunk has {n} elements, expected 1 to {MOST_CHUNK}")
            }
            DatasetLayout::Contiguous if self.order != ChunkOrder::Ordered => {
                "contiguous datasets lie one after the other; expected the order \"ordered\"".into()
            }
            DatasetLayout::Contiguous if self.coding != ChunkCoding::NONE => {
                "only chunks have filters; expected none".into()
            }
            _ if !(1.0..=1e9).contains(&self.events_per_pulse) => {
                format!("events_per_pulse is {}, expected 1 to 1e9", self.events_per_pulse)
            }
            _ if !(1e-3..=1e6).contains(&self.frequency) => {
                format!("frequency is {}, expected 0.001 to 1e6", self.frequency)
            }
            _ if self.events > u64::MAX >> 16 => {
                format!("events is {}, expected at most 2^48", self.events)
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(format!("recipe: {wrong}").into()))
    }

    /// The share of the events in a bank.
    fn share(&self, bank: u32) -> f64 {
        let of = |bank: u32| match self.weights {
            Weights::Even => 1.0,
            Weights::Skewed => libm::exp(-3.5 * f64::from(bank) / f64::from(self.banks)),
        };
        of(bank) / (0..self.banks).map(of).sum::<f64>()
    }
}

/// A recipe and the tables computed from it. Threads can share it.
#[derive(Debug)]
pub struct SynthRun {
    recipe: NexusRecipe,
    pulses: SynthPulses,
    banks: Vec<SynthBank>,
}

#[derive(Debug)]
struct SynthBank {
    /// Event `i` is made from the hash of this key and `i`.
    key: u64,
    events: u64,
    table: BankTable,
}

impl SynthRun {
    /// Checks the recipe and computes its tables. That takes a few milliseconds per bank, and
    /// longer for many pulses.
    ///
    /// # Errors
    /// [`Error::Usage`] for a recipe that cannot be made.
    pub fn new(recipe: NexusRecipe) -> Result<Self> {
        recipe.check()?;
        let pulses = SynthPulses::new(&recipe);
        let banks = (0..recipe.banks).map(|bank| SynthBank {
            key: mix(
                mix(recipe.seed ^ u64::from_be_bytes(*b"neutrons")).wrapping_add(u64::from(bank))
            ),
            events: pulses.events(bank),
            table: BankTable::new(&recipe, bank),
        });
        let banks = banks.collect();
        Ok(Self { recipe, pulses, banks })
    }

    /// The recipe.
    pub fn recipe(&self) -> &NexusRecipe {
        &self.recipe
    }

    /// The number of events of a bank.
    pub fn events(&self, bank: u32) -> u64 {
        self.bank(bank).map_or(0, |bank| bank.events)
    }

    /// The number of pulses, the same for each bank.
    pub fn pulses(&self) -> u64 {
        self.pulses.count()
    }

    /// Bytes of the events of all banks, uncompressed.
    pub fn bytes(&self) -> u64 {
        self.banks.iter().map(|bank| bank.events * EVENT_BYTES).sum()
    }

    /// The number of elements of a bank's dataset.
    pub fn len(&self, bank: u32, field: BankField) -> u64 {
        match field {
            BankField::EventId | BankField::EventTimeOffset => self.events(bank),
            BankField::EventIndex | BankField::EventTimeZero => self.pulses(),
        }
    }

    /// Elements per chunk of a bank's dataset. For a contiguous dataset, elements that are written
    /// together.
    pub fn piece(&self, bank: u32, field: BankField) -> u64 {
        match self.recipe.layout {
            DatasetLayout::Contiguous => CONTIGUOUS_PIECE,
            DatasetLayout::Chunked(elements) => elements.min(self.len(bank, field).max(1)),
        }
    }

    /// Bytes of a piece's values, uncompressed.
    pub fn piece_bytes(&self, piece: DatasetPiece) -> u64 {
        let DatasetPiece { bank, field, number } = piece;
        let elements = self.piece(bank, field);
        self.len(bank, field).saturating_sub(number * elements).min(elements) * field.bytes() as u64
    }

    /// The pieces of all datasets, in the order of the file.
    pub fn pieces(&self) -> DatasetPieces<'_> {
        DatasetPieces::new(self)
    }

    /// The number of [`SynthRun::pieces`].
    pub fn piece_count(&self) -> u64 {
        (0..self.recipe.banks)
            .flat_map(|bank| BankField::ALL.map(|field| self.pieces_of(bank, field)))
            .sum()
    }

    fn pieces_of(&self, bank: u32, field: BankField) -> u64 {
        self.len(bank, field).div_ceil(self.piece(bank, field))
    }

    /// Appends `event_id` of some of a bank's events, little-endian.
    pub fn ids(&self, bank: u32, events: Range<u64>, out: &mut Vec<u8>) {
        self.each(bank, events, out, |table, bits| table.id(bits).to_le_bytes());
    }

    /// Appends `event_time_offset` of some of a bank's events, in microseconds, little-endian.
    pub fn offsets(&self, bank: u32, events: Range<u64>, out: &mut Vec<u8>) {
        self.each(bank, events, out, |table, bits| table.microseconds(bits).to_le_bytes());
    }

    fn each(
        &self,
        bank: u32,
        events: Range<u64>,
        out: &mut Vec<u8>,
        of: impl Fn(&BankTable, u64) -> [u8; 4],
    ) {
        let Some(bank) = self.bank(bank) else { return };
        out.extend(
            events.flat_map(|i| of(&bank.table, mix(bank.key.wrapping_add(i.wrapping_mul(STEP))))),
        );
    }

    fn bank(&self, bank: u32) -> Option<&SynthBank> {
        self.banks.get(bank as usize)
    }
}

#[cfg(test)]
mod tests;
