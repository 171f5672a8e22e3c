//! Opens a path as reads, arrays, a network or FASTQ.

mod arrays;

use std::path::{Path, PathBuf};

use thalweg_fastq::{FastqFile, head, is_fastq, is_fastq_name};
use thalweg_graph::Network;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};
use thalweg_nanopore::format::Format;
use thalweg_nanopore::reads::ReadFile;

pub use arrays::{ArrayFile, open_store};

/// The open contents of a path.
#[derive(Debug)]
pub enum Opened {
    /// Nanopore reads: SLOW5, BLOW5, POD5 or FAST5.
    Reads(ReadFile),
    /// Arrays of an HDF5 file: NeXus, netCDF-4, SONATA and others.
    Arrays(ArrayFile),
    /// A folder with a network of vertices and edges.
    Network(Network),
    /// Sequences with qualities.
    Fastq(FastqFile),
}

/// Lets all functions of this process that open a path open URLs, too, such as `s3://bucket/key`
/// ([`object`](crate::object)). [`open`] does it by itself. Without the feature `object` it does
/// nothing, and a URL is an error.
pub fn open_urls() {
    #[cfg(feature = "object")]
    thalweg_object::register();
}

/// Opens a path or URL according to its content. A file is opened once, whatever it contains.
///
/// A folder with the manifest of a network is a network. A file with a name of a format of reads
/// (`.slow5`, `.blow5`, `.pod5`, `.fast5`) is a file of reads, but for a `.fast5` file that holds
/// something else and no reads: it is one of arrays. A name that ends in `.fastq` or `.fq`, maybe
/// with `.gz` after it, is one of FASTQ. For other files, the content decides: HDF5 without FAST5's
/// groups is a file of arrays, text that starts with `@`, plain or in gzip, is FASTQ, and
/// everything else is a file of reads. SLOW5 has no signature, so its parser refuses files of
/// unknown formats.
///
/// An HDF5 file may keep values in other files. These are read only if they are in the folder of
/// the HDF5 file; [`Identified::trusted`] allows any folder.
///
/// # Errors
/// [`Error::Io`] about the path, [`Error::Malformed`] about the content; [`Error::Unsupported`] for
/// a folder that is not a network.
pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Opened> {
    open_urls();
    Identified::new(path.as_ref(), &options)?.open(options)
}

/// A path whose kind is known, but whose metadata were not read yet. This is the first half of
/// [`open`], for callers that depend on the kind.
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
    Fastq(OpenedStore),
}

impl Identified {
    /// Finds out the kind of a path.
    ///
    /// # Errors
    /// [`Error::Io`] about the path; [`Error::Unsupported`] for a folder that is not a network.
    pub fn new(path: &Path, options: &Options) -> Result<Self> {
        if url(path).is_none() && Network::is_at(path) {
            return Ok(Self::of(path, Content::Network));
        }
        Self::from_store(path, OpenedStore::unthrottled(path, options)?)
    }

    /// Finds out the kind of a file whose store is already open. `opened` is the store of `path`,
    /// without a throttle.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn from_store(path: &Path, opened: OpenedStore) -> Result<Self> {
        // If the name determines the kind, no request is needed.
        let content = if Format::of_path(path).is_some() {
            Content::Reads(opened)
        } else if is_fastq_name(path) {
            Content::Fastq(opened)
        } else if thalweg_hdf5::is_hdf5(&*opened.store)? {
            Content::Hdf5(opened)
        } else if is_fastq(&head(&*opened.store)?) {
            Content::Fastq(opened)
        } else {
            Content::Reads(opened)
        };
        Ok(Self::of(path, content))
    }

    fn of(path: &Path, content: Content) -> Self {
        Self { path: path.to_owned(), content, is_trusted: false }
    }

    /// Sets whether the content is trusted. Values that a trusted HDF5 file keeps in other files
    /// are read from any folder, not only from its own.
    #[must_use]
    pub fn trusted(self, is_trusted: bool) -> Self {
        Self { is_trusted, ..self }
    }

    /// Whether it is an HDF5 file without a name of a format of reads. Most likely, it is a file of
    /// arrays.
    pub fn is_hdf5(&self) -> bool {
        matches!(self.content, Content::Hdf5(_))
    }

    /// Whether it is a FASTQ file.
    pub fn is_fastq(&self) -> bool {
        matches!(self.content, Content::Fastq(_))
    }

    /// Whether it may be a file of arrays: an HDF5 file, or one with the name of a FAST5 file. Such
    /// a file holds arrays if it has no reads.
    pub fn may_hold_arrays(&self) -> bool {
        self.is_hdf5() || Format::of_path(&self.path) == Some(Format::Fast5)
    }

    /// Opens the path. This is the second half of [`open`].
    ///
    /// # Errors
    /// The errors of [`open`].
    pub fn open(self, options: Options) -> Result<Opened> {
        let Self { path, content, is_trusted } = self;
        match content {
            Content::Network => network(&path, options),
            Content::Reads(store) => {
                let store = store.apply(&options);
                let again = store.another();
                match ReadFile::from_opened(&path, store, options.clone()) {
                    Ok(file) => Ok(Opened::Reads(file)),
                    // A file without reads that is named like one of FAST5's may hold arrays.
                    Err(Error::Unsupported { .. }) if is_fast5(&path, &again)? => {
                        arrays::open(&path, again, is_trusted, options)
                    }
                    Err(error) => Err(error),
                }
            }
            Content::Hdf5(store) => arrays::open(&path, store.apply(&options), is_trusted, options),
            Content::Fastq(store) => {
                let store = store.apply(&options);
                Ok(Opened::Fastq(FastqFile::from_opened(&path, store, options)?))
            }
        }
    }
}

/// Whether it is an HDF5 file whose name is that of a file of reads.
fn is_fast5(path: &Path, opened: &OpenedStore) -> Result<bool> {
    Ok(Format::of_path(path) == Some(Format::Fast5) && thalweg_hdf5::is_hdf5(&*opened.store)?)
}

fn network(path: &Path, options: Options) -> Result<Opened> {
    Ok(Opened::Network(Network::open(path, (&options).into())?))
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
                format!("an HDF5 file without reads{}", arrays::holds(&file)?),
                "a FAST5 file has groups named read_<id>, or one named Raw/Reads; \
                 `thalweg read FILE /PATH` reads arrays",
            ),
            Self::Fastq(file) => (
                file.name().clone(),
                "FASTQ in place of signal".into(),
                "`thalweg info`, `read`, `check` and `convert` read FASTQ",
            ),
            Self::Network(network) => (
                network.name(),
                "a network in place of reads".into(),
                "`thalweg graph info` describes it, and `thalweg graph` has the other verbs",
            ),
        };
        Err(Error::Unsupported { file, what: what.into(), advice: advice.into() })
    }
}
