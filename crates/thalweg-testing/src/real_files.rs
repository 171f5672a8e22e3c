//! The folders of real files, which are not part of the project. The environment variable
//! `THALWEG_SHARED` names the folder above them; without it, the folder is `shared` beside the
//! repository. Where a folder is missing, a test that needs it prints so and passes, unless the
//! environment variable `CI` is set.
#![allow(clippy::print_stdout, reason = "tests print what they skip")]

use std::path::PathBuf;

/// The folder of nanopore files, if it exists.
///
/// # Panics
///
/// If the folder is missing and `CI` is set.
pub fn nanopore() -> Option<PathBuf> {
    shared("nanopore")
}

/// The folder `name` of real files, if it exists.
///
/// # Panics
///
/// If the folder is missing and `CI` is set.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder = std::env::var_os("THALWEG_SHARED")
        .map_or_else(beside, PathBuf::from)
        .join("data")
        .join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing", folder.display());
    println!("skipped: {} is missing", folder.display());
    None
}
