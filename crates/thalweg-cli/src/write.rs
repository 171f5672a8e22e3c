//! How `convert`, `filter`, `merge` and `split` write reads.

mod coding;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use thalweg::control::Control;
use thalweg::convert::{Conversion, ConvertReport, Lost, Output, SetPart, make, merged};
use thalweg::format::Format;
use thalweg::reads::{Options, ReadSet, Selection};
use thalweg_io::urls;

use crate::common::{
    Failure, VerbResult, check_not_stdout, complain, counted, is_stream, print_json, stdout_file,
    streamed,
};
use crate::done::{say_done, stored_bytes};
use crate::force::ForceArgs;
use crate::open::{ReadArgs, open_set};
use crate::output_name::check_name;
use crate::progress::FetchProgress;
use crate::timing::add_received;
use coding::CodingArgs;

/// How files of reads are written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    coding: CodingArgs,
    /// Continue if the format cannot hold everything, and list what was lost
    #[arg(long)]
    lossy: bool,
    /// Read the new file, and compare every read, before the file gets its name
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print what was done as JSON, a line for each file written
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) force: ForceArgs,
}

/// The parts of a set with all of its files.
pub(crate) fn all_files(set: &ReadSet, selection: &Selection) -> Vec<SetPart> {
    (0..set.paths().len()).map(|file| SetPart::new(file, selection.clone())).collect()
}

/// Writes reads to standard output.
pub(crate) fn stream_reads(
    set: &ReadSet,
    parts: Vec<SetPart>,
    conversion: &Conversion,
) -> VerbResult {
    let out = Path::new("-");
    if conversion.coding.format() == Format::Fast5 {
        let what = "-: FAST5 cannot be written to standard output; SLOW5, BLOW5 and POD5 can";
        return Err(Failure::Usage(what.into()));
    }
    if conversion.coding.format() != Format::Slow5 && std::io::stdout().is_terminal() {
        let what = "-: the standard output is a terminal, which shows no binary format; > writes \
                    it into a file";
        return Err(Failure::Usage(what.into()));
    }
    check_not_stdout(set.paths())?;
    let output = Output { create: |_| Ok(stdout_file()), ..Output::new(out, merged(set)?) };
    for made in streamed(make(set, parts, vec![output], conversion))? {
        complain_of_losses(out, &streamed(made.publish())?);
    }
    Ok(())
}

/// Says what is missing in a file: what its format could not hold, and what another input had.
fn complain_of_losses(path: &Path, report: &ConvertReport) {
    if report.left_out > 0 {
        let reads = counted(report.left_out, "read");
        complain(&format!("left out: {reads} that a file before, in the order of paths, had"));
    }
    for Lost { what, reads, first } in &report.lost {
        let reads =
            reads.map(|reads| format!(", in {}", counted(reads, "read"))).unwrap_or_default();
        let first = first.as_ref().map(|id| format!(", first in {id}")).unwrap_or_default();
        complain(&format!("{}: lost: {what}{reads}{first}", urls::shown_path(path)));
    }
}

/// The arguments of verbs that read any number of files and write one.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ManyToOneArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The file to write; it appears when it is whole. Its name ends in .slow5, .blow5, .pod5 or
    /// .fast5, or in .fastq or .fastq.gz if FASTQ is read
    #[arg(long, short = 'o', value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// The format, if the name of OUT does not say it
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<Format>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// The names of formats, as an argument.
pub(crate) fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::extension)).try_map(|name| name.parse())
}

/// The format to write: the given one, or else the format that the file's name stands for.
pub(crate) fn format_of(asked: Option<Format>, path: &Path) -> Result<Format, Failure> {
    if let Some(asked) = asked {
        check_name(path, asked.name(), &[asked.extension()])?;
    }
    asked.or(Format::of_path(path)).ok_or_else(|| {
        let path = urls::shown_path(path);
        let endings = "the name must end in .slow5, .blow5, .pod5 or .fast5";
        Failure::Usage(format!("{path}: {endings}, or --to must say which"))
    })
}

