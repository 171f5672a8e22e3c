//! Integrity of a whole file: every record decoded, every defect counted, what is intact kept apart
//! from what is lost.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::Delivery;
use thalweg_io::sidecar::index_path;
use thalweg_io::{Error, Result};

use super::layout::Layout;
use super::lookup::load;
use super::walk::Walk;
use super::{ReadFile, Selection};
use crate::losses::Losses;
use crate::record::Index;

/// Defects and losses that a report lists; it counts all of them.
const LISTED: usize = 100;

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// Reads that are intact.
    pub reads: u64,
    /// Samples in them.
    pub samples: u64,
    /// What is wrong, in the order of the file: the first hundred defects.
    pub defects: Vec<Error>,
    /// How many defects there are.
    pub defect_count: u64,
    /// Runs of bytes that belong to no intact read: the first hundred.
    pub lost: Vec<Range<u64>>,
    /// Bytes in all such runs.
    pub lost_bytes: u64,
    /// Reads lost.
    pub lost_reads: LostReads,
    /// What the index beside the file is worth.
    pub index: IndexState,
    /// Reads written to the salvaged file.
    pub salvaged: u64,
    /// What intact reads have and the salvaged file has not, in words.
    pub left_out: Vec<String>,
}

/// How many reads are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostReads {
    /// So many: their records' sizes are intact, or the index names them.
    Known(u64),
    /// So many or more: what was lost does not say how many reads it held.
    AtLeast(u64),
}

impl Default for LostReads {
    fn default() -> Self {
        Self::Known(0)
    }
}

/// What an index beside a file is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexState {
    /// There is none.
    #[default]
    Absent,
    /// It names every intact read, and its place.
    Consistent,
    /// It does not, or it is itself damaged: a defect says how.
    Wrong,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.defect_count == 0
    }

    pub(super) fn defect(&mut self, error: Error) {
        self.defect_count += 1;
        if self.defects.len() < LISTED {
            self.defects.push(error);
        }
    }

    /// Takes note of what a read has that could not be written.
    pub(super) fn leave_out(&mut self, losses: Losses) {
        for loss in losses.iter() {
            if !self.left_out.iter().any(|what| what == loss.what()) {
                self.left_out.push(loss.what().to_owned());
            }
        }
    }

    /// Gives up bytes that held so many reads, or `None` for one or more.
    pub(super) fn lose(&mut self, range: Range<u64>, reads: Option<u64>) {
        self.lost_bytes += range.end - range.start;
        self.lost_reads = match (self.lost_reads, reads) {
            (LostReads::Known(so_far), Some(n)) => LostReads::Known(so_far + n),
            (LostReads::Known(so_far), None) => LostReads::AtLeast(so_far + 1),
            (LostReads::AtLeast(so_far), n) => LostReads::AtLeast(so_far + n.unwrap_or(1)),
        };
        let listed = self.lost.len();
        match self.lost.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if listed < LISTED && !range.is_empty() => self.lost.push(range),
            _ => {}
        }
    }
}

impl ReadFile {
    /// Decodes the whole file and says everything that is wrong with it, and with the index beside
    /// it.
    ///
    /// Where a record is damaged but its size is not, the check goes on after it; where the framing
    /// is lost, at the next place where a record decodes in full.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Truncated`] where the bytes cannot be had. Defects of the file
    /// are no errors: they are in the report.
    pub fn check(&self) -> Result<Report> {
        if let Layout::Pod5(file) = &self.layout {
            return self.pod5_check(file);
        }
        if let Layout::Fast5(_) = &self.layout {
            let mut report = Report::default();
            self.examine(
                self.source(&Selection::All, &self.shape(Delivery::Ordered), true)?,
                None,
                &mut report,
            )?;
            return Ok(report);
        }
        let (mut report, found) = Walk::new(self, None).run()?;
        self.check_index(&mut report, &found);
        Ok(report)
    }

    /// Compares the index beside the file with the intact reads.
    pub(super) fn check_index(&self, report: &mut Report, found: &Index) {
        let Some(path) = &self.path else { return };
        let place = index_path(path);
        let name: Arc<str> = place.to_string_lossy().into();
        let index = match load(&place) {
            Ok(None) => return,
            Ok(Some(index)) => index,
            Err(error) => {
                report.index = IndexState::Wrong;
                return report.defect(error);
            }
        };
        report.index = IndexState::Consistent;
        let wrong = |report: &mut Report, found: String, expected: String| {
            report.index = IndexState::Wrong;
            report.defect(Error::Malformed {
                file: name.clone(),
                what: "index".into(),
                offset: 0,
                found: found.into(),
                expected: format!("{expected}; delete the index").into(),
            });
        };
        if let Err(fault) = index.check(&self.header, self.store.size()) {
            return wrong(report, fault.found.into_owned(), fault.expected.into_owned());
        }
        let mut known = 0;
        for (id, entry) in found.iter() {
            match index.get(id) {
                Some(place) if place == entry => known += 1,
                Some(place) => {
                    let found =
                        format!("read {id} at byte {} with {} bytes", place.offset, place.size);
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
}
