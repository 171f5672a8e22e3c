//! Importing whole files in bounded memory: their contents go straight to segments, without the
//! log.

mod edges;
mod resume;
mod source_lists;
mod vertices;

use std::collections::BTreeSet;
use std::time::Instant;

use thalweg_io::{Error, Result};

use crate::input::Input;
use crate::storage::checkpoint::{ImportCheckpoint, Imported, PopulationCheckpoint};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::write::writer::Writer;

use vertices::import_vertices;

/// Reports how many edges have been read so far.
type Progress<'a> = dyn FnMut(u64) + 'a;

/// An import that is under way.
struct ImportRun {
    /// The name of the segment being written.
    file: String,
    segment: SegmentWriter,
    /// Populations whose edges are in the segment.
    written: Vec<PopulationCheckpoint>,
    done: Imported,
}

impl Writer {
    /// Imports all of `input`: all of it is in the network when this returns, and none of it after
    /// an error. Edges that exist are not added again, unless the population allows several between
    /// two vertices. Attributes of vertices replace those that they had. `progress` receives the
    /// number of edges read, from time to time.
    ///
    /// An import of an input with an [`ImportOrigin`](crate::ImportOrigin) can be interrupted: the
    /// populations that it has read are kept, and readers do not see them. The next call with the
    /// same input continues after them, unless the network was changed meanwhile.
    ///
    /// # Errors
    /// The errors of the input; [`Error::Usage`] if an import of the same file was interrupted and
    /// the file has changed since (see [`Writer::forget_import`]); [`Error::Io`], as on a full
    /// disk.
    pub fn import(&mut self, input: Input, progress: &mut dyn FnMut(u64)) -> Result<Imported> {
        self.flush()?;
        let origin = input.origin.clone();
        let outcome = self.import_input(input, progress);
        if let Err(e) = &outcome
            && self.log.check().is_ok()
        {
            // A defect of the input remains when the import is repeated.
            let is_final = !matches!(e, Error::Cancelled | Error::Io { .. })
                && !self.has_checkpoint_of_changed(origin.as_ref());
            let _ = if is_final { self.forget_import() } else { self.sweep() };
        }
        outcome
    }

    fn import_input(&mut self, mut input: Input, progress: &mut Progress<'_>) -> Result<Imported> {
        // New types and populations become visible together with their contents.
        let mut manifest = (*self.network.state.manifest).clone();
        let populations = self.define_populations(&mut manifest, &input)?;
        let types: Vec<usize> = input
            .vertices
            .iter()
            .map(|source| self.type_in(&mut manifest, source.vertex_type(), source.attributes()))
            .collect::<Result<_>>()?;
        let mut run = self.start_or_resume(&input, &populations, &mut manifest)?;
        self.import_populations(&mut run, &mut input, &populations, &manifest, progress)?;
        let mut vertices = Vec::new();
        for (source, vertex_type) in input.vertices.iter_mut().zip(&types) {
            vertices.push(import_vertices(&mut run.segment, &mut **source, *vertex_type)?);
        }
        let unmerged = self.share_vertex_columns(&mut run, &mut vertices, &mut manifest);
        self.finish_import(run, vertices, unmerged, manifest)
    }

    /// Adds the populations of an input to a manifest. Returns their numbers.
    fn define_populations(&self, manifest: &mut Manifest, input: &Input) -> Result<Vec<usize>> {
        let populations: Vec<usize> = input
            .edges
            .iter()
            .map(|source| self.population_in(manifest, source.population()))
            .collect::<Result<_>>()?;
        if let Some(twice) =
            (1..populations.len()).find(|i| populations[..*i].contains(&populations[*i]))
        {
            let name = &manifest.edges[populations[twice]].population.name;
            return Err(Error::Usage(
                format!("{name:?} comes twice: bring in one file at a time").into(),
            ));
        }
        Ok(populations)
    }

