//! Memory for arrays that are read whole.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};
use thalweg_io::{Error, Result};

/// Arrays of fewer bytes come from the allocator.
const LEAST_MAP: usize = 4 << 20;

/// Zeroed memory for an array. Large arrays lie in huge pages where the system has them: with small
/// pages, the page faults, one for each 4 KiB, took as long as decoding. numpy does the same.
#[derive(Debug)]
pub struct Memory(Allocation);

#[derive(Debug)]
enum Allocation {
    Map(MmapMut),
    Heap(Vec<u8>),
}

impl Memory {
    /// Memory of `len` zero bytes.
    ///
    /// # Errors
    /// [`Error::Io`] if there is not enough memory.
    pub fn new(len: usize) -> Result<Self> {
        let none = |e| Error::io(&"memory".into(), "making room for an array in", e);
        if len < LEAST_MAP {
            return Ok(Self(Allocation::Heap(vec![0; len])));
        }
        let map = MmapMut::map_anon(len).map_err(none)?;
        // Without huge pages the memory still works, only slower.
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
