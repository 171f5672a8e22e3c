//! POD5 files through the engine.
//!
//! What a read needs lies in three places: its row in a batch of the Reads table, the places of its
//! signal rows in the heads and tails of Signal batches, and the signal itself. A [`scout`] goes
//! ahead of the engine, gathers the first two in few small requests, and hands the engine extents
//! of signal to fetch and the workers a [`slate`] of what to make of them. Neither table is ever
//! held as a whole.

mod cache;
mod check;
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

use thalweg_io::Result;
use thalweg_io::engine::Shape;
use thalweg_io::extent::Source;

use super::{ReadFile, Selection};
use crate::pod5::{Container, SignalCoding};

pub(super) use get::Pod5Getter;
pub(super) use index::Pod5Index;
pub(super) use open::open;
pub(super) use scout::Aim;
pub(super) use slate::{Board, Unpack};
pub(super) use tables::Tables;

impl ReadFile {
    /// The extents of the selected reads, and the board on which a run's workers find what to make
    /// of them.
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

/// What a POD5 file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pod5Info<'a> {
    /// The version of the library that wrote it: of the format, as far as there is one.
    pub version: &'a str,
    /// What wrote it.
    pub software: &'a str,
    /// How its signal is stored.
    pub signal: SignalCoding,
    /// Batches of the Reads table.
    pub reads_batches: usize,
    /// Batches of the Signal table.
    pub signal_batches: usize,
    /// Rows of each of them but the last.
    pub signal_rows: u64,
}

impl Pod5 {
    /// What it says of itself.
    pub(super) fn info(&self) -> Pod5Info<'_> {
        Pod5Info {
            version: &self.container.version,
            software: &self.container.software,
            signal: self.tables.coding(),
            reads_batches: self.tables.reads_blocks.len(),
            signal_batches: self.tables.signal_blocks.len(),
            signal_rows: self.tables.rows_per_batch,
        }
    }

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
