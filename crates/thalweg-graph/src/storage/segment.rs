//! A segment: a file of checksummed pages that is written once and ends with a footer.
//!
//! ```text
//! pages      4096 bytes each; the last ones hold a copy of the footer: "THALWFTR", number u64 of
//!            the first of them, length of the footer u64, XXH3 of the footer u64, footer
//! sums       a u32 for each page: the lower half of its XXH3 hash
//! hashes     a u32 for each 4096 bytes of the sums: the lower half of their XXH3 hash
//! footer     JSON: see `footer.rs`
//! trailer    40 bytes: pages u64, length of the footer u64, XXH3 of the hashes u64,
//!            XXH3 of the footer u64, "THALWSG2"
//! ```
//!
//! A page is checked when it is first used, and its part of the sums is read then. The copy of the
//! footer serves repair only.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_codec::splitmix::word;
use thalweg_io::disk::{Disk, Sink};
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};
use twox_hash::XxHash3_64;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Pages whose checksums fill a page. These checksums are read together.
pub(crate) const PAGES_PER_SUM_PAGE: u64 = PAGE as u64 / 4;

/// Two parts of the checksums are read together if fewer parts than this lie between them.
const MOST_SKIPPED_PARTS: usize = 16;

const MAGIC: &[u8; 8] = b"THALWSG2";
const TRAILER: usize = 40;
const COPY: &[u8; 8] = b"THALWFTR";
const COPY_HEAD: usize = 32;

/// The footer and the hashes of a file that is far away take this part of the memory, at most.
const TAIL_SHARE: usize = 8;

/// A segment, as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    /// The XXH3 hash of the trailer, which has hashes of all else. Older networks do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trailer: Option<u64>,
}

fn sum(page: &[u8]) -> u32 {
    XxHash3_64::oneshot(page) as u32
}

/// Writes a segment.
pub(crate) struct SegmentWriter {
    sink: Box<dyn Sink>,
    file: String,
    name: Arc<str>,
    sums: Vec<u8>,
}

impl SegmentWriter {
    /// Starts a file.
    pub(crate) fn create(disk: &dyn Disk, file: &str) -> Result<Self> {
        Ok(Self {
            sink: disk.create(file)?,
            file: file.to_owned(),
            name: disk.path_of(file),
            sums: Vec::new(),
        })
    }

    /// Continues a file after its first `pages` pages, which are durable. `hash` is the hash of
    /// their checksums; `None` if the file does not have them.
    pub(crate) fn resume(
        disk: &dyn Disk,
        file: &str,
        pages: u64,
        hash: u64,
    ) -> Result<Option<Self>> {
        let store = disk.open_plain(file)?;
        if pages.checked_mul(PAGE as u64).is_none_or(|bytes| bytes > store.size()) {
            return Ok(None);
        }
        let mut sums = Vec::new();
        let mut bytes = Vec::new();
        for first in (0..pages).step_by(256) {
            bytes.resize((pages - first).min(256) as usize * PAGE, 0);
            store.read_at(first * PAGE as u64, &mut bytes)?;
            sums.extend(bytes.chunks(PAGE).flat_map(|page| sum(page).to_le_bytes()));
        }
        if XxHash3_64::oneshot(&sums) != hash {
            return Ok(None);
        }
        Ok(Some(Self {
            sink: disk.append(file, pages * PAGE as u64)?,
            file: file.to_owned(),
            name: disk.path_of(file),
            sums,
        }))
    }

    /// Makes the pages so far durable. Returns the hash of their checksums.
    pub(crate) fn sync(&mut self) -> Result<u64> {
        self.sink.sync()?;
        Ok(XxHash3_64::oneshot(&self.sums))
    }

    /// The name of the file, for messages.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How many pages were written so far.
    pub(crate) fn pages(&self) -> u64 {
        self.sums.len() as u64 / 4
    }

    /// Appends whole pages. Returns the number of the first.
    pub(crate) fn append(&mut self, pages: &[u8]) -> Result<u64> {
        let first = self.pages();
        self.sums.extend(pages.chunks(PAGE).flat_map(|page| sum(page).to_le_bytes()));
        self.sink.write(pages)?;
        Ok(first)
    }

