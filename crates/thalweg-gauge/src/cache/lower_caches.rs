//! Caches beneath this system: in the device, the hypervisor or the file server.
//!
//! Eviction does not reach these caches. A second read of the same bytes that bypasses the page
//! cache detects them: if it is faster than the first, a lower cache holds the bytes. If it is not
//! faster, either there is no such cache, or it held all bytes before the first read.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use thalweg_io::store::{AlignedBuf, FileStore, Store};

use crate::{Error, Result, stats};

/// The number of parts of the file that are read. They are spread evenly over the file.
const WINDOWS: u64 = 8;
const WINDOW_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 1 << 20;
/// Second reads that are faster by this factor indicate a cache.
const FASTER: f64 = 1.5;

/// Times of parts of a file, each read twice without the page cache (O_DIRECT).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadTwice {
    /// The size of each part in bytes.
    pub window_bytes: u64,
    /// Seconds of the first and of the second read of each part.
    pub seconds: Vec<(f64, f64)>,
}

impl ReadTwice {
    /// The median speed-up of the second reads.
    pub(crate) fn speedup(&self) -> Option<f64> {
        stats::median(
            &self.seconds.iter().map(|(first, second)| first / second).collect::<Vec<_>>(),
        )
    }

    /// Whether there is a lower cache: at most one second read was not faster, and the median
    /// speed-up is large.
    pub(crate) fn shows_a_cache(&self) -> bool {
        let faster = self.seconds.iter().filter(|(first, second)| second < first).count();
        faster + 1 >= self.seconds.len() && self.speedup().is_some_and(|speedup| speedup >= FASTER)
    }
}

/// Reads parts of `path` twice. `None` if the file is too small, or if its file system refuses
/// O_DIRECT.
///
/// # Errors
/// When the file can't be read; [`Error::Cancelled`].
pub fn read_twice(path: &Path, stop: &AtomicBool) -> Result<Option<ReadTwice>> {
    let store = FileStore::open_direct(path)?;
    if store.size() < WINDOWS * WINDOW_BYTES {
        return Ok(None);
    }
    let mut buffer = AlignedBuf::new(BLOCK_BYTES as usize);
    let mut seconds = Vec::new();
    for window in 0..WINDOWS {
        let start = store.size() / WINDOWS * window / BLOCK_BYTES * BLOCK_BYTES;
        let mut read = || -> Result<f64> {
            let before = Instant::now();
            for block in 0..WINDOW_BYTES / BLOCK_BYTES {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled);
                }
                store.read_at(start + block * BLOCK_BYTES, &mut buffer)?;
            }
            Ok(before.elapsed().as_secs_f64().max(1e-9))
        };
        seconds.push((read()?, read()?));
        // Some file systems accept the flag and refuse the read. The store then continues with
        // reads through the page cache.
        if !store.is_direct() {
            return Ok(None);
        }
    }
    Ok(Some(ReadTwice { window_bytes: WINDOW_BYTES, seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice(seconds: &[(f64, f64)]) -> ReadTwice {
        ReadTwice { window_bytes: WINDOW_BYTES, seconds: seconds.to_vec() }
    }

    #[test]
    fn a_cache_shows_in_most_windows_or_not_at_all() {
        assert!(twice(&[(0.3, 0.1), (0.2, 0.1), (0.25, 0.1), (0.1, 0.11)]).shows_a_cache());
        assert!(
            !twice(&[(0.1, 0.1), (0.11, 0.1), (0.1, 0.1), (0.1, 0.12)]).shows_a_cache(),
            "as fast as before"
        );
        assert!(
            !twice(&[(0.9, 0.1), (0.1, 0.2), (0.1, 0.2), (0.9, 0.1)]).shows_a_cache(),
            "a busy device"
        );
        assert!(!twice(&[]).shows_a_cache());
    }

    #[test]
    fn small_files_show_no_cache() -> Result<()> {
        let go = AtomicBool::new(false);
        let file = tempfile::NamedTempFile::new()
            .map_err(|e| Error::io("a temporary file", "creating", e))?;
        assert_eq!(read_twice(file.path(), &go)?, None);
        file.as_file()
            .set_len(WINDOWS * WINDOW_BYTES)
            .map_err(|e| Error::io("a temporary file", "growing", e))?;
        if let Some(twice) = read_twice(file.path(), &go)? {
            assert_eq!(twice.seconds.len() as u64, WINDOWS);
            assert!(twice.seconds.iter().all(|(first, second)| *first > 0.0 && *second > 0.0));
        }
        go.store(true, Ordering::Relaxed);
        assert!(matches!(read_twice(file.path(), &go), Err(Error::Cancelled)));
        Ok(())
    }
}
