//! Runs fuzz targets on their committed corpora, `fuzz/corpus/TARGET`: seeds, and inputs that once
//! made a target fail. The targets of `thalweg-gauge` are not in [`fuzz`](crate::fuzz), so each
//! function takes targets as arguments.
#![allow(clippy::print_stdout, reason = "a failing test shows which seed it ran")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_codec::splitmix::{STEP, mix};

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

/// Runs a target on damaged seeds: each seed is cut short at each `step`th byte, or has zeros from
/// there on, and that byte is changed by exclusive or with each of `changes`.
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
            run(&zeros_from(&seed, at));
            for change in changes {
                let mut bytes = seed.clone();
                bytes[at] ^= change;
                run(&bytes);
            }
        }
    }
}

/// A file whose bytes from `at` on are zeros, as one has whose transfer stopped.
pub fn zeros_from(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..].fill(0);
    bytes
}

/// Runs a target on the mutants of its seeds with these numbers, and stops after so long. Returns
/// how many there were. A number says which mutant it is. One that makes the target panic is
/// written to the folder of temporary files.
///
/// # Panics
///
/// If the target panics, or has no seeds.
pub fn replay_mutants((name, run): NamedTarget, numbers: Range<u64>, most: Duration) -> u64 {
    let seeds: Vec<Vec<u8>> = entries(&folder("corpus").join(name))
        .into_iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    let started = Instant::now();
    let Range { start: first, end } = numbers;
    for number in first..end {
        if started.elapsed() > most {
            return number - first;
        }
        let bytes = mutant(&seeds, number);
        if let Err(panic) = catch_unwind(|| run(&bytes)) {
            let path = std::env::temp_dir().join(format!("{name}-{number}"));
            fs::write(&path, bytes).unwrap();
            println!("{}", path.display());
            resume_unwind(panic);
        }
    }
    end - first
}

/// Pseudorandom numbers.
struct Chance(u64);

impl Chance {
    /// A number below `end`, which is above 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(STEP);
        (mix(self.0) % end as u64) as usize
    }
}

/// A seed with a few changes: bits, numbers of all widths, cuts, repetitions, pieces of others.
fn mutant(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let mut chance = Chance(mix(number));
    let mut bytes = seeds[chance.below(seeds.len())].clone();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        let len = (1 << chance.below(7)).min(bytes.len() - at);
        match chance.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + len)),
            2 => bytes.extend_from_within(at..at + len),
            3 => {
                let other = &seeds[chance.below(seeds.len())];
                let from = chance.below(other.len() + 1);
                let piece = &other[from..(from + (1 << chance.below(9))).min(other.len())];
                bytes.splice(at..at + len, piece.iter().copied());
            }
            4 | 5 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            _ => {
                let width = (1 << chance.below(4)).min(bytes.len() - at);
                let top = u64::MAX >> (8 * (8 - width.max(1)));
                let any = chance.below(1 << 16) as u64;
                let numbers = [0, 1, top, top >> 1, (top >> 1) + 1, bytes.len() as u64, any];
                let value = numbers[chance.below(numbers.len())].to_le_bytes();
                bytes[at..at + width].copy_from_slice(&value[..width]);
            }
        }
    }
    bytes
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
