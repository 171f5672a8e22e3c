//! `thalweg scan`: everything about reads but their signal, as a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use thalweg::condition::Condition;
use thalweg::reads::{ScanOptions, Selection};

use crate::common::{Failure, VerbResult, counted, is_stream};
use crate::done::say_done;
use crate::explain::{self, ExplainedRun, counting};
use crate::force::ForceArgs;
use crate::id_list::read_ids;
use crate::open::{ReadArgs, open_set};
use crate::prices::PriceArgs;
use crate::progress::FetchProgress;
use crate::table_sink::{TableFormat, TableOut, TableSink};

/// List everything about reads but their signal: one row a read, as CSV, Arrow or Parquet
///
/// The signal is not decoded; `samples` is the number of a read's samples, `file` the path of its
/// file. The number of reads is printed on standard error.
///
/// Example: thalweg scan run/ --out reads.parquet
///
/// Example: thalweg scan run/ --columns read_id,samples,run_id --where 'samples >= 5000 and
/// end_reason == signal_positive'
#[derive(Debug, clap::Args)]
pub(crate) struct ScanArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Write a file in place of CSV to standard output, -; its name ends in .arrow, .parquet, .csv
    /// or .tsv
    #[arg(long, short = 'o', value_name = "OUT")]
    out: Option<PathBuf>,
    /// The format of OUT, if its name does not say it
    #[arg(long, value_name = "FORMAT", requires = "out")]
    to: Option<TableFormat>,
    /// Separate columns on standard output by tabs
    #[arg(long, conflicts_with = "out")]
    tsv: bool,
    /// Only these columns, in this order; attributes of read groups, such as run_id, can be among
    /// them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Only reads for which this holds; names are columns or attributes of read groups
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Only the reads in this list (an id a line, or a table with a column read_id), in its order
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Of one file, print the plan (store model, requests, predicted time, and of a URL the cost)
    /// in place of a list
    #[arg(long, conflicts_with = "out")]
    explain: bool,
    /// With --explain: print one JSON line
    #[arg(long, requires = "explain")]
    json: bool,
    #[command(flatten)]
    prices: PriceArgs,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &ScanArgs) -> VerbResult {
    let started = Instant::now();
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let selection = match &args.ids {
        Some(list) => Selection::Ids(Arc::new(read_ids(list)?)),
        None => Selection::All,
    };
    let options = counting(args.explain, args.read.options());
    let control = options.control.clone();
    let out = args.out.as_deref().map(|path| TableOut::of_rows(path, args.to)).transpose()?;
    let set = open_set(&args.paths, options)?;
    if let Some(out) = out.filter(|out| !is_stream(out.path)) {
        args.force.check(out.path, set.paths().chain(args.ids.as_deref()))?;
    }
    if args.explain {
        let run = ExplainedRun::Fields;
        return explain::print(&set, &selection, run, &args.prices, args.json);
    }
    let wanted = ScanOptions { columns: args.columns.clone(), condition, ..ScanOptions::default() };
    let mut scan = set.scan(&selection, &wanted).map_err(Failure::of_argument)?;
    let progress = FetchProgress::watch(&control, set.bytes());
    // Ids that are not there are known before the names of the columns are printed.
    let schema = scan.schema();
    let first = scan.next().transpose()?;
    let mut sink = match out {
        Some(out) => TableSink::create(out, &schema)?,
        None => TableSink::stdout(if args.tsv { b'\t' } else { b',' }, &schema)?,
    };
    let mut reads = 0;
    for batch in first.map(Ok).into_iter().chain(scan) {
        let batch = batch?;
        reads += batch.num_rows() as u64;
        sink.push(&batch)?;
    }
    sink.finish()?;
    drop(progress);
    let reads = counted(reads, "read");
    let what = format!("{reads} of {}", counted(set.paths().len() as u64, "file"));
    let to = out.map_or(Path::new("-"), |out| out.path);
    say_done(&what, to, started.elapsed().as_secs_f64());
    Ok(())
}
