//! SLOW5 and BLOW5 files through the engine. Records are found while the whole file is read, or by
//! the index.

mod check;
mod framer;
mod ids;
mod open;
mod seeker;
mod verify;

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::engine::Shape;
use thalweg_io::extent::{Extent, Framer, Source};
use thalweg_io::{Fault, InFile, Result};

use super::{Frame, Framing, ReadWriter, RecordDecoder};
use crate::file::{
    CheckReport, FormatFile, LIKELY_RATIO, NewUnpacker, OpenFile, Selection, UnpackReads,
};
use crate::record::{Encoding, Header, Index, Record, StoredRow};
use framer::RecordFramer;

pub(crate) use open::open;

/// An open SLOW5 or BLOW5 file. It has no state besides its header, which is in [`OpenFile`].
#[derive(Debug)]
pub(crate) struct Slow5File;

impl FormatFile for Slow5File {
    type Unpacker = Slow5Unpacker;

    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        _signal: bool,
    ) -> Result<(Source, NewUnpacker<Slow5Unpacker>)> {
        let (source, index) = match self.places(file, selection)? {
            None => (stream(file)?, None),
            Some(places) => {
                (Source::Planned(Box::new(file.gather(places, shape))), file.index_name())
            }
        };
        let name = file.name().clone();
        let new = move |limit| Slow5Unpacker::new(name.clone(), index.clone(), limit);
        Ok((source, Arc::new(new)))
    }

    fn single_unpacker(&self, file: &OpenFile) -> Slow5Unpacker {
        Slow5Unpacker::new(file.name().clone(), file.index_name(), file.options.budget.memory)
    }

    fn build_index(&self, file: &OpenFile) -> Result<Index> {
        ids::index(file)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn check(&self, file: &OpenFile) -> Result<CheckReport> {
        check::check(file, None)
    }

    /// Copies the stored header and every intact stored record. If only the size of a record is
    /// wrong, the size is corrected. If several reads have the same id, only the first is kept.
    ///
    /// Without checksums (only zlib has them), a record counts as intact if it decodes in full.
    fn salvage(&self, file: &OpenFile, out: &Path) -> Result<CheckReport> {
        let mut stored = vec![0; file.header.data_offset as usize];
        file.store.read_at(0, &mut stored)?;
        check::check(file, Some(ReadWriter::copying(out, &file.header, &stored)?))
    }
}

/// The source of all records, which are found while the whole file is read.
fn stream(file: &OpenFile) -> Result<Source> {
    let range: Range<u64> = file.header.data_offset..file.store.size();
    let mut framer = RecordFramer::new(file.name().clone(), file.store.size(), &file.header);
    if range.is_empty() {
        // The engine fetches nothing for an empty range, so that a missing end marker must be
        // detected here.
        framer.frame(range.start, &[], true, &mut Vec::new())?;
    }
    Ok(Source::Framed { range, framer: Box::new(framer) })
}

/// Decodes records for one worker.
pub(crate) struct Slow5Unpacker {
    name: Arc<str>,
    /// The index that says where records are; `None` if they are found one after another.
    index: Option<Arc<str>>,
    contexts: RecordDecoder,
}

impl Slow5Unpacker {
    fn new(name: Arc<str>, index: Option<Arc<str>>, limit: usize) -> Self {
        Self { name, index, contexts: RecordDecoder::new(limit) }
    }

    fn set_limit(&mut self, extent: &Extent<'_>, limit: usize) {
        self.contexts.set_limit(limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO)));
    }
}

impl UnpackReads for Slow5Unpacker {
    fn read<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        _rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        self.set_limit(extent, limit);
        let Self { name, index, contexts } = self;
        let at = |fault: Fault| fault.in_file(name, extent.offset, label(header, extent));
        let (start, stored) = unframe(header, extent, index.as_deref()).map_err(at)?;
        contexts.record(header, stored, samples).map_err(|fault| at(fault.shifted(start)))
    }

    fn fields<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        self.set_limit(extent, limit);
        let Self { name, index, contexts } = self;
        let at = |fault: Fault| fault.in_file(name, extent.offset, label(header, extent));
        let (start, stored) = unframe(header, extent, index.as_deref()).map_err(at)?;
        contexts.fields(header, stored).map_err(|fault| at(fault.shifted(start)))
    }

    /// The only row is the whole frame.
    fn stored<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        let (record, samples) = self.fields(header, extent, limit)?;
        let row = StoredRow {
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            bytes: Cow::Borrowed(extent.bytes),
        };
        rows.push(row);
        Ok((record, samples))
    }

    fn trim(&mut self, keep: usize) {
        self.contexts.trim(keep);
    }
}

/// The stored record inside a frame, and its offset in the frame. `index` says where the frame is.
fn unframe<'a>(
    header: &Header,
    extent: &Extent<'a>,
    index: Option<&str>,
) -> Result<(usize, &'a [u8]), Fault> {
    let framing = Framing::new(header.encoding);
    let found = match framing.next(extent.bytes, (extent.bytes.len() + END_BYTES) as u64) {
        // The record must fill the frame exactly. This detects an index with wrong places.
        Ok(Frame::Record { stored, len }) if len == extent.bytes.len() => {
            return Ok((stored.start, &extent.bytes[stored]));
        }
        Ok(Frame::Record { len, .. }) => format!("a record of {len} bytes"),
        Ok(Frame::NeedMore(len)) => format!("a record of at least {len} bytes"),
        Ok(Frame::End) => "the end of the file".into(),
        Err(fault) if index.is_none() => return Err(fault),
        Err(fault) => fault.found.into_owned(),
    };
    let index = index.unwrap_or("the index");
    let expected = format!(
        "one of {} bytes, as {index} says; the index may be of another file: delete it or run \
         `thalweg index`",
        extent.bytes.len()
    );
    Err(Fault::new(0, found, expected))
}

/// Bytes of the end marker, which follows the last frame of a BLOW5 file.
const END_BYTES: usize = 5;

fn label(header: &Header, extent: &Extent<'_>) -> String {
    match header.encoding {
        Encoding::Ascii => format!("row {}", extent.ordinal + 1),
        Encoding::Binary => format!("record {}", extent.ordinal + 1),
    }
}
