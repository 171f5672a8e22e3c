//! Planning a run without reading data.

use std::time::Duration;

use serde::Serialize;
use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::plan::{GapRule, Load};
use thalweg_io::store::{Asked, Counter};
use thalweg_io::{Error, Result, plan};

use super::{ReadFile, Selection};
use crate::file::{PaidRequests, RequestTotals};

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
    /// What was asked of the store before the run: the format, the header, tables, which reads
    /// there are. It is counted if [`Options::counter`](thalweg_io::open::Options) is set.
    pub before: Asked,
    /// Requests of the run to the store.
    pub requests: u64,
    /// Bytes that these requests transfer.
    pub fetched_bytes: u64,
    /// Of these, the requests and bytes that a [cache](thalweg_io::object_cache) of an object does
    /// not save.
    pub paid: PaidRequests,
    /// Transferred bytes that belong to selected reads. A read that is selected twice counts once
    /// per request.
    pub wanted_bytes: u64,
    /// Predicted decoding time of each thread, in seconds.
    pub processor_s: f64,
    /// The predicted time: that of the store for all requests, according to its model, plus the
    /// decoding time that does not overlap.
    pub predicted: Duration,
}

impl Explained {
    /// Requests before the run and of the run, but for those that a cache saves.
    pub fn all_requests(&self) -> u64 {
        self.before.requests + self.paid.requests
    }

    /// Bytes that all these requests transfer.
    pub fn all_bytes(&self) -> u64 {
        self.before.bytes + self.paid.bytes
    }

    /// How often requests wait for the answers of others. Those of the run do not wait for each
    /// other.
    pub fn rounds(&self) -> u64 {
        self.before.rounds + u64::from(self.paid.requests > 0)
    }
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
    /// Plans a run without reading the data. What a run reads before its data is read.
    ///
    /// # Errors
    /// [`Error::NotFound`] for unknown ids, or if there is no index for an id list, because making
    /// one would read the whole file.
    pub fn explain(&self, selection: &Selection, delivery: Delivery) -> Result<Explained> {
        self.explain_columns(selection, delivery, true)
    }

    /// Plans a run over all columns, or without `signal` over all but the signal, as
    /// [`ReadSet::scan`](super::ReadSet::scan) makes one.
    ///
    /// # Errors
    /// Those of [`ReadFile::explain`].
    pub fn explain_columns(
        &self,
        selection: &Selection,
        delivery: Delivery,
        signal: bool,
    ) -> Result<Explained> {
        let shape = self.file.shape_of(selection, delivery);
        let budget = self.file.options.budget;
        match selection {
            Selection::Ids(_) if !self.reads.has_index(&self.file)? => {
                return Err(Error::NotFound {
                    file: self.file.name().clone(),
                    what: "index".into(),
                    advice:
                        "make one with `thalweg index`; without it, nothing says where the reads \
                             are"
                        .into(),
                });
            }
            // Columns have the types and names of the whole header.
            _ if delivery != Delivery::Worker => _ = self.whole_header(),
            _ => {}
        }
        let RequestTotals { requests, fetched_bytes, wanted_bytes, paid } =
            self.reads.requests(&self.file, selection, &shape, signal)?;
        // Counting reads may take requests that a run does not make.
        let before = self.file.options.counter.as_ref().map(Counter::asked).unwrap_or_default();
        let reads = match selection {
            Selection::All => self.known_reads()?,
            Selection::Ids(ids) => Some(ids.len() as u64),
        };
        let buffers_bytes = shape.buffers * (shape.block + shape.headroom);
        let batches_bytes = match delivery {
            Delivery::Worker => 0,
            _ => shape.batches * plan::batch_bytes(&shape, budget),
        };
        let codecs_bytes = budget.memory.saturating_sub(buffers_bytes + batches_bytes);
        let processor_s = self.processor_s([wanted_bytes, fetched_bytes], shape.threads, delivery);
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
            before,
            requests,
            fetched_bytes,
            paid,
            wanted_bytes,
            processor_s,
            predicted: plan::in_rounds(before, &self.file.model)
                + Load { requests, bytes: fetched_bytes }
                    .predicted_with(&self.file.model, processor_s),
        })
    }
}
