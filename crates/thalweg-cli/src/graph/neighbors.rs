//! `thalweg graph neighbors`: prints the neighbours of vertices, or measures reading them.

pub(super) mod digest;
mod measured;

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use thalweg::condition::Condition;
use thalweg::control::Control;
use thalweg::graph::{Adjacency, Neighbours, Network, NetworkOptions};
use thalweg::store::throttled::Limits;

use super::followed::FollowArgs;
use super::open::{self, OpenArgs};
use super::vertices::{self, ChosenVertices, FoundVertices};
use crate::callback::CallbackFailure;
use crate::common::{Failure, MEASURING, VerbResult, ended, listing};
use crate::timing::Started;
use digest::sha256;

/// Print the neighbours of vertices: a line each, vertices ascending
///
/// A line has the vertex, the number of its neighbours, and their ids, ascending, with spaces
/// between them; or with --digest the SHA-256 of the ids as little-endian u64. A neighbour that
/// several edges lead to is printed as often as there are edges, or once with --unique.
///
/// Example: thalweg graph neighbors network --from Astrocyte:0-9 --to Neuron
///
/// Example: thalweg graph neighbors network --from Neuron --to Astrocyte --digest
#[derive(Debug, clap::Args)]
pub(super) struct GraphNeighborsArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The vertices: TYPE, TYPE:0-9,17 or TYPE:FILE, a file with ids one a line
    #[arg(long, value_name = "TYPE[:IDS]")]
    from: String,
    #[command(flatten)]
    follow: FollowArgs,
    /// Print the SHA-256 of the ids instead of the ids
    #[arg(long)]
    digest: bool,
    /// Print each neighbour once
    #[arg(long)]
    unique: bool,
    /// Follow only edges for which this holds. Names are attributes of edges, from and to (ids),
    /// and the attributes of the vertices there, as in "weight > 0.5 and to.layer == 4"
    #[arg(long = "where", value_name = "CONDITION", conflicts_with_all = ["hops", "measured"])]
    condition: Option<String>,
    /// Print the vertices that are up to N steps away, along edges between vertices of one type:
    /// each once, without the vertex itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    hops: Option<u16>,
    /// Print a JSON line for each vertex
    #[arg(long)]
    json: bool,
    /// Print one JSON line about reading all lists: seconds, links, the sum of their ids, and with
    /// --digest a digest of all
    #[arg(long, help_heading = MEASURING, conflicts_with_all = ["json", "unique", "hops"])]
    measured: bool,
    /// Read once, then N times again from the open network into the same memory; the time is the
    /// median of the N reads
    #[arg(long, help_heading = MEASURING, requires = "measured", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    repeat: Option<u16>,
    /// Put all lists into one array, instead of summing them one by one while they are in the
    /// cache, and also time a copy of that array
    #[arg(long, help_heading = MEASURING, requires = "repeat")]
    arrays: bool,
    /// Hold the fetching of pages to these limits, as in `thalweg read --throttle`
    #[arg(long, help_heading = MEASURING, requires = "measured", value_name = "LIMITS")]
    throttle: Option<Limits>,
    #[command(flatten)]
    open: OpenArgs,
}

/// The schema of the line of a vertex.
const SCHEMA: &str = "thalweg.graph-neighbors/1";

/// The memory budget is divided by this number to get the memory for the lists that are read at a
/// time.
const BUDGET_PARTS: usize = 4;

/// Vertices whose degrees are looked up in one call.
const VERTICES_AT_ONCE: usize = 4096;

pub(super) fn run(args: &GraphNeighborsArgs) -> VerbResult {
    let started = Started::now();
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let options = NetworkOptions { throttle: args.throttle, ..args.open.options() };
    let network = open::existing(&args.store, options.clone())?;
    let from = vertices::parse(&network, &args.from, args.open.memory())?;
    let adjacencies = args.follow.adjacencies(&network, &args.store, from.vertex_type)?;
    if args.measured {
        let found = found_vertices(&network, &from)?;
        let threads = options.budget.threads;
        return measured::run(args, &network, &adjacencies, &found.ids, &started, threads);
    }
    let most_ids = most_ids(options.budget.memory);
    let lists =
        NeighbourLists { args, network: &network, adjacencies: &adjacencies, condition, most_ids };
    let mut out = listing();
    let Some(ids) = &from.ids else {
        let has_condition = lists.condition.is_some();
        let _ahead = network.read_ahead(&adjacencies, has_condition)?;
        // The ids of all vertices may not fit into memory.
        let mut failure = CallbackFailure::default();
        let shown = network.vertices(from.vertex_type, 0..=u64::MAX, &mut |ids| {
            failure.keep(lists.print(&mut out, ids, &options.control))
        });
        failure.or(shown.map_err(Failure::from))?;
        return Ok(out.flush()?);
    };
    let found = ids.find(&network, from.vertex_type)?;
    let is_missing = found.complain_of_missing(&args.store, &args.from);
    lists.print(&mut out, &found.ids, &options.control)?;
    out.flush()?;
    ended(is_missing)
}

