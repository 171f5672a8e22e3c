//! Prefetching pages of a segment: pages are read into memory in large requests and checked before
//! a query uses them one by one.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::control::Control;
use thalweg_io::engine::{Decoder, Delivery, Run};
use thalweg_io::extent::{Group, Source, Wanted};
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{Budget, GapRule, ListPlan};
use thalweg_io::{Result, plan};

use crate::storage::segment::{Ahead, PAGE, PlannedFetches, announce};
use crate::storage::segment_reader::SegmentReader;

/// Fewer pages than this are not prefetched: reading them where they are used is as fast.
const FEW: u64 = 8;

/// About how many pages are tested for the page cache. If all of these are cached, nearly all pages
/// are.
const SAMPLES: usize = 64;

/// How pages are prefetched.
#[derive(Debug, Clone)]
pub(crate) struct Fetcher {
    pub(crate) model: StoreModel,
    pub(crate) budget: Budget,
    pub(crate) control: Control,
    pub(crate) planned: Arc<Mutex<PlannedFetches>>,
}

impl Fetcher {
    /// Reads pages of segments that will be used into memory, if they were not used before. Pages
    /// of segments that are far away stay announced until the returned value is dropped.
    pub(crate) fn fetch<'a>(
        &self,
        wanted: Vec<(&'a Arc<SegmentReader>, Vec<Range<u64>>)>,
    ) -> Result<Ahead<'a>> {
        let (far, near): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|(reader, _)| reader.segment.cached().is_some());
        near.into_iter().try_for_each(|(reader, pages)| self.fetch_near(reader, pages))?;
        announce(far.into_iter().map(|(reader, pages)| (&reader.segment, pages)))
    }

    /// Reads those of `pages` into the page cache that were not used before.
    fn fetch_near(&self, reader: &Arc<SegmentReader>, mut pages: Vec<Range<u64>>) -> Result<()> {
        // A store in memory needs no prefetch.
        if reader.plain.bytes().is_some() {
            return Ok(());
        }
        pages.retain(|pages| !reader.segment.is_seen(pages.clone()));
        if pages.iter().map(|pages| pages.end - pages.start).sum::<u64>() < FEW {
            return Ok(());
        }
        pages.sort_unstable_by_key(|pages| (pages.start, pages.end));
        reader.segment.expect(&pages);
        let samples = pages.iter().step_by(pages.len().div_ceil(SAMPLES));
        if samples.map(|pages| pages.start * PAGE as u64).all(|at| reader.plain.is_at_hand(at)) {
            return Ok(());
        }
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(pages.len());
        for pages in pages {
            let bytes = reader.segment.bytes(&pages)?;
            let start = bytes.start as u64;
            let end = bytes.end as u64;
            match ranges.last_mut() {
                // Lists share pages: each is fetched once.
                Some(last) if start <= last.end && end - last.start <= self.model.block as u64 => {
                    last.end = last.end.max(end);
                }
                _ => ranges.push(start..end),
            }
        }
        // Pages that are read and not wanted fill the page cache.
        let rule = GapRule::new(&self.model).lean();
        let ListPlan { shape, load, .. } =
            plan::listed(&ranges, &rule, self.budget, Delivery::Worker, 0);
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.add(load, &self.model);
        drop(planned);
        let wanted =
            ranges.into_iter().zip(0..).map(|(range, ordinal)| Wanted { range, ordinal }).collect();
        let source = Source::Planned(Box::new(plan::in_order(wanted, &rule, shape.block)));
        Run::start(
            reader.plain.clone(),
            source,
            Checker(reader.clone()),
            shape,
            self.control.clone(),
        )?
        .finish()?;
        Ok(())
    }

    /// The requests that were planned so far.
    pub(crate) fn planned(&self) -> PlannedFetches {
        *self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Checker(Arc<SegmentReader>);

impl Decoder for Checker {
    type Worker = u64;
    type Batch = ();

    fn worker(&self) -> u64 {
        0
    }

    fn batch(&self) {}

    fn decode(&self, bytes: &mut u64, group: &Group, next: &mut usize, (): &mut ()) -> Result<()> {
        while let Some(extent) = group.get(*next) {
            let first = extent.offset / PAGE as u64;
            self.0
                .segment
                .check(first..first + (extent.bytes.len() / PAGE) as u64, extent.bytes)?;
            *bytes += extent.bytes.len() as u64;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(bytes: &u64) -> u64 {
        *bytes
    }
}
