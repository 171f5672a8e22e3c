//! Reads HDF5 metadata without libhdf5, in safe Rust: groups, attributes, types, and where the
//! elements of datasets lie.
//!
//! This module follows the HDF5 file format specification 3.0
//! (<https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html>). docs/formats/hdf5.md
//! lists the structures, and the files that test each of them. What the module does not read is
//! [`Refused::Foreign`]. Nothing is written and nothing is guessed. Checksums are verified. A
//! [`Reader`] reads at most as many bytes as its limit, so that structures with cycles come to an
//! end.
//!
//! Parsers are `async` functions that suspend where they need bytes. [`Rounds`] runs many of them
//! at once, and fetches what all of them need next together. [`now`] runs a parser over a source
//! whose bytes are always there.

mod attribute;
mod btree;
mod checksum;
mod chunk_index;
mod cursor;
pub(crate) mod dataset;
pub(crate) mod dataspace;
pub(crate) mod datatype;
mod described;
pub(crate) mod elements;
mod file;
mod group;
mod header;
mod heap;
mod node;
mod rounds;
pub(crate) mod selection;
#[cfg(feature = "libhdf5")]
pub(crate) mod stored_object;
mod superblock;
mod value_files;
mod virtual_layout;

use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use thalweg_io::{Error, Fault, InFile};

pub use attribute::Attribute;
use cursor::Cursor;
pub use dataset::DatasetHeader;
pub use described::{AttributeValues, Elements};
pub use file::{Entities, Entity, MetadataFile};
pub use group::{Link, Target};
pub use header::Object;
pub use node::{Node, NodeLink};
pub use rounds::{Cost, FetchOptions, Rounds};
pub use superblock::Superblock;
pub(crate) use virtual_layout::with_number;

use crate::types::Chunk;

/// `HADDR_UNDEF`, the undefined address.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// The most bytes of structures of one kind that are asked for at once.
const MOST_AT_ONCE: u64 = 8 << 20;

/// How many structures of up to `bytes` bytes are asked for at once.
fn at_once(bytes: u64) -> usize {
    (MOST_AT_ONCE / bytes.max(1)).max(1) as usize
}

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

impl Refused {
    /// The error about `what` of a file whose superblock is at the offset `base`. `advice` is what
    /// a user can do about a part of the file that this module does not read.
    pub fn in_file(self, file: &Arc<str>, base: u64, what: String, advice: &'static str) -> Error {
        match self {
            Self::Store(error) => error,
            Self::Damaged(fault) => fault.in_file(file, base, what),
            Self::Foreign(found) => Error::Unsupported {
                file: file.clone(),
                what: format!("{what}: {found}").into(),
                advice: advice.into(),
            },
        }
    }
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

/// Runs two parsers side by side, so that a round fetches what both need next. If both fail, the
/// error is that of the first, whichever fails earlier.
async fn both<A, B>(
    one: impl Future<Output = Result<A>>,
    other: impl Future<Output = Result<B>>,
) -> Result<(A, B)> {
    let mut one = pin!(one);
    let mut other = pin!(other);
    let mut first = None;
    let mut second = None;
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done?);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done);
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready(other.map(|other| (one, other))),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// Ranges of bytes, in the order in which they were asked for.
pub type Views<'a> = Vec<Cow<'a, [u8]>>;

/// A file whose bytes are read by their offsets.
pub trait ByteSource: Sync {
    /// The size of the file in bytes.
    fn size(&self) -> u64;

    /// The bytes of each of `ranges`, which lie inside the file. `Pending` if some of them have to
    /// be fetched first; then the source notes all of them.
    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Views<'_>, Error>>;

    /// Says that `ranges`, which lie inside the file, will probably be asked for soon.
    fn hint(&self, _ranges: &[Range<u64>]) {}
}

/// A file in memory.
impl ByteSource for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Views<'_>, Error>> {
        let view = |range: &Range<u64>| {
            let end = usize::try_from(range.end).unwrap_or(usize::MAX);
            let start = usize::try_from(range.start).unwrap_or(usize::MAX);
            Cow::Borrowed(<[u8]>::get(self, start..end).unwrap_or_default())
        };
        Poll::Ready(Ok(ranges.iter().map(view).collect()))
    }
}

/// Runs a parser that needs no bytes but those that are in memory.
///
/// # Errors
/// Those of the parser; [`Refused::Foreign`] if it needs other bytes, which the source may fetch
/// with the next ones.
pub fn now<T>(parser: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(parser).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => foreign("bytes that are not in memory"),
    }
}

