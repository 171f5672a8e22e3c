//! What a change comes to: edges and vertices that are there afterwards and were not before, or the
//! other way round. It is what the log keeps, so that reading it again takes nothing else.
//!
//! ```text
//! count u32, then parts, each:
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

/// A part of a change.
#[derive(Debug, Clone)]
pub(crate) enum LogRecord {
    /// Edges of a population that are new.
    EdgesAdded { population: usize, edges: Vec<Edge>, attributes: Option<Arc<RecordBatch>> },
    /// Edges of a population that are gone.
    EdgesRemoved { population: usize, edges: Vec<Edge> },
    /// Vertices of a type that are new.
    VerticesAdded { vertex_type: usize, ids: Vec<u64> },
    /// Vertices of a type that are gone.
    VerticesRemoved { vertex_type: usize, ids: Vec<u64> },
    /// Attributes that vertices of a type have from now on.
    AttributesSet { vertex_type: usize, ids: Vec<u64>, attributes: Arc<RecordBatch> },
}

const ADDED: u8 = 1;
const REMOVED: u8 = 2;
const APPEARED: u8 = 3;
const VANISHED: u8 = 4;
const DESCRIBED: u8 = 5;
/// Set in the kind where edges have numbers.
const NUMBERED: u8 = 0x80;

/// Effects as bytes.
pub(crate) fn to_bytes(records: &[LogRecord]) -> thalweg_io::Result<Vec<u8>> {
    let mut out = Vec::new();
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    for record in records {
        let (kind, number, attributes) = match record {
            LogRecord::EdgesAdded { population, attributes, .. } => {
                (ADDED, *population, attributes.as_ref())
            }
            LogRecord::EdgesRemoved { population, .. } => (REMOVED, *population, None),
            LogRecord::VerticesAdded { vertex_type, .. } => (APPEARED, *vertex_type, None),
            LogRecord::VerticesRemoved { vertex_type, .. } => (VANISHED, *vertex_type, None),
            LogRecord::AttributesSet { vertex_type, attributes, .. } => {
                (DESCRIBED, *vertex_type, Some(attributes))
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

/// The effects that such bytes are, in a network of so many populations and types.
pub(crate) fn of_bytes(
    bytes: &[u8],
    populations: usize,
    types: usize,
) -> Result<Vec<LogRecord>, Fault> {
    let mut rest = bytes;
    let at = |rest: &[u8]| bytes.len() - rest.len();
    let count = word(take(&mut rest, 4).ok_or_else(|| Fault::new(0, "fewer bytes", "4"))?);
    let mut records = Vec::new();
    for _ in 0..count {
        let here = at(rest);
        let short = || Fault::new(here, format!("{} bytes", bytes.len() - here), "a whole change");
        let head = take(&mut rest, 21).ok_or_else(short)?;
        let (kind, number) = (head[0], word(&head[1..5]) as usize);
        let (len, attributes) = (word(&head[5..13]), word(&head[13..21]));
        let len = usize::try_from(len).map_err(|_| short())?;
        let mut numbers = || -> Result<Vec<u64>, Fault> {
            let bytes = take(&mut rest, len.checked_mul(8).ok_or_else(short)?).ok_or_else(short)?;
            Ok(bytes.chunks_exact(8).map(word).collect())
        };
        let is_edges = matches!(kind & !NUMBERED, ADDED | REMOVED);
        if number >= if is_edges { populations } else { types } {
            let found = format!("number {number}");
            return Err(Fault::new(
                here,
                found,
                format!("below {populations} populations or {types} types"),
            ));
        }
        let (mut edges, mut ids) = (Vec::new(), Vec::new());
        if is_edges {
            let (sources, targets) = (numbers()?, numbers()?);
            let numbers = if kind & NUMBERED == 0 { vec![0; len] } else { numbers()? };
            edges = sources
                .into_iter()
                .zip(targets)
                .zip(numbers)
                .map(|((s, t), n)| (s, t, n))
                .collect();
            // The next one must have a number, too.
            if edges.iter().any(|edge| edge.2 == u64::MAX) {
                return Err(Fault::new(
                    here,
                    format!("an edge of number {}", u64::MAX),
                    "a lesser number",
                ));
            }
        } else {
            ids = numbers()?;
        }
        let attributes = match usize::try_from(attributes).map_err(|_| short())? {
            0 => None,
            len => {
                let here = at(rest);
                let batch = table::of_bytes(take(&mut rest, len).ok_or_else(short)?)
                    .map_err(|f| f.shifted(here))?;
                if batch.num_rows() != edges.len().max(ids.len()) {
                    return Err(Fault::new(
                        here,
                        format!("{} rows", batch.num_rows()),
                        "one for each",
                    ));
                }
                Some(Arc::new(batch))
            }
        };
        records.push(match (kind & !NUMBERED, attributes) {
            (ADDED, attributes) => LogRecord::EdgesAdded { population: number, edges, attributes },
            (REMOVED, None) => LogRecord::EdgesRemoved { population: number, edges },
            (APPEARED, None) => LogRecord::VerticesAdded { vertex_type: number, ids },
            (VANISHED, None) => LogRecord::VerticesRemoved { vertex_type: number, ids },
            (DESCRIBED, Some(attributes)) => {
                LogRecord::AttributesSet { vertex_type: number, ids, attributes }
            }
            _ => return Err(Fault::new(here, format!("kind {kind}"), "1 to 5")),
        });
    }
    if rest.is_empty() {
        Ok(records)
    } else {
        Err(Fault::new(at(rest), "more bytes", "the end of a change"))
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, more) = rest.split_at_checked(len)?;
    *rest = more;
    Some(first)
}
