//! `thalweg convert`: converts reads between formats and compressions, many files into one or each
//! into its own; rewrites HDF5 files.

mod outputs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{fs, slice};

use serde_json::json;
use thalweg::Error;
use thalweg::convert::{Conversion, convert};
use thalweg::format::Format;
use thalweg::new_file::Inputs;
use thalweg::reads::{Options, ReadSet, Selection};
use thalweg_io::urls::{self, url};

use crate::arrays::{self, RepackArgs, RepackJob};
use crate::common::{
    Failure, NewFolder, VerbResult, counted, for_each_file, is_stream, print_json,
};
use crate::done::say_done;
use crate::explain::{self, ExplainedRun, counting};
use crate::fastq;
use crate::id_list::read_ids;
use crate::open::{ReadArgs, WITHOUT_READS, find_reads, open_set};
use crate::options::{Kind, check as check_options};
use crate::output_name::{check_name, is_hdf5_name};
use crate::prices::PriceArgs;
use crate::write::{WriteArgs, all_files, formats, stream_reads};
use outputs::{format, is_whole, outputs};

/// Convert between SLOW5, BLOW5, POD5 and FAST5, and between compressions; compress FASTQ
///
/// The name of OUT says the format: .slow5, .blow5, .pod5 or .fast5. Many files become one, or with
/// --per-file one file each. With --to, OUT can be -, the standard output.
///
/// Example: thalweg convert reads.pod5 reads.blow5
///
/// Example: thalweg convert runs/today today.pod5 --verify
///
/// Example: thalweg convert runs/today converted --per-file --to blow5 --resume
///
/// FASTQ keeps its text, and gets another compression: BGZF if the name of OUT ends in .gz, else
/// none. - stands for the standard input or output. If IN.md5 or IN.sha256 is there, IN must have
/// this checksum.
///
/// Example: thalweg convert reads.fastq reads.fastq.gz --level 4
///
/// With --repack, HDF5 files of arrays are rewritten.
///
/// Example: thalweg convert --repack live.nxs ordered.nxs --chunk 1Mi --filter shuffle+zstd
#[derive(Debug, clap::Args)]
#[command(override_usage = "thalweg convert [OPTIONS] <IN>... <OUT>")]
pub(crate) struct ConvertArgs {
    /// The files to convert, or folders or patterns of them; and, last, the file to write, which
    /// appears when it is complete, or with --per-file the folder
    // One argument, so that options may stand between the two.
    #[arg(required = true, value_name = "IN> <OUT")]
    paths: Vec<PathBuf>,
    /// The format, if the name of OUT does not say it
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<Format>,
    /// Write one file for each input, with its name, into the folder OUT. Inputs that fail are
    /// named, the others are converted, and the exit code is 1
    #[arg(long)]
    per_file: bool,
    /// With --per-file: keep outputs that are complete and newer than their inputs
    #[arg(long, requires = "per_file")]
    resume: bool,
    /// Only the reads in this list (an id a line, or a table with a column read_id), in its order
    #[arg(long, value_name = "LIST", conflicts_with = "per_file")]
    ids: Option<PathBuf>,
    /// Sort the reads by id
    #[arg(long, conflicts_with_all = ["ids", "per_file"])]
    sort: bool,
    /// Of one file IN, print the plan of reading it (store model, requests, predicted time, and of
    /// a URL the cost), and write nothing
    #[arg(long, conflicts_with = "per_file")]
    explain: bool,
    #[command(flatten)]
    prices: PriceArgs,
    /// FASTQ: write gzip as one member, for programs that read no more than one, in place of BGZF
    #[arg(long)]
    single_member: bool,
    /// FASTQ: calculate the MD5 of the file as it is stored, for --json
    #[arg(long, requires = "json")]
    md5: bool,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    repack: RepackArgs,
    #[command(flatten)]
    read: ReadArgs,
}

