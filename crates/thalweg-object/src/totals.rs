//! What reading all objects of this process took.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use thalweg_io::open::{Counts, Reasons};

use crate::retries::Tally;

/// The tallies of the objects that are open, and what those took that are not any more.
static TALLIES: LazyLock<Mutex<(Vec<Arc<Tally>>, Counts)>> = LazyLock::new(Mutex::default);

/// How often requests were made again, by the reason.
static REASONS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Notes that a request is made again after an error of this kind.
pub(crate) fn retried(kind: ErrorKind) {
    let reason = match kind {
        ErrorKind::ConnectionAborted => 0,
        ErrorKind::NotConnected => 1,
        ErrorKind::TimedOut => 2,
        _ => 3,
    };
    REASONS[reason].fetch_add(1, Relaxed);
}

/// The tally of another object, which counts in [`totals`].
pub(crate) fn tally() -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let mut tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
    let (open, ended) = &mut *tallies;
    open.retain(|tally| {
        let is_open = Arc::strong_count(tally) > 1;
        if !is_open {
            *ended = sum(*ended, tally.counts());
        }
        is_open
    });
    open.push(tally.clone());
    tally
}

/// The tally that the objects of a bucket share, for who reads many small ones: which requests are
/// slow, and whether the server has too many, cannot be told from one of them. `bucket` is the name
/// of the service and bucket.
pub(crate) fn shared_tally(bucket: &str) -> Arc<Tally> {
    static SHARED: Mutex<BTreeMap<String, Arc<Tally>>> = Mutex::new(BTreeMap::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.entry(bucket.to_owned()).or_insert_with(tally).clone()
}

/// What reading objects took, since the process started.
pub(crate) fn totals() -> Counts {
    let tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = tallies.0.iter().map(|tally| tally.counts()).fold(tallies.1, sum);
    let [refused, unconnected, late, broken] =
        REASONS.each_ref().map(|reason| reason.load(Relaxed));
    Counts { reasons: Reasons { refused, unconnected, late, broken }, ..counts }
}

impl Tally {
    /// What the requests took so far.
    pub(crate) fn counts(&self) -> Counts {
        let Self { requests, retries, hedges, bytes, .. } = self;
        Counts {
            requests: requests.load(Relaxed),
            retries: retries.load(Relaxed),
            hedges: hedges.load(Relaxed),
            bytes: bytes.load(Relaxed),
            reasons: Reasons::default(),
        }
    }
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        requests: a.requests + b.requests,
        retries: a.retries + b.retries,
        hedges: a.hedges + b.hedges,
        bytes: a.bytes + b.bytes,
        reasons: Reasons::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_objects_count_too() {
        let before = totals().requests;
        for requests in 1..=3 {
            tally().requests.store(requests, Relaxed);
        }
        let open = tally();
        open.requests.store(10, Relaxed);
        assert_eq!(totals().requests - before, 16);
        let kept = TALLIES.lock().unwrap_or_else(PoisonError::into_inner).0.len();
        drop(open);
        drop(tally());
        assert!(TALLIES.lock().unwrap_or_else(PoisonError::into_inner).0.len() <= kept);
        assert_eq!(totals().requests - before, 16);
    }
}
