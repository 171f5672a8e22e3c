//! `thalweg graph`: networks of typed vertices and edges, kept in a store that changes and
//! survives.

mod add;
mod check;
mod compact;
mod degree;
mod edge_list;
mod export;
mod followed;
mod id_ranges;
mod import;
mod info;
mod insert;
mod neighbors;
mod open;
mod remove;
mod repair;
mod settings;
mod vertices;

use clap::Subcommand;

use crate::common::VerbResult;

/// Keep networks of neurons, glia, synapses or anything: import, ask for neighbours, change, check,
/// export
///
/// Example: thalweg graph import neuroglial.h5 network
///
/// Example: thalweg graph neighbors network --from Astrocyte:0-9 --to Synapse --digest
#[derive(Debug, clap::Args)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    verb: GraphVerb,
}

#[derive(Debug, Subcommand)]
enum GraphVerb {
    Import(import::GraphImportArgs),
    #[command(visible_alias = "neighbours")]
    Neighbors(neighbors::GraphNeighborsArgs),
    Info(info::GraphInfoArgs),
    Degree(degree::GraphDegreeArgs),
    Add(add::GraphAddArgs),
    Remove(remove::GraphRemoveArgs),
    Compact(compact::GraphCompactArgs),
    Check(check::GraphCheckArgs),
    Export(export::GraphExportArgs),
    Insert(insert::GraphInsertArgs),
}

pub(crate) fn run(args: &GraphArgs) -> VerbResult {
    match &args.verb {
        GraphVerb::Import(args) => import::run(args),
        GraphVerb::Neighbors(args) => neighbors::run(args),
        GraphVerb::Info(args) => info::run(args),
        GraphVerb::Degree(args) => degree::run(args),
        GraphVerb::Add(args) => add::run(args),
        GraphVerb::Remove(args) => remove::run(args),
        GraphVerb::Compact(args) => compact::run(args),
        GraphVerb::Check(args) => check::run(args),
        GraphVerb::Export(args) => export::run(args),
        GraphVerb::Insert(args) => insert::run(args),
    }
}
