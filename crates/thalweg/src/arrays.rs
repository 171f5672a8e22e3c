//! Arrays of HDF5 files (NeXus, netCDF-4, SONATA and any other), through the engine.
//!
//! libhdf5 says what a file's datasets are and where their bytes lie; these are fetched in the order of the file and decoded
//! by all threads, outside the library's lock. What it alone can decode it reads, through the same store.

mod tile;

use std::collections::HashSet;
use std::ffi::CString;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::codec::deflate;
use crate::engine::{Decoder, Delivery, Run};
use crate::error::{Error, Fault, Result};
use crate::extent::{Extent, Fetch, Group, Source};
use crate::format::Format;
use crate::format::hdf5::{self, Array, Contexts, Dtype, Found, Link, Node, Pipeline, Place};
use crate::model::StoreModel;
use crate::plan;
use crate::reads::{Opened, Options};
use crate::store::Store;

use tile::{Region, Tiling};

/// An HDF5 file, open for its arrays.
#[derive(Debug)]
pub struct ArrayFile {
    store: Arc<dyn Store>,
    file: hdf5::File,
    options: Options,
    note: Option<String>,
}

/// A dataset of a file.
#[derive(Debug)]
pub struct Dataset {
    node: Node,
    /// What it holds.
    pub found: Found,
}

impl Dataset {
    /// Where it is in the file: `/entry/bank1_events/event_id`.
    pub fn path(&self) -> &str {
        self.node.path()
    }
}

/// Whether a file is HDF5: its signature stands at its start, or after a block of its user's of 512 bytes, 1024, and so on
/// (HDF5 file format specification 3.0, section II.A).
///
/// # Errors
/// [`Error::Io`].
pub fn is_hdf5(store: &dyn Store) -> Result<bool> {
    let mut at = 0;
    while at + Format::HDF5_SIGNATURE.len() as u64 <= store.size() {
        let mut head = [0; Format::HDF5_SIGNATURE.len()];
        store.read_at(at, &mut head)?;
        if head == Format::HDF5_SIGNATURE {
            return Ok(true);
        }
        at = (at * 2).max(512);
    }
    Ok(false)
}

/// Groups inside each other deeper than this lead back to themselves, or might as well.
const MOST_LEVELS: usize = 256;

/// A chunk that decodes to more than the memory budget is believed up to this many bytes for each stored one: what deflate can
/// do at most.
const LIKELY_RATIO: usize = deflate::MOST_BYTES_PER_BYTE;

/// Decoded bytes that are on their way at a time are this part of the memory budget.
const WINDOW_SHARE: usize = 8;

