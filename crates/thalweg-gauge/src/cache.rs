//! Which pages of a file are in memory, and how to evict them with proof.
//!
//! `mincore(2)` is not used: since Linux 5.2 it reports a whole file as resident to a process that
//! neither owns nor may write it. `cachestat(2)` is not used on file systems that are stacked on
//! others (overlayfs), because it reports no cached pages there. Residency that cannot be
//! determined is unknown.

mod folder;
mod holders;
mod lower_caches;

use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::io::{Errno, ReadWriteFlags};
use serde::{Deserialize, Serialize};
use thalweg_io::store::FileStore;

use crate::{Error, Result, syscalls};

pub use folder::files_of;
pub(crate) use folder::{largest_of, state_of};
pub use holders::{Hold, Holder, Holders, holders};
pub use lower_caches::{ReadTwice, read_twice};

/// The largest share of a file that may be in the wrong state. Before a cold trial at most 1 % of
/// the file is cached, and the trial reads at least 99 % of its bytes from the device.
pub(crate) const CACHED_SHARE_SLACK: f64 = 0.01;

/// How residency was determined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// `cachestat(2)` counted every page. It needs Linux 6.5, and a file that this process owns or
    /// may write.
    Cachestat,
    /// `preadv2(2)` with RWF_NOWAIT probed this many evenly spread pages, and the count is
    /// extrapolated. It needs Linux 4.14.
    Sampled(u64),
    /// Residency is unknown, for this reason.
    Unknown(String),
}

/// How much of a file is in the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// The number of pages in the file.
    pub pages_total: u64,
    /// The number of pages of the file in memory; `None` if unknown, and an estimate if `method` is
    /// [`Method::Sampled`].
    pub pages_resident: Option<u64>,
    /// How residency was determined.
    pub method: Method,
}

impl Residency {
    /// The resident share, from 0 to 1. An empty file has no known share: it can be neither cold
    /// nor hot.
    pub fn fraction(&self) -> Option<f64> {
        match (self.pages_resident, self.pages_total) {
            (_, 0) | (None, _) => None,
            (Some(resident), total) => Some(resident as f64 / total as f64),
        }
    }

    /// The resident pages in bytes; the last page counts whole.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.pages_resident.map(|pages| pages * page_size())
    }

    /// The residency of two files together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let method = match (&self.method, &other.method) {
            (Method::Unknown(_), _) | (Method::Sampled(_), Method::Cachestat) => self.method,
            (Method::Sampled(a), Method::Sampled(b)) => Method::Sampled(a + b),
            _ => other.method,
        };
        Self {
            pages_total: self.pages_total + other.pages_total,
            pages_resident: self.pages_resident.zip(other.pages_resident).map(|(a, b)| a + b),
            method,
        }
    }
}

/// Counts the pages of `path` that are in the page cache. The cache does not change: pages that
/// sampling reads into the cache are evicted again.
///
/// # Errors
/// [`Error::Store`] if `path` cannot be opened, or is a folder, pipe or device; [`Error::Io`] if
/// the system does not answer.
pub fn residency(path: &Path) -> Result<Residency> {
    let store = FileStore::open(path)?;
    residency_of(store.file()).map_err(|e| Error::io(path, "asking what is cached", e))
}

/// Counts the pages of an open file that are in the page cache, as [`residency`] does.
///
/// # Errors
/// The system's error if residency can't be determined.
pub fn residency_of(file: &File) -> std::io::Result<Residency> {
    let meta = file.metadata()?;
    let pages_total = meta.len().div_ceil(page_size());
    if !meta.is_file() {
        return Ok(Residency {
            pages_total,
            pages_resident: None,
            method: Method::Unknown("not a regular file".into()),
        });
    }
    if thalweg_io::residency::is_stacked(file) {
        return sampled(file, pages_total);
    }
    match syscalls::cachestat(file.as_fd()) {
        // Read-ahead may cache a page past the end on some file systems.
        Ok(stat) => Ok(Residency {
            pages_total,
            pages_resident: Some(stat.cached.min(pages_total)),
            method: Method::Cachestat,
        }),
        Err(_) => sampled(file, pages_total),
    }
}

/// The number of sampled pages. If 1 % of a file is resident, the chance that all samples miss it
/// is 0.6 %.
const SAMPLES: u64 = 512;
/// Time for small reads to finish before their pages are evicted. A device answers one small read
/// much faster.
const SETTLE: Duration = Duration::from_millis(20);

