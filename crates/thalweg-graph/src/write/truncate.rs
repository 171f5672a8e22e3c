//! Removing all edges of a population, or all vertices of a type, at once: the manifest says from
//! which segment on they count, and no list is read. Compaction frees the room.

use std::sync::Arc;

use thalweg_io::Result;

use crate::read::snapshot::Snapshot;
use crate::storage::schema::PopulationEntry;
use crate::storage::segment_reader::SegmentReader;
use crate::write::change::Committed;
use crate::write::writer::Writer;

impl Writer {
    /// Removes all edges of a population.
    pub(crate) fn truncate_population(&mut self, population: usize) -> Result<Committed> {
        self.known_population(population)?;
        self.truncate(&[population], None)
    }

    /// Removes all vertices of a type, and all edges of the populations that leave from this type
    /// or lead to it.
    pub(crate) fn truncate_type(&mut self, vertex_type: usize) -> Result<Committed> {
        self.known_type(vertex_type)?;
        let ends =
            |edges: &PopulationEntry| edges.source == vertex_type || edges.target == vertex_type;
        let populations = self.network.populations().iter().enumerate();
        let gone: Vec<usize> =
            populations.filter(|(_, edges)| ends(edges)).map(|(number, _)| number).collect();
        self.truncate(&gone, Some(vertex_type))
    }

    fn truncate(&mut self, populations: &[usize], vertex_type: Option<usize>) -> Result<Committed> {
        if let Some(background) = self.background.take() {
            background.stop(&*self.network.disk);
        }
        // Records of the log would count as newer than the removal.
        self.flush()?;
        let disk = self.network.disk.clone();
        let mut manifest = (*self.network.state.manifest).clone();
        let mut done = Committed::default();
        let since = manifest.next;
        manifest.next += 1;
        for population in populations {
            let edges = &mut manifest.edges[*population];
            done.edges_removed += std::mem::take(&mut edges.count);
            edges.since = since;
        }
        if let Some(known) = vertex_type.map(|vertex_type| &mut manifest.types[vertex_type]) {
            done.vertices_removed = std::mem::take(&mut known.count);
            known.since = since;
        }
        if done == Committed::default() {
            return Ok(done);
        }
        let mut readers = Vec::new();
        for part in std::mem::take(&mut manifest.segments) {
            let reader = SegmentReader::open(&*disk, &part, &manifest)?;
            if !reader.footer.edges.is_empty() || !reader.footer.vertices.is_empty() {
                manifest.segments.push(part);
                readers.push(reader);
            }
        }
        self.save(&mut manifest)?;
        self.network.state =
            Snapshot { manifest: Arc::new(manifest), readers, memtable: Arc::default() };
        self.sweep()?;
        Ok(done)
    }
}
