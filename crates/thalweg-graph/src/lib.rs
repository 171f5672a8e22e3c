//! A store for networks of neurons and glia: typed vertices, edges between them that can be
//! followed both ways, and attributes of both.
//!
//! A network is a folder with a *manifest*, *segments* that are written once, and a *log* of the
//! changes since the last segment. A reader sees the network as it was when it was opened; one
//! writer at a time changes it. `docs/formats/graph.md` describes the bytes.
//!
//! # Add edges, ask for neighbours
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_schema::Schema;
//! use thalweg_graph::{Change, Direction, Neighbours, Network, NetworkOptions, Population, Writer};
//!
//! # fn main() -> thalweg_io::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! let mut writer = Writer::open(path, NetworkOptions::default())?;
//! let population = writer.population(&Population {
//!     name: "Astrocyte-Neuron".into(),
//!     source: "Astrocyte".into(),
//!     target: "Neuron".into(),
//!     is_directed: false,
//!     is_multi: false,
//!     attributes: Arc::new(Schema::empty()),
//! })?;
//! let edges = vec![(0, 10), (0, 11), (1, 11)];
//! writer.commit(vec![Change::AddEdges { population, edges, attributes: None }])?;
//!
//! let network = Network::open(path, NetworkOptions::default())?;
//! let astrocyte = network.type_of("Astrocyte")?;
//! let neuron = network.type_of("Neuron")?;
//! let mut found = Neighbours::default();
//!
//! let to_neurons = network.adjacencies(astrocyte, Some(neuron), Direction::Auto);
//! network.neighbours(&to_neurons, &[0, 1], &mut found)?;
//! assert_eq!(found.of(0), [10, 11]);
//! assert_eq!(found.of(1), [11]);
//!
//! let to_astrocytes = network.adjacencies(neuron, Some(astrocyte), Direction::Auto);
//! network.neighbours(&to_astrocytes, &[11, 12], &mut found)?;
//! assert_eq!(found.of(0), [0, 1]);
//! assert!(found.of(1).is_empty(), "a vertex that does not exist has no neighbours");
//! # Ok(())
//! # }
//! ```
//!
//! # Attributes
//!
//! Attributes are Arrow columns, with a row for each vertex or edge.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::cast::AsArray;
//! use arrow_array::types::Float64Type;
//! use arrow_array::{Float64Array, RecordBatch};
//! use arrow_schema::{DataType, Field, Schema};
//! use thalweg_graph::{Change, NetworkOptions, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! let schema = Arc::new(Schema::new(vec![Field::new("radius", DataType::Float64, false)]));
//! let radii = Arc::new(Float64Array::from(vec![4.5, 6.25]));
//! let attributes = RecordBatch::try_new(schema.clone(), vec![radii])?;
//!
//! let mut writer = Writer::open(path, NetworkOptions::default())?;
//! let vertex_type = writer.vertex_type("Neuron", &schema)?;
//! let ids = vec![7, 9];
//! writer.commit(vec![Change::SetVertices { vertex_type, ids, attributes }])?;
//!
//! let (places, rows) = writer.network().vertex_attributes(vertex_type, &[9, 8, 7])?;
//! assert_eq!(places, [0, 2], "vertex 8 does not exist");
//! assert_eq!(rows.column(0).as_primitive::<Float64Type>().values()[..], [6.25, 4.5]);
//! # Ok(())
//! # }
//! ```
//!
//! # Import a file
//!
//! ```
//! # #[cfg(feature = "hdf5")]
//! # fn main() -> thalweg_io::Result<()> {
//! use thalweg_graph::synth::{NeuroglialWriter, CircuitRecipe, SynthNetwork};
//! use thalweg_graph::{InputOptions, NetworkOptions, Writer, input};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let file = folder.path().join("neuroglial.h5");
//! let recipe = CircuitRecipe { astrocytes: Some(10), ..CircuitRecipe::with_neurons(1, 2_000) };
//! let circuit = SynthNetwork::new(recipe)?;
//! NeuroglialWriter::write(&file, &circuit)?;
//!
//! let mut writer = Writer::open(&folder.path().join("network"), NetworkOptions::default())?;
//! let input = input::open(&file, &InputOptions::default())?;
//! let imported = writer.import(input, &mut |_edges_read| {})?;
//! let [synapses, neurons] = circuit.totals();
//! assert_eq!(imported.edges, synapses + neurons);
//!
//! let population = writer.network().population_of("Astrocyte-Synapse")?;
//! assert_eq!(writer.network().edge_count(population), synapses);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "hdf5"))]
//! # fn main() {}
//! ```
//!
//! # Modules
//!
//! An arrow leads from a module to the modules that use it.
//!
//! ```text
//! storage ──> read ──> write            the files; queries; changes, imports, compaction
//!    │         ├────> repair            from a damaged network to a new one
//!    │         └────> export            SONATA files
//!    ├──> external_sort ──> write, repair, export
//!    └──> input ──> write               HDF5 files as batches of vertices and edges
//! synth                                 synthetic circuits of any size
//! ```

mod export;
mod external_sort;
#[doc(hidden)]
#[allow(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "reports by panicking, as tests do"
)]
pub mod fuzz_targets;
pub mod input;
#[cfg(not(feature = "hdf5"))]
mod no_hdf5;
mod read;
mod repair;
mod storage;
pub mod synth;
mod write;

pub use export::{SonataWriter, sonata_bytes};
pub use input::{EdgeBatch, EdgeSource, Input, InputOptions, VertexBatch, VertexSource};
pub use read::check::{Checked, NetworkDefect};
pub use read::neighbours::Neighbours;
pub use read::network::{Adjacency, Direction, Network, NetworkOptions, ReadAhead, StorageUse};
pub use read::node_sets::NodeSets;
pub use read::rows::EdgeSelection;
pub use repair::{LostRecords, RepairReport, RepairSummary, repair, repair_on};
pub use storage::checkpoint::{ImportOrigin, Imported};
pub use storage::column::NumberCoding;
pub use storage::schema::{Population, PopulationEntry, Side, VertexType};
pub use storage::segment::PlannedFetches;
pub use write::change::{Change, Committed};
pub use write::writer::Writer;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
