//! `thalweg graph neighbors`: who is connected to these?

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use sha2::{Digest, Sha256};
use thalweg::condition::Condition;
use thalweg::graph::{Adjacency, Direction, Neighbours, Network, Side};
use thalweg::pool;

use super::open::OpenArgs;
use super::vertices;
use crate::common::{Failure, MEASURING, Outcome, output};

/// Print the neighbours of vertices: a line each, vertices ascending
///
/// A line has the vertex, how many neighbours it has, and their ids, ascending, with spaces between
/// them; or with --digest the SHA-256 of the ids as little-endian u64. A neighbour that several
/// edges lead to comes as often, unless --unique says once.
///
/// Example: thalweg graph neighbors network --from Astrocyte:0-9 --to Neuron
///
/// Example: thalweg graph neighbors network --from Neuron --to Astrocyte --digest
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Vertices to go from: TYPE, TYPE:0-9,17 or TYPE:FILE, a file with ids one a line
    #[arg(long, value_name = "TYPE[:IDS]")]
    from: String,
    /// The type of the neighbours (default: all types)
    #[arg(long, value_name = "TYPE")]
    to: Option<String>,
    /// Which edges to follow
    #[arg(long, value_enum, default_value_t)]
    direction: DirectionChoice,
    /// The SHA-256 of the ids in place of them
    #[arg(long)]
    digest: bool,
    /// Each neighbour once
    #[arg(long)]
    unique: bool,
    /// Only along edges for which this holds: over their attributes, the ids from and to, and what
    /// vertices there have, as in "weight > 0.5 and to.layer == 4"
    #[arg(long = "where", value_name = "CONDITION", conflicts_with_all = ["hops", "measured"])]
    condition: Option<String>,
    /// Neighbours of neighbours, so many steps from the vertices, along edges between vertices of
    /// one type: each once, without the vertex
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    hops: Option<u16>,
    /// A JSON line for each vertex
    #[arg(long)]
    json: bool,
    /// One JSON line about reading all of them: seconds, links, their sum, and a digest over all
    /// with --digest
    #[arg(long, help_heading = MEASURING, conflicts_with_all = ["json", "unique", "hops"])]
    measured: bool,
    /// Read once, then so many times again, opened already and into the same memory; the median
    /// counts
    #[arg(long, help_heading = MEASURING, requires = "measured", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    repeat: Option<u16>,
    /// Put all lists into one array instead of summing them one by one while they are in the cache,
    /// and time copying that array as well
    #[arg(long, help_heading = MEASURING, requires = "repeat")]
    arrays: bool,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(super) enum DirectionChoice {
    /// Edges that leave, and undirected ones; where there are none between the two types, those
    /// that arrive
    #[default]
    Auto,
    /// Edges that leave, and undirected ones
    Out,
    /// Edges that arrive, and undirected ones
    In,
    /// All
    Both,
}

impl From<DirectionChoice> for Direction {
    fn from(choice: DirectionChoice) -> Self {
        match choice {
            DirectionChoice::Auto => Self::Auto,
            DirectionChoice::Out => Self::Out,
            DirectionChoice::In => Self::In,
            DirectionChoice::Both => Self::Both,
        }
    }
}

/// CPU seconds of this process so far.
pub(super) fn cpu_s() -> f64 {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default().as_secs_f64()
}

/// Neighbours that are in memory at a time: a part of the budget.
const SHARE: usize = 4;

/// Vertices that are looked up together.
const TOGETHER: usize = 4096;

