//! Every fuzz target over its committed corpus: seeds, and whatever once made a target fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use thalweg::testing::fuzz::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_corpora_hold() {
    for (name, run) in TARGETS {
        let paths = entries(&folder("corpus").join(name));
        assert!(!paths.is_empty(), "{name} has no seeds");
        for path in paths {
            // Shown only if the next line panics.
            println!("{}", path.display());
            run(&fs::read(&path).unwrap());
        }
    }
}

/// Damage that needs no fuzzer: every seed cut short at every place, and with every byte changed.
#[test]
fn damaged_seeds_hold() {
    for (name, run) in TARGETS {
        // Files go through threads: a sample of the damage is enough there.
        let step = if name == "whole_file" { 97 } else { 1 };
        for path in entries(&folder("corpus").join(name)) {
            println!("{}", path.display());
            let seed = fs::read(&path).unwrap();
            for at in (0..seed.len()).step_by(step) {
                run(&seed[..at]);
                for change in [0x01, 0x80, 0xff] {
                    let mut bytes = seed.clone();
                    bytes[at] ^= change;
                    run(&bytes);
                }
            }
        }
    }
}

#[test]
fn every_target_is_a_program_and_has_a_corpus() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |name: &str| -> BTreeSet<String> {
        let stems =
            entries(&folder(name)).into_iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        // thalweg-gauge sees to its own.
        stems.filter(|stem| !stem.starts_with("gauge_")).collect()
    };
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("corpus"), names);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
