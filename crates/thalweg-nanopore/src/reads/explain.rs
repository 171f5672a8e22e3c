//! Planning a run without reading data.

use std::time::Duration;

use serde::Serialize;
use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::plan::{GapRule, Load};
use thalweg_io::{Error, Result, plan};

use super::{ReadFile, Selection};
use crate::file::RequestTotals;

/// The plan of a run: all numbers that the engine would use.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The performance model of the store.
    pub model: StoreModel,
    /// Where the model comes from.
    pub origin: Origin,
    /// The sizes of the run.
    pub shape: Shape,
    /// The cost of one more request to the store, in bytes. Gaps between reads are fetched if they
    /// are at most about this wide; [`GapRule`] has the exact rule.
    pub gap_bytes: u64,
    /// The division of the memory budget.
    pub shares: Shares,
    /// Stored bytes of an id list that are sorted by offset at a time; `None` if the whole file is
    /// read.
    pub window_bytes: Option<u64>,
    /// The number of selected reads; `None` if it is unknown without reading the file.
    pub reads: Option<u64>,
    /// Requests to the store. For POD5: requests for signal only.
    pub requests: u64,
    /// Bytes that the requests transfer.
    pub fetched_bytes: u64,
    /// Transferred bytes that belong to selected reads. A read that is selected twice counts once
    /// per request.
    pub wanted_bytes: u64,
    /// The time that the store takes for the requests, according to its model.
    pub predicted: Duration,
}

/// The division of a memory budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// The whole budget.
    pub total_bytes: usize,
    /// Block buffers, including the headroom before each.
    pub buffers_bytes: usize,
    /// Batches on their way to the caller.
    pub batches_bytes: usize,
    /// The rest: codec state and records of unusual size.
    pub codecs_bytes: usize,
}

impl ReadFile {
    /// Plans a run without reading the data.
    ///
    /// # Errors
    /// [`Error::NotFound`] for unknown ids, or if there is no index for an id list, because making
    /// one would read the whole file.
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
