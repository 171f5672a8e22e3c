//! `thalweg graph info`: what is in a network.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use serde_json::{Value, json};
use thalweg::graph::{Network, Population, PopulationEntry, VertexType};
use thalweg::text::escaped;

use super::open::OpenArgs;
use crate::common::{VerbResult, counted, output, print_json, shown_path};

/// Show what is in a store: types of vertices, populations of edges, their counts, and the bytes on
/// disk
///
/// Example: thalweg graph info network
#[derive(Debug, clap::Args)]
pub(super) struct GraphInfoArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphInfoArgs) -> VerbResult {
    let network = args.open.read(&args.store)?;
    if args.json {
        print_json(&as_json(&args.store, &network))
    } else {
        print_in_words(&args.store, &network)
    }
}

fn as_json(store: &Path, network: &Network) -> Value {
    let storage = network.storage();
    let fields = |schema: &SchemaRef| -> Vec<Value> {
        schema
            .fields()
            .iter()
            .map(|f| json!({ "name": f.name(), "type": f.data_type().to_string() }))
            .collect()
    };
    let vertices = |(number, vertex_type): (usize, &VertexType)| {
        json!({
            "name": vertex_type.name, "vertices": network.vertex_count(number),
            "attributes": fields(&vertex_type.attributes),
        })
    };
    let edges = |(number, edges): (usize, &PopulationEntry)| {
        let population = &edges.population;
        json!({
            "name": population.name,
            "from": population.source,
            "to": population.target,
            "directed": population.is_directed,
            "several_edges": population.is_multi,
            "edges": network.edge_count(number),
            "attributes": fields(&population.attributes),
        })
    };
    json!({
        "schema": "thalweg.graph-info/1",
        "store": thalweg_io::urls::shown_path(store),
        "path": thalweg_io::urls::shown_path(store),
        "bytes_stored": storage.bytes,
        "types": network.types().iter().enumerate().map(vertices).collect::<Vec<_>>(),
        "populations": network.populations().iter().enumerate().map(edges).collect::<Vec<_>>(),
        "segments": storage.segments,
        "bytes": storage.bytes,
        "changes_in_log": storage.changes_in_log,
    })
}

/// The names of attributes, as in `, with weight, delay`.
fn with_attributes(attributes: &SchemaRef) -> String {
    let names: Vec<&str> = attributes.fields().iter().map(|f| f.name().as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", with {}", escaped(&names.join(", "))) }
}

fn print_in_words(store: &Path, network: &Network) -> VerbResult {
    let storage = network.storage();
    let mut out = output();
    writeln!(
        out,
        "{}: {} of {:.1} MB in all, {} in the log",
        shown_path(store),
        counted(storage.segments as u64, "segment"),
        storage.bytes as f64 / 1e6,
        counted(storage.changes_in_log as u64, "change"),
    )?;
    for (number, vertex_type) in network.types().iter().enumerate() {
        let name = &vertex_type.name;
        let with = with_attributes(&vertex_type.attributes);
        writeln!(out, "  vertices  {}: {}{with}", escaped(name), network.vertex_count(number))?;
    }
    for (number, edges) in network.populations().iter().enumerate() {
        let Population { name, source, target, .. } = &edges.population;
        let arrow = if edges.population.is_directed { "->" } else { "--" };
        let with = with_attributes(&edges.population.attributes);
        let count = network.edge_count(number);
        let [name, source, target] = [name, source, target].map(|name| escaped(name));
        writeln!(out, "  edges     {name}: {count} ({source} {arrow} {target}){with}")?;
    }
    out.flush()?;
    Ok(())
}
