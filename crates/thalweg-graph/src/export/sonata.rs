//! A network, or a part of it, as a SONATA file: `/edges/<population>` with both indices,
//! `/nodes/<type>`, attributes in group `0`.

mod column;
mod index;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::Fields;
use thalweg_hdf5::libhdf5::{Group, Number, Rows, RowsOf, Writer, is_name};
use thalweg_io::condition::Condition;
use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Result};

use self::column::AttributeWriter;
use self::index::EdgeIndex;
use crate::external_sort::EdgeSorter;
use crate::read::network::Network;
use crate::read::rows::EdgeSelection;

/// Rows of a chunk, at most.
const CHUNK: u64 = 1 << 16;

/// A SONATA file being written. Dropped unfinished, it is removed.
///
/// Edges and nodes are of type -1: a network keeps none. An edge without a direction leaves from
/// the first of its two types, or from the lesser id. Nodes whose ids are not 0, 1, 2 and so on
/// have these in `node_id`, which not every program reads.
#[derive(Debug)]
pub struct SonataWriter {
    // Before the file that it writes to, so that it is closed before that is removed.
    writer: Writer,
    edges: Option<Group>,
    nodes: Option<Group>,
    left_out: Vec<String>,
    file: NewFile,
}

/// The lists that say of each edge or node which type it is of, and where its attributes are.
struct TypeAndPlaceColumns {
    kinds: Rows,
    groups: Rows,
    places: Rows,
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn ids(batch: &RecordBatch, column: usize) -> &[u64] {
    batch.column(column).as_primitive::<UInt64Type>().values()
}

fn chunk_for(rows: u64) -> RowsOf {
    RowsOf { columns: None, chunk: rows.clamp(1, CHUNK) }
}

impl TypeAndPlaceColumns {
    fn new(writer: &Writer, group: &Group, of: &str, rows: u64) -> Result<Self> {
        let rows = chunk_for(rows);
        let list =
            |what: &str, kind, fill| writer.rows(group, &format!("{of}_{what}"), kind, fill, rows);
        // Nothing is stored of the first two.
        let none = (-1_i64).to_le_bytes();
        let kinds = list("type_id", Number::I64, Some(&none))?;
        Ok(Self {
            kinds,
            groups: list("group_id", Number::U32, None)?,
            places: list("group_index", Number::U64, None)?,
        })
    }

    fn push(&mut self, writer: &Writer, count: u64) -> Result<()> {
        writer.push_filled(&mut self.kinds, count)?;
        writer.push_filled(&mut self.groups, count)?;
        let first = self.places.len();
        writer.push(&mut self.places, &bytes(&(first..first + count).collect::<Vec<_>>()))
    }
}

impl SonataWriter {
    /// Starts a file. An existing one is replaced at the end, and only then.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let file = NewFile::create(path)?;
        let writer = Writer::create_for(file.temporary(), file.name(), false)?;
        Ok(Self { writer, edges: None, nodes: None, left_out: Vec::new(), file })
    }

    /// Where a population goes.
    fn group(&mut self, is_edges: bool, name: &str) -> Result<Group> {
        if !is_name(name) {
            let (what, advice) =
                (format!("a population named {name:?}"), "HDF5 has names without slashes");
            return Err(Error::Unsupported {
                file: self.file.name().clone(),
                what: what.into(),
                advice: advice.into(),
            });
        }
        let (slot, root) =
            if is_edges { (&mut self.edges, "edges") } else { (&mut self.nodes, "nodes") };
        if slot.is_none() {
            *slot = Some(self.writer.group(None, root)?);
        }
        self.writer.group(slot.as_ref(), name)
    }

    /// Writes the vertices of a type as nodes, or those for which a condition holds, as for
    /// [`Network::described`]; how many. `progress` is told of each, some at a time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for attributes that SONATA does not have: other than numbers, truths
    /// and strings, and missing numbers; [`Error::Io`], as on a full disk; those of the network.
    pub fn nodes(
        &mut self,
        network: &Network,
        vertex_type: usize,
        condition: Option<&Condition>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let kind = &network.types()[vertex_type];
        let group = self.group(false, &kind.name)?;
        let count = network.vertex_count(vertex_type);
        let mut heads = TypeAndPlaceColumns::new(&self.writer, &group, "node", count)?;
        let mut columns = self.columns(network, &group, kind.attributes.fields(), count)?;
        // Only where one is not its own place: the ids up to there are made up for then.
        let mut named: Option<Rows> = None;
        let mut rows = 0;
        network.described(vertex_type, condition, &mut |batch| {
            let ids = ids(batch, 0);
            if named.is_none() && (rows..).zip(ids).any(|(place, id)| place != *id) {
                let mut list =
                    self.writer.rows(&group, "node_id", Number::U64, None, chunk_for(count))?;
                for first in (0..rows).step_by(CHUNK as usize) {
                    let before: Vec<u64> = (first..rows.min(first + CHUNK)).collect();
                    self.writer.push(&mut list, &bytes(&before))?;
                }
                named = Some(list);
            }
            if let Some(list) = &mut named {
                self.writer.push(list, &bytes(ids))?;
            }
            heads.push(&self.writer, ids.len() as u64)?;
            columns.push(&self.writer, batch, 1, &|row| format!("{:?} {}", kind.name, ids[row]))?;
            rows += ids.len() as u64;
            progress(ids.len() as u64);
            Ok(())
        })?;
        columns.finish(&self.writer)?;
        Ok(rows)
    }

