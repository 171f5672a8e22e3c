//! Reads from files of any format into a file of any format.
//!
//! ```no_run
//! use thalweg::convert::{Conversion, convert};
//! use thalweg::reads::{Options, ReadSet};
//! use thalweg::write::Coding;
//!
//! let set = ReadSet::open(["runs/today"], Options::default())?;
//! let report = convert(&set, "today.pod5".as_ref(), &Conversion::new(Coding::Pod5(Default::default())))?;
//! println!("{} reads, {} samples", report.reads, report.samples);
//! # Ok::<(), thalweg::Error>(())
//! ```

mod digest;
mod verify;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::Fault;
use crate::error::{Error, Result};
use crate::format::slow5::{Header, Index, Merged};
use crate::format::{Loss, Losses};
use crate::reads::{Options, Read, ReadSet, Selection};
use crate::write::{Coding, Encoded, ReadEncoder, Target};

use digest::{Digest, Fields};
use verify::Wanted;

/// What to convert to, and how strictly.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The format, and what can be chosen about it.
    pub coding: Coding,
    /// Which reads; ids only of a single file.
    pub selection: Selection,
    /// Which files of the set; all if `None`.
    pub files: Option<Range<usize>>,
    /// Whether to go on where the format cannot hold all there is. [`Report::lost`] says what was lost.
    pub lossy: bool,
    /// Whether to read what was written, and compare it, before the file gets its name; with these options.
    pub verify: Option<Options>,
}

impl Conversion {
    /// Everything, without loss, and believed to be written well.
    pub fn new(coding: Coding) -> Self {
        Self { coding, selection: Selection::All, files: None, lossy: false, verify: None }
    }
}

/// Something that the format could not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What it is, in words.
    pub what: String,
    /// How many reads had it; `None` if it stood in a header.
    pub reads: Option<u64>,
    /// The first of them.
    pub first: Option<String>,
}

/// What a conversion did.
#[derive(Debug, Default)]
pub struct Report {
    /// Reads written.
    pub reads: u64,
    /// Samples written.
    pub samples: u64,
    /// What the format could not hold.
    pub lost: Vec<Lost>,
    /// The index, of formats that have one beside the file.
    pub index: Option<Index>,
    /// Whether everything was read again and found the same.
    pub verified: bool,
}

/// What a worker keeps from read to read.
struct Worker {
    encoder: Result<ReadEncoder, Fault>,
    aux: Vec<u8>,
    fields: Option<Fields>,
}

/// Converts files of `set` to one at `path`, which appears when it is whole.
///
/// # Errors
/// [`Error::Unsupported`] where the format cannot hold all there is, unless the conversion allows losses;
/// [`Error::Malformed`] for defects of what is read and, in a verified conversion, of what was written; [`Error::Io`];
/// [`Error::Usage`] for files that cannot be one, and for a read id that comes twice where the format forbids that.
pub fn convert(set: &ReadSet, path: &Path, conversion: &Conversion) -> Result<Report> {
    let files = conversion.files.clone().unwrap_or(0..set.paths().len());
    let name: Arc<str> = path.to_string_lossy().into();
    let refused = |fault: Fault| Error::Usage(format!("{name}: {}, expected {}", fault.found, fault.expected).into());
    let merged = Arc::new(one_header(set, files.clone())?);
    let header = Arc::new(merged.header().clone());
    let target = Target::new(conversion.coding.clone(), &header).map_err(refused)?;
    let mut lost = Losing::new(&target, conversion, &name)?;
    let fields = conversion.verify.as_ref().map(|_| Fields::of(&header, |name| target.holds(name)));

    let mut sink = target.create(path)?;
    let mut digests = Vec::new();
    for (index, file) in files.clone().enumerate() {
        let file = set.file(file)?;
        lost.leave_out(file.left_out(), file.store().name())?;
        let (target, merged, fields) = (target.clone(), merged.clone(), fields.clone());
        let worker = move || Worker { encoder: target.encoder(), aux: Vec::new(), fields: fields.clone() };
        let rows =
            file.map_with(&conversion.selection, worker, move |worker, read| worker.encode(read, &merged, index))?;
        for row in rows {
            let (encoded, digest) = row?.map_err(refused)?;
            let id = encoded.read_id.clone();
            let losses = sink.push(encoded)?;
            lost.note(losses, &id)?;
            if let Some(digest) = digest {
                digests.push(if losses.is_empty() { digest } else { digest.without_fields() });
            }
        }
    }
    let sealed = sink.seal()?;
    if let (Some(options), Some(fields)) = (&conversion.verify, &fields) {
        let ordered = target.keeps_order();
        let wanted = Wanted { fields, digests, ordered, attributes: ordered && lost.lost.is_empty() };
        verify::verify(sealed.path(), &name, options, &header, wanted)?;
    }
    let written = sealed.publish()?;
    Ok(Report {
        reads: written.reads,
        samples: written.samples,
        lost: lost.lost,
        index: written.index,
        verified: conversion.verify.is_some(),
    })
}

