//! Runs the library's fuzz targets on their corpora.

use thalweg_testing::fuzz::{FuzzTarget, TARGETS, hdf5_repack};
use thalweg_testing::fuzz_corpus::{
    NamedTarget, check_complete, replay, replay_damaged, replay_mutants,
};
use thalweg_testing::one_of;

fn targets() -> impl Iterator<Item = NamedTarget> {
    TARGETS.into_iter().chain([("hdf5_repack", hdf5_repack as FuzzTarget)])
}

#[test]
fn the_corpora_hold() {
    targets().for_each(replay);
}

#[test]
fn damaged_seeds_hold() {
    for target in targets() {
        // Whole files are slow because they use threads, and HDF5 files are large for their
        // contents, so only some of the damage is tested.
        let step = match target.0 {
            "whole_file" | "pod5" | "graph_segment" => 97,
            "hdf5_meta" | "hdf5_file" | "http_answers" => 31,
            "hdf5_repack" => 197,
            _ => 1,
        };
        replay_damaged(target, step * one_of(), &[0x01, 0x80, 0xff]);
    }
}

#[test]
fn every_target_is_a_program_and_has_a_corpus() {
    // thalweg-gauge checks its own targets.
    check_complete(&targets().collect::<Vec<_>>(), |stem| !stem.starts_with("gauge_"));
}

/// More with `FUZZ=1000000`, for longer than a minute a target with `FUZZ_SECONDS`, and one target
/// with `FUZZ_TARGET=pod5`.
#[test]
fn mutants_of_the_corpora_hold() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let most = std::time::Duration::from_secs(asked("FUZZ_SECONDS").unwrap_or(60));
    let only = std::env::var("FUZZ_TARGET").ok();
    for target in targets().filter(|target| only.as_deref().is_none_or(|name| name == target.0)) {
        let done = replay_mutants(target, 0..asked("FUZZ").unwrap_or(200), most);
        println!("{}: {done} mutants", target.0);
    }
}
