//! Checking a file that may be damaged. Stretches with intact framing go through the engine. The
//! bytes between them are searched for records, byte by byte.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::engine::{Delivery, Run};
use thalweg_io::extent::Source;
use thalweg_io::sidecar::{index_path, index_place, is_current};
use thalweg_io::{Error, Fault, InFile, Result, plan};

use super::seeker::Seeker;
use super::verify::{FramingEnd, VerifiedRecord, VerifyDecoder, VerifyFramer, WholeRecord};
use crate::file::{CheckReport, IndexState, LostReads, OpenFile, load_index_file};
use crate::record::{Encoding, Entry, Index};
use crate::slow5::Framing;
use crate::slow5::ReadWriter;
use crate::slow5::resync::least_bytes;

/// A frame larger than the memory budget divided by this number is searched for other records
/// before it is accepted. Otherwise one flipped bit in a size could take as much memory as the
/// whole file.
const GIANT_SHARE: usize = 4;

/// Bytes that contain the columns of a row before its signal.
const ROW_HEAD: u64 = 128 << 10;

/// The number of columns of a row before its signal.
const ROW_COLUMNS: usize = 7;

/// Consecutive records that do not decode.
struct DamagedRun {
    from: u64,
    records: u64,
}

/// The place where a pass continues.
struct Restart {
    at: u64,
    /// The offset of a giant frame that is accepted.
    trusted: Option<u64>,
}

