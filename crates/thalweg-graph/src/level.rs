//! What one segment says of a network: edges and vertices that it adds to those of the segments
//! before it, and takes away.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use thalweg_io::disk::Disk;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};

use super::column::{Coding, Column, ColumnWriter, Meta};
use super::manifest::Manifest;
use super::segment::{Segment, SegmentWriter};
use super::sort::Grouped;
use super::table::{Table, TableMeta};

/// The number of this layout.
pub(super) const VERSION: u32 = 2;

/// Which end of its edges a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that they leave.
    Out,
    /// The one that they lead to.
    In,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// What stands at the end of a segment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Footer {
    pub(super) version: u32,
    pub(super) edges: Vec<EdgePart>,
    pub(super) vertices: Vec<VertexPart>,
}

impl Footer {
    /// What it says of a population's edges on a side.
    pub(super) fn edges(&self, population: usize, side: Side) -> Option<&EdgePart> {
        self.edges.iter().find(|edges| edges.population == population && edges.side == side)
    }

    /// What it says of a type's vertices.
    pub(super) fn vertices(&self, vertex_type: usize) -> Option<&VertexPart> {
        self.vertices.iter().find(|vertices| vertices.vertex_type == vertex_type)
    }
}

/// Edges of a population, by their vertices on one side.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EdgePart {
    pub(super) population: usize,
    pub(super) side: Side,
    pub(super) added: Option<ListsMeta>,
    pub(super) removed: Option<ListsMeta>,
    /// Attributes of those added, with those that go out.
    pub(super) table: Option<TableMeta>,
}

/// Vertices of a type.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VertexPart {
    #[serde(rename = "type")]
    pub(super) vertex_type: usize,
    pub(super) added: Option<Meta>,
    pub(super) removed: Option<Meta>,
    /// Attributes of vertices, whether or not they were there before.
    pub(super) table: Option<TableMeta>,
}

/// Lists of neighbours, as the footer describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListsMeta {
    /// Vertices, ascending.
    pub(super) rows: Meta,
    /// Where each vertex's list begins, and the last one's end.
    pub(super) offsets: Meta,
    /// The vertices at the other ends, list after list, ascending in each.
    pub(super) ids: Meta,
    /// Numbers of the edges, where the population's have any.
    pub(super) edges: Option<Meta>,
}

/// Lists being written, vertex after vertex.
pub(super) struct ListsWriter {
    rows: ColumnWriter,
    offsets: ColumnWriter,
    ids: ColumnWriter,
    edges: Option<ColumnWriter>,
    last: Option<u64>,
    starts: Vec<u64>,
}

impl ListsWriter {
    /// No lists. `numbered`: the edges have numbers.
    pub(super) fn new(ids: Coding, numbered: bool) -> Self {
        Self {
            rows: ColumnWriter::new(Coding::Packed, true),
            offsets: ColumnWriter::new(Coding::Packed, false),
            ids: ColumnWriter::solid(ids),
            edges: numbered.then(|| ColumnWriter::new(Coding::Packed, false)),
            last: None,
            starts: Vec::new(),
        }
    }

    /// How many edges so far.
    pub(super) fn len(&self) -> u64 {
        self.ids.len()
    }

    /// Appends the list of a vertex that comes after all those before: `ids` ascend, `edges` are as
    /// many if they have numbers.
    pub(super) fn push(
        &mut self,
        segment: &mut SegmentWriter,
        row: u64,
        ids: &[u64],
        edges: &[u64],
    ) -> Result<()> {
        self.begin(segment, row)?;
        self.ids.extend(segment, ids)?;
        match &mut self.edges {
            Some(column) if edges.len() == ids.len() => column.extend(segment, edges),
            None => Ok(()),
            Some(_) => {
                let what =
                    format!("{}: {} numbers for {} edges", segment.name(), edges.len(), ids.len());
                Err(Error::Usage(what.into()))
            }
        }
    }

