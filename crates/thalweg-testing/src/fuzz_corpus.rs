//! Runs fuzz targets on their committed corpora, `fuzz/corpus/TARGET`: seeds, and inputs that once
//! made a target fail. The targets of `thalweg-gauge` are not in [`fuzz`](crate::fuzz), so each
//! function takes targets as arguments.
#![allow(clippy::print_stdout, reason = "a failing test shows which seed it ran")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of a target, which is also the name of its corpus, and its function.
pub type NamedTarget = (&'static str, fn(&[u8]));

/// A folder of the fuzz crate.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

/// The paths in a folder, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs a target on each of its seeds.
///
/// # Panics
///
/// If the target panics, or has no seeds.
pub fn replay((name, run): NamedTarget) {
    let paths = entries(&folder("corpus").join(name));
    assert!(!paths.is_empty(), "{name} has no seeds");
    for path in paths {
        // Shown only if the next line panics.
        println!("{}", path.display());
        run(&fs::read(&path).unwrap());
    }
}

/// Runs a target on damaged seeds: each seed is cut short at each `step`th byte, and that byte is
/// changed by exclusive or with each of `changes`.
///
/// # Panics
///
/// If the target panics.
pub fn replay_damaged((name, run): NamedTarget, step: usize, changes: &[u8]) {
    for path in entries(&folder("corpus").join(name)) {
        println!("{}", path.display());
        let seed = fs::read(&path).unwrap();
        for at in (0..seed.len()).step_by(step) {
            println!("byte {at}");
            run(&seed[..at]);
            for change in changes {
                let mut bytes = seed.clone();
                bytes[at] ^= change;
                run(&bytes);
            }
        }
    }
}

/// Checks that each target has a program in `fuzz/fuzz_targets`, an entry in `fuzz/Cargo.toml` and
/// a corpus, and that no program or corpus is without a target. Only names that `belongs` accepts
/// count.
///
/// # Panics
///
/// If something is missing.
pub fn check_complete(targets: &[NamedTarget], belongs: impl Fn(&str) -> bool) {
    let names: BTreeSet<String> = targets.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |name: &str| -> BTreeSet<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        entries(&folder(name)).into_iter().map(stem).filter(|stem| belongs(stem)).collect()
    };
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("corpus"), names);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
