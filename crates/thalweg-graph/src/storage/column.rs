//! Columns of 64-bit numbers in a segment, with random access.
//!
//! A column lies in the file as runs of 256 pages: several columns are written side by side, and
//! numbers that are near in a column are still near in the file. A page of a raw column holds 512
//! numbers of eight bytes, little-endian. A page of a packed column holds groups
//! ([`pack`](crate::storage::pack)):
//!
//! ```text
//! bytes 0-1   groups
//! bytes 2-3   numbers; the last group of a column is filled up with its last number
//! bytes 4-7   zero
//! then        the groups, and at least 8 more bytes
//! ```

mod reader;
mod salvage;
mod search;
mod writer;

use serde::{Deserialize, Serialize};

use crate::storage::pack::{self, GROUP};
use crate::storage::segment::PAGE;

pub(crate) use reader::{ColumnReader, PageSpan};
pub(crate) use search::ColumnFinder;
pub(crate) use writer::ColumnWriter;

/// Pages of a run: 1 MiB.
const RUN: usize = 256;

/// Numbers of a raw page.
const RAW: u64 = PAGE as u64 / 8;

/// The most numbers of a packed page: a group takes at least the nine bytes of its head.
const MOST_PACKED: u64 = (PAGE / pack::HEAD * GROUP) as u64;

/// Bytes before the groups of a packed page.
const PAGE_HEAD: usize = 8;

/// How a column stores its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberCoding {
    /// Eight bytes for each number.
    Raw,
    /// Groups of 128 numbers, each of which takes as many bits as the group needs.
    Packed,
    /// No bytes at all: each number is one more than the one before.
    Range {
        /// The first number.
        start: u64,
    },
}

/// A column as the footer describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ColumnMeta {
    coding: NumberCoding,
    len: u64,
    /// The first page of each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<u64>,
    /// The last run ends before this page.
    #[serde(default)]
    end: u64,
    /// For a packed column: the place in the column of each page's first number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<Box<ColumnMeta>>,
    /// For an ascending column: each page's first number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Box<ColumnMeta>>,
}

impl ColumnMeta {
    /// How many numbers the column has.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn page_count(&self) -> u64 {
        match self.runs.last() {
            Some(last) => {
                (self.runs.len() as u64 - 1) * RUN as u64 + self.end.saturating_sub(*last)
            }
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests;
