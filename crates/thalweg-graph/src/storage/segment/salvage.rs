//! Opening a segment whose end is damaged.

use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use thalweg_codec::splitmix::word;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};
use twox_hash::XxHash3_64;

use super::{COPY, COPY_HEAD, MAGIC, PAGE, PAGES_PER_SUM_PAGE, SegmentPages, TRAILER, tail_of};

/// The greatest length of a footer that is read.
const MOST_FOOTER: u64 = 1 << 30;

impl SegmentPages {
    /// Opens a file whose end may be damaged. Also returns the footer and the damage. A damaged
    /// part of the checksums is still used: a page that matches its checksum there is intact.
    ///
    /// # Errors
    /// If neither the footer nor its copy can be read.
    pub(crate) fn open_damaged<T: DeserializeOwned>(
        store: Arc<dyn Store>,
    ) -> Result<(Self, T, Option<Error>)> {
        let (mut segment, footer, mut damage) = match Self::open(store.clone()) {
            Ok((segment, footer)) => (segment, footer, None),
            Err(Error::Unsupported { file, what, advice }) => {
                return Err(Error::Unsupported { file, what, advice });
            }
            Err(damage) => {
                let Some((pages, json)) = footer_at_end(&*store).or_else(|| footer_copy(&*store))
                else {
                    return Err(damage);
                };
                let footer = serde_json::from_slice(&json).map_err(|e| {
                    let fault = Fault::new(0, e.to_string(), "what this version writes");
                    fault.in_file(store.name(), 0, "footer of a segment")
                })?;
                let hashes = vec![0; pages.div_ceil(PAGES_PER_SUM_PAGE) as usize * 4];
                (Self::new(store, pages, hashes, None), footer, Some(damage))
            }
        };
        for part in 0..segment.sums.len() {
            if let Err(wrong) = segment.read_sums(part..part + 1) {
                damage.get_or_insert(wrong);
                segment.sums[part] = OnceLock::from(segment.salvage_sums(part));
            }
        }
        Ok((segment, footer, damage))
    }

    /// The checksums as they are in the file, without verification. Pages whose checksums are
    /// beyond the end of the file count as damaged.
    fn salvage_sums(&self, part: usize) -> Vec<u8> {
        let start = (self.pages as usize + part) as u64 * PAGE as u64;
        let there = self.store.size().saturating_sub(start).min(PAGE as u64);
        let mut sums = read(&*self.store, start, there).unwrap_or_default();
        sums.resize(PAGE, 0);
        sums
    }
}

fn read(store: &dyn Store, at: u64, len: u64) -> Option<Vec<u8>> {
    let end = at.checked_add(len)?;
    if end > store.size() || len > MOST_FOOTER {
        return None;
    }
    let mut bytes = vec![0; len as usize];
    store.read_at(at, &mut bytes).ok().map(|()| bytes)
}

/// The number of pages and the footer, as the trailer states them.
fn footer_at_end(store: &dyn Store) -> Option<(u64, Vec<u8>)> {
    let at = store.size().checked_sub(TRAILER as u64)?;
    let trailer = read(store, at, TRAILER as u64)?;
    let [pages, len, _, hash] = std::array::from_fn(|i| word(&trailer[i * 8..i * 8 + 8]));
    let bytes = tail_of(pages)?.end.checked_add(len)?;
    let footer = read(store, at.checked_sub(len)?, len)?;
    (&trailer[32..] == MAGIC && bytes == at && XxHash3_64::oneshot(&footer) == hash)
        .then_some((pages, footer))
}

/// The number of pages and the footer, from the copy in the last pages.
fn footer_copy(store: &dyn Store) -> Option<(u64, Vec<u8>)> {
    for page in (0..store.size() / PAGE as u64).rev() {
        let at = page * PAGE as u64;
        let head = read(store, at, COPY_HEAD as u64)?;
        let [number, len, hash] = std::array::from_fn(|i| word(&head[8 + i * 8..16 + i * 8]));
        if &head[..8] != COPY || number != page {
            continue;
        }
        let Some(footer) = read(store, at + COPY_HEAD as u64, len) else { continue };
        if XxHash3_64::oneshot(&footer) == hash {
            return Some((page + (COPY_HEAD as u64 + len).div_ceil(PAGE as u64), footer));
        }
    }
    None
}
