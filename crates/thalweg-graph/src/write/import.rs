//! Whole files into a network, in bounded memory: what is in them goes straight to a segment, past
//! the log.

use crate::external_sort::spill_path;
use crate::storage::checkpoint::ImportCheckpoint;
use crate::storage::checkpoint::Imported;
use crate::storage::checkpoint::PopulationCheckpoint;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use thalweg_io::{Error, Result};

use crate::external_sort::EdgeSorter;
use crate::input::{EdgeBatch, EdgeSource, Input, VertexBatch, VertexSource};
use crate::read::merge;
use crate::read::neighbours::Neighbours;
use crate::read::network::Adjacency;
use crate::storage::checkpoint::Origin;
use crate::storage::column::{Coding, ColumnMeta, ColumnReader, ColumnWriter};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::lists::ListsWriter;
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::TableWriter;
use crate::write::writer::Writer;

impl Writer {
    /// Brings in all of `input`. Edges that are there already are not added again, unless the
    /// population knows several between two vertices; attributes of vertices replace those that
    /// they had. All of it is there when this returns, and none of it if something is wrong.
    /// `progress` is told, now and then, how many edges were read.
    ///
    /// Of an input with an [`Origin`], populations that were read are kept, out of sight, where an
    /// import is stopped, fails to write, or its process ends; it goes on after them when it is
    /// called again, unless the network was changed meanwhile.
    ///
    /// # Errors
    /// Those of the input; [`Error::Usage`] if an import of its file was stopped, and the file is
    /// not what it was: see [`Writer::forget_import`]; [`Error::Io`], as on a full disk.
    pub fn import(&mut self, input: Input, progress: &mut dyn FnMut(u64)) -> Result<Imported> {
        self.flush()?;
        let origin = input.origin.clone();
        let outcome = self.bring_in(input, progress);
        if let Err(e) = &outcome
            && self.log.check().is_ok()
        {
            // An input that is wrong stays so.
            let is_over = !matches!(e, Error::Cancelled | Error::Io { .. })
                && !self.is_of_another(origin.as_ref());
            let _ = if is_over { self.forget_import() } else { self.sweep() };
        }
        outcome
    }

