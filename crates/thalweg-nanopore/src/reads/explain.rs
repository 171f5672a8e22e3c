//! What a read would do, without doing it.

use std::time::Duration;

use serde::Serialize;
use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::plan::{GapRule, Load};
use thalweg_io::{Error, Result, plan};

use super::{ReadFile, Selection};
use crate::file::RequestTotals;

/// A read's plan: every number that the engine would run by.
#[derive(Debug, Clone)]
pub struct Explained {
    /// What the store is believed to do.
    pub model: StoreModel,
    /// How that came to be known.
    pub origin: Origin,
    /// The sizes of the run.
    pub shape: Shape,
    /// What one more request costs the store, in bytes. Gaps between reads are fetched where they
    /// are about this wide or narrower; [`GapRule`] says exactly.
    pub gap_bytes: u64,
    /// Where the memory goes.
    pub shares: Shares,
    /// Stored bytes of an id list that are put into offset order at a time; none when the whole
    /// file is read.
    pub window_bytes: Option<u64>,
    /// Reads asked for; none where only reading the file would tell.
    pub reads: Option<u64>,
    /// Requests to the store; of POD5 those for signal alone.
    pub requests: u64,
    /// Bytes that they transfer.
    pub fetched_bytes: u64,
    /// Of these, bytes that were asked for; a read that is asked for twice counts once a request.
    pub wanted_bytes: u64,
    /// How long the store takes for them, by its model.
    pub predicted: Duration,
}

/// Where a budget's memory goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// The whole budget.
    pub total_bytes: usize,
    /// Block buffers, with the room before each.
    pub buffers_bytes: usize,
    /// Batches on their way to the caller.
    pub batches_bytes: usize,
    /// What is left for codec state and records of unusual size.
    pub codecs_bytes: usize,
}

impl ReadFile {
    /// Plans a read without reading the data.
    ///
    /// # Errors
    /// [`Error::NotFound`] about ids, or when there is no index for an id list: making one would
    /// read the whole file.
    pub fn explain(&self, selection: &Selection, delivery: Delivery) -> Result<Explained> {
        let shape = self.shape(delivery);
        let budget = self.file.options.budget;
        let reads = match selection {
            Selection::All => self.known_reads()?,
            Selection::Ids(_) if !self.reads.has_index(&self.file)? => {
                return Err(Error::NotFound {
                    file: self.file.name().clone(),
                    what: "an index".into(),
                    advice:
                        "make one with `thalweg index`; without it, nothing says where the reads \
                             are"
                        .into(),
                });
            }
            Selection::Ids(ids) => Some(ids.len() as u64),
        };
        let RequestTotals { requests, fetched_bytes, wanted_bytes } =
            self.reads.requests(&self.file, selection, &shape)?;
        let buffers_bytes = shape.buffers * (shape.block + shape.headroom);
        let batches_bytes = match delivery {
            Delivery::Worker => 0,
            _ => shape.batches * plan::batch_bytes(&shape, budget),
        };
        let codecs_bytes = budget.memory.saturating_sub(buffers_bytes + batches_bytes);
        Ok(Explained {
            model: self.file.model,
            origin: self.origin,
            shape,
            gap_bytes: GapRule::new(&self.file.model).break_even(),
            shares: Shares {
                total_bytes: budget.memory,
                buffers_bytes,
                batches_bytes,
                codecs_bytes,
            },
            window_bytes: matches!(selection, Selection::Ids(_)).then(|| self.file.window()),
            reads,
            requests,
            fetched_bytes,
            wanted_bytes,
            predicted: Load { requests, bytes: fetched_bytes }.predicted(&self.file.model),
        })
    }
}
