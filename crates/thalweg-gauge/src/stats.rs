//! Medians of paired ratios, with an interval that holds for any distribution.
//!
//! Times on a shared machine drift and have heavy tails, so this module assumes no distribution.
//! The interval for the median of the paired log-ratios is that of the sign test (order statistics,
//! binomial), whose coverage is exact for any continuous distribution of independent pairs. It is
//! computed at moments that are fixed beforehand ([`looks()`]): repeated looks that stop at the
//! first difference would find one too often.

mod looks;
mod pair_count;
pub(crate) mod trend;

use serde::{Deserialize, Serialize};

use looks::ranks;

pub use looks::{Look, looks};
pub use pair_count::PairCount;

/// Fewest pairs for which a 95 % interval exists. With five pairs, even the widest interval misses
/// with a probability of 6.25 %.
pub const MIN_PAIRS: usize = 6;

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// The median: the middle value, or the mean of the middle two. `None` without values, or if one is
/// not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let high = sorted.get(sorted.len() / 2)?;
    let low = sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(*low, *high))
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty() && sorted.iter().all(|v| !v.is_nan())).then_some(sorted)
}

/// The interval for the median of `values` that misses it with a probability of at most `alpha`.
/// `None` for too few values.
pub fn sign_interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let rank = *ranks(&[(values.len(), alpha)]).first()?;
    order_statistics(values, rank?)
}

/// The `rank`-th smallest and the `rank`-th largest value.
fn order_statistics(values: &[f64], rank: usize) -> Option<(f64, f64)> {
    let sorted = sorted(values)?;
    Some((*sorted.get(rank - 1)?, *sorted.get(sorted.len() - rank)?))
}

/// The ratio of one arm's time to another's: the median over pairs, and its interval if there are
/// enough pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the paired ratios (taken over their logarithms).
    pub median: f64,
    /// The 95 % interval; `None` below [`MIN_PAIRS`].
    pub interval: Option<(f64, f64)>,
    /// The number of pairs.
    pub pairs: usize,
}

/// Two times of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The round, from 0.
    pub round: usize,
    /// Seconds that the arm took.
    pub arm_s: f64,
    /// Seconds that the baseline took.
    pub baseline_s: f64,
}

impl Pair {
    fn log_ratio(&self) -> f64 {
        (self.arm_s / self.baseline_s).ln()
    }
}

/// Compares the arms of `pairs` at the last of the planned `looks` that `rounds` complete rounds
/// have reached. Later pairs are not used. Before the first look there is a median and no interval.
///
/// `None` without pairs, or if a time is not positive.
pub fn ratio(pairs: &[Pair], looks: &[Look], rounds: usize) -> Option<Ratio> {
    let positive = |s: f64| s > 0.0 && s.is_finite();
    let usable = pairs.iter().all(|p| positive(p.arm_s) && positive(p.baseline_s));
    let until = |rounds: usize| {
        pairs.iter().filter(|p| p.round < rounds).map(Pair::log_ratio).collect::<Vec<_>>()
    };
    let reached: Vec<&Look> = looks.iter().filter(|look| look.rounds <= rounds).collect();
    let logs = until(reached.last().map_or(usize::MAX, |look| look.rounds));
    let median = median(&logs).filter(|_| usable)?.exp();
    // A rejected trial leaves its round without a pair, so a look may have fewer pairs than rounds.
    let counts: Vec<_> =
        reached.iter().map(|look| (until(look.rounds).len(), look.alpha)).collect();
    let interval =
        ranks(&counts).last().copied().flatten().and_then(|rank| order_statistics(&logs, rank));
    Some(Ratio {
        median,
        interval: interval.map(|(low, high)| (low.exp(), high.exp())),
        pairs: logs.len(),
    })
}

/// The finding of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioFinding {
    /// The arm takes less time than the baseline.
    Faster,
    /// The arm takes more time than the baseline.
    Slower,
    /// The interval reaches into the noise. This does not prove equality.
    NoDifferenceShown,
    /// There are fewer pairs than an interval needs.
    TooFewPairs,
}

impl Ratio {
    /// Half the width of its interval, as a share of the ratio: 0.05 for +-5 %.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high / low).sqrt() - 1.0)
    }
}

impl RatioFinding {
    /// The finding for `ratio` when identical arms differed by a factor of `floor` (1 if that was
    /// not measured).
    ///
    /// The whole interval must lie beyond the floor, in either direction.
    pub fn of(ratio: &Ratio, floor: f64) -> Self {
        match ratio.interval {
            None => Self::TooFewPairs,
            Some((_, high)) if high < 1.0 / floor => Self::Faster,
            Some((low, _)) if low > floor => Self::Slower,
            Some(_) => Self::NoDifferenceShown,
        }
    }
}

/// The factor, 1 or more, by which identical arms differed in either direction. A claim must exceed
/// it.
///
/// This is the median of their ratio, or the far end of its interval if the interval excludes 1. In
/// the second case, something favours one arm for its place in the plan.
pub fn noise_floor(identical: &Ratio) -> f64 {
    let fold = |x: f64| if x < 1.0 { 1.0 / x } else { x };
    match identical.interval {
        Some((low, high)) if low > 1.0 || high < 1.0 => fold(low).max(fold(high)),
        _ => fold(identical.median),
    }
}

impl std::fmt::Display for RatioFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceShown => "no difference shown",
            Self::TooFewPairs => "too few pairs",
        })
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
