//! Verbs on FASTQ files.

mod checksums;

use std::fmt::Write as _;
use std::io::{Write, stdin};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use thalweg::fastq::{
    Compression, Converted, Count, FastqFile, Filtered, Parts, Record, Summary, Target,
    is_fastq_name, schema,
};
use thalweg::format::Format;
use thalweg::lengths::LengthStats;
use thalweg::new_file::{NewFile, remove};
use thalweg::reads::pattern;
use thalweg::text::escaped;
use thalweg::{Identified, Opened, Options};
use thalweg_gauge::cache::Residency;
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls::{self, url};

use checksums::Checksums;

pub(crate) use checksums::Verified;

use crate::common::{
    Failure, VerbResult, complain, counted, is_stream, listing, output, print_json, print_line,
    shown_path, streamed, to_stdout,
};
use crate::digest::hex;
use crate::done::say_done;
use crate::evict;
use crate::force::check_free;
use crate::open::identify;
use crate::progress::FetchProgress;
use crate::table_sink::{TableOut, TableSink};
use crate::timing::{Started, received, with_build};

/// FASTQ on the standard input.
pub(crate) fn from_stdin(options: &Options) -> thalweg::Result<FastqFile> {
    FastqFile::from_stream("standard input", stdin(), options.clone())
}

/// A file that [is FASTQ](Identified::is_fastq).
pub(crate) fn open(identified: Identified, options: &Options) -> thalweg::Result<FastqFile> {
    match identified.open(options.clone())? {
        Opened::Fastq(file) => {
            print_note(&file);
            Ok(file)
        }
        _ => Err(thalweg::Error::Usage("what was identified as FASTQ is something else".into())),
    }
}

fn print_note(file: &FastqFile) {
    if let Some(note) = file.note() {
        complain(&note);
    }
}

fn progress(file: &FastqFile) -> FetchProgress {
    FetchProgress::watch(&file.options().control, file.size().unwrap_or(0))
}

/// FASTQ that was named, and not read yet.
pub(crate) enum Named {
    File(Identified),
    Stream,
}

impl Named {
    /// The FASTQ file that is the only one of some paths, or the standard input; `None` if
    /// something else is there.
    pub(crate) fn only(paths: &[PathBuf], options: &Options) -> Result<Option<Self>, Failure> {
        let [path] = paths else {
            return match paths.iter().find(|path| is_fastq_name(path)) {
                Some(path) => {
                    let path = shown_path(path);
                    Err(Failure::Usage(format!("{path}: FASTQ files are taken one at a time")))
                }
                None => Ok(None),
            };
        };
        if is_stream(path) {
            return Ok(Some(Self::Stream));
        }
        // A file of reads would be opened twice.
        if Format::of_path(path).is_some() {
            return Ok(None);
        }
        match identify(path, false, options)? {
            Some(identified) => Ok(Some(identified).filter(Identified::is_fastq).map(Self::File)),
            // It says what is wrong with the path.
            None if is_fastq_name(path) && url(path).is_none() && pattern(path).is_none() => {
                Ok(Some(Self::File(Identified::new(path, options)?)))
            }
            None => Ok(None),
        }
    }

    pub(crate) fn open(self, options: &Options) -> thalweg::Result<FastqFile> {
        match self {
            Self::File(identified) => open(identified, options),
            Self::Stream => from_stdin(options),
        }
    }
}

/// What `thalweg read` does with a file.
pub(crate) struct ReadJob<'a> {
    pub(crate) to: Option<TableOut<'a>>,
    pub(crate) digests: bool,
    pub(crate) as_json: bool,
    pub(crate) started: Started,
}

