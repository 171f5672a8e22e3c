//! Windows: arrays, or parts of arrays, that are filled at the same time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::Decoder;
use thalweg_io::extent::{Extent, Fetch, Group, Wanted};
use thalweg_io::plan::{self, GapRule};
use thalweg_io::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use thalweg_io::{Error, Fault, InFile, Result};

use super::grid::{Grid, TileEntry};
use super::selection::Selection;
use super::shared_buffer::SharedBuffer;
use super::spare_memory::SpareMemory;
use super::tally::Tally;
use super::{LIKELY_RATIO, is_likely};
use crate::array::{Array, ElementPlace};
use crate::filter::Contexts;

/// The parts of a dataset that reading its values needs.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) file: Arc<str>,
    pub(super) path: Arc<str>,
    pub(super) array: Arc<Array>,
}

impl Subject {
    /// Checks that these elements, in C order, are whole rows of the array.
    pub(super) fn check(&self, elements: &Range<u64>, piece: u64) -> Result<()> {
        let row = Grid::new(&self.array, &Selection::All, piece).row();
        let fits = elements.start <= elements.end && elements.end <= self.array.len();
        if fits && elements.start.is_multiple_of(row) && elements.end.is_multiple_of(row) {
            return Ok(());
        }
        let Self { file, path, array } = self;
        let what = format!(
            "{file}: {path}: elements {}..{} of {} are not whole rows: a row has {row} elements",
            elements.start,
            elements.end,
            array.len()
        );
        Err(Error::Usage(what.into()))
    }
}

/// The wanted elements of a dataset, and the memory that they go to.
#[derive(Debug)]
pub(super) struct WindowTarget {
    /// The number of the dataset.
    pub(super) dataset: usize,
    pub(super) subject: Subject,
    pub(super) grid: Grid,
    buffer: OnceLock<SharedBuffer>,
    /// Whether every wanted element is stored.
    is_stored: bool,
    tally: Tally,
}

/// Targets that are filled at the same time.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) targets: Vec<WindowTarget>,
    /// The entries to fetch, each after the index of its target.
    pub(super) entries: Vec<(u32, TileEntry)>,
}

impl Window {
    /// A window without targets.
    pub(super) fn new() -> Self {
        Self { targets: Vec::new(), entries: Vec::new() }
    }

    /// The decoded bytes of its targets.
    fn bytes(&self) -> u64 {
        self.targets.iter().map(|target| target.grid.bytes()).sum()
    }

    /// The stored bytes of its entries.
    pub(super) fn stored(&self) -> u64 {
        self.entries.iter().map(|(_, entry)| entry.stored.end - entry.stored.start).sum()
    }

    /// The extents of all entries.
    pub(super) fn wanted(&self, number: usize) -> Vec<Wanted> {
        let entries = (0..).zip(&self.entries);
        entries
            .map(|(place, (_, entry))| Wanted {
                range: entry.stored.clone(),
                ordinal: ordinal(number, place),
            })
            .collect()
    }

    /// Adds a target.
    pub(super) fn add(&mut self, dataset: usize, subject: Subject, grid: Grid) {
        let mut is_stored = true;
        let mut tally = Tally::of_elements(grid.elements());
        if matches!(subject.array.place, ElementPlace::Chunked(..) | ElementPlace::Contiguous(_)) {
            let (entries, all) = grid.entries(&grid.stored(&subject.array));
            if !all {
                tally = Tally::of_entries(entries.len() as u64);
            }
            let number = self.targets.len() as u32;
            self.entries.extend(entries.into_iter().map(|entry| (number, entry)));
            is_stored = all;
        }
        self.targets.push(WindowTarget {
            dataset,
            subject,
            grid,
            buffer: OnceLock::new(),
            is_stored,
            tally,
        });
    }

    /// The target of an entry.
    pub(super) fn target(&self, entry: usize) -> &WindowTarget {
        &self.targets[self.entries[entry].0 as usize]
    }