    /// The same for many lists.
    pub(super) fn push_all(&mut self, segment: &mut SegmentWriter, lists: &Grouped) -> Result<()> {
        let (Some(first), Some(last)) = (lists.keys.first(), lists.keys.last()) else {
            return Ok(());
        };
        let before = self.ids.len();
        self.begin(segment, *first)?;
        self.rows.extend(segment, &lists.keys[1..])?;
        self.last = Some(*last);
        self.starts.clear();
        self.starts
            .extend(lists.ends[..lists.ends.len() - 1].iter().map(|end| before + *end as u64));
        self.offsets.extend(segment, &self.starts)?;
        self.ids.extend(segment, &lists.ids)?;
        match &mut self.edges {
            Some(column) => column.extend(segment, &lists.numbers),
            None => Ok(()),
        }
    }

    fn begin(&mut self, segment: &mut SegmentWriter, row: u64) -> Result<()> {
        if self.last.is_some_and(|last| last >= row) {
            let what = format!(
                "{}: the list of vertex {row} after that of {:?}",
                segment.name(),
                self.last
            );
            return Err(Error::Usage(what.into()));
        }
        self.last = Some(row);
        self.rows.push(segment, row)?;
        self.offsets.push(segment, self.ids.len())
    }

    /// Ends the lists; `None` if there are none.
    pub(super) fn finish(mut self, segment: &mut SegmentWriter) -> Result<Option<ListsMeta>> {
        if self.last.is_none() {
            return Ok(None);
        }
        self.offsets.push(segment, self.ids.len())?;
        Ok(Some(ListsMeta {
            rows: self.rows.finish(segment)?,
            offsets: self.offsets.finish(segment)?,
            ids: self.ids.finish(segment)?,
            edges: self.edges.map(|edges| edges.finish(segment)).transpose()?,
        }))
    }
}

/// Is shown a vertex, its neighbours, and the numbers of its edges.
pub(super) type Visit<'a> = dyn FnMut(u64, &[u64], &[u64]) -> Result<()> + 'a;

/// Lists, open for reading.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) rows: Column,
    pub(super) offsets: Column,
    pub(super) ids: Column,
    pub(super) edges: Option<Column>,
}

impl Lists {
    fn open(meta: &ListsMeta, segment: &Segment) -> Result<Self> {
        let lists = Self {
            rows: Column::open(&meta.rows, segment)?,
            offsets: Column::open(&meta.offsets, segment)?,
            ids: Column::open(&meta.ids, segment)?,
            edges: meta.edges.as_ref().map(|edges| Column::open(edges, segment)).transpose()?,
        };
        let (rows, ids) = (lists.rows.len(), lists.ids.len());
        if lists.ids.is_range()
            || rows.checked_add(1) != Some(lists.offsets.len())
            || lists.edges.as_ref().is_some_and(|edges| edges.len() != ids)
        {
            let found = format!("{} places of {rows} lists of {ids} ids", lists.offsets.len());
            let fault = Fault::new(
                0,
                found,
                "one more than lists, ids that lie in the file, and as many numbers of edges, if any",
            );
            return Err(fault.in_file(segment.store().name(), 0, "footer: lists"));
        }
        Ok(lists)
    }

    /// Where in the list of all ids those of a row are.
    pub(super) fn range(&self, segment: &Segment, row: u64) -> Result<Range<u64>> {
        let mut ends = [0; 2];
        self.offsets.read(segment, row..row + 2, &mut ends)?;
        self.checked(segment, ends)
    }

    pub(super) fn checked(&self, segment: &Segment, [start, end]: [u64; 2]) -> Result<Range<u64>> {
        if start > end || end > self.ids.len() {
            let fault = Fault::new(
                0,
                format!("a list from {start} to {end}"),
                format!("a part of {}", self.ids.len()),
            );
            return Err(fault.in_file(segment.store().name(), 0, "lists of neighbours"));
        }
        Ok(start..end)
    }

