//! The way through a file that may be damaged: stretches whose framing holds go through the engine;
//! what lies between them is searched for records one byte at a time.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::engine::{Delivery, Run};
use thalweg_io::extent::Source;
use thalweg_io::sidecar::index_path;
use thalweg_io::{Error, Fault, InFile, Result, plan};

use super::seeker::Seeker;
use super::verify::{FramingEnd, VerifiedRecord, VerifyDecoder, VerifyFramer, WholeRecord};
use crate::file::{CheckReport, IndexState, LostReads, OpenFile, load_index_file};
use crate::record::{Encoding, Entry, Index};
use crate::slow5::Framing;
use crate::slow5::ReadWriter;
use crate::slow5::resync::least_bytes;

/// A frame of more than this part of the memory budget is searched for other records before it is
/// believed: one flipped bit of a size must not cost the memory of the whole file.
const GIANT_SHARE: usize = 4;

/// A row's first seven columns, which come before its signal, are within so many bytes.
const ROW_HEAD: u64 = 128 << 10;
const ROW_COLUMNS: usize = 7;

/// Records in a row that do not decode.
struct DamagedRun {
    from: u64,
    records: u64,
}

/// One pass over a file.
pub(super) struct DamageScan<'a> {
    file: &'a OpenFile,
    report: CheckReport,
    found: Index,
    out: Option<ReadWriter>,
    seeker: Seeker,
    most: u64,
    /// Records met so far, for messages.
    records: u64,
}

impl<'a> DamageScan<'a> {
    pub(super) fn new(file: &'a OpenFile, out: Option<ReadWriter>) -> Self {
        let most = (file.options.budget.memory / GIANT_SHARE) as u64;
        Self {
            file,
            report: CheckReport::default(),
            found: Index::new(file.header.version),
            out,
            seeker: Seeker::new(file, most),
            most,
            records: 0,
        }
    }

    /// Goes through the file; what it found, and where.
    pub(super) fn run(mut self) -> Result<(CheckReport, Index)> {
        let size = self.file.store.size();
        let mut at = self.file.header.data_offset;
        let mut trusted = None;
        loop {
            let (stop, bad) = self.stretch(at, trusted.take())?;
            let from = |here| bad.as_ref().map_or(here, |bad: &DamagedRun| bad.from);
            let (lost_from, next) = match stop {
                FramingEnd::End(end) => {
                    if let Some(bad) = bad {
                        self.gap(bad.from..end, Some(bad.records))?;
                    }
                    break;
                }
                FramingEnd::Damaged(here, fault) => {
                    self.defect(here, fault);
                    let from = match (&bad, self.file.header.encoding) {
                        // A row's end is its own: damage after it says nothing about it.
                        (Some(bad), Encoding::Ascii) => {
                            self.gap(bad.from..here, Some(bad.records))?;
                            here
                        }
                        _ => from(here),
                    };
                    (from, self.next_record(from + 1..size)?)
                }
                FramingEnd::Giant(here, _) if self.is_row(here)? => {
                    (at, trusted) = (here, Some(here));
                    if let Some(bad) = bad {
                        self.gap(bad.from..here, Some(bad.records))?;
                    }
                    continue;
                }
                FramingEnd::Giant(here, len) => {
                    let within = (here + len).min(size);
                    match self.next_record(from(here) + 1..within)?.filter(|&next| next < within) {
                        None => {
                            // Nothing else in it: it may well be what it says.
                            if let Some(bad) = bad {
                                self.gap(bad.from..here, Some(bad.records))?;
                            }
                            (at, trusted) = (here, Some(here));
                            continue;
                        }
                        next => {
                            let found = format!("a record of {len} bytes");
                            self.defect(here, Fault::new(0, found, "one that holds no others"));
                            (from(here), next)
                        }
                    }
                }
            };
            let Some(next) = next else {
                self.gap(lost_from..self.data_end(lost_from)?, None)?;
                break;
            };
            self.gap(lost_from..next, None)?;
            at = next;
        }
        if let Some(out) = self.out.take() {
            out.finish()?;
        }
        Ok((self.report, self.found))
    }

    /// Sends frames from `at` on through the engine, for as long as there are any.
    fn stretch(
        &mut self,
        at: u64,
        trusted: Option<u64>,
    ) -> Result<(FramingEnd, Option<DamagedRun>)> {
        let DamageScan { file, most, .. } = *self;
        let store = &file.store;
        let header = &file.header;
        let stop = Arc::new(Mutex::new(None));
        let framer = VerifyFramer {
            size: store.size(),
            encoding: header.encoding,
            least: least_bytes(header.record_press),
            most,
            trusted,
            stop: stop.clone(),
        };
        let shape = file.shape(Delivery::Ordered);
        let decoder = VerifyDecoder {
            header: header.clone(),
            limit: file.options.budget.memory,
            keep: self.out.is_some(),
            full: plan::batch_bytes(&shape, file.options.budget),
        };
        let source = Source::Framed { range: at..store.size(), framer: Box::new(framer) };
        let mut run =
            Run::start(store.clone(), source, decoder, shape, file.options.control.clone())?;
        let mut bad: Option<DamagedRun> = None;
        while let Some(batch) = run.next() {
            let mut batch = batch?;
            for VerifiedRecord { offset, len, outcome, frame } in batch.drain(..) {
                match outcome {
                    Ok(whole) => {
                        if let Some(bad) = bad.take() {
                            self.gap(bad.from..offset, Some(bad.records))?;
                        }
                        self.keep(offset, len, &whole, &frame)?;
                    }
                    Err(fault) => {
                        self.defect(offset, fault);
                        bad.get_or_insert(DamagedRun { from: offset, records: 0 }).records += 1;
                    }
                }
            }
            run.recycle(batch);
        }
        let why = stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        // No word: there was nothing to frame.
        let why = why.unwrap_or_else(|| match Framing::new(header.encoding).next(&[], 0) {
            Err(fault) => FramingEnd::Damaged(at, fault),
            Ok(_) => FramingEnd::End(at),
        });
        Ok((why, bad))
    }

