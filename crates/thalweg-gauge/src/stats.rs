//! Medians of paired ratios, and an interval that holds whatever the distribution is.
//!
//! Times on a shared machine drift and have heavy tails, so nothing here assumes a distribution: the interval for the
//! median of the paired log-ratios is the sign test's (order statistics, binomial), whose coverage is exact for any
//! continuous distribution of independent pairs. It needs a fixed number of pairs, decided beforehand: looking again
//! and again and stopping at the first difference would find one too often.

use serde::{Deserialize, Serialize};

/// Fewest pairs for which a 95 % interval exists: with five, even the widest has a 6.25 % chance to miss.
pub const MIN_PAIRS: usize = 6;

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// The middle value; the mean of the middle two if their number is even. None of none, or if one is not a number.
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

/// The interval for the median of `values` that misses it with a chance of at most `alpha`. None if there are too few.
pub fn sign_interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let sorted = sorted(values)?;
    let k = sign_rank(sorted.len(), alpha)?;
    Some((*sorted.get(k - 1)?, *sorted.get(sorted.len() - k)?))
}

/// The largest k for which [k-th smallest, k-th largest] of `n` values misses the median with a chance <= `alpha`.
///
/// The chance is 2 P(X <= k - 1) for X binomial (n, 1/2): that many or fewer of the values fall on one side.
fn sign_rank(n: usize, alpha: f64) -> Option<usize> {
    let mut below = 0.0;
    let mut log_choose = 0.0; // ln C(n, i): the number itself overflows for n > 1000
    let mut rank = None;
    for i in 0..n / 2 {
        below += f64::exp(log_choose - n as f64 * std::f64::consts::LN_2);
        if 2.0 * below > alpha {
            break;
        }
        rank = Some(i + 1);
        log_choose += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    rank
}

/// How many times as long one arm took as another: the median over pairs, and its interval if there are enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the paired ratios (taken over their logarithms).
    pub median: f64,
    /// The 95 % interval; none below [`MIN_PAIRS`].
    pub interval: Option<(f64, f64)>,
    /// Pairs behind it.
    pub pairs: usize,
}

/// Compares pairs (time of the arm, time of the baseline). None if there are none, or one time is not positive.
pub fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let usable = pairs.iter().all(|&(a, b)| a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite());
    let logs: Vec<f64> = pairs.iter().map(|&(a, b)| (a / b).ln()).collect();
    let median = median(&logs).filter(|_| usable)?.exp();
    let interval = sign_interval(&logs, 1.0 - CONFIDENCE).map(|(low, high)| (low.exp(), high.exp()));
    Some(Ratio { median, interval, pairs: pairs.len() })
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The arm takes less time than the baseline.
    Faster,
    /// The arm takes more time than the baseline.
    Slower,
    /// The interval reaches into the noise; that is not a proof of equality.
    NoDifferenceShown,
    /// Fewer pairs than an interval needs.
    TooFewPairs,
}

impl Finding {
    /// What `ratio` shows when identical arms differed by a factor of `noise` (1 if that was not measured).
    ///
    /// The whole interval must lie beyond the noise, in either direction.
    pub fn of(ratio: &Ratio, noise: f64) -> Self {
        let noise = if noise < 1.0 { 1.0 / noise } else { noise };
        match ratio.interval {
            None => Self::TooFewPairs,
            Some((_, high)) if high < 1.0 / noise => Self::Faster,
            Some((low, _)) if low > noise => Self::Slower,
            Some(_) => Self::NoDifferenceShown,
        }
    }
}

impl std::fmt::Display for Finding {
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
mod tests;
