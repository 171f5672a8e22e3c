//! Memory that several threads fill at the same time, each a different part.
#![allow(unsafe_code)] // Each block states its contract.

/// Bytes that several threads write. The code that hands out the parts ensures that no two overlap.
#[derive(Debug)]
pub(super) struct SharedBuffer {
    start: *mut u8,
    len: usize,
    /// The owner of the bytes, if the canvas owns them.
    own: Option<Vec<u8>>,
}

// SAFETY: only `write` and `part` use the pointer, and their callers promise that no two threads
// use the same bytes.
unsafe impl Send for SharedBuffer {}
// SAFETY: as above.
unsafe impl Sync for SharedBuffer {}

impl SharedBuffer {
    /// A canvas over the caller's memory.
    ///
    /// # Safety
    /// The canvas is not used after `memory` is no longer borrowed.
    pub(super) unsafe fn over(memory: &mut [u8]) -> Self {
        Self { start: memory.as_mut_ptr(), len: memory.len(), own: None }
    }

    /// A canvas that owns its memory.
    pub(super) fn new(mut bytes: Vec<u8>) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), own: Some(bytes) }
    }

    /// The bytes of a canvas that owns its memory, after all writing has ended.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.own.unwrap_or_default()
    }

    /// A part that the caller may write.
    ///
    /// # Panics
    /// If they lie outside.
    ///
    /// # Safety
    /// No other code uses these bytes while the part is in use.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn part(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "a part outside of {} bytes",
            self.len
        );
        // SAFETY: inside the memory, as was just checked; nobody else uses it, as the caller
        // promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }
}
