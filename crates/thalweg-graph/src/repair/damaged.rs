//! Opening a damaged network: its manifest or the copy, its segments, and its log.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::disk::Disk;
use thalweg_io::{Error, Fault, InFile, Result};

use super::report::{LostRecords, RepairReport};
use super::salvage_columns::SalvagedSegment;
use crate::external_sort::{EdgeSorter, spill_path};
use crate::read::check::NetworkDefect;
use crate::read::memtable::Memtable;
use crate::read::network::NetworkOptions;
use crate::storage::footer::{Footer, VERSION};
use crate::storage::log;
use crate::storage::log_record::{self, LogRecord};
use crate::storage::manifest::{self, Manifest};
use crate::storage::schema::Edge;
use crate::storage::segment::SegmentPages;

/// Defects beyond this many are not kept.
const MOST_DEFECTS: usize = 1000;

/// Segments that a repair supports: their ages have to fit the stamps of
/// [`edge_merge`](super::edge_merge).
const MOST_SEGMENTS: usize = 32_000;

/// The number of pages between two checks for a cancellation.
const PAGES_PER_CHECK: u64 = 1024;

/// The records of the log for a population.
#[derive(Default)]
pub(super) struct LoggedEdges {
    /// Whether each edge exists, according to its last record.
    pub(super) exists: BTreeMap<Edge, bool>,
    /// Attributes by edge number: a batch, and the row in it.
    pub(super) rows: BTreeMap<u64, (Arc<RecordBatch>, usize)>,
    /// The number of added edges minus the number of removed edges.
    pub(super) more: i64,
}

impl LoggedEdges {
    fn add(&mut self, edges: &[Edge], attributes: Option<&Arc<RecordBatch>>) {
        self.more += edges.len() as i64;
        self.exists.extend(edges.iter().map(|edge| (*edge, true)));
        if let Some(batch) = attributes {
            let rows = edges.iter().enumerate();
            self.rows.extend(rows.map(|(row, edge)| (edge.2, (batch.clone(), row))));
        }
    }

    fn remove(&mut self, edges: &[Edge]) {
        self.more -= edges.len() as i64;
        self.exists.extend(edges.iter().map(|edge| (*edge, false)));
    }
}

/// A damaged network, and where to write what can be read of it.
pub(super) struct DamagedNetwork<'a> {
    pub(super) to: &'a dyn Disk,
    pub(super) options: &'a NetworkOptions,
    pub(super) manifest: Manifest,
    /// Segments, the oldest first; `None` for a segment that cannot be opened.
    pub(super) segments: Vec<Option<SalvagedSegment>>,
    /// The records of the log for each population.
    pub(super) logged: Vec<LoggedEdges>,
    /// The records of the log for vertices.
    pub(super) memtable: Memtable,
    /// Whether the manifest is the newest one and all of the log can be read.
    pub(super) is_complete: bool,
}

impl<'a> DamagedNetwork<'a> {
    /// Opens what can be opened, and reports the defects.
    pub(super) fn open(
        from: &dyn Disk,
        to: &'a dyn Disk,
        options: &'a NetworkOptions,
    ) -> Result<(Self, RepairReport)> {
        let mut report = RepairReport::default();
        let (manifest, is_newest) = load_manifest(from, &mut report)?;
        let mut segments = Vec::new();
        for entry in &manifest.segments {
            let segment = open_segment(from, &entry.file, &manifest, &mut report)?;
            if let Some(segment) = &segment {
                check_pages(segment, options, &mut report)?;
            }
            segments.push(segment);
        }
        if segments.len() > MOST_SEGMENTS {
            return Err(Error::Unsupported {
                file: from.name().clone(),
                what: format!("mending {} segments", segments.len()).into(),
                advice: "at most 32,000".into(),
            });
        }
        let logged = std::iter::repeat_with(LoggedEdges::default).take(manifest.edges.len());
        let mut network = Self {
            to,
            options,
            segments,
            logged: logged.collect(),
            memtable: Memtable::default(),
            is_complete: is_newest,
            manifest,
        };
        network.replay_log(from, &mut report);
        Ok((network, report))
    }

    /// Replays the changes of the log that can be read.
    fn replay_log(&mut self, from: &dyn Disk, report: &mut RepairReport) {
        let file = self.manifest.log_file();
        let populations = self.manifest.edges.len();
        let types = self.manifest.types.len();
        let Self { logged, memtable, options, .. } = self;
        let control = &options.control;
        let lost = log::replay_damaged(from, &file, control, &mut |_, change| {
            for record in log_record::of_bytes(change, populations, types)? {
                match record {
                    LogRecord::EdgesAdded { population, edges, attributes } => {
                        logged[population].add(&edges, attributes.as_ref());
                    }
                    LogRecord::EdgesRemoved { population, edges } => {
                        logged[population].remove(&edges);
                    }
                    // Once one is cancelled, so is the reading of the log.
                    of_vertices => drop(memtable.apply(&of_vertices, control)),
                }
            }
            Ok(())
        });
        match lost {
            Ok(lost) => {
                self.is_complete &= lost.is_empty();
                for bytes in &lost {
                    let defect =
                        lost_bytes(bytes).in_file(&from.path_of(&file), bytes.start, "a log");
                    report.add_defect(&file, defect);
                }
                report.log = lost;
            }
            Err(damage) => {
                self.is_complete = false;
                report.add_defect(&file, damage);
            }
        }
    }

