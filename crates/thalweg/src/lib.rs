//! Scientific files become arrays, as fast as the machine allows and in bounded memory.
//!
//! The data flows one way: a *format* turns a file into extents, a *plan* turns extents into
//! requests, a *store* answers them, a *codec* turns stored bytes into values, and a sink hands
//! them to the caller. The engine knows no format; a format opens no threads. `docs/design.md` has
//! the words and the rules.
//!
//! This crate is the front door: everything that it names lives in one of `thalweg-codec`,
//! `thalweg-io`, `thalweg-hdf5`, `thalweg-nanopore` and `thalweg-graph`.

#[doc(inline)]
pub use thalweg_codec as codec;
#[doc(inline)]
pub use thalweg_graph as graph;
#[doc(inline)]
pub use thalweg_hdf5 as hdf5;
#[cfg(feature = "hdf5")]
#[doc(inline)]
pub use thalweg_hdf5::{arrays, doctor, guard, nexus, repack};
#[doc(inline)]
pub use thalweg_io::{
    Error, Fault, InFile, Result, cache_folder, condition, control, disk, engine, error, extent,
    model, new_file, open, plan, pool, residency, sidecar, store,
};
#[doc(inline)]
pub use thalweg_nanopore::{convert, reads, write};

/// File formats as pure functions over bytes: what a file says about itself, and where its records
/// lie.
pub mod format {
    #[doc(inline)]
    pub use thalweg_nanopore::format::*;
    #[doc(inline)]
    pub use thalweg_nanopore::{bam, fast5, pod5, slow5};
}

/// Synthetic files of any size, the same on every machine.
pub mod synth {
    #[doc(inline)]
    pub use thalweg_graph::synth as neuroglial;
    #[doc(inline)]
    pub use thalweg_hdf5::synth as nexus;
    #[doc(inline)]
    pub use thalweg_nanopore::synth::*;
}
