//! The command from outside. One program, so that it links once; what needs the machine for itself
//! lies beside it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod bench;
mod command;
mod common;
mod convert;
mod everyday;
mod exit_codes;
#[cfg(feature = "hdf5")]
mod extents;
mod hostile;
mod opened_once;
mod plot;
mod pod5;
mod published;
mod read_paths;
mod real_verbs;
mod scan;
mod verbs;
