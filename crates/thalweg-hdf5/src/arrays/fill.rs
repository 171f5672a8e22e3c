//! Reads arrays into memory: all wanted elements in one pass, in the order of the file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::{Clocks, Delivery, Run, Shape};
use thalweg_io::extent::Source;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{Budget, GapRule};
use thalweg_io::{Error, Result, plan};

use super::grid::Grid;
use super::row_bands::{ElementRange, WindowParts};
use super::selection::Selection;
use super::shared_buffer::SharedBuffer;
use super::tally::Delivered;
use super::window::{Filler, Subject, Window, WindowTarget, Windows};
use super::{ArrayFile, Dataset, LIKELY_RATIO, WINDOW_SHARE, is_likely};
use crate::array::{Array, ElementPlace, Found};
use crate::metadata::Node;

/// The elements to read of a dataset, and the memory that they go to.
#[derive(Debug)]
pub struct ArrayRequest<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// Which of its elements.
    pub selection: Selection,
    /// Takes the elements in C order, little-endian. Its length is the size of all of them.
    pub out: &'a mut [u8],
}

/// What a read of arrays reports.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ArraySummary {
    /// Bytes of the selected elements.
    pub bytes: u64,
    /// Stored bytes that hold them.
    pub stored: u64,
    /// Where the time went; empty if nothing had to be fetched.
    pub clocks: Clocks,
}

/// The least size in bytes of the parts in which a tile is read.
const LEAST_PIECE: u64 = 256 << 10;

/// A window holds this many times the bytes that the store's model keeps in flight, so that the
/// store is busy while a window is delivered. Longer windows take longer, because their memory does
/// not stay in the processor's cache.
const WINDOW_FLIGHTS: usize = 4;
/// A window holds at least this many tiles for each thread, so that all threads are busy.
const WINDOW_TILES: u64 = 2;
/// The bytes that are fetched and not decoded yet are at most so many windows.
const WINDOWS_AHEAD: u64 = 3;
/// The least size in bytes of a window, where the memory budget allows it.
const LEAST_WINDOW: u64 = 8 << 20;

/// The most batches of a run. A batch only says which entries are filled, so it is small; the
/// number of open windows bounds the memory.
const MOST_BATCHES: usize = 1 << 16;

impl Dataset {
    pub(super) fn array(&self) -> Option<&Arc<Array>> {
        match &self.found {
            Found::Array(array) => Some(array),
            Found::Other(_) => None,
        }
    }
}

impl ArrayFile {
    /// The subjects of these datasets.
    pub(super) fn subjects(&self, datasets: &[&Dataset]) -> Result<Arc<[Subject]>> {
        datasets.iter().map(|dataset| self.subject(dataset)).collect()
    }

    /// The decoded bytes of a window on a store with this model, unless a band of chunks is longer.
    pub(super) fn window_bytes(&self, subjects: &[Subject], model: &StoreModel) -> u64 {
        let piece = Self::piece_of(model);
        let Budget { threads, memory } = self.options.budget;
        let flights = WINDOW_FLIGHTS.saturating_mul(model.depth.saturating_mul(model.block)) as u64;
        let tile =
            |subject: &Subject| Grid::new(&subject.array, &Selection::All, piece).tile_bytes();
        let tile = subjects.iter().map(tile).max().unwrap_or(0);
        let tiles = tile.saturating_mul(threads as u64 * WINDOW_TILES);
        flights.max(tiles).max(LEAST_WINDOW).min((memory / WINDOW_SHARE) as u64)
    }