fn sampled(file: &File, pages_total: u64) -> std::io::Result<Residency> {
    // RWF_NOWAIT does not wait for a missing page, but newer kernels still start to read it. With
    // this advice they read only that page, without read-ahead.
    fadvise(file, 0, None, Advice::Random)?;
    let samples = pages_total.min(SAMPLES);
    let mut resident = 0_u64;
    let mut missing = Vec::new();
    for i in 0..samples {
        // The middle of the i-th of `samples` equal parts; 128 bits because the product may
        // overflow 64.
        let page = u64::try_from(
            (u128::from(i) * 2 + 1) * u128::from(pages_total) / (u128::from(samples) * 2),
        )
        .unwrap_or(pages_total);
        let offset = page * page_size();
        let mut byte = [0];
        match rustix::io::preadv2(
            file,
            &mut [IoSliceMut::new(&mut byte)],
            offset,
            ReadWriteFlags::NOWAIT,
        ) {
            Ok(_) => resident += 1,
            Err(Errno::AGAIN) => missing.push(offset),
            Err(e) => {
                let why =
                    format!("neither cachestat(2) nor preadv2(2) with RWF_NOWAIT works here ({e})");
                return Ok(Residency {
                    pages_total,
                    pages_resident: None,
                    method: Method::Unknown(why),
                });
            }
        }
    }
    if !missing.is_empty() {
        // Evicts the page that the sample itself read, after that read has ended.
        std::thread::sleep(SETTLE);
        for offset in missing {
            fadvise(file, offset, std::num::NonZeroU64::new(page_size()), Advice::DontNeed)?;
        }
    }
    let scaled = u128::from(resident) * u128::from(pages_total);
    let estimate = scaled.div_ceil(u128::from(samples.max(1)));
    let estimate = u64::try_from(estimate).unwrap_or(pages_total);
    Ok(Residency { pages_total, pages_resident: Some(estimate), method: Method::Sampled(samples) })
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// What an eviction may do beyond `posix_fadvise(2)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvictOptions {
    /// Write to `/proc/sys/vm/drop_caches` if `posix_fadvise(2)` does not evict all pages. This
    /// needs root, and empties the caches of the whole machine.
    pub drop_caches: bool,
}

/// The result of an eviction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// The residency before the eviction.
    pub before: Residency,
    /// The residency after the eviction, which proves the result.
    pub after: Residency,
    /// The processes that keep the file in memory; determined only when pages stayed.
    pub holders: Holders,
    /// The number of calls of `posix_fadvise(2)`.
    pub attempts: u32,
    /// Whether all of the machine's clean caches were dropped.
    pub dropped_caches: bool,
}

impl Eviction {
    /// Whether the file is proved to be out of memory: at most 1 % of its pages remain. A cold
    /// trial has the same slack in the bytes that it must read from the device.
    pub fn proved(&self) -> bool {
        // Nothing of an empty file can be cached.
        self.after.pages_total == 0
            || self.after.fraction().is_some_and(|f| f <= CACHED_SHARE_SLACK)
    }

    /// Why the file is not proved cold; `None` if it is.
    pub fn objection(&self) -> Option<String> {
        if self.proved() {
            return None;
        }
        Some(match (&self.after.method, self.after.pages_resident) {
            (Method::Unknown(why), _) => format!("residency is unknown: {why}"),
            (_, Some(pages)) => {
                let who = self.holders.to_string();
                let who = if who.is_empty() {
                    "no process seen to hold it".into()
                } else {
                    format!("held by {who}")
                };
                format!("{pages} of {} pages stayed in memory; {who}", self.after.pages_total)
            }
            _ => "residency is unknown".into(),
        })
    }
}

/// The most attempts to evict a file. DONTNEED skips pages that wait in a per-CPU batch or are
/// being read, and can evict them a moment later.
const ATTEMPTS: u32 = 6;

