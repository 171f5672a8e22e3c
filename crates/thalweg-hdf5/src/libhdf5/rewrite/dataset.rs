//! Copies datasets: how they are stored, how their copies are stored, and places for their values.

use std::ffi::{CStr, c_int, c_uint, c_void};

use hdf5_metno_sys::h5d::{
    H5D_alloc_time_t, H5D_layout_t, H5Dcreate_anon, H5Dget_create_plist, H5Dget_space, H5Dget_type,
    H5Dwrite, H5Dwrite_chunk,
};
use hdf5_metno_sys::h5f::{H5F_LIBVER_LATEST, H5F_libver_t};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pget_chunk, H5Pget_chunk_opts, H5Pget_external_count, H5Pget_filter2,
    H5Pget_layout, H5Pget_nfilters, H5Premove_filter, H5Pset_alloc_time, H5Pset_chunk,
    H5Pset_chunk_opts, H5Pset_deflate, H5Pset_filter, H5Pset_fletcher32, H5Pset_layout,
    H5Pset_shuffle,
};
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5S_seloper_t, H5Screate_simple, H5Sget_simple_extent_dims,
    H5Sget_simple_extent_ndims, H5Sget_simple_extent_type, H5Sselect_hyperslab, H5Sselect_none,
};
use hdf5_metno_sys::h5t::{H5T_class_t, H5Tget_class, H5Tget_size};
use hdf5_metno_sys::h5z::{
    H5Z_CLASS_T_VERS, H5Z_FILTER_ALL, H5Z_FLAG_OPTIONAL, H5Z_class2_t, H5Zfilter_avail, H5Zregister,
};
use thalweg_io::Result;

use super::datatype::{ElementContents, contents};
use super::{Rewrite, RewriteError};
use crate::encode::Coder;
use crate::filter;
use crate::filter::Pipeline;
use crate::libhdf5::array::{MOST_RANK, fill_value};
use crate::libhdf5::dataset;
use crate::libhdf5::dataset::{pipeline, run};
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::libhdf5::object::Node;
use crate::types::Chunk;

/// For up to this many chunks, an index with places for all of them has at most 16 MiB.
const MANY_CHUNKS: u64 = 1 << 20;

unsafe extern "C" {
    /// The bindings do not declare it.
    fn H5Fset_libver_bounds(file: hid_t, low: H5F_libver_t, high: H5F_libver_t) -> i32;
}

/// How a dataset is stored.
#[derive(Debug)]
pub struct DatasetForm {
    /// Its path in the file.
    pub path: String,
    /// The length of each dimension.
    pub shape: Vec<u64>,
    /// The greatest length of each dimension; `None` for any length.
    pub most: Vec<Option<u64>>,
    /// Bytes of an element.
    pub element: usize,
    /// Whether elements are numbers.
    pub numbers: bool,
    /// The value, in stored form, of elements that are not stored; empty for zeros.
    pub fill: Vec<u8>,
    /// Where the values lie.
    pub storage: ValueStorage,
    /// The filters of its chunks; the error names a filter that this crate cannot undo.
    pub pipeline: Result<Pipeline, String>,
    /// The filters as encoders; `None` if this crate cannot apply one of them.
    pub coders: Option<Vec<Coder>>,
}

/// Where the values of a dataset lie.
#[derive(Debug, PartialEq, Eq)]
pub enum ValueStorage {
    /// In one run from this offset on; `None` where nothing was written.
    Contiguous(Option<u64>),
    /// In chunks of this shape; each has a number in the grid of chunks, in C order.
    Chunked(Vec<u64>, Vec<Chunk>),
    /// Where only libhdf5 can read them, or outside of this file.
    Elsewhere {
        /// The reason, in words.
        why: &'static str,
        /// Whether libhdf5 has to copy them. Otherwise, this file does not hold them.
        copied: bool,
    },
}

/// How the copy of a dataset is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetStorage {
    /// As the original, with its chunks beside each other.
    Keep,
    /// In one run.
    Contiguous,
    /// In chunks.
    Chunked {
        /// The shape of a chunk.
        chunk: Vec<u64>,
        /// The encoders that are applied to the chunks.
        coders: Vec<Coder>,
        /// The numbers of the chunks to store, in C order of the grid. Without encoders all chunks
        /// have the same size, and their places are found at once.
        numbers: Vec<u64>,
    },
}

