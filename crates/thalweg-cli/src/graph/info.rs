//! `thalweg graph info`: what is in a network.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use super::open::OpenArgs;
use crate::common::{Outcome, output};

/// Show what is in a store: types of vertices, populations of edges, how many there are, and what
/// they take
///
/// Example: thalweg graph info network
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &Args) -> Outcome {
    let network = args.open.read(&args.store)?;
    let storage = network.storage();
    let mut out = output();
    let fields = |schema: &arrow_schema::SchemaRef| -> Vec<_> {
        schema
            .fields()
            .iter()
            .map(|f| json!({ "name": f.name(), "type": f.data_type().to_string() }))
            .collect()
    };
    if args.json {
        let types = network.types().iter().enumerate().map(|(number, vertex_type)| {
            json!({ "name": vertex_type.name, "vertices": network.vertex_count(number), "attributes": fields(&vertex_type.attributes) })
        });
        let types: Vec<_> = types.collect();
        let populations: Vec<_> = network
            .populations()
            .iter()
            .enumerate()
            .map(|(number, edges)| {
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
            })
            .collect();
        let report = json!({
            "store": args.store,
            "types": types,
            "populations": populations,
            "segments": storage.segments,
            "bytes": storage.bytes,
            "changes_in_log": storage.changes_in_log,
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(
            out,
            "{}: {} segments of {:.1} MB in all, {} changes in the log",
            args.store.display(),
            storage.segments,
            storage.bytes as f64 / 1e6,
            storage.changes_in_log,
        )?;
        for (number, vertex_type) in network.types().iter().enumerate() {
            let names: Vec<&str> =
                vertex_type.attributes.fields().iter().map(|f| f.name().as_str()).collect();
            let with = if names.is_empty() {
                String::new()
            } else {
                format!(", with {}", names.join(", "))
            };
            writeln!(
                out,
                "  vertices  {}: {}{with}",
                vertex_type.name,
                network.vertex_count(number)
            )?;
        }
        for (number, edges) in network.populations().iter().enumerate() {
            let p = &edges.population;
            let names: Vec<&str> =
                p.attributes.fields().iter().map(|f| f.name().as_str()).collect();
            let with = if names.is_empty() {
                String::new()
            } else {
                format!(", with {}", names.join(", "))
            };
            let arrow = if p.is_directed { "->" } else { "--" };
            writeln!(
                out,
                "  edges     {}: {} ({} {arrow} {}){with}",
                p.name,
                network.edge_count(number),
                p.source,
                p.target
            )?;
        }
    }
    out.flush()?;
    Ok(())
}
