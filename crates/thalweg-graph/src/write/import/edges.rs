//! Importing the edges of one population.

use thalweg_io::{Error, Result};

use super::source_lists::{SourceList, SourceLists};
use super::{ImportRun, Progress};
use crate::external_sort::{EdgeSorter, spill_path};
use crate::input::{EdgeBatch, EdgeSource};
use crate::read::neighbours::Neighbours;
use crate::storage::checkpoint::PopulationCheckpoint;
use crate::storage::lists::ListsWriter;
use crate::storage::manifest::Manifest;
use crate::storage::segment::SegmentWriter;
use crate::storage::table::TableWriter;
use crate::write::writer::Writer;

/// The edges of a population on their way from an input to a segment.
struct EdgeImport<'a> {
    lists: SourceLists<'a>,
    table: TableWriter,
    is_numbered: bool,
    /// Whether an edge has no direction and both ends are of one type: then it is kept once, at its
    /// lesser end.
    is_symmetric: bool,
    /// Collects edges whose sources arrive in no order.
    unsorted: Option<EdgeSorter>,
    /// The number of the next edge.
    next: u64,
    /// The numbers of the batch's edges.
    numbers: Vec<u64>,
    /// The list that the batches are adding to, where sources ascend.
    list: SourceList,
}

impl Writer {
    fn sorter(&self, is_numbered: bool) -> EdgeSorter {
        let memory = self.network.fetcher.budget.memory / 2;
        EdgeSorter::new(memory, is_numbered, spill_path(&*self.network.disk))
    }

    /// Imports the edges of a population.
    pub(super) fn import_edges(
        &self,
        run: &mut ImportRun,
        source: &mut dyn EdgeSource,
        population: usize,
        manifest: &Manifest,
        progress: &mut Progress<'_>,
    ) -> Result<PopulationCheckpoint> {
        let mut import = EdgeImport::new(self, population, manifest, source.is_grouped());
        let mut batch = EdgeBatch::default();
        while source.next(&mut batch)? {
            self.network.fetcher.control.check()?;
            run.done.read += batch.targets.len() as u64;
            progress(run.done.read);
            import.push(&mut run.segment, &batch)?;
        }
        import.finish(&mut run.segment)
    }
}

impl<'a> EdgeImport<'a> {
    fn new(writer: &'a Writer, population: usize, manifest: &Manifest, is_grouped: bool) -> Self {
        let known = &manifest.edges[population];
        let is_numbered = known.is_numbered();
        let is_symmetric = known.is_symmetric();
        let is_multi = known.population.is_multi;
        Self {
            lists: SourceLists {
                writer,
                population,
                is_multi,
                has_old: known.count > 0 && !is_multi,
                out: ListsWriter::new(writer.coding, is_numbered),
                into: writer.sorter(is_numbered),
                old: Neighbours::default(),
            },
            table: TableWriter::new(),
            is_numbered,
            is_symmetric,
            unsorted: (is_symmetric || !is_grouped).then(|| writer.sorter(is_numbered)),
            next: known.next.max(1),
            numbers: Vec::new(),
            list: SourceList::default(),
        }
    }

    /// Adds a batch of edges.
    fn push(&mut self, segment: &mut SegmentWriter, batch: &EdgeBatch) -> Result<()> {
        if self.is_numbered {
            let end = self.next + batch.targets.len() as u64;
            self.numbers.clear();
            self.numbers.extend(self.next..end);
            self.next = end;
            if let Some(attributes) = &batch.attributes {
                self.table.push(segment, &self.numbers, attributes)?;
            }
        }
        let mut at = 0;
        for (vertex, len) in &batch.runs {
            let Some(targets) = batch.targets.get(at..at + len) else {
                return Err(Error::Usage("an input whose runs are longer than its edges".into()));
            };
            let numbers = if self.is_numbered { at..at + len } else { 0..0 };
            at += len;
            match &mut self.unsorted {
                Some(sorter) => {
                    let numbers = &self.numbers[numbers];
                    sort_run(sorter, *vertex, targets, numbers, self.is_symmetric)?;
                }
                None => {
                    self.change_list(segment, *vertex)?;
                    self.list.ids.extend_from_slice(targets);
                    self.list.numbers.extend_from_slice(&self.numbers[numbers]);
                }
            }
        }
        Ok(())
    }

    /// Writes the list of the vertex before `vertex`, if this is another one.
    fn change_list(&mut self, segment: &mut SegmentWriter, vertex: u64) -> Result<()> {
        if self.list.vertex == Some(vertex) {
            return Ok(());
        }
        self.lists.push(segment, &mut self.list)?;
        if self.list.vertex.is_some_and(|last| last > vertex) {
            let last = self.list.vertex;
            let what = format!("vertex {vertex} after {last:?} in an input that is grouped");
            return Err(Error::Usage(what.into()));
        }
        self.list.vertex = Some(vertex);
        Ok(())
    }

    /// Writes all edges that are still in memory, then the lists by target.
    fn finish(mut self, segment: &mut SegmentWriter) -> Result<PopulationCheckpoint> {
        self.lists.push(segment, &mut self.list)?;
        let Self { mut lists, mut list, table, next, is_numbered, unsorted, .. } = self;
        if let Some(sorter) = unsorted {
            sorter.drain(&mut |grouped| {
                for (vertex, ids, numbers) in grouped.lists() {
                    list.vertex = Some(vertex);
                    list.ids.extend_from_slice(ids);
                    list.numbers.extend_from_slice(numbers);
                    lists.push(segment, &mut list)?;
                }
                Ok(())
            })?;
        }
        let SourceLists { writer, population, out, into, .. } = lists;
        let count = out.len();
        let out = out.finish(segment)?;
        let mut by_target = ListsWriter::new(writer.coding, is_numbered);
        into.drain(&mut |lists| by_target.push_all(segment, lists))?;
        let into = by_target.finish(segment)?;
        let table = table.finish(segment)?;
        Ok(PopulationCheckpoint { population, parts: [out, into], table, count, next })
    }
}

/// Adds a vertex's edges to a sorter that groups them by source or, where edges are symmetric, by
/// the lesser end.
fn sort_run(
    sorter: &mut EdgeSorter,
    vertex: u64,
    targets: &[u64],
    numbers: &[u64],
    is_symmetric: bool,
) -> Result<()> {
    for (place, target) in targets.iter().enumerate() {
        let is_swapped = is_symmetric && *target < vertex;
        let (key, other) = if is_swapped { (*target, vertex) } else { (vertex, *target) };
        let number = numbers.get(place..=place).unwrap_or_default();
        sorter.push(other, std::slice::from_ref(&key), number)?;
    }
    Ok(())
}
