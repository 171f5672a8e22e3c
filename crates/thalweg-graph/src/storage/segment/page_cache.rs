//! Pages of segments that are far away, as objects at URLs are: fetched through the engine, many at
//! a time, verified, and kept in a cache of bounded size.
//!
//! A query announces the pages that it will use ([`announce`]). If they fit into the cache, those
//! of all segments are fetched together, with their checksums. If they do not, the first of them
//! that is missing is fetched with those that were announced after it.

mod slots;
mod staged;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_io::control::Control;
use thalweg_io::engine::{Delivery, Run};
use thalweg_io::extent::{Source, Wanted};
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{self, Budget, GapRule, ListPlan, Load};
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use self::slots::Slots;
use self::staged::{SideBySide, Staged, Staging};
use crate::storage::segment::{PAGE, SegmentPages};

/// The cache takes this part of the memory budget. The block buffers of a run take three eighths,
/// and what a query returns takes a third.
const SHARE: usize = 4;

/// The fewest pages that are kept, whatever the budget.
const FEWEST: usize = 64;

/// Pages are fetched together if they take no more than this part of the cache.
const TOGETHER: u64 = 2;

/// Pages that are fetched when one of them is missing take this part of the cache, so that those of
/// several columns, which are used side by side, do not drive each other out.
const WINDOW: usize = 8;

/// Requests for pages that are not in memory, as the planner made them. Requests that several
/// queries made add up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlannedFetches {
    /// The requests, and the bytes that they transfer.
    pub load: Load,
    /// The time that the store takes for them according to its model, in seconds.
    pub predicted_s: f64,
}

impl PlannedFetches {
    /// Adds requests to a store with this model.
    pub(crate) fn add(&mut self, load: Load, model: &StoreModel) {
        self.load.requests += load.requests;
        self.load.bytes += load.bytes;
        self.predicted_s += load.predicted(model).as_secs_f64();
    }
}

/// The cache of the pages of a network.
#[derive(Debug)]
pub(crate) struct PageCache {
    /// The name of the network, for messages.
    name: Arc<str>,
    model: StoreModel,
    /// What a run may use.
    budget: Budget,
    /// The memory that all may use, in bytes.
    memory: usize,
    control: Control,
    planned: Arc<Mutex<PlannedFetches>>,
    slots: Mutex<Slots>,
    /// Held while missing pages are fetched, so that no two threads fetch the same ones.
    fetching: Mutex<()>,
}

/// A segment whose pages are in a cache.
#[derive(Debug)]
pub(crate) struct CachedSegment {
    cache: Arc<PageCache>,
    /// The number of the segment in the cache.
    number: usize,
    /// The store that pages are fetched from.
    plain: Arc<dyn Store>,
    announced: Mutex<Announced>,
}

/// The pages of a segment that queries will use.
#[derive(Debug, Default)]
struct Announced {
    next: u64,
    /// In order, by the number of the announcement.
    plans: Vec<(u64, Arc<[Range<u64>]>)>,
}

/// An announcement of pages. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Ahead<'a> {
    plans: Vec<(&'a CachedSegment, u64)>,
    /// Whether all pages fitted into the cache.
    pub(crate) is_whole: bool,
}

impl<'a> Ahead<'a> {
    fn push(&mut self, cached: &'a CachedSegment, pages: Vec<Range<u64>>) {
        let mut announced = lock(&cached.announced);
        let number = announced.next;
        announced.next += 1;
        announced.plans.push((number, pages.into()));
        self.plans.push((cached, number));
    }
}

impl Default for Ahead<'_> {
    fn default() -> Self {
        Self { plans: Vec::new(), is_whole: true }
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        for (cached, number) in &self.plans {
            lock(&cached.announced).plans.retain(|(known, _)| known != number);
        }
    }
}

/// Pages of a segment that are to be fetched.
type Wants<'a> = (&'a SegmentPages, &'a CachedSegment, Vec<Range<u64>>);

/// A page that was fetched, unverified.
struct Fetched {
    /// The place of its segment among those of the fetch.
    place: usize,
    page: u64,
    bytes: Box<[u8]>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(pages: &[Range<u64>]) -> u64 {
    pages.iter().fold(0, |sum, pages| sum.saturating_add(pages.end - pages.start))
}

/// The ranges in order, those that touch as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The pages of segments that are far away, those of a segment together, in order. Pages that no
/// segment has are left out.
fn by_segment<'a>(
    wanted: impl IntoIterator<Item = (&'a SegmentPages, Vec<Range<u64>>)>,
) -> Vec<Wants<'a>> {
    let mut parts: Vec<Wants<'a>> = Vec::new();
    for (segment, mut pages) in wanted {
        let Some(cached) = segment.cached() else { continue };
        pages.retain(|pages| pages.end <= segment.pages());
        match parts.iter_mut().find(|(_, known, _)| std::ptr::eq(*known, cached)) {
            Some((_, _, more)) => more.append(&mut pages),
            None => parts.push((segment, cached, pages)),
        }
    }
    parts.iter_mut().for_each(|(.., pages)| *pages = joined(std::mem::take(pages)));
    parts
}

