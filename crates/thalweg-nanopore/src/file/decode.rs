//! Decoding an extent of a file to a read.

use std::sync::Arc;

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Result};

use crate::record::{Header, Record, StoredRow};

/// A record may decode to more than the memory budget if it has at most this many bytes for each
/// stored byte. Signal usually compresses 2 to 4 times; a factor of a thousand is a decompression
/// bomb.
pub const LIKELY_RATIO: usize = 64;

/// Makes the unpacker of one worker of a run. The argument is the number of bytes that a read may
/// decode to.
pub type NewUnpacker<U> = Arc<dyn Fn(usize) -> U + Send + Sync>;

/// Decodes reads on one worker, and keeps codec contexts and scratch memory from read to read.
pub trait UnpackReads: Send + 'static {
    /// The header that belongs to the read of an extent, if it may differ from the file's.
    ///
    /// # Errors
    /// A defect of the read's metadata.
    fn header(&mut self, _extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        Ok(None)
    }

    /// Decodes the read of an extent, and appends its samples to `samples`. They may take `limit`
    /// bytes, or [`LIKELY_RATIO`] for each stored byte. A format that stores signal in rows calls
    /// `rows` with each row.
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

    /// The fields of an extent's read, and its number of samples. Nothing else is decoded.
    ///
    /// # Errors
    /// A defect of the fields.
    fn fields<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)>;

    /// The fields of an extent's read, and its number of samples. Appends the stored rows of the
    /// signal to `rows`; a format without rows appends none.
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

    /// Frees scratch memory beyond `keep` bytes per buffer.
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

/// Compares a read's id with the requested one. This detects an index that belongs to another file.
///
/// # Errors
/// [`Error::Malformed`] if the ids differ.
pub(crate) fn check_id(file: &Arc<str>, offset: u64, wanted: &str, found: &str) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(Error::Malformed {
        file: file.clone(),
        what: "record that the index names".into(),
        offset,
        found: format!("read {found}").into(),
        expected: format!(
            "read {wanted}; the index is of another file: delete it or run `thalweg index`"
        )
        .into(),
    })
}
