//! `thalweg graph add`: adds vertices and edges, in one change of the network.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use thalweg::graph::{Change, Committed, Population, Writer};

use super::open::{self, OpenArgs};
use super::settings::{self, Setting};
use super::vertices::{parse_ids, parse_pairs};
use crate::common::{Failure, VerbResult, counted, print_json, shown_path};
use crate::done::say_done;

/// Add vertices and edges to a store, all of them or none; they are durable when it returns
///
/// Missing vertices at the ends of edges are added too. An edge that exists already is left as it
/// is, unless its population may have several edges between two vertices.
///
/// --set gives all of these vertices, or all of the new edges, an attribute. A vertex that exists
/// keeps its other attributes. The first vertices of a type, or a new population, may have any
/// attributes: numbers, true or false, and text.
///
/// Example: thalweg graph add network --vertices Neuron:1000,1001 --edges
/// Astrocyte-Neuron:0-1000,0-1001
///
/// Example: thalweg graph add network --edges gap:1-2,2-3 --between Neuron,Neuron
///
/// Example: thalweg graph add network --vertices Neuron:1000,1001 --set layer=4 --set mtype=L4_PC
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
    /// Give the vertices, or the new edges, this value of an attribute
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Setting>,
    /// The types that a new population connects
    #[arg(long, value_name = "FROM,TO", requires = "edges")]
    between: Option<String>,
    /// Edges of a new population can be followed in their direction only, unless a query says
    /// otherwise
    #[arg(long, requires = "between")]
    directed: bool,
    /// A new population may have several edges between two vertices
    #[arg(long, requires = "between")]
    several: bool,
    /// Print a JSON line about the change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphAddArgs) -> VerbResult {
    let options = args.open.options();
    let most_bytes = args.open.memory();
    open::change_or_make(&args.store, options, |writer| add(args, writer, most_bytes))
}

fn add(args: &GraphAddArgs, writer: &mut Writer, most_bytes: usize) -> VerbResult {
    let started = Instant::now();
    if !args.set.is_empty() && !args.vertices.is_empty() && !args.edges.is_empty() {
        let what =
            "--set is for the attributes of vertices or of edges: add them one after another";
        return Err(Failure::Usage(what.into()));
    }
    // All of the line is understood before a type is defined, which stays.
    let mut vertices = Vec::new();
    for text in &args.vertices {
        let (name, ids) = split_form(text, "TYPE:IDS")?;
        vertices.push((name, parse_ids(ids, most_bytes)?.expand(most_bytes)?));
    }
    let mut edges = Vec::new();
    for text in &args.edges {
        let (name, pairs) = split_form(text, "POPULATION:PAIRS")?;
        edges.push((name, parse_pairs(pairs, most_bytes)?));
    }
    let mut changes = Vec::new();
    for (name, ids) in vertices {
        let vertex_type = vertex_type(args, writer, name)?;
        changes.push(if args.set.is_empty() {
            Change::AddVertices { vertex_type, ids, attributes: None }
        } else {
            let attributes = settings::vertex_rows(writer.network(), vertex_type, &ids, &args.set)?;
            Change::SetVertices { vertex_type, ids, attributes }
        });
    }
    for (name, edges) in edges {
        let population = match &args.between {
            Some(between) => new_population(args, writer, name, between)?,
            None => writer.network().population_of(name)?,
        };
        let schema = &writer.network().populations()[population].population.attributes;
        let attributes = (!args.set.is_empty())
            .then(|| settings::rows(schema, &args.set, None, edges.len()))
            .transpose()?;
        changes.push(Change::AddEdges { population, edges, attributes });
    }
    let committed = writer.commit(changes).map_err(Failure::of_argument)?;
    print_changes(&args.store, &committed, args.json, started)?;
    Ok(writer.finish()?)
}

/// The type with a name. One that is new, or has no attributes yet, gets those that are set.
fn vertex_type(args: &GraphAddArgs, writer: &mut Writer, name: &str) -> Result<usize, Failure> {
    if let Ok(number) = writer.network().type_of(name)
        && (args.set.is_empty() || !writer.network().types()[number].attributes.fields().is_empty())
    {
        return Ok(number);
    }
    Ok(writer.vertex_type(name, &settings::schema_of(&args.set))?)
}

/// Adds a population between two types, with the attributes that are set.
fn new_population(
    args: &GraphAddArgs,
    writer: &mut Writer,
    name: &str,
    between: &str,
) -> Result<usize, Failure> {
    let Some((source, target)) = between.split_once(',') else {
        return Err(Failure::Usage(format!(
            "--between {between:?} is no pair of types, as in Neuron,Synapse"
        )));
    };
    Ok(writer.population(&Population {
        name: name.into(),
        source: source.into(),
        target: target.into(),
        is_directed: args.directed,
        is_multi: args.several,
        attributes: settings::schema_of(&args.set),
    })?)
}

/// Splits `NAME:REST` at the last colon. `form` is for the message.
pub(super) fn split_form<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    text.rsplit_once(':')
        .ok_or_else(|| Failure::Usage(format!("{text:?} is not of the form {form}")))
}

/// Says what a change has added and removed.
pub(super) fn print_changes(
    store: &Path,
    committed: &Committed,
    as_json: bool,
    started: Instant,
) -> VerbResult {
    let Committed { vertices_added, vertices_removed, edges_added, edges_removed } = committed;
    if as_json {
        return print_json(&json!({
            "schema": "thalweg.graph-change/1",
            "path": shown_path(store),
            "vertices_added": vertices_added,
            "vertices_removed": vertices_removed,
            "edges_added": edges_added,
            "edges_removed": edges_removed,
        }));
    }
    let what = format!(
        "{} and {} are new, {} and {} are gone",
        counted(*vertices_added, "vertex"),
        counted(*edges_added, "edge"),
        counted(*vertices_removed, "vertex"),
        counted(*edges_removed, "edge"),
    );
    say_done(&what, store, started.elapsed().as_secs_f64());
    Ok(())
}
