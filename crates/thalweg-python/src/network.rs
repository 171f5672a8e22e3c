//! Networks of vertices and edges.

pub(crate) mod change;
pub(crate) mod columns;
pub(crate) mod lists;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::Buffer as ArrowBuffer;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use thalweg::condition::Condition;
use thalweg::graph::{
    self, Adjacency, Direction, EdgeSelection, Neighbours, NetworkOptions, NodeSets, Writer,
};
use thalweg::{Error, Result, open_urls};

use self::lists::{Ascending, Lists};
use crate::arrow::{Batch, places};
use crate::buffer::Buffer;
use crate::errors::raised;
use crate::options::Arguments;
use crate::run::run;

/// A network, as it was when it was opened, or changed by this object.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Network {
    state: Mutex<graph::Network>,
    path: PathBuf,
    options: NetworkOptions,
}

/// Which edges a query follows.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Query {
    of: String,
    to: Option<String>,
    population: Option<String>,
    direction: String,
}

/// A population: its name, the types that its edges leave and lead to, whether edges have a
/// direction and whether two vertices may have several, and how many edges there are.
type PopulationParts = (String, String, String, bool, bool, u64);

/// What a check found: pages, lists and edges that were read, and defects.
type CheckParts = (u64, u64, u64, Vec<Py<PyBaseException>>);

impl Network {
    pub(crate) fn new(state: graph::Network, path: &Path, options: NetworkOptions) -> Self {
        Self { state: Mutex::new(state), path: path.to_owned(), options }
    }

    fn state(&self) -> graph::Network {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, state: graph::Network) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Opens the network for changes. There must be one: a writer would make another.
    pub(crate) fn writer(&self) -> Result<Writer> {
        if !graph::Network::is_at(&self.path) {
            graph::Network::open(&self.path, self.options.clone())?;
        }
        Writer::open(&self.path, self.options.clone())
    }

    pub(crate) fn open_again(&self) -> Result<graph::Network> {
        graph::Network::open(&self.path, self.options.clone())
    }
}

/// Opens the network in a folder or at a URL.
#[pyfunction]
pub(crate) fn open_network(
    py: Python<'_>,
    path: PathBuf,
    arguments: Arguments<'_>,
    is_mapped: bool,
) -> PyResult<Network> {
    open_urls();
    let options = NetworkOptions { is_mapped, ..NetworkOptions::from(&arguments.open(py)?.1) };
    let state = run(py, || graph::Network::open(&path, options.clone()))?;
    Ok(Network::new(state, &path, options))
}

/// The adjacencies that a query follows; at least one.
fn adjacencies(network: &graph::Network, query: &Query) -> Result<Vec<Adjacency>> {
    let from = network.type_of(&query.of)?;
    let to = query.to.as_ref().map(|to| network.type_of(to)).transpose()?;
    let only = query.population.as_ref().map(|name| network.population_of(name)).transpose()?;
    let direction = match query.direction.as_str() {
        "auto" => Direction::Auto,
        "out" => Direction::Out,
        "in" => Direction::In,
        "both" => Direction::Both,
        other => {
            let what = format!("direction={other:?}; expected 'auto', 'out', 'in' or 'both'");
            return Err(Error::Usage(what.into()));
        }
    };
    let found = network.adjacencies_of(only, from, to, direction);
    if !found.is_empty() {
        return Ok(found);
    }
    let populations = network.populations().iter();
    let all: Vec<String> = populations.map(|edges| edges.population.to_string()).collect();
    let to = query.to.as_deref().unwrap_or("anything");
    let asked = query.population.as_ref().map_or(String::new(), |name| format!(" in {name}"));
    let what = format!(
        "{}: no edges{asked} lead from {} to {to} in direction {}; there are {}",
        network.name(),
        query.of,
        query.direction,
        if all.is_empty() { "no populations".into() } else { all.join(", ") }
    );
    Err(Error::Usage(what.into()))
}

fn parsed(condition: Option<&str>) -> Result<Option<Condition>> {
    condition.map(Condition::parse).transpose()
}

fn refused(error: ArrowError) -> Error {
    Error::Usage(error.to_string().into())
}

