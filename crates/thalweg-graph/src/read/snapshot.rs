//! The state of a network at one moment: its manifest, its open segments, and the memtable, which
//! holds the changes of the log.

use std::sync::{Arc, OnceLock};

use thalweg_io::control::Control;
use thalweg_io::disk::Disk;
use thalweg_io::{Error, Fault, InFile, Result, pool};

use crate::read::memtable::Memtable;
use crate::storage::column::ColumnMeta;
use crate::storage::manifest::{self, Manifest};
use crate::storage::segment::PageCache;
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
    /// Opens the files that a manifest names, as many at a time as the disk says. Segments that are
    /// far away use `cache`.
    pub(crate) fn open(
        disk: &dyn Disk,
        manifest: Manifest,
        control: &Control,
        cache: Option<&Arc<PageCache>>,
    ) -> Result<Self> {
        let log = OnceLock::new();
        let files = manifest.segments.iter().enumerate().map(Some).chain([None]);
        let opened = pool::try_map(disk.at_once(), files, |file| {
            control.check()?;
            let Some((number, part)) = file else {
                log.get_or_init(|| disk.open(&manifest.log_file()));
                return Ok(None);
            };
            let cached = cache.map(|cache| (cache, number));
            SegmentReader::open_with(disk, part, &manifest, cached).map(Some)
        })?;
        let readers: Vec<Arc<SegmentReader>> = opened.into_iter().flatten().collect();
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
        check_vertex_counts(&manifest, &readers)?;
        let mut memtable = Memtable::default();
        let populations = manifest.edges.len();
        let types = manifest.types.len();
        let log = log.into_inner().unwrap_or_else(|| disk.open(&manifest.log_file()))?;
        log::replay_store(log, disk.at_once(), manifest.log, control, &mut |_, change| {
            // Once one is cancelled, all are.
            let _ = log_record::of_bytes(change, populations, types)?
                .iter()
                .try_for_each(|record| memtable.apply(record, control));
            Ok(())
        })?;
        control.check()?;
        Ok(Self { manifest: Arc::new(manifest), readers, memtable: Arc::new(memtable) })
    }
}

/// Checks that no segment adds more vertices of a type than the type has, and later segments
/// remove. A column of consecutive ids takes no bytes, so the file does not bound what it claims.
fn check_vertex_counts(manifest: &Manifest, readers: &[Arc<SegmentReader>]) -> Result<()> {
    let len = |column: &Option<ColumnMeta>| column.as_ref().map_or(0, ColumnMeta::len);
    for (number, vertex_type) in manifest.types.iter().enumerate() {
        let mut most = vertex_type.count;
        for reader in readers.iter().rev() {
            let Some(section) = reader.footer.vertices(number) else { continue };
            // A segment removes vertices that it adds itself, too.
            most = most.saturating_add(len(&section.removed));
            let added = len(&section.added);
            if added > most {
                let found = format!("{added} vertices of {:?}", vertex_type.name);
                let expected =
                    format!("at most {most}: `{}` counts {}", manifest::FILE, vertex_type.count);
                let fault = Fault::new(0, found, expected);
                return Err(fault.in_file(reader.segment.store().name(), 0, "footer of a segment"));
            }
        }
    }
    Ok(())
}

fn unknown(reader: &SegmentReader, what: &str, number: usize) -> Error {
    let fault =
        Fault::new(0, format!("{what} {number}"), format!("one that `{}` names", manifest::FILE));
    fault.in_file(reader.segment.store().name(), 0, "footer of a segment")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use thalweg_io::disk::Folder;

    use super::*;
    use crate::read::network::{Network, NetworkOptions};
    use crate::storage::column::{ColumnMeta, ColumnWriter, NumberCoding};
    use crate::storage::footer::{Footer, VERSION, VertexSection};
    use crate::storage::schema::VertexType;
    use crate::storage::segment::SegmentWriter;

    /// A network of one type, of which the manifest counts `count` vertices. Its segments add and
    /// remove this many consecutive ids.
    fn network(segments: &[(u64, u64)], count: u64) -> Result<Network> {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::new(folder.path(), false);
        let mut manifest = Manifest::new();
        let attributes = Arc::new(arrow_schema::Schema::empty());
        manifest.types.push(VertexType { name: "Cell".into(), attributes, count, since: 0 });
        let column = |len: u64| -> Option<ColumnMeta> {
            let text = format!(r#"{{"coding":{{"range":{{"start":0}}}},"len":{len},"end":0}}"#);
            (len > 0).then(|| serde_json::from_str(&text).unwrap())
        };
        for (added, removed) in segments {
            let file = manifest.new_file("seg");
            let mut segment = SegmentWriter::create(&disk, &file).unwrap();
            let mut filler = ColumnWriter::new(NumberCoding::Packed, true);
            [1, 5, 9].iter().for_each(|id| filler.push(&mut segment, *id).unwrap());
            filler.finish(&mut segment).unwrap();
            let vertices = vec![VertexSection {
                removed: column(*removed),
                ..VertexSection::of_added(0, column(*added).unwrap())
            }];
            let footer = Footer { version: VERSION, edges: Vec::new(), vertices };
            manifest.segments.push(segment.finish(&footer).unwrap());
        }
        log::LogWriter::create(&disk, &manifest.log_file(), manifest.log).unwrap();
        manifest.save(&disk).unwrap();
        Network::open(folder.path(), NetworkOptions::default())
    }

    #[test]
    fn a_segment_cannot_add_more_vertices_than_the_network_has() {
        const HUGE: u64 = u64::MAX - 1;
        for (segments, count) in
            [(&[(3, 0)][..], 3), (&[(3, 0), (1, 2)][..], 1), (&[(HUGE, 0), (1, 3)][..], HUGE - 1)]
        {
            network(segments, count).unwrap();
        }
        for segments in [&[(HUGE, 0)][..], &[(3, 0), (HUGE, 0)][..], &[(HUGE, 0), (1, 2)][..]] {
            let error = network(segments, 3).unwrap_err().to_string();
            assert!(error.contains(".seg") && error.contains("`manifest` counts 3"), "{error}");
        }
    }

    #[test]
    fn checks_and_loops_over_vertices_end() {
        let checked = network(&[(3, 0), (1, 2)], 2).unwrap().check(&mut |_| {}).unwrap();
        assert!(checked.defects.is_empty(), "{:?}", checked.defects);
        let checked = network(&[(3, 0), (1, 2)], 1).unwrap().check(&mut |_| {}).unwrap();
        let defects: Vec<String> = checked.defects.iter().map(|d| d.error.to_string()).collect();
        assert!(defects.len() == 1 && defects[0].contains("vertices of \"Cell\""), "{defects:?}");
        let network = network(&[(u64::MAX - 1, 0)], u64::MAX - 1).unwrap();
        let mut batches = 0;
        let ended = network.vertices(0, 0..=u64::MAX, &mut |_| {
            batches += 1;
            if batches == 3 {
                network.fetcher.control.cancel();
            }
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Cancelled)) && batches == 3);
        assert!(matches!(network.check(&mut |_| {}), Err(Error::Cancelled)));
    }
}