/// Announces pages that will be used a part at a time. Nothing is fetched.
pub(crate) fn plan_ahead<'a>(
    wanted: impl IntoIterator<Item = (&'a SegmentPages, Vec<Range<u64>>)>,
) -> Ahead<'a> {
    let mut ahead = Ahead::default();
    by_segment(wanted).into_iter().for_each(|(_, cached, pages)| ahead.push(cached, pages));
    ahead
}

/// Announces the pages that a query will use, and fetches those that are missing, if they fit into
/// the cache. Segments that are not far away are left out, and so are pages that no segment has.
///
/// # Errors
/// [`Error::Io`], [`Error::Cancelled`]. Damage is an error when the page is used.
pub(crate) fn announce<'a>(
    wanted: impl IntoIterator<Item = (&'a SegmentPages, Vec<Range<u64>>)>,
) -> Result<Ahead<'a>> {
    let parts = by_segment(wanted);
    let mut ahead = Ahead::default();
    let Some((_, first, _)) = parts.first() else { return Ok(ahead) };
    let cache = first.cache.clone();
    let most = cache.most() as u64;
    let mut total = 0;
    let mut missing = Vec::new();
    for (segment, cached, pages) in parts {
        // Of more pages than the cache holds some are missing, and they may be very many.
        let mut gone = match count(&pages) {
            all if all > most => {
                total = u64::MAX;
                Vec::new()
            }
            _ => lock(&cache.slots).missing(cached.number, &pages),
        };
        total = total.saturating_add(count(&gone));
        if let Some(last) = gone.last().cloned() {
            // What reads a whole column a part at a time goes on after this part.
            let window = most / WINDOW as u64;
            gone.extend(cached.announced_after(&last, window.saturating_sub(count(&gone))));
            missing.push((segment, cached, joined(gone)));
        }
        ahead.push(cached, pages);
    }
    ahead.is_whole = total <= most / TOGETHER;
    if ahead.is_whole && total > 0 {
        let _one = lock(&cache.fetching);
        for Fetched { place, page, bytes } in cache.load(&missing)? {
            let (segment, cached, _) = &missing[place];
            // A damaged page is an error if it is used, and is then fetched again.
            if segment.check_page(page, &bytes).is_ok() {
                lock(&cache.slots).insert((cached.number, page), bytes);
            }
        }
    }
    Ok(ahead)
}

impl PageCache {
    /// An empty cache for the network `name`, whose store has this model.
    pub(crate) fn new(
        name: Arc<str>,
        model: StoreModel,
        budget: Budget,
        control: Control,
        planned: Arc<Mutex<PlannedFetches>>,
    ) -> Self {
        let Budget { threads, memory } = budget;
        let most = (memory / SHARE / PAGE).max(FEWEST);
        Self {
            name,
            model,
            // A run takes three quarters of its budget for its buffers.
            budget: Budget { threads, memory: memory / 2 },
            memory,
            control,
            planned,
            slots: Mutex::new(Slots::new(most)),
            fetching: Mutex::default(),
        }
    }

    fn most(&self) -> usize {
        lock(&self.slots).most
    }

    /// Fetches pages of segments, and the checksums that these need.
    fn load(&self, wanted: &[Wants<'_>]) -> Result<Vec<Fetched>> {
        let mut stores = SideBySide::new(self.name.clone());
        let mut ranges = Vec::new();
        for (segment, cached, pages) in wanted {
            let base = stores.push(cached.plain.clone())?;
            let bytes =
                pages.iter().map(|pages| pages.start * PAGE as u64..pages.end * PAGE as u64);
            for range in bytes.chain(segment.missing_sums(pages)) {
                // A request is as long as a block, at most.
                let step = self.model.block.next_multiple_of(PAGE);
                ranges.extend((range.start..range.end).step_by(step).map(|start| {
                    base + start..base + range.end.min(start.saturating_add(step as u64))
                }));
            }
        }
        // Bytes that are read and not wanted are bytes that others wait for.
        let rule = GapRule::new(&self.model).lean();
        let ListPlan { shape, load, .. } =
            plan::listed(&ranges, &rule, self.budget, Delivery::Worker, 0);
        lock(&self.planned).add(load, &self.model);
        let wanted_bytes =
            ranges.into_iter().zip(0..).map(|(range, ordinal)| Wanted { range, ordinal }).collect();
        let source = Source::Planned(Box::new(plan::in_order(wanted_bytes, &rule, shape.block)));
        let stores = Arc::new(stores);
        let staging = Staging::default();
        let staged = staging.0.clone();
        Run::start(stores.clone(), source, staging, shape, self.control.clone())?.finish()?;
        let mut staged: Vec<Staged> = std::mem::take(&mut *lock(&staged));
        staged.sort_unstable_by_key(|staged| staged.at);
        let mut pages = Vec::with_capacity(staged.len());
        for Staged { at, bytes } in staged {
            let (place, at) = stores.place(at);
            let segment = wanted[place].0;
            let page = at / PAGE as u64;
            match page.checked_sub(segment.pages()) {
                None => pages.push(Fetched { place, page, bytes }),
                // Checksums that are damaged are an error when a page needs them.
                Some(part) => drop(segment.keep_sums(part as usize, &bytes)),
            }
        }
        Ok(pages)
    }
}

impl CachedSegment {
    /// The segment with this number in a cache. Pages are fetched from `plain`.
    pub(crate) fn new(cache: &Arc<PageCache>, number: usize, plain: Arc<dyn Store>) -> Self {
        Self { cache: cache.clone(), number, plain, announced: Mutex::default() }
    }

