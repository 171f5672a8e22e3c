//! `thalweg graph export`: writes a network, or a part of it, for other programs.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use indicatif::ProgressBar;
use serde_json::json;
use thalweg::condition::Condition;
use thalweg::control::Control;
use thalweg::graph::{EdgeSelection, Network, Population, SonataWriter, sonata_bytes};
use thalweg::{OpenedStore, Options};
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls::{self, url};

use super::open::{OpenArgs, existing};
use super::vertices::{self, FoundVertices};
use crate::callback::CallbackFailure;
use crate::common::{
    Failure, VerbResult, complain, counted, ended, output, print_json, shown_path,
};
use crate::done::say_done;
use crate::force::{ForceArgs, files_of};
use crate::table_sink::{TableOut, TableSink};

/// Write a network, the edges of a population, or the vertices of a type, to a file: .h5 (SONATA),
/// .arrow, .parquet, .csv or .tsv
///
/// Edges are ordered by the vertex that they leave, then by the vertex that they lead to, and have
/// their attributes beside them. With --between and --and, only the edges between these vertices
/// are written: the part of the network that they induce. A SONATA file has all populations and
/// types, unless one is named, and both indices, which have a row for each id up to the greatest.
/// --explain says how large it will be. Ids of --between and --and that are not there are named,
/// and the exit code is 1.
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
    /// Print about how large a SONATA file will be, and write nothing
    #[arg(long, conflicts_with_all = ["condition", "between", "and"])]
    explain: bool,
    /// Print a JSON line about what was written
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphExportArgs) -> VerbResult {
    let started = Instant::now();
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let lists = args.between.iter().chain(&args.and).flat_map(|ids| vertices::files_in(ids));
    if !args.explain {
        args.force.check(&args.out, files_of(&args.store).chain(lists))?;
    }
    let options = args.open.options();
    let network = existing(&args.store, options.clone())?;
    let vertex_type = args.vertices.as_ref().map(|name| network.type_of(name)).transpose()?;
    let population = args.edges.as_ref().map(|name| network.population_of(name)).transpose()?;
    let (from, to) = match population {
        Some(population) => ends(args, &network, population)?,
        None => (None, None),
    };
    let wanted = EdgeSelection {
        from: from.as_ref().map(|found| &*found.ids),
        to: to.as_ref().map(|found| &*found.ids),
        condition: condition.as_ref(),
    };
    let format = args.out.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let is_sonata = matches!(format, "h5" | "hdf5");
    if is_sonata && wanted.from.is_none() && wanted.to.is_none() && condition.is_none() {
        let (populations, types) = parts(&network, vertex_type, population);
        let bytes = sonata_bytes(&network, populations, types)?;
        if args.explain {
            return explain(args, bytes);
        }
        check_room(&args.out, bytes)?;
    } else if args.explain {
        return Err(Failure::Usage("--explain is for SONATA: OUT.h5".into()));
    }
    let tally = if is_sonata {
        sonata(args, &network, vertex_type, population, wanted)?
    } else {
        table(args, &network, &options.control, vertex_type, population, wanted)?
    };
    let ExportTally { edges, vertices, left_out } = tally;
    let path = shown_path(&args.out);
    if args.json {
        let bytes = OpenedStore::new(&args.out, &Options::default())?.store.size();
        print_json(&json!({
            "schema": "thalweg.graph-export/1", "path": path, "bytes_stored": bytes,
            "edges": edges, "vertices": vertices, "bytes": bytes, "left_out": left_out,
        }))?;
    } else {
        left_out.iter().for_each(|what| complain(&format!("{path}: left out: {what}")));
        let [edges, vertices] = [counted(edges, "edge"), counted(vertices, "vertex")];
        let took_s = started.elapsed().as_secs_f64();
        say_done(&format!("exported {edges} and {vertices}"), &args.out, took_s);
    }
    let mut is_missing = false;
    for (found, asked) in [(&from, &args.between), (&to, &args.and)] {
        if let (Some(found), Some(asked)) = (found, asked) {
            is_missing |= found.complain_of_missing(&args.store, asked);
        }
    }
    ended(is_missing)
}

/// The populations and types of a SONATA file.
fn parts(
    network: &Network,
    vertex_type: Option<usize>,
    population: Option<usize>,
) -> (Range<usize>, Range<usize>) {
    let is_all = vertex_type.is_none() && population.is_none();
    let all = |one: Option<usize>, count: usize| {
        if is_all { 0..count } else { one.map_or(0..0, |one| one..one + 1) }
    };
    (all(population, network.populations().len()), all(vertex_type, network.types().len()))
}

fn explain(args: &GraphExportArgs, bytes: u64) -> VerbResult {
    let path = shown_path(&args.out);
    if args.json {
        return print_json(&json!({
            "schema": "thalweg.graph-export-plan/1", "path": path, "bytes_predicted": bytes,
        }));
    }
    let mut out = output();
    writeln!(out, "{path}: about {}", decimal_bytes(bytes as f64))?;
    Ok(out.flush()?)
}

