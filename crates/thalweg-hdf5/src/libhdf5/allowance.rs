//! The processor time and the memory that a process which inspects a file may still take.
//!
//! The limit of time counts from the last progress: an object or an attribute that was looked at,
//! or bytes of the file that were read. So a large file on a slow machine may take its time, and an
//! endless loop ends soon.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Seconds of processor time without progress; 0 if this process is not limited.
static SECONDS: AtomicU64 = AtomicU64::new(0);
/// Bytes of the file whose reading still counts as progress.
static BYTES: AtomicU64 = AtomicU64::new(0);
/// The second of processor time from which the limit counts.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// Bytes that may still be written to the new file, which is in memory.
static WRITES: AtomicU64 = AtomicU64::new(0);
/// Whether the library was refused memory.
static NO_MEMORY: AtomicBool = AtomicBool::new(false);

/// Limits the process to `seconds` of processor time without progress. `reads` is how many bytes of
/// the file may be read, so that a loop that reads the same bytes again and again ends, too;
/// `writes` is how many bytes may be written.
pub(crate) fn limit(seconds: u64, reads: u64, writes: u64) {
    SECONDS.store(seconds, Ordering::Relaxed);
    BYTES.store(reads, Ordering::Relaxed);
    WRITES.store(writes, Ordering::Relaxed);
    extend(used());
}

/// Counts the limit of time from now on.
pub(crate) fn progress() {
    if SECONDS.load(Ordering::Relaxed) > 0 {
        let used = used();
        if LATEST.load(Ordering::Relaxed) != used {
            extend(used);
        }
    }
}

/// Records that bytes of the file were read.
pub(super) fn read(bytes: u64) {
    let subtract = |left: u64| (left > 0).then(|| left.saturating_sub(bytes));
    if BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).is_ok() {
        progress();
    }
}

/// Whether so many bytes more may be written.
pub(super) fn may_write(bytes: u64) -> bool {
    if SECONDS.load(Ordering::Relaxed) == 0 {
        return true;
    }
    let subtract = |left: u64| left.checked_sub(bytes);
    let fits = WRITES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).is_ok();
    if !fits {
        no_memory();
    }
    fits
}

/// Records that the library was refused memory.
pub(super) fn no_memory() {
    NO_MEMORY.store(true, Ordering::Relaxed);
}

/// Whether the library was refused memory at some time.
pub(crate) fn had_no_memory() -> bool {
    NO_MEMORY.load(Ordering::Relaxed)
}

/// The seconds of processor time that this process has used.
fn used() -> u64 {
    clock_gettime(ClockId::ProcessCPUTime).tv_sec.cast_unsigned()
}

fn extend(used: u64) {
    LATEST.store(used, Ordering::Relaxed);
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = used + SECONDS.load(Ordering::Relaxed);
    let current = maximum.map_or(current, |maximum| current.min(maximum));
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum });
}
