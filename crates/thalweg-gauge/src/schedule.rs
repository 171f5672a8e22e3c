//! In which order the arms take their turns.
//!
//! Each round runs every arm once, so that round i of two arms is a pair. Every second round runs backwards (ABBA), so
//! that a steady drift of the machine favours each side of a pair equally often; and each two rounds the order is
//! rotated, so that no arm always follows the same one.

/// The order of the arms (by index), round by round.
pub fn abba(arms: usize, rounds: usize) -> Vec<Vec<usize>> {
    (0..rounds)
        .map(|round| {
            let mut order: Vec<usize> = (0..arms).collect();
            if arms > 0 {
                // Rotating two arms would only swap the meaning of forwards and backwards.
                order.rotate_left(if arms > 2 { (round / 2) % arms } else { 0 });
            }
            if round % 2 == 1 {
                order.reverse();
            }
            order
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arms_alternate() {
        assert_eq!(abba(2, 4), [[0, 1], [1, 0], [0, 1], [1, 0]]);
    }

    #[test]
    fn every_round_runs_every_arm_once() {
        for arms in 0..6 {
            for order in abba(arms, 13) {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..arms).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn each_two_rounds_cancel_a_steady_drift_for_every_pair() {
        for arms in 2..6 {
            let rounds = abba(arms, 2 * arms);
            for two in rounds.chunks(2) {
                for a in 0..arms {
                    let places: usize = two.iter().filter_map(|order| order.iter().position(|&x| x == a)).sum();
                    assert_eq!(places, arms - 1);
                }
            }
        }
    }
}
