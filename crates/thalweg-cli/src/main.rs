//! The `thalweg` command: one file per verb.

mod arrays;
mod bench;
mod cache;
mod callback;
mod chart;
mod check;
mod common;
mod compare;
mod convert;
mod digest;
mod doctor;
mod done;
mod evict;
mod explain;
mod fastq;
mod filter;
mod force;
mod graph;
mod id_list;
mod index;
mod info;
mod merge;
#[cfg(all(feature = "mount", target_os = "linux"))]
mod mount;
mod open;
mod options;
mod output_name;
mod plot;
mod prices;
mod printable;
mod probe;
mod progress;
mod read;
mod scan;
mod shell;
mod signals;
mod split;
mod synth;
mod table_sink;
mod terminal;
mod timing;
mod view;
mod write;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use thalweg_io::stdout_was_closed;

/// Reads, converts, checks and measures scientific files.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, propagate_version = true)]
#[command(arg_required_else_help = true, after_help = URLS)]
struct Cli {
    /// Do not say what was done
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Read(read::ReadVerbArgs),
    Convert(convert::ConvertArgs),
    Check(check::CheckArgs),
    Index(index::IndexArgs),
    Info(info::InfoArgs),
    Doctor(doctor::DoctorArgs),
    Scan(scan::ScanArgs),
    View(view::ViewArgs),
    Get(view::GetArgs),
    Filter(filter::FilterArgs),
    #[command(visible_alias = "cat")]
    Merge(merge::MergeArgs),
    #[command(visible_alias = "subset")]
    Split(split::SplitArgs),
    Plot(plot::PlotArgs),
    Cache(cache::CacheVerbArgs),
    #[cfg(all(feature = "mount", target_os = "linux"))]
    Mount(mount::MountArgs),
    Evict(evict::EvictArgs),
    Probe(probe::ProbeArgs),
    Synth(synth::SynthArgs),
    Graph(graph::GraphArgs),
    Bench(bench::BenchArgs),
    Compare(compare::CompareArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// The end of the help.
const URLS: &str = "\
Files and outputs may be at URLs: s3://bucket/key, gs://, az:// and https://. Keys and addresses
come from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL, GOOGLE_*, AZURE_*),
and AWS_SKIP_SIGNATURE=true reads public buckets.";

/// What `--version` says, of every verb.
const VERSION: &str = concat!("thalweg ", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    signals::outlive_large_writes();
    let matches = match options::with_outputs(Cli::command()).try_get_matches() {
        Ok(matches) => matches,
        // clap would call the program after the verb, as in "thalweg-bench".
        Err(text) if text.kind() == ErrorKind::DisplayVersion => {
            return common::exit(common::print_line(&VERSION), 0);
        }
        // Help is output; a mistake is told on standard error.
        Err(text) if !text.use_stderr() && stdout_was_closed() => {
            return common::exit(common::print_line(&text), 0);
        }
        Err(error) => error.exit(),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    options::note(&matches);
    done::note_quiet(cli.quiet);
    thalweg::open_urls();
    // Only `read` shares its work among the ranks of MPI.
    let alone = if matches!(cli.verb, Verb::Read(_)) { Ok(()) } else { common::alone() };
    let ready = alone
        .and_then(|()| options::check_schemes(&matches))
        .and_then(|()| options::check_streams(&matches));
    let outcome = ready.and_then(|()| match cli.verb {
        Verb::Read(args) => read::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Index(args) => index::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Scan(args) => scan::run(&args),
        Verb::View(args) => view::view(&args),
        Verb::Get(args) => view::get(&args),
        Verb::Filter(args) => filter::run(&args),
        Verb::Merge(args) => merge::run(&args),
        Verb::Split(args) => split::run(&args),
        Verb::Plot(args) => plot::run(&args),
        Verb::Cache(args) => cache::run(&args),
        #[cfg(all(feature = "mount", target_os = "linux"))]
        Verb::Mount(args) => mount::run(&args),
        Verb::Evict(args) => evict::run(&args),
        Verb::Probe(args) => probe::run(&args),
        Verb::Synth(args) => synth::run(&args),
        Verb::Graph(args) => graph::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Completions(args) => shell::completions(&args, Cli::command()),
        Verb::Man(args) => shell::man(&args, Cli::command()),
    });
    common::exit(outcome, signals::exit_code())
}
