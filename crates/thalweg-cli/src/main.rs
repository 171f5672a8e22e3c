//! The `thalweg` command: one file per verb.

mod common;
mod digest;
mod read;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Reads, converts, checks and measures scientific files.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Read(read::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.verb {
        Verb::Read(args) => read::run(&args),
    };
    common::exit(outcome)
}
