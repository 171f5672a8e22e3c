//! Writing one segment from several segments, from the log, or from both.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::control::Control;
use thalweg_io::disk::Disk;
use thalweg_io::pool::Background;
use thalweg_io::{Error, Fault, InFile, Result};

use crate::read::attributes::interleave_rows;
use crate::read::memtable::Memtable;
use crate::read::merge::{MergedAttributes, MergedLists, MergedVertices};
use crate::storage::column::{ColumnMeta, ColumnWriter, NumberCoding};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::lists::ListsWriter;
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentEntry;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::{TableMeta, TableReader, TableWriter};

/// Rows of attributes that are written together.
const ROWS: usize = 1 << 16;

/// Segments, and the log's changes if they are given, to be written as one segment.
pub(crate) struct Compaction<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) readers: &'a [Arc<SegmentReader>],
    pub(crate) memtable: Option<&'a Memtable>,
    /// Whether these are the oldest segments: then removals need not be kept.
    pub(crate) is_lowest: bool,
    pub(crate) coding: NumberCoding,
    pub(crate) control: &'a Control,
}

impl Compaction<'_> {
    /// Writes the segment. After an error, its file is removed.
    pub(crate) fn write(&self, disk: &dyn Disk, file: &str) -> Result<SegmentEntry> {
        let written = self.fill(disk, SegmentWriter::create(disk, file)?);
        if written.is_err() {
            let _ = disk.remove(file);
        }
        written
    }

    /// Writes what is in the segment.
    fn fill(&self, disk: &dyn Disk, mut segment: SegmentWriter) -> Result<SegmentEntry> {
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for population in 0..self.manifest.edges.len() {
            for side in [Side::Out, Side::In] {
                let section = self.edges(disk, &mut segment, population, side)?;
                if section.added.is_some() || section.removed.is_some() || section.table.is_some() {
                    footer.edges.push(section);
                }
            }
        }
        for vertex_type in 0..self.manifest.types.len() {
            let section = self.vertices(&mut segment, vertex_type)?;
            if section.added.is_some() || section.removed.is_some() || section.table.is_some() {
                footer.vertices.push(section);
            }
        }
        segment.finish(&footer)
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.control.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Writes the merged lists of a population on one side and, with the outgoing ones, the table
    /// of attributes.
    fn edges(
        &self,
        disk: &dyn Disk,
        segment: &mut SegmentWriter,
        population: usize,
        side: Side,
    ) -> Result<EdgeSection> {
        let entry = &self.manifest.edges[population];
        let is_numbered = entry.is_numbered();
        let mut added = EndsWriter::new(self.coding, is_numbered);
        let mut removed = EndsWriter::new(NumberCoding::Packed, is_numbered);
        let mut removed_numbers = HashSet::new();
        let mut lists = MergedLists::new(self.readers, self.memtable, population, side)?;
        let mut since_check = 0;
        while let Some(vertex) = lists.next()? {
            let change = &lists.change;
            added.push(segment, vertex, &change.added)?;
            removed.push(segment, vertex, &change.removed)?;
            if side == Side::Out {
                removed_numbers.extend(change.removed.iter().map(|end| end.1));
            }
            since_check += change.added.len() + change.removed.len();
            if since_check > ROWS {
                since_check = 0;
                self.check_cancelled()?;
            }
        }
        let removed = removed.lists.finish(segment)?;
        if self.is_lowest && removed.is_some() {
            let what =
                format!("removed edges of {:?} that were never added", entry.population.name);
            return Err(Fault::new(0, what, "edges that were added").in_file(
                disk.name(),
                0,
                "segments",
            ));
        }
        let added = added.lists.finish(segment)?;
        let table = if side == Side::Out && is_numbered {
            self.edge_table(segment, population, removed_numbers)?
        } else {
            None
        };
        Ok(EdgeSection { population, side, added, removed, table })
    }

    /// Writes the attributes of edges by their numbers, which are greater in later segments.
    /// `removed` are the numbers of edges that the merged lists remove.
    fn edge_table(
        &self,
        segment: &mut SegmentWriter,
        population: usize,
        mut removed: HashSet<u64>,
    ) -> Result<Option<TableMeta>> {
        self.add_removed_numbers(population, &mut removed)?;
        let mut out = TableWriter::new();
        for reader in self.readers {
            let edges = reader.edges(population, Side::Out)?;
            let Some(table) = edges.and_then(|edges| edges.table.as_ref()) else { continue };
            for number in 0..table.batches() {
                self.copy_batch(segment, &mut out, (reader, table), number, &removed)?;
            }
        }
        if let Some(changes) = self.memtable.and_then(|memtable| memtable.edges(population)) {
            let rows: Vec<(u64, &RecordBatch, usize)> =
                changes.rows.iter().map(|(id, (batch, row))| (*id, &**batch, *row)).collect();
            self.push_rows(segment, &mut out, &rows)?;
        }
        out.finish(segment)
    }

    /// Adds the numbers of edges that were added and removed within these segments: none of the
    /// merged lists has them.
    fn add_removed_numbers(&self, population: usize, removed: &mut HashSet<u64>) -> Result<()> {
        for reader in self.readers {
            let edges = reader.edges(population, Side::Out)?;
            if let Some(lists) = edges.and_then(|edges| edges.removed.as_ref()) {
                lists.each(&reader.segment, &mut |_, _, numbers| {
                    removed.extend(numbers);
                    Ok(())
                })?;
            }
        }
        if let Some(changes) = self.memtable.and_then(|memtable| memtable.edges(population)) {
            let lists = changes.side(Side::Out).values();
            removed.extend(lists.flat_map(|list| list.removed.iter().map(|end| end.1)));
        }
        Ok(())
    }

    /// Copies the rows of a batch whose edges are not removed.
    fn copy_batch(
        &self,
        segment: &mut SegmentWriter,
        out: &mut TableWriter,
        (reader, table): (&SegmentReader, &TableReader),
        number: usize,
        removed: &HashSet<u64>,
    ) -> Result<()> {
        let batch = table.batch(&reader.segment, number)?;
        let mut ids = vec![0; batch.num_rows()];
        let places = table.first(number)..table.first(number + 1);
        table.rows.read(&reader.segment, places, &mut ids)?;
        let kept = (0..ids.len()).filter(|row| !removed.contains(&ids[*row]));
        let rows: Vec<(usize, usize)> = kept.map(|row| (0, row)).collect();
        if rows.len() == ids.len() {
            return out.push(segment, &ids, &batch);
        }
        if rows.is_empty() {
            return Ok(());
        }
        ids.retain(|id| !removed.contains(id));
        out.push(segment, &ids, &self.pick(segment, &[&batch], &rows)?)
    }

    fn pick(
        &self,
        segment: &SegmentWriter,
        batches: &[&RecordBatch],
        rows: &[(usize, usize)],
    ) -> Result<RecordBatch> {
        interleave_rows(batches, rows)
            .map_err(|e| Error::Usage(format!("{}: {e}", segment.name()).into()))
    }

    fn push_rows(
        &self,
        segment: &mut SegmentWriter,
        out: &mut TableWriter,
        rows: &[(u64, &RecordBatch, usize)],
    ) -> Result<()> {
        for rows in rows.chunks(ROWS) {
            let mut batches: Vec<&RecordBatch> = Vec::new();
            let mut places = Vec::with_capacity(rows.len());
            let mut known = std::collections::HashMap::new();
            for (_, batch, row) in rows {
                let number = *known.entry(std::ptr::from_ref(*batch)).or_insert_with(|| {
                    batches.push(batch);
                    batches.len() - 1
                });
                places.push((number, *row));
            }
            let ids: Vec<u64> = rows.iter().map(|(id, ..)| *id).collect();
            let batch = self.pick(segment, &batches, &places)?;
            out.push(segment, &ids, &batch)?;
        }
        Ok(())
    }

    /// Writes the vertices of a type and their attributes.
    fn vertices(&self, segment: &mut SegmentWriter, vertex_type: usize) -> Result<VertexSection> {
        let mut columns = [
            ColumnWriter::new(NumberCoding::Packed, true),
            ColumnWriter::new(NumberCoding::Packed, true),
        ];
        let mut vertices = MergedVertices::new(
            self.readers,
            self.memtable,
            vertex_type,
            0..=u64::MAX,
            self.control,
        )?;
        let has_attributes = !self.manifest.types[vertex_type].attributes.fields().is_empty();
        while let Some(vertex) = vertices.step()? {
            let [added, removed] = &mut columns;
            if vertex.exists {
                added.push(segment, vertex.id)?;
            }
            // A vertex that was removed and added again must not get its old attributes back.
            if !self.is_lowest && (!vertex.exists || has_attributes && vertex.is_readded) {
                removed.push(segment, vertex.id)?;
            }
        }
        let [added, removed] = columns.map(|column| -> Result<Option<ColumnMeta>> {
            if column.len() == 0 { Ok(None) } else { column.finish(segment).map(Some) }
        });
        let table = if has_attributes { self.vertex_table(segment, vertex_type)? } else { None };
        Ok(VertexSection { vertex_type, added: added?, removed: removed?, table })
    }

    fn vertex_table(
        &self,
        segment: &mut SegmentWriter,
        vertex_type: usize,
    ) -> Result<Option<TableMeta>> {
        let mut out = TableWriter::new();
        let mut rows =
            MergedAttributes::new(self.readers, self.memtable, vertex_type, self.control)?;
        let mut held: Vec<(u64, Arc<RecordBatch>, usize)> = Vec::new();
        loop {
            let next = rows.next()?;
            let is_over = next.is_none();
            held.extend(next);
            if held.len() == ROWS || is_over {
                let rows: Vec<(u64, &RecordBatch, usize)> =
                    held.iter().map(|(id, batch, row)| (*id, &**batch, *row)).collect();
                self.push_rows(segment, &mut out, &rows)?;
                held.clear();
            }
            if is_over {
                return out.finish(segment);
            }
        }
    }
}

