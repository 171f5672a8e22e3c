//! From a path to what it holds: reads, arrays, or a network.

#[cfg(feature = "hdf5")]
mod arrays;
#[cfg(not(feature = "hdf5"))]
#[path = "open/without_arrays.rs"]
mod arrays;

use std::path::{Path, PathBuf};

use thalweg_graph::Network;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::{Error, Result};
use thalweg_nanopore::format::Format;
use thalweg_nanopore::reads::ReadFile;

pub use arrays::ArrayFile;

/// What a path holds, open.
#[derive(Debug)]
pub enum Opened {
    /// Nanopore reads: SLOW5, BLOW5, POD5 or FAST5.
    Reads(ReadFile),
    /// Arrays of an HDF5 file: NeXus, netCDF-4, SONATA and others.
    Arrays(ArrayFile),
    /// A folder with a network of vertices and edges.
    Network(Network),
}

/// Opens a path for what it holds. A file is opened once, whatever it turns out to be.
///
/// A folder with the manifest of a network is a network. A file whose name ends as those of reads
/// do (`.slow5`, `.blow5`, `.pod5`, `.fast5`) is one of reads. Of other files the first bytes tell:
/// HDF5 without FAST5's groups is a file of arrays, all else is one of reads. SLOW5 has no
/// signature, so that its parser refuses what is none of these.
///
/// Values that an HDF5 file keeps in other files are read from its own folder only;
/// [`Identified::trusted`] is for files whose values may come from anywhere.
///
/// # Errors
/// [`Error::Io`] about the path, [`Error::Malformed`] about what it holds; [`Error::Unsupported`]
/// for a folder that is no network, and for arrays in a build without the feature `hdf5`.
pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Opened> {
    Identified::new(path.as_ref(), &options)?.open(options)
}

/// A path whose kind is known, before its metadata are read: the first half of [`open`], for
/// callers that decide between the two how to go on.
#[derive(Debug)]
pub struct Identified {
    path: PathBuf,
    content: Content,
    is_trusted: bool,
}

#[derive(Debug)]
enum Content {
    Network,
    Reads(OpenedStore),
    Hdf5(OpenedStore),
}

impl Identified {
    /// Finds out what kind of thing is at a path.
    ///
    /// # Errors
    /// [`Error::Io`] about the path; [`Error::Unsupported`] for a folder that is no network.
    pub fn new(path: &Path, options: &Options) -> Result<Self> {
        if Network::is_at(path) {
            return Ok(Self::of(path, Content::Network));
        }
        Self::from_store(path, OpenedStore::unthrottled(path, options)?)
    }

    /// Finds out what kind of file it is whose store is open already: `opened` is that of `path`,
    /// not throttled.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn from_store(path: &Path, opened: OpenedStore) -> Result<Self> {
        // What the name says needs no request.
        let is_hdf5 = Format::of_path(path).is_none() && thalweg_hdf5::is_hdf5(&*opened.store)?;
        let content = if is_hdf5 { Content::Hdf5(opened) } else { Content::Reads(opened) };
        Ok(Self::of(path, content))
    }

    fn of(path: &Path, content: Content) -> Self {
        Self { path: path.to_owned(), content, is_trusted: false }
    }

    /// Whether the content is trusted: values that an HDF5 file keeps in other files are then read
    /// from anywhere, and not from its own folder only.
    #[must_use]
    pub fn trusted(self, is_trusted: bool) -> Self {
        Self { is_trusted, ..self }
    }

    /// Whether it is an HDF5 file whose name is not that of a file of reads: most likely one of
    /// arrays.
    pub fn is_hdf5(&self) -> bool {
        matches!(self.content, Content::Hdf5(_))
    }

    /// Opens it: the second half of [`open`].
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(self, options: Options) -> Result<Opened> {
        let Self { path, content, is_trusted } = self;
        match content {
            Content::Network => network(&path, options),
            Content::Reads(store) => {
                let store = store.apply(&options);
                Ok(Opened::Reads(ReadFile::from_opened(&path, store, options)?))
            }
            Content::Hdf5(store) => arrays::open(&path, store.apply(&options), is_trusted, options),
        }
    }
}

fn network(path: &Path, options: Options) -> Result<Opened> {
    let Options { budget, control, model, .. } = options;
    let options = thalweg_graph::NetworkOptions {
        budget,
        control,
        model,
        ..thalweg_graph::NetworkOptions::default()
    };
    Ok(Opened::Network(Network::open(path, options)?))
}

impl Opened {
    /// The file of reads.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is something else.
    pub fn into_reads(self) -> Result<ReadFile> {
        let (file, what, advice) = match self {
            Self::Reads(file) => return Ok(file),
            Self::Arrays(file) => (
                arrays::name(&file),
                "an HDF5 file without reads",
                "a FAST5 file has groups named read_<id>, or one named Raw/Reads",
            ),
            Self::Network(network) => {
                (network.name(), "a network in place of reads", "`thalweg graph` reads networks")
            }
        };
        Err(Error::Unsupported { file, what: what.into(), advice: advice.into() })
    }
}
