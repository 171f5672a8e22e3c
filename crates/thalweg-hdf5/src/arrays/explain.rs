//! The requests that a read of arrays makes to a store, found without reading.

use std::ops::Range;

use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::model::StoreModel;
use thalweg_io::{Error, Result, plan};

use super::fill::{whole, window};
use super::grid::Grid;
use super::row_bands::WindowParts;
use super::selection::Selection;
use super::window::Window;
use super::{ArrayFile, Dataset};

/// The requests that a read makes to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// The number of requests.
    pub count: u64,
    /// Bytes that the requests transfer.
    pub fetched: u64,
    /// Of the requests, those that a [cache](thalweg_io::object_cache) of an object does not save.
    pub paid: u64,
    /// Bytes that these transfer.
    pub paid_bytes: u64,
    /// Of these, stored bytes that hold wanted elements.
    pub wanted: u64,
    /// Requests that do not begin where the one before ended.
    pub jumps: u64,
    /// The sizes of the run.
    pub shape: Shape,
}

impl ArrayFile {
    /// Plans the requests of [`ArrayFile::each`] to a store that behaves as `model` says.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a dataset that is not an array.
    pub fn explain(&self, datasets: &[&Dataset], model: &StoreModel) -> Result<Requests> {
        self.explain_of(datasets, &whole(&self.subjects(datasets)?), model)
    }

    /// Plans the requests of [`ArrayFile::each_of`].
    ///
    /// # Errors
    /// As [`ArrayFile::explain`]; [`Error::Usage`] if a range is outside of its dataset or does not
    /// hold whole rows.
    pub fn explain_of(
        &self,
        datasets: &[&Dataset],
        elements: &[Range<u64>],
        model: &StoreModel,
    ) -> Result<Requests> {
        let subjects = self.subjects(datasets)?;
        let piece = Self::piece_of(model);
        for (subject, elements) in subjects.iter().zip(elements) {
            subject.check(elements, piece)?;
        }
        let bytes = self.window_bytes(&subjects, model);
        let parts = WindowParts::new(&subjects, elements, bytes, piece);
        self.count(parts.map(|parts| window(&subjects, &parts, piece)), model, Delivery::AsTheyCome)
    }

    /// Plans the requests of [`ArrayFile::read`] of these selections.
    ///
    /// # Errors
    /// As [`ArrayFile::explain`]; [`Error::Usage`] for a selection that does not fit its dataset.
    pub fn explain_selections(
        &self,
        wanted: &[(&Dataset, Selection)],
        model: &StoreModel,
    ) -> Result<Requests> {
        let piece = Self::piece_of(model);
        let datasets: Vec<&Dataset> = wanted.iter().map(|(dataset, _)| *dataset).collect();
        let mut window = Window::new();
        for (number, (subject, (_, selection))) in
            self.subjects(&datasets)?.iter().zip(wanted).enumerate()
        {
            let wrong = |what: String| {
                Error::Usage(format!("{}: {}: {what}", subject.file, subject.path).into())
            };
            if selection.count(&subject.array.shape).map_err(wrong)? > 0 {
                window.add(number, subject.clone(), Grid::new(&subject.array, selection, piece));
            }
        }
        self.count(std::iter::once(window), model, Delivery::Worker)
    }

    /// Counts the requests for windows. The sizes of the run are those of the first.
    fn count(
        &self,
        windows: impl Iterator<Item = Window>,
        model: &StoreModel,
        delivery: Delivery,
    ) -> Result<Requests> {
        let mut windows = windows.peekable();
        let none = Window::new();
        let shape = self.shape(windows.peek().unwrap_or(&none), model, delivery);
        let mut requests =
            Requests { count: 0, fetched: 0, paid: 0, paid_bytes: 0, wanted: 0, jumps: 0, shape };
        let rule = self.gap_rule(model);
        let align = self.store.alignment() as u64;
        let mut end = None;
        for (number, window) in windows.enumerate() {
            self.options.control.check()?;
            requests.wanted += window.stored();
            for fetch in plan::in_order(window.wanted(number), &rule, shape.block) {
                if fetch.range.end <= self.store.head() {
                    continue;
                }
                // The engine starts each request at an aligned offset.
                let start = fetch.range.start / align * align;
                requests.count += 1;
                requests.fetched += fetch.range.end - start;
                let missing = self.store.missing(start..fetch.range.end);
                requests.paid += u64::from(!missing.is_empty());
                requests.paid_bytes += missing.end.saturating_sub(missing.start);
                requests.jumps += u64::from(end != Some(fetch.range.start));
                end = Some(fetch.range.end);
            }
        }
        Ok(requests)
    }
}