/// Counts, digests or saves the records.
pub(crate) fn read(file: &FastqFile, job: &ReadJob<'_>) -> VerbResult {
    let progress = progress(file);
    if let Some(to) = job.to {
        let reads = save(file, to)?;
        drop(progress);
        let (took_s, cpu_s) = job.started.seconds();
        if job.as_json {
            return print_json(&json!({
                "schema": "thalweg.table/1", "path": file.name(), "to": shown_path(to.path),
                "reads": reads, "open_to_last_s": took_s, "cpu_s": cpu_s,
            }));
        }
        say_done(&counted(reads, "read"), to.path, took_s);
        return Ok(());
    }
    if job.digests {
        let mut out = listing();
        for row in file.map(row)? {
            writeln!(out, "{}", row?)?;
        }
        out.flush()?;
        return Ok(());
    }
    let Count { reads, bases } = file.count()?;
    let (seconds, cpu_s) = job.started.seconds();
    drop(progress);
    let stored = file.stored_bytes();
    if job.as_json {
        let report = json!({
            "workload": "thalweg",
            "open_to_last_s": seconds,
            "cpu_s": cpu_s,
            "reads": reads,
            "bases": bases,
            "threads": file.options().budget.threads,
            "bytes_stored": stored,
            "needed_bytes": stored,
        });
        return print_json(&with_build(report, [file.name().to_string()]));
    }
    let mut out = output();
    let (reads, bases) = (counted(reads, "read"), counted(bases, "base"));
    writeln!(out, "{reads}, {bases}, {} stored in {seconds:.3} s", decimal_bytes(stored as f64))?;
    if let Some(received) = received() {
        writeln!(out, "{received}")?;
    }
    out.flush()?;
    Ok(())
}

/// The name is escaped, so that a row is one line with three columns:
/// `name<TAB>bases<TAB>sha256 of the sequence, a line break, and the qualities`.
fn row(record: &Record<'_>) -> String {
    let mut hash = Sha256::new();
    hash.update(record.sequence);
    hash.update(b"\n");
    hash.update(record.qualities);
    let hash = hex(&hash.finalize());
    format!("{}\t{}\t{hash}", escaped(record.name()), record.sequence.len())
}

/// Writes a table. Returns how many records it has.
fn save(file: &FastqFile, to: TableOut<'_>) -> Result<u64, Failure> {
    let mut sink = TableSink::create(to, &schema())?;
    let mut reads = 0;
    for batch in file.batches()? {
        let batch = batch?;
        reads += batch.num_rows() as u64;
        sink.push_long(&batch, &file.options().control)?;
    }
    sink.finish()?;
    Ok(reads)
}

/// What a file is, as a line of JSON or in words. With `count` it is read.
pub(crate) fn describe(
    path: &Path,
    file: &FastqFile,
    cached: &Residency,
    as_json: bool,
    count: bool,
) -> Result<String, Failure> {
    print_note(file);
    let summary = match count {
        true => {
            let _progress = progress(file);
            Some(file.summary()?)
        }
        false => None,
    };
    let size = file.size().unwrap_or(0);
    if as_json {
        let line = info(path, file, cached, summary.as_ref());
        return Ok(format!("{line}\n"));
    }
    let mut words = format!("{}\n", shown_path(path));
    let mut line = |name: &str, value: &str| {
        // Writing to text cannot fail.
        let _ = writeln!(words, "  {name:<12} {value}");
    };
    line("format", "FASTQ");
    line("compression", file.compression().name());
    line("size", &decimal_bytes(size as f64));
    match &summary {
        Some(summary) => in_words(summary, &mut line),
        None => line("reads", "unknown: --count reads the file"),
    }
    line("cached", &format!("{}; {}", evict::cached(cached), evict::method(&cached.method)));
    Ok(words)
}

fn in_words(summary: &Summary, line: &mut dyn FnMut(&str, &str)) {
    let Summary { reads, bases, lengths, gc, .. } = summary;
    line("reads", &reads.to_string());
    line("bases", &bases.to_string());
    if let Some(LengthStats { n50, min, median, mean, max }) = lengths {
        let words = format!("{min} to {max}, median {median}, mean {mean:.1}, N50 {n50}");
        line("lengths", &words);
    }
    if let Some(quality) = summary.mean_quality() {
        let percent = |of: u64| of as f64 / *bases as f64 * 100.0;
        let (q20, q30) = (percent(summary.bases_from(20)), percent(summary.bases_from(30)));
        line("GC", &format!("{:.1} %", percent(*gc)));
        let words = format!("mean {quality:.1}, {q20:.1} % from Q20 on, {q30:.1} % from Q30 on");
        line("quality", &words);
    }
}

