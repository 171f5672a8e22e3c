//! What is left of a damaged network, written to another one.
//!
//! Both sides of an edge are stored, so lists of one side that cannot be read are made out of those
//! of the other. What was said of an edge or a vertex last counts, of what can be read: changes
//! after a damaged one in the log are facts too.

mod edges;
mod rows;
mod salvage;
mod vertices;

use crate::external_sort::spill_path;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::disk::{Disk, Folder};
use thalweg_io::{Error, Fault, InFile, Result};

use self::salvage::SalvagedSegment;
use crate::external_sort::EdgeSorter;
use crate::read::check::Defect;
use crate::read::memtable::Memtable;
use crate::read::network::NetworkOptions;
use crate::storage::footer::{Footer, VERSION};
use crate::storage::log::{self, LogWriter};
use crate::storage::log_record::{self, LogRecord};
use crate::storage::manifest::{self, Manifest, SegmentEntry};
use crate::storage::schema::{Edge, PopulationEntry};
use crate::storage::segment::{SegmentPages, SegmentWriter};
use crate::storage::segment_reader::SegmentReader;

/// What a repair found and did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// What is damaged; the first so many.
    pub defects: Vec<Defect>,
    /// Bytes of the log in which no whole change is, at its end such as a crash may have left too.
    pub log: Vec<Range<u64>>,
    /// Types of vertices.
    pub vertices: Vec<RepairSummary>,
    /// Populations of edges.
    pub edges: Vec<RepairSummary>,
}

impl RepairReport {
    /// Whether the new network is all that the damaged one was.
    pub fn is_complete(&self) -> bool {
        let is_all = |kept: &RepairSummary| {
            kept.lost.is_empty() && kept.attributes_lost == 0 && !kept.is_in_doubt
        };
        self.log.is_empty() && self.vertices.iter().chain(&self.edges).all(is_all)
    }
}

/// What there is of a type or a population.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSummary {
    /// Its name.
    pub name: String,
    /// Vertices or edges that the new network has.
    pub kept: u64,
    /// How many there were, where that is known: not if something of the log is missing.
    pub expected: Option<u64>,
    /// Of those kept, how many were found by what refers to them only: edges by the lists of their
    /// other side, vertices by edges.
    pub restored: u64,
    /// Those that had attributes which cannot be read: edges have nulls in their place, vertices
    /// nothing.
    pub attributes_lost: u64,
    /// What cannot be read, segment by segment.
    pub lost: Vec<LostRecords>,
    /// What took edges or vertices away cannot be read: some that were removed may be back.
    pub is_in_doubt: bool,
}

/// What of a segment cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRecords {
    /// The segment.
    pub file: String,
    /// How many edges or vertices that came with it; `None`: as many as it had.
    pub count: Option<u64>,
    /// Among which vertices they are: the vertices themselves or, of edges, those that they leave.
    pub sources: Vec<RangeInclusive<u64>>,
    /// Of edges, among which vertices those are that they lead to.
    pub targets: Vec<RangeInclusive<u64>>,
}

/// Writes what is left of the network in the folder `from` to `to`, where there must be nothing,
/// and says what is lost. `from` is not changed; nobody may write to it meanwhile. What is written
/// is whole, so that [`crate::Network::check`] finds nothing wrong with it.
///
/// An edge is kept if either of its ends' lists can be read, with nulls for attributes that cannot.
/// What is lost where all that is known of it is damaged is told by segment and by vertices.
///
/// # Errors
/// [`Error::NotFound`] where there is no network, or neither its manifest nor the copy of it can be
/// read; [`Error::Usage`] if there is something at `to`; [`Error::Cancelled`]; [`Error::Io`].
/// Nothing is left at `to` then.
pub fn repair(from: &Path, to: &Path, options: &NetworkOptions) -> Result<RepairReport> {
    repair_on(&Folder::new(from, options.is_mapped), &Folder::new(to, options.is_mapped), options)
}

/// The same on any disks.
///
/// # Errors
/// As [`repair`].
pub fn repair_on(from: &dyn Disk, to: &dyn Disk, options: &NetworkOptions) -> Result<RepairReport> {
    let (repair, mut report) = Repair::open(from, to, options)?;
    match to.list() {
        Ok(names) if names.is_empty() => {}
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        Ok(_) => {
            let what = format!(
                "{}: there is something already; name a folder that is empty or not there",
                to.name()
            );
            return Err(Error::Usage(what.into()));
        }
        Err(e) => return Err(e),
    }
    let _lock = to.lock()?;
    let mut manifest = Manifest::new();
    let outcome = repair.write(&mut manifest, &mut report);
    if outcome.is_err() {
        let names = to.list().unwrap_or_default();
        names.iter().for_each(|name| drop(to.remove(name)));
    }
    outcome.map(|()| report)
}

