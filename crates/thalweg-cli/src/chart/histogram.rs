//! Counts of values whose range is not known beforehand, in bars of round widths.

/// Bins on either side of zero.
const BINS: i64 = 8192;

/// Counts of values in bins, which are made wider when a value does not fit. The outcome does not
/// depend on the order of the values.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    width: f64,
    /// Whether bins were last merged by fives, or never: merging by two and five in turn keeps the
    /// widths round.
    by_fives: bool,
    counts: Vec<u64>,
    /// Values farther from zero than this are not counted in bins.
    most: f64,
    /// How many such values there were.
    pub(crate) outside: u64,
}

impl Histogram {
    /// An empty histogram: its bins are 1 wide at first. Values beyond `most` on either side of
    /// zero are only counted together.
    pub(crate) fn new(most: f64) -> Self {
        Self { width: 1.0, by_fives: true, counts: vec![0; 2 * BINS as usize], most, outside: 0 }
    }

    /// Counts a value `count` times.
    pub(crate) fn add(&mut self, value: f64, count: u64) {
        if value.is_nan() || value.abs() > self.most {
            self.outside += count;
            return;
        }
        loop {
            let bin = (value / self.width).floor() as i64;
            if (-BINS..BINS).contains(&bin) {
                if let Some(sum) = self.counts.get_mut((bin + BINS) as usize) {
                    *sum += count;
                }
                return;
            }
            self.by_fives = !self.by_fives;
            let factor = if self.by_fives { 5 } else { 2 };
            self.counts = coarser(&self.counts, factor);
            self.width *= factor as f64;
        }
    }

    /// Left edge, right edge and count of at most `most` bars, from the first bar that is not empty
    /// to the last. A bar is never narrower than `least`.
    pub(crate) fn bars(&self, most: usize, least: f64) -> Vec<(f64, f64, u64)> {
        let mut factor = 1;
        loop {
            // 1, 2, 5, 10, 20, 50, ...
            let counts =
                if factor == 1 { self.counts.clone() } else { coarser(&self.counts, factor) };
            let width = self.width * factor as f64;
            let Some(first) = counts.iter().position(|&n| n > 0) else { return Vec::new() };
            let last = counts.iter().rposition(|&n| n > 0).unwrap_or(first);
            if (last - first < most && width >= least) || factor > 2 * BINS as usize {
                let edge = |bin: usize| (bin as f64 - (counts.len() / 2) as f64) * width;
                return (first..=last)
                    .map(|bin| (edge(bin), edge(bin + 1), counts.get(bin).copied().unwrap_or(0)))
                    .collect();
            }
            factor = match factor.to_string().as_bytes().first() {
                Some(b'2') => factor / 2 * 5,
                _ => factor * 2,
            };
        }
    }
}

/// Merges each `factor` bins into one, starting from zero on either side.
fn coarser(counts: &[u64], factor: usize) -> Vec<u64> {
    let half = counts.len() / 2;
    let bins = half.div_ceil(factor).max(1);
    let mut wide = vec![0; counts.len().max(2 * bins)];
    let middle = (wide.len() / 2) as i64;
    for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let to = (bin as i64 - half as i64).div_euclid(factor as i64) + middle;
        if let Some(sum) = wide.get_mut(to as usize) {
            *sum += count;
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn bins_hold_what_belongs_there_in_any_order() {
        let values: Vec<f64> = (0..5000).map(|i| f64::from(i * i % 7919) * 37.3 - 900.0).collect();
        let (mut forth, mut back) = (Histogram::new(1e9), Histogram::new(1e9));
        values.iter().for_each(|&value| forth.add(value, 1));
        values.iter().rev().for_each(|&value| back.add(value, 1));
        for most in [1, 2, 7, 100, 1000] {
            let bars = forth.bars(most, 0.0);
            assert_eq!(bars, back.bars(most, 0.0));
            // Zero is an edge, so that the two sides stay separate.
            assert!(bars.len() <= most.max(2), "{} bars of {most}", bars.len());
            for &(left, right, count) in &bars {
                let inside = values.iter().filter(|value| (left..right).contains(value)).count();
                assert_eq!(count, inside as u64, "{left}..{right}");
                let mantissa = format!("{:e}", right - left);
                assert!(
                    ["1e", "2e", "5e"].iter().any(|round| mantissa.starts_with(round)),
                    "{mantissa}"
                );
            }
            assert_eq!(bars.iter().map(|bar| bar.2).sum::<u64>(), 5000);
        }
    }

    #[test]
    fn missing_values_are_counted_apart() {
        let mut histogram = Histogram::new(1e6);
        for value in [f64::NAN, f64::INFINITY, 2e6, -3e6, 1e6, -1e6] {
            histogram.add(value, 2);
        }
        assert_eq!(histogram.outside, 8);
        assert_eq!(histogram.bars(10_000, 0.0).iter().map(|bar| bar.2).sum::<u64>(), 4);
        assert_eq!(Histogram::new(1.0).bars(5, 0.0), []);
    }

    #[test]
    fn bins_are_at_least_as_wide_as_requested() {
        let mut histogram = Histogram::new(1e6);
        (0..100).for_each(|value| histogram.add(f64::from(value), 1));
        let bars = histogram.bars(1000, 15.0);
        assert_eq!(bars.len(), 5);
        assert_eq!(bars[0], (0.0, 20.0, 20));
    }
}
