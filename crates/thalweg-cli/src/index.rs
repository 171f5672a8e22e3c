//! `thalweg index`: build the index that slow5tools and thalweg look reads up in.

use std::path::PathBuf;

use crate::common::{Outcome, ReadArgs, open};
use crate::progress::Progress;

/// Build FILE.idx, the index of read ids, as slow5tools does
///
/// Example: thalweg index reads.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A SLOW5 or BLOW5 file
    file: PathBuf,
    /// Where to write it (default: FILE.idx)
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = args.read.options();
    let control = options.control.clone();
    let file = open(&args.file, options)?;
    let _progress = Progress::watch(&control, file.store().size());
    let place = args.output.clone().unwrap_or_else(|| thalweg::reads::index_path(&args.file));
    file.write_index(&place)?;
    Ok(())
}
