//! What reading all objects of this process took.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::open::Counts;

use crate::retries::Tally;

/// The tallies of the objects that are open, and what those took that are not any more.
static TALLIES: Mutex<(Vec<Arc<Tally>>, Counts)> =
    Mutex::new((Vec::new(), Counts { requests: 0, retries: 0, hedges: 0, bytes: 0 }));

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

/// What reading objects took, since the process started.
pub(crate) fn totals() -> Counts {
    let tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
    tallies.0.iter().map(|tally| tally.counts()).fold(tallies.1, sum)
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
        }
    }
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        requests: a.requests + b.requests,
        retries: a.retries + b.retries,
        hedges: a.hedges + b.hedges,
        bytes: a.bytes + b.bytes,
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
