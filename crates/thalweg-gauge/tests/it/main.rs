//! Real processes on a real file system. All tests are in one program, so that it is linked once.
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
mod fuzz_corpus;
mod report;
mod resume;
mod trial;