    /// The same for a vertex; `None` if it has no list.
    pub(super) fn of(&self, segment: &Segment, vertex: u64) -> Result<Option<Range<u64>>> {
        match self.rows.find(segment, vertex)? {
            Ok(row) => self.range(segment, row).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The numbers of the edges from a vertex to another one; 0 for each without.
    pub(super) fn between(&self, segment: &Segment, vertex: u64, id: u64) -> Result<Vec<u64>> {
        let Some(range) = self.of(segment, vertex)? else { return Ok(Vec::new()) };
        let found = self.ids.find_in(segment, range, id)?;
        let mut numbers = vec![0; (found.end - found.start) as usize];
        if let Some(edges) = &self.edges {
            edges.read(segment, found, &mut numbers)?;
        }
        Ok(numbers)
    }

    /// Shows `f` all lists, in order: the vertex, its neighbours, the numbers of the edges.
    pub(super) fn each(&self, segment: &Segment, f: &mut Visit<'_>) -> Result<()> {
        let mut cursor = self.cursor();
        while let Some(vertex) = cursor.next(segment)? {
            f(vertex, cursor.ids(), cursor.numbers())?;
        }
        Ok(())
    }

    /// Goes through all lists in order.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor {
            lists: self,
            first: 0,
            rows: Vec::new(),
            ends: Vec::new(),
            place: 0,
            until: 0,
            base: 0,
            ids: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

/// Rows that a cursor reads at a time, and ids, unless one list has more.
const ROWS: u64 = 8192;
const IDS: u64 = 1 << 16;

/// A way through lists.
pub(super) struct Cursor<'a> {
    lists: &'a Lists,
    /// The first of the rows below.
    first: u64,
    rows: Vec<u64>,
    ends: Vec<u64>,
    /// The next of these rows, and up to which their lists are held.
    place: usize,
    until: usize,
    /// The place of the first id that is held among all.
    base: u64,
    ids: Vec<u64>,
    numbers: Vec<u64>,
}

impl Cursor<'_> {
    /// The next vertex.
    pub(super) fn next(&mut self, segment: &Segment) -> Result<Option<u64>> {
        let lists = self.lists;
        if self.place == self.rows.len() {
            self.first += self.rows.len() as u64;
            let last = (self.first + ROWS).min(lists.rows.len());
            self.rows.resize((last - self.first) as usize, 0);
            self.ends.resize(self.rows.len() + 1, 0);
            (self.place, self.until) = (0, 0);
            if self.rows.is_empty() {
                return Ok(None);
            }
            lists.rows.read(segment, self.first..last, &mut self.rows)?;
            lists.offsets.read(segment, self.first..last + 1, &mut self.ends)?;
            self.ends
                .windows(2)
                .try_for_each(|pair| lists.checked(segment, [pair[0], pair[1]]).map(drop))?;
        }
        if self.place == self.until {
            let start = self.ends[self.place];
            let fits = self.ends[self.place + 1..].partition_point(|end| end - start <= IDS).max(1);
            self.until = self.place + fits;
            let range = start..self.ends[self.until];
            self.ids.resize((range.end - range.start) as usize, 0);
            lists.ids.read(segment, range.clone(), &mut self.ids)?;
            if let Some(edges) = &lists.edges {
                self.numbers.resize(self.ids.len(), 0);
                edges.read(segment, range, &mut self.numbers)?;
            }
            self.base = start;
        }
        self.place += 1;
        Ok(Some(self.rows[self.place - 1]))
    }

    /// Neighbours of the vertex that came last.
    pub(super) fn ids(&self) -> &[u64] {
        &self.ids[self.held()]
    }

    /// Numbers of its edges; none if they have none.
    pub(super) fn numbers(&self) -> &[u64] {
        self.numbers.get(self.held()).unwrap_or_default()
    }

    fn held(&self) -> Range<usize> {
        let end = |place: usize| (self.ends[place] - self.base) as usize;
        end(self.place - 1)..end(self.place)
    }
}

/// Edges of a population on one side, open for reading.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) added: Option<Lists>,
    pub(super) removed: Option<Lists>,
    pub(super) table: Option<Table>,
}

