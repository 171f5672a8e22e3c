//! `thalweg graph export`: a network for others.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use indicatif::ProgressBar;
use parquet::arrow::ArrowWriter;
use serde_json::json;
use thalweg::condition::Condition;
use thalweg::graph::{EdgeSelection, Network};
use thalweg::new_file::NewFile;

use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, Outcome, complain, output};

/// Write a network, the edges of a population, or the vertices of a type, to a file: .h5 (SONATA),
/// .parquet or .csv
///
/// Edges are ordered by the vertex that they leave, then by the one that they lead to, and have
/// their attributes beside them. With --between, only those between some vertices are written: the
/// part of the network that these induce. A SONATA file has all populations and types, unless one
/// is named, and both indices.
///
/// Example: thalweg graph export network synapses.parquet --edges Astrocyte-Synapse
///
/// Example: thalweg graph export network part.csv --edges Astrocyte-Neuron --between Astrocyte:0-9
/// --and Neuron:0-999
///
/// Example: thalweg graph export network network.h5
#[derive(Debug, clap::Args)]
pub(super) struct GraphExportArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Edges of this population
    #[arg(long, value_name = "POPULATION")]
    edges: Option<String>,
    /// Vertices of this type
    #[arg(long, value_name = "TYPE", conflicts_with = "edges")]
    vertices: Option<String>,
    /// Only edges that leave from these: TYPE:0-9,17 or TYPE:FILE
    #[arg(long, value_name = "TYPE:IDS", requires = "edges")]
    between: Option<String>,
    /// Only edges that lead to these
    #[arg(long, value_name = "TYPE:IDS", requires = "edges")]
    and: Option<String>,
    /// Only edges, or vertices, for which this holds: over their columns, and of edges also over
    /// from, to and what vertices there have, as in "weight > 0.5 and to.layer == 4"
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Print a JSON line about it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphExportArgs) -> Outcome {
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let condition = condition.as_ref();
    let network = args.open.read(&args.store)?;
    let vertex_type = args.vertices.as_ref().map(|name| network.type_of(name)).transpose()?;
    let population = args.edges.as_ref().map(|name| network.population_of(name)).transpose()?;
    let ends = population
        .map(|population| ends(args, &network, population))
        .transpose()?
        .unwrap_or_default();
    let wanted = EdgeSelection { from: ends.0.as_deref(), to: ends.1.as_deref(), condition };
    let form = args.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let written = if matches!(form, "h5" | "hdf5") {
        sonata(args, &network, vertex_type, population, wanted)?
    } else {
        table(args, &network, vertex_type, population, wanted)?
    };
    let bytes = std::fs::metadata(&args.out)?.len();
    let mut out = output();
    if args.json {
        let ExportTally { edges, vertices, left_out } = written;
        let line =
            json!({ "edges": edges, "vertices": vertices, "bytes": bytes, "left_out": left_out });
        writeln!(out, "{line}")?;
    } else {
        written
            .left_out
            .iter()
            .for_each(|what| complain(&format!("{}: left out: {what}", args.out.display())));
        let (edges, vertices, size) = (written.edges, written.vertices, bytes as f64 / 1e6);
        writeln!(
            out,
            "{}: {edges} edges and {vertices} vertices, {size:.1} MB",
            args.out.display()
        )?;
    }
    out.flush()?;
    Ok(())
}

/// What was written.
#[derive(Default)]
struct ExportTally {
    edges: u64,
    vertices: u64,
    /// What was not, in words.
    left_out: Vec<String>,
}

/// Two ids, for the bar.
const ROW: u64 = 16;

/// Work of so many rows, shown on a terminal.
struct RowsProgress(Option<ProgressBar>);

impl RowsProgress {
    fn of(total: u64) -> Self {
        Self(
            std::io::IsTerminal::is_terminal(&std::io::stderr())
                .then(|| crate::progress::bar(total * ROW)),
        )
    }

    fn done(&self, rows: u64) {
        self.0.iter().for_each(|bar| bar.inc(rows * ROW));
    }
}

impl Drop for RowsProgress {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Writes Parquet or CSV.
fn table(
    args: &GraphExportArgs,
    network: &Network,
    vertex_type: Option<usize>,
    population: Option<usize>,
    wanted: EdgeSelection<'_>,
) -> Result<ExportTally, Failure> {
    let mut sink = ExportTable::create(&args.out)?;
    let mut written = ExportTally::default();
    match (vertex_type, population) {
        (Some(vertex_type), _) => {
            let rows = RowsProgress::of(network.vertex_count(vertex_type));
            telling(
                |f| network.vertex_rows(vertex_type, wanted.condition, f),
                |batch| {
                    written.vertices += batch.num_rows() as u64;
                    rows.done(batch.num_rows() as u64);
                    sink.push(batch)
                },
            )?;
            sink.finish(&network.vertex_schema(vertex_type))?;
        }
        (_, Some(population)) => {
            let rows = RowsProgress::of(network.edge_count(population));
            telling(
                |f| network.edges(population, wanted, f),
                |batch| {
                    written.edges += batch.num_rows() as u64;
                    rows.done(batch.num_rows() as u64);
                    sink.push(batch)
                },
            )?;
            sink.finish(&network.edge_schema(population))?;
        }
        _ => {
            let what = format!(
                "{}: say which, with --edges or --vertices; .h5 holds all of a network",
                args.out.display()
            );
            return Err(Failure::Usage(what));
        }
    }
    Ok(written)
}

/// The vertices that edges are between, if it is said.
type Ends = (Option<Vec<u64>>, Option<Vec<u64>>);

fn ends(args: &GraphExportArgs, network: &Network, population: usize) -> Result<Ends, Failure> {
    let edges = &network.populations()[population].population;
    let ids_of = |text: &Option<String>, vertex_type: &str| -> Result<Option<Vec<u64>>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let some = vertices::parse(network, text)?;
        if network.types()[some.vertex_type].name != vertex_type {
            let (name, from, to) = (&edges.name, &edges.source, &edges.target);
            return Err(Failure::Usage(format!("{text:?}: {name:?} goes from {from} to {to}")));
        }
        Ok(some.ids.map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        }))
    };
    Ok((ids_of(&args.between, &edges.source)?, ids_of(&args.and, &edges.target)?))
}

