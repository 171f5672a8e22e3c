//! How many pairs a comparison takes, fixed or until the intervals are narrow enough.

use serde::{Deserialize, Serialize};

use super::{Look, Ratio, looks};

/// How many pairs a comparison takes; a round gives each arm one pair with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairCount {
    /// A fixed number.
    Fixed(usize),
    /// As many as the precision requires. The intervals are computed after fixed numbers of rounds,
    /// and hold for any stopping rule at these looks ([`looks()`]).
    Auto {
        /// The fewest pairs. The first look may need more for an interval.
        least: usize,
        /// The most pairs.
        most: usize,
        /// The half-width of every ratio's 95 % interval that ends the comparison: 0.05 for +-5 %
        /// of the ratio.
        half_width: f64,
    },
}

impl PairCount {
    /// The most rounds there can be.
    pub fn most(&self) -> usize {
        match *self {
            Self::Fixed(n) => n,
            Self::Auto { most, .. } => most,
        }
    }

    /// The moments at which the intervals are computed.
    pub(crate) fn looks(&self) -> Vec<Look> {
        match *self {
            Self::Fixed(n) => looks(n, n),
            Self::Auto { least, most, .. } => looks(least, most),
        }
    }

    /// Whether no more pairs are needed, given the ratios at a planned look.
    pub(crate) fn enough(&self, ratios: &[Ratio]) -> bool {
        match *self {
            Self::Fixed(_) => false, // it always takes the fixed number
            Self::Auto { half_width, .. } => {
                ratios.iter().all(|ratio| ratio.half_width().is_some_and(|got| got <= half_width))
            }
        }
    }
}
