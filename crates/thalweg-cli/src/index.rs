//! `thalweg index`: build the index that slow5tools and thalweg look reads up in.

use std::path::PathBuf;

use thalweg::reads::{find, index_path};

use crate::common::{Failure, Outcome, ReadArgs, open};
use crate::progress::Progress;

/// Build FILE.idx, the index of read ids: of SLOW5 and BLOW5 as slow5tools does, of POD5 in a form of our own
///
/// Example: thalweg index reads.blow5
///
/// Example: thalweg index run/
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to write it (default: FILE.idx); of one file only
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let files = find(&args.paths)?;
    if args.output.is_some() && files.len() > 1 {
        return Err(Failure::Usage("--output is for one file at a time".into()));
    }
    let options = args.read.options();
    for path in &files {
        let file = open(path, options.clone())?;
        let _progress = Progress::watch(&options.control, file.store().size());
        let place = args.output.clone().unwrap_or_else(|| index_path(path));
        file.write_index(&place)?;
    }
    Ok(())
}
