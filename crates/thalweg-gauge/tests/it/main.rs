//! Tests with real processes on a real file system. All modules form one test program, so that it
//! is linked only once.
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
