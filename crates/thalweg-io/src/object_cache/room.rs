//! How much the cache may still take, and what is evicted when it is full.
//!
//! The order of eviction does not come from clocks, which differ between machines, but from a count
//! of uses that the folder keeps. Who opens an object raises it by one, and writes it into each
//! section that is used. Two that raise it at the same time may write the same number, and a number
//! may get lost: the order is then less than perfect, and nothing else depends on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::header::{BLOCK, BYTES, TABLE, USED, is_of_section};
use super::section::open_file;

/// The file with the count of uses.
const USES: &str = "uses";
/// A greater count is damaged.
const MOST_USES: u64 = 1 << 60;
/// So much may be written before the folder is looked at again: this part of the limit, and at most
/// so many bytes.
const SHARE: u64 = 32;
const MOST_AT_ONCE: u64 = 1 << 30;
/// Unless the user says otherwise, this part of the file system stays free, and at most so many
/// bytes.
const FREE_SHARE: u64 = 20;
const MOST_FREE: u64 = 16 << 30;

/// What the cache may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) limit: u64,
    pub(super) free: Option<u64>,
}

/// What may be written until the folder is looked at again.
#[derive(Debug, Default)]
pub(super) struct Room {
    left: u64,
    /// Bytes that were refused since the folder was found full.
    refused: Option<u64>,
}

impl Room {
    /// Whether `bytes` may be written. Evicts sections with a count below `before` to make room.
    pub(super) fn take(&mut self, folder: &Path, bounds: Bounds, bytes: u64, before: u64) -> bool {
        let step = (bounds.limit / SHARE).clamp(BLOCK, MOST_AT_ONCE);
        if self.left < bytes && self.refused.is_none_or(|refused| refused >= step) {
            let left = make_room(folder, bounds, step.max(bytes), before);
            *self = Self { left, refused: (left < bytes).then_some(0) };
        }
        match &mut self.refused {
            Some(refused) if self.left < bytes => {
                *refused += bytes;
                false
            }
            _ => {
                self.left = self.left.saturating_sub(bytes);
                true
            }
        }
    }
}

/// A section in the folder.
#[derive(Debug)]
pub(super) struct Found {
    /// Its table, which may be missing: another process has just removed it, or was killed before
    /// it made it.
    pub(super) path: PathBuf,
    /// Bytes that its files take on the disc.
    pub(super) taken: u64,
}

/// The sections in a folder; none if there is no folder.
///
/// # Errors
/// Those of listing the folder.
pub(super) fn sections(folder: &Path) -> std::io::Result<Vec<Found>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        let is_one = entry.file_name().to_str().is_some_and(is_of_section);
        // One that another process has removed meanwhile takes nothing.
        if let Some(meta) = entry.metadata().ok().filter(|meta| is_one && meta.is_file()) {
            *found.entry(entry.path().with_extension(TABLE)).or_default() += meta.blocks() * 512;
        }
    }
    Ok(found.into_iter().map(|(path, taken)| Found { path, taken }).collect())
}

/// Returns how much of `wanted` may be written, after sections that were used least recently, with
/// a count below `before`, were evicted.
fn make_room(folder: &Path, bounds: Bounds, wanted: u64, before: u64) -> u64 {
    let Ok(found) = sections(folder) else { return 0 };
    let taken: u64 = found.iter().map(|section| section.taken).sum();
    let available = free_bytes(folder, bounds.free);
    let room = |freed: u64| {
        let in_limit = (bounds.limit + freed).saturating_sub(taken);
        in_limit.min((available.0 + freed).saturating_sub(available.1))
    };
    if room(0) >= wanted {
        return wanted;
    }
    let uses = |section: Found| (uses_of(&section.path), section);
    let mut found: Vec<(u64, Found)> = found.into_iter().map(uses).collect();
    found.sort_by_key(|(uses, _)| *uses);
    let mut freed = 0;
    for (_, section) in found.into_iter().take_while(|(uses, _)| *uses < before) {
        if room(freed) >= wanted {
            break;
        }
        if remove(&section.path).is_ok() {
            freed += section.taken;
        }
    }
    room(freed).min(wanted)
}

/// The free bytes of the file system, and how many of them have to stay free.
fn free_bytes(folder: &Path, floor: Option<u64>) -> (u64, u64) {
    match rustix::fs::statvfs(folder) {
        Ok(stat) => {
            let default = (stat.f_blocks * stat.f_frsize / FREE_SHARE).min(MOST_FREE);
            (stat.f_bavail * stat.f_frsize, floor.unwrap_or(default))
        }
        // Then writes find out.
        Err(_) => (u64::MAX / 2, 0),
    }
}

/// Removes the section of a table: the table first, so that nobody finds blocks that are about to
/// go. Files that another process has removed already are no failure.
///
/// # Errors
/// Those of the system.
pub(super) fn remove(table: &Path) -> std::io::Result<()> {
    for path in [table, &table.with_extension(BYTES)] {
        match std::fs::remove_file(path) {
            // A folder is not one of ours.
            Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                return Err(e);
            }
            _ => {}
        }
    }
    Ok(())
}

/// A count in a file; 0 if there is none that is credible.
fn count_at(file: &File, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    let read = file.read_exact_at(&mut bytes, offset);
    let count = u64::from_le_bytes(bytes);
    if read.is_ok() && count < MOST_USES { count } else { 0 }
}

/// The count of uses in a section.
fn uses_of(path: &Path) -> u64 {
    open_file(path).map_or(0, |(file, _)| count_at(&file, USED))
}

/// Raises the count of uses of a folder, and returns it. Where it cannot be kept, it is what it was
/// last, and one more.
pub(super) fn next_use(folder: &Path) -> u64 {
    let path = folder.join(USES);
    let kept = open_file(&path).map_or(0, |(file, _)| count_at(&file, 0));
    // A count that was lost starts again after those in the sections.
    let greatest = || {
        let found = sections(folder).unwrap_or_default();
        found.iter().map(|section| uses_of(&section.path)).max().unwrap_or(0)
    };
    let next = 1 + if kept > 0 { kept } else { greatest() };
    // A pipe in its place would be waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut how = File::options();
    let file = how.write(true).create(true).truncate(false).custom_flags(flags).open(&path);
    let _ = file.and_then(|file| file.write_all_at(&next.to_le_bytes(), 0));
    next
}
