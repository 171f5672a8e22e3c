//! Memory that several threads fill at the same time, each a different part.
#![allow(unsafe_code)] // Each block states its contract.

/// Bytes that several threads write. The code that hands out the parts makes sure that no two
/// overlap.
#[derive(Debug)]
pub(super) struct SharedBuffer {
    start: *mut u8,
    len: usize,
    /// The memory of the bytes, if the buffer owns it.
    own: Option<Vec<u8>>,
}

// SAFETY: only `part` uses the pointer, and its callers promise that no two threads use the same
// bytes.
unsafe impl Send for SharedBuffer {}
// SAFETY: as above.
unsafe impl Sync for SharedBuffer {}

impl SharedBuffer {
    /// A buffer over the caller's memory.
    ///
    /// # Safety
    /// The buffer is not used after the borrow of `memory` ends.
    pub(super) unsafe fn over(memory: &mut [u8]) -> Self {
        Self { start: memory.as_mut_ptr(), len: memory.len(), own: None }
    }

    /// A buffer that owns its memory.
    pub(super) fn new(mut bytes: Vec<u8>) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), own: Some(bytes) }
    }

    /// All bytes of a buffer that owns its memory; empty for a buffer over the caller's memory.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.own.unwrap_or_default()
    }

    /// The `len` bytes from `at` on, which the caller may change.
    ///
    /// # Panics
    /// If the bytes lie outside of the buffer.
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
