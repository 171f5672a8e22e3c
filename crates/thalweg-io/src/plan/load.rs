//! The load of a store, and the time that it takes.

use std::ops::Range;
use std::time::Duration;

use super::most_in_flight;
use crate::model::StoreModel;
use crate::store::Asked;

/// The part of the shorter of two overlapping stages that adds to the total time, because each
/// stage at times waits for the other. Measured with `thalweg doctor --measure` (docs/doctor.md,
/// "Predicted and measured").
const NOT_HIDDEN: f64 = 0.125;

/// The load of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Requests.
    pub requests: u64,
    /// Bytes, including the gaps that are read.
    pub bytes: u64,
}

impl Load {
    /// The load of `ranges`, which are in offset order. Gaps up to `gap` bytes are read, and ranges
    /// are merged into requests of at most `block` bytes, as by [`gather`](super::gather).
    pub fn of<'a>(
        ranges: impl IntoIterator<Item = &'a Range<u64>>,
        gap: u64,
        block: usize,
    ) -> Self {
        let mut load = Self { requests: 0, bytes: 0 };
        let mut here: Option<Range<u64>> = None;
        for range in ranges {
            match &mut here {
                Some(here)
                    if range.end <= here.end
                        || range.start <= here.end.saturating_add(gap)
                            && range.end - here.start <= block as u64 =>
                {
                    let end = here.end.max(range.end);
                    load.bytes += end - here.end;
                    here.end = end;
                }
                _ => {
                    load.requests += 1;
                    load.bytes += range.end - range.start;
                    here = Some(range.clone());
                }
            }
        }
        load
    }

    /// Bytes of a typical request: the mean, at least 1.
    pub fn usual(self) -> usize {
        (self.bytes / self.requests.max(1)).max(1) as usize
    }

    /// Seconds that the bytes alone take: bytes over bandwidth.
    pub fn transfer_s(self, model: &StoreModel) -> f64 {
        self.bytes as f64 / model.bandwidth.max(1.0)
    }

    /// Seconds that the requests alone take: requests over request rate.
    pub fn requests_s(self, model: &StoreModel) -> f64 {
        self.requests as f64 / model.request_rate.max(1.0)
    }

    /// The predicted time of a store that has many requests in flight: its latency, the longer of
    /// transfer and requests, and an eighth of the shorter. If latencies vary, or each request has
    /// a connection of its own, the slowest request may take longer than all together: then its
    /// time counts, and an eighth of the rest. Zero if there are no requests.
    ///
    /// This is the store's share; [`overlapped`] adds the processor's.
    ///
    /// ```
    /// use thalweg_io::model::StoreModel;
    /// use thalweg_io::plan::Load;
    ///
    /// let model =
    ///     StoreModel { latency_s: 0.5, bandwidth: 1e9, request_rate: 1e3, ..StoreModel::LOCAL };
    /// let load = Load { requests: 800, bytes: 2_000_000_000 };
    /// assert_eq!(load.predicted(&model).as_secs_f64(), 0.5 + 2.0 + 0.8 / 8.0);
    /// ```
    pub fn predicted(self, model: &StoreModel) -> Duration {
        self.predicted_with(model, 0.0)
    }

    /// The predicted time of a store and of a processor that decodes what comes, in order, for
    /// `processor_s` seconds. They work at the same time, but what follows the slowest request of
    /// those in flight is decoded after it.
    pub fn predicted_with(self, model: &StoreModel, processor_s: f64) -> Duration {
        if self.requests == 0 {
            return Duration::ZERO;
        }
        let busy_s = overlapped(self.transfer_s(model), self.requests_s(model));
        let in_flight = self.requests.min(most_in_flight(model));
        let slowest_s = model.slowest_s(in_flight) - model.latency_s + self.request_s(model);
        // A file's requests do not vary.
        let share = if slowest_s > 0.0 { in_flight as f64 / self.requests as f64 } else { 0.0 };
        let behind_s = processor_s * share;
        let all_s = overlapped(overlapped(busy_s, processor_s), slowest_s + behind_s);
        Duration::try_from_secs_f64(model.latency_s + all_s).unwrap_or(Duration::MAX)
    }

    /// Seconds that a typical request takes for its connection. 0 if there are no connections.
    fn request_s(self, model: &StoreModel) -> f64 {
        model.connection.map_or(0.0, |rate| self.usual() as f64 / rate.max(1.0))
    }

    /// The cost, in seconds, that decides between gaps: the longer of transfer and requests plus
    /// half of the shorter. The shorter counts because each request and each byte also takes
    /// processor time.
    pub(super) fn worth_s(self, model: &StoreModel) -> f64 {
        /// Chosen by the sweep of docs/formats/hdf5.md, "Which gaps are read".
        const PROCESSOR_SHARE: f64 = 0.5;
        let transfer_s = self.transfer_s(model);
        let requests_s = self.requests_s(model);
        transfer_s.max(requests_s) + transfer_s.min(requests_s) * PROCESSOR_SHARE
    }
}

/// Seconds that two concurrent stages take: the longer, and an eighth of the shorter.
///
/// ```
/// assert_eq!(thalweg_io::plan::overlapped(2.0, 0.8), 2.1);
/// ```
pub fn overlapped(a_s: f64, b_s: f64) -> f64 {
    a_s.max(b_s) + a_s.min(b_s) * NOT_HIDDEN
}

/// The predicted time of requests some of which wait for the answers of others: each round takes
/// as long as its slowest request.
///
/// ```
/// use thalweg_io::model::StoreModel;
/// use thalweg_io::plan::in_rounds;
/// use thalweg_io::store::Asked;
///
/// let asked = Asked { rounds: 3, requests: 100, bytes: 0 };
/// assert_eq!(in_rounds(asked, &StoreModel::NETWORK).as_secs_f64(), 0.02, "5,000 a second");
/// let steady = StoreModel { latency_p99_s: None, connection: None, ..StoreModel::S3 };
/// assert_eq!(in_rounds(asked, &steady).as_secs_f64(), 0.09);
/// assert!(in_rounds(asked, &StoreModel::S3).as_secs_f64() > 0.3);
/// ```
pub fn in_rounds(asked: Asked, model: &StoreModel) -> Duration {
    let Asked { rounds, requests, bytes } = asked;
    let load = Load { requests, bytes };
    let slowest_s = model.slowest_s(requests / rounds.max(1)) + load.request_s(model);
    let waits_s = (rounds as f64 * slowest_s).max(load.requests_s(model));
    Duration::try_from_secs_f64(waits_s + load.transfer_s(model)).unwrap_or(Duration::MAX)
}

/// Seconds that a reader takes for `requests` that it makes one after another. Each takes the mean
/// latency, or the interval of the request rate if that is longer.
pub fn in_turn(requests: u64, model: &StoreModel) -> f64 {
    requests as f64 * model.mean_latency_s().max(1.0 / model.request_rate.max(1.0))
}