/// Writes the lists of one kind of change, added or removed edges.
struct EndsWriter {
    lists: ListsWriter,
    is_numbered: bool,
    ids: Vec<u64>,
    numbers: Vec<u64>,
}

impl EndsWriter {
    fn new(coding: NumberCoding, is_numbered: bool) -> Self {
        Self {
            lists: ListsWriter::new(coding, is_numbered),
            is_numbered,
            ids: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Writes the list of a vertex, unless it is empty.
    fn push(
        &mut self,
        segment: &mut SegmentWriter,
        vertex: u64,
        ends: &[(u64, u64)],
    ) -> Result<()> {
        if ends.is_empty() {
            return Ok(());
        }
        self.ids.clear();
        self.numbers.clear();
        self.ids.extend(ends.iter().map(|end| end.0));
        if self.is_numbered {
            self.numbers.extend(ends.iter().map(|end| end.1));
        }
        self.lists.push(segment, vertex, &self.ids, &self.numbers)
    }
}

/// A compaction on a thread of its own. Meanwhile the writer adds to the log.
pub(crate) struct BackgroundCompaction {
    pub(crate) thread: Background<Result<SegmentEntry>>,
    /// The file of the new segment.
    pub(crate) file: String,
    /// How many segments it replaces, from the oldest on.
    pub(crate) count: usize,
    pub(crate) control: Control,
}

impl BackgroundCompaction {
    /// Stops the compaction, and removes its file.
    pub(crate) fn stop(self, disk: &dyn Disk) {
        self.control.cancel();
        self.thread.wait();
        let _ = disk.remove(&self.file);
    }
}
