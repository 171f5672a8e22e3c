//! Properties of the interval that hold for any times and looks.

use proptest::prelude::*;

use super::looks::ranks;
use super::{CONFIDENCE, Look, Pair, looks, ratio, sign_interval};

fn pairs_of(times: &[(f64, f64)]) -> Vec<Pair> {
    times
        .iter()
        .enumerate()
        .map(|(round, &(arm_s, baseline_s))| Pair { round, arm_s, baseline_s })
        .collect()
}

fn times(pairs: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((1e-3..1e3, 1e-3..1e3), pairs)
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

proptest! {
    /// Counts the misses over all ways in which the pairs can fall to either side of the median.
    #[test]
    fn no_interim_look_errs_more_often_than_its_share(
        first in 1_usize..12,
        more in prop::collection::vec(0_usize..5, 0..4),
    ) {
        let mut rounds = vec![first];
        for more in more {
            rounds.push((rounds[rounds.len() - 1] + more).min(16));
        }
        let share = |i: usize| (1.0 - CONFIDENCE) * (i + 1) as f64 / rounds.len() as f64;
        let looks: Vec<(usize, f64)> =
            rounds.iter().enumerate().map(|(i, &n)| (n, share(i))).collect();
        let ranks = ranks(&looks);
        let most = rounds[rounds.len() - 1];
        let mut missed = vec![0_u32; looks.len()];
        for sides in 0_u32..1 << most {
            let misses = |&(&(n, _), rank): &(&(usize, f64), &Option<usize>)| {
                let below = (sides & ((1 << n) - 1)).count_ones() as usize;
                rank.is_some_and(|k| below < k || n - below < k)
            };
            if let Some(first) = looks.iter().zip(&ranks).position(|look| misses(&look)) {
                missed.iter_mut().skip(first).for_each(|m| *m += 1);
            }
        }
        for ((&(n, alpha), &missed), &rank) in looks.iter().zip(&missed).zip(&ranks) {
            let chance = f64::from(missed) / f64::from(1_u32 << most);
            prop_assert!(chance <= alpha, "{looks:?} {ranks:?}: {chance} after {n}");
            prop_assert!(rank.is_none_or(|k| 2 * k <= n), "{looks:?} {ranks:?}");
        }
    }

    #[test]
    fn interim_looks_ascend_and_the_first_can_be_used(least in 6_usize..60, more in 0_usize..200) {
        let looks = looks(least, least + more);
        let sorted = looks.is_sorted_by(|a, b| a.rounds < b.rounds && a.alpha < b.alpha);
        prop_assert!(sorted, "{looks:?}");
        prop_assert!(looks[0].rounds >= least);
        let last = looks[looks.len() - 1];
        prop_assert_eq!(last.rounds, least + more);
        prop_assert!((last.alpha - (1.0 - CONFIDENCE)).abs() < 1e-12);
        let shares: Vec<_> = looks.iter().map(|l| (l.rounds, l.alpha)).collect();
        prop_assert!(ranks(&shares).iter().all(Option::is_some), "{looks:?}");
    }

    /// A higher confidence never gives a narrower interval, and the interval contains the median.
    #[test]
    fn intervals_nest(
        values in prop::collection::vec(-1e3..1e3, 6..60),
        a in 1e-6..0.4,
        b in 1e-6..0.4,
    ) {
        let wide = sign_interval(&values, f64::min(a, b));
        let narrow = sign_interval(&values, f64::max(a, b));
        if let Some((low, high)) = wide {
            let inner = narrow.unwrap_or((f64::NAN, f64::NAN));
            prop_assert!(low <= inner.0 && inner.1 <= high);
            let median = super::median(&values).unwrap_or(f64::NAN);
            prop_assert!(inner.0 <= median && median <= inner.1);
        }
    }

    #[test]
    fn swapping_the_arms_inverts_the_ratio(times in times(1..=40)) {
        let n = times.len();
        let swapped: Vec<_> = times.iter().map(|&(a, b)| (b, a)).collect();
        let r = ratio(&pairs_of(&times), &looks(n, n), n);
        let s = ratio(&pairs_of(&swapped), &looks(n, n), n);
        prop_assert!(r.zip(s).is_some_and(|(r, s)| close(r.median, 1.0 / s.median)));
        let intervals = r.and_then(|r| r.interval).zip(s.and_then(|s| s.interval));
        prop_assert_eq!(intervals.is_some(), n >= 6);
        let mirrored =
            |((low, high), (l, h))| close(low, 1.0 / h) && close(high, 1.0 / l);
        prop_assert!(intervals.is_none_or(mirrored));
    }

    /// Pairs after the last reached look do not change the ratio. The distance of an outlier does
    /// not change the median.
    #[test]
    fn only_complete_looks_count(
        times in times(8..=40),
        later in times(1..=3),
        factor in 1.0..1e6,
    ) {
        let looks = [Look { rounds: 8, alpha: 0.02 }, Look { rounds: 44, alpha: 0.05 }];
        let pairs = pairs_of(&times);
        let here = ratio(&pairs[..8], &looks, 8);
        prop_assert!(here.is_some_and(|r| r.pairs == 8 && r.interval.is_some()));
        prop_assert_eq!(ratio(&pairs, &looks, times.len()), here);
        let more: Vec<_> = times.iter().chain(&later).copied().collect();
        prop_assert_eq!(ratio(&pairs_of(&more), &looks, times.len()), here);
        let mut sorted = pairs[..8].to_vec();
        sorted.sort_by(|a, b| f64::total_cmp(&(a.arm_s / a.baseline_s), &(b.arm_s / b.baseline_s)));
        sorted[7].arm_s *= factor;
        let farther = ratio(&sorted, &[], 0).map(|r| r.median);
        prop_assert_eq!(farther, ratio(&pairs[..8], &[], 0).map(|r| r.median));
    }
}
