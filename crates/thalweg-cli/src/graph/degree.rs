//! `thalweg graph degree`: how many neighbours vertices have.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use super::neighbors::DirectionChoice;
use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, Outcome, output};

/// Print how many neighbours vertices have, a line each; no list is read
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
    /// The type of the neighbours (default: all types)
    #[arg(long, value_name = "TYPE")]
    to: Option<String>,
    /// Which edges to follow
    #[arg(long, value_enum, default_value_t)]
    direction: DirectionChoice,
    /// Only the least, the mean and the greatest
    #[arg(long)]
    summary: bool,
    /// Print JSON: a line each, or one with --summary
    #[arg(long)]
    json: bool,
    /// Draw their distribution; the name ends in .png, .svg or .html
    #[arg(long, value_name = "OUT")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    open: OpenArgs,
}

/// Vertices that are looked up together.
const TOGETHER: usize = 1 << 14;

pub(super) fn run(args: &GraphDegreeArgs) -> Outcome {
    let network = args.open.read(&args.store)?;
    let from = vertices::parse(&network, &args.from)?;
    let to = args.to.as_ref().map(|name| network.type_of(name)).transpose()?;
    let ways = network.adjacencies(from.vertex_type, to, args.direction.into());
    if ways.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: no population connects these; `thalweg graph info` lists them",
            args.store.display()
        )));
    }
    let mut out = output();
    let mut tally = DegreeTally::default();
    let mut show = |ids: &[u64]| -> Outcome {
        for ids in ids.chunks(TOGETHER) {
            for (id, degree) in ids.iter().zip(network.degrees(&ways, ids)?) {
                tally.add(degree);
                match (args.summary || args.plot.is_some(), args.json) {
                    (true, _) => {}
                    (false, true) => {
                        writeln!(out, "{}", json!({ "vertex": id, "degree": degree }))?;
                    }
                    (false, false) => writeln!(out, "{id}\t{degree}")?,
                }
            }
        }
        Ok(())
    };
    match from.ids {
        Some(mut ids) => {
            ids.sort_unstable();
            ids.dedup();
            show(&ids)?;
        }
        None => {
            let mut failed = None;
            network
                .vertices(from.vertex_type, 0..=u64::MAX, &mut |ids| {
                    show(ids).map_err(|failure| {
                        failed = Some(failure);
                        thalweg::Error::Cancelled
                    })
                })
                .or_else(|error| failed.take().map_or(Err(Failure::Failed(error)), Err))?;
        }
    }
    if args.summary || args.plot.is_some() {
        tally.print(args.json, &mut out)?;
    }
    out.flush()?;
    if let Some(path) = &args.plot {
        let title = format!(
            "{}: neighbours of {}{}",
            args.store.display(),
            args.from,
            args.to.as_ref().map_or(String::new(), |to| format!(" among {to}"))
        );
        crate::chart::degrees(path, &title, &tally.values)?;
    }
    Ok(())
}

/// How many neighbours the vertices have.
#[derive(Debug, Default)]
struct DegreeTally {
    count: u64,
    sum: u64,
    least: Option<u64>,
    most: Option<u64>,
    /// How many have each degree.
    values: std::collections::BTreeMap<u64, u64>,
}

impl DegreeTally {
    fn print(&self, as_json: bool, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { count, sum, least, most, .. } = self;
        let mean = if *count == 0 { 0.0 } else { *sum as f64 / *count as f64 };
        if as_json {
            let report = json!({
                "vertices": count, "edges": sum, "least": least, "mean": mean, "greatest": most,
            });
            return writeln!(out, "{report}");
        }
        let least = least.unwrap_or(0);
        let most = most.unwrap_or(0);
        writeln!(
            out,
            "{count} vertices with {sum} neighbours: {least} at least, {mean:.1} in the mean, \
             {most} at most"
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
