//! Fuzz targets of the graph store, on a disk in memory.

use std::sync::Arc;

use thalweg_graph::fuzz_targets;
use thalweg_io::disk::Disk;

use crate::{CrashDisk, Failing};

fn disk() -> Arc<dyn Disk> {
    Arc::new(CrashDisk::new(Failing::Never))
}

/// Checks the parser of one change of a log.
pub fn graph_change(data: &[u8]) {
    fuzz_targets::change(data);
}

/// Checks the reader of a whole log.
pub fn graph_log(data: &[u8]) {
    fuzz_targets::log(data, &*disk());
}

/// Checks the parser of a manifest. The input lacks the checksum.
pub fn graph_manifest(data: &[u8]) {
    fuzz_targets::manifest(data, disk());
}

/// Checks the reader of a segment. The input lacks the checksums.
pub fn graph_segment(data: &[u8]) {
    fuzz_targets::segment(data, disk());
}

/// The seeds of these targets, each as (target, name, bytes).
pub fn graph_seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    fuzz_targets::seeds(disk())
}
