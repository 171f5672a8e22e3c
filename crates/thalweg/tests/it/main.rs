//! Tests of the library's public interface. They are in one test program, so that it is linked
//! once; tests that need a process of their own are beside it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod check;
mod columns;
mod columns_real;
mod convert;
#[cfg(feature = "hdf5")]
mod doctor;
mod engine;
mod explain;
#[cfg(feature = "hdf5")]
mod fast5_hostile;
#[cfg(feature = "hdf5")]
mod fast5_real;
#[cfg(feature = "hdf5")]
mod fast5_write;
mod fuzz_corpus;
mod graph;
#[cfg(feature = "hdf5")]
mod graph_input;
#[cfg(feature = "hdf5")]
mod hdf5_cut;
mod hostile;
mod measuring;
mod memory;
#[cfg(feature = "hdf5")]
mod nexus;
mod pod5_hostile;
mod pod5_real;
mod pod5_salvage;
mod pod5_scale;
mod read_set;
mod slow5_real;
mod store_conformance;
mod store_faults;
mod synth;
