//! Real processes on a real file system. One program, so that it links once.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "real/cache.rs"]
mod cache;
#[path = "real/common.rs"]
mod common;
#[path = "real/comparison.rs"]
mod comparison;
#[path = "real/report.rs"]
mod report;
#[path = "real/resume.rs"]
mod resume;
#[path = "real/trial.rs"]
mod trial;
