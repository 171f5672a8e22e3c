//! `thalweg index` of a file of arrays: where its chunks lie, for thalweg or for kerchunk.

use std::path::{Path, PathBuf};
use std::time::Instant;

use thalweg::ArrayFile;
use thalweg::arrays::References;
use thalweg::new_file::NewFile;
use thalweg_io::urls::{self, url};

use crate::common::{VerbResult, complain, counted};
use crate::done::say_done;

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
    let started = Instant::now();
    let name = urls::shown_path(path).into();
    // The query of a web server may be a signature, which does not last.
    let full = url(path)
        .map(|url| PathBuf::from(urls::shown(url)))
        .map_or_else(|| path.canonicalize(), Ok)
        .map_err(|e| thalweg::Error::io(&name, "finding", e))?;
    // Another name in its place would be that of another file, or of none.
    let Some(url) = full.to_str() else {
        let what = "a reference to a path that is not UTF-8".into();
        let advice = "JSON has no such names: rename the file or its folder".into();
        return Err(thalweg::Error::Unsupported { file: name, what, advice }.into());
    };
    let References { set, arrays, left_out } = file.references(url)?;
    NewFile::create(out)?.finish_with(set.to_string().as_bytes())?;
    for what in &left_out {
        complain(&format!("left out: {what}"));
    }
    let arrays = counted(arrays as u64, "array");
    let left_out = left_out.len();
    say_done(&format!("{arrays}, {left_out} left out"), out, started.elapsed().as_secs_f64());
    Ok(())
}

/// Saves where the chunks of a file lie: at `out`, or else beside the file, or in the cache folder.
/// Returns the path of the index.
pub(crate) fn write_index(file: &ArrayFile, out: Option<&Path>) -> thalweg::Result<PathBuf> {
    file.write_index(out).map(|(place, _)| place)
}
