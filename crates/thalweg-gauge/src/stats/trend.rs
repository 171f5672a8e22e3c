//! Anomalies of a series of measurements: a trend, and values far from the others.

use super::median;

/// The fewest values for which a trend is tested: five values are in perfect order by chance once
/// in sixty.
const FEWEST: usize = 6;

/// Longer series are thinned out to this length.
const MOST: usize = 1000;

/// The two-sided 1 % quantile of the normal distribution.
const Z: f64 = 2.576;

/// A significant change over a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    /// From the first value to the last, along the line of the median slope (Theil and Sen).
    pub(crate) change: f64,
}

/// The trend of `values`, taken at `at`, if the Mann-Kendall test finds one (two-sided, 1 %).
pub(crate) fn trend(at: &[f64], values: &[f64]) -> Option<Trend> {
    // The number of slopes grows with the square of the number of points, so a long series is
    // represented by evenly spaced points.
    let step = values.len().div_ceil(MOST).max(1);
    let points: Vec<(f64, f64)> =
        at.iter().copied().zip(values.iter().copied()).step_by(step).collect();
    let n = points.len() as f64;
    if points.len() < FEWEST {
        return None;
    }
    let mut score = 0.0;
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, &(x, y)) in points.iter().enumerate() {
        for &(later, value) in points.iter().skip(i + 1) {
            score += f64::from(i8::from(value > y) - i8::from(value < y));
            slopes.push((value - y) / (later - x));
        }
    }
    // There is no correction for ties. The variance is then larger, so ties make a trend harder to
    // find.
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let z = (score.abs() - 1.0) / variance.sqrt();
    let span = points.last()?.0 - points.first()?.0;
    (z > Z).then_some(Trend { change: median(&slopes)? * span })
}

/// The outliers of `values`: farther from the median than 3.5 standard deviations, estimated from
/// the median absolute deviation (Iglewicz and Hoaglin 1993), and farther than `least`.
pub(crate) fn outliers(values: &[f64], least: f64) -> Vec<usize> {
    let Some(middle) = median(values) else { return Vec::new() };
    let far: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let Some(mad) = median(&far) else { return Vec::new() };
    let limit = (3.5 * mad / 0.6745).max(least);
    far.iter().enumerate().filter(|&(_, &d)| d > limit).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::SplitMix;

    fn at(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64).collect()
    }

    #[test]
    fn a_trend_is_found_with_its_size() {
        let noisy: Vec<f64> =
            (0..20).map(|i| f64::from(i) * 0.01 + if i % 2 == 0 { 0.02 } else { -0.02 }).collect();
        let found = trend(&at(20), &noisy);
        assert!(found.is_some_and(|t| (t.change - 0.19).abs() < 0.03), "{found:?}");
        let falling: Vec<f64> = (0..6).map(|i| -f64::from(i)).collect();
        assert_eq!(trend(&at(6), &falling), Some(Trend { change: -5.0 }));
        assert_eq!(trend(&at(5), &falling), None, "too few");
        assert_eq!(trend(&at(9), &[1.0; 9]), None);
        let long: Vec<f64> = (0..20_000).map(f64::from).collect();
        assert_eq!(trend(&long, &long), Some(Trend { change: 19_980.0 }));
        let gaps = trend(&[0.0, 1.0, 2.0, 10.0, 11.0, 12.0], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
        assert_eq!(gaps, Some(Trend { change: 12.0 }), "rounds without a pair");
    }

    #[test]
    fn chance_is_rarely_taken_for_a_trend() {
        let mut random = SplitMix(1);
        let found = (0..2000).filter(|_| {
            let values: Vec<f64> = (0..20).map(|_| (random.next() >> 11) as f64).collect();
            trend(&at(20), &values).is_some()
        });
        let found = found.count();
        assert!((5..=40).contains(&found), "{found} of 2000; 1 % are meant");
    }

    #[test]
    fn values_far_from_the_others_are_outliers() {
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 5.0, 1.0, 1.05], 0.01), [3]);
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.0, 1.05], 0.01), [0; 0]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.005], 0.01), [0; 0], "too small to matter");
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.02], 0.01), [3], "where the others agree exactly");
        assert_eq!(outliers(&[], 0.01), [0; 0]);
    }
}
