//! Converts reads of files of any format to files of any format.
//!
//! ```
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::convert::{Conversion, convert};
//! use thalweg_nanopore::reads::{ReadSet, Selection};
//! use thalweg_nanopore::synth::{Recipe, Synth};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let slow5 = folder.path().join("reads.slow5");
//! # let pod5 = folder.path().join("reads.pod5");
//! # let recipe = Recipe { reads: 3, mean_length: 2000.0, ..Recipe::default() };
//! # Synth::new(recipe)?.write(&slow5, Coding::Slow5)?;
//! let set = ReadSet::open([&slow5], Options::default())?;
//! let conversion = Conversion::new(Coding::Pod5(Default::default()));
//! let report = convert(&set, &Selection::All, &pod5, &conversion)?;
//! println!("{} reads, {} samples", report.reads, report.samples);
//! # Ok(())
//! # }
//! ```

mod digest;
mod origins;
mod seed;
mod verify;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use thalweg_io::new_file::NewFile;
use thalweg_io::open::Options;
use thalweg_io::urls;
use thalweg_io::{Error, Fault, Result};

use crate::format::StoredAs;
use crate::losses::Losses;
pub use crate::output::CreateFile;
use crate::pod5::SignalDecoder;
use crate::reads::{Read, ReadFile, ReadSet, Selection};
use crate::record::{Index, Merged};
use crate::write::{Coding, Encoded, ReadEncoder, ReadSink, Sealed, Target};
use digest::{ComparedFields, Digest};
use origins::Origins;
use seed::seed;
use verify::VerifiedReads;

/// The target of a conversion, and its strictness.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The format and its options.
    pub coding: Coding,
    /// Whether what is stored in the same way is copied: the signal of POD5 files to POD5, if both
    /// files use VBZ or both are plain, whatever the level and the length of the rows; and whole
    /// records of BLOW5 files to BLOW5 of the same compressions, if their read groups keep their
    /// numbers and nothing is verified. This takes a fraction of the time, but damaged signal is
    /// copied, too. Verification finds it.
    pub copy: bool,
    /// Whether to continue if the format cannot hold everything. [`ConvertReport::lost`] lists what
    /// was lost.
    pub lossy: bool,
    /// Whether to read the new file with these options, and compare it, before it gets its name.
    pub verify: Option<Options>,
    /// Whether a read that several files have is taken from the first of them. If not, it is an
    /// error.
    pub takes_first: bool,
}

impl Conversion {
    /// A conversion without loss that copies where possible, and does not verify.
    pub fn new(coding: Coding) -> Self {
        Self { coding, copy: true, lossy: false, verify: None, takes_first: false }
    }

    /// How the file stores its reads, if the output can copy them. `same` says whether its records
    /// are the same in the output.
    fn copies(&self, file: &ReadFile, same: bool) -> Option<StoredAs> {
        let wanted = self.coding.copies().filter(|_| self.copy)?;
        let may_copy = match wanted {
            StoredAs::Pod5(_) => true,
            StoredAs::Blow5(..) => same && self.verify.is_none(),
        };
        file.stored_as().filter(|stored| may_copy && *stored == wanted)
    }
}

/// Reads of one file of a set, and their outputs.
#[derive(Debug, Clone)]
pub struct SetPart {
    /// The file's number in the set.
    pub file: usize,
    /// The reads of that file.
    pub selection: Selection,
    /// The output of each read, by its place in the selection. If it is empty, all go to the first
    /// output.
    pub to: Vec<u32>,
}

impl SetPart {
    /// A part whose reads all go to the first output.
    pub fn new(file: usize, selection: Selection) -> Self {
        Self { file, selection, to: Vec::new() }
    }
}

/// A file to write.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its path.
    pub path: PathBuf,
    /// The merged header of the set, and how the records of each file map to it.
    pub headers: Merged,
    /// Makes the file, unless it is verified: [`NewFile::create`], or a stream. A format that needs
    /// its file to be a file, as FAST5 does, makes it by itself.
    pub create: CreateFile,
}

impl Output {
    /// A file that appears when it is complete.
    pub fn new(path: &Path, headers: Merged) -> Self {
        Self { path: path.to_owned(), headers, create: NewFile::create }
    }
}

