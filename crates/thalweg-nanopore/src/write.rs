//! Reads into new files of any format.

mod fast5;
mod pod5;
mod reads;
mod slow5;
mod spill;

use std::fs;
use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Result};

use crate::record::Index;

pub use fast5::Fast5Writer;
pub use pod5::Pod5Writer;
pub use reads::{Coding, Encoded, ReadEncoder, ReadSink, Sealed, Target, Written};
pub use slow5::ReadWriter;

/// Writes an index file, and the folder for it if need be.
///
/// # Errors
/// [`Error::Io`], as where the folder is read-only.
pub fn save_index(index: &Index, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io(&folder.to_string_lossy().into(), "creating", e))?;
    }
    let mut file = NewFile::create(path)?;
    for part in index.parts() {
        file.push(part)?;
    }
    file.finish()
}
