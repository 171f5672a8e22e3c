//! Log records: the vertices and edges that a change adds and removes. The log holds these results
//! rather than the request, so that replaying it needs no other file.
//!
//! ```text
//! count u32, then records, each:
//!   kind u8, number u32 of the population or type, count u64, bytes u64 of attributes
//!   edges        sources u64…, targets u64…, and, where they are numbered, numbers u64…
//!   vertices     ids u64…
//!   attributes   an Arrow IPC stream, a row for each
//! ```

use crate::storage::schema::Edge;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_codec::splitmix::word;
use thalweg_io::Fault;

use crate::storage::table;

/// One result of a change.
#[derive(Debug, Clone)]
pub(crate) enum LogRecord {
    /// New edges of a population.
    EdgesAdded { population: usize, edges: Vec<Edge>, attributes: Option<Arc<RecordBatch>> },
    /// Removed edges of a population.
    EdgesRemoved { population: usize, edges: Vec<Edge> },
    /// New vertices of a type.
    VerticesAdded { vertex_type: usize, ids: Vec<u64> },
    /// Removed vertices of a type.
    VerticesRemoved { vertex_type: usize, ids: Vec<u64> },
    /// The attributes that vertices of a type have from now on, a row for each.
    AttributesSet { vertex_type: usize, ids: Vec<u64>, attributes: Arc<RecordBatch> },
}

/// Bytes of a record before its ids.
const HEAD: usize = 21;

const EDGES_ADDED: u8 = 1;
const EDGES_REMOVED: u8 = 2;
const VERTICES_ADDED: u8 = 3;
const VERTICES_REMOVED: u8 = 4;
const ATTRIBUTES_SET: u8 = 5;
/// This bit is set in the kind of edges that have numbers.
const NUMBERED: u8 = 0x80;

/// Encodes the records of a change.
pub(crate) fn to_bytes(records: &[LogRecord]) -> thalweg_io::Result<Vec<u8>> {
    let mut out = Vec::new();
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    for record in records {
        let (kind, number, attributes) = match record {
            LogRecord::EdgesAdded { population, attributes, .. } => {
                (EDGES_ADDED, *population, attributes.as_ref())
            }
            LogRecord::EdgesRemoved { population, .. } => (EDGES_REMOVED, *population, None),
            LogRecord::VerticesAdded { vertex_type, .. } => (VERTICES_ADDED, *vertex_type, None),
            LogRecord::VerticesRemoved { vertex_type, .. } => {
                (VERTICES_REMOVED, *vertex_type, None)
            }
            LogRecord::AttributesSet { vertex_type, attributes, .. } => {
                (ATTRIBUTES_SET, *vertex_type, Some(attributes))
            }
        };
        let attributes =
            attributes.map(|batch| table::to_bytes(batch)).transpose()?.unwrap_or_default();
        let mut head = |kind: u8, count: usize| {
            out.push(kind);
            out.extend_from_slice(&(number as u32).to_le_bytes());
            out.extend_from_slice(&(count as u64).to_le_bytes());
            out.extend_from_slice(&(attributes.len() as u64).to_le_bytes());
        };
        match record {
            LogRecord::EdgesAdded { edges, .. } | LogRecord::EdgesRemoved { edges, .. } => {
                let numbered = edges.iter().any(|edge| edge.2 != 0);
                head(kind | if numbered { NUMBERED } else { 0 }, edges.len());
                out.extend(edges.iter().flat_map(|edge| edge.0.to_le_bytes()));
                out.extend(edges.iter().flat_map(|edge| edge.1.to_le_bytes()));
                if numbered {
                    out.extend(edges.iter().flat_map(|edge| edge.2.to_le_bytes()));
                }
            }
            LogRecord::VerticesAdded { ids, .. }
            | LogRecord::VerticesRemoved { ids, .. }
            | LogRecord::AttributesSet { ids, .. } => {
                head(kind, ids.len());
                out.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            }
        }
        out.extend_from_slice(&attributes);
    }
    Ok(out)
}

/// Decodes the records of a change. `populations` and `types` are how many the network has.
pub(crate) fn of_bytes(
    bytes: &[u8],
    populations: usize,
    types: usize,
) -> Result<Vec<LogRecord>, Fault> {
    let mut input = RecordReader { bytes, rest: bytes, populations, types };
    let count = word(input.take(4).ok_or_else(|| Fault::new(0, "fewer bytes", "4"))?);
    let mut records = Vec::new();
    for _ in 0..count {
        records.push(input.record()?);
    }
    if input.rest.is_empty() {
        Ok(records)
    } else {
        Err(Fault::new(input.at(), "more bytes", "the end of a change"))
    }
}

