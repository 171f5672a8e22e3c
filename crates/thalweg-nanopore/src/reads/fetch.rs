//! Fetching reads without decoding them, to measure storage alone.

use thalweg_io::Result;
use thalweg_io::engine::{Clocks, Decoder, Delivery};
use thalweg_io::extent::Group;

use super::{ReadFile, Selection, Summary};

/// Counts extents without reading their bytes.
struct Untouched;

impl Decoder for Untouched {
    /// The number of extents.
    type Worker = u64;
    type Batch = ();

    fn worker(&self) -> u64 {
        0
    }

    fn batch(&self) {}

    fn decode(
        &self,
        extents: &mut u64,
        group: &Group,
        next: &mut usize,
        (): &mut (),
    ) -> Result<()> {
        *extents += (group.len() - *next) as u64;
        *next = group.len();
        Ok(())
    }

    fn decoded_bytes(_: &u64) -> u64 {
        0
    }
}

impl ReadFile {
    /// Makes the same requests as a run over the selection and finds the records, but decodes
    /// nothing. For measurements: the difference from the time of a whole run is the cost of
    /// decoding.
    ///
    /// # Errors
    /// Those of [`ReadFile::visit`], except for defects that only decoding detects.
    pub fn fetch(&self, selection: &Selection) -> Result<Summary> {
        let shape = self.file.shape_of(selection, Delivery::Worker);
        let (source, _) = self.reads.source(&self.file, selection, &shape, true)?;
        let finished = self.file.start(source, Untouched, shape)?.finish()?;
        let reads = finished.workers.iter().sum();
        Ok(Summary { reads, ..self.summary(finished.clocks) })
    }
}

impl Summary {
    /// The summary of two runs, one after the other.
    #[must_use]
    pub(super) fn then(self, later: &Self) -> Self {
        Self {
            reads: self.reads + later.reads,
            samples: self.samples + later.samples,
            dependent_requests: self.dependent_requests + later.dependent_requests,
            clocks: Clocks::then(self.clocks, later.clocks),
        }
    }
}