/// Reads at most a limited number of bytes of a source.
pub struct Reader<'a> {
    source: &'a dyn ByteSource,
    left: AtomicU64,
    /// What is left for all objects together, if that is limited.
    left_for_all: Option<&'a AtomicU64>,
    superblock: Superblock,
}

impl<'a> Reader<'a> {
    /// Parses the superblock of a file with a reader of at most `limit` bytes, and returns the
    /// reader for the rest.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn open(source: &'a dyn ByteSource, limit: u64) -> Result<Self> {
        let mut reader = Self::new(source, Superblock::default(), limit);
        superblock::parse(&mut reader).await?;
        let end = reader.superblock.end;
        let size = source.size();
        if end > size {
            let expected = format!("{end} bytes, as its header says");
            return damaged(reader.superblock.base, format!("a file of {size} bytes"), expected);
        }
        Ok(reader)
    }

    /// A reader of at most `limit` bytes of a file with this superblock.
    pub fn new(source: &'a dyn ByteSource, superblock: Superblock, limit: u64) -> Self {
        Self { source, left: AtomicU64::new(limit), left_for_all: None, superblock }
    }

    /// The same reader, which also takes its bytes from those left for all objects together.
    #[must_use]
    fn within(self, left_for_all: &'a AtomicU64) -> Self {
        Self { left_for_all: Some(left_for_all), ..self }
    }

    /// The file's superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The size of the file from its superblock on, in bytes.
    fn size(&self) -> u64 {
        self.source.size().saturating_sub(self.superblock.base)
    }

    /// A cursor over bytes that are at this address.
    fn cursor<'b>(&self, bytes: &'b [u8], at: u64) -> Cursor<'b> {
        Cursor::new(bytes, at, self.superblock.widths)
    }

    /// The `len` bytes from an address on.
    async fn get(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        let mut all = self.get_all(&[(at, len)]).await?;
        Ok(all.pop().unwrap_or_default())
    }

    /// The bytes at each of `places`, which are pairs of an address and a length.
    async fn get_all(&self, places: &[(u64, u64)]) -> Result<Views<'_>> {
        let mut ranges = Vec::with_capacity(places.len());
        let mut sum = 0u64;
        for &(at, len) in places {
            self.check(at, len)?;
            let start = self.superblock.base + at;
            ranges.push(start..start + len);
            sum = sum.saturating_add(len);
        }
        let take = |left: u64| left.checked_sub(sum);
        let is_over = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err()
        };
        if is_over(&self.left) {
            return foreign("more metadata than one object of the file can have");
        }
        if self.left_for_all.is_some_and(is_over) {
            return foreign("more metadata than all objects of the file can have");
        }
        let all = std::future::poll_fn(|_| self.source.poll(&ranges)).await?;
        for (&(at, len), bytes) in places.iter().zip(&all) {
            if bytes.len() as u64 != len {
                return damaged(at, "the end of the file", format!("{len} bytes"));
            }
        }
        Ok(all)
    }

    /// Up to `len` bytes from each of these addresses on; fewer at the end of the file.
    async fn get_up_to(&self, places: &[u64], len: u64) -> Result<Views<'_>> {
        let size = self.size();
        let place = |&at: &u64| (at, len.min(size.saturating_sub(at)));
        self.get_all(&places.iter().map(place).collect::<Vec<_>>()).await
    }

    /// Says that up to `len` bytes from each of these addresses on will probably be asked for soon.
    fn hint(&self, places: &[u64], len: u64) {
        let base = self.superblock.base;
        let end = self.source.size();
        let range = |&at: &u64| {
            let start = at.saturating_add(base).min(end);
            start..start.saturating_add(len).min(end)
        };
        self.source.hint(&places.iter().map(range).collect::<Vec<_>>());
    }

    /// Checks that chunks, whose offsets are those in the file, are inside it.
    fn check_chunks(&self, chunks: &[Chunk]) -> Result<()> {
        let base = self.superblock.base;
        chunks
            .iter()
            .try_for_each(|chunk| self.check(chunk.offset.saturating_sub(base), chunk.size))
    }

    fn check(&self, at: u64, len: u64) -> Result<()> {
        if at.checked_add(len).is_some_and(|end| end <= self.size()) {
            return Ok(());
        }
        let expected = format!("an address inside the {} bytes of the file", self.size());
        damaged(at.min(self.size()), format!("{len} bytes at address {at}"), expected)
    }
}
