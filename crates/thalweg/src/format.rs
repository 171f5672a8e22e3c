//! File formats as pure functions over bytes: what a file says about itself, and where its records lie.
//!
//! A format opens no file and no thread. It is handed bytes, it answers with borrowed views of them, and whatever is
//! wrong with them is a [`Fault`](crate::Fault) that names the byte.

pub mod slow5;