/// Batches that the library shows, to one who may fail otherwise than it does.
fn telling(
    show: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> thalweg::Result<()>) -> thalweg::Result<()>,
    mut push: impl FnMut(&RecordBatch) -> Outcome,
) -> Outcome {
    let mut failed = None;
    let shown = show(&mut |batch| {
        push(batch).map_err(|failure| {
            failed = Some(failure);
            thalweg::Error::Cancelled
        })
    });
    shown.map_err(|error| failed.unwrap_or_else(|| Failure::of_argument(error)))
}

fn sonata(
    args: &GraphExportArgs,
    network: &Network,
    vertex_type: Option<usize>,
    population: Option<usize>,
    wanted: EdgeSelection<'_>,
) -> Result<ExportTally, Failure> {
    let mut writer = thalweg::graph::SonataWriter::create(&args.out)?;
    let is_all = vertex_type.is_none() && population.is_none();
    let all = |one: Option<usize>, count: usize| {
        if is_all { 0..count } else { one.map_or(0..0, |one| one..one + 1) }
    };
    let populations = all(population, network.populations().len());
    let types = all(vertex_type, network.types().len());
    let edges: u64 = populations.clone().map(|population| network.edge_count(population)).sum();
    let vertices: u64 = types.clone().map(|vertex_type| network.vertex_count(vertex_type)).sum();
    let rows = RowsProgress::of(2 * edges + vertices);
    let mut written = ExportTally::default();
    for population in populations {
        written.edges += writer.edges(network, population, wanted, &mut |more| rows.done(more))?;
    }
    for vertex_type in types {
        let condition = wanted.condition.filter(|_| !is_all);
        written.vertices +=
            writer.nodes(network, vertex_type, condition, &mut |more| rows.done(more))?;
    }
    written.left_out = writer.finish()?;
    Ok(written)
}

/// Where rows go.
struct ExportTable {
    file: NewFile,
    parquet: Option<ArrowWriter<Vec<u8>>>,
    is_parquet: bool,
    has_head: bool,
}

impl ExportTable {
    fn create(path: &Path) -> Result<Self, Failure> {
        let is_parquet = match path.extension().and_then(|e| e.to_str()) {
            Some("parquet") => true,
            Some("csv") => false,
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: the name must end in .h5, .parquet or .csv",
                    path.display()
                )));
            }
        };
        Ok(Self { file: NewFile::create(path)?, parquet: None, is_parquet, has_head: false })
    }

    fn push(&mut self, batch: &RecordBatch) -> Outcome {
        if self.is_parquet {
            let failed =
                |e: parquet::errors::ParquetError| Failure::Said(format!("writing Parquet: {e}"));
            let writer = match &mut self.parquet {
                Some(writer) => writer,
                None => self.parquet.insert(
                    ArrowWriter::try_new(Vec::new(), batch.schema(), None).map_err(failed)?,
                ),
            };
            writer.write(batch).map_err(failed)?;
            // What a row group came to leaves memory with it.
            let bytes = std::mem::take(writer.inner_mut());
            self.file.push(&bytes)?;
            return Ok(());
        }
        let mut text = Vec::new();
        if !self.has_head {
            let schema = batch.schema();
            let names: Vec<&str> =
                schema.fields().iter().map(|field| field.name().as_str()).collect();
            writeln!(text, "{}", names.join(","))?;
            self.has_head = true;
        }
        let options = arrow_cast::display::FormatOptions::default();
        let columns = batch
            .columns()
            .iter()
            .map(|column| arrow_cast::display::ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> =
            columns.collect::<Result<_, _>>().map_err(|e| Failure::Said(e.to_string()))?;
        for row in 0..batch.num_rows() {
            for (place, column) in columns.iter().enumerate() {
                let value = column.value(row).to_string();
                let comma = if place == 0 { "" } else { "," };
                if value.contains([',', '"', '\n']) {
                    write!(text, "{comma}\"{}\"", value.replace('"', "\"\""))?;
                } else {
                    write!(text, "{comma}{value}")?;
                }
            }
            writeln!(text)?;
        }
        Ok(self.file.push(&text)?)
    }

    /// Ends the file. Without rows, it still names its columns.
    fn finish(mut self, schema: &SchemaRef) -> Outcome {
        if self.parquet.is_none() && !self.has_head {
            self.push(&RecordBatch::new_empty(schema.clone()))?;
        }
        if let Some(writer) = self.parquet.take() {
            let bytes =
                writer.into_inner().map_err(|e| Failure::Said(format!("writing Parquet: {e}")))?;
            self.file.push(&bytes)?;
        }
        Ok(self.file.finish()?)
    }
}
