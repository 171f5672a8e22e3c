//! Rewrites an HDF5 file: the chunks of each dataset become contiguous, and may get another shape
//! or other filters. Groups, attributes, links, types and values stay as they are.
//!
//! ```
//! use thalweg_hdf5::repack::{Chunking, Repack, TargetLayout, repack};
//! use thalweg_hdf5::synth::{NexusWriter, NexusRecipe, SynthRun};
//! use thalweg_io::open::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("live.nxs");
//! // The default recipe writes chunks of all banks in turns, as an acquisition does.
//! let recipe = NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 1_000_000) };
//! NexusWriter::write(&path, &SynthRun::new(recipe)?)?;
//!
//! let layout = TargetLayout { chunk: Some(Chunking::Rows(16 << 10)), ..TargetLayout::default() };
//! let how = Repack { layout, verify: true, ..Repack::default() };
//! let report = repack(&path, &folder.path().join("ordered.nxs"), Options::default(), &how)?;
//! assert!(!report.changes.is_empty());
//! assert!(report.verified > 0);
//! # Ok(())
//! # }
//! ```

mod copy_bytes;
mod reencode;
mod slot_writer;
mod target_layout;
mod verify;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::model::StoreModel;
use thalweg_io::new_file::{Existing, NewFile, check_output, nameless};
use thalweg_io::open::{OpenedStore, Options, StoreKind};
use thalweg_io::plan::Budget;
use thalweg_io::residency::resident;
use thalweg_io::store::{FileStore, Store};
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

use crate::arrays::{ArrayFile, METADATA_SHARE};
use crate::grid::RepackGrid;
use crate::libhdf5::{Rewrite, RewrittenDataset};
use crate::metadata::{FetchOptions, MetadataFile};
use crate::other_files::{ExternalAccess, OtherFiles};
use crate::stored::{DatasetForm, TargetStorage, ValueStorage};
use crate::types::Chunk;
use copy_bytes::{ByteMove, OutputFile, copy_moves};
use reencode::{ReencodeJob, reencode};

pub use crate::encode::Coder;
pub use crate::libhdf5::LibraryVersion;
pub use target_layout::{Chunking, TargetLayout, coders};

/// Options of a rewrite.
#[derive(Debug, Clone, Default)]
pub struct Repack {
    /// The layout for all datasets of numbers that are not too small to matter.
    pub layout: TargetLayout,
    /// Layouts for the named datasets, or for all datasets in the named groups, whatever their type
    /// and size. The last matching entry applies.
    pub paths: Vec<(String, TargetLayout)>,
    /// The version of libhdf5's structures in the new file.
    pub version: LibraryVersion,
    /// Whether to compare all values of both files before the new one gets its name. Otherwise only
    /// the list of datasets, their shapes and types, and the locations of their chunks are read
    /// again.
    pub verify: bool,
}

/// A report of a rewrite.
#[derive(Debug, Default)]
pub struct RepackReport {
    /// The number of groups, datasets and named types.
    pub objects: u64,
    /// The number of datasets.
    pub datasets: u64,
    /// Datasets whose chunk shape or filters changed.
    pub changes: Vec<LayoutChange>,
    /// Datasets that keep their storage although the options ask for another, and why.
    pub kept: Vec<(String, String)>,
    /// References to objects without a link. They refer to nothing in the new file.
    pub cleared: u64,
    /// The number of passes over the stored bytes of re-encoded datasets.
    pub passes: usize,
    /// Bytes of the original file.
    pub bytes_before: u64,
    /// Bytes of the new file.
    pub bytes_after: u64,
    /// How many of these bytes are padding of edge chunks, in changed datasets without filters.
    pub bytes_filling: u64,
    /// Datasets whose values were compared.
    pub verified: u64,
}

/// A dataset whose storage changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutChange {
    /// The path of the dataset.
    pub path: String,
    /// The shape of its chunks before; `None` if it was contiguous.
    pub chunk_before: Option<Vec<u64>>,
    /// And after.
    pub chunk_after: Option<Vec<u64>>,
    /// Its filters before.
    pub filters_before: Vec<String>,
    /// And after.
    pub filters_after: Vec<String>,
}

