//! Parsers of networks, for any bytes, on a disk in memory.

use std::sync::Arc;

use thalweg_graph::fuzz_targets;
use thalweg_io::disk::Disk;

use crate::{CrashDisk, Failing};

fn disk() -> Arc<dyn Disk> {
    Arc::new(CrashDisk::new(Failing::Never))
}

/// A change from a log.
pub fn graph_change(data: &[u8]) {
    fuzz_targets::change(data);
}

/// A log.
pub fn graph_log(data: &[u8]) {
    fuzz_targets::log(data, &*disk());
}

/// A manifest without its checksum.
pub fn graph_manifest(data: &[u8]) {
    fuzz_targets::manifest(data, disk());
}

/// A segment without its checksums.
pub fn graph_segment(data: &[u8]) {
    fuzz_targets::segment(data, disk());
}

/// Seeds of these targets: target, name, bytes.
pub fn graph_seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    fuzz_targets::seeds(disk())
}
