//! How an extent of a file becomes a read.

use std::sync::Arc;

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Result};

use crate::record::{Header, Record, StoredRow};

/// A record that decodes to more than the memory budget is believed up to this many bytes for each
/// stored one. Signal compresses 2 to 4 times; a thousand times is a bomb.
pub const LIKELY_RATIO: usize = 64;

/// Makes what one worker of a run keeps; its argument is how many bytes a read may decode to.
pub type NewUnpacker<U> = Arc<dyn Fn(usize) -> U + Send + Sync>;

/// What one worker keeps from read to read: codec contexts, scratch memory.
pub trait UnpackReads: Send + 'static {
    /// The header that the read of an extent goes with, where it may be another than the file's.
    ///
    /// # Errors
    /// A defect of the read's metadata.
    fn header(&mut self, _extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        Ok(None)
    }

    /// Decodes the read that an extent holds, and appends its samples to `samples`. They may take
    /// `limit` bytes, or [`LIKELY_RATIO`] for each stored byte. A format that stores signal in rows
    /// shows each of them to `rows`.
    ///
    /// # Errors
    /// A defect of the read.
    fn read<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>>;

    /// The fields of the read that an extent holds, and how many samples it has; nothing is decoded
    /// beyond that.
    ///
    /// # Errors
    /// A defect of the fields.
    fn fields<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)>;

    /// The fields, how many samples there are, and the rows of the signal as they are stored. A
    /// format without rows adds none.
    ///
    /// # Errors
    /// A defect of the fields.
    fn stored<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        _rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        self.fields(header, extent, limit)
    }

    /// Gives back scratch memory beyond `keep` bytes a buffer.
    fn trim(&mut self, _keep: usize) {}
}

impl UnpackReads for Box<dyn UnpackReads> {
    fn header(&mut self, extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        (**self).header(extent)
    }

    fn read<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        (**self).read(header, extent, limit, samples, rows)
    }

    fn fields<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        (**self).fields(header, extent, limit)
    }

    fn stored<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        (**self).stored(header, extent, limit, rows)
    }

    fn trim(&mut self, keep: usize) {
        (**self).trim(keep);
    }
}

/// Compares a read's id with the one that was asked for: an index that belongs to another file
/// shows here at the latest.
///
/// # Errors
/// [`Error::Malformed`] where they differ.
pub(crate) fn check_id(file: &Arc<str>, offset: u64, wanted: &str, found: &str) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(Error::Malformed {
        file: file.clone(),
        what: "record that the index names".into(),
        offset,
        found: format!("read {found}").into(),
        expected: format!("read {wanted}; the index belongs to another file: delete it").into(),
    })
}
