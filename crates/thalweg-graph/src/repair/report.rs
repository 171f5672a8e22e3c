//! What a repair found and kept.

use std::ops::{Range, RangeInclusive};

use crate::read::check::NetworkDefect;

/// What a repair found and did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// What is damaged. Defects after the first 1,000 are not kept.
    pub defects: Vec<NetworkDefect>,
    /// Byte ranges of the log that hold no whole change. At the end of the log, this may be what a
    /// crash left.
    pub log: Vec<Range<u64>>,
    /// A summary of each vertex type.
    pub vertices: Vec<RepairSummary>,
    /// A summary of each population of edges.
    pub edges: Vec<RepairSummary>,
}

impl RepairReport {
    /// Whether the new network holds everything that the damaged one held.
    pub fn is_complete(&self) -> bool {
        let is_whole = |kept: &RepairSummary| {
            kept.lost.is_empty() && kept.attributes_lost == 0 && !kept.is_in_doubt
        };
        self.log.is_empty() && self.vertices.iter().chain(&self.edges).all(is_whole)
    }
}

/// What a repair kept of a vertex type or a population.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSummary {
    /// The name of the type or the population.
    pub name: String,
    /// Vertices or edges in the new network.
    pub kept: u64,
    /// Vertices or edges in the damaged network; `None` if a part of the log is missing.
    pub expected: Option<u64>,
    /// Of those kept, how many were found indirectly: edges through the lists of their other side,
    /// vertices through edges.
    pub restored: u64,
    /// Vertices or edges whose attributes cannot be read. Such edges have nulls instead, such
    /// vertices have no attributes.
    pub attributes_lost: u64,
    /// What cannot be read, by segment.
    pub lost: Vec<LostRecords>,
    /// Whether records of removals cannot be read: removed edges or vertices may be back.
    pub is_in_doubt: bool,
}

/// Edges or vertices of a segment that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRecords {
    /// The file of the segment.
    pub file: String,
    /// How many edges or vertices are lost; `None` if all of the segment's are, and their number is
    /// not known.
    pub count: Option<u64>,
    /// Ranges of ids that contain the lost vertices or, for edges, their sources.
    pub sources: Vec<RangeInclusive<u64>>,
    /// For edges: ranges of ids that contain their targets.
    pub targets: Vec<RangeInclusive<u64>>,
}
