//! `thalweg graph add`: vertices and edges, one change of the network.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::Schema;
use serde_json::json;
use thalweg::graph::{Change, Committed, Population, Writer};

use super::open::OpenArgs;
use super::vertices::{parse_ids, parse_pairs};
use crate::common::{Failure, Outcome, output};

/// Add vertices and edges to a store, all of them or none; they are there for good when it returns
///
/// Vertices at the ends of edges are made where they are missing. An edge that is there already is
/// left as it is, unless its population knows several between two vertices.
///
/// Example: thalweg graph add network --vertices Neuron:1000,1001 --edges
/// Astrocyte-Neuron:0-1000,0-1001
///
/// Example: thalweg graph add network --edges gap:1-2,2-3 --between Neuron,Neuron
#[derive(Debug, clap::Args)]
pub(super) struct GraphAddArgs {
    /// The store, which is made if there is none
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Vertices of a type: TYPE:0-9,17 or TYPE:FILE
    #[arg(long, value_name = "TYPE:IDS", required_unless_present = "edges")]
    vertices: Vec<String>,
    /// Edges of a population: POPULATION:1-2,3-4 or POPULATION:FILE, a file with two ids a line
    #[arg(long, value_name = "POPULATION:PAIRS")]
    edges: Vec<String>,
    /// The types that a new population connects
    #[arg(long, value_name = "FROM,TO", requires = "edges")]
    between: Option<String>,
    /// Edges of a new population can be followed in their direction only, unless asked for
    /// otherwise
    #[arg(long, requires = "between")]
    directed: bool,
    /// There may be several edges of a new population between two vertices
    #[arg(long, requires = "between")]
    several: bool,
    /// Print a JSON line about it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphAddArgs) -> Outcome {
    let mut writer = Writer::open(&args.store, args.open.options())?;
    let none = Arc::new(Schema::empty());
    let mut changes = Vec::new();
    for text in &args.vertices {
        let (name, ids) = split_form(text, "TYPE:IDS")?;
        let ids = parse_ids(ids)?;
        let vertex_type = match writer.network().type_of(name) {
            Ok(number) => number,
            Err(_) => writer.vertex_type(name, &none)?,
        };
        changes.push(Change::AddVertices { vertex_type, ids, attributes: None });
    }
    for text in &args.edges {
        let (name, pairs) = split_form(text, "POPULATION:PAIRS")?;
        let edges = parse_pairs(pairs)?;
        let population = match (&args.between, writer.network().population_of(name)) {
            (None, known) => known?,
            (Some(between), _) => {
                let Some((source, target)) = between.split_once(',') else {
                    return Err(Failure::Usage(format!(
                        "--between {between:?} is no pair of types, as in Neuron,Synapse"
                    )));
                };
                writer.population(&Population {
                    name: name.into(),
                    source: source.into(),
                    target: target.into(),
                    is_directed: args.directed,
                    is_multi: args.several,
                    attributes: none.clone(),
                })?
            }
        };
        changes.push(Change::AddEdges { population, edges, attributes: None });
    }
    let done = writer.commit(changes).map_err(Failure::of_argument)?;
    print_changes(&done, args.json)?;
    Ok(writer.finish()?)
}

pub(super) fn split_form<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    text.rsplit_once(':')
        .ok_or_else(|| Failure::Usage(format!("{text:?} is not of the form {form}")))
}

/// Prints what a change has added and removed.
pub(super) fn print_changes(done: &Committed, as_json: bool) -> Outcome {
    let Committed { vertices_added, vertices_removed, edges_added, edges_removed } = done;
    let mut out = output();
    if as_json {
        let report = json!({
            "vertices_added": vertices_added,
            "vertices_removed": vertices_removed,
            "edges_added": edges_added,
            "edges_removed": edges_removed,
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(
            out,
            "{vertices_added} vertices and {edges_added} edges are new, \
             {vertices_removed} vertices and {edges_removed} edges are gone"
        )?;
    }
    out.flush()?;
    Ok(())
}
