//! The order of the arms in each round.
//!
//! Each round runs every arm once, so that round i of two arms is a pair.

use serde::{Deserialize, Serialize};

/// How the order of a round is chosen. It depends on the round's number alone, so that a resumed
/// run continues it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmOrder {
    /// Every second round runs backwards, so that a steady drift of the machine favours each side
    /// of a pair equally often. The order is rotated every two rounds, so that no arm always
    /// follows the same arm.
    #[default]
    Abba,
    /// Each round is shuffled independently, so that no periodic disturbance of the machine favours
    /// one side of a pair.
    Random {
        /// The seed. Equal seeds give equal sequences of orders.
        seed: u64,
    },
}

impl ArmOrder {
    /// The indexes of the arms in the order of round `round`.
    pub fn round(self, arms: usize, round: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..arms).collect();
        match self {
            Self::Abba => {
                // A rotation of two arms would only swap the forward and the backward rounds.
                if arms > 2 {
                    order.rotate_left((round / 2) % arms);
                }
                if round % 2 == 1 {
                    order.reverse();
                }
            }
            Self::Random { seed } => {
                SplitMix(mix(seed) ^ round as u64).shuffle(&mut order);
            }
        }
        order
    }
}

/// The random number generator SplitMix64 (Steele, Lea, Flood 2014), which gives equal numbers on
/// every machine.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Shuffles by the method of Fisher and Yates. The bias of each choice is less than 2^-50 for
    /// fewer than 2^14 items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arms_alternate() {
        let abba: Vec<_> = (0..4).map(|round| ArmOrder::Abba.round(2, round)).collect();
        assert_eq!(abba, [[0, 1], [1, 0], [0, 1], [1, 0]]);
    }

    #[test]
    fn every_round_runs_every_arm_once() {
        for order in [ArmOrder::Abba, ArmOrder::Random { seed: 7 }] {
            for (arms, round) in (0..6).flat_map(|arms| (0..13).map(move |round| (arms, round))) {
                let mut sorted = order.round(arms, round);
                sorted.sort_unstable();
                assert_eq!(sorted, (0..arms).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn each_two_rounds_cancel_a_steady_drift_for_every_pair() {
        for arms in 2..6 {
            for two in 0..arms {
                let rounds =
                    [ArmOrder::Abba.round(arms, 2 * two), ArmOrder::Abba.round(arms, 2 * two + 1)];
                for a in 0..arms {
                    let places: usize =
                        rounds.iter().filter_map(|order| order.iter().position(|&x| x == a)).sum();
                    assert_eq!(places, arms - 1);
                }
            }
        }
    }

    #[test]
    fn the_order_of_a_pair_is_random() {
        let order = ArmOrder::Random { seed: 1 };
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let first = (0..10_000).filter(|&round| {
                let order = order.round(3, round);
                order.iter().position(|&x| x == a) < order.iter().position(|&x| x == b)
            });
            let first = first.count();
            // 4 standard errors.
            assert!((4800..5200).contains(&first), "{a} before {b}: {first} of 10,000");
        }
        let orders = |seed| {
            (0..50).map(|round| ArmOrder::Random { seed }.round(3, round)).collect::<Vec<_>>()
        };
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }
}