fn info(path: &Path, file: &FastqFile, cached: &Residency, summary: Option<&Summary>) -> Value {
    let of = |f: &dyn Fn(&Summary) -> Value| summary.map(f);
    json!({
        "schema": "thalweg.info/1",
        "file": urls::shown_path(path),
        "path": urls::shown_path(path),
        "format": "FASTQ",
        "compression": file.compression().name(),
        "size_bytes": file.size(),
        "bytes_stored": file.size(),
        "reads": of(&|s| s.reads.into()),
        "bases": of(&|s| s.bases.into()),
        "gc": of(&|s| s.gc.into()),
        "lengths": of(&|s| s.lengths.map_or(Value::Null, |l| json!({
            "n50": l.n50, "min": l.min, "median": l.median, "mean": l.mean, "max": l.max,
        }))),
        "mean_quality": of(&|s| s.mean_quality().into()),
        "q20_bases": of(&|s| s.bases_from(20).into()),
        "q30_bases": of(&|s| s.bases_from(30).into()),
        "note": file.note(),
        "cached": cached,
        "cached_share": cached.fraction(),
    })
}

/// How `thalweg convert` writes a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConvertJob<'a> {
    pub(crate) to: &'a Path,
    /// One gzip member, where gzip is written.
    pub(crate) single_member: bool,
    pub(crate) level: Option<i32>,
    pub(crate) verify: bool,
    /// Calculate the MD5 of the input.
    pub(crate) md5: bool,
    pub(crate) as_json: bool,
}

impl ConvertJob<'_> {
    /// The compression that the name of the output stands for.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a name or options that do not fit.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        let name = shown_path(self.to);
        let compression = match is_stream(self.to) {
            true => Some(Compression::Plain),
            false => Compression::of_name(self.to),
        };
        let level = self.level.unwrap_or(Target::LEVEL.into());
        let target = match compression {
            None => {
                let endings = "the name of FASTQ must end in .fastq or .fq, and .gz for BGZF";
                return Err(Failure::Usage(format!("{name}: {endings}")));
            }
            Some(Compression::Plain) => {
                let options = [
                    ("--single-member", self.single_member),
                    ("--level", self.level.is_some()),
                    ("--verify", self.verify),
                ];
                if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
                    let why = "the name of the output does not end in .gz";
                    return Err(Failure::Usage(format!("{name}: {option} is for gzip, and {why}")));
                }
                Target::Plain
            }
            // A level below 0 is refused as one that is too high is.
            Some(_) if self.single_member => Target::Gzip(u32::try_from(level).unwrap_or(u32::MAX)),
            Some(_) => Target::Bgzf(level),
        };
        target.check().map_err(Failure::of_argument)?;
        if is_stream(self.to) && self.as_json {
            return Err(Failure::Usage("--json is for an output that is a file".into()));
        }
        Ok(target)
    }
}

/// Writes the same text in another compression, which the name says. Checksums of the input that
/// lie beside it are verified before a file appears; on the standard output it is too late.
pub(crate) fn convert(file: &FastqFile, target: Target, job: ConvertJob<'_>) -> VerbResult {
    let started = Instant::now();
    let progress = progress(file);
    let checksums = Checksums::of(file.path(), job.md5, file.options())?;
    let on_stored = checksums.on_stored();
    if is_stream(job.to) {
        streamed(file.convert(target, job.verify, on_stored, to_stdout))?;
        checksums.verify(file.name())?;
        return Ok(());
    }
    let mut out = NewFile::create(job.to)?;
    let done = file.convert(target, job.verify, on_stored, |part| out.push(part))?;
    let verified = checksums.verify(file.name())?;
    out.finish()?;
    drop(progress);
    let Converted { count, text, written } = done;
    if !job.as_json {
        let reads = counted(count.reads, "read");
        say_done(&format!("converted {reads}"), job.to, started.elapsed().as_secs_f64());
        return Ok(());
    }
    let mut line = written_file(job.to, count, written, job.verify);
    line["text_bytes"] = text.into();
    line["bytes"] = written.into();
    line["md5"] = json!(verified.md5);
    line["checksums"] = json!(verified.by);
    print_json(&line)
}