/// Something that the format could not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// A description.
    pub what: String,
    /// The number of reads concerned; `None` for a loss of the header.
    pub reads: Option<u64>,
    /// The id of the first of these reads.
    pub first: Option<String>,
}

/// The result of a conversion.
#[derive(Debug, Default)]
pub struct ConvertReport {
    /// Reads written.
    pub reads: u64,
    /// Samples written.
    pub samples: u64,
    /// Reads that were left out because a file before had them.
    pub left_out: u64,
    /// What the format could not hold.
    pub lost: Vec<Lost>,
    /// The index, for formats that have an index beside the file.
    pub index: Option<Index>,
    /// Whether the new file was verified.
    pub verified: bool,
}

/// A complete file without its final name. Dropped, it is removed.
#[derive(Debug)]
pub struct MadeFile {
    sealed: Sealed,
    left_out: u64,
    lost: Vec<Lost>,
    verified: bool,
}

impl MadeFile {
    /// Gives the file its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(self) -> Result<ConvertReport> {
        let written = self.sealed.publish()?;
        Ok(ConvertReport {
            reads: written.reads,
            samples: written.samples,
            left_out: self.left_out,
            lost: self.lost,
            index: written.index,
            verified: self.verified,
        })
    }
}

/// Converts reads of all files of `set` to one file at `path`, which appears when it is complete.
/// Selecting by id works as for a single file.
///
/// # Errors
/// The errors of [`make`].
pub fn convert(
    set: &ReadSet,
    selection: &Selection,
    path: &Path,
    conversion: &Conversion,
) -> Result<ConvertReport> {
    let parts = (0..set.paths().len()).map(|file| SetPart::new(file, selection.clone())).collect();
    let output = Output::new(path, merged(set)?);
    make_one(set, parts, output, conversion)?.publish()
}

/// Merges the headers of all files of a set.
///
/// # Errors
/// [`Error::Unsupported`] about a file whose fields contradict those of the others.
pub fn merged(set: &ReadSet) -> Result<Merged> {
    Merged::new(set.headers()).map_err(|(file, fault)| Error::Unsupported {
        file: set.paths().nth(file).map_or_else(String::new, urls::shown_path).into(),
        what: format!("{} (expected {}) beside the other files", fault.found, fault.expected)
            .into(),
        advice: "convert files with different fields on their own".into(),
    })
}

/// Writes reads of `set` to any number of files at once, complete except for their names. Each file
/// stays open and has some MiB of buffers.
///
/// # Errors
/// [`Error::Unsupported`] if the format cannot hold everything, unless the conversion allows
/// losses; [`Error::Malformed`] for defects of the input and, in a verified conversion, of the
/// output; [`Error::Io`]; [`Error::Usage`] for reads that the format cannot hold at all, for a read
/// that two files have for one output, and for a read that one file has twice if the format forbids
/// that.
pub fn make(
    set: &ReadSet,
    parts: Vec<SetPart>,
    outputs: Vec<Output>,
    conversion: &Conversion,
) -> Result<Vec<MadeFile>> {
    let mut writers = Vec::with_capacity(outputs.len());
    let mut contexts = Vec::with_capacity(outputs.len());
    for output in outputs {
        let seed = seed(set, &parts, &output, &conversion.coding);
        let (mut writer, context) = OutputWriter::start(output, conversion, seed)?;
        writer.origins = Origins::of(&parts, conversion.takes_first);
        writers.push(writer);
        contexts.push(context);
    }
    let outputs: Arc<[OutputContext]> = contexts.into();
    for part in parts {
        write_part(set, part, &outputs, &mut writers, conversion)?;
    }
    let ends = writers.into_iter().zip(&*outputs);
    ends.map(|(writer, output)| writer.end(output, conversion)).collect()
}

/// [`make`] for one file.
fn make_one(
    set: &ReadSet,
    parts: Vec<SetPart>,
    output: Output,
    conversion: &Conversion,
) -> Result<MadeFile> {
    let seed = seed(set, &parts, &output, &conversion.coding);
    let (mut writer, context) = OutputWriter::start(output, conversion, seed)?;
    writer.origins = Origins::of(&parts, conversion.takes_first);
    let only = Arc::new([context]);
    let outputs: Arc<[OutputContext]> = only.clone();
    for part in parts {
        write_part(set, part, &outputs, slice::from_mut(&mut writer), conversion)?;
    }
    let [output] = &*only;
    writer.end(output, conversion)
}

