//! Tests of the command as a program. They are in one test program, so that it is linked once;
//! tests that need the machine for themselves are in `verdict.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod bench;
mod bench_commands;
mod bench_files;
#[cfg(feature = "object")]
mod cache;
mod command;
mod common;
mod convert;
mod everyday;
mod exit_codes;
#[cfg(feature = "hdf5")]
mod extents;
mod fastq;
mod graph;
#[cfg(feature = "object")]
mod graph_urls;
mod hostile;
#[cfg(feature = "mount")]
mod mount;
mod named_files;
mod names;
#[cfg(feature = "object")]
mod object_sets;
mod opened_once;
mod option_matrix;
mod outputs;
mod plot;
mod pod5;
mod published;
mod read_paths;
mod real_verbs;
mod scan;
mod shell;
mod success;
mod terminal;
#[cfg(feature = "object")]
mod uploads;
#[cfg(feature = "object")]
mod url_messages;
#[cfg(feature = "object")]
mod url_plans;
#[cfg(feature = "object")]
mod urls;
mod verbs;
mod what_it_is;
