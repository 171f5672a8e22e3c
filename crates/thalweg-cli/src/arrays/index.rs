//! `thalweg index` of a file of arrays: where its chunks lie, for thalweg or for kerchunk.

use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::ArrayFile;
use thalweg::arrays::References;
use thalweg::new_file::NewFile;
use thalweg::reads::index_path;

use crate::common::{VerbResult, complain, output, shown_path};

/// The option to write references for kerchunk.
#[derive(Debug, clap::Args)]
pub(crate) struct KerchunkArgs {
    /// HDF5: write a kerchunk reference set of where the chunks of the file's arrays lie, through
    /// which programs open the file as a Zarr store (version 2)
    #[arg(long, value_name = "OUT.json", conflicts_with = "output")]
    kerchunk: Option<PathBuf>,
}

impl KerchunkArgs {
    /// The reference set to write, if --kerchunk is given.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.kerchunk.as_deref()
    }
}

/// Writes a file's arrays as references to it, and prints which arrays are left out.
pub(crate) fn write_references(path: &Path, file: &ArrayFile, out: &Path) -> VerbResult {
    let full = path
        .canonicalize()
        .map_err(|e| thalweg::Error::io(&path.to_string_lossy().into(), "finding", e))?;
    let References { set, arrays, left_out } = file.references(&full.to_string_lossy())?;
    NewFile::create(out)?.finish_with(set.to_string().as_bytes())?;
    for what in &left_out {
        complain(&format!("left out: {what}"));
    }
    writeln!(output(), "{arrays} arrays in {}, {} left out", shown_path(out), left_out.len())?;
    Ok(())
}

/// Saves where the chunks of a file lie: at `out`, or else beside the file, or in the cache folder.
pub(crate) fn write_index(path: &Path, file: &ArrayFile, out: Option<&Path>) -> VerbResult {
    let (place, _) = file.write_index(out)?;
    if out.is_none() && place != index_path(path) {
        complain(&format!(
            "the index is {}: the folder of the file cannot be written",
            place.display()
        ));
    }
    Ok(())
}