impl ConvertArgs {
    fn inputs(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, inputs)| inputs)
    }

    fn output(&self) -> &Path {
        self.paths.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

pub(crate) fn run(args: &ConvertArgs) -> VerbResult {
    if let [only] = &args.paths[..] {
        let only = urls::shown_path(only);
        return Err(Failure::Usage(format!("{only}: expected OUT, too: convert IN OUT")));
    }
    if args.repack.asked() {
        if let Some(path) = args.inputs().first() {
            check_options(path, Kind::Arrays)?;
        }
        args.write.force.check(args.output(), args.inputs().iter().chain(&args.ids))?;
        check_name(args.output(), "HDF5", &["nxs", "h5", "hdf5", "fast5"])?;
        let job = RepackJob {
            inputs: args.inputs(),
            output: args.output(),
            verify: args.write.verify,
            as_json: args.write.json,
            options: args.read.options(),
        };
        arrays::repack(&args.repack, job)?;
        args.write.force.remove_old_index(args.output());
        return Ok(());
    }
    let options = counting(args.explain, args.read.options());
    if let Some(named) = fastq::Named::only(args.inputs(), &options)? {
        return convert_fastq(args, named, &options);
    }
    if let Some(path) = args.inputs().first() {
        check_options(path, Kind::Reads)?;
    }
    let control = options.control.clone();
    let format = format(args).map_err(|failure| named_like_arrays(args, failure))?;
    let conversion = args.write.conversion(format, &options)?;
    args.write.check_stream(args.output())?;
    if args.per_file {
        return per_file(args, format, &conversion, &options);
    }
    let set = open_set(args.inputs(), options).map_err(repack_instead)?;
    if is_stream(args.output()) && !args.explain {
        let parts = all_files(&set, &selection(args, &set)?);
        return stream_reads(&set, parts, &conversion);
    }
    args.write.force.check(args.output(), set.paths().chain(args.ids.as_deref()))?;
    let selection = selection(args, &set)?;
    if args.explain {
        let run = ExplainedRun::Ordered;
        return explain::print(&set, &selection, run, &args.prices, args.write.json);
    }
    let _progress = args.write.progress(&control, set.bytes());
    write(args, &set, &selection, args.output(), &conversion)
}

/// The failure for an output without the name of a format of reads. It may be meant for arrays.
fn named_like_arrays(args: &ConvertArgs, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(message) if is_hdf5_name(args.output()) => {
            Failure::Usage(format!("{message}; --repack rewrites HDF5 files of arrays"))
        }
        other => other,
    }
}

/// The failure to open inputs. If they are arrays, another option rewrites them.
fn repack_instead(failure: Failure) -> Failure {
    match failure {
        Failure::Failed(Error::Unsupported { file, what, .. })
            if what.starts_with(WITHOUT_READS) =>
        {
            let advice = "`thalweg convert --repack IN OUT` rewrites files of arrays".into();
            Failure::Failed(Error::Unsupported { file, what, advice })
        }
        other => other,
    }
}

fn convert_fastq(args: &ConvertArgs, named: fastq::Named, options: &Options) -> VerbResult {
    if let Some(path) = args.inputs().first() {
        check_options(path, Kind::Fastq)?;
    }
    if !is_stream(args.output()) {
        args.write.force.check(args.output(), args.inputs())?;
    }
    let job = fastq::ConvertJob {
        to: args.output(),
        single_member: args.single_member,
        level: args.write.level(),
        verify: args.write.verify,
        md5: args.md5,
        as_json: args.write.json,
    };
    let target = job.target()?;
    fastq::convert(&named.open(options)?, target, job)
}

/// Converts each input to a file of its own. Inputs are opened one by one, so that one that is
/// damaged does not keep the others from being converted.
fn per_file(
    args: &ConvertArgs,
    format: Format,
    conversion: &Conversion,
    options: &Options,
) -> VerbResult {
    if args.resume && url(args.output()).is_some() {
        return Err(Failure::Usage("--resume needs a folder of files, and OUT is a URL".into()));
    }
    let inputs = find_reads(args.inputs(), &options.control)?;
    let outputs = outputs(args, format, &inputs)?;
    let bytes = inputs.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
    let _progress = args.write.progress(&options.control, bytes);
    let all = Inputs::new(&inputs);
    for_each_file(inputs.iter().zip(outputs), |(input, path)| {
        if args.resume && is_whole(&path, input, options) {
            if args.write.json {
                print_json(&json!({
                    "schema": "thalweg.convert/1", "output": urls::shown_path(&path),
                    "path": urls::shown_path(&path), "skipped": true,
                }))?;
            }
            return Ok(());
        }
        // Without --resume, all outputs were checked before.
        if args.resume {
            args.write.force.check_one(&path, &all)?;
        }
        let set = open_set(slice::from_ref(input), options.clone()).map_err(repack_instead)?;
        let _folder = path.parent().map(NewFolder::create).transpose()?;
        write(args, &set, &Selection::All, &path, conversion)
    })
}

/// Writes one file.
fn write(
    args: &ConvertArgs,
    set: &ReadSet,
    selection: &Selection,
    path: &Path,
    conversion: &Conversion,
) -> VerbResult {
    let started = Instant::now();
    let report = convert(set, selection, path, conversion)?;
    args.write.force.remove_old_index(path);
    args.write.print_report(path, &report, Some(("skipped", false.into())))?;
    if !args.write.json {
        let reads = counted(report.reads, "read");
        say_done(&format!("converted {reads}"), path, started.elapsed().as_secs_f64());
    }
    Ok(())
}

fn selection(args: &ConvertArgs, set: &ReadSet) -> Result<Selection, Failure> {
    if args.ids.is_none() && !args.sort {
        return Ok(Selection::All);
    }
    if set.paths().len() != 1 {
        return Err(Failure::Usage("--ids and --sort take one file; merge or filter many".into()));
    }
    if let Some(list) = &args.ids {
        return Ok(Selection::Ids(Arc::new(read_ids(list)?)));
    }
    let mut ids = set.file(0)?.read_ids()?;
    ids.sort_unstable();
    Ok(Selection::Ids(Arc::new(ids)))
}