    fn subject(&self, dataset: &Dataset) -> Result<Subject> {
        let array = dataset.array().ok_or_else(|| Error::Unsupported {
            file: self.store.name().clone(),
            what: format!("{}, which is no array of elements of one size,", dataset.path()).into(),
            advice: "`thalweg info FILE` says what it is".into(),
        })?;
        if let Some(filter) = array.pipeline.unknown() {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}: {filter}", dataset.path()).into(),
                advice: "write it with another filter, with a program that has this one".into(),
            });
        }
        Ok(Subject {
            file: self.store.name().clone(),
            path: dataset.path().into(),
            array: array.clone(),
        })
    }

    /// Reads the wanted elements of several datasets at once, in the order in which they lie in the
    /// file.
    ///
    /// # Errors
    /// [`Error::Usage`] for a selection or memory that does not fit its dataset; the first defect.
    /// The memory then holds some of the values.
    pub fn read(&self, wanted: &mut [ArrayRequest<'_>]) -> Result<ArraySummary> {
        let model = self.model();
        let mut window = Window::new();
        let mut nodes = Vec::new();
        let mut summary = ArraySummary::default();
        for (number, ArrayRequest { dataset, selection, out }) in wanted.iter_mut().enumerate() {
            let subject = self.subject(dataset)?;
            let wrong = |what: String| {
                Error::Usage(format!("{}: {}: {what}", subject.file, subject.path).into())
            };
            let count = selection.count(&subject.array.shape).map_err(wrong)?;
            if let Selection::Elements(elements) = &selection {
                subject.check(elements, self.piece())?;
            }
            let bytes = count * subject.array.dtype.size() as u64;
            if bytes != out.len() as u64 {
                return Err(wrong(format!(
                    "{bytes} bytes are wanted, and there is memory for {}",
                    out.len()
                )));
            }
            if bytes == 0 {
                continue;
            }
            summary.bytes += bytes;
            let grid = Grid::new(&subject.array, selection, self.piece());
            window.add(number, subject, grid);
            nodes.push(&dataset.node);
            if let Some(target) = window.targets.last() {
                // SAFETY: only the run uses the buffer, and the run ends before this function
                // returns.
                #[allow(unsafe_code)]
                target.buffer_or(|| unsafe { SharedBuffer::over(out) });
            }
        }
        for (target, node) in window.targets.iter().zip(nodes) {
            if let Some(buffer) = target.buffer() {
                self.without_engine(target, node, buffer)?;
            }
        }
        summary.stored = window.stored();
        summary.clocks = self.fill_at_hand(&mut window)?;
        if window.entries.is_empty() {
            window.check_filled()?;
            return Ok(summary);
        }
        let shape = self.shape(&window, &model, Delivery::Worker);
        let windows = Arc::new(Windows::of(window));
        let run = self.start(&windows, model, shape)?;
        summary.clocks = summary.clocks.then(run.finish()?.clocks);
        if let Some((_, window)) = windows.head()? {
            window.check_filled()?;
        }
        Ok(summary)
    }

    /// Calls `f` with all elements of several datasets, part by part. `f` takes the number of a
    /// dataset and the next of its elements in C order, little-endian. Parts of different datasets
    /// alternate as they lie in the file.
    ///
    /// # Errors
    /// The first defect, or an error from `f`.
    pub fn each(
        &self,
        datasets: &[&Dataset],
        f: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<ArraySummary> {
        self.each_of(datasets, &whole(&self.subjects(datasets)?), f)
    }

    /// Calls `f` with a range of elements of each dataset, in C order. A range holds whole chunks,
    /// as [`ArrayFile::slices`] gives them.
    ///
    /// # Errors
    /// As [`ArrayFile::each`]; [`Error::Usage`] if a range is outside of its dataset or does not
    /// hold whole rows.
    pub fn each_of(
        &self,
        datasets: &[&Dataset],
        elements: &[Range<u64>],
        f: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<ArraySummary> {
        let subjects = self.subjects(datasets)?;
        let model = self.model();
        let piece = self.piece();
        for (subject, elements) in subjects.iter().zip(elements) {
            subject.check(elements, piece)?;
        }
        let window = self.window_bytes(&subjects, &model);
        let mut each = Each {
            file: self,
            datasets,
            windows: Arc::new(Windows::new(
                self.coming(&subjects, elements, window, piece),
                self.options.budget.memory,
            )),
            delivered: Delivered::new(&subjects, elements),
            summary: ArraySummary::default(),
            f,
        };
        let ahead = (window * WINDOWS_AHEAD) as usize;
        while let Some((_, window)) = each.windows.head()? {
            if window.entries.is_empty() {
                each.deliver(window)?;
                continue;
            }
            let shape = self.shape(&window, &model, Delivery::AsTheyCome);
            drop(window);
            let buffers = (ahead / shape.block).clamp(shape.depth + 1, shape.buffers);
            let max_depth = shape.max_depth.min(buffers - 1);
            let shape = Shape { batches: MOST_BATCHES, buffers, max_depth, ..shape };
            let mut run = self.start(&each.windows, model, shape)?;
            each.deliver_run(&mut run)?;
            each.summary.clocks = each.summary.clocks.then(run.finish()?.clocks);
        }
        each.delivered.check(&subjects)?;
        Ok(each.summary)
    }

    /// The windows of these elements. Each is checked when it is made.
    fn coming(
        &self,
        subjects: &Arc<[Subject]>,
        elements: &[Range<u64>],
        window_bytes: u64,
        piece: u64,
    ) -> impl Iterator<Item = Result<Window>> + Send + use<> {
        let memory = self.options.budget.memory as u64;
        let size = self.store.size();
        let subjects = subjects.clone();
        WindowParts::new(&subjects, elements, window_bytes, piece).map(move |parts| {
            for part in &parts {
                check_room(&subjects[part.dataset], part, piece, memory, size)?;
            }
            Ok(window(&subjects, &parts, piece))
        })
    }

    /// Calls `f` with an array's values, part by part in C order, little-endian.
    ///
    /// # Errors
    /// The first defect, or an error from `f`.
    pub fn values(&self, dataset: &Dataset, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.each(&[dataset], &mut |_, bytes| f(bytes)).map(drop)
    }

    pub(crate) fn model(&self) -> StoreModel {
        self.options.model.unwrap_or(StoreModel::MEMORY)
    }

    /// Bytes that are read at a time of a tile that can be read in parts, on this file's store.
    pub(super) fn piece(&self) -> u64 {
        Self::piece_of(&self.model())
    }

    /// The bytes of a part of a tile that can be read in parts, on a store with this model.
    pub(super) fn piece_of(model: &StoreModel) -> u64 {
        (model.block as u64 / 4).max(LEAST_PIECE)
    }

    /// Starts a run that fetches from the head of the windows on.
    fn start(
        &self,
        windows: &Arc<Windows>,
        model: StoreModel,
        shape: Shape,
    ) -> Result<Run<Filler>> {
        let fetches = windows.fetches(self.gap_rule(&model), shape.block);
        let decoder = Filler { windows: windows.clone(), limit: self.options.budget.memory };
        let source = Source::Planned(Box::new(fetches));
        let control = self.options.control.clone();
        Run::start_below(self.store.clone(), source, decoder, shape, control, windows.horizon())
    }

    /// The sizes of a run whose windows are like this one.
    pub(super) fn shape(&self, window: &Window, model: &StoreModel, delivery: Delivery) -> Shape {
        let rule = self.gap_rule(model);
        let alignment = self.store.alignment();
        plan::listed(&ranges(window), &rule, self.options.budget, delivery, alignment).shape
    }

    /// Which gaps between chunks are read.
    pub(crate) fn gap_rule(&self, model: &StoreModel) -> GapRule {
        GapRule::new(model).or_given(self.options.gap)
    }

    /// Fills a target that the engine does not fetch: values in the file's metadata, and values of
    /// other datasets.
    fn without_engine(
        &self,
        target: &WindowTarget,
        node: &Node,
        buffer: &SharedBuffer,
    ) -> Result<()> {
        let array = &target.subject.array;
        match &array.place {
            ElementPlace::Inline(stored) => target.tiles(buffer, |_, bytes| {
                bytes.clone_from(stored);
                Ok(())
            }),
            ElementPlace::Virtual(mappings) => target.tiles(buffer, |rows, bytes| {
                self.options.control.check()?;
                self.virtual_rows(node, array, mappings, &rows, bytes)
            }),
            ElementPlace::Contiguous(_) | ElementPlace::Chunked(..) => Ok(()),
        }
    }
}

/// Calls the caller's `f` with the values of windows, one window after the other.
struct Each<'a> {
    file: &'a ArrayFile,
    datasets: &'a [&'a Dataset],
    windows: Arc<Windows>,
    delivered: Delivered,
    summary: ArraySummary,
    f: &'a mut dyn FnMut(usize, &[u8]) -> Result<()>,
}

