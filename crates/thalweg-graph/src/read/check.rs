//! Checking a network: the checksums of all pages, and the consistency of all lists.

use thalweg_io::{Error, Fault, InFile, Result};

use crate::storage::manifest;

use crate::read::network::{Adjacency, Network};
use crate::storage::lists::{ListsMeta, ListsReader};
use crate::storage::schema::Side;
use crate::storage::segment::PAGES_PER_SUM_PAGE;
use crate::storage::segment_reader::SegmentReader;

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Pages read.
    pub pages: u64,
    /// Neighbour lists read.
    pub lists: u64,
    /// Edges read; each is read on both sides.
    pub edges: u64,
    /// The first 1,000 defects.
    pub defects: Vec<NetworkDefect>,
}

/// A defect of a network.
#[derive(Debug)]
pub struct NetworkDefect {
    /// The file that has the defect.
    pub file: String,
    /// What is wrong.
    pub error: Error,
}

/// Defects beyond this many are not kept.
const MOST: usize = 1000;

/// Parts of the checksums that are read together, where each would have to be waited for.
const PARTS_TOGETHER: u64 = 64;

/// Ends the counting of vertices; nobody sees it.
const TOO_MANY: &str = "more vertices than the manifest says";

impl Network {
    /// Reads all segments: verifies every page against its checksum, then checks that lists ascend
    /// and that there are as many vertices, and on both sides as many edges, as the manifest says.
    /// Opening the network has checked the manifest, the footers and the log. `progress` receives
    /// the number of bytes read so far.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
        let mut checked = Checked::default();
        let mut bytes = 0;
        for reader in &self.state.readers {
            self.check_pages(reader, &mut checked, &mut bytes, progress)?;
        }
        // The lists on damaged pages would repeat the same defects.
        if !checked.defects.is_empty() {
            return Ok(checked);
        }
        for reader in &self.state.readers {
            self.check_columns(reader, &mut checked)?;
        }
        for population in 0..self.populations().len() {
            for side in [Side::Out, Side::In] {
                checked.defects.extend(self.check_count(Adjacency { population, side }));
            }
        }
        for vertex_type in 0..self.types().len() {
            checked.defects.extend(self.check_vertex_count(vertex_type)?);
        }
        Ok(checked)
    }

    /// Checks the pages of a segment.
    fn check_pages(
        &self,
        reader: &SegmentReader,
        checked: &mut Checked,
        bytes: &mut u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let all = reader.segment.pages();
        let is_far = reader.segment.cached().is_some();
        let _ahead = reader.announce_all()?;
        for first in (0..all).step_by(PAGES_PER_SUM_PAGE as usize) {
            let part = first / PAGES_PER_SUM_PAGE;
            if is_far && part.is_multiple_of(PARTS_TOGETHER) {
                let end = all.min(first + PARTS_TOGETHER * PAGES_PER_SUM_PAGE);
                reader.segment.expect(std::slice::from_ref(&(first..end)));
            }
            self.fetcher.control.check()?;
            progress(*bytes);
            let pages = first..all.min(first + PAGES_PER_SUM_PAGE);
            checked.pages += pages.end - pages.start;
            if let Err(error) = reader.segment.sums(part as usize) {
                checked.note(reader, error);
                continue;
            }
            // One page at a time, so that each damaged page is named.
            for page in pages {
                let read = reader.segment.with(page..page + 1, |page| {
                    *bytes += page.len() as u64;
                    Ok(())
                });
                read.unwrap_or_else(|error| checked.note(reader, error));
            }
        }
        Ok(())
    }

    /// Checks the lists of a segment, and opens its columns of vertices.
    fn check_columns(&self, reader: &SegmentReader, checked: &mut Checked) -> Result<()> {
        let _ahead = reader.announce_all()?;
        for edges in reader.all_edges() {
            let mut both = edges.iter().flat_map(|edges| [&edges.added, &edges.removed]).flatten();
            let outcome = both.try_for_each(|lists| self.check_lists(reader, lists, checked));
            match edges.map(drop).and(outcome) {
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) => checked.note(reader, error),
                Ok(()) => {}
            }
        }
        if let Err(error) = reader.all_vertices().try_for_each(|vertices| vertices.map(drop)) {
            checked.note(reader, error);
        }
        Ok(())
    }

    /// The defect of a type that has another number of vertices than the manifest and the log say.
    fn check_vertex_count(&self, vertex_type: usize) -> Result<Option<NetworkDefect>> {
        let expected = self.vertex_count(vertex_type);
        let mut count = 0;
        let counted = self.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
            count += ids.len() as u64;
            // Counting ends early: a segment may claim more than can be counted.
            if count > expected { Err(Error::Usage(TOO_MANY.into())) } else { Ok(()) }
        });
        let found = match counted {
            Ok(()) if count == expected => return Ok(None),
            Ok(()) => format!("{count}"),
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(Error::Usage(_)) => format!("{count} or more"),
            Err(error) => return Ok(Some(NetworkDefect { file: manifest::FILE.into(), error })),
        };
        let name = &self.types()[vertex_type].name;
        let fault = Fault::new(
            0,
            format!("{found} vertices of {name:?}"),
            format!("{expected}, as the manifest and the log say"),
        );
        let error = fault.in_file(self.disk.name(), 0, "a type of vertices");
        Ok(Some(NetworkDefect { file: manifest::FILE.into(), error }))
    }

    /// The defect of a population whose lists have another number of edges than the manifest says.
    fn check_count(&self, adjacency: Adjacency) -> Option<NetworkDefect> {
        let edges = &self.populations()[adjacency.population];
        let count = self.count(adjacency);
        if count == edges.count {
            return None;
        }
        let name = &edges.population.name;
        let found = format!("{count} edges of {name:?} by their {:?} ends", adjacency.side);
        let fault = Fault::new(0, found, format!("{}, as the manifest says", edges.count));
        let error = fault.in_file(self.disk.name(), 0, "a population");
        Some(NetworkDefect { file: manifest::FILE.into(), error })
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

    fn check_lists(
        &self,
        reader: &SegmentReader,
        lists: &ListsReader,
        checked: &mut Checked,
    ) -> Result<()> {
        let mut last: Option<u64> = None;
        let wrong = |what: String| {
            let fault = Fault::new(0, what, "vertices and neighbours that ascend");
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
            self.defects.push(NetworkDefect { file: reader.file.clone(), error });
        }
    }
}
