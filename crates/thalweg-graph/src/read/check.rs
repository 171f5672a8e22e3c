//! Whether a network is what was written, and makes sense.

use thalweg_io::{Error, InFile, Result};

use crate::read::network::{Adjacency, Network};
use crate::storage::lists::{ListsMeta, ListsReader};
use crate::storage::schema::Side;
use crate::storage::segment::TOGETHER;
use crate::storage::segment_reader::SegmentReader;

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Pages that were read.
    pub pages: u64,
    /// Lists of neighbours that were read.
    pub lists: u64,
    /// Edges that were read, on both sides.
    pub edges: u64,
    /// What is wrong; the first so many.
    pub defects: Vec<Defect>,
}

/// Something that is wrong.
#[derive(Debug)]
pub struct Defect {
    /// The file that it is in.
    pub file: String,
    /// What it is.
    pub error: Error,
}

/// Defects beyond this many say no more.
const MOST: usize = 1000;

impl Network {
    /// Reads all of the segments: every page against its checksum, and whether lists ascend, name
    /// edges that there can be, and are as many on both sides as were counted. What opening it
    /// checks, the manifest, footers and the log, was right before. `progress` is told how many
    /// bytes were read.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
        let mut checked = Checked::default();
        let mut bytes = 0;
        for reader in &self.state.readers {
            let all = reader.segment.pages();
            for first in (0..all).step_by(TOGETHER as usize) {
                if self.fetcher.control.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                progress(bytes);
                let pages = first..all.min(first + TOGETHER);
                checked.pages += pages.end - pages.start;
                if let Err(error) = reader.segment.sums((first / TOGETHER) as usize) {
                    checked.note(reader, error);
                    continue;
                }
                // One by one, so that each damaged page is named.
                for page in pages {
                    let read = reader.segment.with(page..page + 1, |page| {
                        bytes += page.len() as u64;
                        Ok(())
                    });
                    read.unwrap_or_else(|error| checked.note(reader, error));
                }
            }
        }
        if !checked.defects.is_empty() {
            return Ok(checked);
        }
        for reader in &self.state.readers {
            for edges in reader.all_edges() {
                let mut both =
                    edges.iter().flat_map(|edges| [&edges.added, &edges.removed]).flatten();
                let outcome = both.try_for_each(|lists| self.lists(reader, lists, &mut checked));
                if let Err(error) = edges.map(drop).and(outcome) {
                    checked.note(reader, error);
                }
            }
            if let Err(error) = reader.all_vertices().try_for_each(|vertices| vertices.map(drop)) {
                checked.note(reader, error);
            }
        }
        for (population, edges) in self.populations().iter().enumerate() {
            for side in [Side::Out, Side::In] {
                let count = self.count(Adjacency { population, side });
                if count != edges.count {
                    let found = format!(
                        "{count} edges of {:?} by their {side:?} ends",
                        edges.population.name
                    );
                    let fault = thalweg_io::Fault::new(
                        0,
                        found,
                        format!("{}, as the manifest says", edges.count),
                    );
                    let error = fault.in_file(self.disk.name(), 0, "a population");
                    checked
                        .defects
                        .push(Defect { file: crate::storage::manifest::FILE.into(), error });
                }
            }
        }
        Ok(checked)
    }

    fn count(&self, adjacency: Adjacency) -> u64 {
        let parts = self
            .state
            .readers
            .iter()
            .filter_map(|reader| reader.footer.edges(adjacency.population, adjacency.side));
        parts.fold(0, |sum, edges| {
            let len = |lists: &Option<ListsMeta>| lists.as_ref().map_or(0, |lists| lists.ids.len());
            (sum + len(&edges.added)).saturating_sub(len(&edges.removed))
        })
    }

    fn lists(
        &self,
        reader: &SegmentReader,
        lists: &ListsReader,
        checked: &mut Checked,
    ) -> Result<()> {
        let mut last: Option<u64> = None;
        let wrong = |what: String| {
            let fault = thalweg_io::Fault::new(0, what, "vertices and neighbours that ascend");
            fault.in_file(reader.segment.store().name(), 0, "lists of neighbours")
        };
        lists.each(&reader.segment, &mut |vertex, ids, _| {
            checked.lists += 1;
            checked.edges += ids.len() as u64;
            if last.is_some_and(|last| last >= vertex) {
                return Err(wrong(format!("vertex {vertex} after {last:?}")));
            }
            last = Some(vertex);
            if !ids.is_sorted() {
                return Err(wrong(format!("neighbours of vertex {vertex} in no order")));
            }
            if checked.lists.is_multiple_of(4096) && self.fetcher.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            Ok(())
        })
    }
}

impl Checked {
    fn note(&mut self, reader: &SegmentReader, error: Error) {
        if self.defects.len() < MOST {
            self.defects.push(Defect { file: reader.file.clone(), error });
        }
    }
}
