//! `thalweg graph export`: writes a network, or a part of it, for other programs.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use indicatif::ProgressBar;
use parquet::arrow::ArrowWriter;
use serde_json::json;
use thalweg::condition::Condition;
use thalweg::graph::{EdgeSelection, Network, Population, SonataWriter};
use thalweg::new_file::NewFile;

use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, VerbResult, complain, output};
use crate::force::ForceArgs;

/// Write a network, the edges of a population, or the vertices of a type, to a file: .h5 (SONATA),
/// .parquet or .csv
///
/// Edges are ordered by the vertex that they leave, then by the vertex that they lead to, and have
/// their attributes beside them. With --between and --and, only the edges between these vertices
/// are written: the part of the network that they induce. A SONATA file has all populations and
/// types, unless one is named, and both indices.
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
    /// Write the edges of this population
    #[arg(long, value_name = "POPULATION")]
    edges: Option<String>,
    /// Write the vertices of this type
    #[arg(long, value_name = "TYPE", conflicts_with = "edges")]
    vertices: Option<String>,
    /// Only edges that leave from these: TYPE:0-9,17 or TYPE:FILE
    #[arg(long, value_name = "TYPE:IDS", requires = "edges")]
    between: Option<String>,
    /// Only edges that lead to these
    #[arg(long, value_name = "TYPE:IDS", requires = "edges")]
    and: Option<String>,
    /// Only edges, or vertices, for which this holds. Names are columns; for edges also from and to
    /// (ids), and the attributes of the vertices there, as in "weight > 0.5 and to.layer == 4"
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Print a JSON line about what was written
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphExportArgs) -> VerbResult {
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    args.force.check(&args.out, [&args.store])?;
    let network = args.open.read(&args.store)?;
    let vertex_type = args.vertices.as_ref().map(|name| network.type_of(name)).transpose()?;
    let population = args.edges.as_ref().map(|name| network.population_of(name)).transpose()?;
    let (from, to) = match population {
        Some(population) => ends(args, &network, population)?,
        None => (None, None),
    };
    let wanted =
        EdgeSelection { from: from.as_deref(), to: to.as_deref(), condition: condition.as_ref() };
    let format = args.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let tally = if matches!(format, "h5" | "hdf5") {
        sonata(args, &network, vertex_type, population, wanted)?
    } else {
        table(args, &network, vertex_type, population, wanted)?
    };
    let bytes = std::fs::metadata(&args.out)?.len();
    let ExportTally { edges, vertices, left_out } = tally;
    let path = args.out.display();
    let mut out = output();
    if args.json {
        let line =
            json!({ "edges": edges, "vertices": vertices, "bytes": bytes, "left_out": left_out });
        writeln!(out, "{line}")?;
    } else {
        left_out.iter().for_each(|what| complain(&format!("{path}: left out: {what}")));
        let size = bytes as f64 / 1e6;
        writeln!(out, "{path}: {edges} edges and {vertices} vertices, {size:.1} MB")?;
    }
    out.flush()?;
    Ok(())
}

/// What was written.
#[derive(Default)]
struct ExportTally {
    edges: u64,
    vertices: u64,
    /// What the format has no place for, in words.
    left_out: Vec<String>,
}

/// The bytes of two ids: the progress bar counts bytes.
const ROW_BYTES: u64 = 16;

/// A progress bar that counts rows. It is shown on a terminal only.
struct RowsProgress(Option<ProgressBar>);

impl RowsProgress {
    fn of(total: u64) -> Self {
        Self(std::io::stderr().is_terminal().then(|| crate::progress::bar(total * ROW_BYTES)))
    }

    fn add(&self, rows: u64) {
        self.0.iter().for_each(|bar| bar.inc(rows * ROW_BYTES));
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
    let mut table = ExportTable::create(&args.out)?;
    let mut tally = ExportTally::default();
    match (vertex_type, population) {
        (Some(vertex_type), _) => {
            let progress = RowsProgress::of(network.vertex_count(vertex_type));
            stop_at_failure(
                |f| network.vertex_rows(vertex_type, wanted.condition, f),
                |batch| {
                    tally.vertices += batch.num_rows() as u64;
                    progress.add(batch.num_rows() as u64);
                    table.push(batch)
                },
            )?;
            table.finish(&network.vertex_schema(vertex_type))?;
        }
        (_, Some(population)) => {
            let progress = RowsProgress::of(network.edge_count(population));
            stop_at_failure(
                |f| network.edges(population, wanted, f),
                |batch| {
                    tally.edges += batch.num_rows() as u64;
                    progress.add(batch.num_rows() as u64);
                    table.push(batch)
                },
            )?;
            table.finish(&network.edge_schema(population))?;
        }
        _ => {
            let what = format!(
                "{}: say which, with --edges or --vertices; .h5 holds all of a network",
                args.out.display()
            );
            return Err(Failure::Usage(what));
        }
    }
    Ok(tally)
}

/// The sorted ids of the sources and of the targets to which --between and --and restrict edges.
type EndIds = (Option<Vec<u64>>, Option<Vec<u64>>);

fn ends(args: &GraphExportArgs, network: &Network, population: usize) -> Result<EndIds, Failure> {
    let edges = &network.populations()[population].population;
    let ids_of = |text: &Option<String>, vertex_type: &str| -> Result<Option<Vec<u64>>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let chosen = vertices::parse(network, text)?;
        if network.types()[chosen.vertex_type].name != vertex_type {
            let Population { name, source, target, .. } = edges;
            return Err(Failure::Usage(format!(
                "{text:?}: {name:?} goes from {source} to {target}"
            )));
        }
        Ok(chosen.ids.map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        }))
    };
    Ok((ids_of(&args.between, &edges.source)?, ids_of(&args.and, &edges.target)?))
}

