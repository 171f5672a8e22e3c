//! HDF5 files that hold arrays, opened with care.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use thalweg::arrays::{ArrayFile, is_hdf5};
use thalweg::format::Format;
use thalweg::format::hdf5::Reach;
use thalweg::reads::Options;
use thalweg::store::FileStore;

use crate::common::{Failure, Outcome};

/// What a process may take that looks through a file: libhdf5 believes what malformed ones say.
const VET_MEMORY: u64 = 4 << 30;
const VET_SECONDS: u64 = 60;

/// Opens a file of arrays; `None` for any other.
pub(crate) fn open(path: &Path, options: &Options, is_trusted: bool) -> Result<Option<ArrayFile>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    // Where the name says that it has reads, nothing is looked at: that would be a request more for each of them.
    if Format::of_path(path).is_some() {
        return Ok(None);
    }
    if !is_hdf5(&FileStore::open(path)?)? {
        return Ok(None);
    }
    if !is_trusted {
        guard(path)?;
    }
    let reach = if is_trusted { Reach::Anywhere } else { Reach::Folder };
    let file = ArrayFile::open_reaching(path, reach, options.clone())?;
    Ok(if file.is_fast5()? { None } else { Some(file) })
}

/// Has another process look through a file first, so that it is that one which libhdf5 takes down.
pub(crate) fn guard(path: &Path) -> Outcome {
    let failed = |e| thalweg::Error::io(&"thalweg".into(), "starting a process to look through the file:", e);
    let status = std::env::current_exe()
        .and_then(|exe| {
            Command::new(exe)
                .args(["read", "--vet"])
                .arg(path)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
        })
        .map_err(failed)?;
    // What it was refused is told by whoever reads it next.
    let Some(signal) = status.signal() else { return Ok(()) };
    let why = match Signal::from_named_raw(signal) {
        // Somebody wants both processes to end.
        Some(Signal::INT | Signal::TERM | Signal::HUP) => return Err(thalweg::Error::Cancelled.into()),
        Some(Signal::XCPU | Signal::KILL) => format!("takes libhdf5 more than {VET_SECONDS} s to look through"),
        _ => format!("makes libhdf5 crash (signal {signal})"),
    };
    Err(Failure::Said(format!(
        "{}: found a file that {why}, expected HDF5; it is damaged, or made to do harm",
        path.display()
    )))
}

/// Looks through a file within limits, for [`guard`].
pub(crate) fn vet(paths: &[PathBuf], options: &Options) -> Outcome {
    let limit = |resource, most| {
        let most = Some(most);
        // A lower limit that is there stays.
        let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
    };
    limit(Resource::Core, 0);
    limit(Resource::As, VET_MEMORY);
    limit(Resource::Cpu, VET_SECONDS);
    for path in paths {
        let file = ArrayFile::open(path, options.clone())?;
        if !file.is_fast5()? {
            file.datasets()?;
        }
    }
    Ok(())
}

/// A shape, as in `37x53`.
pub(crate) fn times(lengths: &[u64]) -> String {
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
