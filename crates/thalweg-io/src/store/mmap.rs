//! A local file mapped into memory. Reads need no copy and no buffers, but the file must not
//! change.
// Mapping a file and dropping pages of the map; each block states its contract.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, Mmap, UncheckedAdvice};

use super::{FileStore, Store, check_inside};
use crate::error::{Error, Result};

/// Bytes of the most recently touched ranges that stay mapped: more than a run at the default
/// budget uses at once.
const WINDOW: u64 = 128 << 20;

/// A file read through `mmap(2)`. It is never chosen automatically.
///
/// **The file must not change while the store lives.** If something shortens it, touching the lost
/// pages ends the process with SIGBUS, as does a read error of the device; if something writes to
/// it, bytes change under a decoder. [`Store::touch`], which the engine calls before it decodes,
/// turns most of these failures into errors. It cannot catch a change between the check and the
/// use.
///
/// Pages of the file count as resident memory of the process, though the kernel may take them back.
/// Pages that `touch` brought in are unmapped again once 128 MiB (or the bytes set by
/// [`MmapStore::keep`]) more were touched. They stay in the page cache and are mapped again if they
/// are still in use. Pages that were accessed without `touch` stay mapped.
pub struct MmapStore {
    file: FileStore,
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
    keep: u64,
    touched: Mutex<Touched>,
}

/// Ranges that were touched, oldest first.
#[derive(Default)]
struct Touched {
    ranges: VecDeque<Range<u64>>,
    bytes: u64,
}

impl Touched {
    /// Adds a range. Removes and returns the oldest ranges beyond `keep` bytes.
    fn add(&mut self, range: Range<u64>, keep: u64) -> Vec<Range<u64>> {
        self.bytes += range.end - range.start;
        self.ranges.push_back(range);
        let mut old = Vec::new();
        // The newest range is about to be used, so that it stays, however long it is.
        while self.bytes > keep && self.ranges.len() > 1 {
            let Some(oldest) = self.ranges.pop_front() else { break };
            self.bytes -= oldest.end - oldest.start;
            old.push(oldest);
        }
        old
    }
}

impl MmapStore {
    /// Maps a file.
    ///
    /// # Errors
    /// As for [`FileStore::open`]; [`Error::Io`] if the file system cannot map files.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(FileStore::open(path)?)
    }

    /// A map of a file that is open already.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be mapped.
    pub fn of(file: FileStore) -> Result<Self> {
        let map = match file.size() {
            0 => None,
            // SAFETY: the map is read-only. The caller must ensure that the file does not change,
            // as the documentation of `MmapStore` states; no program can enforce that for a file.
            _ => Some(
                unsafe { Mmap::map(file.file()) }
                    .map_err(|e| Error::io(file.name(), "mapping", e))?,
            ),
        };
        // The file may have shrunk between the two reads of its size.
        let len = map.as_ref().map_or(0, |map| map.len()) as u64;
        if len < file.size() {
            return Err(file.shrunk(len));
        }
        Ok(Self { file, map, keep: WINDOW, touched: Mutex::default() })
    }

    /// Keeps about `bytes` of touched pages mapped, instead of 128 MiB.
    #[must_use]
    pub fn keep(mut self, bytes: u64) -> Self {
        self.keep = bytes;
        self
    }

    /// The file under the map, for questions about its residency or device.
    pub fn file(&self) -> &FileStore {
        &self.file
    }

    fn populate(&self, map: &Mmap, offset: u64, len: usize) -> Result<()> {
        let outcome = map.advise_range(Advice::PopulateRead, offset as usize, len);
        let lost = match outcome {
            Ok(()) => None,
            // Linux before 5.14 has no MADV_POPULATE_READ. The pages are read ahead instead, and
            // mapped on first access.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                let _ = map.advise_range(Advice::WillNeed, offset as usize, len);
                None
            }
            Err(e) => Some(e),
        };
        // The size is checked after populating, because the rest of the last page of a file that
        // shrank reads as zeros.
        let now = self.file.file().metadata().map_or(self.file.size(), |meta| meta.len());
        match lost {
            _ if now < offset + len as u64 => Err(self.file.shrunk(now.max(offset))),
            None => Ok(()),
            // madvise(2): access to a page that cannot be read would raise SIGBUS.
            Some(e) if e.raw_os_error() == Some(libc::EFAULT) => {
                let e = std::io::Error::from_raw_os_error(libc::EIO);
                Err(Error::io_at(self.file.name(), "reading", offset, e))
            }
            Some(e) => Err(Error::io_at(self.file.name(), "mapping", offset, e)),
        }
    }
}

impl std::fmt::Debug for MmapStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MmapStore")
            .field("file", &self.file)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Store for MmapStore {
    fn name(&self) -> &Arc<str> {
        self.file.name()
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    /// Reads the file, not the map: the bytes are copied anyway, and read errors do not raise
    /// SIGBUS.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buf)
    }

    fn bytes(&self) -> Option<&[u8]> {
        let len = self.file.size() as usize;
        Some(self.map.as_ref().map_or(&[], |map| &map[..len]))
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        self.file.read_at_hand(offset, buf)
    }

    fn touch(&self, offset: u64, len: usize) -> Result<()> {
        check_inside(self.name(), self.size(), offset, len)?;
        let Some(map) = self.map.as_ref().filter(|_| len > 0) else { return Ok(()) };
        let range = offset..offset + len as u64;
        let old = self.touched.lock().unwrap_or_else(PoisonError::into_inner).add(range, self.keep);
        for range in old {
            // SAFETY: MADV_DONTNEED on a read-only map of a file changes no byte: an access to
            // these pages maps the same pages of the page cache again. The call is a hint, so that
            // a failure does not matter.
            let _ = unsafe {
                map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    range.start as usize,
                    (range.end - range.start) as usize,
                )
            };
        }
        self.populate(map, offset, len)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_oldest_beyond_the_bound() {
        let mut touched = Touched::default();
        assert!(touched.add(0..10, 25).is_empty());
        assert!(touched.add(10..20, 25).is_empty());
        assert_eq!(touched.add(20..30, 25), std::slice::from_ref(&(0..10)));
        assert_eq!(touched.add(0..100, 25), [10..20, 20..30]);
        assert_eq!(touched.add(100..101, 25), std::slice::from_ref(&(0..100)));
        assert_eq!(touched.bytes, 1);
    }

    /// Kilobytes of file pages mapped into this process, from /proc/self/smaps of the map at
    /// `address`.
    fn resident_kb(address: usize) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{address:x}-");
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let rss = lines.find(|line| line.starts_with("Rss:")).unwrap();
        rss.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn pages_used_long_ago_are_not_resident() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..8_u32 << 20).map(|i| (i ^ i >> 8) as u8).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let store = MmapStore::open(file.path()).unwrap().keep(1 << 20);
        let own = store.bytes().unwrap();
        for block in 0..32 {
            store.touch(block << 18, 1 << 18).unwrap();
        }
        assert!(resident_kb(own.as_ptr() as usize) <= 2048);
        assert!(own == bytes, "dropped pages must come back as they were");
    }
}