/// Writes the records for which `keep` holds. `check` may fail before a file appears.
pub(crate) fn filter(
    file: &FastqFile,
    target: Target,
    job: ConvertJob<'_>,
    keep: impl Fn(&Record<'_>) -> bool + Send + Sync + 'static,
    check: impl FnOnce() -> VerbResult,
) -> VerbResult {
    let started = Instant::now();
    let progress = progress(file);
    if is_stream(job.to) {
        streamed(file.filter(target, job.verify, keep, to_stdout))?;
        return check();
    }
    let mut out = NewFile::create(job.to)?;
    let done = file.filter(target, job.verify, keep, |part| out.push(part))?;
    check()?;
    out.finish()?;
    drop(progress);
    let Filtered { all, kept, written } = done;
    if !job.as_json {
        let reads = counted(all.reads, "read");
        let what = format!("kept {} of {reads}", kept.reads);
        say_done(&what, job.to, started.elapsed().as_secs_f64());
        return Ok(());
    }
    let mut line = written_file(job.to, kept, written, job.verify);
    line["reads_before"] = all.reads.into();
    print_json(&line)
}

/// What JSON says of a file that was written.
fn written_file(path: &Path, count: Count, written: u64, verified: bool) -> Value {
    json!({
        "schema": "thalweg.convert/1",
        "output": urls::shown_path(path),
        "path": urls::shown_path(path),
        "bytes_stored": written,
        "reads": count.reads,
        "bases": count.bases,
        "verified": verified,
    })
}

/// How `thalweg split` writes a file.
pub(crate) struct SplitJob<'a> {
    pub(crate) to: &'a Path,
    /// Records of each new file.
    pub(crate) reads: u64,
    /// The most files.
    pub(crate) most: usize,
    pub(crate) level: Option<i32>,
    pub(crate) verify: bool,
    pub(crate) as_json: bool,
}

/// The files that were made, and the one that is written.
struct NewParts<'a> {
    job: &'a SplitJob<'a>,
    end: &'static str,
    made: Vec<(PathBuf, Count, u64)>,
    open: Option<(PathBuf, NewFile)>,
}

impl Parts for NewParts<'_> {
    fn begin(&mut self) -> thalweg::Result<()> {
        let most = self.job.most;
        if self.made.len() == most {
            let why = format!("over {most} files would be made; --most N allows more");
            return Err(thalweg::Error::Usage(why.into()));
        }
        let path = self.job.to.join(format!("part-{:05}.{}", self.made.len(), self.end));
        check_free(&path)?;
        let file = NewFile::create(&path)?;
        self.open = Some((path, file));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> thalweg::Result<()> {
        self.open.as_mut().map_or(Ok(()), |(_, file)| file.push(bytes))
    }

    fn end(&mut self, count: Count) -> thalweg::Result<()> {
        let Some((path, file)) = self.open.take() else { return Ok(()) };
        let written = file.len();
        file.finish()?;
        self.made.push((path, count, written));
        Ok(())
    }
}

/// Writes the records into files of some records each. If anything fails, no new file stays.
pub(crate) fn split(file: &FastqFile, job: &SplitJob<'_>) -> VerbResult {
    let started = Instant::now();
    let progress = progress(file);
    let (target, end) = match file.compression() {
        Compression::Plain if job.level.is_some() || job.verify => {
            let option = if job.verify { "--verify" } else { "--level" };
            let why = format!("{}: {option} is for gzip, and this is plain text", file.name());
            return Err(Failure::Usage(why));
        }
        Compression::Plain => (Target::Plain, "fastq"),
        _ => (Target::Bgzf(job.level.unwrap_or(Target::LEVEL.into())), "fastq.gz"),
    };
    let mut parts = NewParts { job, end, made: Vec::new(), open: None };
    let done = file.split(target, job.verify, job.reads, &mut parts);
    let NewParts { made, open, .. } = parts;
    // What is not finished has no name yet.
    drop(open);
    let all = done.map_err(|error| {
        for (path, ..) in &made {
            let _ = remove(path);
        }
        match error {
            thalweg::Error::Usage(_) => Failure::of_argument(error),
            error => error.into(),
        }
    })?;
    drop(progress);
    for (number, (path, count, written)) in made.iter().enumerate() {
        if job.as_json {
            let mut line = written_file(path, *count, *written, job.verify);
            line["value"] = number.into();
            print_json(&line)?;
        } else {
            print_line(&format!("{}\t{}", shown_path(path), counted(count.reads, "read")))?;
        }
    }
    if !job.as_json {
        let (reads, files) = (counted(all.reads, "read"), counted(made.len() as u64, "file"));
        let what = format!("split {reads} into {files}");
        say_done(&what, job.to, started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Checks the records of a file, and its checksums that lie beside it.
pub(crate) fn check(file: &FastqFile) -> thalweg::Result<(Count, Verified)> {
    print_note(file);
    let _progress = progress(file);
    let checksums = Checksums::of(file.path(), false, file.options())?;
    let count = file.count_with(checksums.on_stored())?;
    Ok((count, checksums.verify(file.name())?))
}
