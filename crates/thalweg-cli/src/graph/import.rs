//! `thalweg graph import`: reads a file into a network.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg::graph::{
    Imported, Input, InputOptions, Network, NetworkOptions, PopulationEntry, Writer, input,
};
use thalweg::reads;
use thalweg::store::FileStore;
use thalweg_io::urls;

use super::edge_list::{self, EdgeListArgs, ListFormat};
use super::neighbors::digest;
use super::open::{self, CodingChoice, OpenArgs};
use crate::common::{Failure, MEASURING, VerbResult, complain, counted, print_json, shown_path};
use crate::done::say_done;
use crate::progress::bar;
use crate::timing::{process_cpu, with_build};

/// Import the vertices and edges of a file into a store, which is made if there is none
///
/// Files are neuroglial and vascular connectivity in HDF5, SONATA edges and nodes, and lists of
/// edges in .csv, .tsv or .parquet. In a list, the columns source and target (or the first two)
/// have ids, and the others are attributes. Either all of a file is imported or, after an error,
/// nothing of it. An import that was stopped continues when it is called again with the same file:
/// the populations that it had read are kept, and are invisible until it is complete.
///
/// An edge that is there already is not added again, but two vertices of SONATA may have several
/// edges: importing such a file twice doubles its edges, and standard error says so.
///
/// Example: thalweg graph import neuroglial.h5 network
///
/// Example: thalweg graph import pairs.csv network --from-type Neuron --to-type Neuron
#[derive(Debug, clap::Args)]
pub(super) struct GraphImportArgs {
    /// The file
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The store: a folder
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Only edges of the first N vertices that edges leave from
    #[arg(long, value_name = "N", visible_alias = "max-sources")]
    max_astrocytes: Option<u64>,
    /// Start from the beginning, even if an earlier import of this file was stopped
    #[arg(long)]
    anew: bool,
    /// Seconds between saves of what was read, from which a stopped import can continue
    #[arg(long, value_name = "SECONDS", default_value_t = 1, help_heading = MEASURING)]
    keep_every: u64,
    /// How ids are stored
    #[arg(long, value_enum, default_value_t)]
    ids: CodingChoice,
    /// Print a JSON line about the import
    #[arg(long)]
    json: bool,
    /// With --json: the SHA-256 of all neighbours' ids, population after population, by the
    /// vertices that edges leave
    #[arg(long, help_heading = MEASURING, requires = "json")]
    digest: bool,
    #[command(flatten)]
    list: EdgeListArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// Bytes of an edge in most files: the progress bar counts bytes.
const EDGE_BYTES: u64 = 8;

pub(super) fn run(args: &GraphImportArgs) -> VerbResult {
    let began = Instant::now();
    let options = args.open.options();
    let input = open_input(args, &options)?;
    // Opened after the input: a file that cannot be opened makes no store.
    open::change_or_make(&args.store, options.clone(), |writer| {
        import_and_report(args, writer, input, began, &options)
    })
}

fn import_and_report(
    args: &GraphImportArgs,
    writer: &mut Writer,
    input: Input,
    began: Instant,
    options: &NetworkOptions,
) -> VerbResult {
    writer.set_coding(args.ids.into());
    writer.set_checkpoint_interval(Duration::from_secs(args.keep_every));
    if args.anew {
        writer.forget_import()?;
    }
    let mut left_out = input.left_out.clone();
    let lost = input.lost.clone();
    let added_to = added_to(writer.network(), &input);
    let report = import(writer, input)?;
    left_out.extend(lost.iter().flat_map(|values| values.words()));
    let seconds = began.elapsed().as_secs_f64();
    let cpu_s = process_cpu().as_secs_f64();
    if args.json {
        let digest = args.digest.then(|| digest::of_network(writer.network())).transpose()?;
        let line = json!({
            "workload": "thalweg-graph-import",
            "open_to_last_s": seconds,
            "cpu_s": cpu_s,
            "links": report.read,
            "edges": report.edges,
            "vertices": report.vertices,
            "populations_resumed": report.resumed,
            "bytes_decoded": size_of::<u64>() as u64 * report.read,
            "bytes_stored": writer.network().storage().bytes,
            "threads": options.budget.threads,
            "digest": digest,
            "left_out": left_out,
            "added_to": added_to
                .iter()
                .map(|(name, edges)| json!({ "population": name, "edges_before": edges }))
                .collect::<Vec<_>>(),
            "stages": {},
        });
        print_json(&with_build(line, [shown_path(&args.store)]))?;
    } else {
        let path = urls::shown_path(&args.input);
        left_out.iter().for_each(|what| complain(&format!("{path}: left out: {what}")));
        for (name, edges) in &added_to {
            complain(&format!(
                "{path}: {name} had {edges} edges, and all that were read are added to them: \
                 those of an earlier import of this file are there twice"
            ));
        }
        say_done(&in_words(&report), &args.store, seconds);
    }
    Ok(())
}

/// The populations of the input that have edges already, and may have several between the same
/// vertices, and how many they have.
fn added_to(network: &Network, input: &Input) -> Vec<(String, u64)> {
    let edges_before = |name: &str| {
        let is_known = |known: &PopulationEntry| known.population.name == name;
        let number = network.populations().iter().position(is_known)?;
        Some(network.edge_count(number)).filter(|edges| *edges > 0)
    };
    let populations = input.edges.iter().map(|edges| edges.population());
    populations
        .filter(|population| population.is_multi)
        .filter_map(|population| Some((population.name.clone(), edges_before(&population.name)?)))
        .collect()
}

/// Opens the file to import.
fn open_input(args: &GraphImportArgs, options: &NetworkOptions) -> Result<Input, Failure> {
    let read = reads::Options {
        budget: options.budget,
        control: options.control.clone(),
        ..reads::Options::default()
    };
    let chosen = InputOptions { read, sources: 0..args.max_astrocytes.unwrap_or(u64::MAX) };
    let mut input = match ListFormat::of(&args.input) {
        Some(format) => edge_list::open(&args.input, format, &chosen, &args.list)?,
        None => {
            check_is_hdf5(&args.input)?;
            args.list.refuse(&args.input)?;
            input::open(&args.input, &chosen)?
        }
    };
    // An import continues only if it is called with these options again.
    let how = format!("{:?} {:?} {:?}", chosen.sources, args.list, args.ids);
    input.origin = Some(input::ImportOrigin::of(&args.input, how)?);
    Ok(input)
}

/// Refuses a file that is neither HDF5 nor named as a list of edges.
fn check_is_hdf5(path: &Path) -> VerbResult {
    if !path.is_file() || thalweg::hdf5::is_hdf5(&FileStore::open(path)?)? {
        return Ok(());
    }
    Err(Failure::Failed(thalweg::Error::Unsupported {
        file: urls::shown_path(path).into(),
        what: "an import from a file that is not HDF5".into(),
        advice: "the name of a list of edges ends in .csv, .tsv or .parquet".into(),
    }))
}

/// Imports the input, with a progress bar on a terminal.
fn import(writer: &mut Writer, input: Input) -> thalweg::Result<Imported> {
    let total: u64 = input.edges.iter().filter_map(|edges| edges.total()).sum();
    let bar = std::io::stderr().is_terminal().then(|| bar(total * EDGE_BYTES));
    let done = writer.import(input, &mut |edges| {
        if let Some(bar) = &bar {
            bar.set_position(edges * EDGE_BYTES);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    done
}

fn in_words(report: &Imported) -> String {
    let resumed = match report.resumed {
        0 => String::new(),
        count => format!(
            ", after {} that an import which was stopped had read",
            counted(count, "population")
        ),
    };
    format!(
        "{} and {} are new, of {} read{resumed}",
        counted(report.edges, "edge"),
        counted(report.vertices, "vertex"),
        counted(report.read, "edge"),
    )
}
