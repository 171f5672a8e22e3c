//! POD5 files through the engine.
//!
//! What a read needs lies in three places: its row in a batch of the Reads table, the places of its signal rows in the
//! heads and tails of Signal batches, and the signal itself. A [`scout`] goes ahead of the engine, gathers the first two
//! in few small requests, and hands the engine extents of signal to fetch and the workers a [`slate`] of what to make of
//! them. Neither table is ever held as a whole.

mod cache;
mod check;
mod fetch;
mod get;
mod ids;
mod index;
mod lookup;
mod open;
mod recover;
mod scout;
mod slate;
mod tables;

use std::sync::{Arc, OnceLock};

use crate::format::pod5::Container;

pub(super) use get::Pod5Getter;
pub(super) use index::Pod5Index;
pub(super) use open::open;
pub(super) use scout::{Aim, Wish, start};
pub(super) use slate::{Board, Unpack};
pub(super) use tables::Tables;

impl Pod5 {
    /// What the user should know.
    pub(super) fn note(&self) -> Option<String> {
        let words = "its footer is missing or damaged (cut short, or never finished): the tables were found by walking \
                     through the file, which `thalweg convert` makes whole";
        self.is_recovered.then(|| words.into())
    }
}

/// A POD5 file, open.
#[derive(Debug)]
pub(super) struct Pod5 {
    pub(super) container: Container,
    /// Its footer is missing or damaged: the tables were found by walking through the file.
    pub(super) is_recovered: bool,
    pub(super) tables: Arc<Tables>,
    pub(super) index: OnceLock<Arc<Pod5Index>>,
    /// What it has and a read has no place for, in words.
    pub(super) left_out: Vec<String>,
}
