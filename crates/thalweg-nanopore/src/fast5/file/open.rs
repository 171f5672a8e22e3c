//! Opens a file and finds its reads. Many threads parse the metadata of all reads.

use std::sync::Arc;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::Refused;
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{GapRule, side_threads};
use thalweg_io::store::Store;
use thalweg_io::{Result, pool};

use super::pages::Pages;
use super::stream::Stream;
use crate::fast5::{Fast5Layout, FoundRead, LayoutBuilder, Root};

/// Reads that a thread parses at a time.
const STRIDE: usize = 32;

/// The most strides that a thread may be ahead.
const AHEAD: usize = 2;

/// The most threads. They wait for the store most of the time.
const THREADS: usize = 16;

/// The context of opening.
#[derive(Clone, Copy)]
pub(super) struct OpenContext<'a> {
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) control: &'a Control,
    /// The store model.
    pub(super) model: StoreModel,
    /// The memory that the list of all reads may take, in bytes.
    pub(super) memory: usize,
}

impl OpenContext<'_> {
    fn pages(&self) -> Pages {
        let depth = side_threads(&self.model, THREADS);
        Pages::new(self.store, self.control, GapRule::new(&self.model).lean(), depth)
    }
}

/// The reads of an opened file.
pub(super) enum OpenedFast5 {
    Stream(Arc<Stream>),
    Table(Fast5Layout),
}

/// Finds the reads of a file.
pub(super) fn open(context: OpenContext<'_>) -> Result<OpenedFast5> {
    let what = "HDF5's metadata".to_owned();
    let advice = "repack the file with h5repack";
    parse(context).map_err(|refused| refused.in_file(context.store.name(), 0, what, advice))
}

fn parse(context: OpenContext<'_>) -> meta::Result<OpenedFast5> {
    let pages = context.pages();
    let root = Root::parse(&pages, context.memory as u64)?;
    match Stream::open(context, &pages, root)? {
        Ok(stream) => Ok(OpenedFast5::Stream(Arc::new(stream))),
        Err(root) => table(context, &pages, &root).map(OpenedFast5::Table),
    }
}

/// Lists all reads, even of a file whose reads could be parsed while they are decoded.
#[cfg(test)]
pub(super) fn table_of(context: OpenContext<'_>) -> meta::Result<Fast5Layout> {
    let pages = context.pages();
    let root = Root::parse(&pages, context.memory as u64)?;
    table(context, &pages, &root)
}

/// Parses the rows of all reads.
fn table(context: OpenContext<'_>, pages: &Pages, root: &Root) -> meta::Result<Fast5Layout> {
    let mut builder = LayoutBuilder::new(context.store.name(), root, context.memory);
    let mut refused = None;
    all(root, context, &mut |found| match found.and_then(|found| builder.read(pages, found)) {
        Ok(()) => Ok(true),
        Err(Refused::Store(error)) => Err(error),
        Err(other) => {
            refused = Some(other);
            Ok(false)
        }
    })?;
    match refused {
        Some(refused) => Err(refused),
        None => Ok(builder.finish(pages.requests() + 1)?),
    }
}

/// Parses all reads in strides, which several threads take in turns. Passes the reads on in order,
/// until the receiver stops.
pub(super) fn all(
    root: &Root,
    context: OpenContext<'_>,
    take: &mut dyn FnMut(meta::Result<FoundRead>) -> Result<bool>,
) -> Result<()> {
    let OpenContext { store, control, model, .. } = context;
    let rule = GapRule::new(&model).lean();
    let threads = side_threads(&model, THREADS).min(root.len().div_ceil(STRIDE));
    if threads <= 1 {
        let pages = context.pages();
        for number in 0..root.len() {
            control.check()?;
            if !take(root.read(&pages, number))? {
                break;
            }
        }
        return Ok(());
    }
    let maker = || {
        let pages = Pages::new(store, control, rule, 1);
        move |stride: u64| {
            let first = stride as usize * STRIDE;
            let reads = first..root.len().min(first + STRIDE);
            reads.map(|number| root.read(&pages, number)).collect::<Vec<_>>()
        }
    };
    let strides = root.len().div_ceil(STRIDE) as u64;
    pool::in_order(store.name(), threads, AHEAD, strides, maker, |parsed| {
        control.check()?;
        for found in parsed {
            if !take(found)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