/// Rewrites the file `path` as `out`. The new file appears when it is complete.
///
/// # Errors
/// The first defect of the original; [`Error::Unsupported`] for objects that cannot be rewritten;
/// [`Error::Usage`] for options that do not fit a dataset that they name; [`Error::Io`].
pub fn repack(path: &Path, out: &Path, options: Options, how: &Repack) -> Result<RepackReport> {
    check_output(out, [path], Existing::Replace)?;
    // Each answer says which version of an object it is of.
    let state = url(path).is_none().then(|| FileState::of(path)).transpose()?;
    let OpenedStore { store, model: (model, _), .. } = OpenedStore::new(path, &options)?;
    let other_files = OtherFiles::new(path, ExternalAccess::Folder)?;
    ArrayFile::of(store.clone(), other_files, options.clone())?.check_output(out)?;
    let new = NewFile::staged(out)?;
    let opened = File::options().read(true).write(true).open(new.temporary());
    let file = Arc::new(opened.map_err(|e| Error::io(new.name(), "creating", e))?);
    let output = OutputFile {
        model,
        budget: options.budget,
        control: options.control.clone(),
        out: file,
        path: new.temporary().to_owned(),
        name: new.name().clone(),
    };
    let values = values_of(path, &store, &options)?;
    let mut report = fill(&store, &values, &new, &output, how)?;
    let before = options.model.unwrap_or(model);
    verify::verify(
        path,
        &store,
        &new,
        Options { model: Some(before), ..options },
        how.verify,
        &mut report,
    )?;
    state.map_or(Ok(()), |state| state.check(path))?;
    report.bytes_after = output.out.metadata().map_or(0, |meta| meta.len());
    output.control.check()?;
    new.finish()?;
    Ok(report)
}

/// Which file is at a path, and when it was changed.
#[derive(PartialEq, Eq)]
struct FileState {
    file: (u64, u64),
    size: u64,
    changed: [(i64, i64); 2],
}

impl FileState {
    fn of(path: &Path) -> Result<Self> {
        let failed = |e| Error::io(&path.to_string_lossy().into(), "opening", e);
        let meta = fs::metadata(path).map_err(failed)?;
        Ok(Self {
            file: (meta.dev(), meta.ino()),
            size: meta.size(),
            changed: [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())],
        })
    }

    /// Fails if the file is another one now, or was changed: its values may then not be where they
    /// were found.
    fn check(&self, path: &Path) -> Result<()> {
        if *self == Self::of(path)? {
            return Ok(());
        }
        Err(Error::Malformed {
            file: path.to_string_lossy().into(),
            what: "HDF5 file".into(),
            offset: 0,
            found: "a file that was changed meanwhile".into(),
            expected: "one that stays as it is while it is rewritten; try again".into(),
        })
    }
}

/// In bytes. Smaller files are read through the page cache, and so are files that are already
/// cached.
const LARGE: u64 = 64 << 20;

/// The store that values are read from: past the page cache, unless the caller chose a store. Each
/// value is read only once, and allocating pages for them would take the processor as long as all
/// other work.
fn values_of(path: &Path, store: &Arc<dyn Store>, options: &Options) -> Result<Arc<dyn Store>> {
    let is_cached = || {
        let pages = File::open(path).ok().and_then(|file| resident(&file, 0..u64::MAX));
        pages.is_some_and(|pages| pages.fraction() > 0.5)
    };
    if url(path).is_some()
        || options.store != StoreKind::Auto
        || store.size() < LARGE
        || is_cached()
    {
        return Ok(store.clone());
    }
    Ok(OpenedStore::new(path, &Options { store: StoreKind::Direct, ..options.clone() })?.store)
}

/// Approximate bytes of an entry in a chunk index.
const ENTRY: u64 = 32;

