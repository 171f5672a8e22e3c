//! A segment, open for reading: the edges and vertices that it adds to those of the segments before
//! it, and those that it removes.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use thalweg_io::disk::Disk;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use crate::storage::column::{ColumnMeta, ColumnReader};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::lists::{ListsMeta, ListsReader};
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::{
    Ahead, CachedSegment, PageCache, SegmentEntry, SegmentPages, announce,
};
use crate::storage::table::{TableMeta, TableReader};

/// The edges of a population on one side in a segment.
#[derive(Debug)]
pub(crate) struct EdgeLists {
    pub(crate) added: Option<ListsReader>,
    pub(crate) removed: Option<ListsReader>,
    pub(crate) table: Option<TableReader>,
}

/// A section of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The edges of a population, by their vertices on a side.
    Edges(usize, Side),
    /// The vertices of a type.
    Vertices(usize),
}

impl EdgeLists {
    /// All pages of the lists, and of the attributes if `with_attributes`.
    pub(crate) fn pages(&self, with_attributes: bool) -> Vec<Range<u64>> {
        let lists = self.added.iter().chain(&self.removed);
        let columns = lists.flat_map(|lists| {
            [&lists.rows, &lists.offsets, &lists.ids].into_iter().chain(&lists.edges)
        });
        let table = self.table.as_ref().filter(|_| with_attributes);
        let columns = columns.chain(table.map(|table| &table.rows));
        let pages = columns.flat_map(|column| column.spans(0..column.len()).map(|span| span.pages));
        let batches = table.map(|table| (0..table.batches()).map(|batch| table.pages(batch)));
        pages.chain(batches.into_iter().flatten()).collect()
    }
}

/// The vertices of a type in a segment.
#[derive(Debug)]
pub(crate) struct VertexColumns {
    pub(crate) added: Option<ColumnReader>,
    pub(crate) removed: Option<ColumnReader>,
    pub(crate) table: Option<TableReader>,
}

/// A segment, open for reading. Its columns are opened when they are first used: reading where the
/// pages of all columns begin would take as long as reading the lists of a hundred vertices.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    pub(crate) file: String,
    pub(crate) segment: SegmentPages,
    /// The file without a memory map, for fetching pages that are not in memory.
    pub(crate) plain: Arc<dyn Store>,
    pub(crate) footer: Footer,
    /// Whether the segment has sections that no longer count.
    pub(crate) is_partial: bool,
    edges: Vec<OnceLock<EdgeLists>>,
    vertices: Vec<OnceLock<VertexColumns>>,
}

impl SegmentReader {
    /// Opens a segment of a folder, without the sections that the manifest hides.
    pub(crate) fn open(
        disk: &dyn Disk,
        entry: &SegmentEntry,
        manifest: &Manifest,
    ) -> Result<Arc<Self>> {
        Self::open_with(disk, entry, manifest, None)
    }

    /// Opens a segment, without the sections that the manifest hides. If it is far away, it has a
    /// cache, and a number there.
    pub(crate) fn open_with(
        disk: &dyn Disk,
        entry: &SegmentEntry,
        manifest: &Manifest,
        cached: Option<(&Arc<PageCache>, usize)>,
    ) -> Result<Arc<Self>> {
        let file = entry.file.as_str();
        let [pages, plain] = disk.open_end(file, entry.bytes, manifest.segments.len())?;
        let cached = cached.map(|(cache, number)| CachedSegment::new(cache, number, plain.clone()));
        let (segment, mut footer) = SegmentPages::open_with::<Footer>(pages, Some(entry), cached)?;
        if footer.version != VERSION {
            return Err(Error::Unsupported {
                file: segment.store().name().clone(),
                what: format!("version {} of segments", footer.version).into(),
                advice: format!("this program reads version {VERSION}").into(),
            });
        }
        let parts = footer.edges.len() + footer.vertices.len();
        manifest.hide(file, &mut footer);
        let is_partial = footer.edges.len() + footer.vertices.len() < parts;
        let edges = footer.edges.iter().map(|_| OnceLock::new()).collect();
        let vertices = footer.vertices.iter().map(|_| OnceLock::new()).collect();
        Ok(Arc::new(Self {
            file: file.to_owned(),
            segment,
            plain,
            footer,
            is_partial,
            edges,
            vertices,
        }))
    }

