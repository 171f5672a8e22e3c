//! Opens HDF5 files: as arrays, or as reads if they have FAST5's groups.

use std::path::Path;
use std::sync::Arc;

use thalweg_fastq::{FastqFile, head, is_fastq};
use thalweg_hdf5::other_files::ExternalAccess;
use thalweg_io::Result;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::store::Store;
use thalweg_nanopore::fast5::has_reads;
use thalweg_nanopore::reads::ReadFile;

use super::Opened;

pub use thalweg_hdf5::arrays::ArrayFile;

/// Opens an HDF5 file as reads if it has FAST5's groups, and as arrays otherwise.
pub(super) fn open(
    path: &Path,
    opened: OpenedStore,
    is_trusted: bool,
    options: Options,
) -> Result<Opened> {
    let again = opened.another();
    let reach = if is_trusted { ExternalAccess::Anywhere } else { ExternalAccess::Folder };
    let file = ArrayFile::from_opened(path, opened, reach, options.clone())?;
    if has_reads(&file)? {
        return Ok(Opened::Reads(ReadFile::from_opened(path, again, options)?));
    }
    Ok(Opened::Arrays(file))
}

/// Opens the file that a store holds, according to its content: as reads, as arrays if it is HDF5
/// without FAST5's groups, or as FASTQ. It has no path: no index of it is looked for or left
/// anywhere, and values in other files are refused.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) of the store, [`Error::Malformed`](crate::Error::Malformed)
/// about the content.
pub fn open_store(store: Arc<dyn Store>, options: Options) -> Result<Opened> {
    if thalweg_hdf5::is_hdf5(&*store)? {
        let file = ArrayFile::from_store(store.clone(), options.clone())?;
        if !has_reads(&file)? {
            return Ok(Opened::Arrays(file));
        }
    }
    if is_fastq(&head(&*store)?) {
        return Ok(Opened::Fastq(FastqFile::from_store(store, options)?));
    }
    Ok(Opened::Reads(ReadFile::from_store(store, options)?))
}

pub(super) fn name(file: &ArrayFile) -> Arc<str> {
    file.store().name().clone()
}

/// Most objects that an error names.
const MOST_NAMED: usize = 5;

/// What a file holds at its top, in words that continue an error message.
pub(super) fn holds(file: &ArrayFile) -> Result<String> {
    let links = file.metadata().root().links()?;
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).take(MOST_NAMED).collect();
    let more = if links.len() > names.len() { ", .." } else { "" };
    let held = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    Ok(format!(" (it holds {held}{more})"))
}
