//! HDF5 files that hold arrays, opened with care.

use std::path::{Path, PathBuf};

use thalweg::arrays::{ArrayFile, is_hdf5};
use thalweg::control::Control;
use thalweg::format::Format;
use thalweg::hdf5::libhdf5::ExternalAccess;
use thalweg::inspector::Inspector;
use thalweg::reads::Options;
use thalweg::store::FileStore;

use crate::common::{Failure, Outcome};

/// Opens a file of arrays; `None` for any other.
pub(crate) fn open(
    path: &Path,
    options: &Options,
    is_trusted: bool,
) -> Result<Option<ArrayFile>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    // Where the name says that it has reads, nothing is looked at: that would be a request more for
    // each of them.
    if Format::of_path(path).is_some() {
        return Ok(None);
    }
    if !is_hdf5(&FileStore::open(path)?)? {
        return Ok(None);
    }
    let reach = if is_trusted { ExternalAccess::Anywhere } else { ExternalAccess::Folder };
    let file = ArrayFile::open_with_access(path, reach, options.clone())?;
    Ok(if thalweg::format::fast5::has_reads(&file)? { None } else { Some(file) })
}

/// A process of this program that looks through a file, and through its own indexes even where
/// there is one beside it.
fn looker(program: PathBuf, own_index: bool) -> Inspector {
    Inspector::new(
        program,
        ["read", "--vet", "--no-index"].into_iter().take(if own_index { 3 } else { 2 }),
    )
}

/// Has a process of this program look through what libhdf5 is going to open.
pub(crate) fn guard(options: &Options) {
    if let Ok(program) = std::env::current_exe() {
        looker(program, options.own_index).watch(&options.control);
    }
}

/// Has a process of this program look through all of a file now.
pub(crate) fn look_first(path: &Path, control: &Control) -> Outcome {
    let program =
        std::env::current_exe().map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding", e))?;
    Ok(looker(program, true).check(path, None, control)?)
}

/// A shape, as in `37x53`.
pub(crate) fn times(lengths: &[u64]) -> String {
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