/// One pass over a file.
pub(super) struct DamageScan<'a> {
    file: &'a OpenFile,
    report: CheckReport,
    found: Index,
    out: Option<ReadWriter>,
    seeker: Seeker,
    most: u64,
    /// The number of records so far, for messages.
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

    /// Checks the file. Returns the report and the index of the intact records.
    pub(super) fn run(mut self) -> Result<(CheckReport, Index)> {
        let mut start = Some(Restart { at: self.file.header.data_offset, trusted: None });
        while let Some(Restart { at, trusted }) = start {
            let (end, bad) = self.stretch(at, trusted)?;
            start = self.continue_after(end, bad)?;
        }
        if let Some(out) = self.out.take() {
            out.finish()?;
        }
        Ok((self.report, self.found))
    }

    /// Handles the end of a stretch. Returns where the pass continues; `None` at the end of the
    /// file. `bad` are the last records of the stretch, if they did not decode.
    fn continue_after(
        &mut self,
        end: FramingEnd,
        bad: Option<DamagedRun>,
    ) -> Result<Option<Restart>> {
        match end {
            FramingEnd::End(end) => {
                self.bad_gap(bad, end)?;
                Ok(None)
            }
            FramingEnd::Damaged(here, fault) => {
                self.defect(here, fault);
                let lost_from = match self.file.header.encoding {
                    // A newline ends each row, so that the rows before the damage are separate.
                    Encoding::Ascii => {
                        self.bad_gap(bad, here)?;
                        here
                    }
                    Encoding::Binary => bad.map_or(here, |bad| bad.from),
                };
                let next = self.next_record(lost_from + 1..self.file.store.size())?;
                self.skip(lost_from, next)
            }
            FramingEnd::Giant(here, len) => self.continue_at_giant(here, len, bad),
        }
    }

    /// Accepts a giant frame unless it contains other records.
    fn continue_at_giant(
        &mut self,
        here: u64,
        len: u64,
        bad: Option<DamagedRun>,
    ) -> Result<Option<Restart>> {
        let from = bad.as_ref().map_or(here, |bad| bad.from);
        let within = (here + len).min(self.file.store.size());
        let inner = if self.is_row(here)? {
            None
        } else {
            self.next_record(from + 1..within)?.filter(|&next| next < within)
        };
        if inner.is_none() {
            self.bad_gap(bad, here)?;
            return Ok(Some(Restart { at: here, trusted: Some(here) }));
        }
        let found = format!("a record of {len} bytes");
        self.defect(here, Fault::new(0, found, "one that holds no others"));
        self.skip(from, inner)
    }

    /// Skips bytes up to the next record, or to the end of the data if there is none.
    fn skip(&mut self, lost_from: u64, next: Option<u64>) -> Result<Option<Restart>> {
        let end = match next {
            Some(next) => next,
            None => self.data_end(lost_from)?,
        };
        self.gap(lost_from..end, None)?;
        Ok(next.map(|at| Restart { at, trusted: None }))
    }

    /// Searches the bytes of records that did not decode, up to `end`.
    fn bad_gap(&mut self, bad: Option<DamagedRun>, end: u64) -> Result<()> {
        match bad {
            Some(bad) => self.gap(bad.from..end, Some(bad.records)),
            None => Ok(()),
        }
    }

    /// Sends frames from `at` on through the engine until the framing ends. Also returns the last
    /// records if they did not decode.
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
                        self.bad_gap(bad.take(), offset)?;
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
        // The framer was not called, because there are no bytes.
        let why = why.unwrap_or_else(|| match Framing::new(header.encoding).next(&[], 0) {
            Err(fault) => FramingEnd::Damaged(at, fault),
            Ok(_) => FramingEnd::End(at),
        });
        Ok((why, bad))
    }

    /// The start of the next frame after the framing was lost.
    fn next_record(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        if self.file.header.encoding == Encoding::Ascii {
            return self.seeker.row(range);
        }
        Ok(self.seeker.record(range)?.map(|found| found.offset))
    }

    /// Whether a row of text starts here: it has its first columns and an end.
    fn is_row(&mut self, at: u64) -> Result<bool> {
        let size = self.file.store.size();
        if self.file.header.encoding == Encoding::Binary || self.seeker.row(at..size)?.is_none() {
            return Ok(false);
        }
        let mut head = vec![0; (size - at).min(ROW_HEAD) as usize];
        self.file.store.read_at(at, &mut head)?;
        Ok(head.iter().filter(|&&byte| byte == b'\t').count() >= ROW_COLUMNS)
    }

    /// Searches damaged bytes for records. Keeps the intact ones, and reports the rest as lost.
    /// `records` is the number of frames in these bytes, if it is known.
    fn gap(&mut self, range: Range<u64>, mut records: Option<u64>) -> Result<()> {
        let mut at = range.start;
        // What starts there does not decode. A record may start where another one ends.
        let mut from = at + 1;
        while let Some(found) = self.seeker.record(from..range.end)? {
            let frame = self.seeker.frame().to_vec();
            self.lose(at..found.offset, None)?;
            self.keep(found.offset, found.len, &found.whole, &frame)?;
            at = found.offset + found.len;
            from = at;
            records = None;
        }
        self.lose(at..range.end, records)
    }

    /// Reports bytes as lost, unless they are a record with only a wrong size.
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

    /// Counts an intact record, and writes it to the new file if there is one.
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

    /// The end of the data: before the end marker, if there is one.
    fn data_end(&self, from: u64) -> Result<u64> {
        let marker = Framing::new(self.file.header.encoding).end_marker();
        let size = self.file.store.size();
        let at = size.saturating_sub(marker.len() as u64).max(from);
        let mut tail = vec![0; (size - at) as usize];
        self.file.store.read_at(at, &mut tail)?;
        Ok(if tail == marker { at } else { size })
    }
}

/// Checks a file and the index beside it. Writes intact records to `out`.
pub(super) fn check(file: &OpenFile, out: Option<ReadWriter>) -> Result<CheckReport> {
    let (mut report, found) = DamageScan::new(file, out).run()?;
    check_index(file, &mut report, &found);
    Ok(report)
}

/// Compares the index beside the file with the intact reads. Where that name would be too long, the
/// index is in the cache folder, and counts if it is current.
fn check_index(file: &OpenFile, report: &mut CheckReport, found: &Index) {
    let Some(path) = &file.path else { return };
    let place = index_place(path);
    if place != index_path(path) && !is_current(&place, path) {
        return;
    }
    let name: Arc<str> = place.to_string_lossy().into();
    let index = match load_index_file(&place, file.store.size()) {
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
    // The index agrees with all intact records, so that its other reads are the lost ones.
    if others > 0 {
        report.lost_reads = LostReads::Known(others);
    }
}