impl ArrayFile {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`] about the path, [`Error::Malformed`] for what is not HDF5.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let Opened { store, model: (model, _), note } = Opened::new(path, &options)?;
        let file = Self::from_store(store, Options { model: Some(model), ..options })?;
        Ok(Self { note, ..file })
    }

    /// The same over any store.
    ///
    /// # Errors
    /// As [`ArrayFile::open`].
    pub fn from_store(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let file = hdf5::File::open(&store, &options.control)?;
        Ok(Self { store, file, options, note: None })
    }

    /// What is not as it should be, if anything.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Whether the file has reads, as FAST5 files do.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn is_fast5(&self) -> Result<bool> {
        let links = self.file.root()?.links()?;
        Ok(links.iter().any(|link| link.name.starts_with("read_") || link.name == "UniqueGlobalKey"))
    }

    /// Where the bytes come from.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How it is read.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// All datasets, in the order of their paths. One that has several is named by the first.
    ///
    /// # Errors
    /// The first defect.
    pub fn datasets(&self) -> Result<Vec<Dataset>> {
        self.below("/")
    }

    /// The dataset at a path, or those in the group that is there.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is neither; the first defect.
    pub fn below(&self, path: &str) -> Result<Vec<Dataset>> {
        let missing = || Error::NotFound {
            file: self.store.name().clone(),
            what: format!("dataset or group {path}").into(),
            advice: "`thalweg read FILE --digest` lists the datasets".into(),
        };
        let mut node = self.file.root()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !node.is_group() {
                return Err(missing());
            }
            let name = CString::new(name).map_err(|_| missing())?;
            node = node.child(&name)?.ok_or_else(missing)?;
        }
        let (mut found, mut seen) = (Vec::new(), HashSet::from([node.address()?]));
        let mut links: Vec<(Link, usize)> = Vec::new();
        let mut next = Some((node, 0));
        while let Some((node, level)) = next.take() {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if let Some(what) = node.array()? {
                found.push(Dataset { node, found: what });
            } else if node.is_group() && level < MOST_LEVELS {
                let mut below = node.links()?;
                // The last is followed first.
                below.sort_by(|a, b| b.name.cmp(&a.name));
                links.extend(below.into_iter().map(|link| (link, level + 1)));
            } else if node.is_group() {
                return Err(Error::Unsupported {
                    file: self.store.name().clone(),
                    what: format!("groups in more than {MOST_LEVELS} levels").into(),
                    advice: "name a group further down".into(),
                });
            }
            next = loop {
                let Some((link, level)) = links.pop() else { break None };
                if seen.insert(link.address) {
                    break Some((self.file.follow(&link)?, level));
                }
            };
        }
        found.sort_by(|a, b| a.path().cmp(b.path()));
        Ok(found)
    }

    /// Shows an array's values to `f`, part by part in C order, little-endian.
    ///
    /// # Errors
    /// The first defect, or an error of `f`'s.
    pub fn values(&self, dataset: &Dataset, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Found::Array(array) = &dataset.found else { return Ok(()) };
        if array.is_empty() {
            return Ok(());
        }
        match &array.place {
            Place::Inline(stored) => f(&little_endian(array, stored)),
            Place::Library(_) => self.through_library(dataset, array, f),
            Place::Contiguous(_) | Place::Chunked(..) => self.through_engine(dataset, array, f),
        }
    }

    /// Decoded bytes that may be on their way at a time.
    fn window(&self) -> u64 {
        (self.options.budget.memory / WINDOW_SHARE) as u64
    }

    /// Whether so many decoded bytes may be put together at once, for which so many are stored.
    fn check_room(&self, dataset: &Dataset, bytes: u64, stored: u64) -> Result<()> {
        if bytes <= (self.options.budget.memory as u64).max(stored.saturating_mul(LIKELY_RATIO as u64)) {
            return Ok(());
        }
        Err(Error::Unsupported {
            file: self.store.name().clone(),
            what: format!("{}: {bytes} bytes that lie beside each other in {stored} stored ones", dataset.path())
                .into(),
            advice: "allow it more memory than that, if this is what the dataset should be like".into(),
        })
    }

    fn through_library(&self, dataset: &Dataset, array: &Array, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let rows = array.shape.first().copied().unwrap_or(1);
        let row = (array.bytes() / rows).max(1);
        self.check_room(dataset, row, self.store.size())?;
        let step = (self.window() / row).max(1);
        let mut bytes = Vec::new();
        let mut from = 0;
        while from < rows {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let step = step.min(rows - from);
            dataset.node.rows(array, from, step, &mut bytes)?;
            array.dtype.to_little_endian(&mut bytes);
            f(&bytes)?;
            from += step;
        }
        Ok(())
    }

    fn through_engine(&self, dataset: &Dataset, array: &Array, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let model = self.options.model.unwrap_or(StoreModel::MEMORY);
        let shape = plan::shape(&model, self.options.budget, Delivery::AsTheyCome);
        let block = shape.block - self.store.alignment();
        let tiling = Arc::new(Tiling::new(array, block as u64));
        let windows = tiling.windows(self.window());
        let source = Source::Planned(Box::new(fetches(tiling.clone(), windows.clone(), model.gap_bytes(), block)));
        let decoder = TileDecoder {
            limit: self.options.budget.memory,
            file: self.store.name().clone(),
            path: dataset.path().into(),
            dtype: array.dtype.clone(),
            pipeline: array.pipeline.clone(),
            tiling: tiling.clone(),
        };
        let mut run = Run::start(self.store.clone(), source, decoder, shape, self.options.control.clone())?;
        let fill = little_endian(array, &array.fill);
        let mut region = Region::default();
        // What came before its window was begun.
        let mut early: Vec<Piece> = Vec::new();
        for tiles in windows {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let stored: u64 = tiling.ranges(tiling.stored_in(&tiles)).map(|range| range.end - range.start).sum();
            self.check_room(dataset, tiling.bytes(&tiles), stored)?;
            region.start(&tiling, &tiles, &fill);
            let mut missing = tiling.stored_in(&tiles).len();
            let mut come = std::mem::take(&mut early);
            loop {
                for piece in come.drain(..) {
                    if tiles.contains(&piece.tile) {
                        region.place(&tiling, piece.tile, &piece.bytes);
                        missing -= 1;
                    } else {
                        early.push(piece);
                    }
                }
                if missing == 0 {
                    break;
                }
                let Some(batch) = run.next() else { return Err(Error::Cancelled) };
                come = batch?;
            }
            f(region.bytes())?;
        }
        Ok(())
    }
}

/// The requests for an array: window by window, in the order of the file within each.
fn fetches(
    tiling: Arc<Tiling>,
    windows: impl Iterator<Item = Range<u64>> + Send,
    gap: u64,
    block: usize,
) -> impl Iterator<Item = Fetch> + Send {
    windows.flat_map(move |tiles| {
        let places = tiling.stored_in(&tiles);
        let first = places.start as u64;
        let ranges: Vec<Range<u64>> = tiling.ranges(places).collect();
        plan::gather(ranges, gap, block, u64::MAX).map(move |mut fetch| {
            fetch.extents.iter_mut().for_each(|extent| extent.ordinal += first);
            fetch
        })
    })
}

fn little_endian(array: &Array, stored: &[u8]) -> Vec<u8> {
    let mut bytes = stored.to_vec();
    array.dtype.to_little_endian(&mut bytes);
    bytes
}

/// A decoded tile.
#[derive(Debug)]
struct Piece {
    tile: u64,
    bytes: Vec<u8>,
}

struct TileDecoder {
    /// Decoded bytes of a tile that are believed in any case.
    limit: usize,
    file: Arc<str>,
    path: Arc<str>,
    dtype: Dtype,
    pipeline: Pipeline,
    tiling: Arc<Tiling>,
}

impl TileDecoder {
    fn tile(&self, contexts: &mut Contexts, extent: &Extent<'_>) -> Result<Piece> {
        let (tile, mask) = self.tiling.stored(extent.ordinal);
        let size = self.tiling.tile_bytes(tile);
        if size > self.limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO)) {
            let found = format!("{} stored bytes of a chunk of {size}", extent.bytes.len());
            let fault = Fault::new(0, found, format!("at least one in {LIKELY_RATIO}; or allow it more memory"));
            return Err(fault.in_file(&self.file, extent.offset, format!("chunk {tile} of {}", self.path)));
        }
        let mut bytes = Vec::new();
        let decoded = contexts.bytes(&self.pipeline, mask, extent.bytes, size, &mut bytes);
        decoded.map_err(|fault| fault.in_file(&self.file, extent.offset, format!("chunk {tile} of {}", self.path)))?;
        self.dtype.to_little_endian(&mut bytes);
        Ok(Piece { tile, bytes })
    }
}

impl Decoder for TileDecoder {
    type Worker = (Contexts, u64);
    type Batch = Vec<Piece>;

    fn worker(&self) -> Self::Worker {
        (Contexts::default(), 0)
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        (contexts, decoded): &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        while let Some(extent) = group.get(*next) {
            let piece = self.tile(contexts, &extent)?;
            *decoded += piece.bytes.len() as u64;
            batch.push(piece);
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes((_, decoded): &Self::Worker) -> u64 {
        *decoded
    }
}
