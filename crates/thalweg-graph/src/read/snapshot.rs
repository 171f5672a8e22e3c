//! The state of a network at one moment: its manifest, its open segments, and the memtable, which
//! holds the changes of the log.

use std::sync::Arc;

use thalweg_io::disk::Disk;
use thalweg_io::{Error, Fault, InFile, Result};

use crate::read::memtable::Memtable;
use crate::storage::manifest::{self, Manifest};
use crate::storage::segment_reader::SegmentReader;
use crate::storage::{log, log_record};

/// The state of a network at one moment. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) readers: Vec<Arc<SegmentReader>>,
    pub(crate) memtable: Arc<Memtable>,
}

impl Snapshot {
    /// Opens the files that a manifest names. Also returns the length of the log up to the end of
    /// its last whole change.
    pub(crate) fn open(disk: &dyn Disk, manifest: Manifest) -> Result<(Self, u64)> {
        let readers = manifest
            .segments
            .iter()
            .map(|part| SegmentReader::open(disk, &part.file, &manifest))
            .collect::<Result<Vec<_>>>()?;
        for reader in &readers {
            if let Some(edges) =
                reader.footer.edges.iter().find(|edges| edges.population >= manifest.edges.len())
            {
                return Err(unknown(reader, "population", edges.population));
            }
            let mut vertices = reader.footer.vertices.iter();
            if let Some(vertices) =
                vertices.find(|vertices| vertices.vertex_type >= manifest.types.len())
            {
                return Err(unknown(reader, "type", vertices.vertex_type));
            }
        }
        let mut memtable = Memtable::default();
        let populations = manifest.edges.len();
        let types = manifest.types.len();
        let whole = log::replay(disk, &manifest.log_file(), manifest.log, &mut |_, change| {
            log_record::of_bytes(change, populations, types)?
                .iter()
                .for_each(|record| memtable.apply(record));
            Ok(())
        })?;
        Ok((Self { manifest: Arc::new(manifest), readers, memtable: Arc::new(memtable) }, whole))
    }
}

fn unknown(reader: &SegmentReader, what: &str, number: usize) -> Error {
    let fault =
        Fault::new(0, format!("{what} {number}"), format!("one that `{}` names", manifest::FILE));
    fault.in_file(reader.segment.store().name(), 0, "footer of a segment")
}
