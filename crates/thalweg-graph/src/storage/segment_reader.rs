//! A segment, open for reading: the edges and vertices that it adds to those of the segments before
//! it, and those that it removes.

use std::sync::{Arc, OnceLock};

use thalweg_io::disk::Disk;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use crate::storage::column::{ColumnMeta, ColumnReader};
use crate::storage::footer::{EdgeSection, Footer, VERSION, VertexSection};
use crate::storage::lists::{ListsMeta, ListsReader};
use crate::storage::manifest::Manifest;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentPages;
use crate::storage::table::{TableMeta, TableReader};

/// The edges of a population on one side in a segment.
#[derive(Debug)]
pub(crate) struct EdgeLists {
    pub(crate) added: Option<ListsReader>,
    pub(crate) removed: Option<ListsReader>,
    pub(crate) table: Option<TableReader>,
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
    /// Opens a segment, without the sections that the manifest hides.
    pub(crate) fn open(disk: &dyn Disk, file: &str, manifest: &Manifest) -> Result<Arc<Self>> {
        let [pages, plain] = disk.open_both(file)?;
        let (segment, mut footer) = SegmentPages::open::<Footer>(pages)?;
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
