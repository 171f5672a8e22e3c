//! Searching for records if the framing of a damaged file is lost.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::store::Store;

use super::verify::{Verifier, WholeRecord};
use crate::file::OpenFile;
use crate::record::Header;
use crate::slow5::resync::Resync;

/// Bytes scanned at a time.
const WINDOW: usize = 1 << 20;

/// Bytes of candidates that may be decoded for each scanned byte. This bounds the time for a file
/// with many false candidates: large ones are then skipped.
const EFFORT: u64 = 16;

/// Bytes of candidates that may be decoded in any case, enough for some records of unusual size.
const LEAST_EFFORT: u64 = 256 << 20;

/// A record that was found by searching.
#[derive(Debug)]
pub(super) struct FoundRecord {
    pub(super) offset: u64,
    /// The size of its frame, whose bytes are in [`Seeker::frame`].
    pub(super) len: u64,
    pub(super) whole: WholeRecord,
}

/// Finds records by searching bytes.
pub(super) struct Seeker {
    store: Arc<dyn Store>,
    header: Arc<Header>,
    control: Control,
    verifier: Verifier,
    most: u64,
    window: Vec<u8>,
    frame: Vec<u8>,
    /// The number of scanned bytes.
    scanned: u64,
    /// The number of bytes of decoded candidates.
    spent: u64,
}

impl Seeker {
    pub(super) fn new(file: &OpenFile, most: u64) -> Self {
        Self {
            store: file.store.clone(),
            header: file.header.clone(),
            control: file.options.control.clone(),
            verifier: Verifier::new(file.options.budget.memory),
            most,
            window: Vec::new(),
            frame: Vec::new(),
            scanned: 0,
            spent: 0,
        }
    }

    /// The bytes of the last frame.
    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// The first record that starts and ends in `range` and decodes in full.
    pub(super) fn record(&mut self, range: Range<u64>) -> Result<Option<FoundRecord>> {
        let Some(resync) = Resync::new(&self.header, self.most) else { return Ok(None) };
        let mut start = range.start;
        while start < range.end {
            let last = self.fill(start..range.end)?;
            let mut from = 0;
            while let Some(candidate) = resync.next(&self.window, from, range.end - start) {
                if !last && candidate.at + Resync::LOOK > self.window.len() {
                    break; // the next window sees more of it
                }
                let offset = start + candidate.at as u64;
                if let Some(whole) = self.verify(offset, start, candidate.len)? {
                    return Ok(Some(FoundRecord { offset, len: candidate.len, whole }));
                }
                from = candidate.at + 1;
            }
            let step = if last { self.window.len() } else { self.window.len() - Resync::LOOK };
            start += step as u64;
            self.scanned += step as u64;
        }
        Ok(None)
    }

    /// The start of the next row of text.
    pub(super) fn row(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        let mut start = range.start;
        while start < range.end {
            self.fill(start..range.end)?;
            if let Some(at) = self.window.iter().position(|&byte| byte == b'\n') {
                return Ok(Some(start + at as u64 + 1));
            }
            start += self.window.len() as u64;
        }
        Ok(None)
    }

    /// The record that fills `range`, if it is intact except for the size before it. The size is
    /// corrected in its frame.
    pub(super) fn mended(&mut self, range: Range<u64>) -> Result<Option<WholeRecord>> {
        let Some(size) = (range.end - range.start).checked_sub(8).filter(|&size| size <= self.most)
        else {
            return Ok(None);
        };
        self.read_frame(range.start, size + 8)?;
        self.frame.splice(..8, size.to_le_bytes());
        Ok(self.frame.get(8..).and_then(|stored| self.verifier.whole(&self.header, stored).ok()))
    }

    /// Loads a window. Returns whether it reaches the end of `range`.
    fn fill(&mut self, range: Range<u64>) -> Result<bool> {
        self.control.check()?;
        let len = (range.end - range.start).min(WINDOW as u64) as usize;
        self.window.resize(len, 0);
        self.store.read_at(range.start, &mut self.window)?;
        Ok(range.start + len as u64 == range.end)
    }

    fn verify(&mut self, offset: u64, window_at: u64, len: u64) -> Result<Option<WholeRecord>> {
        if self.spent + len > LEAST_EFFORT + EFFORT * self.scanned {
            return Ok(None);
        }
        self.spent += len;
        let at = (offset - window_at) as usize;
        if let Some(frame) = self.window.get(at..at + len as usize) {
            self.frame.clear();
            self.frame.extend_from_slice(frame);
        } else {
            self.read_frame(offset, len)?;
        }
        Ok(self.frame.get(8..).and_then(|stored| self.verifier.whole(&self.header, stored).ok()))
    }

    fn read_frame(&mut self, offset: u64, len: u64) -> Result<()> {
        self.frame.resize(len as usize, 0);
        self.store.read_at(offset, &mut self.frame)
    }
}
