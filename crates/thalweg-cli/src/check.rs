//! `thalweg check`: what is wrong with a file, and what can be saved of it.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thalweg::arrays::ArrayCheck;
use thalweg::fastq::Count;
use thalweg::format::Format;
use thalweg::reads::{CheckReport, IndexState, LostReads, ReadFile};
use thalweg::text::Shown;
use thalweg::{Error, Opened, Options};
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls;

use crate::common::{Failure, VerbResult, complain, counted, output, shown_path};
use crate::fastq::{self, Verified};
use crate::force::ForceArgs;
use crate::open::{ReadArgs, find_all};
use crate::options::{Kind, check as check_options};
use crate::output_name::check_name;
use crate::progress::FetchProgress;

/// Check files: decode every record or array, list what is damaged, and save what is intact
///
/// The exit code is 0 if all files are whole, and 1 if one is damaged, salvaged or not. Where a
/// format has no checksums, as for the signal of POD5 and for uncompressed records of BLOW5, values
/// that were altered but still decode cannot be told from others.
///
/// FASTQ files are decompressed, and every record is checked. If FILE.md5 or FILE.sha256 is there,
/// the file must have this checksum.
///
/// Example: thalweg check reads.blow5 --salvage saved.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Files of reads, FASTQ and arrays; folders, which are searched for all of them by the ends of
    /// names; patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write every intact record to OUT, as it is stored; of one file only
    #[arg(long, value_name = "OUT")]
    salvage: Option<PathBuf>,
    /// Print one JSON line for each file
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// The schema of a line of JSON.
const SCHEMA: &str = "thalweg.check/1";

/// Defects and losses that are printed for each file; JSON has more.
const SHOWN: usize = 10;

pub(crate) fn run(args: &CheckArgs) -> VerbResult {
    let options = args.read.options();
    let files = find_all(&args.paths, &options.control)?;
    if args.salvage.is_some() && files.len() > 1 {
        return Err(Failure::Usage("--salvage is for one file at a time".into()));
    }
    if let Some(out) = &args.salvage {
        args.force.check(out, &files)?;
    }
    let mut out = output();
    let mut damaged = 0;
    for path in &files {
        match check(path, args, &options) {
            Ok(outcome) => {
                damaged += usize::from(!outcome.is_whole());
                if args.json {
                    writeln!(out, "{}", outcome.as_json(path))?;
                } else {
                    outcome.print(&mut out, path, args.salvage.as_deref())?;
                }
            }
            // One file that cannot be read must not hide what is wrong with the others.
            Err(Failure::Failed(error)) if !matches!(error, Error::Cancelled) => {
                damaged += 1;
                complain(&error);
                if args.json {
                    writeln!(
                        out,
                        "{}",
                        json!({
                            "schema": SCHEMA, "file": urls::shown_path(path),
                            "path": urls::shown_path(path), "whole": false,
                            "error": error.to_string(),
                        })
                    )?;
                }
            }
            Err(failure) => return Err(failure),
        }
        out.flush()?;
    }
    match damaged {
        0 => Ok(()),
        n => {
            let files = counted(files.len() as u64, "file");
            Err(Failure::Said(format!("{n} of {files} damaged or unreadable")))
        }
    }
}

/// What was found in a file.
enum Outcome {
    Reads(CheckReport),
    Arrays(ArrayCheck),
    Fastq(Count, Verified, Option<String>),
}

impl Outcome {
    fn is_whole(&self) -> bool {
        match self {
            Self::Reads(report) => report.is_whole(),
            Self::Arrays(report) => report.is_whole(),
            // A defect is an error, for nothing can be read after it.
            Self::Fastq(..) => true,
        }
    }

    fn as_json(&self, path: &Path) -> Value {
        match self {
            Self::Reads(report) => as_json(path, report),
            Self::Arrays(report) => arrays_as_json(path, report),
            Self::Fastq(count, verified, note) => json!({
                "schema": SCHEMA, "file": urls::shown_path(path),
                "path": urls::shown_path(path), "whole": true,
                "reads": count.reads, "bases": count.bases,
                "checksums": verified.by, "note": note,
            }),
        }
    }

    fn print(
        &self,
        out: &mut impl Write,
        path: &Path,
        salvaged: Option<&Path>,
    ) -> std::io::Result<()> {
        let verdict = if self.is_whole() { "whole" } else { "damaged" };
        write!(out, "{}: {verdict}; ", shown_path(path))?;
        match self {
            Self::Reads(report) => print(out, path, report, salvaged),
            Self::Arrays(report) => print_arrays(out, path, report),
            Self::Fastq(Count { reads, bases }, verified, _) => {
                write!(out, "{}, {}", counted(*reads, "read"), counted(*bases, "base"))?;
                for from in &verified.by {
                    write!(out, "; as {} says", Shown(from))?;
                }
                writeln!(out)
            }
        }
    }
}

