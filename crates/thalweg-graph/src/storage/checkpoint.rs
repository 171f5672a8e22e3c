//! The checkpoint of an import that was interrupted: what it has written so far, which readers do
//! not see yet. The manifest holds it.

use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use thalweg_codec::splitmix::checksum;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::urls::{shown, url};
use thalweg_io::{Result, sidecar};

use crate::storage::lists::ListsMeta;
use crate::storage::table::TableMeta;

/// The file that an input is read from, and how. An interrupted import continues only with an equal
/// origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrigin {
    /// The canonical path of the file, or its URL.
    pub path: String,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The time of its last change, in nanoseconds since 1970; of an object at a URL, a hash of its
    /// version.
    pub modified: u64,
    /// The options that it is read with, as any text.
    pub options: String,
}

impl ImportOrigin {
    /// The origin of a file.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn of(path: &Path, options: String) -> Result<Self> {
        if let Some(url) = url(path) {
            let object = OpenedStore::unthrottled(path, &Options::default())?;
            let version = sidecar::version(url).unwrap_or_default();
            let modified = checksum(version.as_bytes());
            return Ok(Self { path: shown(url), bytes: object.store.size(), modified, options });
        }
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

/// How many edges and vertices an import read and added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Edges read.
    pub read: u64,
    /// Edges added.
    pub edges: u64,
    /// Vertices added.
    pub vertices: u64,
    /// Populations whose edges an earlier, interrupted call had read.
    pub resumed: u64,
}

/// The checkpoint of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportCheckpoint {
    pub(crate) origin: ImportOrigin,
    /// The segment being written.
    pub(crate) file: String,
    /// The pages that are durable.
    pub(crate) pages: u64,
    /// The hash of the checksums of these pages.
    pub(crate) hash: u64,
    pub(crate) written: Vec<PopulationCheckpoint>,
    pub(crate) done: Imported,
}

/// The edges of a population that were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PopulationCheckpoint {
    pub(crate) population: usize,
    pub(crate) parts: [Option<ListsMeta>; 2],
    pub(crate) table: Option<TableMeta>,
    pub(crate) count: u64,
    pub(crate) next: u64,
}
