//! Reads written into new files of any format.
//!
//! A [`Target`] knows how the reads of one header are written, each worker encodes reads with a
//! [`ReadEncoder`] of its own, and a [`ReadSink`] appends the encoded reads to the file in order.
//! A format implements [`WriteFormat`] in its folder; the list in `format.rs` names it.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Fault, Result};

use crate::losses::Losses;
use crate::record::{AuxField, AuxValue, Index, Record, StoredRow};

/// What makes a new file.
pub type CreateFile = fn(&Path) -> Result<NewFile>;

/// How a format writes the reads of one header.
pub(crate) trait WriteFormat: fmt::Debug + Send + Sync + 'static {
    /// The contexts with which a worker encodes reads, for any header.
    type Encoder: fmt::Debug + Send + 'static;
    /// A file that encoded reads are appended to.
    type Writer: WriteFile;

    /// See [`Target::lost`].
    fn lost(&self) -> &[String] {
        &[]
    }

    /// See [`Target::holds`].
    fn holds(&self, _field: &str) -> bool {
        true
    }

    /// See [`Target::absent`].
    fn absent(&self, _field: &AuxField) -> AuxValue<'static> {
        AuxValue::Missing
    }

    /// See [`Target::keeps_order`].
    fn keeps_order(&self) -> bool {
        true
    }

    /// See [`ReadEncoder::encode`].
    fn encode(
        &self,
        encoder: &mut Self::Encoder,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(Body<Self>, Losses), Fault>;

    /// See [`Target::copy`].
    fn copy(
        &self,
        _record: &Record<'_>,
        _rows: &[StoredRow<'_>],
    ) -> Result<(Body<Self>, Losses), Fault> {
        Err(other_format())
    }

    /// See [`Target::create`]. `new` makes the file.
    fn create(&self, path: &Path, new: CreateFile) -> Result<Self::Writer>;
}

/// A file of one format that is being written. Dropped unfinished, it is removed.
pub(crate) trait WriteFile: fmt::Debug + Send + 'static {
    /// An encoded read, as the file takes it.
    type Body: Send + 'static;

    /// Appends a read. Gives what the file cannot hold of it and encoding could not know.
    fn push(&mut self, read_id: &str, read: Self::Body) -> Result<Losses>;

    /// Ends the file, makes it durable under its temporary name, and gives the index of a format
    /// that keeps one beside the file.
    fn seal(self) -> Result<(NewFile, Option<Index>)>;
}

/// An encoded read, as the files of a format take it.
type Body<F> = <<F as WriteFormat>::Writer as WriteFile>::Body;

/// An encoded read of any format.
type AnyRead = Box<dyn Any + Send>;

/// [`WriteFormat`] without its types.
trait AnyFormat: fmt::Debug + Send + Sync {
    fn lost(&self) -> &[String];
    fn holds(&self, field: &str) -> bool;
    fn absent(&self, field: &AuxField) -> AuxValue<'static>;
    fn keeps_order(&self) -> bool;
    fn encode(
        &self,
        encoder: &mut (dyn Any + Send),
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(AnyRead, Losses), Fault>;
    fn copy(&self, record: &Record<'_>, rows: &[StoredRow<'_>])
    -> Result<(AnyRead, Losses), Fault>;
    fn create(&self, path: &Path, new: CreateFile) -> Result<Box<dyn AnyWriter>>;
}

impl<F: WriteFormat> AnyFormat for F {
    fn lost(&self) -> &[String] {
        self.lost()
    }

    fn holds(&self, field: &str) -> bool {
        self.holds(field)
    }

