//! Changes of networks: transactions, and imports of files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use thalweg::graph::{
    self, Change, ImportOrigin, Input, InputOptions, NumberCoding, Population, Writer, input,
};
use thalweg::{Error, Result, open_urls};

use super::columns::{Column, rows, wanted};
use super::{Network, lists};
use crate::errors::{raised, usage};
use crate::options::Arguments;
use crate::run::run;

pub(super) fn coding(is_raw: bool) -> NumberCoding {
    if is_raw { NumberCoding::Raw } else { NumberCoding::Packed }
}

/// Makes an empty network in a folder.
#[pyfunction]
pub(crate) fn create_network(
    py: Python<'_>,
    path: PathBuf,
    arguments: Arguments<'_>,
) -> PyResult<Network> {
    let options = graph::NetworkOptions::from(&arguments.open(py)?.1);
    let state = run(py, || {
        if graph::Network::is_at(&path) {
            return Err(Error::Exists {
                file: path.to_string_lossy().into(),
                what: " and is a network",
                advice: "open it, or name another folder",
            });
        }
        Ok(Writer::open(&path, options.clone())?.network().clone())
    })?;
    Ok(Network::new(state, &path, options))
}

/// Imports a file into a network, which is made if there is none. Returns the network, and in words
/// what is not as the file has it.
#[pyfunction]
pub(crate) fn import_network(
    py: Python<'_>,
    file: PathBuf,
    store: PathBuf,
    is_raw: bool,
    arguments: Arguments<'_>,
) -> PyResult<(Network, Vec<String>)> {
    open_urls();
    let (_, read) = arguments.open(py)?;
    let options = graph::NetworkOptions::from(&read);
    let (state, words) = run(py, || {
        // Opened before the network: a file that cannot be opened makes none.
        let mut input = input::open(&file, &InputOptions { read, ..InputOptions::default() })?;
        input.origin = Some(ImportOrigin::of(&file, format!("Python {is_raw}"))?);
        let mut writer = Writer::open(&store, options.clone())?;
        writer.set_coding(coding(is_raw));
        let lost = input.lost.clone();
        let mut words: Vec<String> =
            input.left_out.iter().map(|what| format!("left out: {what}")).collect();
        words.extend(added_to(writer.network(), &input));
        if let Err(error) = writer.import(input, &mut |_| {}) {
            // The failure that is told is the first one.
            let _ = writer.undo_new();
            return Err(error);
        }
        words.extend(lost.iter().flat_map(|values| values.words()));
        Ok((writer.network().clone(), words))
    })?;
    Ok((Network::new(state, &store, options), words))
}

/// The populations of the input that have edges already, and may have several between the same
/// vertices.
fn added_to(network: &graph::Network, input: &Input) -> Vec<String> {
    let many = input.edges.iter().map(|edges| edges.population()).filter(|edges| edges.is_multi);
    let words = many.filter_map(|edges| {
        let known = network.populations().iter();
        let number = known.map(|known| &known.population.name).position(|n| *n == edges.name)?;
        let count = Some(network.edge_count(number)).filter(|count| *count > 0)?;
        Some(format!(
            "{} had {count} edges; those of an earlier import of this file are there twice",
            edges.name
        ))
    });
    words.collect()
}

/// A step of a transaction, by the names of types and populations.
enum Step {
    /// A type that is new, or gets attributes.
    Type(String, SchemaRef),
    /// A new population.
    Population(Population),
    AddVertices(String, Vec<u64>, Option<RecordBatch>),
    SetVertices(String, Vec<u64>, RecordBatch),
    RemoveVertices(String, Option<Vec<u64>>),
    AddEdges(String, Vec<(u64, u64)>, Option<RecordBatch>),
    RemoveEdges(String, Option<Vec<(u64, u64)>>),
}

struct Open {
    writer: Writer,
    steps: Vec<Step>,
}

/// Changes of a network that are made together, or not at all. Nobody else can change it meanwhile.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Transaction {
    network: Py<Network>,
    open: Mutex<Option<Open>>,
}

/// Vertices added and removed, and edges added and removed.
type Counts = (u64, u64, u64, u64);

impl Open {
    /// The name of a type as it is written in the network, or in an earlier step.
    fn type_name(&self, name: &str) -> Option<String> {
        let network = self.writer.network();
        let known = network.type_of(name).ok().map(|number| network.types()[number].name.clone());
        let is_new = || {
            self.steps.iter().any(|step| match step {
                Step::Type(new, _) => new == name,
                Step::Population(new) => new.source == name || new.target == name,
                _ => false,
            })
        };
        known.or_else(|| is_new().then(|| name.to_owned()))
    }

