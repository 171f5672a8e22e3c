//! Writes reads in any format. A [`Target`] says how, a [`ReadEncoder`] for each worker does
//! what takes time, and a [`ReadSink`] puts the encoded reads into the file in their order.
//!
//! A format joins with a variant of each of [`Coding`], [`Target`], [`ReadEncoder`],
//! [`Encoded`]'s body and [`ReadSink`].

use std::path::Path;
use std::sync::Arc;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Fault, Result};

use super::{Pod5Writer, ReadWriter};
use crate::format::{Format, Loss, Losses};
use crate::pod5::write::{EncodedSignal, Mapping, Pod5Layout, ReadsRow, Runs, SignalEncoder};
use crate::record::StoredRow;
use crate::record::{Encoding, Header, Index, Record, RecordPress, SignalPress};
use crate::slow5;

use super::Fast5Writer;
use crate::fast5;

/// A format, and what can be chosen about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coding {
    /// SLOW5.
    Slow5,
    /// BLOW5, with compression of records and of signals.
    Blow5(RecordPress, SignalPress),
    /// POD5.
    Pod5(Pod5Layout),
    /// Multi-read FAST5.
    Fast5(fast5::Compression),
}

impl Coding {
    /// The format.
    pub fn format(&self) -> Format {
        match self {
            Self::Slow5 => Format::Slow5,
            Self::Blow5(..) => Format::Blow5,
            Self::Pod5(_) => Format::Pod5,
            Self::Fast5(_) => Format::Fast5,
        }
    }

    /// What encodes reads on one worker, for any target of this coding.
    ///
    /// # Errors
    /// When there is no memory for its contexts, or for a compression level that there is not.
    pub fn encoder(&self) -> Result<ReadEncoder, Fault> {
        Ok(ReadEncoder(match self {
            Self::Slow5 | Self::Blow5(..) => EncoderKind::Slow5(slow5::RecordEncoder::new()?),
            Self::Pod5(layout) => {
                EncoderKind::Pod5(SignalEncoder::new(layout.coding, layout.row_samples)?)
            }
            Self::Fast5(compression) => {
                EncoderKind::Fast5(fast5::SignalCompressor::new(*compression)?)
            }
        }))
    }
}

/// How the reads of one header are written in a format.
#[derive(Debug, Clone)]
pub struct Target(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Slow5(Header),
    Pod5 { header: Header, layout: Pod5Layout, mapping: Box<Mapping> },
    Fast5 { header: Header, compression: fast5::Compression, lost: Vec<String> },
}

impl Target {
    /// Prepares to write reads that `header` describes.
    ///
    /// # Errors
    /// When the format cannot hold them at all.
    pub fn new(coding: Coding, header: &Header) -> Result<Self, Fault> {
        let slow5 = |encoding, record_press, signal_press| {
            Kind::Slow5(Header { encoding, record_press, signal_press, ..header.clone() })
        };
        Ok(Self(Arc::new(match coding {
            Coding::Slow5 => slow5(Encoding::Ascii, RecordPress::None, SignalPress::None),
            Coding::Blow5(record, signal) => slow5(Encoding::Binary, record, signal),
            Coding::Pod5(layout) => Kind::Pod5 {
                header: header.clone(),
                layout,
                mapping: Box::new(Mapping::new(header)?),
            },
            Coding::Fast5(compression) => {
                Kind::Fast5 { header: header.clone(), compression, lost: fast5::lost(header) }
            }
        })))
    }

    /// What the header has that the format cannot hold, in words. What single reads have shows as
    /// they are encoded.
    pub fn lost(&self) -> &[String] {
        match &*self.0 {
            Kind::Slow5(_) => &[],
            Kind::Pod5 { mapping, .. } => mapping.lost(),
            Kind::Fast5 { lost, .. } => lost,
        }
    }

    /// Whether the format holds the auxiliary field of this name, values of single reads apart.
    pub fn holds(&self, field: &str) -> bool {
        match &*self.0 {
            Kind::Slow5(_) => true,
            Kind::Pod5 { mapping, .. } => mapping.holds(field),
            Kind::Fast5 { header, .. } => {
                header.aux_field(field).is_some_and(|(_, field)| fast5::holds(field))
            }
        }
    }

    /// Whether reads come back in the order in which they were written: FAST5 sorts them by id.
    pub fn keeps_order(&self) -> bool {
        match &*self.0 {
            Kind::Slow5(_) | Kind::Pod5 { .. } => true,
            Kind::Fast5 { .. } => false,
        }
    }

    /// Starts a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Usage`] if the header cannot be
    /// written down.
    pub fn create(&self, path: &Path) -> Result<ReadSink> {
        let sink = match &*self.0 {
            Kind::Slow5(header) => SinkKind::Slow5(ReadWriter::create(path, header)?),
            Kind::Pod5 { layout, mapping, .. } => {
                let writer = Pod5Writer::create(path, layout.clone(), mapping.more())?;
                SinkKind::Pod5 { writer: Box::new(writer), runs: mapping.runs() }
            }
            Kind::Fast5 { header, compression, .. } => {
                SinkKind::Fast5(Box::new(Fast5Writer::create(path, header, *compression)?))
            }
        };
        Ok(ReadSink { sink, reads: 0, samples: 0 })
    }
}

/// Encodes reads for one worker.
#[derive(Debug)]
pub struct ReadEncoder(EncoderKind);

