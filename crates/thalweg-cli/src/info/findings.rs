//! Findings about the layout of a file of reads that costs time: a short code for programs, and
//! words.

use thalweg::format::Format;
use thalweg::format::slow5::{Encoding, Framing, Header, RecordPress, SignalPress};
use thalweg::model::StoreModel;
use thalweg::plan::GapRule;
use thalweg::reads::ReadFile;
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls::shown;

use crate::common::Failure;

/// A code, and words.
pub(crate) type LayoutFinding = (&'static str, String);

/// Whether a file is laid out record by record, with an index beside it. POD5 and FAST5 list their
/// reads in the file itself.
fn has_records(file: &ReadFile) -> bool {
    matches!(file.format(), Format::Slow5 | Format::Blow5)
}

/// The mean length of a record, if the number of reads is known.
pub(super) fn mean_record_bytes(file: &ReadFile, reads: Option<u64>) -> Option<f64> {
    let header = file.header();
    let end = Framing::new(header.encoding).end_marker();
    let size = file.store().size();
    let data = size.saturating_sub(header.data_offset).saturating_sub(end.len() as u64);
    reads.filter(|&reads| reads > 0).map(|reads| data as f64 / reads as f64)
}

/// The number of reads of a file, if it is known without reading the file, and findings about the
/// index or table that holds the number.
pub(crate) fn known_reads(file: &ReadFile) -> Result<(Option<u64>, Vec<LayoutFinding>), Failure> {
    match file.known_reads() {
        Ok(Some(reads)) => Ok((Some(reads), Vec::new())),
        Ok(None) if has_records(file) => Ok((None, vec![without_index(file)?])),
        Ok(None) => Ok((None, Vec::new())),
        Err(thalweg::Error::Cancelled) => Err(thalweg::Error::Cancelled.into()),
        // A file with a damaged table or a damaged index can still be described.
        Err(error) if file.format() == Format::Pod5 => {
            let words = format!("{error}; `thalweg check` says what is left");
            Ok((None, vec![("damaged", words)]))
        }
        Err(error) => {
            let words = format!("{error}; `thalweg index` makes another in its place");
            Ok((None, vec![("bad_index", words)]))
        }
    }
}

/// The finding about a file without an index here. One may lie beside an object, from where the
/// first read by id fetches it.
fn without_index(file: &ReadFile) -> Result<LayoutFinding, Failure> {
    let reads_all = "the first read by id reads the whole file";
    let Some(beside) = file.index_beside()? else {
        return Ok(("no_index", format!("there is no index: {reads_all}; run `thalweg index`")));
    };
    let url = shown(&beside.url);
    if !beside.is_current {
        let words = format!(
            "the index {url} is older than the object, and so not used: {reads_all}; make a new \
             one with `thalweg index`"
        );
        return Ok(("old_index", words));
    }
    let size = decimal_bytes(beside.size as f64);
    let words = format!("the first read by id fetches the index {url} ({size}), if it fits");
    Ok(("index_beside", words))
}

/// Whether the last bytes are those of a file that was finished.
fn ends_properly(file: &ReadFile, end: &[u8]) -> Result<bool, Failure> {
    let size = file.store().size();
    // A text file ends with the newline of its last row.
    let end = if end.is_empty() { b"\n" } else { end };
    let mut last = vec![0; end.len()];
    let at = size.checked_sub(end.len() as u64).filter(|&at| at + 1 >= file.header().data_offset);
    let Some(at) = at else { return Ok(false) };
    file.store().read_at(at, &mut last)?;
    Ok(last == end)
}

/// Findings about the layout of a file's records. `reads`: the number of reads, if it is known.
pub(crate) fn record_findings(
    file: &ReadFile,
    reads: Option<u64>,
) -> Result<Vec<LayoutFinding>, Failure> {
    let header = file.header();
    let mut findings = Vec::new();
    if !has_records(file) {
        return Ok(findings);
    }
    let end = Framing::new(header.encoding).end_marker();
    if !ends_properly(file, end)? {
        let end = if header.encoding == Encoding::Binary { "its end marker" } else { "a newline" };
        let words =
            format!("the file does not end with {end}: it is truncated, or still being written");
        findings.push(("no_end", words));
    }
    if header.encoding == Encoding::Ascii {
        let words = "text is larger and slower to read than BLOW5; `thalweg convert` makes one";
        findings.push(("text", words.into()));
        return Ok(findings);
    }
    findings.extend(press_findings(header));
    let (model, _) = file.model();
    let mean = mean_record_bytes(file, reads);
    findings.extend(mean.and_then(|mean| small_records(mean, &model)));
    Ok(findings)
}

/// Findings about the compression of records: what costs time, or what other programs cannot read.
fn press_findings(header: &Header) -> Vec<LayoutFinding> {
    let mut findings = Vec::new();
    let record = header.record_press;
    let signal = header.signal_press;
    if !record.is_released() || !signal.is_released() {
        let words =
            format!("no released version of slow5lib reads record {record} with signal {signal}");
        findings.push(("unreleased", words));
    }
    match record {
        RecordPress::Zlib => {
            let words = "zlib is slower to decode than zstd, for about the same size";
            findings.push(("zlib", words.into()));
        }
        RecordPress::None if signal == SignalPress::None => {
            let words = "nothing is compressed: the file is about twice as large as it need be";
            findings.push(("uncompressed", words.into()));
        }
        _ => {}
    }
    findings
}

/// The finding about records that are smaller than the gaps that are read rather than skipped.
fn small_records(mean: f64, model: &StoreModel) -> Option<LayoutFinding> {
    let gap = GapRule::new(model).break_even() as f64;
    (mean < gap).then(|| {
        let words = format!(
            "records of {} are cheaper to read than to skip here (below {}): dense lists of ids \
             read whole stretches",
            decimal_bytes(mean),
            decimal_bytes(gap)
        );
        ("small_records", words)
    })
}