impl Each<'_> {
    /// Delivers windows until the run fetches no more of them.
    fn deliver_run(&mut self, run: &mut Run<Filler>) -> Result<()> {
        let mut filled: HashMap<usize, usize> = HashMap::new();
        while !self.windows.is_run_over()
            && let Some((number, window)) = self.windows.head()?
        {
            while filled.get(&number).copied().unwrap_or(0) < window.entries.len() {
                match run.next() {
                    Some(batch) => batch?
                        .iter()
                        .for_each(|(window, count)| *filled.entry(*window).or_default() += count),
                    // The run may have ended just before this window.
                    None if self.windows.is_run_over() => return Ok(()),
                    None => return Err(Error::Cancelled),
                }
            }
            filled.remove(&number);
            self.deliver(window)?;
            run.extend(self.windows.horizon());
        }
        Ok(())
    }

    /// Delivers the head, whose entries are fetched.
    fn deliver(&mut self, window: Arc<Window>) -> Result<()> {
        self.file.options.control.check()?;
        for target in &window.targets {
            let buffer = self.windows.buffer(target);
            self.file.without_engine(target, &self.datasets[target.dataset].node, buffer)?;
            self.summary.bytes += target.grid.bytes();
        }
        self.summary.stored += window.stored();
        window.check_filled()?;
        drop(window);
        self.windows.deliver(|window| {
            let mut spare = Vec::with_capacity(window.targets.len());
            for target in window.targets {
                let number = target.dataset;
                let bytes = target.into_bytes();
                (self.f)(number, &bytes)?;
                self.delivered.add(number, bytes.len());
                spare.push(bytes);
            }
            Ok(spare)
        })
    }
}