    /// Continues after the checkpoint of an interrupted import, or starts a segment.
    fn start_or_resume(
        &self,
        input: &Input,
        populations: &[usize],
        manifest: &mut Manifest,
    ) -> Result<ImportRun> {
        if let Some((segment, checkpoint)) = self.resumed(input, populations)? {
            let ImportCheckpoint { file, written, mut done, .. } = *checkpoint;
            done.resumed = written.len() as u64;
            return Ok(ImportRun { file, segment, written, done });
        }
        let file = manifest.new_file("seg");
        let segment = SegmentWriter::create(&*self.network.disk, &file)?;
        Ok(ImportRun { file, segment, written: Vec::new(), done: Imported::default() })
    }

    /// Imports the edges of all populations that are not written yet, with checkpoints between.
    fn import_populations(
        &mut self,
        run: &mut ImportRun,
        input: &mut Input,
        populations: &[usize],
        manifest: &Manifest,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let mut last_checkpoint = Instant::now();
        let first = run.written.len();
        for (source, population) in input.edges.iter_mut().zip(populations).skip(first) {
            if let Some(origin) = &input.origin
                && !run.written.is_empty()
                && last_checkpoint.elapsed() >= self.checkpoint_interval
            {
                self.save_checkpoint(run, origin, manifest.next)?;
                last_checkpoint = Instant::now();
            }
            let written = self.import_edges(run, &mut **source, *population, manifest, progress)?;
            run.written.push(written);
        }
        Ok(())
    }

    /// Lets a type that is new to the network, and whose vertices come from one side of a single
    /// population, use that side's column of vertices as its own. Returns the types whose vertices
    /// have to be merged from several columns.
    fn share_vertex_columns(
        &self,
        run: &mut ImportRun,
        vertices: &mut Vec<VertexSection>,
        manifest: &mut Manifest,
    ) -> BTreeSet<usize> {
        let mut unmerged = BTreeSet::new();
        for number in 0..manifest.types.len() {
            let mut columns = run.vertex_columns(number, manifest);
            let is_listed = vertices.iter().any(|section| section.vertex_type == number);
            let readers = &self.network.state.readers;
            let is_new = readers.iter().all(|reader| reader.footer.vertices(number).is_none());
            match (columns.pop(), columns.is_empty() && !is_listed && is_new) {
                (None, _) if !is_listed => {}
                (Some(only), true) => {
                    manifest.types[number].count = only.len();
                    run.done.vertices += only.len();
                    vertices.push(VertexSection::of_added(number, only));
                }
                _ => drop(unmerged.insert(number)),
            }
        }
        unmerged
    }

    /// Ends the segment, writes a second segment if there are vertices to merge, and installs both.
    fn finish_import(
        &mut self,
        run: ImportRun,
        vertices: Vec<VertexSection>,
        unmerged: BTreeSet<usize>,
        mut manifest: Manifest,
    ) -> Result<Imported> {
        let ImportRun { segment, mut written, mut done, .. } = run;
        let edges = written.iter_mut().flat_map(edge_sections).collect();
        let footer = Footer { version: VERSION, edges, vertices };
        let mut entries = vec![segment.finish(&footer)?];
        if !unmerged.is_empty() {
            entries.push(self.write_vertices(&entries[0], unmerged, &mut manifest, &mut done)?);
        }
        for population in &written {
            let edges = &mut manifest.edges[population.population];
            edges.count += population.count;
            edges.next = population.next;
            done.edges += population.count;
        }
        self.install(self.network.state.readers.len(), entries, |known| {
            let segments = std::mem::take(&mut known.segments);
            *known = manifest;
            known.segments = segments;
            known.log = known.next;
            known.next += 1;
        })?;
        Ok(done)
    }
}

/// The footer's sections for a population. Takes the lists and the table out of its checkpoint.
fn edge_sections(written: &mut PopulationCheckpoint) -> impl Iterator<Item = EdgeSection> {
    let population = written.population;
    let [out, into] = std::mem::take(&mut written.parts);
    let table = written.table.take();
    let out = EdgeSection { population, side: Side::Out, added: out, removed: None, table };
    let into = EdgeSection { population, side: Side::In, added: into, removed: None, table: None };
    [out, into].into_iter().filter(|section| section.added.is_some())
}