/// A dataset that was copied.
#[derive(Debug)]
pub struct RewrittenDataset {
    /// The storage of the original.
    pub form: DatasetForm,
    /// How the copy is stored.
    pub target: TargetStorage,
    /// The offset in the new file of each chunk, or of the one run. Empty if nothing is stored, or
    /// if filters are still to be applied.
    pub places: Vec<u64>,
    pub(super) from: u64,
    pub(super) to: u64,
}

fn elsewhere(why: &'static str, copied: bool) -> ValueStorage {
    ValueStorage::Elsewhere { why, copied }
}

impl DatasetForm {
    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.element as u64
    }

    /// Whether the dataset has a limit of size that allows many chunks of this shape, far more than
    /// it has now. From version 1.10 on, libhdf5 takes space and time for all of them at once.
    fn may_become_far_more(&self, target: &TargetStorage, chunk: &[u64]) -> bool {
        let cells = |lengths: &mut dyn Iterator<Item = u64>| {
            lengths
                .zip(chunk)
                .map(|(length, chunk)| length.div_ceil((*chunk).max(1)))
                .fold(1, u64::saturating_mul)
        };
        let there = match (target, &self.storage) {
            (TargetStorage::Chunked { numbers, .. }, _) => numbers.len() as u64,
            (_, ValueStorage::Chunked(_, chunks)) => chunks.len() as u64,
            _ => cells(&mut self.shape.iter().copied()),
        };
        let most = cells(&mut self.most.iter().map(|most| most.unwrap_or(0)));
        most > MANY_CHUNKS.max(there.saturating_mul(8))
    }
}

