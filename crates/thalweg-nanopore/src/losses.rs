//! The losses of a conversion between formats.

use std::fmt;

/// A property of a read that a format cannot hold exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// The offset has more digits than a `float`.
    Offset,
    /// The range divided by the digitisation has more digits than a `float`.
    Range,
    /// The digitisation differs from the number of steps that the run has.
    Digitisation,
    /// The sampling rate differs from that of the run, or is not a whole number up to 65,535.
    SamplingRate,
    /// A current has more digits than a `float`.
    Current,
    /// The end reason is missing, or no release of POD5 knows it; its Python library fails on both.
    EndReason,
    /// A channel that is no number from 1 to 2^32 - 1.
    Channel,
    /// Text that is not UTF-8.
    Text,
    /// A value that its column cannot hold.
    Value,
}

impl Loss {
    const ALL: [Self; 9] = [
        Self::Offset,
        Self::Range,
        Self::Digitisation,
        Self::SamplingRate,
        Self::Current,
        Self::EndReason,
        Self::Channel,
        Self::Text,
        Self::Value,
    ];

    /// What is lost, and what is stored in its place.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Offset => "the offset is rounded to a float",
            Self::Range => "range / digitisation is rounded to a float",
            Self::Digitisation => {
                "the digitisation is not that of its run (adc_max - adc_min + 1), \
                 which takes its place"
            }
            Self::SamplingRate => "the sampling rate is not that of its run, which takes its place",
            Self::Current => "median_before is rounded to a float",
            Self::EndReason => {
                "the end reason is missing or none that POD5 knows; `unknown` takes its place"
            }
            Self::Channel => "channel_number is no number that POD5 can hold; it is left out",
            Self::Text => "a text is not UTF-8; it is left out",
            Self::Value => "a value does not fit its column; it is left out",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The bit of [`Losses::complete`].
const COMPLETED: u16 = 1 << 15;

/// Losses of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses(u16);

impl Losses {
    /// Adds one.
    pub fn add(&mut self, loss: Loss) {
        self.0 |= loss.bit();
    }

    /// These and others.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 & !COMPLETED == 0
    }

    /// Notes that a missing value was replaced by what follows from others. Nothing is lost.
    pub(crate) fn complete(&mut self) {
        self.0 |= COMPLETED;
    }

    /// Whether all fields are stored as they were.
    pub(crate) fn keeps_fields(self) -> bool {
        self.0 == 0
    }

    /// One by one.
    pub fn iter(self) -> impl Iterator<Item = Loss> {
        Loss::ALL.into_iter().filter(move |loss| self.0 & loss.bit() != 0)
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, loss) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            f.write_str(loss.what())?;
        }
        Ok(())
    }
}
