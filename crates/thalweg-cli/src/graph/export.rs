//! `thalweg graph export`: a network for others.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use thalweg::graph::{Neighbours, Network, Side, Way};
use thalweg::write::NewFile;

use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, Outcome};

/// Write the edges of a population, or the vertices of a type, to a file: .parquet or .csv
///
/// Edges are ordered by the vertex that they leave, then by the one that they lead to, and have their attributes beside them. With
/// --between, only those between some vertices are written: the part of the network that these induce.
///
/// Example: thalweg graph export network synapses.parquet --edges Astrocyte-Synapse
///
/// Example: thalweg graph export network part.csv --edges Astrocyte-Neuron --between Astrocyte:0-9 --and Neuron:0-999
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Edges of this population
    #[arg(long, value_name = "POPULATION", required_unless_present = "vertices")]
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
    #[command(flatten)]
    open: OpenArgs,
}

/// Vertices whose edges are written together.
const TOGETHER: usize = 256;

pub(super) fn run(args: &Args) -> Outcome {
    let network = args.open.read(&args.store)?;
    let mut sink = Sink::create(&args.out)?;
    if let Some(name) = &args.vertices {
        let vertex_type = network.type_of(name)?;
        let mut outcome = Ok(());
        network
            .vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
                let written = described(&network, vertex_type, ids).and_then(|batch| sink.push(&batch));
                written.map_err(|failure| {
                    outcome = Err(failure);
                    thalweg::Error::Cancelled
                })
            })
            .map_err(Failure::from)
            .or_else(|failure| std::mem::replace(&mut outcome, Ok(())).and(Err(failure)))?;
        if sink.is_empty() {
            sink.push(&described(&network, vertex_type, &[])?)?;
        }
    } else if let Some(name) = &args.edges {
        let population = network.population_of(name)?;
        let edges = &network.populations()[population].population;
        let ids_of = |text: &Option<String>, vertex_type: &str| -> Result<Option<Vec<u64>>, Failure> {
            let Some(text) = text else { return Ok(None) };
            let some = vertices::parse(&network, text)?;
            if network.types()[some.vertex_type].name != vertex_type {
                return Err(Failure::Usage(format!(
                    "{text:?}: {name:?} goes from {} to {}",
                    edges.source, edges.target
                )));
            }
            Ok(some.ids.map(|mut ids| {
                ids.sort_unstable();
                ids.dedup();
                ids
            }))
        };
        let (from, to) = (ids_of(&args.between, &edges.source)?, ids_of(&args.and, &edges.target)?);
        let mut failed = None;
        let mut write = |ids: &[u64]| -> thalweg::Result<()> {
            for ids in ids.chunks(TOGETHER) {
                let outcome = batch_of(&network, population, ids, to.as_deref()).and_then(|batch| sink.push(&batch));
                outcome.map_err(|failure| {
                    failed = Some(failure);
                    thalweg::Error::Cancelled
                })?;
            }
            Ok(())
        };
        let outcome = match &from {
            Some(ids) => write(ids),
            None => network.vertices(network.type_of(&edges.source)?, 0..=u64::MAX, &mut write),
        };
        outcome.map_err(|error| failed.take().unwrap_or(Failure::Failed(error)))?;
        if sink.is_empty() {
            sink.push(&batch_of(&network, population, &[], to.as_deref())?)?;
        }
    }
    sink.finish()
}

fn id_column(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

/// Edges that leave from some vertices.
fn batch_of(network: &Network, population: usize, ids: &[u64], to: Option<&[u64]>) -> Result<RecordBatch, Failure> {
    let way = Way { population, side: Side::Out };
    let mut list = Neighbours::default();
    match to {
        Some(to) => network.between(way, ids, to, &mut list)?,
        None => network.numbered_neighbours(&[way], ids, &mut list)?,
    }
    let mut sources = Vec::with_capacity(list.ids.len());
    for (place, id) in ids.iter().enumerate() {
        sources.resize(list.offsets.get(place + 1).map_or(0, |end| *end as usize), *id);
    }
    let mut fields = vec![id_column("source"), id_column("target")];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(sources)), Arc::new(UInt64Array::from(list.ids))];
    if !network.populations()[population].population.attributes.fields().is_empty() {
        let batch = network.edge_attributes(population, &list.numbers)?;
        fields.extend(batch.schema().fields().iter().map(|field| field.as_ref().clone()));
        columns.extend(batch.columns().iter().cloned());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| Failure::Said(e.to_string()))
}

/// Vertices with their attributes, which are null where one has none.
fn described(network: &Network, vertex_type: usize, ids: &[u64]) -> Result<RecordBatch, Failure> {
    let mut fields = vec![id_column("id")];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ids.to_vec()))];
    if !network.types()[vertex_type].attributes.fields().is_empty() {
        let (places, batch) = network.vertex_attributes(vertex_type, ids)?;
        let mut rows = vec![None; ids.len()];
        places.iter().enumerate().for_each(|(row, place)| rows[*place] = Some(row as u64));
        let rows = UInt64Array::from(rows);
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            fields.push(field.as_ref().clone().with_nullable(true));
            columns.push(arrow_select::take::take(column, &rows, None).map_err(|e| Failure::Said(e.to_string()))?);
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| Failure::Said(e.to_string()))
}

/// Where rows go.
struct Sink {
    file: NewFile,
    parquet: Option<ArrowWriter<Vec<u8>>>,
    is_parquet: bool,
    has_head: bool,
}

impl Sink {
    fn create(path: &Path) -> Result<Self, Failure> {
        let is_parquet = match path.extension().and_then(|e| e.to_str()) {
            Some("parquet") => true,
            Some("csv") => false,
            _ => return Err(Failure::Usage(format!("{}: the name must end in .parquet or .csv", path.display()))),
        };
        Ok(Self { file: NewFile::create(path)?, parquet: None, is_parquet, has_head: false })
    }

    /// Whether nothing was pushed: a file without rows still names its columns.
    fn is_empty(&self) -> bool {
        self.parquet.is_none() && !self.has_head
    }

    fn push(&mut self, batch: &RecordBatch) -> Outcome {
        if self.is_parquet {
            let failed = |e: parquet::errors::ParquetError| Failure::Said(format!("writing Parquet: {e}"));
            let writer = match &mut self.parquet {
                Some(writer) => writer,
                None => self.parquet.insert(ArrowWriter::try_new(Vec::new(), batch.schema(), None).map_err(failed)?),
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
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            writeln!(text, "{}", names.join(","))?;
            self.has_head = true;
        }
        let options = arrow_cast::display::FormatOptions::default();
        let columns =
            batch.columns().iter().map(|column| arrow_cast::display::ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(|e| Failure::Said(e.to_string()))?;
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

    fn finish(mut self) -> Outcome {
        if let Some(writer) = self.parquet.take() {
            let bytes = writer.into_inner().map_err(|e| Failure::Said(format!("writing Parquet: {e}")))?;
            self.file.push(&bytes)?;
        }
        Ok(self.file.finish()?)
    }
}
