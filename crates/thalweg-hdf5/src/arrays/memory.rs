//! Memory for arrays that are read whole.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};
use thalweg_io::{Error, Result};

/// Smaller arrays come from the allocator.
const LEAST_MAP: usize = 4 << 20;

/// Zeroed memory for an array. Large arrays are in huge pages where the system has them: the page
/// faults of small pages, one for each 4 KiB, took as long as decoding. numpy does the same.
#[derive(Debug)]
pub struct Memory(Allocation);

#[derive(Debug)]
enum Allocation {
    Map(MmapMut),
    Heap(Vec<u8>),
}

impl Memory {
    /// Zeroed memory of `len` bytes.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has not enough memory.
    pub fn new(len: usize) -> Result<Self> {
        let none = |e| Error::io(&"memory".into(), "making room for an array in", e);
        if len < LEAST_MAP {
            return Ok(Self(Allocation::Heap(vec![0; len])));
        }
        let map = MmapMut::map_anon(len).map_err(none)?;
        // If this fails, small pages work, too.
        let _ = map.advise(Advice::HugePage);
        Ok(Self(Allocation::Map(map)))
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Allocation::Map(map) => map,
            Allocation::Heap(vec) => vec,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Allocation::Map(map) => map,
            Allocation::Heap(vec) => vec,
        }
    }
}
