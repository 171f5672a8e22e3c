//! Fuzz targets over their committed corpora: seeds, and whatever once made a target fail. Each
//! crate has targets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of a target, and what it does with bytes.
pub(crate) type Target = (&'static str, fn(&[u8]));

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The seeds as they are.
pub(crate) fn holds((name, run): Target) {
    let paths = entries(&folder("corpus").join(name));
    assert!(!paths.is_empty(), "{name} has no seeds");
    for path in paths {
        // Shown only if the next line panics.
        println!("{}", path.display());
        run(&fs::read(&path).unwrap());
    }
}

/// Damage that needs no fuzzer: every seed cut short at each `step`th place, and with the byte
/// there changed.
pub(crate) fn holds_damaged((name, run): Target, step: usize, changes: &[u8]) {
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

/// Every target is a program and has a corpus, and there is none of either without a target.
pub(crate) fn is_complete(targets: &[Target], belongs: impl Fn(&str) -> bool) {
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
