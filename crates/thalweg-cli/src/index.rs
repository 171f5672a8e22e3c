//! `thalweg index`: builds the index in which slow5tools and thalweg look up reads, or the index of
//! where an HDF5 file's chunks lie.

use std::path::{Path, PathBuf};
use std::time::Instant;

use thalweg::reads::{KeepIndex, is_index, places_to_keep};
use thalweg::{Identified, Opened, Options};
use thalweg_io::urls;

use crate::arrays::{self, KerchunkArgs};
use crate::common::{Failure, VerbResult, for_each_file};
use crate::done::say_done;
use crate::explain::counting;
use crate::force::{ForceArgs, check_sidecar};
use crate::open::{ReadArgs, find_reads, identify, print_note};
use crate::options::{Kind, check as check_options};
use crate::output_name::check_name;
use crate::progress::FetchProgress;

/// Build FILE.idx: where the reads of SLOW5 and BLOW5 lie (in the format of slow5tools) or those of
/// POD5 (in a format of thalweg's own), or where the chunks of HDF5 arrays lie, so that opening the
/// file takes no time
///
/// Of many files, those that fail are named, the others are done, and the exit code is 1.
///
/// Example: thalweg index reads.blow5
///
/// Example: thalweg index run/
///
/// Example: thalweg index run.nxs
///
/// Example: thalweg index run.nxs --kerchunk run.json
#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    /// Files, folders of files of reads, and patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to write it (default: FILE.idx); of one file only
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    references: KerchunkArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &IndexArgs) -> VerbResult {
    if let Some(out) = args.references.output() {
        args.force.check(out, &args.paths)?;
        return references(&args.paths, out, &args.read.options());
    }
    // The new index is made from the file itself, whatever an older index says.
    let options = Options { own_index: true, ..counting(true, args.read.options()) };
    let files = find_reads(&args.paths, &options.control)?;
    if args.output.is_some() && files.len() > 1 {
        return Err(Failure::Usage("--output is for one file at a time".into()));
    }
    for_each_file(files.iter(), |path| index(path, args, &options))
}

/// Writes the arrays of the only file as references to it.
fn references(paths: &[PathBuf], out: &Path, options: &Options) -> VerbResult {
    let [path] = paths else {
        return Err(Failure::Usage("--kerchunk is about one file".into()));
    };
    let not_arrays = || {
        Failure::Usage(format!(
            "{}: --kerchunk is for HDF5 files of arrays",
            urls::shown_path(path)
        ))
    };
    let found =
        identify(path, false, options)?.filter(Identified::is_hdf5).ok_or_else(not_arrays)?;
    match found.open(options.clone())? {
        Opened::Arrays(file) => {
            file.check_output(out).map_err(Failure::of_argument)?;
            check_name(out, "JSON", &["json"])?;
            arrays::write_references(path, &file, out)
        }
        _ => Err(not_arrays()),
    }
}

/// Writes the index of one file.
fn index(path: &Path, args: &IndexArgs, options: &Options) -> VerbResult {
    let (started, indexed) = (Instant::now(), format!("indexed {}", urls::shown_path(path)));
    let progress = options.counter.as_ref().map(FetchProgress::count);
    let file = match Identified::new(path, options)?.open(options.clone())? {
        Opened::Arrays(file) => {
            check_options(path, Kind::Arrays)?;
            let beside = place_of(path, args, options)?;
            let out = args.output.as_deref();
            let place = out.unwrap_or(&beside);
            check_place(path, place, args, arrays::is_index)?;
            file.check_output(place).map_err(Failure::of_argument)?;
            check_name(place, "an index", &["idx"])?;
            let out = out.or(args.force.is_given().then_some(&*beside));
            let place = arrays::write_index(&file, out)?;
            say_done(&indexed, &place, started.elapsed().as_secs_f64());
            return Ok(());
        }
        other => other.into_reads()?,
    };
    check_options(path, Kind::Reads)?;
    print_note(path, &file);
    drop(progress);
    let _progress = FetchProgress::watch(&options.control, file.store().size());
    let place = place_of(path, args, options)?;
    check_place(path, &place, args, is_index)?;
    check_name(&place, "an index", &["idx"])?;
    file.write_index(&place)?;
    say_done(&indexed, &place, started.elapsed().as_secs_f64());
    Ok(())
}

/// The path of the new index.
fn place_of(path: &Path, args: &IndexArgs, options: &Options) -> Result<PathBuf, Failure> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    places_to_keep(path, options.keep_index).next().ok_or_else(|| {
        let what = match options.keep_index {
            KeepIndex::No => "--index-in none (or THALWEG_INDEX) leaves nothing to do",
            _ => "there is no cache folder: set HOME or XDG_CACHE_HOME, or name --output",
        };
        Failure::Usage(what.into())
    })
}

/// Checks that the index of a file may be written at `place`. A link is followed only if the path
/// of the index is given, or --force.
fn check_place(
    path: &Path,
    place: &Path,
    args: &IndexArgs,
    is_kind: fn(&[u8]) -> bool,
) -> VerbResult {
    args.force.check_kind(place, [path], is_kind)?;
    if args.output.is_some() || args.force.is_given() {
        return Ok(());
    }
    check_sidecar(place, path, is_kind)
}
