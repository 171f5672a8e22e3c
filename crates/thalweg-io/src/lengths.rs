//! Exact statistics of the lengths of any number of reads, in little memory. A length counts
//! samples of signal, or bases.

/// Lengths below this have one counter each. Longer ones are rare, and are kept in a list.
const COUNTED: usize = 1 << 20;

/// The distribution of the lengths of reads, from which exact quantiles follow.
#[derive(Debug, Clone, Default)]
pub struct Lengths {
    /// The number of reads of each length; empty until a read is counted.
    counts: Vec<u64>,
    /// Longer lengths.
    long: Vec<u64>,
}

/// Exact statistics of lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LengthStats {
    /// The greatest length such that reads of at least this length hold half of the sum of lengths.
    pub n50: u64,
    /// The shortest length.
    pub min: u64,
    /// The middle length; the lower one of two.
    pub median: u64,
    /// The mean length.
    pub mean: f64,
    /// The longest length.
    pub max: u64,
}

impl Lengths {
    /// Adds a read.
    pub fn push(&mut self, length: u64) {
        match usize::try_from(length) {
            Ok(short) if short < COUNTED => {
                if self.counts.is_empty() {
                    self.counts.resize(COUNTED, 0);
                }
                if let Some(count) = self.counts.get_mut(short) {
                    *count += 1;
                }
            }
            _ => self.long.push(length),
        }
    }

    /// The statistics; `None` if there are no reads.
    pub fn stats(&mut self) -> Option<LengthStats> {
        self.long.sort_unstable();
        let short = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let ascending = || {
            short
                .clone()
                .map(|(length, &count)| (length as u64, count))
                .chain(self.long.iter().map(|&length| (length, 1)))
        };
        let mut reads = 0;
        let mut all = 0_u128;
        let mut max = 0;
        for (length, count) in ascending() {
            reads += count;
            all += u128::from(length) * u128::from(count);
            max = length;
        }
        let min = ascending().next()?.0;
        let mut before = 0;
        let mut held = 0_u128;
        let mut median = None;
        let mut n50 = max;
        for (length, count) in ascending() {
            if median.is_none() && (before + count) * 2 >= reads {
                median = Some(length);
            }
            // Reads of at least this length hold all but what shorter reads hold.
            if (all - held) * 2 >= all {
                n50 = length;
            }
            before += count;
            held += u128::from(length) * u128::from(count);
        }
        Some(LengthStats {
            n50,
            min,
            median: median.unwrap_or(max),
            mean: all as f64 / reads as f64,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stats(lengths: &[u64]) -> Option<LengthStats> {
        let mut all = Lengths::default();
        lengths.iter().for_each(|&length| all.push(length));
        all.stats()
    }

    #[test]
    fn length_statistics_of_a_textbook_example() {
        // Half of 54 is 27 = 10 + 9 + 8.
        let figures = LengthStats { n50: 8, min: 2, median: 6, mean: 6.0, max: 10 };
        assert_eq!(stats(&[2, 3, 4, 5, 6, 7, 8, 9, 10]), Some(figures));
        assert_eq!(stats(&[]), None);
        let one = LengthStats {
            n50: 5_000_000,
            min: 5_000_000,
            median: 5_000_000,
            mean: 5e6,
            max: 5_000_000,
        };
        assert_eq!(stats(&[5_000_000]), Some(one));
        assert_eq!(stats(&[0, 0]).map(|figures| (figures.n50, figures.mean)), Some((0, 0.0)));
    }

    proptest! {
        /// Compares with the definitions on sorted lengths. Some lengths have no counter.
        #[test]
        fn exact(
            mut lengths in prop::collection::vec(
                prop_oneof![
                    0u64..50,
                    1_048_570u64..1_048_580,
                    any::<u32>().prop_map(u64::from),
                ],
                1..60,
            ),
        ) {
            let figures = stats(&lengths);
            lengths.sort_unstable();
            let total: u64 = lengths.iter().sum();
            let from = |n: u64| lengths.iter().filter(move |&&length| length >= n);
            let holds = |n: u64| from(n).sum::<u64>() * 2 >= total;
            let n50 = lengths.iter().copied().filter(|&n| holds(n)).max();
            let median = lengths.get((lengths.len() - 1) / 2).copied();
            prop_assert_eq!(figures.map(|f| f.n50), n50);
            prop_assert_eq!(figures.map(|f| f.median), median);
            let ends = lengths.first().copied().zip(lengths.last().copied());
            prop_assert_eq!(figures.map(|f| (f.min, f.max)), ends);
            prop_assert_eq!(figures.map(|f| f.mean), Some(total as f64 / lengths.len() as f64));
        }
    }
}
