//! `thalweg merge`: many files into one.

use std::path::PathBuf;
use std::sync::Arc;

use thalweg::reads::Selection;
use thalweg::write::ReadWriter;

use crate::common::{Failure, Outcome, ReadArgs, open_set};
use crate::pour::{Coding, Target, merged, pour};
use crate::progress::Progress;

/// Put the reads of many files into one
///
/// Read groups with the same attributes become one, others stay apart. Fields that only some files have are missing in
/// the reads of the others. The same read in two files is an error.
///
/// Example: thalweg merge run/ --to run.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The file to write; it appears when it is whole
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    #[command(flatten)]
    coding: Coding,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    args.coding.check(&args.to)?;
    let options = args.read.options();
    let control = options.control.clone();
    let set = open_set(&args.paths, options)?;
    let here = std::fs::canonicalize(&args.to).ok();
    if set.paths().any(|path| here.is_some() && std::fs::canonicalize(path).ok() == here) {
        return Err(Failure::Usage(format!("{}: is one of the files to read; name another", args.to.display())));
    }
    let _progress = Progress::watch(&control, set.bytes());
    let merged = merged(&set)?;
    let header = args.coding.header(&args.to, merged.header());
    let mut out = ReadWriter::create(&args.to, &header)?;
    let targets = Arc::new(vec![Target { path: args.to.clone(), merged, header }]);
    for file in 0..set.paths().len() {
        pour(&set, file, &Selection::All, &targets, |_| Some(0), |frame| Ok(out.push(&frame.read_id, &frame.bytes)?))?;
    }
    out.finish()?;
    Ok(())
}
