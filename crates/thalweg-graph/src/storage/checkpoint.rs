//! The checkpoint of an import that was interrupted: what it has written so far, out of sight of
//! readers. The manifest holds it.

use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use thalweg_io::Result;

use crate::storage::lists::ListsMeta;
use crate::storage::table::TableMeta;

/// Which file an input is of, and how it is read: an import that was stopped goes on only with the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified: u64,
    /// How it is read, in any words.
    pub options: String,
}

impl Origin {
    /// That of a file.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn of(path: &Path, options: String) -> Result<Self> {
        let of_file = || {
            let (path, meta) = (std::fs::canonicalize(path)?, std::fs::metadata(path)?);
            let modified =
                meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
            Ok((path, meta.len(), modified))
        };
        let (path, bytes, modified) = of_file().map_err(|e: std::io::Error| {
            thalweg_io::Error::io(&path.to_string_lossy().into(), "opening", e)
        })?;
        Ok(Self { path: path.to_string_lossy().into_owned(), bytes, modified, options })
    }
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Edges that were read.
    pub read: u64,
    /// Edges that are new.
    pub edges: u64,
    /// Vertices that are new.
    pub vertices: u64,
    /// Populations of which an earlier call, that was stopped, had read the edges.
    pub resumed: u64,
}

/// An import that is not finished: what it was of, and the pages and populations that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportCheckpoint {
    pub(crate) origin: Origin,
    pub(crate) file: String,
    pub(crate) pages: u64,
    /// The hash of the pages' checksums.
    pub(crate) hash: u64,
    pub(crate) written: Vec<PopulationCheckpoint>,
    pub(crate) done: Imported,
}

/// Edges of a population, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PopulationCheckpoint {
    pub(crate) population: usize,
    pub(crate) parts: [Option<ListsMeta>; 2],
    pub(crate) table: Option<TableMeta>,
    pub(crate) count: u64,
    pub(crate) next: u64,
}