/// Batches as one, with some of the columns.
fn joined(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    columns: Option<&[String]>,
) -> Result<RecordBatch> {
    let all = concat_batches(schema, batches).map_err(refused)?;
    match columns {
        Some(names) => all.project(&places(schema, names, &[])?).map_err(refused),
        None => Ok(all),
    }
}

fn booleans(values: &[bool]) -> Buffer {
    let bytes: Vec<u8> = values.iter().map(|value| u8::from(*value)).collect();
    Buffer::shared(ArrowBuffer::from_vec(bytes), "|b1", 1)
}

#[pymethods]
impl Network {
    #[getter]
    fn name(&self) -> String {
        self.state().name().to_string()
    }

    /// The types of vertices, and how many vertices of each there are.
    #[getter]
    fn types(&self) -> Vec<(String, u64)> {
        let network = self.state();
        let types = network.types().iter().enumerate();
        types.map(|(number, of)| (of.name.clone(), network.vertex_count(number))).collect()
    }

    /// The populations of edges.
    #[getter]
    fn populations(&self) -> Vec<PopulationParts> {
        let network = self.state();
        let parts = |(number, edges): (usize, &graph::PopulationEntry)| {
            let graph::Population { name, source, target, is_directed, is_multi, .. } =
                edges.population.clone();
            (name, source, target, is_directed, is_multi, network.edge_count(number))
        };
        network.populations().iter().enumerate().map(parts).collect()
    }

    /// The columns of a type's vertices, or of a population's edges, and Arrow's names of their
    /// types.
    fn columns(
        &self,
        py: Python<'_>,
        of: Option<&str>,
        population: Option<&str>,
    ) -> PyResult<Vec<(String, String)>> {
        let network = self.state();
        let schema = match (of, population) {
            (Some(of), _) => network.type_of(of).map(|number| network.vertex_schema(number)),
            (None, population) => network
                .population_of(population.unwrap_or_default())
                .map(|number| network.edge_schema(number)),
        };
        let schema = schema.map_err(|error| raised(py, &error))?;
        let named =
            |field: &arrow_schema::FieldRef| (field.name().clone(), field.data_type().to_string());
        Ok(schema.fields().iter().map(named).collect())
    }

    /// Segments, their bytes, and changes in the log.
    #[getter]
    fn storage(&self) -> (usize, u64, usize) {
        let graph::StorageUse { segments, bytes, changes_in_log } = self.state().storage();
        (segments, bytes, changes_in_log)
    }

    /// The neighbours of vertices.
    fn neighbours(
        &self,
        py: Python<'_>,
        query: Query,
        ids: &[u8],
        condition: Option<&str>,
    ) -> PyResult<Lists> {
        let ids = lists::ids(ids);
        let network = self.state();
        run(py, || {
            let adjacencies = adjacencies(&network, &query)?;
            let mut found = Neighbours::default();
            match parsed(condition)? {
                None => network.neighbours(&adjacencies, &ids, &mut found)?,
                Some(condition) => {
                    let asked = Ascending::of(&ids);
                    network.neighbours_where(&adjacencies, &asked.ids, &condition, &mut found)?;
                    found = asked.lists_in_order(found);
                }
            }
            Ok(Lists(found.into_arrow()?))
        })
    }

    /// How many neighbours each vertex has.
    fn degrees(&self, py: Python<'_>, query: Query, ids: &[u8]) -> PyResult<Buffer> {
        let ids = lists::ids(ids);
        let network = self.state();
        let found = run(py, || network.degrees(&adjacencies(&network, &query)?, &ids))?;
        Ok(Buffer::ids(found))
    }

    /// The vertices within some steps of others.
    fn reachable(
        &self,
        py: Python<'_>,
        query: Query,
        ids: &[u8],
        steps: usize,
    ) -> PyResult<Buffer> {
        let ids = lists::ids(ids);
        let network = self.state();
        let found = run(py, || network.reachable(&adjacencies(&network, &query)?, &ids, steps))?;
        Ok(Buffer::ids(found))
    }