/// What is known of a population out of the log.
#[derive(Default)]
struct LoggedEdges {
    /// What was said of an edge last.
    is_there: BTreeMap<Edge, bool>,
    rows: BTreeMap<u64, (Arc<RecordBatch>, usize)>,
    /// Edges more than in the segments.
    more: i64,
}

struct Repair<'a> {
    to: &'a dyn Disk,
    options: &'a NetworkOptions,
    old: Manifest,
    /// Segments, the oldest first; `None` for one of which nothing can be read.
    readers: Vec<Option<SalvagedSegment>>,
    logged: Vec<LoggedEdges>,
    memtable: Memtable,
    /// Whether all that the manifest and the log said is known.
    is_complete: bool,
}

/// Defects beyond this many are not kept.
const MOST: usize = 1000;

impl<'a> Repair<'a> {
    fn open(
        from: &dyn Disk,
        to: &'a dyn Disk,
        options: &'a NetworkOptions,
    ) -> Result<(Self, RepairReport)> {
        let mut report = RepairReport::default();
        let mut note = |file: &str, error: Error| {
            if report.defects.len() < MOST {
                report.defects.push(Defect { file: file.to_owned(), error });
            }
        };
        let nowhere = |what: String| {
            Error::NotFound {
            file: from.name().clone(),
            what: what.into(),
            advice: "names of types and populations are nowhere else: put one back from a copy, or import again".into(),
        }
        };
        let (old, damage) = match Manifest::load_left(from) {
            Ok(Some(found)) => found,
            Ok(None) => return Err(nowhere("a network".into())),
            Err(damage @ Error::Malformed { .. }) => {
                return Err(nowhere(format!(
                    "a manifest that can be read, or its copy ({damage})"
                )));
            }
            Err(e) => return Err(e),
        };
        // The copy may be of an earlier state: then there are files that it does not know.
        let newer = match &damage {
            Some(_) => old.newer(&from.list()?),
            None => Vec::new(),
        };
        let mut is_complete = newer.is_empty();
        for file in newer {
            let fault =
                Fault::new(0, "a file newer than the copy of the manifest", "one that it names");
            note(&file, fault.in_file(&from.path_of(&file), 0, "a file that is left out"));
        }
        if let Some(damage) = damage {
            note(manifest::FILE, damage);
        }
        let mut readers = Vec::new();
        for part in &old.segments {
            let left = from.open(&part.file).and_then(SegmentPages::open_left::<Footer>).and_then(
                |(segment, mut footer, damage)| {
                    if footer.version == VERSION {
                        old.hide(&part.file, &mut footer);
                        return Ok((
                            SalvagedSegment { file: part.file.clone(), segment, footer },
                            damage,
                        ));
                    }
                    Err(Error::Unsupported {
                        file: segment.store().name().clone(),
                        what: format!("version {} of segments", footer.version).into(),
                        advice: format!("this program reads version {VERSION}").into(),
                    })
                },
            );
            let left = match left {
                Ok((left, damage)) => {
                    damage.into_iter().for_each(|damage| note(&part.file, damage));
                    Some(left)
                }
                Err(e @ Error::Unsupported { .. }) => return Err(e),
                Err(damage) => {
                    note(&part.file, damage);
                    None
                }
            };
            for page in left.iter().flat_map(|left| 0..left.segment.pages()) {
                let left = left.as_ref().map(|left| left.segment.with(page..page + 1, |_| Ok(())));
                left.and_then(Result::err).into_iter().for_each(|damage| note(&part.file, damage));
                if page.is_multiple_of(1024) && options.control.is_cancelled() {
                    return Err(Error::Cancelled);
                }
            }
            readers.push(left);
        }
        if readers.len() > edges::MOST_LEVELS {
            return Err(Error::Unsupported {
                file: from.name().clone(),
                what: format!("mending {} segments", readers.len()).into(),
                advice: "at most 32,000".into(),
            });
        }
        let (populations, types) = (old.edges.len(), old.types.len());
        let mut logged: Vec<LoggedEdges> =
            std::iter::repeat_with(LoggedEdges::default).take(populations).collect();
        let mut memtable = Memtable::default();
        let lost = log::replay_left(from, &old.log_file(), &mut |_, change| {
            for record in log_record::of_bytes(change, populations, types)? {
                match record {
                    LogRecord::EdgesAdded { population, edges, attributes } => {
                        logged[population].add(&edges, attributes.as_ref());
                    }
                    LogRecord::EdgesRemoved { population, edges } => {
                        logged[population].remove(&edges)
                    }
                    of_vertices => memtable.apply(&of_vertices),
                }
            }
            Ok(())
        });
        match lost {
            Ok(lost) => {
                is_complete &= lost.is_empty();
                for bytes in &lost {
                    let fault = Fault::new(
                        0,
                        format!("{} bytes", bytes.end - bytes.start),
                        "whole changes",
                    );
                    note(
                        &old.log_file(),
                        fault.in_file(&from.path_of(&old.log_file()), bytes.start, "a log"),
                    );
                }
                report.log = lost;
            }
            Err(damage) => {
                is_complete = false;
                note(&old.log_file(), damage);
            }
        }
        Ok((Self { to, options, old, readers, logged, memtable, is_complete }, report))
    }

