//! Where real files lie: they are not part of the project. `THALWEG_SHARED` names their folder, or
//! it lies beside the repository. Without it the tests that want them say so and pass, except where
//! CI is set.

use std::path::PathBuf;

/// The folder of nanopore files.
pub(crate) fn nanopore() -> Option<PathBuf> {
    shared("nanopore")
}

/// A folder of real files.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
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
