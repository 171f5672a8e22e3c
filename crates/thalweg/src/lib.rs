//! Scientific files become arrays, as fast as the machine allows and in bounded memory.
//!
//! The data flows one way: a *format* turns a file into extents, a *plan* turns extents into requests, a *store*
//! answers them, a *codec* turns stored bytes into values, and a sink hands them to the caller. The engine knows no
//! format; a format opens no threads. `docs/design.md` has the words and the rules.

pub mod codec;
pub mod engine;
pub mod error;
pub mod extent;
pub mod model;
pub mod plan;
pub mod store;
pub mod synth;

pub use error::{Error, Fault, Result};
