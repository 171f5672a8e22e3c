//! Gathers small pieces of the output and writes them a slot at a time, past the page cache.
//!
//! Scattered chunks arrive in pieces of a few KiB. Writing each piece separately costs more system
//! time than disc time, for the lock of the file and a page per 4 KiB. The page cache gains
//! nothing, because all bytes must be on the disc before the file gets its name. A slot is a range
//! of the output that starts at a multiple of its length. Slots that the pieces fill completely are
//! gathered in memory and written at once.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, OFlags};
use thalweg_io::store::AlignedBuf;

use super::copy_bytes::ByteMove;

/// Possible lengths of a slot in bytes, the best first. Above 1 MiB, a disc gets no faster.
const LENGTHS: [u64; 5] = [1 << 20, 512 << 10, 256 << 10, 128 << 10, 64 << 10];

/// In bytes. Less output than this goes through the page cache, because it may be read soon.
const LEAST: u64 = 64 << 20;

/// Gathers small pieces in memory and writes them a slot at a time.
#[derive(Debug)]
pub(super) struct SlotWriter {
    len: u64,
    /// For each slot, whether the pieces fill it completely.
    whole: Vec<bool>,
    open: Mutex<HashMap<u64, Arc<Mutex<FileSlot>>>>,
    spare: Mutex<Vec<AlignedBuf>>,
    direct: File,
    /// Set once the file system has refused a direct write.
    refused: AtomicBool,
}

#[derive(Debug)]
struct FileSlot {
    bytes: AlignedBuf,
    filled: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SlotWriter {
    /// Makes slots for moves, as long as `most` bytes of memory allow. The moves are in the order
    /// in which they will come and do not overlap. `None` if slots would not pay, or if the file
    /// system does not support direct writes.
    pub(super) fn new(path: &Path, moves: &[ByteMove], most: u64) -> Option<Self> {
        if moves.iter().map(|one| one.len).sum::<u64>() < LEAST {
            return None;
        }
        let direct = File::options()
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path)
            .ok()?;
        Self::over(direct, moves, most)
    }

    fn over(direct: File, moves: &[ByteMove], most: u64) -> Option<Self> {
        let (len, whole) = LENGTHS.into_iter().find_map(|len| {
            let (whole, peak) = plan(moves, len);
            (peak * len <= most && whole.contains(&true)).then_some((len, whole))
        })?;
        // Asks for contiguous space on the disc. A refusal does not matter.
        let mut at = 0;
        for run in whole.chunk_by(|a, b| a == b) {
            let start = at * len;
            let bytes = run.len() as u64 * len;
            at += run.len() as u64;
            if run.first() == Some(&true) {
                let _ = rustix::fs::fallocate(&direct, FallocateFlags::KEEP_SIZE, start, bytes);
            }
        }
        let open = Mutex::default();
        let spare = Mutex::default();
        Some(Self { len, whole, open, spare, direct, refused: AtomicBool::new(false) })
    }

    /// Takes bytes of the output at offset `at`. Bytes that belong to no gathered slot, and slots
    /// that the file system refuses, are passed to `write`.
    pub(super) fn put<E>(
        &self,
        mut bytes: &[u8],
        mut at: u64,
        mut write: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let number = at / self.len;
            let inside = at % self.len;
            let here = (self.len - inside).min(bytes.len() as u64) as usize;
            let (part, rest) = bytes.split_at(here);
            if self.whole.get(number as usize) == Some(&true) {
                if let Some(full) = self.fill(number, inside as usize, part) {
                    let start = number * self.len;
                    if self.refused.load(Ordering::Relaxed)
                        || self.direct.write_all_at(&full, start).is_err()
                    {
                        self.refused.store(true, Ordering::Relaxed);
                        write(&full, start)?;
                    }
                    locked(&self.spare).push(full);
                }
            } else {
                write(part, at)?;
            }
            (bytes, at) = (rest, at + here as u64);
        }
        Ok(())
    }

    /// Copies a part into a slot. Returns the bytes of the slot once it is full.
    fn fill(&self, number: u64, inside: usize, part: &[u8]) -> Option<AlignedBuf> {
        let slot = locked(&self.open)
            .entry(number)
            .or_insert_with(|| Arc::new(Mutex::new(self.slot())))
            .clone();
        let mut slot = locked(&slot);
        slot.bytes[inside..inside + part.len()].copy_from_slice(part);
        slot.filled += part.len() as u64;
        if slot.filled < self.len {
            return None;
        }
        locked(&self.open).remove(&number);
        Some(std::mem::replace(&mut slot.bytes, AlignedBuf::new(0)))
    }

    fn slot(&self) -> FileSlot {
        let bytes = locked(&self.spare).pop().unwrap_or_else(|| AlignedBuf::new(self.len as usize));
        FileSlot { bytes, filled: 0 }
    }
}

