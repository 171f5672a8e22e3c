//! Writing a network, or a part of it, as a SONATA file: `/edges/<population>` with both indices,
//! `/nodes/<type>`, and attributes in their group `0`.

mod column;
mod index;
mod indices;
mod size;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::Fields;
use thalweg_hdf5::libhdf5::{Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber, is_name};
use thalweg_io::condition::Condition;
use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Result};

pub use self::size::sonata_bytes;

use self::column::AttributeWriter;
use self::indices::EdgeIndices;
use crate::external_sort::EdgeSorter;
use crate::read::network::Network;
use crate::read::rows::EdgeSelection;

/// The most rows of a chunk.
const CHUNK: u64 = 1 << 16;

/// Writes a SONATA file. The file is removed if the writer is dropped before it is finished.
///
/// Edges and nodes have the type id -1, because a network has no type ids. An undirected edge
/// leaves from the first of its two vertex types or, within one type, from the lesser id. Nodes
/// whose ids are not 0, 1, 2 and so on have their ids in `node_id`, which not every program reads.
#[derive(Debug)]
pub struct SonataWriter {
    // Declared before `file`, so that it is closed before the file is removed.
    writer: Hdf5Writer,
    edges: Option<NewGroup>,
    nodes: Option<NewGroup>,
    left_out: Vec<String>,
    file: NewFile,
}

/// The datasets with each edge's or node's type, and the place of its attributes.
struct TypeAndPlaceColumns {
    kinds: RowsWriter,
    groups: RowsWriter,
    places: RowsWriter,
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn ids(batch: &RecordBatch, column: usize) -> &[u64] {
    batch.column(column).as_primitive::<UInt64Type>().values()
}

fn chunk_for(rows: u64) -> RowsSpec {
    RowsSpec { columns: None, chunk: rows.clamp(1, CHUNK) }
}

impl TypeAndPlaceColumns {
    fn new(writer: &Hdf5Writer, group: &NewGroup, of: &str, rows: u64) -> Result<Self> {
        let rows = chunk_for(rows);
        let list =
            |what: &str, kind, fill| writer.rows(group, &format!("{of}_{what}"), kind, fill, rows);
        // The first two datasets consist of their fill value and store no chunks.
        let none = (-1_i64).to_le_bytes();
        let kinds = list("type_id", StoredNumber::I64, Some(&none))?;
        Ok(Self {
            kinds,
            groups: list("group_id", StoredNumber::U32, None)?,
            places: list("group_index", StoredNumber::U64, None)?,
        })
    }

    fn push(&mut self, writer: &Hdf5Writer, count: u64) -> Result<()> {
        writer.push_filled(&mut self.kinds, count)?;
        writer.push_filled(&mut self.groups, count)?;
        let first = self.places.len();
        writer.push(&mut self.places, &bytes(&(first..first + count).collect::<Vec<_>>()))
    }
}

impl SonataWriter {
    /// Starts a file. An existing file of this name is replaced when the new one is finished.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let file = NewFile::staged(path)?;
        let writer = Hdf5Writer::create_for(file.temporary(), file.name(), false)?;
        Ok(Self { writer, edges: None, nodes: None, left_out: Vec::new(), file })
    }

    /// The group of a population.
    fn group(&mut self, is_edges: bool, name: &str) -> Result<NewGroup> {
        if !is_name(name) {
            let what = format!("a population named {name:?}");
            let advice = "HDF5 has names without slashes";
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

    /// Writes the vertices of a type as nodes: all, or those for which a condition holds (see
    /// [`Network::vertex_rows`]). Returns how many. `progress` receives numbers of nodes as they
    /// are written.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for attributes that SONATA cannot hold: types other than numbers,
    /// booleans and strings, and missing numbers; [`Error::Io`], as on a full disk; the errors of
    /// reading the network.
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
        // Ids are written only if one differs from its row. When the first one does, the ids of all
        // earlier rows are written too.
        let mut named: Option<RowsWriter> = None;
        let mut rows = 0;
        network.vertex_rows(vertex_type, condition, &mut |batch| {
            let ids = ids(batch, 0);
            if named.is_none() && (rows..).zip(ids).any(|(place, id)| place != *id) {
                let mut list = self.writer.rows(
                    &group,
                    "node_id",
                    StoredNumber::U64,
                    None,
                    chunk_for(count),
                )?;
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
        if named.is_some() {
            self.left_out.push(format!(
                "/nodes/{}: its ids are in node_id, for they are not 0, 1, 2 and so on; programs \
                 that do not read node_id, as libsonata, take the row of a node for its id",
                kind.name
            ));
        }
        Ok(rows)
    }

    /// Writes edges of a population, with both indices. Returns how many edges. `progress` receives
    /// numbers of edges. It counts each edge twice: when the edge is written, and when the index by
    /// target is written at the end.
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
        let count = network.edge_count(population);
        let writer = &self.writer;
        let list = |name: &str, kind: &str| -> Result<RowsWriter> {
            let list = writer.rows(&group, name, StoredNumber::U64, None, chunk_for(count))?;
            writer.describe_rows(&list, "node_population", kind)?;
            Ok(list)
        };
        let mut source_ids = list("source_node_id", &edges.source)?;
        let mut target_ids = list("target_node_id", &edges.target)?;
        let mut heads = TypeAndPlaceColumns::new(writer, &group, "edge", count)?;
        let mut columns = self.columns(network, &group, edges.attributes.fields(), count)?;
        let memory = network.fetcher.budget.memory / 2;
        let sorter = EdgeSorter::new(memory, true, self.spill_path());
        let (mut indices, left_out) =
            EdgeIndices::create(writer, &group, network, population, sorter)?;
        network.edges(population, wanted, &mut |batch| {
            let sources = ids(batch, 0);
            let targets = ids(batch, 1);
            writer.push(&mut source_ids, &bytes(sources))?;
            writer.push(&mut target_ids, &bytes(targets))?;
            heads.push(writer, sources.len() as u64)?;
            columns.push(writer, batch, 2, &|row| {
                format!("the edge from {} to {}", sources[row], targets[row])
            })?;
            indices.push(writer, sources, targets)?;
            progress(sources.len() as u64);
            Ok(())
        })?;
        let rows = indices.finish(writer, progress)?;
        columns.finish(writer)?;
        self.left_out.extend(left_out);
        Ok(rows)
    }

    fn columns(
        &self,
        network: &Network,
        group: &NewGroup,
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

    /// The file for edges that do not fit into memory while they are sorted.
    fn spill_path(&self) -> PathBuf {
        let mut path = self.file.temporary().as_os_str().to_owned();
        path.push(".sort.tmp");
        path.into()
    }

    /// Makes the file durable and gives it its name. Returns descriptions of what was left out.
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