    /// Whether every segment could be opened, even if not all of its pages can be read.
    pub(super) fn has_all_segments(&self) -> bool {
        self.is_complete && self.segments.iter().all(Option::is_some)
    }

    /// The segments that could be opened, with their ages.
    pub(super) fn segments(&self) -> impl Iterator<Item = (usize, &SalvagedSegment)> {
        self.segments.iter().enumerate().filter_map(|(age, segment)| Some((age, segment.as_ref()?)))
    }

    /// The segments that could not be opened.
    pub(super) fn lost_segments(&self) -> impl Iterator<Item = LostRecords> {
        let entries = self.segments.iter().zip(&self.manifest.segments);
        entries.filter(|(segment, _)| segment.is_none()).map(|(_, entry)| LostRecords {
            file: entry.file.clone(),
            count: None,
            sources: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// A sorter with its share of the memory budget: three are in use at a time, each of which may
    /// hold its edges twice.
    pub(super) fn sorter(&self, is_numbered: bool) -> EdgeSorter {
        EdgeSorter::new(self.options.budget.memory / 6, is_numbered, spill_path(self.to))
    }

    /// Fails if the repair is cancelled. Only every 4,096th call checks this.
    pub(super) fn check_cancelled(&self, calls: &mut u64) -> Result<()> {
        *calls += 1;
        if calls.is_multiple_of(4096) && self.options.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }
}

impl RepairReport {
    fn add_defect(&mut self, file: &str, error: Error) {
        if self.defects.len() < MOST_DEFECTS {
            self.defects.push(NetworkDefect { file: file.to_owned(), error });
        }
    }
}

fn lost_bytes(bytes: &Range<u64>) -> Fault {
    Fault::new(0, format!("{} bytes", bytes.end - bytes.start), "whole changes")
}

/// The manifest or its copy, and whether it is the newest: the copy may be of an earlier state,
/// which does not name all files.
fn load_manifest(from: &dyn Disk, report: &mut RepairReport) -> Result<(Manifest, bool)> {
    let not_found = |what: String| Error::NotFound {
        file: from.name().clone(),
        what: what.into(),
        advice: "names of types and populations are nowhere else: put one back from a copy, or \
                 import again"
            .into(),
    };
    let (manifest, damage) = match Manifest::load_or_copy(from) {
        Ok(Some(found)) => found,
        Ok(None) => return Err(not_found("a network".into())),
        Err(damage @ Error::Malformed { .. }) => {
            let what = format!("a manifest that can be read, or its copy ({damage})");
            return Err(not_found(what));
        }
        Err(e) => return Err(e),
    };
    let Some(damage) = damage else { return Ok((manifest, true)) };
    let newer = manifest.newer(&from.list()?);
    for file in &newer {
        let found = "a file newer than the copy of the manifest";
        let fault = Fault::new(0, found, "one that it names");
        report.add_defect(file, fault.in_file(&from.path_of(file), 0, "a file that is left out"));
    }
    report.add_defect(manifest::FILE, damage);
    Ok((manifest, newer.is_empty()))
}

/// Opens a segment, by its footer or the footer's copy.
fn open_segment(
    from: &dyn Disk,
    file: &str,
    manifest: &Manifest,
    report: &mut RepairReport,
) -> Result<Option<SalvagedSegment>> {
    match from.open(file).and_then(SegmentPages::open_damaged::<Footer>) {
        Ok((segment, footer, _)) if footer.version != VERSION => Err(Error::Unsupported {
            file: segment.store().name().clone(),
            what: format!("version {} of segments", footer.version).into(),
            advice: format!("this program reads version {VERSION}").into(),
        }),
        Ok((segment, mut footer, damage)) => {
            manifest.hide(file, &mut footer);
            damage.into_iter().for_each(|damage| report.add_defect(file, damage));
            Ok(Some(SalvagedSegment { file: file.to_owned(), segment, footer }))
        }
        Err(e @ Error::Unsupported { .. }) => Err(e),
        Err(damage) => {
            report.add_defect(file, damage);
            Ok(None)
        }
    }
}

/// Reports the damaged pages of a segment.
fn check_pages(
    segment: &SalvagedSegment,
    options: &NetworkOptions,
    report: &mut RepairReport,
) -> Result<()> {
    for page in 0..segment.segment.pages() {
        if let Err(damage) = segment.segment.with(page..page + 1, |_| Ok(())) {
            report.add_defect(&segment.file, damage);
        }
        if page.is_multiple_of(PAGES_PER_CHECK) && options.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(())
}
