//! `thalweg read`: decode reads and count, print, digest or save them.

#[cfg(feature = "hdf5")]
mod arrays;
#[cfg(feature = "hdf5")]
mod events;
mod measured;
#[cfg(feature = "hdf5")]
mod select;
#[cfg(feature = "hdf5")]
mod table;
#[cfg(feature = "hdf5")]
mod team;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg::new_file::ArrowWriter;
use thalweg::reads::{
    ReadFile, ReadSet, Selection, StoreKind, Strings, in_picoampere, picoampere_schema,
};

use crate::common::{Failure, MEASURING, Outcome, ReadArgs, alone, open_set, output, read_ids};
use crate::progress::Progress;
use crate::{digest, explain};
use measured::{Job, Started, one_by_one, whole};

#[cfg(feature = "hdf5")]
use crate::hdf5;
#[cfg(feature = "hdf5")]
pub(crate) use events::{as_json as finding_as_json, tell};
pub(crate) use measured::with_build;
#[cfg(feature = "hdf5")]
use team::Team;
#[cfg(feature = "hdf5")]
use thalweg::plan::Budget;
#[cfg(feature = "hdf5")]
use thalweg::reads::Options;

/// Decode reads: count them, print a digest of each, or save them as an Arrow file
///
/// Several files, folders of them, or patterns in quotes, are read one after the other in the order
/// of their paths.
///
/// Example: thalweg read reads.blow5 --digest
///
/// Example: thalweg read run/ --to run.arrow
///
/// Example: thalweg read run.nxs --events --bank 'bank1*' --time 0..60 --to events.parquet
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print read_id, samples, sum and sha256 of each read's int16 samples, in file order
    #[arg(long)]
    digest: bool,
    /// Print one JSON line about the whole read (time to samples, bytes, stages), or about the plan
    #[arg(long, conflicts_with = "digest")]
    json: bool,
    /// Write an Arrow IPC file: one row a read, with its samples and all auxiliary fields; it
    /// appears when it is whole. HDF5: a column for each dataset, as .arrow, .parquet, .csv or
    /// .tsv, or as a folder of numpy's arrays, .npy
    #[arg(long, visible_alias = "out", value_name = "OUT", conflicts_with_all = ["digest", "explain", "one_by_one"])]
    to: Option<PathBuf>,
    /// With --to: picoampere (float32) in the place of samples
    #[arg(long, requires = "to")]
    pa: bool,
    /// Print the plan (store model, sizes, memory, requests, predicted time), and read nothing
    #[arg(long, conflicts_with = "digest")]
    explain: bool,
    /// Only the reads in this list (one id a line), in its order
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Get the reads of --ids one after the other on one thread, and tell how long each took
    #[arg(long, requires = "ids", requires = "json")]
    one_by_one: bool,
    /// Fetch the reads and find their records, but decode and deliver nothing
    #[arg(long, conflicts_with_all = ["digest", "to", "explain"], help_heading = MEASURING)]
    no_decode: bool,
    /// Let the consumer take this many nanoseconds longer for each sample
    #[arg(long, value_name = "NS", conflicts_with_all = ["digest", "to", "explain"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), help_heading = MEASURING)]
    consumer_ns: Option<u32>,
    /// HDF5: put all arrays into memory at once, over the budget, instead of using them part by
    /// part
    #[arg(long, conflicts_with_all = ["digest", "to", "explain"], help_heading = MEASURING)]
    arrays: bool,
    /// HDF5: only this part of each array, as in 0:100:2,:,5 for its dimensions, or single elements
    /// as in 1,2;3,4
    #[arg(long, value_name = "SELECTION", conflicts_with_all = ["to", "explain", "ranks", "slice", "slices"])]
    #[cfg(feature = "hdf5")]
    select: Option<select::Select>,
    /// HDF5: read in so many processes, each its slice, as `mpiexec -n N thalweg read` does with
    /// MPI
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    #[arg(conflicts_with_all = ["digest", "to", "explain", "slices"])]
    #[cfg(feature = "hdf5")]
    ranks: Option<u16>,
    /// HDF5: read this slice of how many, counted from 0, as in 0/4; the digests of all add up to
    /// that of the whole
    #[arg(long, value_name = "RANK/SIZE", conflicts_with_all = ["digest", "to", "explain"])]
    #[cfg(feature = "hdf5")]
    slice: Option<team::Place>,
    /// HDF5: print what so many processes would read of each dataset, a line of JSON for each, and
    /// read nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    #[arg(conflicts_with_all = ["digest", "json", "to", "explain", "slice"])]
    #[cfg(feature = "hdf5")]
    slices: Option<u16>,
    /// Heed whoever started this process for --ranks
    #[arg(long, hide = true, requires = "slice")]
    #[cfg(feature = "hdf5")]
    member: bool,
    /// HDF5: take the file for harmless. Otherwise a process of its own looks through it first, for
    /// libhdf5 may crash on what is malformed on purpose; that takes as long again as finding the
    /// datasets
    #[arg(long, overrides_with = "trusted")]
    trusted: bool,
    /// Look through the file, and say nothing: see --trusted
    #[arg(long, hide = true)]
    vet: bool,
    #[cfg(feature = "hdf5")]
    #[command(flatten)]
    events: events::EventArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// The only file, for what is about one.
