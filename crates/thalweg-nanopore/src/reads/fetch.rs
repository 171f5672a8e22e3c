//! A read without its decoding: what storage alone takes.

use thalweg_io::Result;
use thalweg_io::engine::{Clocks, Decoder, Delivery};
use thalweg_io::extent::Group;

use super::{ReadFile, Selection, Summary};

/// Counts extents and looks at none.
struct Untouched;

impl Decoder for Untouched {
    /// Extents that came by.
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
    /// Makes the very requests of a read and finds the records in what comes, but decodes and
    /// delivers nothing. For measurements: set beside the time of a whole read, it tells what
    /// decoding costs.
    ///
    /// # Errors
    /// As [`ReadFile::visit`], but for what only decoding would show.
    pub fn fetch(&self, selection: &Selection) -> Result<Summary> {
        let shape = self.shape(Delivery::Worker);
        let (source, _) = self.reads.source(&self.file, selection, &shape, true)?;
        let finished = self.file.start(source, Untouched, shape)?.finish()?;
        let reads = finished.workers.iter().sum();
        Ok(Summary { reads, ..self.summary(finished.clocks) })
    }
}

impl Summary {
    /// The summary of two reads, one after the other.
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