/// Evicts `path` from the page cache and checks the result.
///
/// # Errors
/// [`Error::Store`] if `path` cannot be opened, or is a folder, pipe or device; [`Error::Io`] if
/// the system fails a call.
pub fn evict(path: &Path, options: EvictOptions) -> Result<Eviction> {
    let io = |doing| move |e| Error::io(path, doing, e);
    // A store refuses a pipe. Opening one as a file would wait for its writer.
    let store = FileStore::open(path)?;
    let file = store.file();
    let before = residency_of(file).map_err(io("asking what is cached"))?;
    let mut after = before.clone();
    let mut attempts = 0;
    let mut dropped_caches = false;
    while attempts < ATTEMPTS {
        if attempts > 0 {
            std::thread::sleep(Duration::from_millis(5 << attempts));
        }
        attempts += 1;
        // Dirty pages can't be dropped, so they are written first. A file system that refuses to
        // sync a file opened for reading (some FUSE ones do) still gets the advice, and residency
        // shows the result.
        let _ = fdatasync(file);
        fadvise(file, 0, None, Advice::DontNeed).map_err(|e| Error::io(path, "evicting", e))?;
        if options.drop_caches && attempts == ATTEMPTS - 1 {
            dropped_caches = std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok();
        }
        after = residency_of(file).map_err(io("asking what is cached"))?;
        if after.pages_resident.is_none_or(|pages| pages == 0) {
            break;
        }
    }
    drop(store); // otherwise this process would be among the holders
    let held = after.pages_resident.is_some_and(|pages| pages > 0);
    let holders = if held { holders(path)? } else { Holders::default() };
    Ok(Eviction { before, after, holders, attempts, dropped_caches })
}

/// Reads all of `path` into the page cache, and returns its residency.
pub fn warm(path: &Path) -> Result<Residency> {
    let io = |doing| move |e| Error::io(path, doing, e);
    let mut file = File::open(path).map_err(io("opening"))?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).map_err(io("reading"))? > 0 {}
    residency_of(&file).map_err(io("asking what is cached"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(resident: Option<u64>, total: u64, method: Method) -> Residency {
        Residency { pages_total: total, pages_resident: resident, method }
    }

    #[test]
    fn residency_keeps_the_weaker_evidence() {
        let counted = of(Some(3), 4, Method::Cachestat);
        let sampled = of(Some(1), 6, Method::Sampled(6));
        let both = counted.clone().and(sampled);
        assert_eq!(both, of(Some(4), 10, Method::Sampled(6)));
        let unknown = of(None, 2, Method::Unknown("x".into()));
        assert_eq!(both.and(unknown).pages_resident, None);
        assert_eq!(counted.fraction(), Some(0.75));
        assert_eq!(of(Some(0), 0, Method::Cachestat).fraction(), None);
    }

    #[test]
    fn an_empty_file_is_cold() -> Result<(), Box<dyn std::error::Error>> {
        let file = tempfile::NamedTempFile::new()?;
        let eviction = evict(file.path(), EvictOptions::default())?;
        assert!(eviction.proved() && eviction.objection().is_none(), "{eviction:?}");
        Ok(())
    }

    #[test]
    fn sampling_leaves_a_cold_file_cold() -> Result<(), Box<dyn std::error::Error>> {
        // The file is not in `/tmp`, which may be in memory.
        let dir =
            tempfile::tempdir_in(std::env::current_exe()?.parent().unwrap_or(Path::new(".")))?;
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7_u8; 16 << 20])?;
        let file = File::open(&path)?;
        let mut seen = None;
        // On a busy machine, the system may have read what surrounds a sample before the next
        // sample is taken there, but not every time.
        for _ in 0..5 {
            let cold = evict(&path, EvictOptions::default())?;
            if cold.after.method != Method::Cachestat || !cold.proved() {
                return Ok(());
            }
            let found = sampled(&file, cold.after.pages_total)?;
            let is_cold = found.pages_resident == Some(0);
            seen = Some(found);
            if is_cold {
                break;
            }
        }
        if let Some(seen) = seen.filter(|seen| matches!(seen.method, Method::Sampled(_))) {
            assert_eq!(seen.pages_resident, Some(0));
            assert!(
                residency(&path)?.fraction().is_some_and(|f| f <= CACHED_SHARE_SLACK),
                "{:?}",
                residency(&path)?
            );
        }
        Ok(())
    }

    #[test]
    fn sampling_agrees_with_counting() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("f");
        std::fs::write(&path, vec![7_u8; 3 << 20])?;
        let file = File::open(&path)?;
        let pages = (3 << 20) / page_size();
        let seen = sampled(&file, pages)?;
        if let Method::Sampled(n) = seen.method {
            assert_eq!(n, SAMPLES.min(pages));
            assert_eq!(seen.pages_resident, Some(pages), "just written, so all of it is cached");
        }
        Ok(())
    }
}
