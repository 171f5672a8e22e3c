//! `thalweg graph insert`: what adding edges takes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use thalweg::graph::{Adjacency, Change, Side};

use super::open::OpenArgs;
use crate::common::{MEASURING, Outcome, output};

/// For measurements: add new synapses to astrocytes, each durable before the next, or a batch at a
/// time
///
/// The edges are those that the other stores are given (peers/common/graph_peer.py).
///
/// Example: thalweg graph insert network --edges 1000
#[derive(Debug, clap::Args)]
pub(super) struct GraphInsertArgs {
    /// The store, which has a population Astrocyte-Synapse
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// How many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    edges: u64,
    /// How many at a time
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MEASURING)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// After each commit, print how many edges are durable
    #[arg(long, conflicts_with = "json", help_heading = MEASURING)]
    tell: bool,
    /// Print a JSON line about it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

/// Where no synapse is: they are inserted from here on.
const NEW: u64 = 1 << 40;
/// Knuth's multiplicative hash: astrocytes in an order without a pattern.
const SCATTER: u64 = 2_654_435_761;

pub(super) fn run(args: &GraphInsertArgs) -> Outcome {
    let mut writer = args.open.write(&args.store)?;
    let population = writer.network().population_of("Astrocyte-Synapse")?;
    let astrocytes = writer.network().vertex_count(writer.network().type_of("Astrocyte")?).max(1);
    let mut times = Vec::new();
    let (began, cpu) = (Instant::now(), super::neighbors::cpu_s());
    for first in (0..args.edges).step_by(args.batch as usize) {
        let last = (first + args.batch).min(args.edges);
        let edges: Vec<(u64, u64)> =
            (first..last).map(|i| (i.wrapping_mul(SCATTER) % astrocytes, NEW + i)).collect();
        let asked = Instant::now();
        writer.commit(vec![Change::AddEdges { population, edges, attributes: None }])?;
        if args.tell {
            let mut out = output();
            writeln!(out, "durable\t{last}")?;
            out.flush()?;
        }
        times.push(asked.elapsed().as_secs_f64() / (last - first) as f64);
    }
    writer.finish()?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), super::neighbors::cpu_s() - cpu);
    times.sort_by(f64::total_cmp);
    let quantile = |q: f64| times.get((times.len() as f64 * q) as usize).or(times.last()).copied();
    let mut out = output();
    if args.json {
        let touched: BTreeSet<u64> =
            (0..args.edges).map(|i| i.wrapping_mul(SCATTER) % astrocytes).collect();
        let touched: Vec<u64> = touched.into_iter().collect();
        let ways = [Adjacency { population, side: Side::Out }];
        let report = json!({
            "workload": "thalweg-graph-insert",
            "open_to_last_s": seconds,
            "cpu_s": cpu,
            "edges": args.edges,
            "batch": args.batch,
            "seconds_an_insert": { "p50": quantile(0.5), "p99": quantile(0.99) },
            "digest": super::neighbors::digest_of(writer.network(), &ways, &touched)?,
            "stages": {},
            "bytes_stored": writer.network().storage().bytes,
        });
        writeln!(out, "{}", crate::timing::with_build(report))?;
    } else {
        writeln!(
            out,
            "{} edges in {seconds:.3} s ({:.0} a second)",
            args.edges,
            args.edges as f64 / seconds
        )?;
    }
    out.flush()?;
    Ok(())
}
