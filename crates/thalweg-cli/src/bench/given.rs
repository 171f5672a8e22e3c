//! A file of the user that is measured: what it holds, and which peers can read it.

use std::path::{Path, PathBuf};

use thalweg::format::Format;
use thalweg::hdf5::array::Found;
use thalweg::hdf5::filter::Filter;
use thalweg::{ArrayFile, Identified, Opened, Options};
use thalweg_gauge::suite::{Peer, SuiteRecord};

use super::peers;
use crate::common::{Failure, shown_path};

/// The suite for files of reads, and that for HDF5 files of arrays, with the names that they have
/// for the file. The texts of these suites have the same names.
pub(super) const OF_READS: (&str, &str) = ("file", "reads");
pub(super) const OF_ARRAYS: (&str, &str) = ("arrays", "arrays");

/// The setting of the suite for arrays that names the dataset.
pub(super) const DATASET: &str = "dataset";

/// What a file holds, as far as peers differ in what they read.
#[derive(Debug)]
enum Content {
    Reads {
        format: Format,
        /// A compression that no released version of slow5lib has.
        unreleased: Option<&'static str>,
    },
    Arrays {
        /// The path of the largest dataset that can be read.
        largest: String,
        /// The first of its filters that hidefix lacks.
        not_of_hidefix: Option<String>,
    },
}

/// A file that a suite for files of the user measures on.
#[derive(Debug)]
pub(super) struct GivenFile {
    path: PathBuf,
    content: Content,
}

/// The formats that the peers for reads read, by their names in suites.
const READ_BY: [(&str, &[Format]); 6] = [
    ("slow5lib", &[Format::Slow5, Format::Blow5]),
    ("pyslow5", &[Format::Slow5, Format::Blow5]),
    ("pod5-c", &[Format::Pod5]),
    ("pod5", &[Format::Pod5]),
    ("escapepod", &[Format::Pod5]),
    ("h5py", &[Format::Fast5]),
];

impl GivenFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// When it cannot be read, or holds neither reads nor arrays.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        let options = Options::default();
        let content = match Identified::new(path, &options)?.open(options)? {
            Opened::Reads(file) => {
                let header = (file.format() == Format::Blow5).then(|| file.header());
                let unreleased = header.and_then(|header| {
                    let (record, signal) = (header.record_press, header.signal_press);
                    let of_record = Some(record.name()).filter(|_| !record.is_released());
                    of_record.or(Some(signal.name()).filter(|_| !signal.is_released()))
                });
                Content::Reads { format: file.format(), unreleased }
            }
            Opened::Arrays(file) => largest(path, &file)?,
            Opened::Fastq(_) => return Err(unmeasured(path, "FASTQ")),
            Opened::Network(_) => return Err(unmeasured(path, "a network")),
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// The file of a run, if its suite is a shipped one for files of the user.
    pub(super) fn of_run(record: &SuiteRecord) -> Result<Option<Self>, Failure> {
        let is_suite = |(name, _): &&(&str, &str)| record.source == format!("{name}.toml");
        let file = [OF_READS, OF_ARRAYS].iter().find(is_suite);
        let file = file.and_then(|(_, file)| record.files.get(*file));
        file.filter(|path| path.is_file()).map(|path| Self::new(path)).transpose()
    }

    /// The suite that measures on the file, and its name for the file.
    pub(super) fn suite(&self) -> (&'static str, &'static str) {
        match self.content {
            Content::Reads { .. } => OF_READS,
            Content::Arrays { .. } => OF_ARRAYS,
        }
    }

    /// The dataset that is read unless the user names one.
    pub(super) fn dataset(&self) -> Option<&str> {
        match &self.content {
            Content::Arrays { largest, .. } => Some(largest),
            Content::Reads { .. } => None,
        }
    }

    /// Looks a peer up that has to read the file.
    pub(super) fn peer(&self, name: &str) -> Peer {
        self.unread_by(name).map_or_else(|| peers::find(name), Peer::Absent)
    }

    /// Why a peer cannot read the file; `None` if it can, as far as is known.
    fn unread_by(&self, peer: &str) -> Option<String> {
        let file = shown_path(Path::new(self.path.file_name().unwrap_or_default()));
        let formats = READ_BY.iter().find(|(name, _)| *name == peer).map(|(_, formats)| *formats);
        match &self.content {
            Content::Reads { format, unreleased } => {
                let formats = formats?;
                if !formats.contains(format) {
                    let read = listed(formats);
                    return Some(format!("it reads {read}, and {file} is {}", format.name()));
                }
                let is_slow5lib = formats.contains(&Format::Blow5);
                if is_slow5lib && Format::of_path(&self.path) != Some(*format) {
                    let end = format.extension();
                    return Some(format!("it opens only names that end in .{end}, unlike {file}"));
                }
                unreleased.filter(|_| is_slow5lib).map(|press| {
                    format!("no released slow5lib has the compression {press} of {file}")
                })
            }
            Content::Arrays { not_of_hidefix, .. } => match formats {
                Some(formats) => {
                    Some(format!("it reads {}, and {file} holds HDF5 arrays", listed(formats)))
                }
                None => not_of_hidefix
                    .as_ref()
                    .filter(|_| peer == "hidefix")
                    .map(|filter| format!("it lacks the filter {filter} of {file}")),
            },
        }
    }
}

fn listed(formats: &[Format]) -> String {
    formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(" and ")
}

/// The largest array of a file that can be read.
fn largest(path: &Path, file: &ArrayFile) -> Result<Content, Failure> {
    let datasets = file.datasets()?;
    let readable = datasets.iter().filter(|dataset| dataset.not_read().is_none());
    let arrays = readable.filter_map(|dataset| match &dataset.found {
        Found::Array(array) => Some((dataset.path(), array)),
        Found::Other(_) => None,
    });
    let Some((largest, array)) = arrays.max_by_key(|(_, array)| array.bytes()) else {
        return Err(unmeasured(path, "HDF5 without an array that can be read"));
    };
    let lacks = |filter: &&Filter| {
        !matches!(filter, Filter::Deflate | Filter::Shuffle(_) | Filter::Convert(_))
    };
    let not_of_hidefix = array.pipeline.0.iter().find(lacks).map(ToString::to_string);
    Ok(Content::Arrays { largest: largest.to_owned(), not_of_hidefix })
}

fn unmeasured(path: &Path, what: &str) -> Failure {
    let name = shown_path(path);
    Failure::Usage(format!(
        "{name}: {what}; bench measures files of reads and HDF5 files of arrays by their names, \
         and any commands on others: thalweg bench -- 'COMMAND {name}' 'OTHER {name}'"
    ))
}