/// The assumed distance between chunks, in bytes. The number of chunks is estimated from it,
/// because it is not known before the chunks are found.
const BETWEEN_CHUNKS: u64 = 16 << 10;

/// Writes the new file.
fn fill(
    store: &Arc<dyn Store>,
    values: &Arc<dyn Store>,
    new: &NewFile,
    output: &OutputFile,
    how: &Repack,
) -> Result<RepackReport> {
    let OutputFile { model, budget: Budget { threads, memory }, control, .. } = output;
    let fetch = FetchOptions {
        model: *model,
        threads: *threads,
        memory: (*memory / METADATA_SHARE) as u64,
        in_rounds: false,
    };
    let found = MetadataFile::open(store, control, fetch)?;
    let out = output.out.try_clone().map_err(|e| Error::io(&output.name, "creating", e))?;
    let metadata = store.size() / BETWEEN_CHUNKS * ENTRY;
    let mut rewrite =
        Rewrite::begin(&found, store, out, &output.name, how.version, metadata, control)?;
    let mut report = RepackReport { bytes_before: store.size(), ..RepackReport::default() };
    let made = rewrite.objects_of(&mut |header, path| {
        let form = DatasetForm::read(&found, header, path)?;
        let target = target_layout::decide(&form, how, *memory, &mut report.kept)?;
        report.changes.extend(change(&form, &target));
        Ok((form, target))
    })?;
    let paths = made.iter().map(|made| made.form.path.as_str());
    target_layout::check_paths(how, paths, store.name())?;
    (report.objects, report.cleared) = (rewrite.objects(), rewrite.cleared());
    report.datasets = made.len() as u64;
    report.bytes_filling = made.iter().map(filling).sum();
    let copies = plan_copies(&made, found.superblock().base);
    let aside = if copies.encoded.is_empty() {
        None
    } else {
        Some(reencode_aside(copies.encoded, values, new, output, &mut rewrite, &mut report)?)
    };
    rewrite.finish()?;
    copy_moves(values, copies.moves, output)?;
    if let Some(Aside { spill, moves }) = aside {
        let spill: Arc<dyn Store> = Arc::new(FileStore::of(&spill, output.name.clone())?);
        copy_moves(&spill, moves, &OutputFile { model: StoreModel::LOCAL, ..output.clone() })?;
    }
    Ok(report)
}

/// How the values of a file come into the new one.
struct CopyPlan<'a> {
    /// Bytes that are copied as they are.
    moves: Vec<ByteMove>,
    /// Datasets whose values are encoded anew, each with its job.
    encoded: Vec<(&'a RewrittenDataset, ReencodeJob)>,
}

/// Plans the copies of datasets, and of a user block of `user_block` bytes.
fn plan_copies(made: &[RewrittenDataset], user_block: u64) -> CopyPlan<'_> {
    let mut plan = CopyPlan { moves: Vec::new(), encoded: Vec::new() };
    if user_block > 0 {
        plan.moves.push(ByteMove { from: 0, to: 0, len: user_block });
    }
    for made in made {
        if !as_they_are(made, &mut plan.moves) {
            plan.encoded.extend(job(made).map(|job| (made, job)));
        }
    }
    plan
}

/// Chunks that were encoded into a file of their own, because their sizes were not known before.
struct Aside {
    spill: Arc<File>,
    /// The copies from that file into the new one.
    moves: Vec<ByteMove>,
}

