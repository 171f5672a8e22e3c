//! `thalweg index`: build the index that slow5tools and thalweg look reads up in, or that says
//! where an HDF5 file's chunks lie.

#[cfg(feature = "hdf5")]
use std::io::Write;
#[cfg(feature = "hdf5")]
use std::path::Path;
use std::path::PathBuf;

use thalweg::reads::{Options, find, index_path};

use crate::common::{Failure, Outcome, ReadArgs, open};
use crate::progress::Progress;

#[cfg(feature = "hdf5")]
use crate::common::{complain, output};
#[cfg(feature = "hdf5")]
use crate::hdf5;
#[cfg(feature = "hdf5")]
use thalweg::arrays::References;
#[cfg(feature = "hdf5")]
use thalweg::new_file::NewFile;

/// Build FILE.idx: where reads are, of SLOW5 and BLOW5 as slow5tools does, of POD5 in a form of our
/// own; or where the chunks of HDF5 arrays lie, so that opening the file takes no time
///
/// Example: thalweg index reads.blow5
///
/// Example: thalweg index run/
///
/// Example: thalweg index run.nxs
///
/// Example: thalweg index run.nxs --kerchunk run.json
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, folders of files of reads, and patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to write it (default: FILE.idx); of one file only
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Of an HDF5 file of arrays: write where its chunks lie as a kerchunk reference set, which
    /// opens it as a Zarr store (version 2)
    #[cfg(feature = "hdf5")]
    #[arg(long, value_name = "OUT.json", conflicts_with = "output")]
    kerchunk: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

/// Writes a file's arrays as references to it, and says what is not among them.
#[cfg(feature = "hdf5")]
fn references(path: &Path, out: &Path, options: &Options) -> Outcome {
    let Some(file) = hdf5::open(path, options, false)? else {
        return Err(Failure::Usage(format!(
            "{}: --kerchunk is for HDF5 files of arrays",
            path.display()
        )));
    };
    let full = path
        .canonicalize()
        .map_err(|e| thalweg::Error::io(&path.to_string_lossy().into(), "finding", e))?;
    let References { set, arrays, left_out } = file.references(&full.to_string_lossy())?;
    let mut new = NewFile::create(out)?;
    new.push(set.to_string().as_bytes())?;
    new.finish()?;
    for what in &left_out {
        complain(&format!("left out: {what}"));
    }
    writeln!(output(), "{arrays} arrays in {}, {} left out", out.display(), left_out.len())?;
    Ok(())
}

/// Saves where the chunks of an HDF5 file of arrays lie; `false` for any other file.
#[cfg(feature = "hdf5")]
fn extents(path: &Path, args: &Args, options: &Options) -> Result<bool, Failure> {
    let Some(file) = hdf5::open(path, options, false)? else { return Ok(false) };
    let (place, _) = file.write_index(args.output.as_deref())?;
    if args.output.is_none() && place != index_path(path) {
        complain(&format!(
            "the index is {}: the folder of the file cannot be written",
            place.display()
        ));
    }
    Ok(true)
}

pub(crate) fn run(args: &Args) -> Outcome {
    #[cfg(feature = "hdf5")]
    if let Some(out) = &args.kerchunk {
        let [path] = &args.paths[..] else {
            return Err(Failure::Usage("--kerchunk is about one file".into()));
        };
        return references(path, out, &args.read.options());
    }
    let files = find(&args.paths)?;
    if args.output.is_some() && files.len() > 1 {
        return Err(Failure::Usage("--output is for one file at a time".into()));
    }
    // Whatever index there is: the new one is of what the file says.
    let options = Options { own_index: true, ..args.read.trusting() };
    #[cfg(feature = "hdf5")]
    hdf5::guard(&options);
    for path in &files {
        #[cfg(feature = "hdf5")]
        if extents(path, args, &options)? {
            continue;
        }
        let file = open(path, options.clone())?;
        let _progress = Progress::watch(&options.control, file.store().size());
        let place = args.output.clone().unwrap_or_else(|| index_path(path));
        file.write_index(&place)?;
    }
    Ok(())
}