#[derive(Debug)]
enum EncoderKind {
    Slow5(slow5::RecordEncoder),
    Pod5(SignalEncoder),
    Fast5(fast5::SignalCompressor),
}

/// A read as its sink takes it.
#[derive(Debug)]
pub struct Encoded {
    /// Its id.
    pub read_id: String,
    /// What of it the format cannot hold.
    pub losses: Losses,
    samples: u64,
    digitisation: f64,
    sampling_rate: f64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Slow5(Vec<u8>),
    Pod5(Box<ReadsRow>, EncodedSignal),
    Fast5(fast5::EncodedRead),
}

impl ReadEncoder {
    /// Encodes a read of the target's header.
    ///
    /// # Errors
    /// When the format cannot hold it at all: a read id that is no UUID in POD5.
    pub fn encode(
        &mut self,
        target: &Target,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<Encoded, Fault> {
        let (body, losses) = self.body(target, record, samples)?;
        Ok(Encoded::new(record, losses, samples.len() as u64, body))
    }

    fn body(
        &mut self,
        target: &Target,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(Body, Losses), Fault> {
        let mut losses = Losses::default();
        let body = match (&mut self.0, &*target.0) {
            (EncoderKind::Slow5(encoder), Kind::Slow5(header)) => {
                let mut frame = Vec::new();
                encoder.record(header, record, samples, &mut frame)?;
                if header.encoding == Encoding::Ascii && !slow5::ascii::holds(record, header)? {
                    losses.add(Loss::Decimals);
                }
                Body::Slow5(frame)
            }
            (EncoderKind::Pod5(encoder), Kind::Pod5 { header, mapping, .. }) => {
                let (row, lost) = mapping.row(record, header)?;
                losses = lost;
                Body::Pod5(Box::new(row), encoder.encode(samples)?)
            }
            (EncoderKind::Fast5(encoder), Kind::Fast5 { .. }) => {
                Body::Fast5(encoder.encode(record, samples)?)
            }
            _ => return Err(another()),
        };
        Ok((body, losses))
    }
}

impl Encoded {
    fn new(record: &Record<'_>, losses: Losses, samples: u64, body: Body) -> Self {
        Self {
            read_id: record.read_id.to_owned(),
            losses,
            samples,
            digitisation: record.digitisation,
            sampling_rate: record.sampling_rate,
            body,
        }
    }

    /// A read for a POD5 file, with its signal as another one stores it, in the target's coding.
    ///
    /// # Errors
    /// As for [`ReadEncoder::encode`]; for a target that is no POD5.
    pub fn stored(
        target: &Target,
        record: &Record<'_>,
        rows: &[StoredRow<'_>],
    ) -> Result<Self, Fault> {
        let Kind::Pod5 { header, mapping, .. } = &*target.0 else { return Err(another()) };
        let (row, losses) = mapping.row(record, header)?;
        let signal = EncodedSignal::stored(
            rows.iter().map(|row| (row.samples, row.bytes.to_vec())).collect(),
        );
        Ok(Self::new(record, losses, signal.samples(), Body::Pod5(Box::new(row), signal)))
    }
}

/// The parts are made by one target, so this is never met.
fn another() -> Fault {
    Fault::new(0, "a read encoded for another format", "one for this file")
}

/// A file of reads being written. Dropped unfinished, it is removed.
#[derive(Debug)]
pub struct ReadSink {
    sink: SinkKind,
    reads: u64,
    samples: u64,
}

#[derive(Debug)]
enum SinkKind {
    Slow5(ReadWriter),
    Pod5 { writer: Box<Pod5Writer>, runs: Runs },
    Fast5(Box<Fast5Writer>),
}

/// What was written.
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
    /// Appends a read; what of it the format cannot hold.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Usage`] for a read that was encoded for another
    /// file, or whose id was written before where the format forbids that.
    pub fn push(&mut self, read: Encoded) -> Result<Losses> {
        let mut losses = read.losses;
        match (&mut self.sink, read.body) {
            (SinkKind::Slow5(writer), Body::Slow5(frame)) => writer.push(&read.read_id, &frame)?,
            (SinkKind::Pod5 { writer, runs }, Body::Pod5(row, signal)) => {
                losses = losses.and(runs.note(row.run_info, read.digitisation, read.sampling_rate));
                writer.push(&row, signal)?;
            }
            (SinkKind::Fast5(writer), Body::Fast5(read)) => writer.push(&read)?,
            _ => return Err(Error::Usage(another().to_string().into())),
        }
        self.reads += 1;
        self.samples += read.samples;
        Ok(losses)
    }

    /// Ends the file, and makes it durable under the name that it has meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn seal(self) -> Result<Sealed> {
        let (file, index) = match self.sink {
            SinkKind::Slow5(writer) => writer.seal().map(|(file, index)| (file, Some(index)))?,
            SinkKind::Pod5 { writer, runs } => (writer.seal(&runs.into_infos())?, None),
            SinkKind::Fast5(writer) => (writer.seal()?, None),
        };
        Ok(Sealed {
            file,
            written: WrittenFile { reads: self.reads, samples: self.samples, index },
        })
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(self) -> Result<WrittenFile> {
        self.seal()?.publish()
    }
}

/// A file that is whole but for its name. Dropped, it is removed.
#[derive(Debug)]
pub struct Sealed {
    file: NewFile,
    written: WrittenFile,
}

impl Sealed {
    /// Where it is meanwhile.
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
