//! What a read would do, without doing it.

use std::time::Duration;

use serde::Serialize;
use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::extent::{Fetch, Source};
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::plan::{GapRule, Load};
use thalweg_io::{Error, Result, plan};

use super::layout::Layout;
use super::pod5::Aim;
use super::{ReadFile, Selection};

/// A read's plan: every number that the engine would run by.
#[derive(Debug, Clone)]
pub struct Explained {
    /// What the store is believed to do.
    pub model: StoreModel,
    /// How that came to be known.
    pub origin: Origin,
    /// The sizes of the run.
    pub shape: Shape,
    /// What one more request costs the store, in bytes. Gaps between reads are fetched where they are
    /// about this wide or narrower; [`GapRule`] says exactly.
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
        let budget = self.options.budget;
        let has_index = || match &self.layout {
            Layout::Pod5(file) => file.saved_index(self).map(|index| index.is_some()),
            _ => self.saved_index().map(|index| index.is_some()),
        };
        let reads = match selection {
            Selection::All => self.known_reads()?,
            Selection::Ids(_) if !has_index()? => {
                return Err(Error::NotFound {
                    file: self.store.name().clone(),
                    what: "an index".into(),
                    advice: "make one with `thalweg index`; without it, nothing says where the reads are".into(),
                });
            }
            Selection::Ids(ids) => Some(ids.len() as u64),
        };
        let (requests, fetched_bytes, wanted_bytes) = self.requests(selection, &shape)?;
        let buffers_bytes = shape.buffers * (shape.block + shape.headroom);
        let batches_bytes = match delivery {
            Delivery::Worker => 0,
            _ => shape.batches * plan::batch_bytes(&shape, budget),
        };
        let codecs_bytes = budget.memory.saturating_sub(buffers_bytes + batches_bytes);
        Ok(Explained {
            model: self.model,
            origin: self.origin,
            shape,
            gap_bytes: GapRule::new(&self.model).break_even(),
            shares: Shares {
                total_bytes: budget.memory,
                buffers_bytes,
                batches_bytes,
                codecs_bytes,
            },
            window_bytes: matches!(selection, Selection::Ids(_)).then(|| self.window()),
            reads,
            requests,
            fetched_bytes,
            wanted_bytes,
            predicted: Load { requests, bytes: fetched_bytes }.predicted(&self.model),
        })
    }

    /// Requests, their bytes, and those of the data.
    fn requests(&self, selection: &Selection, shape: &Shape) -> Result<(u64, u64, u64)> {
        let align = self.store.alignment() as u64;
        let add = |(requests, fetched, wanted): (u64, u64, u64), fetch: Fetch| {
            // As the engine does: from the aligned offset on.
            let start = fetch.range.start / align * align;
            let (mut own, mut end) = (0, start);
            for extent in &fetch.extents {
                own += extent.range.end.saturating_sub(extent.range.start.max(end));
                end = end.max(extent.range.end);
            }
            (requests + 1, fetched + fetch.range.end - start, wanted + own)
        };
        if let Layout::Pod5(file) = &self.layout {
            // The very plan of a run: what it reads of the tables on the way is no part of it.
            let (source, board) = self.pod5_source(file, selection, shape, Aim::Samples)?;
            let Source::Planned(fetches) = source else { return Ok((0, 0, 0)) };
            let mut sum = (0, 0, 0);
            for fetch in fetches {
                board.pass()?;
                sum = add(sum, fetch);
            }
            return Ok(sum);
        }
        Ok(match self.places(selection)? {
            None => self.whole_file(shape),
            Some(places) => self.gather(places, shape).fold((0, 0, 0), add),
        })
    }

    /// Requests, their bytes, and those of the data, when the whole file is streamed over.
    fn whole_file(&self, shape: &Shape) -> (u64, u64, u64) {
        let (size, block) = (self.store.size(), shape.block as u64);
        let align = self.store.alignment() as u64;
        if self.header.data_offset >= size {
            return (0, 0, 0);
        }
        let start = self.header.data_offset / align * align;
        (size.div_ceil(block) - start / block, size - start, size - self.header.data_offset)
    }
}
