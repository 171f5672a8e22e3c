//! Writing the new network: a segment of edges, a segment of vertices, an empty log, a manifest.

use thalweg_io::Result;

use super::damaged::DamagedNetwork;
use super::report::RepairReport;
use crate::storage::footer::{Footer, VERSION};
use crate::storage::log::LogWriter;
use crate::storage::manifest::Manifest;
use crate::storage::schema::PopulationEntry;
use crate::storage::segment::SegmentEntry;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;

impl DamagedNetwork<'_> {
    /// Writes the new network. Edges come first, because they bring the vertices at their ends.
    pub(super) fn rebuild(&self, manifest: &mut Manifest, report: &mut RepairReport) -> Result<()> {
        manifest.types.clone_from(&self.manifest.types);
        manifest.edges.clone_from(&self.manifest.edges);
        manifest.types.iter_mut().for_each(|known| known.since = 0);
        manifest.edges.iter_mut().for_each(|known| known.since = 0);
        let edges = self.write_edges(manifest, report)?;
        self.to.sync()?;
        let reader = SegmentReader::open(self.to, &edges, manifest)?;
        let vertices = self.write_vertices(&reader, manifest, report)?;
        manifest.segments = vec![edges, vertices];
        manifest.log = manifest.next;
        manifest.next += 1;
        drop(LogWriter::create(self.to, &manifest.log_file(), manifest.log)?);
        manifest.save(self.to)
    }

    fn write_edges(
        &self,
        manifest: &mut Manifest,
        report: &mut RepairReport,
    ) -> Result<SegmentEntry> {
        let file = manifest.new_file("seg");
        let mut segment = SegmentWriter::create(self.to, &file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for population in 0..manifest.edges.len() {
            let known = &mut manifest.edges[population];
            let (sections, kept) = self.population(&mut segment, population, known)?;
            footer.edges.extend(sections);
            report.edges.push(kept);
        }
        segment.finish(&footer)
    }

    fn write_vertices(
        &self,
        edges: &SegmentReader,
        manifest: &mut Manifest,
        report: &mut RepairReport,
    ) -> Result<SegmentEntry> {
        let file = manifest.new_file("seg");
        let mut segment = SegmentWriter::create(self.to, &file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for vertex_type in 0..manifest.types.len() {
            let (section, mut kept) = self.vertices(&mut segment, edges, vertex_type)?;
            // If removed edges may be back, so may the vertices at their ends.
            let mut populations = report.edges.iter().zip(&self.manifest.edges);
            let has_end = |known: &PopulationEntry| {
                known.source == vertex_type || known.target == vertex_type
            };
            kept.is_in_doubt |= kept.restored > 0
                && populations.any(|(kept, known)| kept.is_in_doubt && has_end(known));
            manifest.types[vertex_type].count = kept.kept;
            footer.vertices.push(section);
            report.vertices.push(kept);
        }
        segment.finish(&footer)
    }
}
