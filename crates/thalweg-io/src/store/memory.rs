//! Bytes in memory.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use super::{Store, check_inside};
use crate::control::Control;
use crate::error::{Error, Result};

/// Bytes that are loaded between two checks for cancellation.
const PIECE: usize = 16 << 20;

/// A store over bytes in memory.
///
/// ```
/// use thalweg_io::store::MemoryStore;
/// use thalweg_io::store::Store;
/// let store = MemoryStore::new("greeting", b"hello".to_vec());
/// let mut buf = [0; 2];
/// store.read_at(3, &mut buf)?;
/// assert_eq!(&buf, b"lo");
/// # Ok::<(), thalweg_io::Error>(())
/// ```
pub struct MemoryStore {
    name: Arc<str>,
    bytes: Vec<u8>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

impl MemoryStore {
    /// A store of `bytes`. Messages use `name`.
    pub fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes }
    }

    /// Reads all of `other` into memory, unless `control` is cancelled.
    ///
    /// # Errors
    /// [`Error::Io`] if there is not enough memory; the errors of [`Store::read_at`];
    /// [`Error::Cancelled`].
    pub fn load(other: &dyn Store, control: &Control) -> Result<Self> {
        let mut bytes = Vec::new();
        let len = usize::try_from(other.size()).unwrap_or(usize::MAX);
        bytes.try_reserve_exact(len).map_err(|_| {
            Error::io(other.name(), "loading all of it into memory", ErrorKind::OutOfMemory)
        })?;
        bytes.resize(len, 0);
        for (i, piece) in bytes.chunks_mut(PIECE).enumerate() {
            control.check()?;
            other.read_at((i * PIECE) as u64, piece)?;
        }
        Ok(Self { name: other.name().clone(), bytes })
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(&self.name, self.size(), offset, buf.len())?;
        let start = offset as usize;
        buf.copy_from_slice(&self.bytes[start..start + buf.len()]);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}
