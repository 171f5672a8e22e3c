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
mod sort;
mod tables;

use std::sync::{Arc, OnceLock};

use super::{ReadFile, Selection};
use crate::engine::Shape;
use crate::error::Result;
use crate::extent::Source;
use crate::format::pod5::Container;

pub(super) use get::Pod5Getter;
pub(super) use index::Pod5Index;
pub(super) use open::open;
pub(super) use scout::Aim;
pub(super) use slate::{Board, Unpack};
pub(super) use tables::Tables;

impl ReadFile {
    /// The extents of the selected reads, and the board on which a run's workers find what to make of them.
    pub(super) fn pod5_source(
        &self,
        file: &Pod5,
        selection: &Selection,
        shape: &Shape,
        aim: Aim,
    ) -> Result<(Source, Arc<Board>)> {
        let wish = self.pod5_wish(file, selection)?;
        scout::start(&file.tables, wish, shape, self.window(), &self.options.control, aim)
    }
}

impl Pod5 {
    /// What the user should know.
    pub(super) fn note(&self) -> Option<String> {
        let words = "a footer is missing or damaged (cut short, or never finished): tables were found by walking through \
                     the file, which `thalweg convert` makes whole";
        self.is_recovered.then(|| words.into())
    }
}

/// A POD5 file, open.
#[derive(Debug)]
pub(super) struct Pod5 {
    pub(super) container: Container,
    /// A footer is missing or damaged: its tables were found by walking through the file.
    pub(super) is_recovered: bool,
    pub(super) tables: Arc<Tables>,
    pub(super) index: OnceLock<Arc<Pod5Index>>,
    /// What it has and a read has no place for, in words.
    pub(super) left_out: Vec<String>,
}