    /// The rows of vertices: of these ids in their order, or of all.
    fn vertices(
        &self,
        py: Python<'_>,
        of: &str,
        ids: Option<&[u8]>,
        condition: Option<&str>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Batch> {
        let ids = ids.map(lists::ids);
        let network = self.state();
        let rows = run(py, || {
            let number = network.type_of(of)?;
            let schema = network.vertex_schema(number);
            let condition = parsed(condition)?;
            let mut batches = Vec::new();
            match ids {
                None => network.vertex_rows(number, condition.as_ref(), &mut |batch| {
                    batches.push(batch.clone());
                    Ok(())
                })?,
                Some(ids) => {
                    let rows = network.vertex_rows_of(number, &ids)?;
                    let holds = condition.map(|asked| asked.bind(&schema)).transpose()?;
                    let holds: Option<BooleanArray> = holds.map(|bound| bound.holds(&rows));
                    batches.push(match holds {
                        Some(holds) => filter_record_batch(&rows, &holds).map_err(refused)?,
                        None => rows,
                    });
                }
            }
            joined(&schema, &batches, columns.as_deref())
        })?;
        Ok(Batch::kept(rows, 0))
    }

    /// The rows of edges, ordered by source, then target.
    fn edges(
        &self,
        py: Python<'_>,
        population: &str,
        sources: Option<&[u8]>,
        targets: Option<&[u8]>,
        condition: Option<&str>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Batch> {
        let ascending = |ids: &[u8]| Ascending::of(&lists::ids(ids)).ids;
        let (from, to) = (sources.map(ascending), targets.map(ascending));
        let network = self.state();
        let rows = run(py, || {
            let number = network.population_of(population)?;
            let condition = parsed(condition)?;
            let wanted = EdgeSelection {
                from: from.as_deref(),
                to: to.as_deref(),
                condition: condition.as_ref(),
            };
            let mut batches = Vec::new();
            network.edges(number, wanted, &mut |batch| {
                batches.push(batch.clone());
                Ok(())
            })?;
            joined(&network.edge_schema(number), &batches, columns.as_deref())
        })?;
        Ok(Batch::kept(rows, 0))
    }

    /// Whether vertices exist.
    fn has_vertices(&self, py: Python<'_>, of: &str, ids: &[u8]) -> PyResult<Buffer> {
        let asked = Ascending::of(&lists::ids(ids));
        let network = self.state();
        let there = run(py, || network.has_vertices(network.type_of(of)?, &asked.ids))?;
        Ok(booleans(&asked.in_order(&there)))
    }

    /// Whether a population has edges between pairs of vertices.
    fn has_edges(&self, py: Python<'_>, population: &str, pairs: &[u8]) -> PyResult<Buffer> {
        let pairs = lists::pairs(pairs);
        let network = self.state();
        let there = run(py, || {
            let number = network.population_of(population)?;
            let has = |(source, target)| network.has_edge(number, source, target);
            pairs.into_iter().map(has).collect::<Result<Vec<bool>>>()
        })?;
        Ok(booleans(&there))
    }

    /// The vertices of a type that are in a node set of a SONATA file of node sets.
    fn node_set(&self, py: Python<'_>, file: PathBuf, name: &str, of: &str) -> PyResult<Buffer> {
        let network = self.state();
        let found =
            run(py, || network.node_set(network.type_of(of)?, &NodeSets::open(&file)?, name))?;
        Ok(Buffer::ids(found))
    }

    /// Reads all of the network, and looks for defects.
    fn check(&self, py: Python<'_>) -> PyResult<CheckParts> {
        let network = self.state();
        let graph::Checked { pages, lists, edges, defects } =
            run(py, || network.check(&mut |_| {}))?;
        let defects = defects.iter().map(|defect| raised(py, &defect.error).into_value(py));
        Ok((pages, lists, edges, defects.collect()))
    }

    /// Reads the network as it is now.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let state = run(py, || self.open_again())?;
        self.replace(state);
        Ok(())
    }

    /// Writes all segments and the log as one segment.
    fn compact(&self, py: Python<'_>, is_raw: bool) -> PyResult<()> {
        let compacted = run(py, || {
            let mut writer = self.writer()?;
            writer.set_coding(change::coding(is_raw));
            writer.compact()
        });
        // An interrupt may come when all is done: then the files of the old state are gone.
        if let Ok(state) = py.detach(|| self.open_again()) {
            self.replace(state);
        }
        compacted.map(drop)
    }
}