/// Passes the batches that the library shows to `push`, and returns its failure. The library only
/// knows errors of its own: it stops with `Cancelled`, and the failure is kept here.
fn stop_at_failure(
    show: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> thalweg::Result<()>) -> thalweg::Result<()>,
    mut push: impl FnMut(&RecordBatch) -> VerbResult,
) -> VerbResult {
    let mut failed = None;
    let shown = show(&mut |batch| {
        push(batch).map_err(|failure| {
            failed = Some(failure);
            thalweg::Error::Cancelled
        })
    });
    shown.map_err(|error| failed.unwrap_or_else(|| Failure::of_argument(error)))
}

/// Writes a SONATA file: one type, one population, or all of the network.
fn sonata(
    args: &GraphExportArgs,
    network: &Network,
    vertex_type: Option<usize>,
    population: Option<usize>,
    wanted: EdgeSelection<'_>,
) -> Result<ExportTally, Failure> {
    let mut writer = SonataWriter::create(&args.out)?;
    let is_all = vertex_type.is_none() && population.is_none();
    let all = |one: Option<usize>, count: usize| {
        if is_all { 0..count } else { one.map_or(0..0, |one| one..one + 1) }
    };
    let populations = all(population, network.populations().len());
    let types = all(vertex_type, network.types().len());
    let edges: u64 = populations.clone().map(|population| network.edge_count(population)).sum();
    let vertices: u64 = types.clone().map(|vertex_type| network.vertex_count(vertex_type)).sum();
    let progress = RowsProgress::of(2 * edges + vertices);
    let mut tally = ExportTally::default();
    for population in populations {
        tally.edges += writer.edges(network, population, wanted, &mut |more| progress.add(more))?;
    }
    for vertex_type in types {
        let condition = wanted.condition.filter(|_| !is_all);
        tally.vertices +=
            writer.nodes(network, vertex_type, condition, &mut |more| progress.add(more))?;
    }
    tally.left_out = writer.finish()?;
    Ok(tally)
}

/// A Parquet or CSV file that is being written.
struct ExportTable {
    file: NewFile,
    parquet: Option<ArrowWriter<Vec<u8>>>,
    is_parquet: bool,
    has_header: bool,
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
        Ok(Self { file: NewFile::create(path)?, parquet: None, is_parquet, has_header: false })
    }

    fn push(&mut self, batch: &RecordBatch) -> VerbResult {
        if self.is_parquet { self.push_parquet(batch) } else { self.push_csv(batch) }
    }

    fn push_parquet(&mut self, batch: &RecordBatch) -> VerbResult {
        let failed =
            |e: parquet::errors::ParquetError| Failure::Said(format!("writing Parquet: {e}"));
        let writer = match &mut self.parquet {
            Some(writer) => writer,
            None => self
                .parquet
                .insert(ArrowWriter::try_new(Vec::new(), batch.schema(), None).map_err(failed)?),
        };
        writer.write(batch).map_err(failed)?;
        // The bytes of finished row groups go to the file at once, and do not collect in memory.
        let bytes = std::mem::take(writer.inner_mut());
        Ok(self.file.push(&bytes)?)
    }

    fn push_csv(&mut self, batch: &RecordBatch) -> VerbResult {
        let mut text = Vec::new();
        if !self.has_header {
            let schema = batch.schema();
            let names: Vec<&str> =
                schema.fields().iter().map(|field| field.name().as_str()).collect();
            writeln!(text, "{}", names.join(","))?;
            self.has_header = true;
        }
        let options = FormatOptions::default();
        let columns =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> =
            columns.collect::<Result<_, _>>().map_err(|e| Failure::Said(e.to_string()))?;
        for row in 0..batch.num_rows() {
            for (number, column) in columns.iter().enumerate() {
                let value = column.value(row).to_string();
                let comma = if number == 0 { "" } else { "," };
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

    /// Finishes the file. A file without rows still has the names of its columns.
    fn finish(mut self, schema: &SchemaRef) -> VerbResult {
        if self.parquet.is_none() && !self.has_header {
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