    /// The edges of a population on a side, if the segment has any.
    pub(crate) fn edges(&self, population: usize, side: Side) -> Result<Option<&EdgeLists>> {
        let place = self
            .footer
            .edges
            .iter()
            .position(|edges| edges.population == population && edges.side == side);
        place.map(|place| self.edges_at(place)).transpose()
    }

    /// Announces all pages, if they are far away.
    pub(crate) fn announce_all(&self) -> Result<Ahead<'_>> {
        announce([(&self.segment, std::iter::once(0..self.segment.pages()).collect())])
    }

    /// The pages that opening the columns of some sections reads.
    fn index_pages(&self, is_asked: &impl Fn(Section) -> bool) -> Vec<Range<u64>> {
        let edges = self.footer.edges.iter().zip(&self.edges);
        let edges = edges
            .filter(|(edges, open)| {
                open.get().is_none() && is_asked(Section::Edges(edges.population, edges.side))
            })
            .flat_map(|(edges, _)| {
                let lists = edges.added.iter().chain(&edges.removed).flat_map(ListsMeta::columns);
                lists.chain(edges.table.as_ref().map(TableMeta::rows))
            });
        let vertices = self.footer.vertices.iter().zip(&self.vertices);
        let vertices = vertices
            .filter(|(vertices, open)| {
                open.get().is_none() && is_asked(Section::Vertices(vertices.vertex_type))
            })
            .flat_map(|(vertices, _)| {
                let columns = vertices.added.iter().chain(&vertices.removed);
                columns.chain(vertices.table.as_ref().map(TableMeta::rows))
            });
        edges.chain(vertices).flat_map(|column| column.index_pages(self.segment.pages())).collect()
    }

    fn edges_at(&self, place: usize) -> Result<&EdgeLists> {
        opened(&self.edges[place], || {
            let EdgeSection { added, removed, table, .. } = &self.footer.edges[place];
            let lists = |meta: &Option<ListsMeta>| {
                meta.as_ref().map(|meta| ListsReader::open(meta, &self.segment)).transpose()
            };
            Ok(EdgeLists {
                added: lists(added)?,
                removed: lists(removed)?,
                table: self.table(table)?,
            })
        })
    }

    /// The edges of all populations on both sides.
    pub(crate) fn all_edges(&self) -> impl Iterator<Item = Result<&EdgeLists>> {
        (0..self.edges.len()).map(|place| self.edges_at(place))
    }

    /// The vertices of a type, if the segment has any.
    pub(crate) fn vertices(&self, vertex_type: usize) -> Result<Option<&VertexColumns>> {
        let place =
            self.footer.vertices.iter().position(|vertices| vertices.vertex_type == vertex_type);
        place.map(|place| self.vertices_at(place)).transpose()
    }

    /// The vertices of all types.
    pub(crate) fn all_vertices(&self) -> impl Iterator<Item = Result<&VertexColumns>> {
        (0..self.vertices.len()).map(|place| self.vertices_at(place))
    }

    fn vertices_at(&self, place: usize) -> Result<&VertexColumns> {
        opened(&self.vertices[place], || {
            let VertexSection { added, removed, table, .. } = &self.footer.vertices[place];
            let column = |meta: &Option<ColumnMeta>| {
                meta.as_ref().map(|meta| ColumnReader::open(meta, &self.segment)).transpose()
            };
            Ok(VertexColumns {
                added: column(added)?,
                removed: column(removed)?,
                table: self.table(table)?,
            })
        })
    }

    fn table(&self, meta: &Option<TableMeta>) -> Result<Option<TableReader>> {
        meta.as_ref().map(|meta| TableReader::open(meta, &self.segment)).transpose()
    }
}

/// Announces the pages that opening the columns of some sections reads, in those of the segments
/// that are far away.
pub(crate) fn announce_indexes(
    readers: &[Arc<SegmentReader>],
    is_asked: impl Fn(Section) -> bool,
) -> Result<Ahead<'_>> {
    let far = readers.iter().filter(|reader| reader.segment.cached().is_some());
    announce(far.map(|reader| (&reader.segment, reader.index_pages(&is_asked))))
}

/// The value in `held`. The first use creates it with `open`.
fn opened<T>(held: &OnceLock<T>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    match held.get() {
        Some(known) => Ok(known),
        None => {
            let made = open()?;
            Ok(held.get_or_init(|| made))
        }
    }
}