    /// Fills an entry whose stored bytes are values that stay together, by `read`, which returns
    /// whether it could. `None` if the entry has to be decoded or divided.
    pub(super) fn read_into(
        &self,
        entry: usize,
        read: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<bool> {
        let target = self.target(entry);
        let (_, entry) = &self.entries[entry];
        let Range { start, end } = target.grid.whole(entry)?;
        let stored = entry.stored.end - entry.stored.start;
        if !target.grid.is_plain() || stored != (end - start) as u64 {
            return None;
        }
        let buffer = target.buffer()?;
        // SAFETY: entries of a window have no element in common, and each is given to one worker.
        #[allow(unsafe_code)]
        let out = unsafe { buffer.part(start, end - start) };
        let is_read = read(out);
        if is_read {
            target.subject.array.dtype.to_little_endian(out);
            target.tally.add(out.len() as u64 / target.grid.element());
        }
        Some(is_read)
    }

    /// Checks that every target got all the values that it is owed. Without this check, a defect of
    /// the planner or the engine would leave values out silently.
    pub(super) fn check_filled(&self) -> Result<()> {
        self.targets.iter().try_for_each(|target| target.tally.check(&target.subject))
    }
}

impl WindowTarget {
    /// Gives the target its memory, if it has none, and writes the fill value to it if not every
    /// wanted element is stored.
    pub(super) fn buffer_or(&self, make: impl FnOnce() -> SharedBuffer) -> &SharedBuffer {
        self.buffer.get_or_init(|| {
            let buffer = make();
            if !self.is_stored {
                let fill = self.grid.fill();
                // SAFETY: the buffer is new; nobody else uses it.
                #[allow(unsafe_code)]
                let bytes = unsafe { buffer.part(0, self.grid.bytes() as usize) };
                if fill.iter().all(|&byte| byte == 0) {
                    bytes.fill(0);
                } else {
                    bytes
                        .chunks_mut(fill.len())
                        .for_each(|part| part.copy_from_slice(&fill[..part.len()]));
                }
            }
            buffer
        })
    }

    /// The target's memory, if it has any.
    pub(super) fn buffer(&self) -> Option<&SharedBuffer> {
        self.buffer.get()
    }

    /// Fills in the wanted elements of tiles of whole rows. `f` writes the bytes of these rows, as
    /// stored, to its second argument.
    pub(super) fn tiles(
        &self,
        buffer: &SharedBuffer,
        mut f: impl FnMut(Range<u64>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (entries, _) = self.grid.entries(&self.grid.stored(&self.subject.array));
        let mut bytes = Vec::new();
        for entry in entries {
            f(self.grid.rows(entry.tile), &mut bytes)?;
            // SAFETY: nobody else fills a target that is not fetched.
            #[allow(unsafe_code)]
            let placed =
                unsafe { self.grid.place(&entry, &bytes, &self.subject.array.dtype, buffer) };
            self.tally.add(placed);
        }
        Ok(())
    }

    /// The target's bytes, once it is filled.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.buffer.into_inner().map(SharedBuffer::into_bytes).unwrap_or_default()
    }
}

/// The windows of a read. A window is made when the first of its requests goes out, or when its
/// turn to be delivered comes. The caller gets the windows in order.
pub(super) struct Windows {
    state: Mutex<WindowState>,
    /// The memory budget in bytes.
    memory: u64,
}

struct WindowState {
    /// The windows that are not made yet.
    coming: Box<dyn Iterator<Item = Result<Window>> + Send>,
    /// The windows that are made and not delivered. The first is the head: the caller waits for it.
    open: VecDeque<Arc<Window>>,
    /// The number of the head in the run.
    head: usize,
    /// The number of the first window that the run does not fetch, once that is known.
    end: Option<usize>,
    /// Why no more windows come.
    failed: Option<Error>,
    spare: SpareMemory,
}

impl WindowState {
    /// The window with this number in the run, which is made if necessary.
    fn at(&mut self, number: usize) -> Option<&Arc<Window>> {
        let place = number.checked_sub(self.head)?;
        while self.open.len() <= place {
            match self.coming.next()? {
                Ok(window) => self.open.push_back(Arc::new(window)),
                Err(error) => {
                    self.coming = Box::new(std::iter::empty());
                    self.failed = Some(error);
                    return None;
                }
            }
        }
        self.open.get(place)
    }
}

/// A run ends before the next window to fetch if this many windows in a row have nothing to fetch.
/// They are delivered without a run, because a run would have to make all of them ahead.
const MOST_EMPTY: usize = 64;

/// The most windows of a run; their numbers fit in an ordinal.
const MOST_WINDOWS: usize = 1 << (u64::BITS - ENTRY_BITS - 1);

impl Windows {
    /// Windows within a memory budget.
    pub(super) fn new(
        coming: impl Iterator<Item = Result<Window>> + Send + 'static,
        memory: usize,
    ) -> Self {
        let state = Mutex::new(WindowState {
            coming: Box::new(coming),
            open: VecDeque::new(),
            head: 0,
            end: None,
            failed: None,
            spare: SpareMemory::default(),
        });
        Self { state, memory: memory as u64 }
    }

