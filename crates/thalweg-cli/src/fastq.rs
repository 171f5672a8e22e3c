//! Verbs on FASTQ files.

mod checksums;

use std::fmt::Write as _;
use std::io::{Write, stdin};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use thalweg::fastq::{
    Compression, Converted, Count, FastqFile, Record, Summary, Target, is_fastq_name, schema,
};
use thalweg::format::Format;
use thalweg::lengths::LengthStats;
use thalweg::new_file::NewFile;
use thalweg::text::escaped;
use thalweg::{Identified, Opened, Options};
use thalweg_gauge::cache::Residency;
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls;

use checksums::Checksums;

pub(crate) use checksums::Verified;

use crate::common::{
    Failure, VerbResult, complain, counted, listing, output, print_json, shown_path,
};
use crate::digest::hex;
use crate::evict;
use crate::open::identify;
use crate::progress::FetchProgress;
use crate::table_sink::{TableKind, TableSink};
use crate::timing::{Started, received, with_build};

/// The path that stands for the standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

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
        other => Err(other.into_reads().err().unwrap_or(thalweg::Error::Cancelled)),
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

/// The FASTQ file that is the only one of some paths, or on the standard input; `None` if something
/// else is there.
pub(crate) fn only(paths: &[PathBuf], options: &Options) -> Result<Option<FastqFile>, Failure> {
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
        return Ok(Some(from_stdin(options)?));
    }
    // A file of reads would be opened twice.
    if Format::of_path(path).is_some() {
        return Ok(None);
    }
    match identify(path, false, options)?.filter(Identified::is_fastq) {
        Some(identified) => Ok(Some(open(identified, options)?)),
        None => Ok(None),
    }
}

/// What `thalweg read` does with a file.
pub(crate) struct ReadJob<'a> {
    pub(crate) to: Option<&'a Path>,
    pub(crate) digests: bool,
    pub(crate) as_json: bool,
    pub(crate) started: Started,
}

/// Counts, digests or saves the records.
pub(crate) fn read(file: &FastqFile, job: &ReadJob<'_>) -> VerbResult {
    let progress = progress(file);
    if let Some(to) = job.to {
        return save(file, to);
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
    let stored = file.options().control.fetched();
    if job.as_json {
        return print_json(&with_build(json!({
            "workload": "thalweg",
            "open_to_last_s": seconds,
            "cpu_s": cpu_s,
            "reads": reads,
            "bases": bases,
            "threads": file.options().budget.threads,
            "bytes_stored": stored,
            "needed_bytes": stored,
        })));
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

fn save(file: &FastqFile, to: &Path) -> VerbResult {
    let (path, kind) = TableKind::parse_path(&to.to_string_lossy())
        .map_err(|why| Failure::Usage(format!("{}: {why}", shown_path(to))))?;
    let mut sink = TableSink::create(&path, kind, &schema())?;
    for batch in file.batches()? {
        sink.push_long(&batch?, &file.options().control)?;
    }
    sink.finish()
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
        let line = info(path, file.compression(), size, cached, summary.as_ref());
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

fn info(
    path: &Path,
    compression: Compression,
    size: u64,
    cached: &Residency,
    summary: Option<&Summary>,
) -> Value {
    let of = |f: &dyn Fn(&Summary) -> Value| summary.map(f);
    json!({
        "schema": "thalweg.info/1",
        "file": urls::shown_path(path),
        "format": "FASTQ",
        "compression": compression.name(),
        "size_bytes": size,
        "reads": of(&|s| s.reads.into()),
        "bases": of(&|s| s.bases.into()),
        "gc": of(&|s| s.gc.into()),
        "lengths": of(&|s| s.lengths.map_or(Value::Null, |l| json!({
            "n50": l.n50, "min": l.min, "median": l.median, "mean": l.mean, "max": l.max,
        }))),
        "mean_quality": of(&|s| s.mean_quality().into()),
        "q20_bases": of(&|s| s.bases_from(20).into()),
        "q30_bases": of(&|s| s.bases_from(30).into()),
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
    fn target(&self) -> Result<Target, Failure> {
        let name = shown_path(self.to);
        let is_packed = [".gz", ".bgz", ".bgzf"].iter().any(|end| name.ends_with(end));
        if !is_packed && !is_stream(self.to) && !is_fastq_name(self.to) {
            let endings = "the name of FASTQ must end in .fastq or .fq, and .gz for BGZF";
            return Err(Failure::Usage(format!("{name}: {endings}")));
        }
        let level = self.level.unwrap_or(Target::LEVEL.into());
        let most = if self.single_member { 9 } else { 12 };
        if !(0..=most).contains(&level) {
            return Err(Failure::Usage(format!("--level {level}: expected 0 to {most}")));
        }
        match (is_packed, self.single_member) {
            (true, true) => Ok(Target::Gzip(level.unsigned_abs())),
            (true, false) => Ok(Target::Bgzf(level)),
            (false, false) => Ok(Target::Plain),
            (false, true) => Err(Failure::Usage(format!(
                "--single-member is for gzip, and the name {name} does not end in .gz"
            ))),
        }
    }
}

/// Writes the same text in another compression, which the name says. Checksums of the input that
/// lie beside it are verified before the output appears.
pub(crate) fn convert(file: &FastqFile, job: ConvertJob<'_>) -> VerbResult {
    let target = job.target()?;
    let _progress = progress(file);
    let checksums = Checksums::of(file.path(), job.md5, file.options())?;
    let on_stored = checksums.on_stored();
    let (done, verified) = if is_stream(job.to) {
        let mut out = std::io::stdout().lock();
        let failed = |e| thalweg::Error::io(&"standard output".into(), "writing", e);
        let write = |part: &[u8]| out.write_all(part).map_err(failed);
        let done = file.convert(target, job.verify, on_stored, write)?;
        out.flush()?;
        (done, checksums.verify(file.name())?)
    } else {
        let mut out = NewFile::create(job.to)?;
        let done = file.convert(target, job.verify, on_stored, |part| out.push(part))?;
        let verified = checksums.verify(file.name())?;
        out.finish()?;
        (done, verified)
    };
    if is_stream(job.to) || !job.as_json {
        return Ok(());
    }
    let Converted { count, text, written } = done;
    print_json(&json!({
        "output": urls::shown_path(job.to),
        "reads": count.reads,
        "bases": count.bases,
        "text_bytes": text,
        "bytes": written,
        "verified": job.verify,
        "md5": verified.md5,
        "checksums": verified.by,
    }))
}

/// Checks the records of a file, and its checksums that lie beside it.
pub(crate) fn check(file: &FastqFile) -> thalweg::Result<(Count, Verified)> {
    print_note(file);
    let _progress = progress(file);
    let checksums = Checksums::of(file.path(), false, file.options())?;
    let count = file.count_with(checksums.on_stored())?;
    Ok((count, checksums.verify(file.name())?))
}