pub(super) fn run(args: &Args) -> Outcome {
    let began = (Instant::now(), cpu_s());
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let options = args.open.options();
    let network = Network::open(&args.store, options.clone())?;
    let from = vertices::parse(&network, &args.from)?;
    let to = args.to.as_ref().map(|name| network.type_of(name)).transpose()?;
    let ways = network.adjacencies(from.vertex_type, to, args.direction.into());
    if ways.is_empty() {
        let message = format!(
            "no population connects {} with {}",
            args.from,
            args.to.as_deref().unwrap_or("anything")
        );
        return Err(Failure::Usage(format!(
            "{}: {message}; `thalweg graph info` lists them",
            args.store.display()
        )));
    }
    // Of all vertices none is missing.
    let is_named = from.ids.is_some();
    let mut ids = match from.ids {
        Some(mut ids) => {
            ids.sort_unstable();
            ids.dedup();
            ids
        }
        None => {
            let mut ids = Vec::new();
            network.vertices(from.vertex_type, 0..=u64::MAX, &mut |some| {
                ids.extend_from_slice(some);
                Ok(())
            })?;
            ids
        }
    };
    if args.measured {
        return measured(args, &network, &ways, &ids, began, options.budget.threads);
    }
    let mut missing = Vec::new();
    for id in ids.iter().filter(|_| is_named) {
        if !network.has_vertex(from.vertex_type, *id)? {
            missing.push(*id);
        }
    }
    if !missing.is_empty() {
        let some: Vec<String> = missing.iter().take(5).map(u64::to_string).collect();
        let dots = if missing.len() > 5 { ", …" } else { "" };
        crate::common::complain(&format!(
            "{}: not there: {}{dots} of {}",
            args.store.display(),
            some.join(", "),
            args.from
        ));
        ids.retain(|id| missing.binary_search(id).is_err());
    }
    let mut out = output();
    let mut list = Neighbours::default();
    let most = options.budget.memory / SHARE / 8;
    for pieces in ids.chunks(TOGETHER) {
        let mut rest = pieces;
        let degrees = network.degrees(&ways, pieces)?;
        while !rest.is_empty() {
            let first = pieces.len() - rest.len();
            let mut sum = 0;
            let fits = degrees[first..].iter().take_while(|degree| {
                sum += **degree as usize;
                sum <= most
            });
            let (here, more) = rest.split_at(fits.count().max(1));
            rest = more;
            match &condition {
                Some(condition) => {
                    network
                        .neighbours_where(&ways, here, condition, &mut list)
                        .map_err(Failure::of_argument)?;
                }
                None if args.hops.is_none() => network.neighbours(&ways, here, &mut list)?,
                None => {}
            }
            for (place, vertex) in here.iter().enumerate() {
                if options.control.is_cancelled() {
                    return Err(thalweg::Error::Cancelled.into());
                }
                if let Some(hops) = args.hops {
                    let reached = network.reachable(&ways, &[*vertex], usize::from(hops))?;
                    write_line(&mut out, args, *vertex, &reached)?;
                } else if args.unique {
                    let mut own = list.of(place).to_vec();
                    own.dedup();
                    write_line(&mut out, args, *vertex, &own)?;
                } else {
                    write_line(&mut out, args, *vertex, list.of(place))?;
                }
            }
        }
    }
    out.flush()?;
    if missing.is_empty() { Ok(()) } else { Err(Failure::Said(String::new())) }
}