    /// Whether all of the segments can be read, if not all of what is in them.
    fn has_all(&self) -> bool {
        self.is_complete && self.readers.iter().all(Option::is_some)
    }

    /// Segments that are there, and their ages.
    fn readers(&self) -> impl Iterator<Item = (usize, &SalvagedSegment)> {
        self.readers.iter().enumerate().filter_map(|(age, reader)| Some((age, reader.as_ref()?)))
    }

    /// Those of which nothing is left.
    fn gone(&self) -> impl Iterator<Item = LostRecords> {
        self.readers.iter().zip(&self.old.segments).filter(|(reader, _)| reader.is_none()).map(
            |(_, part)| LostRecords {
                file: part.file.clone(),
                count: None,
                sources: Vec::new(),
                targets: Vec::new(),
            },
        )
    }

    fn sorter(&self, is_numbered: bool) -> EdgeSorter {
        // Three at a time.
        EdgeSorter::new(self.options.budget.memory / 6, is_numbered, spill_path(self.to))
    }

    fn look(&self) -> Result<()> {
        if self.options.control.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Writes a network: edges, then vertices, whose ids are those that edges mention too.
    fn write(&self, manifest: &mut Manifest, report: &mut RepairReport) -> Result<()> {
        manifest.types.clone_from(&self.old.types);
        manifest.edges.clone_from(&self.old.edges);
        manifest.types.iter_mut().for_each(|known| known.since = 0);
        manifest.edges.iter_mut().for_each(|known| known.since = 0);
        let mut parts = Vec::new();
        let file = manifest.new_file("seg");
        let mut segment = SegmentWriter::create(self.to, &file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for population in 0..manifest.edges.len() {
            let (written, kept) =
                self.edges(&mut segment, population, &mut manifest.edges[population])?;
            footer.edges.extend(written);
            report.edges.push(kept);
        }
        parts.push(SegmentEntry { bytes: segment.finish(&footer)?, file: file.clone() });
        self.to.sync()?;
        let reader = SegmentReader::open(self.to, &file, manifest)?;
        let file = manifest.new_file("seg");
        let mut segment = SegmentWriter::create(self.to, &file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for vertex_type in 0..manifest.types.len() {
            let (written, mut kept) = self.vertices(&mut segment, &reader, vertex_type)?;
            // Edges that may be back bring their ends with them.
            let mut edges = report.edges.iter().zip(&self.old.edges);
            let is_end = |edges: &PopulationEntry| {
                edges.source == vertex_type || edges.target == vertex_type
            };
            kept.is_in_doubt |=
                kept.restored > 0 && edges.any(|(kept, edges)| kept.is_in_doubt && is_end(edges));
            manifest.types[vertex_type].count = kept.kept;
            footer.vertices.push(written);
            report.vertices.push(kept);
        }
        parts.push(SegmentEntry { bytes: segment.finish(&footer)?, file });
        manifest.segments = parts;
        manifest.log = manifest.next;
        manifest.next += 1;
        drop(LogWriter::create(self.to, &manifest.log_file(), manifest.log)?);
        manifest.save(self.to)
    }
}

impl LoggedEdges {
    fn add(&mut self, edges: &[Edge], attributes: Option<&Arc<RecordBatch>>) {
        self.more += edges.len() as i64;
        self.is_there.extend(edges.iter().map(|edge| (*edge, true)));
        if let Some(batch) = attributes {
            self.rows
                .extend(edges.iter().enumerate().map(|(row, edge)| (edge.2, (batch.clone(), row))));
        }
    }

    fn remove(&mut self, edges: &[Edge]) {
        self.more -= edges.len() as i64;
        self.is_there.extend(edges.iter().map(|edge| (*edge, false)));
    }
}
