//! Bytes that are in memory already.

use std::sync::Arc;

use super::{Store, check_inside};
use crate::error::Result;

/// A store over bytes in memory.
///
/// ```
/// use thalweg::store::{MemoryStore, Store};
/// let store = MemoryStore::new("greeting", b"hello".to_vec());
/// let mut buf = [0; 2];
/// store.read_at(3, &mut buf)?;
/// assert_eq!(&buf, b"lo");
/// # Ok::<(), thalweg::Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    name: Arc<str>,
    bytes: Vec<u8>,
}

impl MemoryStore {
    /// Calls `bytes` by a `name` for messages.
    pub fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes }
    }

    /// Reads all of `other` into memory.
    pub fn load(other: &dyn Store) -> Result<Self> {
        let len = usize::try_from(other.size()).map_err(|_| crate::Error::Usage("too large for memory".into()))?;
        let mut bytes = vec![0; len];
        other.read_at(0, &mut bytes)?;
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