/// For slots of `len` bytes: which of them the moves fill completely, and the most of these that
/// are open at a time.
fn plan(moves: &[ByteMove], len: u64) -> (Vec<bool>, u64) {
    let end = moves.iter().map(|one| one.to + one.len).max().unwrap_or(0);
    let mut coming = vec![0; end.div_ceil(len) as usize];
    let each = |f: &mut dyn FnMut(usize, u64)| {
        for one in moves {
            let mut at = one.to;
            let end = one.to + one.len;
            while at < end {
                let part = (len - at % len).min(end - at);
                f((at / len) as usize, part);
                at += part;
            }
        }
    };
    each(&mut |number, part| coming[number] += part);
    // A slot with too many bytes, from a malformed file, is not gathered. There, the last write
    // counts.
    let whole: Vec<bool> = coming.iter().map(|&bytes| bytes == len).collect();
    let mut filled = vec![0; whole.len()];
    let mut open = 0_u64;
    let mut peak = 0;
    each(&mut |number, part| {
        if whole[number] {
            open += u64::from(filled[number] == 0);
            peak = peak.max(open);
            filled[number] += part;
            open -= u64::from(filled[number] == len);
        }
    });
    (whole, peak)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Holds for any order, with and without writes past the page cache.
        #[test]
        fn all_bytes_come_to_their_places(
            parts in prop::collection::vec((1..90_000_u64, prop::bool::weighted(0.1)), 1..30),
            seed in any::<u64>(), most in (64 << 10)..(4_u64 << 20), direct in any::<bool>(),
        ) {
            let mut at = 100;
            let mut moves: Vec<ByteMove> = parts.iter().map(|&(len, gap)| {
                at += u64::from(gap) * 5000;
                at += len;
                ByteMove { from: at.wrapping_mul(seed | 1), to: at - len, len }
            }).collect();
            moves.sort_unstable();
            let mut expected = vec![0; at as usize];
            let bytes = |one: &ByteMove| -> Vec<u8> {
                (one.to..one.to + one.len).map(|i| (i % 251) as u8).collect()
            };
            for one in &moves {
                expected[one.to as usize..(one.to + one.len) as usize].copy_from_slice(&bytes(one));
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            let plain = File::create(&path).unwrap();
            plain.set_len(at).unwrap();
            let flags = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
            let opened = File::options().write(true).custom_flags(flags).open(&path);
            let Ok(other) = opened else { return Ok(()) };
            let write = |bytes: &[u8], at| plain.write_all_at(bytes, at);
            match SlotWriter::over(other, &moves, most) {
                Some(slots) => {
                    prop_assert!(plan(&moves, slots.len).1 * slots.len <= most);
                    for one in &moves {
                        slots.put(&bytes(one), one.to, write).unwrap();
                    }
                    prop_assert!(locked(&slots.open).is_empty());
                }
                None => moves.iter().for_each(|one| write(&bytes(one), one.to).unwrap()),
            }
            prop_assert!(std::fs::read(&path).unwrap() == expected);
        }
    }
}