/// Encodes values into a file without a name beside the new one, and finds places for the chunks.
fn reencode_aside(
    encoded: Vec<(&RewrittenDataset, ReencodeJob)>,
    values: &Arc<dyn Store>,
    new: &NewFile,
    output: &OutputFile,
    rewrite: &mut Rewrite<'_>,
    report: &mut RepackReport,
) -> Result<Aside> {
    let spill = nameless(new.temporary()).map_err(|e| Error::io(&output.name, "creating", e))?;
    let spill = Arc::new(spill);
    let (datasets, jobs): (Vec<_>, Vec<_>) = encoded.into_iter().unzip();
    let (passes, spilled) = reencode(values, jobs, output, &spill)?;
    report.passes = passes;
    let mut moves = Vec::with_capacity(spilled.len());
    for spilled in spilled.chunk_by(|a, b| a.job == b.job) {
        let Some(made) = spilled.first().and_then(|first| datasets.get(first.job)) else {
            continue;
        };
        let chunks: Vec<Chunk> = spilled.iter().map(|spilled| spilled.chunk).collect();
        let places = rewrite.chunks(made, &chunks)?;
        let to = |(chunk, to): (&Chunk, u64)| ByteMove { from: chunk.offset, to, len: chunk.size };
        moves.extend(chunks.iter().zip(places).map(to));
    }
    Ok(Aside { spill, moves })
}

/// Bytes of padding in the new chunks of a dataset.
fn filling(made: &RewrittenDataset) -> u64 {
    let TargetStorage::Chunked { chunk, coders, numbers } = &made.target else { return 0 };
    if !coders.is_empty() {
        return 0;
    }
    let grid = RepackGrid::chunks(&made.form.shape, chunk, made.form.element);
    numbers.iter().map(|&number| grid.bytes(number) - grid.bytes_inside(number)).sum()
}

fn change(form: &DatasetForm, target: &TargetStorage) -> Option<LayoutChange> {
    let before = if let ValueStorage::Chunked(chunk, _) = &form.storage {
        Some(chunk.clone())
    } else {
        None
    };
    let filters_before = form.pipeline.0.iter().map(ToString::to_string).collect();
    let (chunk_after, filters_after) = match target {
        TargetStorage::Keep => return None,
        TargetStorage::Contiguous => (None, Vec::new()),
        TargetStorage::Chunked { chunk, coders, .. } => {
            (Some(chunk.clone()), coders.iter().map(ToString::to_string).collect())
        }
    };
    Some(LayoutChange {
        path: form.path.clone(),
        chunk_before: before,
        chunk_after,
        filters_before,
        filters_after,
    })
}

/// Plans the copy of values that need not be decoded: whole chunks, and runs of elements that are
/// consecutive in both files. Returns false if the values must be re-encoded.
fn as_they_are(made: &RewrittenDataset, moves: &mut Vec<ByteMove>) -> bool {
    let form = &made.form;
    let bytes = form.bytes();
    match (&made.target, &form.storage) {
        (_, ValueStorage::Elsewhere { .. } | ValueStorage::Contiguous(None)) => true,
        (TargetStorage::Keep | TargetStorage::Contiguous, ValueStorage::Contiguous(Some(at))) => {
            moves.extend(made.places.first().map(|&to| ByteMove { from: *at, to, len: bytes }));
            true
        }
        (TargetStorage::Keep, ValueStorage::Chunked(_, chunks)) => {
            let places = chunks.iter().zip(&made.places);
            moves.extend(places.map(|(chunk, &to)| ByteMove {
                from: chunk.offset,
                to,
                len: chunk.size,
            }));
            true
        }
        (target, _) => {
            let is_plain = form.pipeline.0.is_empty();
            let is_coded =
                matches!(target, TargetStorage::Chunked { coders, .. } if !coders.is_empty());
            if !is_plain || is_coded || !form.fill.is_empty() {
                return false;
            }
            let (Some(from), Some(to)) = (stored_runs(form), target_runs(made)) else {
                return false;
            };
            overlaps(&from, &to, moves);
            true
        }
    }
}

/// Bytes of an array that are consecutive in a file.
struct FileRun {
    /// Where they start in the array.
    start: u64,
    /// Where they start in the file.
    offset: u64,
    len: u64,
}