fn sole(set: &ReadSet, option: &str) -> Result<Arc<ReadFile>, Failure> {
    match set.paths().len() {
        1 => Ok(set.file(0)?),
        files => Err(Failure::Usage(format!("{option} is about one file, and {files} are named"))),
    }
}

/// Writes the reads as an Arrow IPC file.
fn save(set: &ReadSet, selection: &Selection, to: &Path, pa: bool) -> Outcome {
    let schema = set.schema(Strings::Text)?;
    let mut out =
        ArrowWriter::create(to, &if pa { picoampere_schema(&schema)? } else { (*schema).clone() })?;
    for batch in set.batches(selection)? {
        let batch = batch?;
        if pa {
            out.push(&in_picoampere(&batch)?)?;
        } else {
            out.push(&batch)?;
        }
    }
    out.finish()?;
    Ok(())
}

/// Reads the arrays of a file, if it has any.
#[cfg(feature = "hdf5")]
fn arrays(
    path: &Path,
    within: &[PathBuf],
    args: &Args,
    options: &Options,
    started: &Started,
) -> Result<bool, Failure> {
    if args.events.asked() || args.to.is_some() {
        if !args.trusted {
            hdf5::guard(options);
        }
        let Some(file) = hdf5::open(path, options, args.trusted)? else { return Ok(false) };
        if args.ranks.is_some() || args.slice.is_some() {
            return Err(Failure::Usage("events and tables are read by one process".into()));
        }
        alone()?;
        match &args.to {
            Some(to) if !args.events.asked() => table::run(&file, within, to, args.json, started)?,
            to => events::run(&file, within, &args.events, to.as_deref(), args.json, started)?,
        }
        return Ok(true);
    }
    let leads = args.ranks.filter(|_| !args.member).map(usize::from);
    let team = Team::find(args.slice, args.member)?;
    // What MPI takes to begin is no part of reading, as little as an interpreter's start.
    let started = &Started::now();
    let threads = args.read.threads_of(team.neighbours().max(leads.unwrap_or(1)));
    let options = Options { budget: Budget { threads, ..options.budget }, ..options.clone() };
    let outcome = (|| {
        // One looks through the file for all.
        let first = team.place().rank == 0;
        if first && !args.trusted {
            hdf5::guard(&options);
        }
        let mut file = if first { hdf5::open(path, &options, args.trusted)? } else { None };
        team.meet();
        if !first {
            file = hdf5::open(path, &options, args.trusted)?;
        }
        let Some(file) = file else { return Ok(false) };
        let slices = args.slices.map(usize::from);
        let select = args.select.as_ref();
        let job = arrays::Job {
            digests: args.digest,
            json: args.json,
            whole: args.arrays,
            threads,
            slices,
            select,
        };
        match leads {
            Some(ranks) => arrays::lead(&file, ranks, job)?,
            None => arrays::run(&file, within, job, &team, started)?,
        }
        Ok(true)
    })();
    outcome.map_err(|failure| team.broken_up(failure))
}

pub(crate) fn run(args: &Args) -> Outcome {
    let selection = match &args.ids {
        Some(list) => Selection::Ids(Arc::new(read_ids(list)?)),
        None => Selection::All,
    };
    let options = args.read.trusting();
    let control = options.control.clone();
    let in_memory = options.store == StoreKind::Memory;
    let job = Job {
        threads: args.read.budget().threads,
        decode: !args.no_decode,
        consumer_ns: args.consumer_ns.unwrap_or(0),
        throttle: options.throttle,
    };
    let mut started = Started::now();
    #[cfg(feature = "hdf5")]
    if args.vet {
        let [path, datasets @ ..] = &args.paths[..] else { return Ok(()) };
        let datasets: Vec<String> =
            datasets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        return Ok(thalweg::inspector::look(
            path,
            &datasets,
            options,
            thalweg::format::fast5::try_reads,
        )?);
    }
    #[cfg(feature = "hdf5")]
    if let [path, within @ ..] = &args.paths[..]
        && arrays(path, within, args, &options, &started)?
    {
        return Ok(());
    }
    alone()?;
    #[cfg(feature = "hdf5")]
    if args.events.asked() {
        return Err(Failure::Usage(
            "events and logs are in NeXus files: name one HDF5 file".into(),
        ));
    }
    if args.to.is_some() && args.json {
        return Err(Failure::Usage(
            "--to with --json is for arrays: reads are written without a word".into(),
        ));
    }
    #[cfg(feature = "hdf5")]
    if !args.trusted {
        hdf5::guard(&options);
    }
    let set = open_set(&args.paths, options)?;
    if in_memory {
        // What an index takes is storage's time, too.
        if let Selection::Ids(_) = selection {
            for index in 0..set.paths().len() {
                set.file(index)?.load_index()?;
            }
        }
        started = Started::now();
    }
    let mut out = output();
    if args.explain {
        return explain::print(&*sole(&set, "--explain")?, &selection, args.json, &mut out);
    }
    let progress = Progress::watch(&control, set.bytes());
    if let Some(to) = &args.to {
        return save(&set, &selection, to, args.pa);
    }
    if args.digest {
        for row in set.map(&selection, digest::row)? {
            writeln!(out, "{}", row?)?;
        }
        out.flush()?;
        return Ok(());
    }
    if args.one_by_one {
        one_by_one(&*sole(&set, "--one-by-one")?, &selection, job, started)
    } else {
        whole(&set, &selection, job, args.json, started, progress)
    }
}
