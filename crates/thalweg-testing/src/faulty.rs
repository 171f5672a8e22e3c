//! A store that fails on purpose.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

/// When a [`Faulty`] store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// Never.
    None,
    /// Its n-th read, counted from 0, and only that.
    Read(u64),
    /// Every read of the byte at this offset, as with a bad sector.
    Byte(u64),
    /// From its n-th read on, as with a disc or mount that disappeared.
    From(u64),
}

/// A store that answers like another one until it fails with EIO.
pub struct Faulty {
    inner: Arc<dyn Store>,
    fault: StoreFault,
    reads: AtomicU64,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Store>, fault: StoreFault) -> Self {
        Self { inner, fault, reads: AtomicU64::new(0) }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?}, {:?})", self.inner, self.fault)
    }
}

impl Store for Faulty {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let nth = self.reads.fetch_add(1, Ordering::Relaxed);
        let bad = match self.fault {
            StoreFault::None => None,
            StoreFault::Read(n) => (nth == n).then_some(offset),
            StoreFault::From(n) => (nth >= n).then_some(offset),
            StoreFault::Byte(at) => (at >= offset && at - offset < buf.len() as u64).then_some(at),
        };
        match bad {
            Some(at) => Err(Error::io_at(self.name(), "reading", at, rustix::io::Errno::IO)),
            None => self.inner.read_at(offset, buf),
        }
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
}
