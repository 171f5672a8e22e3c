//! Importing vertices: those that an input lists, and those that only its edges mention.

use std::collections::BTreeSet;

use thalweg_io::{Error, Result};

use super::ImportRun;
use crate::input::{VertexBatch, VertexSource};
use crate::read::merge::MergedVertices;
use crate::storage::checkpoint::Imported;
use crate::storage::column::{ColumnMeta, ColumnReader, ColumnWriter, NumberCoding};
use crate::storage::footer::{Footer, VERSION, VertexSection};
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentEntry;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::TableWriter;
use crate::write::writer::Writer;

/// Writes the vertices that an input lists, and their attributes.
pub(super) fn import_vertices(
    segment: &mut SegmentWriter,
    source: &mut dyn VertexSource,
    vertex_type: usize,
) -> Result<VertexSection> {
    let mut column = ColumnWriter::new(NumberCoding::Packed, true);
    let mut table = TableWriter::new();
    let mut batch = VertexBatch::default();
    let mut last = None;
    while source.next(&mut batch)? {
        for id in &batch.ids {
            if last.replace(*id).is_some_and(|last| last >= *id) {
                let name = source.vertex_type();
                let what = format!("{name}: vertex {id} after a greater one, or the same");
                return Err(Error::Usage(what.into()));
            }
            column.push(segment, *id)?;
        }
        if let Some(rows) = batch.attributes.as_ref().filter(|rows| rows.num_columns() > 0) {
            table.push(segment, &batch.ids, rows)?;
        }
    }
    let added = if column.len() == 0 { None } else { Some(column.finish(segment)?) };
    Ok(VertexSection { vertex_type, added, removed: None, table: table.finish(segment)? })
}

impl ImportRun {
    /// The columns of the segment that hold vertices of a type, because edges leave from them or
    /// lead to them.
    pub(super) fn vertex_columns(
        &self,
        vertex_type: usize,
        manifest: &Manifest,
    ) -> Vec<ColumnMeta> {
        let mut columns = Vec::new();
        for written in &self.written {
            let edges = &manifest.edges[written.population];
            for side in [Side::Out, Side::In] {
                let lists = written.parts[side as usize].as_ref();
                let lists = lists.filter(|_| edges.type_at(side) == vertex_type);
                columns.extend(lists.map(|lists| lists.rows.clone()));
            }
        }
        columns
    }
}

impl Writer {
    /// Writes a segment with the new vertices of some types that a segment of edges mentions.
    pub(super) fn write_vertices(
        &self,
        edges: &SegmentEntry,
        types: BTreeSet<usize>,
        manifest: &mut Manifest,
        done: &mut Imported,
    ) -> Result<SegmentEntry> {
        let disk = &*self.network.disk;
        disk.sync()?;
        let reader = SegmentReader::open(disk, edges, manifest)?;
        let file = manifest.new_file("seg");
        let mut segment = SegmentWriter::create(disk, &file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for vertex_type in types {
            let added = self.new_vertices(&mut segment, &reader, vertex_type, manifest)?;
            manifest.types[vertex_type].count += added.len();
            done.vertices += added.len();
            footer.vertices.push(VertexSection::of_added(vertex_type, added));
        }
        segment.finish(&footer)
    }

    /// Writes the vertices of a type that a segment mentions and the network does not have.
    fn new_vertices(
        &self,
        segment: &mut SegmentWriter,
        reader: &SegmentReader,
        vertex_type: usize,
        manifest: &Manifest,
    ) -> Result<ColumnMeta> {
        let columns = mentioned(reader, vertex_type, manifest)?;
        let snapshot = &self.network.state;
        let mut mentioned =
            MergedVertices::of_columns(reader, &columns, &self.network.fetcher.control);
        let mut old = MergedVertices::new(
            &snapshot.readers,
            Some(&snapshot.memtable),
            vertex_type,
            0..=u64::MAX,
            &self.network.fetcher.control,
        )?;
        let mut out = ColumnWriter::new(NumberCoding::Packed, true);
        let mut known = Vec::new();
        let mut place = 0;
        let mut has_more = old.next(&mut known)?;
        let mut ids = Vec::new();
        while mentioned.next(&mut ids)? {
            for id in &ids {
                while has_more && known[place] < *id {
                    place += 1;
                    if place == known.len() {
                        has_more = old.next(&mut known)?;
                        place = 0;
                    }
                }
                if !(has_more && known[place] == *id) {
                    out.push(segment, *id)?;
                }
            }
        }
        out.finish(segment)
    }
}

/// The columns of a segment that hold vertices of a type.
fn mentioned<'a>(
    reader: &'a SegmentReader,
    vertex_type: usize,
    manifest: &Manifest,
) -> Result<Vec<&'a ColumnReader>> {
    let mut columns: Vec<&ColumnReader> = Vec::new();
    for section in &reader.footer.edges {
        if manifest.edges[section.population].type_at(section.side) == vertex_type {
            let lists = reader.edges(section.population, section.side)?;
            let added = lists.and_then(|lists| lists.added.as_ref());
            columns.extend(added.map(|added| &added.rows));
        }
    }
    columns.extend(reader.vertices(vertex_type)?.and_then(|vertices| vertices.added.as_ref()));
    Ok(columns)
}
