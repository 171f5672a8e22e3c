//! What a verb says when it has written something: one line on standard error, which -q silences.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use thalweg::text::Shown;
use thalweg_gauge::units::{decimal_bytes, seconds};
use thalweg_io::urls::{self, url};

use crate::common::is_stream;
use crate::progress::without_bar;

/// Whether -q is given.
static IS_QUIET: OnceLock<bool> = OnceLock::new();

/// Notes whether -q is given.
pub(crate) fn note_quiet(is_quiet: bool) {
    // It is called once.
    let _ = IS_QUIET.set(is_quiet);
}

/// Says what was done, where the result is, its size if it is a file or folder, and how long that
/// took, as in `kept 2 of 3 reads -> f.blow5, 1.8 MB, 4.1 s`.
pub(crate) fn say_done(what: &str, to: &Path, took_s: f64) {
    say_done_of(what, to, stored_bytes(to), took_s);
}

/// [`say_done`] for what has so many bytes.
pub(crate) fn say_done_of(what: &str, to: &Path, bytes: Option<u64>, took_s: f64) {
    let size = bytes.map_or(String::new(), |bytes| format!(", {}", decimal_bytes(bytes as f64)));
    let to = if is_stream(to) { "standard output".into() } else { urls::shown_path(to) };
    say(&format!("{what} -> {to}{size}, {}", seconds(took_s)));
}

/// Says what was done, where nothing but standard output has a result.
pub(crate) fn say(what: &str) {
    if IS_QUIET.get() != Some(&true) {
        let _ = without_bar(|| writeln!(io::stderr(), "{}", Shown(what)));
    }
}

/// The bytes of a file, or of all files in a folder; `None` for a stream or URL.
pub(crate) fn stored_bytes(path: &Path) -> Option<u64> {
    if is_stream(path) || url(path).is_some() {
        return None;
    }
    let meta = fs::metadata(path).ok()?;
    if meta.is_dir() { bytes_in(path) } else { Some(meta.len()) }
}

/// The bytes of all files in a folder. What links lead to is not in it.
fn bytes_in(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?;
    let sizes = entries.map(|entry| {
        let entry = entry.ok()?;
        let meta = entry.metadata().ok()?;
        if meta.is_dir() { bytes_in(&entry.path()) } else { Some(meta.len()) }
    });
    sizes.sum()
}
