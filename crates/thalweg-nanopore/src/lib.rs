//! Nanopore reads: SLOW5, BLOW5, POD5 and FAST5 files, read on all cores in bounded memory,
//! searched by id, converted into each other, checked and salvaged.
//!
//! ```text
//! convert   synth      reads of any format into any other; realistic reads for tests
//!    |        |
//!    v        v
//!  reads    write      ReadFile, ReadSet, batches, scans; targets, encoders, sinks
//!    |        |
//!    v        v
//!      format          the list of formats
//!        |
//!        v
//!  slow5  pod5  fast5  one folder per format
//!    |      |     |
//!    v      v     v
//!        file          what a format implements
//!          |
//!          v
//!   record  losses     the model of a read; what a format cannot hold
//! ```
//!
//! A module uses only modules below it. The bytes come through the engine of [`thalweg_io`].
//!
//! # Read a file
//!
//! [`ReadFile::map`](reads::ReadFile::map) calls a function with every read, on all cores, and
//! yields what it returns in the order of the file:
//!
//! ```
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::reads::{Read, ReadFile, Selection};
//! use thalweg_nanopore::slow5::{RecordPress, SignalPress};
//! use thalweg_nanopore::synth::{Recipe, Synth};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("reads.blow5");
//! let synth = Synth::new(Recipe { reads: 5, mean_length: 4000.0, ..Recipe::default() })?;
//! synth.write(&path, Coding::Blow5(RecordPress::Zstd, SignalPress::SvbZd))?;
//!
//! let file = ReadFile::open(&path, Options::default())?;
//! let mut samples: u64 = 0;
//! let length = |read: &Read<'_>| (read.record.read_id.to_owned(), read.samples.len());
//! for read in file.map(&Selection::All, length)? {
//!     let (_id, length) = read?;
//!     samples += length as u64;
//! }
//! assert_eq!(samples, (0..5).map(|i| synth.len_of(i)).sum::<u64>());
//! # Ok(())
//! # }
//! ```
//!
//! # Read by id
//!
//! A list of ids is read in the order of the list. The index that this needs is made once, beside
//! the file or in the user's cache folder. [`ReadFile::getter`](reads::ReadFile::getter) is for one
//! read at a time:
//!
//! ```
//! use std::sync::Arc;
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::pod5::write::Pod5Layout;
//! use thalweg_nanopore::reads::{ReadFile, Selection};
//! use thalweg_nanopore::synth::{Recipe, Synth};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("reads.pod5");
//! let synth = Synth::new(Recipe { reads: 5, mean_length: 4000.0, ..Recipe::default() })?;
//! synth.write(&path, Coding::Pod5(Pod5Layout::default()))?;
//!
//! let file = ReadFile::open(&path, Options::default())?;
//! let ids = file.read_ids()?;
//! let wanted = Selection::Ids(Arc::new(vec![ids[3].clone(), ids[1].clone()]));
//! let lengths = file.map(&wanted, |read| read.samples.len() as u64)?;
//! assert_eq!(lengths.collect::<Result<Vec<_>, _>>()?, [synth.len_of(3), synth.len_of(1)]);
//!
//! let mut getter = file.getter()?;
//! assert_eq!(getter.get(&ids[2], |read| read.sample_count)?, synth.len_of(2));
//! # Ok(())
//! # }
//! ```
//!
//! # Convert and scan
//!
//! A [`ReadSet`](reads::ReadSet) is one or more files as one data set. A scan yields fields as
//! Arrow batches without decoding samples:
//!
//! ```
//! use thalweg_io::condition::Condition;
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::convert::{Conversion, convert};
//! use thalweg_nanopore::pod5::write::Pod5Layout;
//! use thalweg_nanopore::reads::{ReadSet, ScanOptions, Selection};
//! use thalweg_nanopore::slow5::{RecordPress, SignalPress};
//! use thalweg_nanopore::synth::{Recipe, Synth};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let blow5 = folder.path().join("reads.blow5");
//! # let pod5 = folder.path().join("reads.pod5");
//! let synth = Synth::new(Recipe { reads: 5, mean_length: 4000.0, ..Recipe::default() })?;
//! synth.write(&blow5, Coding::Blow5(RecordPress::Zlib, SignalPress::SvbZd))?;
//!
//! let set = ReadSet::open([&blow5], Options::default())?;
//! let conversion = Conversion::new(Coding::Pod5(Pod5Layout::default()));
//! assert_eq!(convert(&set, &Selection::All, &pod5, &conversion)?.reads, 5);
//!
//! let set = ReadSet::open([&pod5], Options::default())?;
//! let condition = Some(Condition::parse("samples >= 4000")?);
//! let options = ScanOptions { condition, ..ScanOptions::default() };
//! let mut rows = 0;
//! for batch in set.scan(&Selection::All, &options)? {
//!     rows += batch?.num_rows();
//! }
//! assert_eq!(rows, (0..5).filter(|&i| synth.len_of(i) >= 4000).count());
//! # Ok(())
//! # }
//! ```

pub mod bam;
mod coding_choice;
pub mod convert;
pub mod fast5;
#[doc(hidden)]
pub mod file;
mod foreign;
pub mod format;
pub mod losses;
mod output;
pub mod pod5;
pub mod reads;
pub mod record;
pub mod slow5;
pub mod synth;
pub mod write;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
