//! Real processes on a real file system, and what the project publishes. One program, so that it
//! links once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests"
)]

mod cache;
mod common;
mod comparison;
#[path = "../../../thalweg/tests/it/corpus.rs"]
mod corpus;
mod fuzz_corpus;
mod published;
mod report;
mod resume;
mod trial;
