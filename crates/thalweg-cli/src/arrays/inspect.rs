//! A child process that opens an HDF5 file before this process does: if libhdf5 crashes on a
//! malformed file, only the child ends.

use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::Options;
use thalweg::control::Control;
use thalweg::inspector::{Inspector, look};

use crate::common::{VerbResult, output};

/// Makes a child process inspect a file.
pub(super) fn inspect(path: &Path, control: &Control) -> VerbResult {
    let program =
        std::env::current_exe().map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding", e))?;
    Ok(Inspector::new(program, ["read", "--inspect"]).check(path, control)?)
}

/// `thalweg read --inspect FILE`, the work of the child process.
pub(crate) fn inspect_as_child(paths: &[PathBuf], options: Options) -> VerbResult {
    let [path] = paths else { return Ok(()) };
    let answer = look(path, options)?;
    let mut out = output();
    out.write_all(answer.line().as_bytes())?;
    out.flush()?;
    Ok(())
}