    /// Ends the file, and makes it durable except for its name.
    pub(crate) fn finish(mut self, footer: &impl Serialize) -> Result<SegmentEntry> {
        let footer = serde_json::to_vec(footer)
            .map_err(|e| Error::io(&self.name, "writing the footer of", e))?;
        let mut copy = COPY.to_vec();
        for number in [self.pages(), footer.len() as u64, XxHash3_64::oneshot(&footer)] {
            copy.extend_from_slice(&number.to_le_bytes());
        }
        copy.extend_from_slice(&footer);
        copy.resize(copy.len().next_multiple_of(PAGE), 0);
        self.append(&copy)?;
        let mut tail = std::mem::take(&mut self.sums);
        let pages = tail.len() as u64 / 4;
        let hashes: Vec<u8> = tail.chunks(PAGE).flat_map(|sums| sum(sums).to_le_bytes()).collect();
        let hash = XxHash3_64::oneshot(&hashes);
        tail.extend_from_slice(&hashes);
        tail.extend_from_slice(&footer);
        let trailer = tail.len();
        for number in [pages, footer.len() as u64, hash, XxHash3_64::oneshot(&footer)] {
            tail.extend_from_slice(&number.to_le_bytes());
        }
        tail.extend_from_slice(MAGIC);
        self.sink.write(&tail)?;
        self.sink.sync()?;
        Ok(SegmentEntry {
            file: self.file,
            bytes: pages * PAGE as u64 + tail.len() as u64,
            trailer: Some(XxHash3_64::oneshot(&tail[trailer..])),
        })
    }
}

/// The pages of a segment, open for reading.
#[derive(Debug)]
pub(crate) struct SegmentPages {
    store: Arc<dyn Store>,
    pages: u64,
    /// The checksums of the pages, in parts that are read when they are first needed.
    sums: Vec<OnceLock<Vec<u8>>>,
    /// The checksum of each part of `sums`.
    hashes: Vec<u8>,
    /// A bit for each page whose checksum was verified. A cache has verified pages only.
    seen: Vec<AtomicU64>,
    cached: Option<CachedSegment>,
}

impl SegmentPages {
    /// Opens a file. Also returns its footer.
    pub(crate) fn open<T: DeserializeOwned>(store: Arc<dyn Store>) -> Result<(Self, T)> {
        Self::open_with(store, None, None)
    }

    /// Opens the file of `entry`. If it is far away, its pages are kept in a cache. Also returns
    /// its footer.
    pub(crate) fn open_with<T: DeserializeOwned>(
        store: Arc<dyn Store>,
        entry: Option<&SegmentEntry>,
        cached: Option<CachedSegment>,
    ) -> Result<(Self, T)> {
        let name = store.name().clone();
        let wrong = |what: &'static str, at: u64, found: String, expected: &'static str| {
            Fault::new(0, found, expected).in_file(&name, at, what)
        };
        let trailer = Trailer::read(&*store)?;
        let hashes_at = tail_of(trailer.pages).unwrap_or_default();
        let len = (trailer.at - hashes_at.start) as usize;
        let mut hashes = match &cached {
            Some(cached) => room(&name, len, cached.memory() / TAIL_SHARE)?,
            None => vec![0; len],
        };
        store.read_at(hashes_at.start, &mut hashes)?;
        let footer = hashes.split_off((hashes_at.end - hashes_at.start) as usize);
        let wrong_hash =
            |what, at| wrong(what, at, "a wrong hash".into(), "the hash in the trailer");
        if XxHash3_64::oneshot(&hashes) != trailer.hash {
            return Err(wrong_hash("hashes of the checksums", hashes_at.start));
        }
        if XxHash3_64::oneshot(&footer) != trailer.footer_hash {
            return Err(wrong_hash("footer of a segment", hashes_at.end));
        }
        if let Some(entry) = entry {
            trailer.check_is_of(entry, &*store, cached.is_some())?;
        }
        let footer = serde_json::from_slice(&footer).map_err(|e| {
            wrong("footer of a segment", hashes_at.end, e.to_string(), "what this version writes")
        })?;
        Ok((Self::new(store, trailer.pages, hashes, cached), footer))
    }

    fn new(
        store: Arc<dyn Store>,
        pages: u64,
        hashes: Vec<u8>,
        cached: Option<CachedSegment>,
    ) -> Self {
        let sums = std::iter::repeat_with(OnceLock::new).take(hashes.len() / 4).collect();
        let words = if cached.is_some() { 0 } else { pages.div_ceil(64) as usize };
        let seen = std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect();
        Self { store, pages, sums, hashes, seen, cached }
    }

    /// The cache of the pages, if the file is far away.
    pub(crate) fn cached(&self) -> Option<&CachedSegment> {
        self.cached.as_ref()
    }

    /// Room for the index of a column's `pages` pages.
    pub(crate) fn index_room(&self, pages: usize) -> Result<Vec<u64>> {
        if let Some(cached) = &self.cached {
            // A server may say that there are any number.
            drop(room(self.store.name(), pages.saturating_mul(8), cached.memory())?);
        }
        Ok(vec![0; pages])
    }

