//! Runs the fuzz targets of this crate on their corpora.

use thalweg_gauge::testing::TARGETS;
use thalweg_testing::fuzz_corpus::{check_complete, replay, replay_damaged};

#[test]
fn the_corpora_and_their_damaged_seeds_hold() {
    for target in TARGETS {
        replay(target);
        replay_damaged(target, 1, &[0x01, 0x10, 0x80]);
    }
}

#[test]
fn every_target_is_a_program_and_has_a_corpus() {
    check_complete(&TARGETS, |stem| stem.starts_with("gauge_"));
}