impl Worker {
    /// Encodes a read of the `file`-th file.
    fn encode(&mut self, read: &Read<'_>, merged: &One, file: usize) -> Result<(Encoded, Option<Digest>), Fault> {
        let record = match merged {
            One::File(_) => *read.record,
            One::Of(merged) => merged.record(file, read.header, read.record, &mut self.aux)?,
        };
        let digest = match &self.fields {
            Some(fields) => Some(fields.digest(&record, merged.header(), read.samples)?),
            None => None,
        };
        let encoder = self.encoder.as_mut().map_err(|fault| fault.clone())?;
        Ok((encoder.encode(&record, read.samples)?, digest))
    }
}

/// The header of all files.
enum One {
    /// There is one file, whose header stays as it is.
    File(Header),
    /// There are several.
    Of(Merged),
}

impl One {
    fn header(&self) -> &Header {
        match self {
            Self::File(header) => header,
            Self::Of(merged) => merged.header(),
        }
    }
}

fn one_header(set: &ReadSet, files: Range<usize>) -> Result<One> {
    let headers: Vec<&Header> = set.headers().skip(files.start).take(files.len()).collect();
    if let [only] = headers.as_slice() {
        return Ok(One::File((*only).clone()));
    }
    Merged::new(headers).map(One::Of).map_err(|(file, fault)| Error::Unsupported {
        file: set.paths().nth(files.start + file).map_or_else(String::new, |path| path.display().to_string()).into(),
        what: format!("{} (expected {}) beside the other files", fault.found, fault.expected).into(),
        advice: "convert files with different fields on their own".into(),
    })
}

/// Keeps count of losses, or refuses them.
struct Losing {
    lossy: bool,
    name: Arc<str>,
    format: &'static str,
    lost: Vec<Lost>,
}

impl Losing {
    fn new(target: &Target, conversion: &Conversion, name: &Arc<str>) -> Result<Self> {
        let format = conversion.coding.format().name();
        let lost = target.lost().iter().map(|what| Lost { what: what.clone(), reads: None, first: None }).collect();
        let losing = Self { lossy: conversion.lossy, name: name.clone(), format, lost };
        if !losing.lossy && !target.lost().is_empty() {
            return Err(losing.refused(&target.lost().join("; ")));
        }
        Ok(losing)
    }

    /// Takes note of what of a file reads cannot hold, so that no format gets to see it.
    fn leave_out(&mut self, what: &[String], file: &str) -> Result<()> {
        if !self.lossy && !what.is_empty() {
            return Err(self.refused(&format!("{} in {file}", what.join("; "))));
        }
        self.lost.extend(what.iter().map(|what| Lost { what: format!("{what} in {file}"), reads: None, first: None }));
        Ok(())
    }

    fn note(&mut self, losses: Losses, id: &str) -> Result<()> {
        if losses.is_empty() {
            return Ok(());
        }
        if !self.lossy && !losses.iter().all(Loss::is_expected) {
            return Err(self.refused(&format!("read {id}: {losses}")));
        }
        for loss in losses.iter() {
            match self.lost.iter_mut().find(|lost| lost.reads.is_some() && lost.what == loss.what()) {
                Some(lost) => lost.reads = lost.reads.map(|reads| reads + 1),
                None => {
                    self.lost.push(Lost { what: loss.what().to_owned(), reads: Some(1), first: Some(id.to_owned()) });
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