fn update(hash: &mut Sha256, ids: &[u64]) {
    // A hash takes longer to be called than to take in eight bytes.
    let mut bytes = [0; 4096];
    for ids in ids.chunks(bytes.len() / 8) {
        for (bytes, id) in bytes.as_chunks_mut().0.iter_mut().zip(ids) {
            *bytes = id.to_le_bytes();
        }
        hash.update(bytes.get(..ids.len() * 8).unwrap_or_default());
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of the ids of all neighbours, population after population, by the vertices that
/// edges leave.
pub(super) fn digest_of_all(network: &Network) -> thalweg::Result<String> {
    let mut hash = Sha256::new();
    let mut list = Neighbours::default();
    for (population, edges) in network.populations().iter().enumerate() {
        let ways = [Adjacency { population, side: Side::Out }];
        network.vertices(network.type_of(&edges.population.source)?, 0..=u64::MAX, &mut |ids| {
            ids.chunks(FEW).try_for_each(|ids| {
                network.neighbours(&ways, ids, &mut list)?;
                update(&mut hash, &list.ids);
                Ok(())
            })
        })?;
    }
    Ok(hex(hash))
}

/// The SHA-256 of the ids of some vertices' neighbours.
pub(super) fn digest_of(
    network: &Network,
    ways: &[Adjacency],
    ids: &[u64],
) -> thalweg::Result<String> {
    let mut hash = Sha256::new();
    let mut list = Neighbours::default();
    for ids in ids.chunks(FEW) {
        network.neighbours(ways, ids, &mut list)?;
        update(&mut hash, &list.ids);
    }
    Ok(hex(hash))
}

/// Vertices whose neighbours are in memory at a time, however many these are.
const FEW: usize = 64;

fn write_line(out: &mut impl Write, args: &Args, vertex: u64, ids: &[u64]) -> Outcome {
    let digest = args.digest.then(|| {
        let mut hash = Sha256::new();
        update(&mut hash, ids);
        hex(hash)
    });
    match (&digest, args.json) {
        (Some(sha256), true) => {
            writeln!(out, "{}", json!({ "vertex": vertex, "count": ids.len(), "sha256": sha256 }))?;
        }
        (None, true) => {
            writeln!(out, "{}", json!({ "vertex": vertex, "count": ids.len(), "neighbors": ids }))?;
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

/// Copies numbers, each thread its part.
fn copy(from: &[u64], to: &mut [u64], threads: usize) {
    let part = from.len().div_ceil(threads.max(1)).max(1);
    let parts = from.chunks(part).zip(to.chunks_mut(part));
    pool::map(threads, parts, |(from, to)| to.copy_from_slice(from));
}

/// The middle one of some times, the least and the greatest.
fn middle(mut times: Vec<f64>) -> [Option<f64>; 3] {
    times.sort_by(f64::total_cmp);
    [times.get(times.len() / 2).copied(), times.first().copied(), times.last().copied()]
}

/// Reads all lists and sums them, as each arm of a benchmark does.
fn measured(
    args: &Args,
    network: &Network,
    ways: &[Adjacency],
    ids: &[u64],
    began: (Instant, f64),
    threads: usize,
) -> Outcome {
    // Links and their sum.
    let read = || -> thalweg::Result<(u64, u64)> {
        let (links, sum) = (AtomicU64::new(0), AtomicU64::new(0));
        network.visit(ways, ids, || {
            |_, ids: &[u64]| {
                links.fetch_add(ids.len() as u64, Relaxed);
                sum.fetch_add(ids.iter().fold(0, |sum, id| sum.wrapping_add(*id)), Relaxed);
            }
        })?;
        Ok((links.into_inner(), sum.into_inner()))
    };
    let (links, total) = read()?;
    let (mut seconds, mut cpu) = (began.0.elapsed().as_secs_f64(), cpu_s() - began.1);
    let (mut fastest, mut slowest, mut copied) = (None, None, None);
    let mut list = Neighbours::default();
    if let Some(repeat) = args.repeat {
        let (mut times, mut copies, mut again) = (Vec::new(), Vec::new(), Vec::new());
        if args.arrays {
            network.neighbours(ways, ids, &mut list)?;
            again = list.ids.clone();
        }
        let mut spent = 0.0;
        for _ in 0..repeat {
            let (began, before) = (Instant::now(), cpu_s());
            let known = if args.arrays {
                network.neighbours(ways, ids, &mut list)?;
                (list.ids.len() as u64, total)
            } else {
                read()?
            };
            times.push(began.elapsed().as_secs_f64());
            spent += cpu_s() - before;
            if known != (links, total) {
                return Err(Failure::Said(format!("{known:?} now, {:?} before", (links, total))));
            }
            if args.arrays {
                let began = Instant::now();
                copy(&list.ids, &mut again, threads);
                copies.push(began.elapsed().as_secs_f64());
            }
        }
        cpu = spent / f64::from(repeat);
        let [median, first, last] = middle(times);
        seconds = median.unwrap_or(seconds);
        (fastest, slowest) = (first, last);
        copied = middle(copies)[0];
    }
    if args.digest && !args.arrays {
        network.neighbours(ways, ids, &mut list)?;
    }
    let digest = args.digest.then(|| {
        let mut hash = Sha256::new();
        update(&mut hash, &list.ids);
        hex(hash)
    });
    let report = json!({
        "workload": "thalweg-graph-read",
        "open_to_last_s": seconds,
        "cpu_s": cpu,
        "repeats": args.repeat,
        "fastest_s": fastest,
        "slowest_s": slowest,
        "copy_s": copied,
        "vertices": ids.len(),
        "links": links,
        "sum": total,
        "bytes_decoded": 8 * links,
        "bytes_stored": network.storage().bytes,
        "needed_bytes": network.needed(ways, ids)?,
        "digest": digest,
        "threads": threads,
        "stages": {},
    });
    let mut out = output();
    writeln!(out, "{}", crate::timing::with_build(report))?;
    out.flush()?;
    Ok(())
}
