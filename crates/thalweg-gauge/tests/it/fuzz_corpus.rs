//! Every fuzz target over its committed corpus: seeds, and whatever once made a target fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use thalweg_gauge::testing::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The seeds as they are, cut short at every place, and with every byte changed.
#[test]
fn the_corpora_and_their_damaged_seeds_hold() {
    for (name, run) in TARGETS {
        for path in entries(&folder("corpus").join(name)) {
            // Shown only if what follows panics.
            println!("{}", path.display());
            let seed = fs::read(&path).unwrap();
            run(&seed);
            for at in 0..seed.len() {
                println!("byte {at}");
                run(&seed[..at]);
                for change in [0x01, 0x10, 0x80] {
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
        stems.filter(|stem| stem.starts_with("gauge_")).collect()
    };
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("corpus"), names);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
