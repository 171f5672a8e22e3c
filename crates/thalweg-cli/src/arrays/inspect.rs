//! A child process that opens an HDF5 file before this process does: if libhdf5 crashes on a
//! malformed file, only the child ends.

use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::Options;
use thalweg::control::Control;
use thalweg::inspector::{ALL, Inspector, look};

use crate::common::{VerbResult, output};

/// The command that inspects a file. `own_index`: it finds chunks through the file's own indexes,
/// even if there is an index beside the file.
fn inspector(program: PathBuf, own_index: bool) -> Inspector {
    let arguments = ["read", "--inspect", "--no-index"];
    Inspector::new(program, arguments.into_iter().take(if own_index { 3 } else { 2 }))
}

/// Makes a child process inspect each file that libhdf5 is going to open under these options.
pub(crate) fn inspect_first(options: &Options) {
    if let Ok(program) = std::env::current_exe() {
        inspector(program, options.own_index).watch(&options.control);
    }
}

/// Makes a child process inspect a whole file now, and the values that libhdf5 reads.
pub(super) fn inspect_now(path: &Path, control: &Control) -> VerbResult {
    let program =
        std::env::current_exe().map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding", e))?;
    Ok(inspector(program, true).check(path, Some(ALL), control)?)
}

/// `thalweg read --inspect FILE [DATASET..]`, the work of the child process: opens the file, and
/// reads the datasets.
pub(crate) fn inspect_as_child(paths: &[PathBuf], options: Options) -> VerbResult {
    let [path, datasets @ ..] = paths else { return Ok(()) };
    let datasets: Vec<String> =
        datasets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let answer = look(path, &datasets, options)?;
    let mut out = output();
    out.write_all(answer.line().as_bytes())?;
    out.flush()?;
    Ok(())
}