    /// The store that the pages are read from.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How many pages the segment has.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Passes the verified bytes of these pages to `f`. Pages that were not used before are read
    /// rather than touched in a map: a page fault would make the kernel read many pages around
    /// them.
    pub(crate) fn with<R>(
        &self,
        pages: Range<u64>,
        f: impl FnOnce(&[u8]) -> Result<R>,
    ) -> Result<R> {
        let bytes = self.bytes(&pages)?;
        if let Some(cached) = &self.cached {
            let mut own = cached.room(bytes.len())?;
            cached.read(self, &pages, &mut own)?;
            return f(&own);
        }
        if let Some(all) = self.store.bytes().filter(|_| self.is_seen(pages.clone())) {
            return f(&all[bytes]);
        }
        let mut own = vec![0; bytes.len()];
        self.store.read_at(bytes.start as u64, &mut own)?;
        self.check_all(pages.clone(), &own)?;
        for page in pages {
            let (word, bit) = self.bit(page);
            word.fetch_or(bit, Ordering::Relaxed);
        }
        f(&own)
    }

    /// The byte range of these pages in the file.
    pub(crate) fn bytes(&self, pages: &Range<u64>) -> Result<Range<usize>> {
        if pages.start > pages.end || pages.end > self.pages() {
            let found = format!("pages {pages:?}");
            let fault = Fault::new(0, found, format!("pages below {}", self.pages()));
            return Err(fault.in_file(self.store.name(), 0, "place of a column"));
        }
        Ok(pages.start as usize * PAGE..pages.end as usize * PAGE)
    }

    /// Whether all of these pages were verified before.
    pub(crate) fn is_seen(&self, mut pages: Range<u64>) -> bool {
        pages.all(|page| self.bit(page).0.load(Ordering::Relaxed) & self.bit(page).1 != 0)
    }

    fn bit(&self, page: u64) -> (&AtomicU64, u64) {
        (&self.seen[page as usize / 64], 1 << (page % 64))
    }