    fn absent(&self, field: &AuxField) -> AuxValue<'static> {
        self.absent(field)
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order()
    }

    fn encode(
        &self,
        encoder: &mut (dyn Any + Send),
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(AnyRead, Losses), Fault> {
        let encoder = encoder.downcast_mut::<F::Encoder>().ok_or_else(other_format)?;
        let (read, losses) = self.encode(encoder, record, samples)?;
        Ok((Box::new(read), losses))
    }

    fn copy(
        &self,
        record: &Record<'_>,
        rows: &[StoredRow<'_>],
    ) -> Result<(AnyRead, Losses), Fault> {
        let (read, losses) = self.copy(record, rows)?;
        Ok((Box::new(read), losses))
    }

    fn create(&self, path: &Path, new: CreateFile) -> Result<Box<dyn AnyWriter>> {
        Ok(Box::new(self.create(path, new)?))
    }
}

/// [`WriteFile`] without its types.
trait AnyWriter: fmt::Debug + Send {
    fn push(&mut self, read_id: &str, read: AnyRead) -> Result<Losses>;
    fn seal(self: Box<Self>) -> Result<(NewFile, Option<Index>)>;
}

impl<W: WriteFile> AnyWriter for W {
    fn push(&mut self, read_id: &str, read: AnyRead) -> Result<Losses> {
        let read = read.downcast::<W::Body>();
        let read = read.map_err(|_| Error::Usage(other_format().to_string().into()))?;
        self.push(read_id, *read)
    }

    fn seal(self: Box<Self>) -> Result<(NewFile, Option<Index>)> {
        (*self).seal()
    }
}

/// The error for an encoder, a read and a file that do not belong together.
fn other_format() -> Fault {
    Fault::new(0, "a read encoded for another format", "one for this file")
}

/// How the reads of one header are written in a format;
/// [`Coding::target`](crate::write::Coding::target) makes one.
#[derive(Debug, Clone)]
pub struct Target(Arc<dyn AnyFormat>);

impl Target {
    pub(crate) fn new(format: impl WriteFormat) -> Self {
        Self(Arc::new(format))
    }

    /// What the format cannot hold of the header, in words. Losses of single reads show when the
    /// reads are encoded.
    pub fn lost(&self) -> &[String] {
        self.0.lost()
    }

    /// Whether the format has a place for the auxiliary field of this name. A single value may
    /// still be refused.
    pub fn holds(&self, field: &str) -> bool {
        self.0.holds(field)
    }

    /// The value that a field of the header has in reads of files that lack the field, if the
    /// format has one for that.
    pub(crate) fn absent(&self, field: &AuxField) -> AuxValue<'static> {
        self.0.absent(field)
    }

    /// Whether a file gives its reads in the order in which they were written. FAST5 sorts them by
    /// id.
    pub fn keeps_order(&self) -> bool {
        self.0.keeps_order()
    }

    /// A read whose signal, or whose whole record, is taken from another file as it is stored
    /// there. Both files must store reads in the same way.
    ///
    /// # Errors
    /// As for [`ReadEncoder::encode`]; for a format that does not take stored signal.
    pub fn copy(&self, record: &Record<'_>, rows: &[StoredRow<'_>]) -> Result<Encoded, Fault> {
        let (read, losses) = self.0.copy(record, rows)?;
        let samples = rows.iter().map(|row| u64::from(row.samples)).sum();
        Ok(Encoded { read_id: record.read_id.to_owned(), losses, samples, read })
    }

    /// Starts a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Usage`] if the format cannot hold
    /// the header.
    pub fn create(&self, path: &Path) -> Result<ReadSink> {
        self.create_by(path, NewFile::create)
    }

    /// [`Target::create`] for a file that is read, at [`Sealed::path`], before it is published.
    ///
    /// # Errors
    /// Those of [`Target::create`].
    pub fn create_staged(&self, path: &Path) -> Result<ReadSink> {
        self.create_by(path, NewFile::staged)
    }

    pub(crate) fn create_by(&self, path: &Path, new: CreateFile) -> Result<ReadSink> {
        Ok(ReadSink { writer: self.0.create(path, new)?, reads: 0, samples: 0 })
    }
}

/// Encodes reads on one worker;
/// [`Coding::encoder`](crate::write::Coding::encoder) makes one.
#[derive(Debug)]
pub struct ReadEncoder(Box<dyn Any + Send>);

impl ReadEncoder {
    pub(crate) fn new<F: WriteFormat>(encoder: F::Encoder) -> Self {
        Self(Box::new(encoder))
    }

    /// Encodes a read of the target's header.
    ///
    /// # Errors
    /// When the format cannot hold the read at all: POD5 takes no read id that is not a UUID.
    pub fn encode(
        &mut self,
        target: &Target,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<Encoded, Fault> {
        let (read, losses) = target.0.encode(&mut *self.0, record, samples)?;
        let read_id = record.read_id.to_owned();
        Ok(Encoded { read_id, losses, samples: samples.len() as u64, read })
    }
}

/// A read that is ready for a [`ReadSink`].
#[derive(Debug)]
pub struct Encoded {
    /// Its id.
    pub read_id: String,
    /// What of it the format cannot hold.
    pub losses: Losses,
    samples: u64,
    read: AnyRead,
}

/// A file of reads that is being written. Dropped unfinished, it is removed.
#[derive(Debug)]
pub struct ReadSink {
    writer: Box<dyn AnyWriter>,
    reads: u64,
    samples: u64,
}

/// What a finished file holds.
#[derive(Debug)]
pub struct WrittenFile {
    /// Reads.
    pub reads: u64,
    /// Samples.
    pub samples: u64,
    /// The index, of formats that have one beside the file.
    pub index: Option<Index>,
}

impl ReadSink {
    /// Appends a read. Gives what of it the file cannot hold.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Usage`] for a read that was encoded for another
    /// format, or for an id that the file has already where the format forbids that.
    pub fn push(&mut self, read: Encoded) -> Result<Losses> {
        let losses = self.writer.push(&read.read_id, read.read)?;
        self.reads += 1;
        self.samples += read.samples;
        Ok(losses.and(read.losses))
    }

    /// Ends the file and makes it durable under its temporary name.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn seal(self) -> Result<Sealed> {
        let (file, index) = self.writer.seal()?;
        let written = WrittenFile { reads: self.reads, samples: self.samples, index };
        Ok(Sealed { file, written })
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(self) -> Result<WrittenFile> {
        self.seal()?.publish()
    }
}

/// A complete file that does not have its name yet. Dropped, it is removed.
#[derive(Debug)]
pub struct Sealed {
    file: NewFile,
    written: WrittenFile,
}

impl Sealed {
    /// The path of the file until it is published, if [`Target::create_staged`] started it or if
    /// its final path is no URL.
    pub fn path(&self) -> &Path {
        self.file.temporary()
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(self) -> Result<WrittenFile> {
        self.file.finish()?;
        Ok(self.written)
    }
}