/// Checks that a part's decoded bytes fit in `memory` bytes, or are plausible for its stored bytes.
/// The file has `size` bytes.
fn check_room(
    subject: &Subject,
    part: &ElementRange,
    piece: u64,
    memory: u64,
    size: u64,
) -> Result<()> {
    let bytes = (part.elements.end - part.elements.start) * subject.array.dtype.size() as u64;
    if bytes <= memory {
        return Ok(());
    }
    let stored = match subject.array.place {
        ElementPlace::Virtual(_) => size,
        _ => window(
            std::slice::from_ref(subject),
            &[ElementRange { dataset: 0, ..part.clone() }],
            piece,
        )
        .stored(),
    };
    if is_likely(bytes, stored, memory) {
        return Ok(());
    }
    Err(Error::Unsupported {
        file: subject.file.clone(),
        what: format!(
            "{}: {bytes} bytes stored in {stored}, more than {LIKELY_RATIO} for each,",
            subject.path
        )
        .into(),
        advice: "if the file is right, raise --memory".into(),
    })
}

/// The window of these parts.
pub(super) fn window(subjects: &[Subject], parts: &[ElementRange], piece: u64) -> Window {
    let mut window = Window::new();
    for ElementRange { dataset, elements } in parts {
        let subject = subjects[*dataset].clone();
        let grid = Grid::new(&subject.array, &Selection::Elements(elements.clone()), piece);
        window.add(*dataset, subject, grid);
    }
    window
}

/// The ranges of bytes to fetch, in the order of the file.
fn ranges(window: &Window) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = window.entries.iter().map(|(_, entry)| entry.stored.clone()).collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges
}

/// The range of all elements of each subject.
pub(super) fn whole(subjects: &[Subject]) -> Vec<Range<u64>> {
    subjects.iter().map(|subject| 0..subject.array.len()).collect()
}

#[cfg(all(test, feature = "libhdf5"))]
mod tests;