/// A prediction may be too large by this factor.
const PREDICTED_TOO_LARGE: u64 = 2;

/// Refuses to begin what the file system has no room for.
fn check_room(path: &Path, bytes: u64) -> VerbResult {
    if url(path).is_some() {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Whether the folder can be written shows when the file is made.
    let Ok(found) = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))) else { return Ok(()) };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if bytes / PREDICTED_TOO_LARGE <= free {
        return Ok(());
    }
    let [bytes, free] = [bytes, free].map(|bytes| decimal_bytes(bytes as f64));
    Err(Failure::Said(format!(
        "{}: it needs about {bytes}, and its file system has {free} left; --edges and --between \
         write a part, and .parquet takes less",
        shown_path(path)
    )))
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
        Self(
            std::io::stderr()
                .is_terminal()
                .then(|| crate::progress::bar(total.saturating_mul(ROW_BYTES))),
        )
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

/// What a table holds.
#[derive(Clone, Copy)]
enum TablePart {
    /// The vertices of a type.
    Vertices(usize),
    /// The edges of a population.
    Edges(usize),
}

impl TablePart {
    fn schema(self, network: &Network) -> SchemaRef {
        match self {
            Self::Vertices(vertex_type) => network.vertex_schema(vertex_type),
            Self::Edges(population) => network.edge_schema(population),
        }
    }

    /// The rows of the network, before any are left out.
    fn total(self, network: &Network) -> u64 {
        match self {
            Self::Vertices(vertex_type) => network.vertex_count(vertex_type),
            Self::Edges(population) => network.edge_count(population),
        }
    }

    /// Passes the wanted rows to `f`.
    fn show(
        self,
        network: &Network,
        wanted: EdgeSelection<'_>,
        f: &mut dyn FnMut(&RecordBatch) -> thalweg::Result<()>,
    ) -> thalweg::Result<()> {
        match self {
            Self::Vertices(vertex_type) => network.vertex_rows(vertex_type, wanted.condition, f),
            Self::Edges(population) => network.edges(population, wanted, f),
        }
    }

    fn tally(self, rows: u64) -> ExportTally {
        match self {
            Self::Vertices(_) => ExportTally { vertices: rows, ..ExportTally::default() },
            Self::Edges(_) => ExportTally { edges: rows, ..ExportTally::default() },
        }
    }
}

/// Writes a table.
fn table(
    args: &GraphExportArgs,
    network: &Network,
    control: &Control,
    vertex_type: Option<usize>,
    population: Option<usize>,
    wanted: EdgeSelection<'_>,
) -> Result<ExportTally, Failure> {
    let refused = |why: &str| Failure::Usage(format!("{}: {why}", urls::shown_path(&args.out)));
    let ends = "the name must end in .arrow, .parquet, .csv or .tsv, or .h5 for SONATA";
    let out = TableOut::by_name(&args.out).filter(|out| !out.is_npy());
    let out = out.ok_or_else(|| refused(ends))?;
    let part =
        vertex_type.map(TablePart::Vertices).or(population.map(TablePart::Edges)).ok_or_else(
            || refused("say which, with --edges or --vertices; .h5 holds all of a network"),
        )?;
    let mut table = TableSink::create(out, &part.schema(network))?;
    let progress = RowsProgress::of(part.total(network));
    let mut rows = 0;
    let mut failure = CallbackFailure::default();
    let shown = part.show(network, wanted, &mut |batch| {
        rows += batch.num_rows() as u64;
        progress.add(batch.num_rows() as u64);
        failure.keep(table.push_long(batch, control))
    });
    failure.or(shown.map_err(Failure::of_argument))?;
    table.finish()?;
    Ok(part.tally(rows))
}

/// The sources and the targets to which --between and --and restrict edges.
type EndIds = (Option<FoundVertices>, Option<FoundVertices>);

fn ends(args: &GraphExportArgs, network: &Network, population: usize) -> Result<EndIds, Failure> {
    let edges = &network.populations()[population].population;
    let ids_of =
        |text: &Option<String>, vertex_type: &str| -> Result<Option<FoundVertices>, Failure> {
            let Some(text) = text else { return Ok(None) };
            let chosen = vertices::parse(network, text, args.open.memory())?;
            if network.types()[chosen.vertex_type].name != vertex_type {
                let Population { name, source, target, .. } = edges;
                return Err(Failure::Usage(format!(
                    "{text:?}: {name:?} goes from {source} to {target}"
                )));
            }
            Ok(chosen.ids.map(|ids| ids.find(network, chosen.vertex_type)).transpose()?)
        };
    Ok((ids_of(&args.between, &edges.source)?, ids_of(&args.and, &edges.target)?))
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
    let (populations, types) = parts(network, vertex_type, population);
    let edges = populations.clone().map(|population| network.edge_count(population));
    let vertices = types.clone().map(|vertex_type| network.vertex_count(vertex_type));
    // Edges are written, and then indexed.
    let rows = edges.map(|count| count.saturating_mul(2)).chain(vertices);
    let progress = RowsProgress::of(rows.fold(0, u64::saturating_add));
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
