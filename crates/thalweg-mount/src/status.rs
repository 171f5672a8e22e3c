//! What a mount does, for people and for monitoring.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The extended attributes of a mount's root that tell its status: as JSON, and as the text format
/// of Prometheus.
pub const STATUS: &str = "user.thalweg.status";
/// See [`STATUS`].
pub const METRICS: &str = "user.thalweg.metrics";

/// The extended attribute of a mount's root that brings all that was written to the store when it
/// is set.
pub const FLUSH: &str = "user.thalweg.flush";

/// What has been counted since the mount began.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    hits: AtomicU64,
    waits: AtomicU64,
    drops: AtomicU64,
    not_ahead: AtomicU64,
    stalls: AtomicU64,
    errors: AtomicU64,
    passed_through: AtomicU64,
    last_error: Mutex<Option<String>>,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn read(&self, bytes: u64) {
        add(&self.reads, 1);
        add(&self.bytes_read, bytes);
    }

    /// Notes a read of pieces that were there, or that it had to wait for.
    pub(crate) fn waited(&self, was_here: bool) {
        add(if was_here { &self.hits } else { &self.waits }, 1);
    }

    pub(crate) fn wrote(&self, bytes: u64) {
        add(&self.writes, 1);
        add(&self.bytes_written, bytes);
    }

    pub(crate) fn dropped(&self) {
        add(&self.drops, 1);
    }

    pub(crate) fn not_ahead(&self) {
        add(&self.not_ahead, 1);
    }

    pub(crate) fn stalled(&self) {
        add(&self.stalls, 1);
    }

    pub(crate) fn failed(&self, error: String) {
        add(&self.errors, 1);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn passed_through(&self) {
        add(&self.passed_through, 1);
    }
}

/// The status of a mount.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Status {
    /// The version of this description.
    pub schema: u32,
    /// The URL that is mounted.
    pub source: String,
    /// Files that are open.
    pub open_files: u64,
    /// Of these, files that the kernel reads from the cache without the daemon.
    pub open_files_passed_through: u64,
    /// Files and folders that the kernel knows.
    pub nodes: u64,
    /// Reads that came to the daemon, and their bytes.
    pub reads: u64,
    /// See [`Status::reads`].
    pub bytes_read: u64,
    /// Reads whose bytes had been fetched ahead.
    pub read_ahead_hits: u64,
    /// Reads that waited for bytes.
    pub read_waits: u64,
    /// Pieces that were fetched ahead and dropped for others before they were read.
    pub read_ahead_drops: u64,
    /// Times that nothing was fetched ahead because of the bound of memory.
    pub read_ahead_refused: u64,
    /// Times that a read waited for memory.
    pub memory_stalls: u64,
    /// Operations that failed.
    pub errors: u64,
    /// The last of them.
    pub last_error: Option<String>,
    /// Opened files that the kernel read from the cache without the daemon.
    pub opens_passed_through: u64,
    /// Pieces that are being fetched.
    pub in_flight: u64,
    /// Since when the oldest of them is being fetched.
    pub in_flight_oldest_s: f64,
    /// Pieces that wait for a thread.
    pub waiting: u64,
    /// Memory for pieces that is in use, and the bound.
    pub memory_bytes: u64,
    /// See [`Status::memory_bytes`].
    pub memory_limit_bytes: u64,
    /// Requests to the store, all tries included.
    pub requests: u64,
    /// Requests that were tries after a failure.
    pub retries: u64,
    /// Why they were: the server refused them.
    pub retries_refused: u64,
    /// There was no connection.
    pub retries_unconnected: u64,
    /// Nothing came for too long.
    pub retries_late: u64,
    /// Bytes were missing or damaged.
    pub retries_broken: u64,
    /// Requests that were made a second time because the answer was slow.
    pub hedges: u64,
    /// Bytes that came from the store.
    pub bytes_fetched: u64,
    /// Writes that came to the daemon, and their bytes.
    pub writes: u64,
    /// See [`Status::writes`].
    pub bytes_written: u64,
    /// Files whose last bytes or attributes the store does not have.
    pub unstored_files: u64,
    /// Their bytes on this machine.
    pub unstored_bytes: u64,
    /// Of these files, those that could not be stored.
    pub unstored_failed: u64,
    /// Why: of the first 20 of them.
    pub unstored_errors: Vec<String>,
    /// Bytes in the folder for staging.
    pub staged_bytes: u64,
    /// The folder of the cache, if there is one.
    pub cache_folder: Option<String>,
    /// Bytes that the cache may take.
    pub cache_limit_bytes: Option<u64>,
}

impl Counters {
    /// A status with what is counted here, and nothing else.
    pub(crate) fn status(&self) -> Status {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Status {
            schema: 1,
            reads: of(&self.reads),
            bytes_read: of(&self.bytes_read),
            writes: of(&self.writes),
            bytes_written: of(&self.bytes_written),
            read_ahead_hits: of(&self.hits),
            read_waits: of(&self.waits),
            read_ahead_drops: of(&self.drops),
            read_ahead_refused: of(&self.not_ahead),
            memory_stalls: of(&self.stalls),
            errors: of(&self.errors),
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            opens_passed_through: of(&self.passed_through),
            ..Status::default()
        }
    }
}

/// Values that go up and down; all others only grow.
const GAUGES: [&str; 13] = [
    "open_files",
    "open_files_passed_through",
    "nodes",
    "in_flight",
    "in_flight_oldest_s",
    "waiting",
    "memory_bytes",
    "memory_limit_bytes",
    "cache_limit_bytes",
    "unstored_files",
    "unstored_bytes",
    "unstored_failed",
    "staged_bytes",
];

impl Status {
    /// The numbers as Prometheus reads them (text format 0.0.4).
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else { return text };
        let source = self.source.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        for (name, value) in fields {
            if name == "schema" || !value.is_number() {
                continue;
            }
            let is_gauge = GAUGES.contains(&&*name);
            let (kind, end) = if is_gauge { ("gauge", "") } else { ("counter", "_total") };
            let name =
                name.strip_suffix("_s").map_or(name.clone(), |name| format!("{name}_seconds"));
            let _ = writeln!(text, "# TYPE thalweg_mount_{name}{end} {kind}");
            let _ = writeln!(text, "thalweg_mount_{name}{end}{{source=\"{source}\"}} {value}");
        }
        text
    }
}