    fn known_type(&self, name: &str) -> Result<String> {
        match self.type_name(name) {
            Some(known) => Ok(known),
            // Its error has the names that exist.
            None => self.writer.network().type_of(name).map(|_| name.to_owned()),
        }
    }

    /// The attributes of a type; empty if there is none.
    fn attributes_of(&self, name: &str) -> SchemaRef {
        let new = self.steps.iter().rev().find_map(|step| match step {
            Step::Type(new, attributes) if new == name => Some(attributes.clone()),
            _ => None,
        });
        let network = self.writer.network();
        let known = network.types().iter().find(|of| of.name == name);
        new.or_else(|| known.map(|of| of.attributes.clone()))
            .unwrap_or_else(|| Arc::new(Schema::empty()))
    }

    fn population(&self, name: &str) -> Result<Population> {
        let new = self.steps.iter().find_map(|step| match step {
            Step::Population(new) if new.name == name => Some(new.clone()),
            _ => None,
        });
        let network = self.writer.network();
        new.map_or_else(
            || Ok(network.populations()[network.population_of(name)?].population.clone()),
            Ok,
        )
    }

    /// The rows that fit the attributes that are known, or any if none are.
    fn rows(
        py: Python<'_>,
        known: &SchemaRef,
        columns: Option<Vec<Column<'_>>>,
    ) -> PyResult<Option<RecordBatch>> {
        let known = Some(known).filter(|known| !known.fields().is_empty());
        columns.map(|columns| rows(py, columns, known)).transpose()
    }

    /// The rows of a type. A type without attributes gets those of the rows, and a new one is
    /// defined.
    fn rows_of_type(
        &mut self,
        py: Python<'_>,
        of: &str,
        columns: Option<Vec<Column<'_>>>,
    ) -> PyResult<(String, Option<RecordBatch>)> {
        let known = self.type_name(of);
        let name = known.clone().unwrap_or_else(|| of.to_owned());
        let attributes = self.attributes_of(&name);
        let rows = Self::rows(py, &attributes, columns)?;
        let schema = rows.as_ref().map_or_else(|| attributes.clone(), RecordBatch::schema);
        if known.is_none() || schema != attributes {
            self.steps.push(Step::Type(name.clone(), schema));
        }
        Ok((name, rows))
    }

    /// Makes all changes, durably.
    fn commit(mut self) -> Result<(Counts, graph::Network)> {
        let mut changes = Vec::new();
        self.writer.define_with_next_commit();
        for step in self.steps {
            let writer = &mut self.writer;
            match step {
                Step::Type(name, attributes) => {
                    writer.vertex_type(&name, &attributes)?;
                }
                Step::Population(population) => {
                    writer.population(&population)?;
                }
                Step::AddVertices(of, ids, attributes) => {
                    let vertex_type = writer.network().type_of(&of)?;
                    changes.push(Change::AddVertices { vertex_type, ids, attributes });
                }
                Step::SetVertices(of, ids, attributes) => {
                    let vertex_type = writer.network().type_of(&of)?;
                    changes.push(Change::SetVertices { vertex_type, ids, attributes });
                }
                Step::RemoveVertices(of, ids) => {
                    let vertex_type = writer.network().type_of(&of)?;
                    changes.push(match ids {
                        Some(ids) => Change::RemoveVertices { vertex_type, ids },
                        None => Change::ClearVertices { vertex_type },
                    });
                }
                Step::AddEdges(name, edges, attributes) => {
                    let population = writer.network().population_of(&name)?;
                    changes.push(Change::AddEdges { population, edges, attributes });
                }
                Step::RemoveEdges(name, edges) => {
                    let population = writer.network().population_of(&name)?;
                    changes.push(match edges {
                        Some(edges) => Change::RemoveEdges { population, edges },
                        None => Change::ClearEdges { population },
                    });
                }
            }
        }
        let graph::Committed { vertices_added, vertices_removed, edges_added, edges_removed } =
            self.writer.commit(changes)?;
        self.writer.finish()?;
        let counts = (vertices_added, vertices_removed, edges_added, edges_removed);
        Ok((counts, self.writer.network().clone()))
    }
}

impl Transaction {
    fn with<T>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Open) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut open = self.open.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        change(open.as_mut().ok_or_else(|| ended(py))?)
    }
}

fn ended(py: Python<'_>) -> PyErr {
    usage(py, "this transaction has ended; begin another".into())
}