    /// Room for bytes that a server says there are.
    pub(crate) fn room(&self, len: usize) -> Result<Vec<u8>> {
        room(self.plain.name(), len, self.cache.memory)
    }

    /// The most bytes of memory that an index of pages may take.
    pub(crate) fn memory(&self) -> usize {
        self.cache.memory
    }

    /// Copies the verified bytes of pages of `segment`, which is this one, to `out`.
    pub(crate) fn read(
        &self,
        segment: &SegmentPages,
        pages: &Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let cache = &self.cache;
        let mut missing = lock(&cache.slots).copy(self.number, pages, out);
        if missing.is_empty() {
            return Ok(());
        }
        let _one = lock(&cache.fetching);
        cache.control.check()?;
        // Another thread may have fetched them meanwhile.
        missing = lock(&cache.slots).copy(self.number, pages, out);
        let most = (cache.most() / WINDOW) as u64;
        while let Some(first) = missing.first().cloned() {
            let here = first.start..first.end.min(first.start + most);
            missing[0].start = here.end;
            missing.retain(|pages| !pages.is_empty());
            let mut window = vec![here.clone()];
            window.extend(self.announced_after(&here, most - (here.end - here.start)));
            for Fetched { page, bytes, .. } in cache.load(&[(segment, self, joined(window))])? {
                let is_wanted = here.contains(&page);
                match segment.check_page(page, &bytes) {
                    Err(damage) if is_wanted => return Err(damage),
                    Err(_) => continue,
                    Ok(()) => {}
                }
                if is_wanted {
                    let at = (page - pages.start) as usize * PAGE;
                    out[at..at + PAGE].copy_from_slice(&bytes);
                }
                lock(&cache.slots).insert((self.number, page), bytes);
            }
        }
        Ok(())
    }

    /// The pages that were announced last, from `here` on, without those in the cache: at most
    /// `most` of them.
    fn announced_after(&self, here: &Range<u64>, most: u64) -> Vec<Range<u64>> {
        let plans: Vec<_> = lock(&self.announced).plans.clone();
        let holds = |plan: &Arc<[Range<u64>]>| {
            let at = plan.partition_point(|pages| pages.end <= here.start);
            plan.get(at).is_some_and(|pages| pages.start <= here.start).then_some(at)
        };
        let Some((plan, at)) = plans.iter().rev().find_map(|(_, plan)| Some((plan, holds(plan)?)))
        else {
            return Vec::new();
        };
        let mut left = most;
        let mut after = Vec::new();
        if left == 0 {
            return after;
        }
        for pages in &plan[at..] {
            let pages = pages.start.max(here.end)..pages.end;
            if pages.is_empty() {
                continue;
            }
            let near = pages.start..pages.end.min(pages.start.saturating_add(most));
            for mut missing in lock(&self.cache.slots).missing(self.number, &[near]) {
                missing.end = missing.end.min(missing.start + left);
                left -= missing.end - missing.start;
                after.push(missing);
            }
            if left == 0 {
                break;
            }
        }
        after
    }
}

/// Room for `len` bytes that a server says there are, if that is not more than `most`.
///
/// # Errors
/// [`Error::Usage`] if it is more; [`Error::Io`] if there is not so much memory.
pub(crate) fn room(name: &Arc<str>, len: usize, most: usize) -> Result<Vec<u8>> {
    if len > most {
        let what = format!("{name}: a part of it takes {len} bytes of memory; give more --memory");
        return Err(Error::Usage(what.into()));
    }
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| Error::io(name, "reading", std::io::ErrorKind::OutOfMemory))?;
    bytes.resize(len, 0);
    Ok(bytes)
}
