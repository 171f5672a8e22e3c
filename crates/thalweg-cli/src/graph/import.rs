//! `thalweg graph import`: a file into a network.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg::graph::{Writer, input};
use thalweg::reads;

use super::edge_list::{self, EdgeListArgs, ListFormat};
use super::open::{CodingChoice, OpenArgs};
use crate::common::{Failure, MEASURING, Outcome, output};
use crate::progress::bar;

/// Bring the vertices and edges of a file into a store, which is made if there is none
///
/// Files are neuroglial and vascular connectivity in HDF5, SONATA edges and nodes, and lists of
/// edges in .csv, .tsv or .parquet, where the columns source and target (or the first two) have
/// ids, and others are attributes. All of a file is there afterwards or, if something goes wrong,
/// none of it. An import that is stopped goes on when it is called again with the same file:
/// populations that it had read are kept, out of sight.
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
    /// Begin anew, whatever an import of this file that was stopped has kept
    #[arg(long)]
    anew: bool,
    /// How long to work, in seconds, before what was read is kept for an import that goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 1, help_heading = MEASURING)]
    keep_every: u64,
    /// How ids are kept
    #[arg(long, value_enum, default_value_t)]
    ids: CodingChoice,
    /// Print a JSON line about it
    #[arg(long)]
    json: bool,
    /// With --json: the SHA-256 of all neighbours' ids, population after population, by the
    /// vertices that edges leave
    #[arg(long, help_heading = MEASURING, requires = "json")]
    digest: bool,
    /// HDF5: take the file for harmless; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    list: EdgeListArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// Bytes of an edge in most files, for the progress bar.
const EDGE: u64 = 8;

pub(super) fn run(args: &GraphImportArgs) -> Outcome {
    let began = Instant::now();
    let options = args.open.options();
    let read = reads::Options {
        budget: options.budget,
        control: options.control.clone(),
        ..reads::Options::default()
    };
    if !args.trusted {
        crate::arrays::inspect_first(&read);
    }
    let chosen = input::InputOptions { read, sources: 0..args.max_astrocytes.unwrap_or(u64::MAX) };
    let mut found = match ListFormat::of(&args.input) {
        Some(form) => edge_list::open(&args.input, form, &chosen, &args.list)?,
        None => open(&args.input, &chosen)?,
    };
    let how = format!("{:?} {:?} {:?}", chosen.sources, args.list, args.ids);
    found.origin = Some(input::Origin::of(&args.input, how)?);
    // A file that cannot be opened makes no store.
    let mut writer = Writer::open(&args.store, options.clone())?;
    writer.set_coding(args.ids.into());
    writer.set_keep_every(Duration::from_secs(args.keep_every));
    if args.anew {
        writer.forget_import()?;
    }
    let total: u64 = found.edges.iter().filter_map(|edges| edges.total()).sum();
    let bar = std::io::IsTerminal::is_terminal(&std::io::stderr()).then(|| bar(total * EDGE));
    let done = writer.import(found, &mut |edges| {
        if let Some(bar) = &bar {
            bar.set_position(edges * EDGE);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let done = done?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu_s = super::neighbors::cpu_s();
    let bytes = writer.network().storage().bytes;
    let mut out = output();
    if args.json {
        let report = json!({
            "workload": "thalweg-graph-import",
            "open_to_last_s": seconds,
            "cpu_s": cpu_s,
            "links": done.read,
            "edges": done.edges,
            "vertices": done.vertices,
            "populations_resumed": done.resumed,
            "bytes_decoded": 8 * done.read,
            "bytes_stored": bytes,
            "threads": options.budget.threads,
            "digest": args
                .digest
                .then(|| super::neighbors::digest_of_all(writer.network()))
                .transpose()?,
            "stages": {},
        });
        writeln!(out, "{}", crate::timing::with_build(report))?;
    } else {
        if done.resumed > 0 {
            writeln!(
                out,
                "went on after {} populations that an import which was stopped had read",
                done.resumed
            )?;
        }
        writeln!(
            out,
            "{} edges and {} vertices are new, of {} edges read, in {seconds:.2} s; \
             the store takes {:.1} MB",
            done.edges,
            done.vertices,
            done.read,
            bytes as f64 / 1e6,
        )?;
    }
    out.flush()?;
    Ok(())
}

fn open(
    path: &std::path::Path,
    options: &input::InputOptions,
) -> Result<thalweg::graph::Input, Failure> {
    Ok(input::open(path, options)?)
}
