//! `thalweg graph insert`: measures how long it takes to add edges.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use thalweg::graph::{Adjacency, Change, Side};

use super::neighbors::digest;
use super::open::{self, OpenArgs};
use crate::common::{MEASURING, VerbResult, counted, output, shown_path};
use crate::timing::{Started, with_build};

/// For measurements: add new synapses to astrocytes, each durable before the next, or a batch at a
/// time
///
/// The programs for other stores (peers/common/graph_peer.py) insert the same edges.
///
/// Example: thalweg graph insert network --edges 1000
#[derive(Debug, clap::Args)]
pub(super) struct GraphInsertArgs {
    /// The store, which has a population Astrocyte-Synapse
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// How many edges to add
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    edges: u64,
    /// How many edges to add in one commit
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MEASURING)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// After each commit, print how many edges are durable
    #[arg(long, conflicts_with = "json", help_heading = MEASURING)]
    tell: bool,
    /// Print a JSON line about the insertions
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

/// The id of the first new synapse: far above the ids of a real network.
const FIRST_NEW_SYNAPSE: u64 = 1 << 40;
/// The multiplier of Knuth's multiplicative hash (TAOCP, volume 3, section 6.4): it takes the
/// astrocytes in an order without a pattern.
const HASH_MULTIPLIER: u64 = 2_654_435_761;

pub(super) fn run(args: &GraphInsertArgs) -> VerbResult {
    let options = args.open.options();
    let mut writer = open::to_change(&args.store, options.clone())?;
    let population = writer.network().population_of("Astrocyte-Synapse")?;
    let astrocytes = writer.network().vertex_count(writer.network().type_of("Astrocyte")?).max(1);
    let mut seconds_per_edge = Vec::new();
    let started = Started::now();
    for first in (0..args.edges).step_by(args.batch as usize) {
        options.control.check()?;
        let last = (first + args.batch).min(args.edges);
        let edges: Vec<(u64, u64)> =
            (first..last).map(|i| (source(i, astrocytes), FIRST_NEW_SYNAPSE + i)).collect();
        let commit_began = Instant::now();
        writer.commit(vec![Change::AddEdges { population, edges, attributes: None }])?;
        if args.tell {
            let mut out = output();
            writeln!(out, "durable\t{last}")?;
            out.flush()?;
        }
        seconds_per_edge.push(commit_began.elapsed().as_secs_f64() / (last - first) as f64);
    }
    writer.finish()?;
    let (seconds, cpu) = started.seconds();
    let mut out = output();
    if args.json {
        seconds_per_edge.sort_by(f64::total_cmp);
        let touched: BTreeSet<u64> = (0..args.edges).map(|i| source(i, astrocytes)).collect();
        let touched: Vec<u64> = touched.into_iter().collect();
        let adjacencies = [Adjacency { population, side: Side::Out }];
        let report = json!({
            "workload": "thalweg-graph-insert",
            "open_to_last_s": seconds,
            "cpu_s": cpu,
            "edges": args.edges,
            "batch": args.batch,
            "seconds_an_insert": {
                "p50": quantile(&seconds_per_edge, 0.5), "p99": quantile(&seconds_per_edge, 0.99),
            },
            "digest": digest::of_vertices(writer.network(), &adjacencies, &touched)?,
            "stages": {},
            "bytes_stored": writer.network().storage().bytes,
        });
        writeln!(out, "{}", with_build(report, [shown_path(&args.store)]))?;
    } else {
        let rate = args.edges as f64 / seconds;
        let edges = counted(args.edges, "edge");
        writeln!(out, "{edges} in {seconds:.3} s ({rate:.0} a second)")?;
    }
    out.flush()?;
    Ok(())
}

/// The astrocyte that new edge `i` leaves.
fn source(i: u64, astrocytes: u64) -> u64 {
    i.wrapping_mul(HASH_MULTIPLIER) % astrocytes
}

/// The value below which a share `q` of the sorted values lies.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    sorted.get((sorted.len() as f64 * q) as usize).or(sorted.last()).copied()
}
