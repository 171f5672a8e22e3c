//! The requests that a read of arrays makes to a store, found without reading.

use thalweg_io::Result;
use thalweg_io::engine::{Delivery, Shape};
use thalweg_io::model::StoreModel;
use thalweg_io::plan;

use super::fill::{whole, window};
use super::row_bands::WindowParts;
use super::window::Window;
use super::{ArrayFile, Dataset};

/// The requests that a read makes to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// The number of requests.
    pub count: u64,
    /// Bytes that the requests transfer.
    pub fetched: u64,
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
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a dataset that is not an array.
    pub fn explain(&self, datasets: &[&Dataset], model: &StoreModel) -> Result<Requests> {
        let subjects = self.subjects(datasets)?;
        let piece = Self::piece_of(model);
        let bytes = self.window_bytes(&subjects, model);
        let windows = || {
            let parts = WindowParts::new(&subjects, &whole(&subjects), bytes, piece);
            parts.map(|parts| window(&subjects, &parts, piece))
        };
        let first = windows().next().unwrap_or_else(Window::new);
        let shape = self.shape(&first, model, Delivery::AsTheyCome);
        let mut requests = Requests { count: 0, fetched: 0, wanted: 0, jumps: 0, shape };
        let rule = self.gap_rule(model);
        let align = self.store.alignment() as u64;
        let mut end = None;
        for (number, window) in windows().enumerate() {
            self.options.control.check()?;
            requests.wanted += window.stored();
            for fetch in plan::in_order(window.wanted(number), &rule, shape.block) {
                // The engine starts each request at an aligned offset.
                let start = fetch.range.start / align * align;
                requests.count += 1;
                requests.fetched += fetch.range.end - start;
                requests.jumps += u64::from(end != Some(fetch.range.start));
                end = Some(fetch.range.end);
            }
        }
        Ok(requests)
    }
}
