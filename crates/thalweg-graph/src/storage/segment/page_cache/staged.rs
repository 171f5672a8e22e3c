//! One run over several segments: their stores side by side, and the bytes as they come.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::engine::Decoder;
use thalweg_io::extent::Group;
use thalweg_io::store::{Store, check_inside};
use thalweg_io::{Fault, InFile, Result};

use crate::storage::segment::PAGE;

/// Bytes between two stores: no request covers them.
const APART: u64 = 1 << 40;

/// Stores, each of which begins some way after the end of the one before.
#[derive(Debug)]
pub(super) struct SideBySide {
    name: Arc<str>,
    /// With the offset at which each begins.
    stores: Vec<(u64, Arc<dyn Store>)>,
    end: u64,
}

impl SideBySide {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self { name, stores: Vec::new(), end: 0 }
    }

    /// Adds a store. Returns the offset of its first byte.
    pub(super) fn push(&mut self, store: Arc<dyn Store>) -> Result<u64> {
        let base = self.end;
        let end = base.checked_add(store.size()).and_then(|end| end.checked_add(APART));
        self.end = end.ok_or_else(|| {
            let fault = Fault::new(0, format!("{} bytes", store.size()), "fewer");
            fault.in_file(store.name(), 0, "a segment")
        })?;
        self.stores.push((base, store));
        Ok(base)
    }

    /// The number of the store that has an offset, and the offset there.
    pub(super) fn place(&self, offset: u64) -> (usize, u64) {
        let after = self.stores.partition_point(|(base, _)| *base <= offset);
        let place = after.saturating_sub(1);
        (place, offset - self.stores.get(place).map_or(0, |(base, _)| *base))
    }
}

impl Store for SideBySide {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.end
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (place, at) = self.place(offset);
        match self.stores.get(place) {
            Some((_, store)) => store.read_at(at, buf),
            None => check_inside(&self.name, 0, offset, buf.len()),
        }
    }
}

/// A page, or a part of the checksums.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) at: u64,
    pub(super) bytes: Box<[u8]>,
}

/// Keeps what comes, page by page.
#[derive(Debug, Default)]
pub(super) struct Staging(pub(super) Arc<Mutex<Vec<Staged>>>);

impl Decoder for Staging {
    type Worker = u64;
    type Batch = ();

    fn worker(&self) -> u64 {
        0
    }

    fn batch(&self) {}

    fn decode(&self, bytes: &mut u64, group: &Group, next: &mut usize, (): &mut ()) -> Result<()> {
        while let Some(extent) = group.get(*next) {
            let pages = extent.bytes.chunks(PAGE).zip((extent.offset..).step_by(PAGE));
            let staged = pages.map(|(bytes, at)| Staged { at, bytes: bytes.into() });
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(staged);
            *bytes += extent.bytes.len() as u64;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(bytes: &u64) -> u64 {
        *bytes
    }
}
