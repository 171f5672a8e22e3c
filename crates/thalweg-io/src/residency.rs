//! Residency: how much of a file is in the page cache already.
//!
//! Cached bytes are best read through the cache; other reads may go past it. The answer is a
//! snapshot: the kernel may evict a page a moment later. If the residency is unknown, the answer is
//! `None`, and callers treat the file as cold.

use std::fs::File;
use std::ops::Range;

use crate::sys;

/// Pages of a range of a file, by `cachestat(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidentPages {
    /// Pages that the range touches, up to the end of the file.
    pub pages: u64,
    /// How many of these pages are in the page cache.
    pub cached: u64,
    /// How many of the cached pages must still be written back.
    pub dirty: u64,
    /// How many of the cached pages are being written back.
    pub writeback: u64,
}

impl ResidentPages {
    /// The part that is cached: 0 is cold, 1 is hot. A range without pages is hot, since nothing
    /// must be fetched.
    pub fn fraction(&self) -> f64 {
        if self.pages == 0 { 1.0 } else { self.cached as f64 / self.pages as f64 }
    }
}

/// Whether the pages of `file` may be cached as pages of another, underlying file. `cachestat(2)`
/// then finds none. This is the case for overlayfs (most containers), eCryptfs, and FUSE file
/// systems that pass reads through.
pub fn is_stacked(file: &File) -> bool {
    // linux/magic.h
    const STACKED: [u64; 3] = [0x794c_7630, 0xf15f, 0x6573_5546];
    rustix::fs::fstatfs(file)
        .is_ok_and(|stat| STACKED.contains(&(stat.f_type as u64 & 0xffff_ffff)))
}

/// The cached pages of `range` of `file`. `None` if they are unknown: the kernel is older than 6.5,
/// the file belongs to another user and is not writable, or the file system has no page cache of
/// its own.
pub fn resident(file: &File, range: Range<u64>) -> Option<ResidentPages> {
    let page = rustix::param::page_size() as u64;
    let end = range.end.min(file.metadata().ok()?.len());
    if range.start >= end {
        return Some(ResidentPages::default());
    }
    if is_stacked(file) {
        return None;
    }
    let told = sys::cachestat(file, &(range.start..end))?;
    let pages = end.div_ceil(page) - range.start / page;
    // Large folios count whole, so that the kernel may report more pages than `range` has.
    let cached = told.cache.min(pages);
    Some(ResidentPages {
        pages,
        cached,
        dirty: told.dirty.min(cached),
        writeback: told.writeback.min(cached),
    })
}

/// Bytes that the page cache can take up: the smaller of the memory that is free or easily freed
/// and the limit of the control group. `None` if the system does not report it.
pub fn cache_room() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // "max" does not parse as a number: no limit. The huge number that cgroup v1 reports instead
    // has no effect.
    let limit = limits
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    Some(available(&meminfo)?.min(limit.unwrap_or(u64::MAX)))
}

/// `MemAvailable` of proc(5), in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Whether reads of a file should go past the page cache. This is the case if the file is too large
/// to stay there: caching it would help no later read and would evict pages that others need.
/// Unknown room counts as enough. `cached` determines the share of the file that is cached: to ask
/// for the pages of a large file takes milliseconds.
pub(crate) fn better_direct(
    size: u64,
    room: Option<u64>,
    cached: impl FnOnce() -> Option<f64>,
) -> bool {
    /// A file that is mostly cached is best read from the cache, however large it is.
    const MOSTLY: f64 = 0.5;
    room.is_some_and(|room| size > room) && cached().unwrap_or(0.0) < MOSTLY
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{Advice, fadvise};

    #[test]
    fn only_files_too_large_to_stay_go_past_the_cache() {
        assert!(!better_direct(1 << 30, Some(2 << 30), || None));
        assert!(better_direct(3 << 30, Some(2 << 30), || None));
        assert!(better_direct(3 << 30, Some(2 << 30), || Some(0.1)));
        assert!(!better_direct(3 << 30, Some(2 << 30), || Some(0.9)));
        assert!(!better_direct(u64::MAX, None, || None));
    }

    #[test]
    fn meminfo_is_in_kib() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    fn file(len: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; len]).unwrap();
        file.sync_all().unwrap();
        file
    }

    #[test]
    fn counts_pages_up_to_the_end_of_the_file() {
        let file = file(10_000);
        let Some(all) = resident(&file, 0..u64::MAX) else { return };
        assert_eq!(all.pages, 10_000u64.div_ceil(rustix::param::page_size() as u64));
        assert_eq!(resident(&file, 20_000..30_000), Some(ResidentPages::default()));
        let empty = 5..5;
        assert_eq!(resident(&file, empty).unwrap().fraction(), 1.0);
    }

    #[test]
    fn distinguishes_evicted_from_read_pages() {
        let file = file(4 << 20);
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let Some(cold) = resident(&file, 0..4 << 20) else { return };
        // Eviction does nothing on some file systems (tmpfs); the test does not apply there.
        if cold.cached == cold.pages {
            return;
        }
        assert!(cold.fraction() < 0.1, "{cold:?}");
        fadvise(&file, 0, None, Advice::Random).unwrap();
        let mut buf = vec![0; 1 << 20];
        file.read_exact_at(&mut buf, 1 << 20).unwrap();
        let page = rustix::param::page_size() as u64;
        let warm = resident(&file, 1 << 20..2 << 20).unwrap();
        assert_eq!(
            warm,
            ResidentPages {
                pages: (1 << 20) / page,
                cached: (1 << 20) / page,
                dirty: 0,
                writeback: 0
            }
        );
        assert!(resident(&file, 3 << 20..4 << 20).unwrap().fraction() < 0.1);
    }
}
