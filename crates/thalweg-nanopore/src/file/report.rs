//! What a check of a file found.

use std::ops::Range;

use thalweg_io::Error;

use crate::losses::Losses;

/// Defects and losses that a report lists; it counts all of them.
const LISTED: usize = 100;

/// What a check found.
#[derive(Debug, Default)]
pub struct CheckReport {
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

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.defect_count == 0
    }

    /// Counts a defect, and lists it if few are listed yet.
    pub fn defect(&mut self, error: Error) {
        self.defect_count += 1;
        if self.defects.len() < LISTED {
            self.defects.push(error);
        }
    }

    /// Takes note of what a read has that could not be written.
    pub(crate) fn leave_out(&mut self, losses: Losses) {
        for loss in losses.iter() {
            if !self.left_out.iter().any(|what| what == loss.what()) {
                self.left_out.push(loss.what().to_owned());
            }
        }
    }

    /// Gives up bytes that held so many reads, or `None` for one or more.
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