impl FileRun {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// The runs of a stored array; `None` if its chunks are not whole bands of rows.
fn stored_runs(form: &DatasetForm) -> Option<Vec<FileRun>> {
    let bytes = form.bytes();
    match &form.storage {
        ValueStorage::Contiguous(at) => {
            Some(vec![FileRun { start: 0, offset: at.unwrap_or(0), len: bytes }])
        }
        ValueStorage::Chunked(chunk, chunks) => {
            let band = RepackGrid::chunks(&form.shape, chunk, form.element).band()?;
            let run = |chunk: &Chunk| {
                let start = chunk.first * band;
                FileRun { start, offset: chunk.offset, len: band.min(bytes - start) }
            };
            // A chunk of another length is a defect, which decoding reports.
            let whole = chunks.iter().all(|chunk| chunk.size == band);
            whole.then(|| chunks.iter().map(run).collect())
        }
        ValueStorage::Elsewhere { .. } => Some(Vec::new()),
    }
}

/// The runs of the array in the new file; `None` if its chunks are not whole bands of rows.
fn target_runs(made: &RewrittenDataset) -> Option<Vec<FileRun>> {
    let bytes = made.form.bytes();
    match &made.target {
        TargetStorage::Chunked { chunk, numbers, .. } => {
            let band = RepackGrid::chunks(&made.form.shape, chunk, made.form.element).band()?;
            let run = |(&number, &offset): (&u64, &u64)| {
                let start = number * band;
                FileRun { start, offset, len: band.min(bytes - start) }
            };
            Some(numbers.iter().zip(&made.places).map(run).collect())
        }
        _ => {
            let run = |&offset: &u64| FileRun { start: 0, offset, len: bytes };
            Some(made.places.first().map(run).into_iter().collect())
        }
    }
}

/// Appends a move for each run of bytes that lies in one run of both files.
fn overlaps(from: &[FileRun], to: &[FileRun], moves: &mut Vec<ByteMove>) {
    let mut next = 0;
    for source in from {
        while to.get(next).is_some_and(|target| target.end() <= source.start) {
            next += 1;
        }
        for target in to[next..].iter().take_while(|target| target.start < source.end()) {
            let begin = source.start.max(target.start);
            moves.push(ByteMove {
                from: source.offset + (begin - source.start),
                to: target.offset + (begin - target.start),
                len: source.end().min(target.end()) - begin,
            });
        }
    }
}

/// Bytes of a contiguous array that are decoded at a time.
const SLICE: u64 = 256 << 10;

/// The job of re-encoding a dataset, if it needs one.
fn job(made: &RewrittenDataset) -> Option<ReencodeJob> {
    let form = &made.form;
    let (from, stored) = match &form.storage {
        ValueStorage::Chunked(chunk, chunks) => {
            (RepackGrid::chunks(&form.shape, chunk, form.element), chunks.clone())
        }
        ValueStorage::Contiguous(Some(at)) => {
            let grid = RepackGrid::run(&form.shape, form.element, SLICE);
            let slice = |first| Chunk {
                first,
                offset: at + grid.offset(first),
                size: grid.bytes(first),
                mask: 0,
            };
            let stored = (0..grid.count()).map(slice).collect();
            (grid, stored)
        }
        ValueStorage::Contiguous(None) | ValueStorage::Elsewhere { .. } => return None,
    };
    let (to, coders, places) = match &made.target {
        TargetStorage::Chunked { chunk, coders, numbers } => {
            let places = numbers.iter().copied().zip(made.places.iter().copied()).collect();
            (RepackGrid::chunks(&form.shape, chunk, form.element), coders.clone(), places)
        }
        TargetStorage::Contiguous => {
            let grid = RepackGrid::run(&form.shape, form.element, SLICE);
            let base = made.places.first()?;
            let places: HashMap<u64, u64> =
                (0..grid.count()).map(|n| (n, base + grid.offset(n))).collect();
            (grid, Vec::new(), places)
        }
        TargetStorage::Keep => return None,
    };
    Some(ReencodeJob {
        path: form.path.as_str().into(),
        element: form.element,
        fill: form.fill.clone(),
        from,
        stored,
        pipeline: form.pipeline.clone(),
        to,
        coders,
        places,
    })
}
