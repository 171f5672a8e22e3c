//! Segments made of the log, and one segment made of several.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use thalweg_io::control::Control;
use thalweg_io::disk::Disk;
use thalweg_io::{Error, InFile, Result};

use crate::read::attributes::interleave_rows;
use crate::read::memtable::Memtable;
use crate::read::merge;
use crate::storage::column::{Coding, ColumnMeta, ColumnWriter};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::lists::ListsWriter;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::{TableMeta, TableWriter};

/// Rows of attributes that are written together.
const ROWS: usize = 1 << 16;

/// Levels, and what the log says if it is given, as one.
pub(crate) struct Compaction<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) readers: &'a [Arc<SegmentReader>],
    pub(crate) memtable: Option<&'a Memtable>,
    /// Whether there is nothing below them, that something could be taken away from.
    pub(crate) is_lowest: bool,
    pub(crate) coding: Coding,
    pub(crate) control: &'a Control,
}

impl Compaction<'_> {
    /// Writes a segment.
    pub(crate) fn write(&self, disk: &dyn Disk, file: &str) -> Result<SegmentEntry> {
        let mut segment = SegmentWriter::create(disk, file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for (population, edges) in self.manifest.edges.iter().enumerate() {
            for side in [Side::Out, Side::In] {
                let mut added = ListsWriter::new(self.coding, edges.is_numbered());
                let mut removed = ListsWriter::new(Coding::Packed, edges.is_numbered());
                let mut gone = HashSet::new();
                let mut lists =
                    merge::MergedLists::new(self.readers, self.memtable, population, side)?;
                let (mut ids, mut numbers) = (Vec::new(), Vec::new());
                let mut since = 0;
                while let Some(vertex) = lists.next()? {
                    for (ends, writer) in
                        [(&lists.change.added, &mut added), (&lists.change.removed, &mut removed)]
                    {
                        if ends.is_empty() {
                            continue;
                        }
                        ids.clear();
                        numbers.clear();
                        ids.extend(ends.iter().map(|end| end.0));
                        if edges.is_numbered() {
                            numbers.extend(ends.iter().map(|end| end.1));
                        }
                        writer.push(&mut segment, vertex, &ids, &numbers)?;
                        since += ends.len();
                    }
                    if side == Side::Out {
                        gone.extend(lists.change.removed.iter().map(|end| end.1));
                    }
                    if since > ROWS {
                        since = 0;
                        self.look(disk)?;
                    }
                }
                let removed = removed.finish(&mut segment)?;
                if self.is_lowest && removed.is_some() {
                    let what =
                        format!("edges of {:?} that went and never were", edges.population.name);
                    return Err(thalweg_io::Fault::new(0, what, "edges that were").in_file(
                        disk.name(),
                        0,
                        "segments",
                    ));
                }
                let added = added.finish(&mut segment)?;
                let table = if side == Side::Out && edges.is_numbered() {
                    self.edge_table(&mut segment, population, &gone)?
                } else {
                    None
                };
                if added.is_some() || removed.is_some() || table.is_some() {
                    footer.edges.push(EdgeSection { population, side, added, removed, table });
                }
            }
        }
        for vertex_type in 0..self.manifest.types.len() {
            let part = self.vertices(&mut segment, vertex_type)?;
            if part.added.is_some() || part.removed.is_some() || part.table.is_some() {
                footer.vertices.push(part);
            }
        }
        Ok(SegmentEntry { file: file.to_owned(), bytes: segment.finish(&footer)? })
    }

    fn look(&self, disk: &dyn Disk) -> Result<()> {
        if self.control.is_cancelled() {
            let _ = disk;
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// Attributes of edges, by their numbers: those of later levels are greater.
    fn edge_table(
        &self,
        segment: &mut SegmentWriter,
        population: usize,
        gone: &HashSet<u64>,
    ) -> Result<Option<TableMeta>> {
        let mut out = TableWriter::new();
        // An edge that came and went within these levels is in none of the merged lists.
        let mut dead = gone.clone();
        for reader in self.readers {
            if let Some(removed) =
                reader.edges(population, Side::Out)?.and_then(|edges| edges.removed.as_ref())
            {
                removed.each(&reader.segment, &mut |_, _, numbers| {
                    dead.extend(numbers);
                    Ok(())
                })?;
            }
        }
        if let Some(changes) = self.memtable.and_then(|memtable| memtable.edges(population)) {
            dead.extend(
                changes
                    .side(Side::Out)
                    .values()
                    .flat_map(|change| change.removed.iter().map(|end| end.1)),
            );
        }
        for reader in self.readers {
            let Some(table) =
                reader.edges(population, Side::Out)?.and_then(|edges| edges.table.as_ref())
            else {
                continue;
            };
            for number in 0..table.batches() {
                let batch = table.batch(&reader.segment, number)?;
                let mut ids = vec![0; batch.num_rows()];
                table.rows.read(
                    &reader.segment,
                    table.first(number)..table.first(number + 1),
                    &mut ids,
                )?;
                let rows: Vec<(usize, usize)> = (0..ids.len())
                    .filter(|row| !dead.contains(&ids[*row]))
                    .map(|row| (0, row))
                    .collect();
                if rows.len() == ids.len() {
                    out.push(segment, &ids, &batch)?;
                } else if !rows.is_empty() {
                    ids.retain(|id| !dead.contains(id));
                    out.push(segment, &ids, &self.pick(segment, &[&batch], &rows)?)?;
                }
            }
        }
        if let Some(changes) = self.memtable.and_then(|memtable| memtable.edges(population)) {
            let rows: Vec<(u64, &RecordBatch, usize)> =
                changes.rows.iter().map(|(id, (batch, row))| (*id, &**batch, *row)).collect();
            self.push_rows(segment, &mut out, &rows)?;
        }
        out.finish(segment)
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

    /// Vertices of a type and their attributes.
    fn vertices(&self, segment: &mut SegmentWriter, vertex_type: usize) -> Result<VertexSection> {
        let mut columns =
            [ColumnWriter::new(Coding::Packed, true), ColumnWriter::new(Coding::Packed, true)];
        let mut verdicts =
            merge::MergedVertices::new(self.readers, self.memtable, vertex_type, 0..=u64::MAX)?;
        let has_attributes = !self.manifest.types[vertex_type].attributes.fields().is_empty();
        while let Some(verdict) = verdicts.step()? {
            let [added, removed] = &mut columns;
            if verdict.is_there {
                added.push(segment, verdict.id)?;
            }
            // Attributes that one had that went before are not its own.
            if !self.is_lowest && (!verdict.is_there || has_attributes && verdict.is_reborn) {
                removed.push(segment, verdict.id)?;
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
        let mut rows = merge::MergedAttributes::new(self.readers, self.memtable, vertex_type)?;
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

/// One segment being made of several, while the log goes on.
pub(crate) struct BackgroundCompaction {
    pub(crate) thread: JoinHandle<Result<SegmentEntry>>,
    /// The file that it is in.
    pub(crate) file: String,
    /// How many segments, from the oldest on.
    pub(crate) count: usize,
    pub(crate) control: Control,
}

impl BackgroundCompaction {
    /// Stops it; what it wrote is of no use.
    pub(crate) fn stop(self, disk: &dyn Disk) {
        self.control.cancel();
        let _ = self.thread.join();
        let _ = disk.remove(&self.file);
    }
}