    /// Forgets what was kept of an import that was stopped: the next one begins anew.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_import(&mut self) -> Result<()> {
        let mut manifest = (*self.network.state.manifest).clone();
        if manifest.unfinished.is_some() {
            self.save(&mut manifest)?;
            self.network.state.manifest = Arc::new(manifest);
        }
        self.sweep()
    }

    /// Whether something is kept of the same file as it was once.
    fn is_of_another(&self, origin: Option<&Origin>) -> bool {
        let unfinished = &self.network.state.manifest.unfinished;
        origin
            .zip(unfinished.as_ref())
            .is_some_and(|(new, old)| new.path == old.origin.path && *new != old.origin)
    }

    /// Where an import of these populations goes on, if one was stopped.
    fn resumed(
        &self,
        input: &Input,
        populations: &[usize],
    ) -> Result<Option<(SegmentWriter, Box<ImportCheckpoint>)>> {
        let Some((origin, old)) =
            input.origin.as_ref().zip(self.network.state.manifest.unfinished.as_ref())
        else {
            return Ok(None);
        };
        if self.is_of_another(Some(origin)) {
            let what = format!(
                "{}: the file or the options were others when an import of it into {} was stopped, which kept {} of its {} populations: \
                 put it back as it was, or forget what was kept (--anew)",
                origin.path,
                self.network.disk.name(),
                old.written.len(),
                populations.len()
            );
            return Err(Error::Usage(what.into()));
        }
        let same = old.origin == *origin
            && old.written.len() <= populations.len()
            && old
                .written
                .iter()
                .zip(populations)
                .all(|(written, population)| written.population == *population);
        if !same {
            return Ok(None);
        }
        let segment = SegmentWriter::go_on(&*self.network.disk, &old.file, old.pages, old.hash)?;
        Ok(segment.map(|segment| (segment, old.clone())))
    }

    /// Makes what there is so far durable, out of sight.
    fn keep(&mut self, unfinished: ImportCheckpoint, next: u64) -> Result<()> {
        let mut manifest = (*self.network.state.manifest).clone();
        manifest.next = next;
        manifest.unfinished = Some(Box::new(unfinished));
        self.replace(&mut manifest)?;
        self.network.state.manifest = Arc::new(manifest);
        Ok(())
    }

    fn bring_in(&mut self, mut input: Input, progress: &mut dyn FnMut(u64)) -> Result<Imported> {
        // Types and populations come to be with what is in them.
        let mut manifest = (*self.network.state.manifest).clone();
        let populations: Vec<usize> = input
            .edges
            .iter()
            .map(|source| self.population_in(&mut manifest, source.population()))
            .collect::<Result<_>>()?;
        if let Some(twice) =
            (1..populations.len()).find(|i| populations[..*i].contains(&populations[*i]))
        {
            let name = &manifest.edges[populations[twice]].population.name;
            return Err(Error::Usage(
                format!("{name:?} comes twice: bring in one file at a time").into(),
            ));
        }
        let types: Vec<usize> = input
            .vertices
            .iter()
            .map(|source| self.type_in(&mut manifest, source.vertex_type(), source.attributes()))
            .collect::<Result<_>>()?;
        let disk = self.network.disk.clone();
        let (file, mut segment, mut written, mut done) = match self.resumed(&input, &populations)? {
            Some((segment, kept)) => {
                let ImportCheckpoint { file, written, mut done, .. } = *kept;
                done.resumed = written.len() as u64;
                (file, segment, written, done)
            }
            None => {
                let file = manifest.new_file("seg");
                (
                    file.clone(),
                    SegmentWriter::create(&*disk, &file)?,
                    Vec::new(),
                    Imported::default(),
                )
            }
        };
        let mut kept = Instant::now();
        for (source, population) in input.edges.iter_mut().zip(&populations).skip(written.len()) {
            if let Some(origin) = input
                .origin
                .as_ref()
                .filter(|_| !written.is_empty() && kept.elapsed() >= self.keep_every)
            {
                let (origin, file, hash) = (origin.clone(), file.clone(), segment.sync()?);
                let unfinished = ImportCheckpoint {
                    origin,
                    file,
                    pages: segment.pages(),
                    hash,
                    written: written.clone(),
                    done,
                };
                self.keep(unfinished, manifest.next)?;
                kept = Instant::now();
            }
            written.push(self.import_edges(
                &mut segment,
                &mut **source,
                *population,
                &manifest,
                &mut done,
                progress,
            )?);
        }
        let mut vertices = Vec::new();
        for (source, vertex_type) in input.vertices.iter_mut().zip(&types) {
            vertices.push(import_vertices(&mut segment, &mut **source, *vertex_type)?);
        }
        // Where vertices come from one side of one population only, they are its rows.
        let mut later = BTreeSet::new();
        for number in 0..manifest.types.len() {
            let rows = |written: &PopulationCheckpoint, side: Side| -> Option<ColumnMeta> {
                let edges = &manifest.edges[written.population];
                let here = if side == Side::Out { edges.source } else { edges.target };
                written.parts[side as usize]
                    .as_ref()
                    .filter(|_| here == number)
                    .map(|lists| lists.rows.clone())
            };
            let mut columns: Vec<ColumnMeta> = written
                .iter()
                .flat_map(|w| [rows(w, Side::Out), rows(w, Side::In)])
                .flatten()
                .collect();
            let explicit = vertices.iter().any(|part: &VertexSection| part.vertex_type == number);
            let is_new = self
                .network
                .state
                .readers
                .iter()
                .all(|reader| reader.footer.vertices(number).is_none());
            match (columns.pop(), columns.is_empty() && !explicit && is_new) {
                (None, _) if !explicit => {}
                (Some(rows), true) => {
                    manifest.types[number].count = rows.len();
                    done.vertices += rows.len();
                    vertices.push(VertexSection {
                        vertex_type: number,
                        added: Some(rows),
                        removed: None,
                        table: None,
                    });
                }
                _ => drop(later.insert(number)),
            }
        }
        let edges = written.iter_mut().flat_map(|w| {
            let ([out, into], table) = (std::mem::take(&mut w.parts), w.table.take());
            let out = EdgeSection {
                population: w.population,
                side: Side::Out,
                added: out,
                removed: None,
                table,
            };
            let into = EdgeSection {
                population: w.population,
                side: Side::In,
                added: into,
                removed: None,
                table: None,
            };
            [out, into].into_iter().filter(|part| part.added.is_some())
        });
        let footer = Footer { version: VERSION, edges: edges.collect(), vertices };
        let mut parts = vec![crate::storage::manifest::SegmentEntry {
            bytes: segment.finish(&footer)?,
            file: file.clone(),
        }];
        if !later.is_empty() {
            disk.sync()?;
            let reader = SegmentReader::open(&*disk, &file, &manifest)?;
            let file = manifest.new_file("seg");
            let mut segment = SegmentWriter::create(&*disk, &file)?;
            let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
            for number in later {
                let added = self.new_vertices(&mut segment, &reader, number, &manifest)?;
                manifest.types[number].count += added.len();
                done.vertices += added.len();
                footer.vertices.push(VertexSection {
                    vertex_type: number,
                    added: Some(added),
                    removed: None,
                    table: None,
                });
            }
            parts.push(crate::storage::manifest::SegmentEntry {
                bytes: segment.finish(&footer)?,
                file,
            });
        }
        for written in &written {
            let edges = &mut manifest.edges[written.population];
            edges.count += written.count;
            edges.next = written.next;
            done.edges += written.count;
        }
        self.install(self.network.state.readers.len(), parts, |known| {
            let segments = std::mem::take(&mut known.segments);
            *known = manifest;
            known.segments = segments;
            known.log = known.next;
            known.next += 1;
        })?;
        Ok(done)
    }

    fn sorter(&self, is_numbered: bool) -> EdgeSorter {
        EdgeSorter::new(
            self.network.fetcher.budget.memory / 2,
            is_numbered,
            spill_path(&*self.network.disk),
        )
    }

    fn import_edges(
        &self,
        segment: &mut SegmentWriter,
        source: &mut dyn EdgeSource,
        population: usize,
        manifest: &Manifest,
        done: &mut Imported,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PopulationCheckpoint> {
        let known = &manifest.edges[population];
        let is_numbered = known.is_numbered();
        let mut lists = ListsBuilder {
            writer: self,
            population,
            is_multi: known.population.is_multi,
            has_old: known.count > 0 && !known.population.is_multi,
            out: ListsWriter::new(self.coding, is_numbered),
            into: self.sorter(is_numbered),
            old: Neighbours::default(),
        };
        let mut table = TableWriter::new();
        let mut next = known.next.max(1);
        // Edges whose ends are alike are kept once, by the lesser: their sources come in no order.
        let symmetric = known.is_symmetric();
        let mut unsorted = (symmetric || !source.is_grouped()).then(|| self.sorter(is_numbered));
        let (mut piece, mut numbers) = (EdgeBatch::default(), Vec::new());
        let mut row = SourceList::default();
        while source.next(&mut piece)? {
            if self.network.fetcher.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            done.read += piece.targets.len() as u64;
            progress(done.read);
            if is_numbered {
                numbers.clear();
                numbers.extend(next..next + piece.targets.len() as u64);
                next += piece.targets.len() as u64;
                if let Some(batch) = &piece.attributes {
                    table.push(segment, &numbers, batch)?;
                }
            }
            let mut at = 0;
            for (vertex, len) in &piece.runs {
                let Some(targets) = piece.targets.get(at..at + len) else {
                    return Err(Error::Usage(
                        "an input whose runs are longer than its edges".into(),
                    ));
                };
                let own = if is_numbered { &numbers[at..at + len] } else { &[] };
                at += len;
                match &mut unsorted {
                    Some(sorter) if symmetric => {
                        for (place, target) in targets.iter().enumerate() {
                            let (least, most) = (*vertex.min(target), *vertex.max(target));
                            sorter.push(
                                most,
                                &[least],
                                own.get(place..=place).unwrap_or_default(),
                            )?;
                        }
                    }
                    // Grouped by their targets' other end: keys are sources.
                    Some(sorter) => {
                        for (place, target) in targets.iter().enumerate() {
                            sorter.push(
                                *target,
                                std::slice::from_ref(vertex),
                                own.get(place..=place).unwrap_or_default(),
                            )?;
                        }
                    }
                    None => {
                        if row.vertex != Some(*vertex) {
                            lists.push(segment, &mut row)?;
                            if row.vertex.is_some_and(|last| last > *vertex) {
                                let what = format!(
                                    "vertex {vertex} after {:?} in an input that is grouped",
                                    row.vertex
                                );
                                return Err(Error::Usage(what.into()));
                            }
                            row.vertex = Some(*vertex);
                        }
                        row.ids.extend_from_slice(targets);
                        row.numbers.extend_from_slice(own);
                    }
                }
            }
        }
        lists.push(segment, &mut row)?;
        if let Some(sorter) = unsorted {
            sorter.drain(&mut |grouped| {
                for (vertex, ids, numbers) in grouped.lists() {
                    row.vertex = Some(vertex);
                    row.ids.extend_from_slice(ids);
                    row.numbers.extend_from_slice(numbers);
                    lists.push(segment, &mut row)?;
                }
                Ok(())
            })?;
        }
        let ListsBuilder { out, into, .. } = lists;
        let count = out.len();
        let out = out.finish(segment)?;
        let mut writer = ListsWriter::new(self.coding, is_numbered);
        into.drain(&mut |lists| writer.push_all(segment, lists))?;
        let into = writer.finish(segment)?;
        Ok(PopulationCheckpoint {
            population,
            parts: [out, into],
            table: table.finish(segment)?,
            count,
            next,
        })
    }

    /// The vertices of a type that a segment of edges brings, and that were not there.
    fn new_vertices(
        &self,
        segment: &mut SegmentWriter,
        reader: &SegmentReader,
        number: usize,
        manifest: &Manifest,
    ) -> Result<ColumnMeta> {
        let mut columns: Vec<&ColumnReader> = Vec::new();
        for EdgeSection { population, side, .. } in &reader.footer.edges {
            let known = &manifest.edges[*population];
            let here = if *side == Side::Out { known.source } else { known.target };
            if here == number {
                let added =
                    reader.edges(*population, *side)?.and_then(|edges| edges.added.as_ref());
                columns.extend(added.map(|lists| &lists.rows));
            }
        }
        columns.extend(reader.vertices(number)?.and_then(|vertices| vertices.added.as_ref()));
        let mut all = merge::MergedVertices::of(reader, &columns);
        let mut old = merge::MergedVertices::new(
            &self.network.state.readers,
            Some(&self.network.state.memtable),
            number,
            0..=u64::MAX,
        )?;
        let (mut known, mut place) = (Vec::new(), 0);
        let (mut ids, mut out) = (Vec::new(), ColumnWriter::new(Coding::Packed, true));
        let mut more = old.next(&mut known)?;
        while all.next(&mut ids)? {
            for id in &ids {
                while more && known[place] < *id {
                    place += 1;
                    if place == known.len() {
                        (more, place) = (old.next(&mut known)?, 0);
                    }
                }
                if !(more && known[place] == *id) {
                    out.push(segment, *id)?;
                }
            }
        }
        out.finish(segment)
    }
}