fn check(path: &Path, args: &CheckArgs, options: &Options) -> Result<Outcome, Failure> {
    let is_kind = |kind| check_options(path, kind);
    let file = if Format::of_path(path).is_some() {
        // `thalweg::open` would refuse a damaged FAST5 file from which reads can be salvaged.
        ReadFile::open(path, options.clone())?
    } else {
        match thalweg::open(path, options.clone())? {
            Opened::Arrays(file) => {
                is_kind(Kind::Arrays)?;
                let _progress = FetchProgress::watch(&options.control, file.store().size());
                return Ok(Outcome::Arrays(file.check()?));
            }
            Opened::Fastq(file) => {
                is_kind(Kind::Fastq)?;
                let (count, verified) = fastq::check(&file)?;
                return Ok(Outcome::Fastq(count, verified, file.note().map(str::to_owned)));
            }
            other => other.into_reads()?,
        }
    };
    is_kind(Kind::Reads)?;
    if let Some(out) = &args.salvage {
        let format = file.format();
        check_name(out, format.name(), &[format.extension()])?;
    }
    let _progress = FetchProgress::watch(&options.control, file.store().size());
    let report = match &args.salvage {
        Some(out) => file.salvage(out).inspect(|_| args.force.remove_old_index(out)),
        None => file.check(),
    };
    report.map(Outcome::Reads).map_err(Failure::of_argument)
}

fn print_arrays(out: &mut impl Write, path: &Path, report: &ArrayCheck) -> std::io::Result<()> {
    let datasets = counted(report.datasets, "dataset");
    writeln!(out, "{datasets}, {} decode", decimal_bytes(report.bytes as f64))?;
    print_defects(out, path, &report.defects, report.defects.len() as u64)?;
    for what in report.not_checked.iter().take(SHOWN) {
        writeln!(out, "  not checked: {}", Shown(what))?;
    }
    if report.not_checked.len() > SHOWN {
        writeln!(
            out,
            "  ... {} are not checked",
            counted(report.not_checked.len() as u64, "dataset")
        )?;
    }
    Ok(())
}

fn arrays_as_json(path: &Path, report: &ArrayCheck) -> Value {
    json!({
        "schema": SCHEMA,
        "file": urls::shown_path(path),
        "path": urls::shown_path(path),
        "whole": report.is_whole(),
        "objects": report.objects,
        "datasets": report.datasets,
        "bytes_decoded": report.bytes,
        "defects": report.defects.iter().map(defect_json).collect::<Vec<Value>>(),
        "not_checked": report.not_checked,
    })
}

/// Prints the first defects out of `count`.
fn print_defects(
    out: &mut impl Write,
    path: &Path,
    defects: &[Error],
    count: u64,
) -> std::io::Result<()> {
    for defect in defects.iter().take(SHOWN) {
        match defect {
            Error::Malformed { file, what, offset, found, expected }
                if **file == *urls::shown_path(path) =>
            {
                let found = format!("found {found}, expected {expected}");
                writeln!(out, "  byte {offset}, {}: {}", Shown(what), Shown(found))?;
            }
            other => writeln!(out, "  {other}")?,
        }
    }
    if count > SHOWN as u64 {
        writeln!(out, "  ... {count} defects in all")?;
    }
    Ok(())
}

fn print(
    out: &mut impl Write,
    path: &Path,
    report: &CheckReport,
    salvaged: Option<&Path>,
) -> std::io::Result<()> {
    let CheckReport { reads, samples, defect_count, .. } = report;
    let [reads, samples] = [counted(*reads, "read"), counted(*samples, "sample")];
    writeln!(out, "{reads}, {samples} decode")?;
    print_defects(out, path, &report.defects, *defect_count)?;
    for lost in report.lost.iter().take(SHOWN) {
        writeln!(out, "  lost: bytes {} to {}", lost.start, lost.end)?;
    }
    if report.lost_bytes > 0 || report.lost_reads != LostReads::Known(0) {
        let reads = match report.lost_reads {
            LostReads::Known(n) => counted(n, "read"),
            LostReads::AtLeast(n) => format!("at least {}", counted(n, "read")),
        };
        let bytes = counted(report.lost_bytes, "byte");
        writeln!(out, "  lost in all: {bytes}, {reads}")?;
    }
    if let Some(salvaged) = salvaged {
        let reads = counted(report.salvaged, "read");
        writeln!(out, "  salvaged: {reads} in {}", shown_path(salvaged))?;
        for what in &report.left_out {
            writeln!(out, "  not salvaged: {}", Shown(what))?;
        }
    }
    Ok(())
}

fn as_json(path: &Path, report: &CheckReport) -> Value {
    let defects: Vec<Value> = report.defects.iter().map(defect_json).collect();
    let lost: Vec<Value> =
        report.lost.iter().map(|range| json!([range.start, range.end])).collect();
    let (lost_reads, exact) = match report.lost_reads {
        LostReads::Known(n) => (n, true),
        LostReads::AtLeast(n) => (n, false),
    };
    json!({
        "schema": SCHEMA,
        "file": urls::shown_path(path),
        "path": urls::shown_path(path),
        "whole": report.is_whole(),
        "reads": report.reads,
        "samples": report.samples,
        "defect_count": report.defect_count,
        "defects": defects,
        "lost": lost,
        "lost_bytes": report.lost_bytes,
        "lost_reads": lost_reads,
        "lost_reads_exact": exact,
        "index": match report.index {
            IndexState::Absent => "absent",
            IndexState::Consistent => "consistent",
            IndexState::Wrong => "wrong",
        },
        "salvaged": report.salvaged,
        "left_out": report.left_out,
    })
}

fn defect_json(defect: &Error) -> Value {
    match defect {
        Error::Malformed { file, what, offset, found, expected } => {
            json!({
                "file": **file, "what": what, "offset": offset, "found": found,
                "expected": expected,
            })
        }
        other => json!({ "message": other.to_string() }),
    }
}