/// Vertices of a type, open for reading.
#[derive(Debug)]
pub(super) struct Vertices {
    pub(super) added: Option<Column>,
    pub(super) removed: Option<Column>,
    pub(super) table: Option<Table>,
}

/// A segment, open for reading. What its footer names is opened when it is first used: where the
/// pages of all columns begin is as much to read as the lists of a hundred vertices.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) file: String,
    pub(super) segment: Segment,
    /// To fetch by what is not in memory.
    pub(super) plain: Arc<dyn Store>,
    pub(super) footer: Footer,
    /// Whether there is something in it that is gone.
    pub(super) is_partial: bool,
    edges: Vec<OnceLock<Edges>>,
    vertices: Vec<OnceLock<Vertices>>,
}

impl Level {
    /// Opens a segment of a network, as its manifest has it.
    pub(super) fn open(disk: &dyn Disk, file: &str, manifest: &Manifest) -> Result<Arc<Self>> {
        let (segment, mut footer) = Segment::open::<Footer>(disk.open(file)?)?;
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
        let plain = disk.open_plain(file)?;
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

    /// Edges of a population on a side, if it says anything of them.
    pub(super) fn edges(&self, population: usize, side: Side) -> Result<Option<&Edges>> {
        let place = self
            .footer
            .edges
            .iter()
            .position(|edges| edges.population == population && edges.side == side);
        place.map(|place| self.edges_at(place)).transpose()
    }

    fn edges_at(&self, place: usize) -> Result<&Edges> {
        opened(&self.edges[place], || {
            let EdgePart { added, removed, table, .. } = &self.footer.edges[place];
            let lists = |meta: &Option<ListsMeta>| {
                meta.as_ref().map(|meta| Lists::open(meta, &self.segment)).transpose()
            };
            Ok(Edges { added: lists(added)?, removed: lists(removed)?, table: self.table(table)? })
        })
    }

    /// Edges of all populations, on both sides.
    pub(super) fn all_edges(&self) -> impl Iterator<Item = Result<&Edges>> {
        (0..self.edges.len()).map(|place| self.edges_at(place))
    }

    /// Vertices of a type, if it says anything of them.
    pub(super) fn vertices(&self, vertex_type: usize) -> Result<Option<&Vertices>> {
        let place =
            self.footer.vertices.iter().position(|vertices| vertices.vertex_type == vertex_type);
        place.map(|place| self.vertices_at(place)).transpose()
    }

    /// Vertices of all types.
    pub(super) fn all_vertices(&self) -> impl Iterator<Item = Result<&Vertices>> {
        (0..self.vertices.len()).map(|place| self.vertices_at(place))
    }

    fn vertices_at(&self, place: usize) -> Result<&Vertices> {
        opened(&self.vertices[place], || {
            let VertexPart { added, removed, table, .. } = &self.footer.vertices[place];
            let column = |meta: &Option<Meta>| {
                meta.as_ref().map(|meta| Column::open(meta, &self.segment)).transpose()
            };
            Ok(Vertices {
                added: column(added)?,
                removed: column(removed)?,
                table: self.table(table)?,
            })
        })
    }

    fn table(&self, meta: &Option<TableMeta>) -> Result<Option<Table>> {
        meta.as_ref().map(|meta| Table::open(meta, &self.segment)).transpose()
    }
}

/// What `open` makes, the first time.
fn opened<T>(held: &OnceLock<T>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    match held.get() {
        Some(known) => Ok(known),
        None => {
            let made = open()?;
            Ok(held.get_or_init(|| made))
        }
    }
}
