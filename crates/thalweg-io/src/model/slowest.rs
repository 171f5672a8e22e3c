//! The slowest of many requests.

use std::f64::consts::{LN_2, SQRT_2};

use super::StoreModel;

/// Standard deviations from the median of a normal distribution to its 99th percentile.
const SIGMAS_TO_P99: f64 = 2.326;

/// A 99th percentile that is more times as long as the median is no latency.
const MOST_FACTOR: f64 = 1e4;

/// Of 2^64 requests, none is slower than so many standard deviations.
const MOST_SIGMAS: f64 = 10.0;

/// Steps of the search.
const HALVINGS: usize = 50;

impl StoreModel {
    /// Seconds until `requests` that are made at once all have their first byte; the median.
    ///
    /// It is the latency if latencies do not vary. If they do, they are log-normal.
    ///
    /// ```
    /// use thalweg_io::model::StoreModel;
    /// let one = StoreModel::S3.slowest_s(1);
    /// assert!((one / StoreModel::S3.latency_s - 1.0).abs() < 1e-6);
    /// let hundred = StoreModel::S3.slowest_s(100);
    /// assert!(hundred > 4.5 * one && hundred < 5.5 * one);
    /// assert_eq!(StoreModel::LOCAL.slowest_s(100), StoreModel::LOCAL.latency_s);
    /// ```
    pub fn slowest_s(&self, requests: u64) -> f64 {
        let median = self.latency_s;
        let Some(sigma) = self.sigma() else { return median };
        // The part of requests that is slower than so many standard deviations of the logarithms.
        let missing = |sigmas: f64| libm::erfc(sigmas / SQRT_2) / 2.0;
        // All are there in half of the cases: (1 - missing)^requests = 1/2.
        let at_median = -libm::expm1(-LN_2 / requests.max(1) as f64);
        let (mut early, mut late) = (0.0, MOST_SIGMAS);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(early, late);
            if missing(middle) > at_median { early = middle } else { late = middle }
        }
        median * (late * sigma).exp()
    }

    /// Mean seconds from a request to its first byte.
    pub fn mean_latency_s(&self) -> f64 {
        self.latency_s * self.sigma().map_or(1.0, |sigma| (sigma * sigma / 2.0).exp())
    }

    /// The standard deviation of the logarithms of latencies; `None` if they do not vary.
    fn sigma(&self) -> Option<f64> {
        let factor = self.latency_p99_s? / self.latency_s;
        (factor > 1.0 && factor <= MOST_FACTOR).then(|| factor.ln() / SIGMAS_TO_P99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_requests_take_longer() {
        let times = [1, 3, 4, 10, 100, 1000, 100_000].map(|n| StoreModel::S3.slowest_s(n));
        assert!(times.is_sorted(), "{times:?}");
        assert!((times[3] / 0.081 - 1.0).abs() < 0.01, "{times:?}");
    }

    #[test]
    fn percentiles_that_make_no_sense_leave_the_median() {
        for p99 in [0.0, 0.03, -1.0, f64::NAN, 1e9, f64::INFINITY] {
            let model = StoreModel { latency_p99_s: Some(p99), ..StoreModel::S3 };
            assert_eq!(model.slowest_s(100), 0.03);
        }
        let none = StoreModel { latency_s: 0.0, ..StoreModel::S3 };
        assert_eq!(none.slowest_s(100), 0.0);
    }
}