/// The chosen vertices that are there, for a measurement.
fn found_vertices(network: &Network, chosen: &ChosenVertices) -> Result<FoundVertices, Failure> {
    let Some(ids) = &chosen.ids else {
        return Ok(FoundVertices::all(network, chosen.vertex_type)?);
    };
    // A measurement looks no vertices up, which would be timed: missing ones have empty lists.
    if ids.count() <= u128::from(network.vertex_count(chosen.vertex_type)) {
        return Ok(FoundVertices::of(ids.expand(usize::MAX)?));
    }
    Ok(ids.find(network, chosen.vertex_type)?)
}

/// The most neighbours that may be in memory at a time, unless one vertex has more.
pub(super) fn most_ids(memory: usize) -> usize {
    memory / BUDGET_PARTS / size_of::<u64>()
}

/// Vertices in groups that have up to `most` neighbours together, but at least one vertex.
pub(super) fn groups_that_fit<'a>(
    ids: &'a [u64],
    degrees: &[u64],
    most: usize,
) -> impl Iterator<Item = &'a [u64]> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fitting = degrees[first..].iter().take_while(|degree| {
            sum += **degree as usize;
            sum <= most
        });
        let count = fitting.count().max(1);
        let group = ids.get(first..first + count)?;
        first += count;
        Some(group)
    })
}

/// Reads and prints lists of neighbours.
struct NeighbourLists<'a> {
    args: &'a GraphNeighborsArgs,
    network: &'a Network,
    adjacencies: &'a [Adjacency],
    condition: Option<Condition>,
    /// The most neighbours in memory at a time, unless one vertex has more.
    most_ids: usize,
}

impl NeighbourLists<'_> {
    /// Prints a line for each vertex.
    fn print(&self, out: &mut impl Write, ids: &[u64], control: &Control) -> VerbResult {
        let mut lists = Neighbours::default();
        for ids in ids.chunks(VERTICES_AT_ONCE) {
            let degrees = self.network.degrees(self.adjacencies, ids)?;
            for here in groups_that_fit(ids, &degrees, self.most_ids) {
                self.read(here, &mut lists)?;
                for (place, vertex) in here.iter().enumerate() {
                    control.check()?;
                    self.print_vertex(out, *vertex, lists.of(place))?;
                }
            }
        }
        Ok(())
    }

    /// Reads the lists of some vertices. With --hops, each vertex is read when it is printed.
    fn read(&self, ids: &[u64], lists: &mut Neighbours) -> VerbResult {
        match &self.condition {
            Some(condition) => self
                .network
                .neighbours_where(self.adjacencies, ids, condition, lists)
                .map_err(Failure::of_argument),
            None if self.args.hops.is_none() => {
                Ok(self.network.neighbours(self.adjacencies, ids, lists)?)
            }
            None => Ok(()),
        }
    }

    fn print_vertex(&self, out: &mut impl Write, vertex: u64, list: &[u64]) -> VerbResult {
        if let Some(hops) = self.args.hops {
            let hops = usize::from(hops);
            let reached = self.network.reachable(self.adjacencies, &[vertex], hops)?;
            write_line(out, self.args, vertex, &reached)
        } else if self.args.unique {
            let mut unique = list.to_vec();
            unique.dedup();
            write_line(out, self.args, vertex, &unique)
        } else {
            write_line(out, self.args, vertex, list)
        }
    }
}

fn write_line(
    out: &mut impl Write,
    args: &GraphNeighborsArgs,
    vertex: u64,
    ids: &[u64],
) -> VerbResult {
    let digest = args.digest.then(|| sha256(ids));
    match (&digest, args.json) {
        (Some(sha256), true) => {
            let line = json!({
                "schema": SCHEMA, "vertex": vertex, "count": ids.len(), "sha256": sha256,
            });
            writeln!(out, "{line}")?;
        }
        (None, true) => {
            let line = json!({
                "schema": SCHEMA, "vertex": vertex, "count": ids.len(), "neighbors": ids,
            });
            writeln!(out, "{line}")?;
        }
        (Some(sha256), false) => writeln!(out, "{vertex}\t{}\t{sha256}", ids.len())?,
        (None, false) => {
            write!(out, "{vertex}\t{}\t", ids.len())?;
            for (place, id) in ids.iter().enumerate() {
                write!(out, "{}{id}", if place == 0 { "" } else { " " })?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