    /// Verifies those of these pages that were not verified before. `bytes` is their contents.
    pub(crate) fn check(&self, pages: Range<u64>, bytes: &[u8]) -> Result<()> {
        for (page, bytes) in pages.zip(bytes.chunks_exact(PAGE)) {
            let (word, bit) = self.bit(page);
            if word.load(Ordering::Relaxed) & bit == 0 {
                self.check_page(page, bytes)?;
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Verifies all of these pages, even those that were verified before, because `bytes` was read
    /// again.
    fn check_all(&self, pages: Range<u64>, bytes: &[u8]) -> Result<()> {
        pages
            .zip(bytes.chunks_exact(PAGE))
            .try_for_each(|(page, bytes)| self.check_page(page, bytes))
    }

    /// Verifies a page.
    pub(crate) fn check_page(&self, page: u64, bytes: &[u8]) -> Result<()> {
        let sums = self.sums((page / PAGES_PER_SUM_PAGE) as usize)?;
        let at = (page % PAGES_PER_SUM_PAGE) as usize * 4;
        let found = sum(bytes);
        let expected = word(&sums[at..at + 4]) as u32;
        if found == expected {
            return Ok(());
        }
        let fault =
            Fault::new(0, format!("the checksum {found:08x}"), format!("{expected:08x}{ADVICE}"));
        Err(fault.in_file(self.store.name(), page * PAGE as u64, format!("page {page}")))
    }

    /// A part of the checksums: those of [`PAGES_PER_SUM_PAGE`] pages.
    pub(crate) fn sums(&self, part: usize) -> Result<&[u8]> {
        if self.sums[part].get().is_none() {
            self.read_sums(part..part + 1)?;
        }
        Ok(self.sums[part].get().map_or(&[], |sums| sums))
    }

    /// Reads the missing checksums of pages that will be used, in few requests; `pages` are in
    /// order. Checksums that cannot be read are an error when their pages are verified.
    pub(crate) fn expect(&self, pages: &[Range<u64>]) {
        let mut missing: Vec<Range<usize>> = Vec::new();
        let parts = pages.iter().filter(|pages| !pages.is_empty());
        for part in parts.flat_map(|pages| {
            pages.start / PAGES_PER_SUM_PAGE..(pages.end - 1) / PAGES_PER_SUM_PAGE + 1
        }) {
            let part = part as usize;
            if self.sums.get(part).is_none_or(|sums| sums.get().is_some()) {
                continue;
            }
            match missing.last_mut() {
                Some(parts) if part < parts.end + MOST_SKIPPED_PARTS => {
                    parts.end = parts.end.max(part + 1);
                }
                _ => missing.push(part..part + 1),
            }
        }
        for parts in missing {
            let _ = self.read_sums(parts);
        }
    }

    /// Reads parts of the checksums, and keeps those that are intact.
    fn read_sums(&self, parts: Range<usize>) -> Result<()> {
        let at = self.sums_at(&parts);
        let mut bytes = vec![0; (at.end - at.start) as usize];
        self.store.read_at(at.start, &mut bytes)?;
        let mut damage = Ok(());
        for (part, sums) in parts.zip(bytes.chunks(PAGE)) {
            damage = damage.and(self.keep_sums(part, sums));
        }
        damage
    }

    /// The byte range of parts of the checksums.
    fn sums_at(&self, parts: &Range<usize>) -> Range<u64> {
        let start = self.pages * PAGE as u64;
        let end = (self.pages * 4).min((parts.end * PAGE) as u64);
        start + (parts.start * PAGE) as u64..start + end
    }

    /// The byte ranges of the missing checksums of `pages`, which are in order.
    pub(crate) fn missing_sums(&self, pages: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut parts: Vec<usize> = pages
            .iter()
            .flat_map(|pages| {
                pages.start / PAGES_PER_SUM_PAGE..(pages.end - 1) / PAGES_PER_SUM_PAGE + 1
            })
            .map(|part| part as usize)
            .collect();
        parts.dedup();
        parts.retain(|part| self.sums.get(*part).is_some_and(|sums| sums.get().is_none()));
        parts.iter().map(|part| self.sums_at(&(*part..part + 1))).collect()
    }

    /// Keeps a part of the checksums, if it is intact.
    pub(crate) fn keep_sums(&self, part: usize, sums: &[u8]) -> Result<()> {
        let found = sum(sums);
        let expected = word(&self.hashes[part * 4..part * 4 + 4]) as u32;
        if found != expected {
            let fault = Fault::new(
                0,
                format!("the checksum {found:08x}"),
                format!("{expected:08x}{ADVICE}"),
            );
            let at = (self.pages as usize + part) * PAGE;
            return Err(fault.in_file(self.store.name(), at as u64, "checksums of pages"));
        }
        // Another thread may have set it already.
        let _ = self.sums[part].set(sums.to_vec());
        Ok(())
    }
}

/// The last bytes of a segment.
struct Trailer {
    /// Its offset in the file.
    at: u64,
    pages: u64,
    /// The XXH3 hash of the hashes of the checksums.
    hash: u64,
    footer_hash: u64,
    /// The XXH3 hash of the trailer itself.
    own_hash: u64,
}

impl Trailer {
    fn read(store: &dyn Store) -> Result<Self> {
        let name = store.name().clone();
        let size = store.size();
        let wrong = |at: u64, found: String, expected: &'static str| {
            Fault::new(0, found, expected).in_file(&name, at, "trailer of a segment")
        };
        let Some(at) = size.checked_sub(TRAILER as u64) else {
            let what = "a segment".into();
            return Err(Error::Truncated { file: name, what, offset: 0, size, advice: ADVICE });
        };
        let mut trailer = [0; TRAILER];
        store.read_at(at, &mut trailer)?;
        if &trailer[32..] != MAGIC {
            let found = format!("{:?}", trailer[32..].escape_ascii().to_string());
            let expected = "\"THALWSG2\"; what ends in \"THALWSEG\" is of an earlier layout: \
                            import it anew";
            return Err(wrong(at + 32, found, expected));
        }
        let [pages, footer, hash, footer_hash] =
            std::array::from_fn(|i| word(&trailer[i * 8..i * 8 + 8]));
        if tail_of(pages).and_then(|tail| tail.end.checked_add(footer)) != Some(at) {
            return Err(wrong(at, format!("{pages} pages"), "as many as the file has room for"));
        }
        Ok(Self { at, pages, hash, footer_hash, own_hash: XxHash3_64::oneshot(&trailer) })
    }

    /// Fails if it is not the trailer of the segment that the manifest names: a file of this name
    /// may be of another network, or of a later state of this one.
    fn check_is_of(&self, entry: &SegmentEntry, store: &dyn Store, is_far: bool) -> Result<()> {
        let advice = "the one that the manifest names; copy the segments first, and the manifest \
                      last";
        let is_other = entry.trailer.is_some_and(|hash| hash != self.own_hash);
        let is_longer = is_far && store.size() != entry.bytes;
        if !is_other && !is_longer {
            return Ok(());
        }
        let found = format!("another segment, of {} bytes", store.size());
        Err(Fault::new(0, found, advice).in_file(store.name(), self.at, "trailer of a segment"))
    }
}

/// The byte range of the hashes of the checksums in a file of `pages` pages.
fn tail_of(pages: u64) -> Option<Range<u64>> {
    let start = pages.checked_mul(PAGE as u64 + 4)?;
    Some(start..start.checked_add(pages.div_ceil(PAGES_PER_SUM_PAGE) * 4)?)
}

const ADVICE: &str = "; `thalweg graph check STORE --repair OUT` saves what is intact";

mod page_cache;
mod salvage;

pub use page_cache::PlannedFetches;
use page_cache::room;
pub(crate) use page_cache::{Ahead, CachedSegment, PageCache, announce, plan_ahead};

#[cfg(test)]
pub(crate) mod tests;
