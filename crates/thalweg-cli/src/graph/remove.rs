//! `thalweg graph remove`: removes vertices and edges, in one change of the network.

use std::path::PathBuf;
use std::time::Instant;

use thalweg::graph::Change;
use thalweg_io::urls;

use super::add::{print_changes, split_form};
use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, VerbResult, complain, ended};

/// Remove vertices (with all edges from and to them) and edges from a store, all of them or none
///
/// Vertices that are not there are named, and the exit code is 1, as it is if none of the edges is
/// there. What is there is removed all the same.
///
/// Example: thalweg graph remove network --vertices Neuron:17 --edges Astrocyte-Neuron:0-18,0-19
#[derive(Debug, clap::Args)]
pub(super) struct GraphRemoveArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Vertices: TYPE:0-9,17 or TYPE:FILE, or TYPE for all of them
    #[arg(long, value_name = "TYPE[:IDS]", required_unless_present = "edges")]
    vertices: Vec<String>,
    /// Edges: POPULATION:1-2,3-4 or POPULATION:FILE, or POPULATION for all of them
    #[arg(long, value_name = "POPULATION[:PAIRS]")]
    edges: Vec<String>,
    /// Print a JSON line about the change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphRemoveArgs) -> VerbResult {
    let started = Instant::now();
    let mut writer = args.open.write(&args.store)?;
    let mut changes = Vec::new();
    let mut is_missing = false;
    let mut names_edges = false;
    for text in &args.edges {
        changes.push(match writer.network().population_of(text) {
            Ok(population) => Change::ClearEdges { population },
            Err(_) => {
                let (name, pairs) = split_form(text, "POPULATION or POPULATION:PAIRS")?;
                let population = writer.network().population_of(name)?;
                names_edges = true;
                let edges = vertices::parse_pairs(pairs, args.open.memory())?;
                Change::RemoveEdges { population, edges }
            }
        });
    }
    for text in &args.vertices {
        let chosen = vertices::parse(writer.network(), text, args.open.memory())?;
        let vertex_type = chosen.vertex_type;
        changes.push(match chosen.ids {
            Some(ids) => {
                let found = ids.find(writer.network(), vertex_type)?;
                is_missing |= found.complain_of_missing(&args.store, text);
                Change::RemoveVertices { vertex_type, ids: found.ids }
            }
            None => Change::ClearVertices { vertex_type },
        });
    }
    let committed = writer.commit(changes).map_err(Failure::of_argument)?;
    print_changes(&args.store, &committed, args.json, started)?;
    writer.finish()?;
    if names_edges && committed.edges_removed == 0 {
        complain(&format!("{}: none of these edges is there", urls::shown_path(&args.store)));
        is_missing = true;
    }
    ended(is_missing)
}