    /// Writes edges of a population, with both indices; how many. `progress` is told of each twice,
    /// the second time for the index by target, which comes after all of them.
    ///
    /// # Errors
    /// As [`SonataWriter::nodes`].
    pub fn edges(
        &mut self,
        network: &Network,
        population: usize,
        wanted: EdgeSelection<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let edges = &network.populations()[population].population;
        let group = self.group(true, &edges.name)?;
        let (count, writer) = (network.edge_count(population), &self.writer);
        let list = |name: &str, kind: &str| -> Result<Rows> {
            let list = writer.rows(&group, name, Number::U64, None, chunk_for(count))?;
            writer.describe_rows(&list, "node_population", kind)?;
            Ok(list)
        };
        let mut ends =
            [list("source_node_id", &edges.source)?, list("target_node_id", &edges.target)?];
        let mut heads = TypeAndPlaceColumns::new(writer, &group, "edge", count)?;
        let mut columns = self.columns(network, &group, edges.attributes.fields(), count)?;
        let indices = writer.group(Some(&group), "indices")?;
        let mut left_out = Vec::new();
        let mut index = |name: &str, kind: &str| -> Result<Option<EdgeIndex>> {
            let ids =
                last(network, network.type_of(kind)?)?.map_or(Some(0), |id| id.checked_add(1));
            if let Some(ids) = ids.filter(|ids| *ids <= EdgeIndex::most(count)) {
                return EdgeIndex::new(writer, &indices, name, ids, count).map(Some);
            }
            let path = format!("/edges/{}/indices/{name}", edges.name);
            left_out
                .push(format!("{path}: it has a row for each id of {kind:?} up to the greatest, and few have edges"));
            Ok(None)
        };
        let mut by_source = index("source_to_target", &edges.source)?;
        let mut by_target = index("target_to_source", &edges.target)?;
        let mut sorter = EdgeSorter::new(network.fetcher.budget.memory / 2, true, self.beside());
        // The vertex whose edges are being written, and the first of these.
        let (mut run, mut rows): (Option<(u64, u64)>, u64) = (None, 0);
        network.edges(population, wanted, &mut |batch| {
            let (sources, targets) = (ids(batch, 0), ids(batch, 1));
            writer.push(&mut ends[0], &bytes(sources))?;
            writer.push(&mut ends[1], &bytes(targets))?;
            heads.push(writer, sources.len() as u64)?;
            columns.push(writer, batch, 2, &|row| {
                format!("the edge from {} to {}", sources[row], targets[row])
            })?;
            let mut at = 0;
            for same in sources.chunk_by(|one, two| one == two) {
                let (source, first) = (same[0], rows + at as u64);
                if let Some((last, start)) = run.filter(|(last, _)| *last != source) {
                    by_source.as_mut().map_or(Ok(()), |index| {
                        index.push(writer, last, std::slice::from_ref(&(start..first)))
                    })?;
                    run = None;
                }
                run.get_or_insert((source, first));
                if by_target.is_some() {
                    let numbers: Vec<u64> = (first..first + same.len() as u64).collect();
                    sorter.push(source, &targets[at..at + same.len()], &numbers)?;
                }
                at += same.len();
            }
            rows += at as u64;
            progress(at as u64);
            Ok(())
        })?;
        if let Some(mut index) = by_source {
            if let Some((last, start)) = run {
                index.push(writer, last, std::slice::from_ref(&(start..rows)))?;
            }
            index.finish(writer)?;
        }
        if let Some(mut index) = by_target.take() {
            let mut ranges = Vec::new();
            sorter.drain(&mut |lists| {
                for (target, _, edges) in lists.lists() {
                    ranges.clear();
                    ranges.extend(
                        edges
                            .chunk_by(|one, two| one + 1 == *two)
                            .map(|run| run[0]..run[0] + run.len() as u64),
                    );
                    index.push(writer, target, &ranges)?;
                    progress(edges.len() as u64);
                }
                Ok(())
            })?;
            index.finish(writer)?;
        } else {
            progress(rows);
        }
        columns.finish(writer)?;
        self.left_out.extend(left_out);
        Ok(rows)
    }

    fn columns(
        &self,
        network: &Network,
        group: &Group,
        fields: &Fields,
        rows: u64,
    ) -> Result<AttributeWriter> {
        let memory = network.fetcher.budget.memory / 4;
        AttributeWriter::new(
            &self.writer,
            group,
            fields,
            chunk_for(rows).chunk,
            memory,
            self.file.name(),
        )
    }

    /// Where to sort what does not fit into memory.
    fn beside(&self) -> PathBuf {
        let mut path = self.file.temporary().as_os_str().to_owned();
        path.push(".sort.tmp");
        path.into()
    }

    /// Makes the file durable and gives it its name; what was left out of it, in words.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(self) -> Result<Vec<String>> {
        let Self { writer, edges, nodes, left_out, file } = self;
        drop((edges, nodes));
        writer.finish()?;
        file.finish()?;
        Ok(left_out)
    }
}

/// The greatest id of a type.
fn last(network: &Network, vertex_type: usize) -> Result<Option<u64>> {
    let mut last = None;
    network.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
        last = ids.last().copied();
        Ok(())
    })?;
    Ok(last)
}