impl WriteArgs {
    /// The conversion to a format. Files that are to be verified are read with `options`.
    pub(crate) fn conversion(
        &self,
        format: Format,
        options: &Options,
    ) -> Result<Conversion, Failure> {
        let verify = self.verify.then(|| options.clone());
        Ok(Conversion {
            coding: self.coding.coding(format)?,
            copy: !self.coding.recodes(),
            lossy: self.lossy,
            verify,
            takes_first: false,
        })
    }

    /// Refuses what can only be done with files, if the output is standard output.
    pub(crate) fn check_stream(&self, out: &Path) -> VerbResult {
        if is_stream(out) && (self.verify || self.json || self.force.is_given()) {
            let what = "-: --verify, --json and --force are for files, and not for standard output";
            return Err(Failure::Usage(what.into()));
        }
        Ok(())
    }

    /// The level of the compression, if it is given.
    pub(crate) fn level(&self) -> Option<i32> {
        self.coding.level()
    }

    /// Shows the progress of reading `bytes` and writing, which --verify doubles.
    pub(crate) fn progress(&self, control: &Control, bytes: u64) -> FetchProgress {
        FetchProgress::watch(control, if self.verify { bytes * 2 } else { bytes })
    }

    /// Prints what was lost, and with --json what was written. `more` is added to the JSON.
    pub(crate) fn print_report(
        &self,
        path: &Path,
        report: &ConvertReport,
        more: Option<(&str, Value)>,
    ) -> VerbResult {
        complain_of_losses(path, report);
        if !self.json {
            return Ok(());
        }
        let lost =
            |lost: &Lost| json!({ "what": lost.what, "reads": lost.reads, "first": lost.first });
        let mut line = json!({
            "schema": "thalweg.convert/1",
            "output": urls::shown_path(path),
            "path": urls::shown_path(path),
            "bytes_stored": stored_bytes(path),
            "reads": report.reads,
            "samples": report.samples,
            "verified": report.verified,
            "lost": report.lost.iter().map(lost).collect::<Vec<_>>(),
        });
        if let (Some(line), Some((name, value))) = (line.as_object_mut(), more) {
            line.insert(name.to_owned(), value);
        }
        add_received(&mut line);
        print_json(&line)
    }
}

impl ManyToOneArgs {
    /// Opens the files, and writes the reads that `choose` selects from them. It returns how many
    /// reads it looked at, too, if it knows. `done`: what was done, in a word. `lists`: what else
    /// is read, and so must not be written. `takes_first`: as in [`Conversion`].
    pub(crate) fn run(
        &self,
        done: &str,
        lists: &[&Path],
        options: Options,
        takes_first: bool,
        choose: impl FnOnce(&ReadSet) -> Result<(Vec<SetPart>, Option<u64>), Failure>,
    ) -> VerbResult {
        let started = Instant::now();
        let control = options.control.clone();
        self.write.check_stream(&self.out)?;
        let conversion = self.write.conversion(format_of(self.to, &self.out)?, &options)?;
        let conversion = Conversion { takes_first, ..conversion };
        let set = open_set(&self.paths, options)?;
        if is_stream(&self.out) {
            let (parts, _) = choose(&set)?;
            return stream_reads(&set, parts, &conversion);
        }
        self.write.force.check(&self.out, set.paths().chain(lists.iter().copied()))?;
        let mut progress = Some(self.write.progress(&control, set.bytes()));
        let (parts, of) = choose(&set)?;
        let output = Output::new(&self.out, merged(&set)?);
        let of = of.map_or(String::new(), |of| format!(" of {of}"));
        let files = counted(set.paths().len() as u64, "file");
        for made in make(&set, parts, vec![output], &conversion)? {
            let report = made.publish()?;
            drop(progress.take());
            self.write.force.remove_old_index(&self.out);
            self.write.print_report(&self.out, &report, None)?;
            if !self.write.json {
                let reads = if of.is_empty() {
                    counted(report.reads, "read")
                } else {
                    format!("{}{of} reads", report.reads)
                };
                let what = format!("{done} {reads} of {files}");
                say_done(&what, &self.out, started.elapsed().as_secs_f64());
            }
        }
        Ok(())
    }
}
