//! `thalweg view` and `thalweg get`: reads on standard output, as text unless told otherwise.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg::format::Format;
use thalweg::reads::Selection;

use crate::common::{Failure, VerbResult};
use crate::id_list::read_ids;
use crate::open::{ReadArgs, open_set};
use crate::options::{Kind, check as check_options};
use crate::write::{WriteArgs, all_files, formats, stream_reads};

/// Print reads as SLOW5, with their signal
///
/// What pod5 calls `view` is `thalweg scan`: a table without the signal.
///
/// Example: thalweg view reads.blow5 | head
///
/// Example: thalweg view run/ --to blow5 > run.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    stream: StreamArgs,
}

/// Print some reads of a file as SLOW5, in the order in which they are asked for
///
/// Example: thalweg get reads.blow5 00213403-4297-4f03-8412-3cc8b9cb845a
///
/// Example: thalweg get reads.pod5 --ids list.txt --to blow5 > some.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// A file of reads
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The ids of the reads
    #[arg(value_name = "ID", required_unless_present = "list")]
    reads: Vec<String>,
    /// The reads in this list (an id a line, or a table with a column read_id), after those that
    /// are named
    #[arg(long = "ids", value_name = "LIST")]
    list: Option<PathBuf>,
    #[command(flatten)]
    stream: StreamArgs,
}

#[derive(Debug, clap::Args)]
struct StreamArgs {
    /// The format; FAST5 cannot be a stream
    #[arg(long, value_name = "FORMAT", default_value = "slow5", value_parser = formats())]
    to: Format,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn view(args: &ViewArgs) -> VerbResult {
    print(&args.paths, &Selection::All, &args.stream)
}

pub(crate) fn get(args: &GetArgs) -> VerbResult {
    let listed = args.list.as_deref().map(read_ids).transpose()?;
    let ids = args.reads.iter().cloned().chain(listed.unwrap_or_default()).collect();
    print(std::slice::from_ref(&args.file), &Selection::Ids(Arc::new(ids)), &args.stream)
}

fn print(paths: &[PathBuf], selection: &Selection, args: &StreamArgs) -> VerbResult {
    args.write.check_stream(Path::new("-"))?;
    let options = args.read.options();
    let conversion = args.write.conversion(args.to, &options)?;
    if let Some(path) = paths.first() {
        check_options(path, Kind::Reads)?;
    }
    let set = open_set(paths, options)?;
    if matches!(selection, Selection::Ids(_)) && set.paths().len() > 1 {
        let what = "reads by id come from one file; `thalweg filter --ids` takes many";
        return Err(Failure::Usage(what.into()));
    }
    stream_reads(&set, all_files(&set, selection), &conversion)
}
