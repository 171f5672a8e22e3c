//! Edges in compressed sparse rows (CSR): lists of targets one after the other, and the offset
//! where the list of each vertex begins.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use thalweg_io::Result;

use super::numbers::IdDataset;
use super::{EdgeBatch, EdgeSource, Population, VertexBatch, VertexSource};

/// The usual number of edges in a batch: 4 MiB of ids.
pub(super) const BATCH: u64 = 1 << 19;

/// Offsets that are read at a time.
const OFFSETS_PER_READ: u64 = 1 << 15;

/// The offset of each vertex's list, and of the end of the last list.
#[derive(Debug)]
pub(super) struct ListOffsets {
    /// The dataset and its column. If this is `None`, each vertex has one edge.
    from: Option<(IdDataset, u64)>,
    /// The number of vertices.
    pub(super) count: u64,
    /// The offsets in memory, and the vertex of the first.
    block: (u64, Vec<u64>),
}

impl ListOffsets {
    /// Offsets in a column of a dataset, which has one row more than there are vertices.
    pub(super) fn new(numbers: IdDataset, column: u64) -> Result<Self> {
        let Some(count) = numbers.rows.checked_sub(1) else {
            return Err(numbers.wrong(0, "no offset".into(), "one more than there are vertices"));
        };
        Ok(Self { count, from: Some((numbers, column)), block: (0, Vec::new()) })
    }

    /// Offsets of one edge for each of `count` vertices.
    pub(super) fn one_each(count: u64) -> Self {
        Self { from: None, count, block: (0, Vec::new()) }
    }

    /// The offset of a vertex's list.
    pub(super) fn at(&mut self, vertex: u64) -> Result<u64> {
        let Some((numbers, column)) = &mut self.from else { return Ok(vertex) };
        let (first, block) = &mut self.block;
        if !(*first..*first + block.len() as u64).contains(&vertex) {
            let rows = vertex..vertex.saturating_add(OFFSETS_PER_READ).min(numbers.rows);
            if rows.is_empty() {
                let found = format!("{} offsets", numbers.rows);
                return Err(numbers.wrong(numbers.rows, found, format!("one for vertex {vertex}")));
            }
            numbers.read(rows, block)?;
            if numbers.columns > 1 {
                let every = numbers.columns as usize;
                let from = *column as usize;
                let mut kept = 0;
                for at in (from..block.len()).step_by(every) {
                    block[kept] = block[at];
                    kept += 1;
                }
                block.truncate(kept);
            }
            *first = vertex;
        }
        Ok(block[(vertex - *first) as usize])
    }

    /// Checks that the offsets begin at 0, never decrease, and end at `len`, the number of elements
    /// of `what`.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for the first wrong offset.
    pub(super) fn check(&mut self, len: u64, what: &str) -> Result<()> {
        let mut before = 0;
        for vertex in 0..=self.count {
            let here = self.at(vertex)?;
            let expected = match () {
                () if vertex == 0 && here != 0 => "0, where the first list begins".into(),
                () if here < before => format!("at least {before}, the offset before it"),
                () if here > len => format!("at most {len}, the elements of {what}"),
                () if vertex == self.count && here != len => {
                    format!("{len}, for {what} has so many elements")
                }
                () => {
                    before = here;
                    continue;
                }
            };
            return Err(match &self.from {
                Some((numbers, column)) => {
                    numbers.wrong(vertex * numbers.columns + column, here.to_string(), expected)
                }
                None => thalweg_io::Error::Usage(
                    format!("{what}: {here} rows, expected {expected}").into(),
                ),
            });
        }
        Ok(())
    }
}

/// The targets of the edges.
#[derive(Debug)]
pub(super) enum ListTargets {
    /// The numbers in a column of a dataset.
    Column(IdDataset, u64),
    /// The places of the edges: 0 for the first edge, and so on.
    Places(u64),
}

impl ListTargets {
    /// The number of edges.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Column(numbers, _) => numbers.rows,
            Self::Places(count) => *count,
        }
    }

    /// The name of the targets in errors.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Column(numbers, _) => numbers.path(),
            Self::Places(_) => "the list of vertices",
        }
    }

    /// How many edges are read at a time, and whether reads begin at multiples of this.
    fn step(&self) -> (u64, bool) {
        match self {
            // Few large reads: each starts threads of its own.
            Self::Column(numbers, _) => numbers.step(numbers.room().max(BATCH)),
            Self::Places(_) => (BATCH, false),
        }
    }

    fn read(&mut self, range: Range<u64>, out: &mut Vec<u64>) -> Result<()> {
        match self {
            Self::Column(numbers, column) => {
                numbers.read(range, out)?;
                if numbers.columns > 1 {
                    let mut at = 0;
                    let every = numbers.columns;
                    let from = *column;
                    out.retain(|_| {
                        at += 1;
                        (at - 1) % every == from
                    });
                }
            }
            Self::Places(_) => {
                out.clear();
                out.extend(range);
            }
        }
        Ok(())
    }
}

