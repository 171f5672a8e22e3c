//! `thalweg evict`: evicts files from the page cache, and proves that they are evicted.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use thalweg_gauge::cache::{EvictOptions, Eviction, Method, Residency, evict, files_of};
use thalweg_gauge::units::binary_bytes;
use thalweg_io::urls;

use crate::common::{VerbResult, complain, ended, output, shown_path};

/// Evict files from the page cache, and prove that they are evicted
///
/// Fails if a file is not proved to be evicted: its pages stayed, or this system does not report
/// which pages are cached.
///
/// Example: thalweg evict reads.blow5 reads.blow5.idx
#[derive(Debug, clap::Args)]
pub(crate) struct EvictArgs {
    /// Files to evict; of a folder, all files in it
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON line a file
    #[arg(long)]
    json: bool,
    /// Drop all of the machine's caches where advice is not enough (needs root)
    #[arg(long)]
    drop_caches: bool,
}

pub(crate) fn run(args: &EvictArgs) -> VerbResult {
    let mut out = output();
    let mut failed = false;
    for path in &all_of(&args.files, &mut failed) {
        match evict(path, EvictOptions { drop_caches: args.drop_caches }) {
            Ok(eviction) => {
                failed |= !eviction.proved();
                if args.json {
                    writeln!(out, "{}", as_json(path, &eviction))?;
                } else {
                    writeln!(out, "{}", in_words(path, &eviction))?;
                }
            }
            Err(error) => {
                failed = true;
                complain(&error);
            }
        }
    }
    out.flush()?;
    ended(failed)
}

/// The files, and those in folders.
fn all_of(paths: &[PathBuf], failed: &mut bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match files_of(path) {
            Ok(files) => all.extend(files),
            Err(error) => {
                *failed = true;
                complain(&error);
            }
        }
    }
    all
}

fn as_json(path: &Path, eviction: &Eviction) -> serde_json::Value {
    json!({
        "schema": "thalweg.eviction/1",
        "file": urls::shown_path(path),
        "path": urls::shown_path(path),
        "proved": eviction.proved(),
        "objection": eviction.objection(),
        "eviction": eviction,
    })
}

fn in_words(path: &Path, eviction: &Eviction) -> String {
    let Eviction { before, after, attempts, dropped_caches, .. } = eviction;
    let times = if *attempts == 1 { "once".into() } else { format!("{attempts} times") };
    let dropped = if *dropped_caches { ", all caches dropped" } else { "" };
    let outcome = eviction
        .objection()
        .map_or_else(|| "proved cold".into(), |why| format!("NOT proved cold: {why}"));
    format!(
        "{}: {} cached before, {} after ({}, asked {times}{dropped}): {outcome}",
        shown_path(path),
        cached(before),
        cached(after),
        method(&after.method),
    )
}

/// How much of a file is cached, in words.
pub(crate) fn cached(residency: &Residency) -> String {
    match (residency.resident_bytes(), residency.fraction()) {
        (Some(bytes), Some(share)) => {
            format!("{} ({:.1} %)", binary_bytes(bytes as f64), share * 100.0)
        }
        (Some(_), None) => "nothing (the file is empty)".into(),
        _ => "unknown".into(),
    }
}

/// How the residency was determined, in words.
pub(crate) fn method(method: &Method) -> String {
    match method {
        Method::Cachestat => "every page counted".into(),
        Method::Sampled(pages) => format!("{pages} pages sampled"),
        Method::Unknown(why) => why.clone(),
        _ => "some other way".into(),
    }
}