#[pymethods]
impl Transaction {
    /// Opens the network for changes, and lets it show what it is now.
    #[new]
    fn new(py: Python<'_>, network: Py<Network>) -> PyResult<Self> {
        let of = network.get();
        let writer = run(py, || of.writer())?;
        of.replace(writer.network().clone());
        let open = Mutex::new(Some(Open { writer, steps: Vec::new() }));
        Ok(Self { network, open })
    }

    /// The attributes that a type's vertices or a population's edges have, and numpy's names of
    /// their types.
    fn wanted(
        &self,
        py: Python<'_>,
        of: Option<&str>,
        population: Option<&str>,
    ) -> PyResult<Vec<(String, &'static str)>> {
        self.with(py, |open| {
            let of = of.map(|of| open.type_name(of).unwrap_or_else(|| of.to_owned()));
            let schema = match (&of, population) {
                (Some(of), _) => open.attributes_of(of),
                (None, name) => open
                    .population(name.unwrap_or_default())
                    .map(|edges| edges.attributes)
                    .map_err(|error| raised(py, &error))?,
            };
            wanted(py, &schema)
        })
    }

    fn add_vertices(
        &self,
        py: Python<'_>,
        of: &str,
        ids: &[u8],
        columns: Option<Vec<Column<'_>>>,
    ) -> PyResult<()> {
        self.with(py, |open| {
            let (of, rows) = open.rows_of_type(py, of, columns)?;
            open.steps.push(Step::AddVertices(of, lists::ids(ids), rows));
            Ok(())
        })
    }

    fn set_vertices(
        &self,
        py: Python<'_>,
        of: &str,
        ids: &[u8],
        columns: Vec<Column<'_>>,
    ) -> PyResult<()> {
        self.with(py, |open| {
            let (of, rows) = open.rows_of_type(py, of, Some(columns))?;
            open.steps.extend(rows.map(|rows| Step::SetVertices(of, lists::ids(ids), rows)));
            Ok(())
        })
    }

    fn remove_vertices(&self, py: Python<'_>, of: &str, ids: Option<&[u8]>) -> PyResult<()> {
        self.with(py, |open| {
            let of = open.known_type(of).map_err(|error| raised(py, &error))?;
            open.steps.push(Step::RemoveVertices(of, ids.map(lists::ids)));
            Ok(())
        })
    }

    /// Adds a population, unless there is an equal one.
    fn add_population(
        &self,
        py: Python<'_>,
        name: String,
        between: (String, String),
        is_directed: bool,
        is_multi: bool,
        columns: Option<Vec<Column<'_>>>,
    ) -> PyResult<()> {
        self.with(py, |open| {
            let [source, target] =
                [between.0, between.1].map(|of| open.type_name(&of).unwrap_or(of));
            let known = open.population(&name).ok();
            let attributes = match (columns, &known) {
                (Some(columns), None) => rows(py, columns, None)?.schema(),
                (_, known) => known
                    .as_ref()
                    .map_or_else(|| Arc::new(Schema::empty()), |known| known.attributes.clone()),
            };
            let new = Population { name, source, target, is_directed, is_multi, attributes };
            match known {
                Some(known) if known == new => {}
                Some(known) => return Err(usage(py, new.differs_from(&known))),
                None => open.steps.push(Step::Population(new)),
            }
            Ok(())
        })
    }

    fn add_edges(
        &self,
        py: Python<'_>,
        population: &str,
        pairs: &[u8],
        columns: Option<Vec<Column<'_>>>,
    ) -> PyResult<()> {
        self.with(py, |open| {
            let edges = open.population(population).map_err(|error| raised(py, &error))?;
            let rows = Open::rows(py, &edges.attributes, columns)?;
            open.steps.push(Step::AddEdges(edges.name, lists::pairs(pairs), rows));
            Ok(())
        })
    }

    fn remove_edges(&self, py: Python<'_>, population: &str, pairs: Option<&[u8]>) -> PyResult<()> {
        self.with(py, |open| {
            let edges = open.population(population).map_err(|error| raised(py, &error))?;
            open.steps.push(Step::RemoveEdges(edges.name, pairs.map(lists::pairs)));
            Ok(())
        })
    }

    /// Makes the changes, and lets the network show them.
    fn commit(&self, py: Python<'_>) -> PyResult<Counts> {
        let open = self.open.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let open = open.ok_or_else(|| ended(py))?;
        let network = self.network.get();
        match run(py, || open.commit()) {
            Ok((counts, state)) => {
                network.replace(state);
                Ok(counts)
            }
            Err(error) => {
                // Whether they were made is not known after a failure of the disk.
                if let Ok(state) = py.detach(|| network.open_again()) {
                    network.replace(state);
                }
                Err(error)
            }
        }
    }

    /// Ends the transaction without a change.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}
