//! The fuzz targets of measuring over their corpora.

use thalweg_gauge::testing::TARGETS;

use crate::corpus::{holds, holds_damaged, is_complete};

#[test]
fn the_corpora_and_their_damaged_seeds_hold() {
    for target in TARGETS {
        holds(target);
        holds_damaged(target, 1, &[0x01, 0x10, 0x80]);
    }
}

#[test]
fn every_target_is_a_program_and_has_a_corpus() {
    is_complete(&TARGETS, |stem| stem.starts_with("gauge_"));
}