/// Decodes records one after the other.
struct RecordReader<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
    populations: usize,
    types: usize,
}

impl<'a> RecordReader<'a> {
    fn at(&self) -> usize {
        self.bytes.len() - self.rest.len()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, more) = self.rest.split_at_checked(len)?;
        self.rest = more;
        Some(first)
    }

    /// The fault of a record at `here` that is longer than the bytes.
    fn short(&self, here: usize) -> Fault {
        Fault::new(here, format!("{} bytes", self.bytes.len() - here), "a whole change")
    }

    fn record(&mut self) -> Result<LogRecord, Fault> {
        let here = self.at();
        let head = self.take(HEAD).ok_or_else(|| self.short(here))?;
        let kind = head[0];
        let number = word(&head[1..5]) as usize;
        let len = usize::try_from(word(&head[5..13])).map_err(|_| self.short(here))?;
        let attribute_bytes = word(&head[13..21]);
        let is_edges = matches!(kind & !NUMBERED, EDGES_ADDED | EDGES_REMOVED);
        let populations = self.populations;
        let types = self.types;
        if number >= if is_edges { populations } else { types } {
            let expected = format!("below {populations} populations or {types} types");
            return Err(Fault::new(here, format!("number {number}"), expected));
        }
        let mut edges = Vec::new();
        let mut ids = Vec::new();
        if is_edges {
            edges = self.edges(here, len, kind & NUMBERED != 0)?;
        } else {
            ids = self.numbers(here, len)?;
        }
        let attributes = self.attributes(here, attribute_bytes, len)?;
        Ok(match (kind & !NUMBERED, attributes) {
            (EDGES_ADDED, attributes) => {
                LogRecord::EdgesAdded { population: number, edges, attributes }
            }
            (EDGES_REMOVED, None) => LogRecord::EdgesRemoved { population: number, edges },
            (VERTICES_ADDED, None) => LogRecord::VerticesAdded { vertex_type: number, ids },
            (VERTICES_REMOVED, None) => LogRecord::VerticesRemoved { vertex_type: number, ids },
            (ATTRIBUTES_SET, Some(attributes)) => {
                LogRecord::AttributesSet { vertex_type: number, ids, attributes }
            }
            _ => return Err(Fault::new(here, format!("kind {kind}"), "1 to 5")),
        })
    }

    fn numbers(&mut self, here: usize, len: usize) -> Result<Vec<u64>, Fault> {
        let size = len.checked_mul(8).ok_or_else(|| self.short(here))?;
        let bytes = self.take(size).ok_or_else(|| self.short(here))?;
        Ok(bytes.chunks_exact(8).map(word).collect())
    }

    fn edges(&mut self, here: usize, len: usize, is_numbered: bool) -> Result<Vec<Edge>, Fault> {
        let sources = self.numbers(here, len)?;
        let targets = self.numbers(here, len)?;
        let numbers = if is_numbered { self.numbers(here, len)? } else { vec![0; len] };
        let ends = sources.into_iter().zip(targets).zip(numbers);
        let edges: Vec<Edge> = ends.map(|((s, t), n)| (s, t, n)).collect();
        // The next edge has a greater number, which must fit too.
        if edges.iter().any(|edge| edge.2 == u64::MAX) {
            let found = format!("an edge of number {}", u64::MAX);
            return Err(Fault::new(here, found, "a lesser number"));
        }
        Ok(edges)
    }

    fn attributes(
        &mut self,
        here: usize,
        bytes: u64,
        rows: usize,
    ) -> Result<Option<Arc<RecordBatch>>, Fault> {
        let len = usize::try_from(bytes).map_err(|_| self.short(here))?;
        if len == 0 {
            return Ok(None);
        }
        let at = self.at();
        let bytes = self.take(len).ok_or_else(|| self.short(here))?;
        let batch = table::of_bytes(bytes).map_err(|fault| fault.shifted(at))?;
        if batch.num_rows() != rows {
            return Err(Fault::new(at, format!("{} rows", batch.num_rows()), "one for each"));
        }
        Ok(Some(Arc::new(batch)))
    }
}