    /// The windows of a run that has one window.
    pub(super) fn of(window: Window) -> Self {
        Self::new(std::iter::once(Ok(window)), usize::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next window to deliver, after its number in the run; `None` if all are delivered.
    ///
    /// # Errors
    /// Why the window cannot be read.
    pub(super) fn head(&self) -> Result<Option<(usize, Arc<Window>)>> {
        let mut state = self.lock();
        let head = state.head;
        if let Some(window) = state.at(head) {
            return Ok(Some((head, window.clone())));
        }
        state.failed.take().map_or(Ok(None), Err)
    }

    /// A window that is being filled.
    fn open(&self, number: usize) -> Result<Arc<Window>> {
        let state = self.lock();
        let window = number.checked_sub(state.head).and_then(|place| state.open.get(place));
        window.cloned().ok_or_else(|| Error::Usage(STILL_FILLED.into()))
    }

    /// The target's memory; a target without memory gets spare memory.
    pub(super) fn buffer<'a>(&self, target: &'a WindowTarget) -> &'a SharedBuffer {
        target.buffer_or(|| {
            let len = target.grid.bytes() as usize;
            let spare = self.lock().spare.take(len);
            SharedBuffer::new(match spare {
                Some(mut bytes) => {
                    bytes.resize(len, 0);
                    bytes
                }
                None => vec![0; len],
            })
        })
    }

    /// The requests of a run, which begins with the head.
    pub(super) fn fetches(
        self: &Arc<Self>,
        rule: GapRule,
        block: usize,
    ) -> impl Iterator<Item = Fetch> + Send + use<> {
        {
            let mut state = self.lock();
            (state.head, state.end) = (0, None);
        }
        let windows = self.clone();
        let mut next = 0;
        std::iter::from_fn(move || windows.next_wanted(&mut next))
            .flat_map(move |wanted| plan::in_order(wanted, &rule, block))
    }

    /// The extents of the next window that has any, from window `next` on. They are listed while
    /// the windows are locked, so that the caller and the workers that fill a window are the only
    /// ones that hold it.
    fn next_wanted(&self, next: &mut usize) -> Option<Vec<Wanted>> {
        let mut state = self.lock();
        // Windows without entries may have been delivered already.
        *next = state.head.max(*next);
        let end = next.saturating_add(MOST_EMPTY).min(MOST_WINDOWS);
        while *next < end
            && let Some(window) = state.at(*next)
        {
            let wanted = window.wanted(*next);
            *next += 1;
            if !wanted.is_empty() {
                return Some(wanted);
            }
        }
        state.end = Some(*next);
        None
    }

    /// Whether the run fetches neither the head nor any later window.
    pub(super) fn is_run_over(&self) -> bool {
        let state = self.lock();
        state.end.is_some_and(|end| end <= state.head)
    }

    /// The first ordinal that may not be decoded yet. Only the head and the window after it are
    /// filled; more windows would take too much memory. A head that takes more than the memory
    /// budget, because its chunks are that long, is filled alone.
    pub(super) fn horizon(&self) -> u64 {
        let mut state = self.lock();
        let head = state.head;
        let is_long = state.at(head).is_some_and(|window| window.bytes() > self.memory);
        ordinal(head + if is_long { 1 } else { 2 }, 0)
    }