/// The list of a vertex, as it comes.
#[derive(Default)]
struct SourceList {
    vertex: Option<u64>,
    ids: Vec<u64>,
    numbers: Vec<u64>,
}

/// Lists that are written on one side, and kept to be written on the other.
struct ListsBuilder<'a> {
    writer: &'a Writer,
    population: usize,
    is_multi: bool,
    has_old: bool,
    out: ListsWriter,
    into: EdgeSorter,
    old: Neighbours,
}

impl ListsBuilder<'_> {
    /// Writes a list, and forgets it.
    fn push(&mut self, segment: &mut SegmentWriter, row: &mut SourceList) -> Result<()> {
        let SourceList { vertex: Some(vertex), ids, numbers } = row else { return Ok(()) };
        let vertex = *vertex;
        if !ids.is_sorted() {
            if numbers.is_empty() {
                ids.sort_unstable();
            } else {
                let mut both: Vec<(u64, u64)> =
                    ids.iter().copied().zip(numbers.iter().copied()).collect();
                both.sort_unstable();
                (*ids, *numbers) = both.into_iter().unzip();
            }
        }
        if !self.is_multi {
            if self.has_old {
                self.writer.network.neighbours(
                    &[Adjacency { population: self.population, side: Side::Out }],
                    &[vertex],
                    &mut self.old,
                )?;
            }
            let (mut old, mut last) = (self.old.ids.iter().peekable(), None);
            let mut is_new = |id: u64| {
                while old.next_if(|known| **known < id).is_some() {}
                last.replace(id) != Some(id) && old.peek() != Some(&&id)
            };
            if numbers.is_empty() {
                if self.has_old || ids.windows(2).any(|pair| pair[0] == pair[1]) {
                    ids.retain(|id| is_new(*id));
                }
            } else {
                let kept: Vec<bool> = ids.iter().map(|id| is_new(*id)).collect();
                let mut keep = kept.iter();
                ids.retain(|_| keep.next() == Some(&true));
                let mut keep = kept.iter();
                numbers.retain(|_| keep.next() == Some(&true));
            }
        }
        if !ids.is_empty() {
            self.out.push(segment, vertex, ids, numbers)?;
            self.into.push(vertex, ids, numbers)?;
        }
        ids.clear();
        numbers.clear();
        Ok(())
    }
}

/// Vertices as they come, and their attributes.
fn import_vertices(
    segment: &mut SegmentWriter,
    source: &mut dyn VertexSource,
    vertex_type: usize,
) -> Result<VertexSection> {
    let (mut column, mut table) = (ColumnWriter::new(Coding::Packed, true), TableWriter::new());
    let (mut piece, mut last) = (VertexBatch::default(), None);
    while source.next(&mut piece)? {
        for id in &piece.ids {
            if last.replace(*id).is_some_and(|last| last >= *id) {
                let what = format!(
                    "{}: vertex {id} after a greater one, or the same",
                    source.vertex_type()
                );
                return Err(Error::Usage(what.into()));
            }
            column.push(segment, *id)?;
        }
        if let Some(batch) = piece.attributes.as_ref().filter(|batch| batch.num_columns() > 0) {
            table.push(segment, &piece.ids, batch)?;
        }
    }
    let added = if column.len() == 0 { None } else { Some(column.finish(segment)?) };
    Ok(VertexSection { vertex_type, added, removed: None, table: table.finish(segment)? })
}