impl Rewrite<'_> {
    /// Makes the copy of a dataset. No link leads to it yet. The lock is held.
    pub(super) fn dataset(
        &mut self,
        from: Id,
        address: u64,
        path: &str,
        target: &mut dyn FnMut(&DatasetForm) -> Result<TargetStorage>,
    ) -> Result<(RewrittenDataset, Id), RewriteError> {
        let node = Node { id: from, path: path.to_owned(), shared: self.from.shared.clone() };
        // SAFETY: under the lock, with identifiers that are open.
        unsafe {
            let stored = Id::new(H5Dget_type(node.id.raw()))?;
            let space = Id::new(H5Dget_space(node.id.raw()))?;
            let make = Id::new(H5Dget_create_plist(node.id.raw()))?;
            let form = self.form(&node, &stored, &space, &make)?;
            let target = target(&form)?;
            apply(&target, &form, &make)?;
            register_stubs(&make)?;
            let kind = self.kind(&stored, path)?;
            let to = self.to.raw();
            let defaults = H5P_DEFAULT;
            let create =
                || Id::new(H5Dcreate_anon(to, kind.raw(), space.raw(), make.raw(), defaults));
            let chunk = chunk(&make, form.shape.len())?;
            let made = if chunk.is_some_and(|chunk| form.may_become_far_more(&target, &chunk)) {
                // The chunk index is then a B-tree of the stored chunks.
                status(H5Fset_libver_bounds(
                    to,
                    H5F_libver_t::H5F_LIBVER_EARLIEST,
                    H5F_LIBVER_LATEST,
                ))?;
                let made = create();
                status(H5Fset_libver_bounds(to, self.low, H5F_LIBVER_LATEST))?;
                made?
            } else {
                create()?
            };
            let places = self.places(&made, &form, &target, &stored)?;
            let to = self.record_copy(address, &made, path)?;
            Ok((RewrittenDataset { form, target, places, from: address, to }, made))
        }
    }

    /// How a dataset is stored.
    ///
    /// # Safety
    /// The lock is held.
    unsafe fn form(
        &self,
        node: &Node,
        stored: &Id,
        space: &Id,
        make: &Id,
    ) -> Result<DatasetForm, RewriteError> {
        let path = node.path.clone();
        // SAFETY: as the caller says; each buffer has the size that the call is given.
        unsafe {
            let mut shape = [0; MOST_RANK];
            let mut most = [0; MOST_RANK];
            let rank = status(H5Sget_simple_extent_ndims(space.raw()))?.cast_unsigned() as usize;
            status(H5Sget_simple_extent_dims(space.raw(), shape.as_mut_ptr(), most.as_mut_ptr()))?;
            let element = H5Tget_size(stored.raw());
            let numbers = matches!(
                H5Tget_class(stored.raw()),
                H5T_class_t::H5T_INTEGER
                    | H5T_class_t::H5T_FLOAT
                    | H5T_class_t::H5T_ENUM
                    | H5T_class_t::H5T_BITFIELD
            );
            let shape = shape[..rank].to_vec();
            let most = &most[..rank];
            let bytes = shape.iter().try_fold(element as u64, |bytes, &n| bytes.checked_mul(n));
            let Some(bytes) = bytes.filter(|&bytes| bytes <= i64::MAX as u64) else {
                let found = format!("{shape:?} elements of {element} bytes");
                return Err(self.malformed(
                    &path,
                    found,
                    "a dataset that a machine can address".into(),
                ));
            };
            let held = contents(stored, 0)?;
            let pipeline = match pipeline(make) {
                Ok(pipeline) => Ok(pipeline),
                Err(dataset::DatasetError::Unsupported(why)) => Err(why),
                Err(trouble) => return Err(self.trouble(&path, trouble)),
            };
            let storage = match H5Sget_simple_extent_type(space.raw()) {
                H5S_class_t::H5S_NULL => elsewhere("a dataset without values", false),
                _ => self.storage(node, make, &shape, bytes, &held)?,
            };
            let mut fill = match storage {
                ValueStorage::Elsewhere { .. } => Vec::new(),
                _ => fill_value(make, stored)?,
            };
            if fill.iter().all(|&byte| byte == 0) {
                fill.clear();
            }
            let most =
                most.iter().map(|&most| Some(most).filter(|&most| most != u64::MAX)).collect();
            let coders = coders(make)?;
            Ok(DatasetForm { path, shape, most, element, numbers, fill, storage, pipeline, coders })
        }
    }

    /// Where the `bytes` bytes of a dataset of this shape lie.
    ///
    /// # Safety
    /// The lock is held.
    unsafe fn storage(
        &self,
        node: &Node,
        make: &Id,
        shape: &[u64],
        bytes: u64,
        held: &ElementContents,
    ) -> Result<ValueStorage, RewriteError> {
        let path = &node.path;
        // SAFETY: as the caller says, with open identifiers.
        unsafe {
            Ok(match H5Pget_layout(make.raw()) {
                H5D_layout_t::H5D_VIRTUAL => elsewhere("a virtual dataset", false),
                _ if held.pointers => elsewhere("lists or strings of any length", true),
                _ if held.references => elsewhere("references", true),
                H5D_layout_t::H5D_COMPACT => elsewhere("in its header", true),
                H5D_layout_t::H5D_CONTIGUOUS if H5Pget_external_count(make.raw()) > 0 => {
                    elsewhere("values in another file", false)
                }
                H5D_layout_t::H5D_CONTIGUOUS => {
                    let at = run(&node.id)?.filter(|_| bytes > 0);
                    if let Some(at) = at {
                        self.from.shared.check_inside(path, at, bytes)?;
                    }
                    ValueStorage::Contiguous(at)
                }
                H5D_layout_t::H5D_CHUNKED => {
                    let (chunk, chunks) = node
                        .chunk_grid(make, shape)
                        .map_err(|trouble| self.trouble(path, trouble))?;
                    self.from.shared.check_chunks(path, &chunks)?;
                    ValueStorage::Chunked(chunk, chunks)
                }
                _ => {
                    let what = "a layout that is not known";
                    return Err(self.unsupported(path, what, "remove it first"));
                }
            })
        }
    }

    fn trouble(&self, path: &str, trouble: dataset::DatasetError) -> RewriteError {
        match trouble {
            dataset::DatasetError::Refused(refused) => refused.into(),
            dataset::DatasetError::Unsupported(what) => {
                self.unsupported(path, &what, "leave the dataset out first")
            }
            dataset::DatasetError::Malformed(at, found, expected) => {
                self.from.shared.malformed(path, at, found, expected).into()
            }
        }
    }

    /// Finds places for the values whose stored sizes are known already.
    ///
    /// # Safety
    /// The lock is held; `made` is a dataset of elements of the type `stored`.
    unsafe fn places(
        &mut self,
        made: &Id,
        form: &DatasetForm,
        target: &TargetStorage,
        stored: &Id,
    ) -> Result<Vec<u64>, RewriteError> {
        let chunk_bytes = |chunk: &[u64]| chunk.iter().product::<u64>() * form.element as u64;
        match (target, &form.storage) {
            (TargetStorage::Chunked { chunk, coders, numbers }, _) if coders.is_empty() => {
                let size = chunk_bytes(chunk);
                numbers
                    .iter()
                    .map(|&number| self.place(made, &form.shape, chunk, number, size, 0))
                    .collect()
            }
            (TargetStorage::Keep, ValueStorage::Chunked(chunk, chunks)) => chunks
                .iter()
                .map(|stored| {
                    self.place(made, &form.shape, chunk, stored.first, stored.size, stored.mask)
                })
                .collect(),
            (TargetStorage::Keep, ValueStorage::Contiguous(Some(_)))
            | (TargetStorage::Contiguous, ValueStorage::Contiguous(Some(_))) => {
                // SAFETY: as the caller says.
                Ok(vec![unsafe { self.place_run(made, form, stored) }?])
            }
            (TargetStorage::Contiguous, ValueStorage::Chunked(_, chunks)) if !chunks.is_empty() => {
                // SAFETY: as the caller says.
                Ok(vec![unsafe { self.place_run(made, form, stored) }?])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Finds places for chunks whose filters have been applied, and returns their offsets.
    ///
    /// # Errors
    /// An error of libhdf5; [`Error::Io`](thalweg_io::Error::Io).
    pub fn chunks(&mut self, made: &RewrittenDataset, stored: &[Chunk]) -> Result<Vec<u64>> {
        let TargetStorage::Chunked { chunk, .. } = &made.target else { return Ok(Vec::new()) };
        self.run_locked(&made.form.path, |rewrite| {
            let to = rewrite.open_to(made.to)?;
            let place = |stored: &Chunk| {
                rewrite.place(&to, &made.form.shape, chunk, stored.first, stored.size, stored.mask)
            };
            stored.iter().map(place).collect()
        })
    }

    fn place(
        &mut self,
        made: &Id,
        shape: &[u64],
        chunk: &[u64],
        number: u64,
        size: u64,
        mask: u32,
    ) -> Result<u64, RewriteError> {
        let Ok(bytes) = u32::try_from(size) else {
            return Err(LibraryRefusal(format!(
                "a chunk of {size} bytes, where 4 GiB is too much"
            ))
            .into());
        };
        if self.blank.len() < bytes as usize {
            // These bytes are never read or written, so they take no physical memory.
            self.blank = vec![0; bytes as usize];
        }
        let mut first = vec![0; shape.len()];
        let mut rest = number;
        for ((first, &length), &part) in first.iter_mut().zip(shape).zip(chunk).rev() {
            let count = length.div_ceil(part).max(1);
            *first = rest % count * part;
            rest /= count;
        }
        Ok(self.sink.reserve(|| {
            // SAFETY: under the lock, an open dataset with a coordinate for each dimension; the
            // buffer is long enough.
            status(unsafe {
                let bytes = (bytes as usize, self.blank.as_ptr().cast::<c_void>());
                H5Dwrite_chunk(made.raw(), H5P_DEFAULT, mask, first.as_ptr(), bytes.0, bytes.1)
            })
            .map(drop)
        })?)
    }

    /// Finds a place for the one run of a dataset, and returns its offset.
    ///
    /// # Safety
    /// The lock is held; `made` is a dataset of elements of the type `stored`, and not empty.
    unsafe fn place_run(
        &mut self,
        made: &Id,
        form: &DatasetForm,
        stored: &Id,
    ) -> Result<u64, RewriteError> {
        let element = vec![0_u8; form.element];
        let start = vec![0; form.shape.len()];
        let one = vec![1; form.shape.len()];
        // SAFETY: as the caller says; the selection is the first element.
        unsafe {
            let space = Id::new(H5Dget_space(made.raw()))?;
            let here = Id::new(H5Screate_simple(1, [1].as_ptr(), std::ptr::null()))?;
            if !form.shape.is_empty() {
                let set = H5S_seloper_t::H5S_SELECT_SET;
                let none = std::ptr::null();
                status(H5Sselect_hyperslab(
                    space.raw(),
                    set,
                    start.as_ptr(),
                    none,
                    one.as_ptr(),
                    none,
                ))?;
            }
            let bytes = element.as_ptr().cast();
            // The library writes the element. If there is a fill value, it also writes that
            // everywhere.
            self.sink.reserve(|| {
                status(H5Dwrite(
                    made.raw(),
                    stored.raw(),
                    here.raw(),
                    space.raw(),
                    H5P_DEFAULT,
                    bytes,
                ))
                .map(drop)
            })?;
        }
        run(made)?.ok_or_else(|| LibraryRefusal("no place for values".into()).into())
    }
}

/// Sets in `make` how a dataset is to be stored.
///
/// # Safety
/// The lock is held; `make` is a dataset's creation property list.
unsafe fn apply(
    target: &TargetStorage,
    form: &DatasetForm,
    make: &Id,
) -> Result<(), LibraryRefusal> {
    // SAFETY: as the caller says; arrays are as long as the calls are given.
    unsafe {
        if *target == TargetStorage::Contiguous {
            status(H5Premove_filter(make.raw(), H5Z_FILTER_ALL))?;
            status(H5Pset_layout(make.raw(), H5D_layout_t::H5D_CONTIGUOUS))?;
        }
        if let TargetStorage::Chunked { chunk, coders, .. } = target {
            status(H5Premove_filter(make.raw(), H5Z_FILTER_ALL))?;
            status(H5Pset_chunk(make.raw(), chunk.len() as c_int, chunk.as_ptr()))?;
            for coder in coders {
                status(match *coder {
                    Coder::Shuffle => H5Pset_shuffle(make.raw()),
                    Coder::Deflate(level) => H5Pset_deflate(make.raw(), level.into()),
                    Coder::Zstd(level) => {
                        let level = c_uint::from(level);
                        H5Pset_filter(
                            make.raw(),
                            filter::ZSTD,
                            H5Z_FLAG_OPTIONAL,
                            1,
                            &raw const level,
                        )
                    }
                    Coder::Fletcher32 => H5Pset_fletcher32(make.raw()),
                    Coder::Lz4 => H5Pset_filter(
                        make.raw(),
                        filter::LZ4,
                        H5Z_FLAG_OPTIONAL,
                        0,
                        std::ptr::null(),
                    ),
                })?;
            }
        }
        if let TargetStorage::Keep = target
            && let Some(chunk) = chunk(make, form.shape.len())?
        {
            // The list remembers the version of its dataset. Setting chunk options, even to none,
            // raises it to that of libhdf5 1.10.
            let mut options = 0;
            status(H5Pget_chunk_opts(make.raw(), &raw mut options))?;
            status(H5Pset_chunk(make.raw(), chunk.len() as c_int, chunk.as_ptr()))?;
            if options != 0 {
                status(H5Pset_chunk_opts(make.raw(), options))?;
            }
        }
        let is_chunked = match target {
            TargetStorage::Keep => matches!(form.storage, ValueStorage::Chunked(..)),
            TargetStorage::Contiguous => false,
            TargetStorage::Chunked { .. } => true,
        };
        if is_chunked {
            // Otherwise the library would make and filter chunks before their values exist.
            status(H5Pset_alloc_time(make.raw(), H5D_alloc_time_t::H5D_ALLOC_TIME_INCR))?;
        }
    }
    Ok(())
}

/// The chunk shape of a creation property list.
///
/// # Safety
/// The lock is held; `make` is a dataset's creation property list.
unsafe fn chunk(make: &Id, rank: usize) -> Result<Option<Vec<u64>>, LibraryRefusal> {
    let mut chunk = vec![0; rank];
    // SAFETY: as the caller says; the shape is as long as the call is given.
    unsafe {
        if H5Pget_layout(make.raw()) != H5D_layout_t::H5D_CHUNKED {
            return Ok(None);
        }
        status(H5Pget_chunk(make.raw(), rank as c_int, chunk.as_mut_ptr()))?;
    }
    Ok(Some(chunk))
}

/// The filters of a creation property list as encoders; `None` if this crate cannot apply one of
/// them.
///
/// # Safety
/// The lock is held.
unsafe fn coders(make: &Id) -> Result<Option<Vec<Coder>>, LibraryRefusal> {
    let mut coders = Vec::new();
    // SAFETY: as the caller says; there is room for one value.
    unsafe {
        for place in 0..status(H5Pget_nfilters(make.raw()))?.cast_unsigned() {
            let (mut flags, mut config, mut count, mut level) = (0, 0, 1, u32::MAX);
            let name = std::ptr::null_mut();
            let value = &raw mut level;
            let (flags, count, config) = (&raw mut flags, &raw mut count, &raw mut config);
            coders.push(
                match status(H5Pget_filter2(
                    make.raw(),
                    place,
                    flags,
                    count,
                    value,
                    0,
                    name,
                    config,
                ))? {
                    filter::SHUFFLE => Coder::Shuffle,
                    filter::DEFLATE => Coder::Deflate(level.min(9) as u8),
                    filter::FLETCHER32 => Coder::Fletcher32,
                    filter::LZ4 => Coder::Lz4,
                    // The plugin of this filter uses level 3 if no level is given.
                    filter::ZSTD => {
                        Coder::Zstd(if level == u32::MAX { 3 } else { level.min(22) as u8 })
                    }
                    _ => return Ok(None),
                },
            );
        }
    }
    Ok(Some(coders))
}

/// Registers a stub for each missing filter; the stub always fails. With it, a dataset can be made
/// with the filter, and its chunks are copied from file to file as they are.
///
/// # Safety
/// The lock is held; `make` is a dataset's creation property list.
unsafe fn register_stubs(make: &Id) -> Result<(), LibraryRefusal> {
    unsafe extern "C" fn fail(
        _: c_uint,
        _: usize,
        _: *const c_uint,
        _: usize,
        _: *mut usize,
        _: *mut *mut c_void,
    ) -> usize {
        0
    }
    const NAME: &CStr = c"not in thalweg";
    // SAFETY: as the caller says; the call gets no buffers for what is not asked for.
    unsafe {
        for place in 0..status(H5Pget_nfilters(make.raw()))?.cast_unsigned() {
            let (mut flags, mut config, mut count) = (0, 0, 0);
            let values = std::ptr::null_mut();
            let name = std::ptr::null_mut();
            let id = status(H5Pget_filter2(
                make.raw(),
                place,
                &raw mut flags,
                &raw mut count,
                values,
                0,
                name,
                &raw mut config,
            ))?;
            if status(H5Zfilter_avail(id))? > 0 {
                continue;
            }
            let class = H5Z_class2_t {
                version: H5Z_CLASS_T_VERS as c_int,
                id,
                encoder_present: 1,
                decoder_present: 1,
                name: NAME.as_ptr(),
                can_apply: None,
                set_local: None,
                filter: Some(fail),
            };
            status(H5Zregister((&raw const class).cast()))?;
        }
    }
    Ok(())
}

/// Selects `rows` rows of a dataset's space, from the row `from` on.
///
/// # Safety
/// The lock is held; `space` has as many dimensions as `shape`.
pub(super) unsafe fn select_rows(
    space: &Id,
    shape: &[u64],
    from: u64,
    rows: u64,
) -> Result<hid_t, LibraryRefusal> {
    let mut start = vec![0; shape.len()];
    let mut count = shape.to_vec();
    // SAFETY: as the caller says.
    unsafe {
        match (start.first_mut(), count.first_mut()) {
            (Some(start_row), Some(row_count)) => {
                (*start_row, *row_count) = (from, rows);
                let set = H5S_seloper_t::H5S_SELECT_SET;
                let none = std::ptr::null();
                status(H5Sselect_hyperslab(
                    space.raw(),
                    set,
                    start.as_ptr(),
                    none,
                    count.as_ptr(),
                    none,
                ))?;
            }
            _ if rows == 0 => drop(status(H5Sselect_none(space.raw()))?),
            _ => {}
        }
    }
    Ok(space.raw())
}
