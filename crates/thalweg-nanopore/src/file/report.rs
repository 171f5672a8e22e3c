//! The report of a check.

use std::ops::Range;

use thalweg_io::Error;

use crate::losses::Losses;

/// Most defects and lost ranges that a report lists. It counts all of them.
const LISTED: usize = 100;

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The number of intact reads.
    pub reads: u64,
    /// The number of samples of the intact reads.
    pub samples: u64,
    /// The first hundred defects, in the order of the file.
    pub defects: Vec<Error>,
    /// The number of all defects.
    pub defect_count: u64,
    /// The first hundred ranges of bytes that belong to no intact read.
    pub lost: Vec<Range<u64>>,
    /// The number of bytes in all such ranges.
    pub lost_bytes: u64,
    /// The number of lost reads.
    pub lost_reads: LostReads,
    /// The state of the index beside the file.
    pub index: IndexState,
    /// The number of reads written to the salvaged file.
    pub salvaged: u64,
    /// Descriptions of the content of intact reads that the salvaged file lacks.
    pub left_out: Vec<String>,
}

/// The number of lost reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostReads {
    /// The exact number: the sizes of the lost records are intact, or the index has them.
    Known(u64),
    /// A lower bound: it is unknown how many reads the lost bytes held.
    AtLeast(u64),
}

impl Default for LostReads {
    fn default() -> Self {
        Self::Known(0)
    }
}

/// The state of an index beside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexState {
    /// There is no index.
    #[default]
    Absent,
    /// The index has every intact read and its place.
    Consistent,
    /// The index lacks reads, has wrong places, or is damaged. A defect describes the error.
    Wrong,
}

impl CheckReport {
    /// Whether the file has no defects.
    pub fn is_whole(&self) -> bool {
        self.defect_count == 0
    }

    /// Counts a defect. Lists it unless the list is full.
    pub fn defect(&mut self, error: Error) {
        self.defect_count += 1;
        if self.defects.len() < LISTED {
            self.defects.push(error);
        }
    }

    /// Adds descriptions of the losses of a read to the report, each description once.
    pub(crate) fn leave_out(&mut self, losses: Losses) {
        for loss in losses.iter() {
            if !self.left_out.iter().any(|what| what == loss.what()) {
                self.left_out.push(loss.what().to_owned());
            }
        }
    }

    /// Reports a range of lost bytes that held this many reads. `None` for an unknown number of at
    /// least one.
    pub fn lose(&mut self, range: Range<u64>, reads: Option<u64>) {
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
