//! `thalweg graph degree`: how many neighbours vertices have.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use thalweg::condition::Condition;
use thalweg::graph::{Adjacency, Neighbours, Network};

use super::followed::FollowArgs;
use super::neighbors::{groups_that_fit, most_ids};
use super::open::OpenArgs;
use super::vertices::{self, ChosenVertices};
use crate::callback::CallbackFailure;
use crate::common::{Failure, VerbResult, counted, ended, listing, shown_path};
use crate::done::say_done;
use crate::force::{ForceArgs, files_of};

/// Print how many neighbours vertices have, a line each, without reading the lists of neighbours
///
/// Example: thalweg graph degree network --from Astrocyte --edges Astrocyte-Neuron --summary
///
/// Example: thalweg graph degree network --from Astrocyte --to Synapse --plot degrees.png
#[derive(Debug, clap::Args)]
pub(super) struct GraphDegreeArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Vertices: TYPE, TYPE:0-9,17 or TYPE:FILE, a file with ids one a line
    #[arg(long, value_name = "TYPE[:IDS]")]
    from: String,
    #[command(flatten)]
    follow: FollowArgs,
    /// Count only edges for which this holds, as in `thalweg graph neighbors --where`. Lists are
    /// read then
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Print only the least, the mean and the greatest
    #[arg(long)]
    summary: bool,
    /// Print JSON: a line for each vertex, or one line with --summary
    #[arg(long)]
    json: bool,
    /// Draw the distribution to a file whose name ends in .png, .svg or .html
    #[arg(long, value_name = "OUT")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// Vertices whose degrees are looked up in one call.
const VERTICES_AT_ONCE: usize = 1 << 14;

pub(super) fn run(args: &GraphDegreeArgs) -> VerbResult {
    let started = Instant::now();
    if let Some(plot) = &args.plot {
        crate::chart::format_of(plot)?;
        let list = vertices::files_in(&args.from);
        args.force.check(plot, files_of(&args.store).chain(list))?;
    }
    let condition = args.condition.as_deref().map(Condition::parse).transpose();
    let condition = condition.map_err(Failure::of_argument)?;
    let network = args.open.read(&args.store)?;
    let from = vertices::parse(&network, &args.from, args.open.memory())?;
    let adjacencies = args.follow.adjacencies(&network, &args.store, from.vertex_type)?;
    let counts = DegreeCounts {
        network: &network,
        adjacencies: &adjacencies,
        condition: condition.as_ref(),
        most_ids: most_ids(args.open.memory()),
    };
    let is_summary = args.summary || args.plot.is_some();
    let mut out = listing();
    let mut tally = DegreeTally::default();
    let is_missing = each_vertex(args, &network, &from, |ids| {
        for ids in ids.chunks(VERTICES_AT_ONCE) {
            for (id, degree) in ids.iter().zip(counts.of(ids)?) {
                tally.add(degree);
                match (is_summary, args.json) {
                    (true, _) => {}
                    (false, true) => {
                        writeln!(
                            out,
                            "{}",
                            json!({
                                "schema": "thalweg.graph-degree/1", "vertex": id, "degree": degree,
                            })
                        )?;
                    }
                    (false, false) => writeln!(out, "{id}\t{degree}")?,
                }
            }
        }
        Ok(())
    })?;
    if is_summary {
        tally.print(args.json, &mut out)?;
    }
    out.flush()?;
    if let Some(path) = &args.plot {
        let among = args.follow.to.as_ref().map_or(String::new(), |to| format!(" among {to}"));
        let title = format!("{}: neighbours of {}{among}", shown_path(&args.store), args.from);
        crate::chart::degrees(path, &title, &tally.values)?;
        say_done("drew 1 panel", path, started.elapsed().as_secs_f64());
    }
    ended(is_missing)
}

/// Counts neighbours.
struct DegreeCounts<'a> {
    network: &'a Network,
    adjacencies: &'a [Adjacency],
    condition: Option<&'a Condition>,
    /// The most neighbours in memory at a time, unless one vertex has more.
    most_ids: usize,
}

impl DegreeCounts<'_> {
    /// How many neighbours vertices have to which an edge leads that meets the condition.
    fn of(&self, ids: &[u64]) -> Result<Vec<u64>, Failure> {
        let degrees = self.network.degrees(self.adjacencies, ids)?;
        let Some(condition) = self.condition else { return Ok(degrees) };
        let mut lists = Neighbours::default();
        let mut kept = Vec::with_capacity(ids.len());
        for group in groups_that_fit(ids, &degrees, self.most_ids) {
            self.network
                .neighbours_where(self.adjacencies, group, condition, &mut lists)
                .map_err(Failure::of_argument)?;
            kept.extend((0..group.len()).map(|place| lists.of(place).len() as u64));
        }
        Ok(kept)
    }
}

/// Shows the ids of the chosen vertices in ascending order, each once, many in a call. Returns
/// whether some are not there.
fn each_vertex(
    args: &GraphDegreeArgs,
    network: &Network,
    chosen: &ChosenVertices,
    mut show: impl FnMut(&[u64]) -> VerbResult,
) -> Result<bool, Failure> {
    if let Some(ids) = &chosen.ids {
        let found = ids.find(network, chosen.vertex_type)?;
        show(&found.ids)?;
        return Ok(found.complain_of_missing(&args.store, &args.from));
    }
    let mut failure = CallbackFailure::default();
    let shown =
        network.vertices(chosen.vertex_type, 0..=u64::MAX, &mut |ids| failure.keep(show(ids)));
    failure.or(shown.map_err(Failure::from))?;
    Ok(false)
}

/// Statistics of the degrees.
#[derive(Debug, Default)]
struct DegreeTally {
    count: u64,
    sum: u64,
    least: Option<u64>,
    most: Option<u64>,
    /// The number of vertices with each degree.
    values: std::collections::BTreeMap<u64, u64>,
}

impl DegreeTally {
    fn print(&self, as_json: bool, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { count, sum, least, most, .. } = self;
        let mean = if *count == 0 { 0.0 } else { *sum as f64 / *count as f64 };
        if as_json {
            let report = json!({
                "schema": "thalweg.graph-degrees/1", "vertices": count, "edges": sum,
                "least": least, "mean": mean, "greatest": most,
            });
            return writeln!(out, "{report}");
        }
        let least = least.unwrap_or(0);
        let most = most.unwrap_or(0);
        writeln!(
            out,
            "{} with {}: {least} at least, {mean:.1} in the mean, \
             {most} at most",
            counted(*count, "vertex"),
            counted(*sum, "neighbour")
        )
    }

    fn add(&mut self, degree: u64) {
        self.count += 1;
        self.sum += degree;
        self.least = Some(self.least.map_or(degree, |least| least.min(degree)));
        self.most = self.most.max(Some(degree));
        *self.values.entry(degree).or_default() += 1;
    }
}
