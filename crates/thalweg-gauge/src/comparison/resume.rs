//! Reopens a results file to continue its comparisons.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use thalweg_io::store::FileStore;

use super::{Earlier, read};
use crate::{Error, Result};

/// Opens a results file to continue it, or creates it. Returns the file, which appends and is
/// locked against a second run, and the comparisons in it. A truncated last line is removed.
///
/// # Errors
/// When the file can't be read or changed, when another process writes to it, or when a line is
/// damaged.
pub fn reopen(path: &Path) -> Result<(File, Vec<Earlier>)> {
    let io = |doing| move |e: std::io::Error| Error::io(path, doing, e);
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(io("opening"))?;
    if !lock(&file) {
        return Err(Error::Usage(format!("{}: another run is writing to it", path.display())));
    }
    let store = FileStore::of(&file, path.to_string_lossy().into())?;
    let bytes = store.contents("results", read::MOST_BYTES)?;
    let whole = whole_lines(&bytes);
    let text = std::str::from_utf8(whole).map_err(|e| io("reading")(std::io::Error::other(e)))?;
    let (earlier, _) = read::earlier(path, text)?;
    if whole.len() < bytes.len() {
        file.set_len(whole.len() as u64).map_err(io("cutting off a half-written line"))?;
    } else if whole.last().is_some_and(|&b| b != b'\n') {
        file.write_all(b"\n").map_err(io("ending its last line"))?;
    }
    Ok((file, earlier))
}

/// Locks `file` for as long as it is open. Returns false if another process holds the lock. On file
/// systems without locks, nothing prevents a second run.
fn lock(file: &File) -> bool {
    // A child process that was forked just before its parent was killed keeps the lock until it
    // calls exec.
    const PATIENCE: Duration = Duration::from_secs(1);
    let start = Instant::now();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The text without a truncated last line. A last line that lacks only its newline is complete.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let (lines, last) = bytes.split_at(start);
    if serde_json::from_slice::<IgnoredAny>(last).is_ok() { bytes } else { lines }
}
