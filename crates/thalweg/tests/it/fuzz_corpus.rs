//! The library's fuzz targets over their corpora.

use thalweg_testing::fuzz::TARGETS;
use thalweg_testing::fuzz_corpus::{check_complete, replay, replay_damaged};

#[test]
fn the_corpora_hold() {
    TARGETS.into_iter().for_each(replay);
}

#[test]
fn damaged_seeds_hold() {
    for target in TARGETS {
        // Files go through threads, and HDF5's are large for what is in them: a sample of the
        // damage is enough there.
        let step = match target.0 {
            "whole_file" | "pod5" | "graph_segment" => 97,
            "hdf5_meta" => 31,
            _ => 1,
        };
        replay_damaged(target, step, &[0x01, 0x80, 0xff]);
    }
}

#[test]
fn every_target_is_a_program_and_has_a_corpus() {
    // thalweg-gauge sees to its own.
    check_complete(&TARGETS, |stem| !stem.starts_with("gauge_"));
}