/// The properties of an output that workers need.
#[derive(Debug)]
struct OutputContext {
    headers: Merged,
    target: Target,
    /// The fields that verification compares.
    fields: Option<ComparedFields>,
}

/// An output that is being written.
struct OutputWriter {
    name: Arc<str>,
    sink: ReadSink,
    loss_record: LossRecord,
    digests: Vec<Digest>,
    /// `None` for an output of one input.
    origins: Option<Origins>,
}

/// The state of a worker.
struct ConvertWorker {
    /// `None` if reads are copied.
    encoder: Option<Result<ReadEncoder, Fault>>,
    aux: Vec<u8>,
    /// How copied reads are stored; the decoder and the buffer of POD5's verification.
    copied: Option<StoredAs>,
    decoder: SignalDecoder,
    samples: Vec<i16>,
}

/// Writes one part.
fn write_part(
    set: &ReadSet,
    part: SetPart,
    outputs: &Arc<[OutputContext]>,
    writers: &mut [OutputWriter],
    conversion: &Conversion,
) -> Result<()> {
    let SetPart { file, selection, to } = part;
    let source = set.file(file)?;
    let numbers_used: BTreeSet<u32> =
        if to.is_empty() { [0].into() } else { to.iter().copied().collect() };
    let mut same = true;
    for number in numbers_used {
        if let Some(writer) = writers.get_mut(number as usize) {
            writer.loss_record.leave_out(source.left_out(), source.store().name())?;
        }
        same &= outputs.get(number as usize).is_none_or(|it| it.headers.keeps_records(file));
    }
    let coding = conversion.coding.clone();
    let outputs = outputs.clone();
    let copied = conversion.copies(&source, same);
    let worker = move || ConvertWorker {
        encoder: copied.is_none().then(|| coding.encoder()),
        aux: Vec::new(),
        copied,
        decoder: SignalDecoder::default(),
        samples: Vec::new(),
    };
    let encode = move |worker: &mut ConvertWorker, read: &Read<'_>| {
        let number = if to.is_empty() { Some(&0) } else { to.get(read.ordinal as usize) };
        let number = number.map_or(usize::MAX, |&to| to as usize);
        match outputs.get(number) {
            Some(output) => (number, worker.encode(read, output, file)),
            None => {
                let found = format!("read {} of the selection without one", read.ordinal + 1);
                (0, Err(Fault::new(0, found, "an output for each read")))
            }
        }
    };
    let rows = source.map_as(copied.is_some(), &selection, worker, encode)?;
    for row in rows {
        let (number, encoded) = row?;
        if let Some(writer) = writers.get_mut(number) {
            writer.push(encoded, file, set)?;
        }
    }
    Ok(())
}

impl ConvertWorker {
    /// Encodes a read of file number `file`.
    fn encode(
        &mut self,
        read: &Read<'_>,
        output: &OutputContext,
        file: usize,
    ) -> Result<(Encoded, Option<Digest>), Fault> {
        let OutputContext { headers, target, fields } = output;
        let record = headers.record(file, read.header, read.record, &mut self.aux)?;
        let mut samples = read.samples;
        if let (Some(StoredAs::Pod5(coding)), Some(_)) = (self.copied, fields) {
            self.samples.clear();
            for row in read.stored {
                self.decoder.decode(coding, &row.bytes, row.samples, &mut self.samples)?;
            }
            samples = &self.samples;
        }
        let digest = fields
            .as_ref()
            .map(|fields| fields.digest(&record, headers.header(), samples))
            .transpose()?;
        let encoded = match &mut self.encoder {
            None => target.copy(&record, read.stored)?,
            Some(Ok(encoder)) => encoder.encode(target, &record, samples)?,
            Some(Err(fault)) => return Err(fault.clone()),
        };
        Ok((encoded, digest))
    }
}

impl OutputWriter {
    fn start(output: Output, conversion: &Conversion, seed: u64) -> Result<(Self, OutputContext)> {
        let Output { path, mut headers, create } = output;
        let name: Arc<str> = urls::shown_path(&path).into();
        let coding = conversion.coding.clone().seeded(seed);
        let target = coding.target(headers.header()).map_err(|fault| refused(&name, &fault))?;
        headers.fill_absent(|field| target.absent(field));
        let header = headers.header();
        let loss_record = LossRecord::new(&target, conversion, &name)?;
        let fields = conversion
            .verify
            .as_ref()
            .map(|_| ComparedFields::of(header, |name| target.holds(name)));
        let sink = match conversion.verify {
            Some(_) => target.create_staged(&path)?,
            None => target.create_by(&path, create)?,
        };
        Ok((
            Self { name, sink, loss_record, digests: Vec::new(), origins: None },
            OutputContext { headers, target, fields },
        ))
    }

