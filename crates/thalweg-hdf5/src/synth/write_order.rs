//! The order in which chunks are written to a file.

use std::collections::VecDeque;
use std::str::FromStr;

use thalweg_codec::splitmix::mix;
use thalweg_io::Fault;
use thalweg_io::random::Chance;

use super::SynthRun;

/// The order of chunks in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkOrder {
    /// In the order of arrival of neutrons. The bank of the next full chunk is random, weighted by
    /// the banks.
    Live,
    /// One chunk of each bank in turn, as long as the bank has chunks left.
    Interleaved,
    /// Dataset after dataset, as after repacking.
    Ordered,
}

impl ChunkOrder {
    /// The name of the order.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Interleaved => "interleaved",
            Self::Ordered => "ordered",
        }
    }
}

/// Parses the name of an order.
impl FromStr for ChunkOrder {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        let known = [Self::Live, Self::Interleaved, Self::Ordered]
            .into_iter()
            .find(|order| order.name() == name);
        known.ok_or_else(|| Fault::new(0, format!("{name:?}"), "live, interleaved or ordered"))
    }
}

/// The datasets of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BankField {
    /// The pixel of each event.
    EventId,
    /// The time of flight of each event.
    EventTimeOffset,
    /// The first event of each pulse.
    EventIndex,
    /// The time of each pulse.
    EventTimeZero,
}

impl BankField {
    /// All datasets.
    pub const ALL: [Self; 4] =
        [Self::EventTimeZero, Self::EventIndex, Self::EventId, Self::EventTimeOffset];

    /// The name of the dataset.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventId => "event_id",
            Self::EventTimeOffset => "event_time_offset",
            Self::EventIndex => "event_index",
            Self::EventTimeZero => "event_time_zero",
        }
    }
}

/// A part of a dataset: a chunk, if it has chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetPiece {
    /// The number of the bank, from 0.
    pub bank: u32,
    /// The dataset of the bank.
    pub field: BankField,
    /// The number of the piece, from 0. A piece has [`SynthRun::piece`] elements.
    pub number: u64,
}

/// The pieces of all datasets, in the order of the file.
#[derive(Debug)]
pub struct DatasetPieces<'a> {
    run: &'a SynthRun,
    chance: Chance,
    /// For each bank: the remaining chunks of events, and their total.
    left: Vec<(u64, u64)>,
    steps: u64,
    done: u64,
    /// Chunks of pulses that are written, and their total.
    pulses: (u64, u64),
    /// The bank whose turn it is.
    turn: usize,
    next: VecDeque<DatasetPiece>,
}

impl<'a> DatasetPieces<'a> {
    pub(super) fn new(run: &'a SynthRun) -> Self {
        let count = |bank| run.pieces_of(bank, BankField::EventId);
        let left: Vec<(u64, u64)> = (0..run.recipe.banks).map(count).map(|n| (n, n)).collect();
        let steps = left.iter().map(|(left, _)| left).sum();
        let chance = Chance::new(run.recipe.seed ^ mix(u64::from_be_bytes(*b"arriving")), 0);
        let pulses = (0, run.pieces_of(0, BankField::EventIndex));
        Self { run, chance, left, steps, done: 0, pulses, turn: 0, next: VecDeque::new() }
    }

    /// The bank of the next chunk of events; `None` if there are no more.
    fn bank(&mut self) -> Option<usize> {
        if self.done == self.steps {
            return None;
        }
        let bank = match self.run.recipe.order {
            // A draw from the remaining chunks gives every order of the chunks the same
            // probability.
            ChunkOrder::Live => {
                let mut drawn = self.chance.bits() % (self.steps - self.done);
                self.left.iter().position(|(left, _)| match drawn.checked_sub(*left) {
                    Some(rest) => {
                        drawn = rest;
                        false
                    }
                    None => true,
                })?
            }
            _ => {
                let banks = self.left.len();
                (self.turn..self.turn + banks)
                    .map(|bank| bank % banks)
                    .find(|bank| self.left[*bank].0 > 0)?
            }
        };
        self.turn = bank + 1;
        self.done += 1;
        Some(bank)
    }

    /// Queues the next pieces.
    fn step(&mut self) {
        let banks = self.run.recipe.banks;
        if self.run.recipe.order == ChunkOrder::Ordered {
            // Each step writes one bank.
            let Some(bank) = u32::try_from(self.done).ok().filter(|bank| *bank < banks) else {
                return;
            };
            self.done += 1;
            for field in BankField::ALL {
                let count = self.run.pieces_of(bank, field);
                self.next.extend((0..count).map(|number| DatasetPiece { bank, field, number }));
            }
            return;
        }
        if let Some(bank) = self.bank()
            && let Some((left, all)) = self.left.get_mut(bank)
        {
            let bank = bank as u32;
            let number = *all - *left;
            *left -= 1;
            self.next.extend(
                [BankField::EventId, BankField::EventTimeOffset].map(|field| DatasetPiece {
                    bank,
                    field,
                    number,
                }),
            );
        }
        // Chunks of pulses are written at the rate of the events.
        while self.pulses.0 < self.pulses.1
            && u128::from(self.pulses.0 + 1) * u128::from(self.steps)
                <= u128::from(self.done) * u128::from(self.pulses.1)
        {
            let number = self.pulses.0;
            for bank in 0..banks {
                self.next.extend(
                    [BankField::EventTimeZero, BankField::EventIndex].map(|field| DatasetPiece {
                        bank,
                        field,
                        number,
                    }),
                );
            }
            self.pulses.0 += 1;
        }
    }
}

impl Iterator for DatasetPieces<'_> {
    type Item = DatasetPiece;

    fn next(&mut self) -> Option<DatasetPiece> {
        if self.next.is_empty() {
            self.step();
        }
        self.next.pop_front()
    }
}
