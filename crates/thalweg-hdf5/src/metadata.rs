//! Reads HDF5 metadata without libhdf5: groups, attributes, and where a dataset's elements lie.
//!
//! This module reads the part of the HDF5 file format specification 3.0
//! (<https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>) that FAST5 files use:
//! superblocks 0 to 3, object headers 1 and 2, groups as symbol tables, as link messages and as
//! dense storage, scalar attributes in headers and in dense storage, and datasets of one dimension.
//! Anything else in a file is [`Refused::Foreign`]: it may be valid, but only libhdf5 reads it.
//! Nothing is written and nothing is guessed. Checksums are verified. A [`Reader`] reads at most as
//! many bytes as its limit, so that structures with cycles come to an end.

mod attribute;
mod btree;
mod checksum;
mod cursor;
mod dataset;
mod group;
mod header;
mod heap;

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use thalweg_io::{Error, Fault};

pub use group::Links;
pub use header::{MetadataFile, Object};

/// `HADDR_UNDEF`, the undefined address.
const NOWHERE: u64 = u64::MAX;

/// Why something was not parsed.
#[derive(Debug)]
pub enum Refused {
    /// It may be valid, but this module does not read it.
    Foreign(Cow<'static, str>),
    /// It is malformed at this byte of the file.
    Damaged(Fault),
    /// The bytes could not be read.
    Store(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// The outcome of parsing.
pub type Result<T, E = Refused> = std::result::Result<T, E>;

/// The error for what this module does not read.
fn foreign<T>(what: impl Into<Cow<'static, str>>) -> Result<T> {
    Err(Refused::Foreign(what.into()))
}

/// The error for malformed metadata at byte `at` of the file.
fn damaged<T>(
    at: u64,
    found: impl Into<Cow<'static, str>>,
    expected: impl Into<Cow<'static, str>>,
) -> Result<T> {
    Err(Refused::Damaged(Fault { at, found: found.into(), expected: expected.into() }))
}

/// A file whose bytes are read by their addresses.
pub trait ByteSource {
    /// The size of the file in bytes.
    fn size(&self) -> u64;

    /// The `len` bytes from `at` on. The range is inside the file.
    ///
    /// # Errors
    /// The store's own.
    fn get(&self, at: u64, len: usize) -> Result<Cow<'_, [u8]>, Error>;

    /// Announces ranges that will be read soon. Each range is inside the file.
    ///
    /// # Errors
    /// The store's own.
    fn expect(&self, _ranges: Vec<Range<u64>>) -> Result<(), Error> {
        Ok(())
    }
}

/// A file in memory.
impl ByteSource for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn get(&self, at: u64, len: usize) -> Result<Cow<'_, [u8]>, Error> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = <[u8]>::get(self, start..start.saturating_add(len));
        Ok(Cow::Borrowed(bytes.unwrap_or_default()))
    }
}

/// Reads at most a limited number of bytes of a source.
#[derive(Debug)]
pub struct Reader<'a, S: ?Sized> {
    source: &'a S,
    left: Cell<u64>,
}

impl<'a, S: ByteSource + ?Sized> Reader<'a, S> {
    /// A reader of at most `limit` bytes.
    pub fn new(source: &'a S, limit: u64) -> Self {
        Self { source, left: Cell::new(limit) }
    }

    fn size(&self) -> u64 {
        self.source.size()
    }

    /// The `len` bytes from an address on.
    fn get(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        self.check(at, len)?;
        match self.left.get().checked_sub(len) {
            Some(left) => self.left.set(left),
            None => return foreign("more metadata than are read for one object"),
        }
        let Ok(len) = usize::try_from(len) else {
            return foreign("structures that memory cannot hold");
        };
        let bytes = self.source.get(at, len)?;
        if bytes.len() == len {
            Ok(bytes)
        } else {
            damaged(at, "the end of the file", format!("{len} bytes"))
        }
    }

    fn check(&self, at: u64, len: u64) -> Result<()> {
        if at.checked_add(len).is_some_and(|end| end <= self.size()) {
            return Ok(());
        }
        let expected = format!("an address inside the {} bytes of the file", self.size());
        damaged(at.min(self.size()), format!("{len} bytes at address {at}"), expected)
    }

    /// Announces that up to `len` bytes will be read from each of these addresses.
    fn expect(&self, places: &[u64], len: u64) -> Result<()> {
        let size = self.size();
        // A single range is read at once anyway.
        if places.len() > 1 {
            let range = |&at: &u64| (at < size).then(|| at..at.saturating_add(len).min(size));
            self.source.expect(places.iter().filter_map(range).collect())?;
        }
        Ok(())
    }
}