/// Reads the edges of a population in CSR form.
#[derive(Debug)]
pub(super) struct CsrEdges {
    population: Population,
    offsets: ListOffsets,
    targets: ListTargets,
    /// The edges that are not read yet.
    edges: Range<u64>,
    total: u64,
    /// The vertex of the next edge.
    source: u64,
}

impl CsrEdges {
    /// The edges of the vertices in `sources`.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for offsets that are not valid.
    pub(super) fn new(
        population: Population,
        mut offsets: ListOffsets,
        targets: ListTargets,
        sources: &Range<u64>,
    ) -> Result<Self> {
        offsets.check(targets.len(), targets.name())?;
        let sources = sources.start.min(offsets.count)..sources.end.min(offsets.count);
        let edges = offsets.at(sources.start)?..offsets.at(sources.end.max(sources.start))?;
        Ok(Self {
            population,
            offsets,
            targets,
            total: edges.end - edges.start,
            edges,
            source: sources.start,
        })
    }
}

impl EdgeSource for CsrEdges {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        Some(self.total)
    }

    fn is_grouped(&self) -> bool {
        true
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.runs.clear();
        edges.attributes = None;
        let Range { start, end } = self.edges;
        if start >= end {
            edges.targets.clear();
            return Ok(false);
        }
        let (step, in_chunks) = self.targets.step();
        let mut stop = if in_chunks { (start / step + 1) * step } else { start + step }.min(end);
        let mut at = start;
        while at < stop {
            let list_end = self.offsets.at(self.source + 1)?;
            // Storing a list in two parts costs more than a slightly shorter batch.
            if list_end > stop && !in_chunks && at > start {
                stop = at;
                break;
            }
            let to = list_end.min(stop);
            if to > at {
                edges.runs.push((self.source, (to - at) as usize));
                at = to;
            }
            if list_end <= stop {
                self.source += 1;
            }
        }
        self.targets.read(start..stop, &mut edges.targets)?;
        self.edges.start = stop;
        Ok(true)
    }
}

/// Reads edges that a dataset lists by target: element `i` is the source of an edge to vertex `i`.
#[derive(Debug)]
pub(super) struct ReversedEdges {
    population: Population,
    numbers: IdDataset,
    rows: Range<u64>,
    sources: Range<u64>,
    found: Vec<u64>,
}

impl ReversedEdges {
    /// The edges from the vertices in `sources`.
    pub(super) fn new(population: Population, numbers: IdDataset, sources: Range<u64>) -> Self {
        Self { population, rows: 0..numbers.rows, numbers, sources, found: Vec::new() }
    }
}

impl EdgeSource for ReversedEdges {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        (self.sources == (0..u64::MAX)).then_some(self.numbers.rows)
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.clear();
        let Range { start, end } = self.rows;
        if start >= end {
            return Ok(false);
        }
        let (step, _) = self.numbers.step(BATCH);
        let stop = ((start / step + 1) * step).min(end);
        self.numbers.read(start..stop, &mut self.found)?;
        let mut at = start;
        for same in self.found.chunk_by(|one, two| one == two) {
            let source = same[0];
            let count = same.len();
            if self.sources.contains(&source) {
                edges.runs.push((source, count));
                edges.targets.extend(at..at + count as u64);
            }
            at += count as u64;
        }
        self.rows.start = stop;
        Ok(true)
    }
}

/// Vertices with consecutive ids and without attributes.
#[derive(Debug)]
pub(super) struct ConsecutiveVertices {
    vertex_type: String,
    ids: Range<u64>,
    total: u64,
    attributes: SchemaRef,
}

impl ConsecutiveVertices {
    pub(super) fn new(vertex_type: String, ids: Range<u64>) -> Self {
        let total = ids.end.saturating_sub(ids.start);
        Self { vertex_type, ids, total, attributes: Arc::new(Schema::empty()) }
    }
}

impl VertexSource for ConsecutiveVertices {
    fn vertex_type(&self) -> &str {
        &self.vertex_type
    }

    fn attributes(&self) -> &SchemaRef {
        &self.attributes
    }

    fn total(&self) -> Option<u64> {
        Some(self.total)
    }

    fn next(&mut self, vertices: &mut VertexBatch) -> Result<bool> {
        vertices.ids.clear();
        vertices.attributes = None;
        let stop = self.ids.start.saturating_add(BATCH).min(self.ids.end);
        vertices.ids.extend(self.ids.start..stop);
        self.ids.start = self.ids.start.max(stop);
        Ok(!vertices.ids.is_empty())
    }
}
