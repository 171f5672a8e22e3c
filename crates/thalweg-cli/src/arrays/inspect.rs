//! A child process that opens an HDF5 file before this process does: if libhdf5 crashes on a
//! malformed file, only the child ends.

use std::io::Write;
use std::path::PathBuf;

use thalweg::Options;
use thalweg::inspector::{Inspector, look};

use crate::common::{Failure, VerbResult, output};

/// Inspects a file in a child process.
pub(super) fn inspector() -> Result<Inspector, Failure> {
    let program =
        std::env::current_exe().map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding", e))?;
    Ok(Inspector::new(program, ["read", "--inspect"]))
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
