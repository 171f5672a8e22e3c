//! Looks: moments at which the interval is computed, with a common bound on the probability of a
//! miss.
//!
//! Of the first n values, the number that lie below the median is a walk of n fair coin tosses,
//! whatever their distribution. An interval of order statistics misses the median when that number
//! is too small or too large, so the chance that *any* of the looks misses can be computed exactly,
//! look by look. Each look may spend its share of the 5 % (Lan and DeMets, Biometrika 1983), and
//! what it leaves, because ranks are whole numbers, goes to those that follow. Since all the
//! intervals hold at once with 95 %, a run may end at any look, for whatever reason.

use serde::{Deserialize, Serialize};

use super::CONFIDENCE;

/// A moment at which the intervals are computed, fixed before the first trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// After this many rounds.
    pub rounds: usize,
    /// The bound on the probability that this look or an earlier one misses.
    pub alpha: f64,
}

/// Looks from `least` to `most` rounds, with equal shares of the 5 %. Each look has half as many
/// rounds again as the one before. If `least` rounds are too few for an interval at that share, the
/// first look comes later. There is one look if the first look is also the last.
pub fn looks(least: usize, most: usize) -> Vec<Look> {
    let useful = |looks: &Vec<Look>| {
        looks.first().is_some_and(|l| matches!(ranks(&[(l.rounds, l.alpha)])[..], [Some(_)]))
    };
    (least..most)
        .map(|first| shared(first, most))
        .find(useful)
        .unwrap_or_else(|| shared(most, most))
}

fn shared(first: usize, most: usize) -> Vec<Look> {
    let mut rounds = vec![first];
    while let Some(&last) = rounds.last().filter(|&&last| last < most) {
        let next = (last + last.div_ceil(2)).max(last + 1);
        // A look right before the last one would use up its share for little gain.
        rounds.push(if next + next / 5 >= most { most } else { next });
    }
    let count = rounds.len() as f64;
    let share = |i: usize| (1.0 - CONFIDENCE) * (i + 1) as f64 / count;
    rounds.into_iter().enumerate().map(|(i, rounds)| Look { rounds, alpha: share(i) }).collect()
}

/// For each look, given as (number of pairs, `alpha`): the k for which the interval [k-th smallest,
/// k-th largest] is the narrowest that keeps within `alpha`. `None` if the look has too few pairs
/// for any interval.
///
/// The numbers of pairs must not depend on the values of the pairs, and must not decrease.
pub(crate) fn ranks(looks: &[(usize, f64)]) -> Vec<Option<usize>> {
    // walk[i]: the chance that i of the values lie below the median, and that no earlier look
    // missed.
    let mut walk = vec![1.0];
    let mut missed = 0.0;
    let mut ranks = Vec::with_capacity(looks.len());
    for &(pairs, alpha) in looks {
        while walk.len() <= pairs {
            walk.push(0.0);
            for i in (0..walk.len()).rev() {
                let below = if i > 0 { walk.get(i - 1).copied().unwrap_or(0.0) } else { 0.0 };
                if let Some(p) = walk.get_mut(i) {
                    *p = f64::midpoint(*p, below);
                }
            }
        }
        let n = walk.len() - 1;
        let mut rank = 0;
        while rank < n / 2 {
            let chance: f64 = [rank, n - rank].iter().filter_map(|&i| walk.get(i)).sum();
            if missed + chance > alpha {
                break;
            }
            missed += chance;
            for i in [rank, n - rank] {
                if let Some(p) = walk.get_mut(i) {
                    *p = 0.0;
                }
            }
            rank += 1;
        }
        ranks.push((rank > 0).then_some(rank));
    }
    ranks
}