    /// Where the next frame is after the framing was lost.
    fn next_record(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        if self.file.header.encoding == Encoding::Ascii {
            return self.seeker.row(range);
        }
        Ok(self.seeker.record(range)?.map(|found| found.offset))
    }

    /// Whether a long row of text is one: its first columns are there, and it has an end.
    fn is_row(&mut self, at: u64) -> Result<bool> {
        let size = self.file.store.size();
        if self.file.header.encoding == Encoding::Binary || self.seeker.row(at..size)?.is_none() {
            return Ok(false);
        }
        let mut head = vec![0; (size - at).min(ROW_HEAD) as usize];
        self.file.store.read_at(at, &mut head)?;
        Ok(head.iter().filter(|&&byte| byte == b'\t').count() >= ROW_COLUMNS)
    }

    /// Bytes that are not what they should be: whatever records lie in them are kept, the rest is
    /// lost. `records` says how many frames they are, where that is known.
    fn gap(&mut self, range: Range<u64>, mut records: Option<u64>) -> Result<()> {
        let mut at = range.start;
        while let Some(found) = self.seeker.record(at + 1..range.end)? {
            let frame = self.seeker.frame().to_vec();
            self.lose(at..found.offset, None)?;
            self.keep(found.offset, found.len, &found.whole, &frame)?;
            at = found.offset + found.len;
            records = None;
        }
        self.lose(at..range.end, records)
    }

    /// Gives up a run of bytes, unless it is a record whose size alone is wrong.
    fn lose(&mut self, range: Range<u64>, records: Option<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if self.file.header.encoding == Encoding::Binary
            && let Some(whole) = self.seeker.mended(range.clone())?
        {
            let frame = self.seeker.frame().to_vec();
            return self.keep(range.start, range.end - range.start, &whole, &frame);
        }
        self.report.lose(range, records);
        Ok(())
    }

    /// Counts an intact record, and writes it down if it is to be.
    fn keep(&mut self, offset: u64, len: u64, whole: &WholeRecord, frame: &[u8]) -> Result<()> {
        self.records += 1;
        if let Err(fault) = self.found.push(&whole.read_id, Entry { offset, size: len }) {
            self.report.lose(offset..offset + len, Some(1));
            let fault = Fault { at: 0, ..fault };
            self.defect(offset, fault);
            return Ok(());
        }
        self.report.reads += 1;
        self.report.samples += whole.samples;
        if let Some(out) = &mut self.out {
            out.push(&whole.read_id, frame)?;
            self.report.salvaged += 1;
        }
        Ok(())
    }

    fn defect(&mut self, offset: u64, fault: Fault) {
        let what = format!("after {} intact reads", self.records);
        let error = fault.in_file(self.file.store.name(), offset, what);
        self.report.defect(error);
    }

    /// Where the data end: before the end marker, if there is one.
    fn data_end(&self, from: u64) -> Result<u64> {
        let marker = Framing::new(self.file.header.encoding).end_marker();
        let size = self.file.store.size();
        let at = size.saturating_sub(marker.len() as u64).max(from);
        let mut tail = vec![0; (size - at) as usize];
        self.file.store.read_at(at, &mut tail)?;
        Ok(if tail == marker { at } else { size })
    }
}

/// Checks a file and the index beside it; intact records go to `out`.
pub(super) fn check(file: &OpenFile, out: Option<ReadWriter>) -> Result<CheckReport> {
    let (mut report, found) = DamageScan::new(file, out).run()?;
    check_index(file, &mut report, &found);
    Ok(report)
}

/// Compares the index beside the file with the intact reads.
fn check_index(file: &OpenFile, report: &mut CheckReport, found: &Index) {
    let Some(path) = &file.path else { return };
    let place = index_path(path);
    let name: Arc<str> = place.to_string_lossy().into();
    let index = match load_index_file(&place) {
        Ok(None) => return,
        Ok(Some(index)) => index,
        Err(error) => {
            report.index = IndexState::Wrong;
            return report.defect(error);
        }
    };
    report.index = IndexState::Consistent;
    let wrong = |report: &mut CheckReport, found: String, expected: String| {
        report.index = IndexState::Wrong;
        report.defect(Error::Malformed {
            file: name.clone(),
            what: "index".into(),
            offset: 0,
            found: found.into(),
            expected: format!("{expected}; delete the index").into(),
        });
    };
    if let Err(fault) = index.check(&file.header, file.store.size()) {
        return wrong(report, fault.found.into_owned(), fault.expected.into_owned());
    }
    let mut known = 0;
    for (id, entry) in found.iter() {
        match index.get(id) {
            Some(place) if place == entry => known += 1,
            Some(place) => {
                let found = format!("read {id} at byte {} with {} bytes", place.offset, place.size);
                return wrong(
                    report,
                    found,
                    format!("byte {} and {} bytes", entry.offset, entry.size),
                );
            }
            None => {
                return wrong(
                    report,
                    format!("no read {id}"),
                    format!("it at byte {}", entry.offset),
                );
            }
        }
    }
    let others = index.len() as u64 - known;
    if others > 0 && report.lost_bytes == 0 {
        return wrong(
            report,
            format!("{others} reads that the file does not have"),
            "only the file's reads".into(),
        );
    }
    // An index that fits all that is left tells how many there were.
    if others > 0 {
        report.lost_reads = LostReads::Known(others);
    }
}
