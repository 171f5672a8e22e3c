//! A store that answers so many requests, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

/// A store that answers so many requests of so many bytes in all. Further ones are
/// [cancelled](Error::Cancelled).
#[derive(Debug)]
pub(super) struct MeteredStore {
    inner: Arc<dyn Store>,
    requests: AtomicU64,
    bytes: AtomicU64,
    is_spent: AtomicBool,
}

impl MeteredStore {
    pub(super) fn new(inner: Arc<dyn Store>, requests: u64, bytes: u64) -> Self {
        let (requests, bytes) = (requests.into(), bytes.into());
        Self { inner, requests, bytes, is_spent: AtomicBool::new(false) }
    }

    /// Whether a request was refused.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }
}

/// Takes something of what is left, if that is enough.
fn take(left: &AtomicU64, count: u64) -> bool {
    let taken = |left: u64| left.checked_sub(count);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
}

impl Store for MeteredStore {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.is_spent() || !take(&self.requests, 1) || !take(&self.bytes, buf.len() as u64) {
            self.is_spent.store(true, Ordering::Relaxed);
            return Err(Error::Cancelled);
        }
        self.inner.read_at(offset, buf)
    }
}