    /// Removes the head, which is complete, and passes it to `f`. Then the next window is the head.
    /// A worker drops a window before it reports the window's last entry as filled, so the caller,
    /// which counts the entries, is the only owner.
    pub(super) fn deliver(&self, f: impl FnOnce(Window) -> Result<Vec<Vec<u8>>>) -> Result<()> {
        let window = {
            let mut state = self.lock();
            state.head += 1;
            state.open.pop_front()
        };
        let spare = match window.map(Arc::try_unwrap) {
            Some(Ok(window)) => f(window)?,
            // Without this error, values would be lost silently.
            Some(Err(_)) | None => return Err(Error::Usage(STILL_FILLED.into())),
        };
        self.lock().spare.give(spare);
        Ok(())
    }
}

/// The error for a window that is delivered too early. It shows a defect of this module.
const STILL_FILLED: &str = "a window of values is delivered while it is still being filled";

/// Bits of an ordinal for the number of an entry. The number of the window takes the other bits of
/// the `u64`.
const ENTRY_BITS: u32 = 40;

/// An entry's place in the run, from the number of its window and its number in the window.
pub(super) fn ordinal(window: usize, entry: u64) -> u64 {
    (window as u64) << ENTRY_BITS | entry
}

/// The decoder of a run: it fills windows from fetched bytes.
pub(super) struct Filler {
    pub(super) windows: Arc<Windows>,
    /// The `limit` of [`WorkerState::fill`].
    pub(super) limit: usize,
}

/// The state of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerState {
    contexts: Contexts,
    decoded: u64,
    window: Option<(usize, Arc<Window>)>,
}

impl WorkerState {
    /// Fills an entry of a window from its stored bytes. `buffer` is the memory of its target. A
    /// tile of at most `limit` decoded bytes is accepted whatever its stored size is.
    pub(super) fn fill(
        &mut self,
        window: &Window,
        entry: usize,
        extent: &Extent<'_>,
        buffer: &SharedBuffer,
        limit: usize,
    ) -> Result<()> {
        let target = window.target(entry);
        let (_, entry) = &window.entries[entry];
        let Subject { file, path, array } = &target.subject;
        let failed = |fault: Fault| {
            fault.in_file(file, extent.offset, format!("chunk {} of {path}", entry.tile))
        };
        self.decoded += extent.bytes.len() as u64;
        if target.grid.is_plain() {
            // SAFETY: entries of a window have no element in common, and each is given to one
            // worker.
            #[allow(unsafe_code)]
            let placed = unsafe { target.grid.place(entry, extent.bytes, &array.dtype, buffer) };
            target.tally.add(placed);
            return Ok(());
        }
        let size = target.grid.tile_bytes() as usize;
        if !is_likely(size as u64, extent.bytes.len() as u64, limit as u64) {
            let found = format!("a chunk of {size} bytes stored in {}", extent.bytes.len());
            let expected = format!(
                "at most {LIKELY_RATIO} decoded bytes for each stored byte; if the file is right, \
                 raise --memory"
            );
            return Err(failed(Fault::new(0, found, expected)));
        }
        if let Some(Range { start, end }) = target.grid.whole(entry) {
            // SAFETY: as above.
            #[allow(unsafe_code)]
            let out = unsafe { buffer.part(start, end - start) };
            self.contexts.fill(&array.pipeline, entry.mask, extent.bytes, out).map_err(failed)?;
            array.dtype.to_little_endian(out);
            target.tally.add(out.len() as u64 / target.grid.element());
            return Ok(());
        }
        let needed = target.grid.needed_bytes(entry.tile) as usize;
        let bytes = self
            .contexts
            .undo_needed(&array.pipeline, entry.mask, extent.bytes, needed, size)
            .map_err(failed)?;
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let placed = unsafe { target.grid.place(entry, bytes, &array.dtype, buffer) };
        target.tally.add(placed);
        Ok(())
    }
}

impl Decoder for Filler {
    type Worker = WorkerState;
    /// Entries that are filled, by the number of their window.
    type Batch = Vec<(usize, usize)>;

    fn worker(&self) -> WorkerState {
        WorkerState::default()
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        worker: &mut WorkerState,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            let number = extent.ordinal >> ENTRY_BITS;
            let entry = extent.ordinal & ((1 << ENTRY_BITS) - 1);
            let number = number as usize;
            let window = match &worker.window {
                Some((known, window)) if *known == number => window.clone(),
                _ => {
                    let window = self.windows.open(number)?;
                    worker.window = Some((number, window.clone()));
                    window
                }
            };
            let buffer = self.windows.buffer(window.target(entry as usize));
            worker.fill(&window, entry as usize, &extent, buffer, self.limit)?;
            match batch.last_mut() {
                Some((known, filled)) if *known == number => *filled += 1,
                _ => batch.push((number, 1)),
            }
            *next += 1;
        }
        // The caller owns the window once its last entry is filled.
        worker.window = None;
        Ok(())
    }

    fn decoded_bytes(worker: &WorkerState) -> u64 {
        worker.decoded
    }
}

#[cfg(test)]
mod tests;