    /// Appends a read of file number `file` of the set.
    fn push(
        &mut self,
        encoded: Result<(Encoded, Option<Digest>), Fault>,
        file: usize,
        set: &ReadSet,
    ) -> Result<()> {
        let (encoded, digest) = encoded.map_err(|fault| refused(&self.name, &fault))?;
        let id = encoded.read_id.clone();
        if let Some(origins) = &mut self.origins
            && !origins.note(&id, file, set, &self.name)?
        {
            return Ok(());
        }
        let losses = self.sink.push(encoded)?;
        self.loss_record.note(losses, &id)?;
        self.digests.extend(
            digest.map(
                |digest| {
                    if losses.keeps_fields() { digest } else { digest.without_fields() }
                },
            ),
        );
        Ok(())
    }

    /// Ends the file, and verifies it if the conversion asks for that.
    fn end(self, output: &OutputContext, conversion: &Conversion) -> Result<MadeFile> {
        let Self { name, sink, loss_record, digests, origins } = self;
        let left_out = origins.map_or(0, |origins| origins.left_out);
        let sealed = sink.seal()?;
        let lost = loss_record.lost;
        if let (Some(options), Some(fields)) = (&conversion.verify, &output.fields) {
            let ordered = output.target.keeps_order();
            let wanted =
                VerifiedReads { fields, digests, ordered, attributes: ordered && lost.is_empty() };
            verify::verify(sealed.path(), &name, options, output.headers.header(), wanted)?;
        }
        Ok(MadeFile { sealed, left_out, lost, verified: conversion.verify.is_some() })
    }
}

fn refused(name: &str, fault: &Fault) -> Error {
    Error::Usage(format!("{name}: {}, expected {}", fault.found, fault.expected).into())
}

/// Counts losses, or refuses them.
struct LossRecord {
    lossy: bool,
    name: Arc<str>,
    format: &'static str,
    lost: Vec<Lost>,
}

impl LossRecord {
    fn new(target: &Target, conversion: &Conversion, name: &Arc<str>) -> Result<Self> {
        let format = conversion.coding.format().name();
        let lost = target
            .lost()
            .iter()
            .map(|what| Lost { what: what.clone(), reads: None, first: None })
            .collect();
        let loss_record = Self { lossy: conversion.lossy, name: name.clone(), format, lost };
        if !loss_record.lossy && !target.lost().is_empty() {
            return Err(loss_record.refused(&target.lost().join("; ")));
        }
        Ok(loss_record)
    }

    /// Records what the model of a read cannot hold of a file, so that no output format can hold
    /// it.
    fn leave_out(&mut self, what: &[String], file: &str) -> Result<()> {
        if !self.lossy && !what.is_empty() {
            return Err(self.refused(&format!("{} in {file}", what.join("; "))));
        }
        self.lost.extend(what.iter().map(|what| Lost {
            what: format!("{what} in {file}"),
            reads: None,
            first: None,
        }));
        Ok(())
    }

    fn note(&mut self, losses: Losses, id: &str) -> Result<()> {
        if losses.is_empty() {
            return Ok(());
        }
        if !self.lossy {
            return Err(self.refused(&format!("read {id}: {losses}")));
        }
        for loss in losses.iter() {
            match self.lost.iter_mut().find(|lost| lost.reads.is_some() && lost.what == loss.what())
            {
                Some(lost) => lost.reads = lost.reads.map(|reads| reads + 1),
                None => {
                    self.lost.push(Lost {
                        what: loss.what().to_owned(),
                        reads: Some(1),
                        first: Some(id.to_owned()),
                    });
                }
            }
        }
        Ok(())
    }

    fn refused(&self, what: &str) -> Error {
        Error::Unsupported {
            file: self.name.clone(),
            what: format!("{} without loss ({what})", self.format).into(),
            advice: "allow losses (--lossy) to convert it all the same".into(),
        }
    }
}
