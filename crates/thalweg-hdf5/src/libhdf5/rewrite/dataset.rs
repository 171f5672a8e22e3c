//! Makes datasets, and finds places for their values.

use std::ffi::{CStr, c_int, c_uint, c_void};

use hdf5_metno_sys::h5d::{
    H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5D_alloc_time_t, H5D_fill_time_t, H5D_layout_t,
    H5D_space_status_t, H5Dcreate_anon, H5Dget_create_plist, H5Dget_offset, H5Dget_space,
    H5Dget_space_status, H5Dwrite, H5Dwrite_chunk,
};
use hdf5_metno_sys::h5f::{H5F_LIBVER_LATEST, H5F_libver_t};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pcreate, H5Pget_filter2, H5Pget_layout,
    H5Pset_alloc_time, H5Pset_chunk, H5Pset_chunk_opts, H5Pset_deflate, H5Pset_external,
    H5Pset_fill_time, H5Pset_fill_value, H5Pset_filter, H5Pset_fletcher32, H5Pset_layout,
    H5Pset_shuffle, H5Pset_virtual,
};
use hdf5_metno_sys::h5z::{
    H5Z_CLASS_T_VERS, H5Z_FLAG_OPTIONAL, H5Z_class2_t, H5Zfilter_avail, H5Zregister,
};
use thalweg_io::Result;

use super::memory::MemoryForm;
use super::selection::{select, simple, source_space, space_of};
use super::{Plan, Rewrite, RewriteError, malformed, set_properties, type_in_memory};
use crate::encode::Coder;
use crate::filter::{self, Filter};
use crate::grid::RepackGrid;
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::metadata::NOWHERE;
use crate::metadata::dataset::{DatasetHeader, FilterMessage, Layout};
use crate::metadata::selection::Selected;
use crate::metadata::stored_object::ObjectProperties;
use crate::slab::Slab;
use crate::stored::{DatasetForm, TargetStorage, ValueStorage};
use crate::types::Chunk;

/// The most numbers of client data that the library adds to those of a filter.
const MORE_VALUES: usize = 32;

unsafe extern "C" {
    /// The bindings do not declare it.
    fn H5Fset_libver_bounds(file: hid_t, low: H5F_libver_t, high: H5F_libver_t) -> i32;
}

/// A dataset that was copied.
#[derive(Debug)]
pub(crate) struct RewrittenDataset {
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

impl Rewrite<'_> {
    /// Makes the copy of the dataset at an address. No link leads to it yet. The lock is held.
    pub(super) fn dataset(
        &mut self,
        header: &DatasetHeader,
        properties: &ObjectProperties,
        address: u64,
        path: &str,
        plan: &mut Plan<'_>,
    ) -> Result<(RewrittenDataset, Id), RewriteError> {
        let (form, target) = plan(header, path)?;
        let kind = self.type_in_file(&header.type_message, path)?;
        let memory = type_in_memory(&header.type_message)?;
        let space = space_of(&header.space)?;
        // SAFETY: under the lock, with identifiers that are open.
        unsafe {
            let make = Id::new(H5Pcreate(*H5P_CLS_DATASET_CREATE))?;
            set_properties(&make, properties)?;
            self.set_storage(&target, header, &form, &make)?;
            self.set_fill(header, &memory, path, &make)?;
            let to = self.to.raw();
            let defaults = H5P_DEFAULT;
            let create =
                || Id::new(H5Dcreate_anon(to, kind.raw(), space.raw(), make.raw(), defaults));
            let chunk = match (&target, &header.layout) {
                (TargetStorage::Chunked { chunk, .. }, _) => Some(chunk),
                (TargetStorage::Keep, Layout::Chunked(grid)) => Some(&grid.chunk),
                _ => None,
            };
            let made = if chunk.is_some_and(|chunk| form.may_become_far_more(&target, chunk)) {
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
            if let (TargetStorage::Keep, ValueStorage::Chunked(..)) = (&target, &form.storage) {
                self.check_filters(&made, header, path)?;
            }
            let places = self.places(&made, &form, &target, &memory)?;
            let to = self.record_copy(address, &made, path, Vec::new())?;
            Ok((RewrittenDataset { form, target, places, from: address, to }, made))
        }
    }

    /// Sets how a dataset is to be stored.
    ///
    /// # Safety
    /// The lock is held; `make` is a dataset's creation property list.
    unsafe fn set_storage(
        &self,
        target: &TargetStorage,
        header: &DatasetHeader,
        form: &DatasetForm,
        make: &Id,
    ) -> Result<(), RewriteError> {
        // SAFETY: as the caller says; arrays are as long as the calls are given.
        unsafe {
            match (target, &header.layout) {
                (TargetStorage::Contiguous, _) => {}
                (TargetStorage::Chunked { chunk, coders, .. }, _) => {
                    status(H5Pset_chunk(make.raw(), chunk.len() as c_int, chunk.as_ptr()))?;
                    coders.iter().try_for_each(|coder| set_coder(make, *coder))?;
                }
                (TargetStorage::Keep, Layout::Compact(_)) => {
                    status(H5Pset_layout(make.raw(), H5D_layout_t::H5D_COMPACT))?;
                }
                (TargetStorage::Keep, Layout::Contiguous(_)) => {
                    for piece in &header.external {
                        let file = self.c_string(piece.file.clone(), &form.path)?;
                        let Ok(offset) = i64::try_from(piece.offset) else {
                            let found = format!("values from byte {} of a file on", piece.offset);
                            let expected = "an offset below 2^63";
                            return Err(malformed(self.store, &form.path, found, expected).into());
                        };
                        let file = file.as_ptr();
                        status(H5Pset_external(make.raw(), file, offset, piece.size))?;
                    }
                }
                (TargetStorage::Keep, Layout::Chunked(grid)) => {
                    let chunk = &grid.chunk;
                    status(H5Pset_chunk(make.raw(), chunk.len() as c_int, chunk.as_ptr()))?;
                    if grid.are_edges_plain {
                        let options = H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS;
                        status(H5Pset_chunk_opts(make.raw(), options))?;
                    }
                    header.filters.iter().try_for_each(|filter| set_filter(make, filter))?;
                }
                (TargetStorage::Keep, Layout::Virtual(_)) => {
                    status(H5Pset_layout(make.raw(), H5D_layout_t::H5D_VIRTUAL))?;
                    for mapping in self.from.stored_mappings(header, &form.path)? {
                        let space = space_of(&header.space)?;
                        select(&space, &mapping.target)?;
                        let source = source_space(&mapping.source, &mapping.target, &form.shape)?;
                        let file = self.c_string(&*mapping.file, &form.path)?;
                        let dataset = self.c_string(&*mapping.dataset, &form.path)?;
                        let file = file.as_ptr();
                        let dataset = dataset.as_ptr();
                        status(H5Pset_virtual(
                            make.raw(),
                            space.raw(),
                            file,
                            dataset,
                            source.raw(),
                        ))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets the value of elements that are not stored, and when space is allocated.
    ///
    /// # Safety
    /// The lock is held; `make` is a dataset's creation property list whose layout is set.
    unsafe fn set_fill(
        &mut self,
        header: &DatasetHeader,
        memory: &Id,
        path: &str,
        make: &Id,
    ) -> Result<(), RewriteError> {
        let fill = &header.fill;
        // SAFETY: as the caller says; the value has the size of the type in memory.
        unsafe {
            match &fill.value {
                None => status(H5Pset_fill_value(make.raw(), memory.raw(), std::ptr::null()))?,
                Some(value) if value.is_empty() => 0,
                Some(value) => {
                    let form = MemoryForm::of(&header.datatype, memory)?;
                    let values = self.memory_values(&form, path, value)?;
                    let value = values.bytes.as_ptr().cast();
                    status(H5Pset_fill_value(make.raw(), memory.raw(), value))?
                }
            };
            let write_time = match fill.write_time {
                Some(0) => Some(H5D_fill_time_t::H5D_FILL_TIME_ALLOC),
                Some(1) => Some(H5D_fill_time_t::H5D_FILL_TIME_NEVER),
                Some(2) => Some(H5D_fill_time_t::H5D_FILL_TIME_IFSET),
                _ => None,
            };
            if let Some(time) = write_time {
                status(H5Pset_fill_time(make.raw(), time))?;
            }
            let allocation = if H5Pget_layout(make.raw()) == H5D_layout_t::H5D_CHUNKED {
                // Otherwise the library would make and filter chunks before their values exist.
                Some(H5D_alloc_time_t::H5D_ALLOC_TIME_INCR)
            } else {
                match fill.allocation_time {
                    Some(1) => Some(H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY),
                    Some(2) => Some(H5D_alloc_time_t::H5D_ALLOC_TIME_LATE),
                    Some(3) => Some(H5D_alloc_time_t::H5D_ALLOC_TIME_INCR),
                    _ => None,
                }
            };
            if let Some(time) = allocation {
                status(H5Pset_alloc_time(make.raw(), time))?;
            }
        }
        Ok(())
    }

    /// Checks that the filters of a copy are those of the original. The library computes the client
    /// data of some filters anew, and chunks that are copied as they are would then be decoded in
    /// another way.
    ///
    /// # Safety
    /// The lock is held; `made` is a dataset.
    unsafe fn check_filters(
        &self,
        made: &Id,
        header: &DatasetHeader,
        path: &str,
    ) -> Result<(), RewriteError> {
        // SAFETY: as the caller says.
        let make = Id::new(unsafe { H5Dget_create_plist(made.raw()) })?;
        for (place, before) in (0..).zip(&header.filters) {
            let mut flags = 0;
            let mut config = 0;
            let mut values = vec![0; before.values.len() + MORE_VALUES];
            let mut count = values.len();
            // SAFETY: under the lock, an open list; the buffers have the sizes that the call is
            // given.
            status(unsafe {
                H5Pget_filter2(
                    make.raw(),
                    place,
                    &raw mut flags,
                    &raw mut count,
                    values.as_mut_ptr(),
                    0,
                    std::ptr::null_mut(),
                    &raw mut config,
                )
            })?;
            values.truncate(count);
            let parsed = |values: &[u32]| Filter::new(before.number.into(), "", values);
            if values != before.values && parsed(&values) != parsed(&before.values) {
                let what = format!(
                    "filter {} with the client data {:?}, which libhdf5 writes as {values:?},",
                    before.number, before.values
                );
                let advice = "encode the dataset anew, with --filter PATH=FILTERS";
                return Err(self.unsupported(path, &what, advice));
            }
        }
        Ok(())
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
        let grid = |chunk: &[u64]| RepackGrid::chunks(&form.shape, chunk, form.element);
        match (target, &form.storage) {
            (TargetStorage::Chunked { chunk, coders, numbers }, _) if coders.is_empty() => {
                let grid = grid(chunk);
                let size = grid.bytes(0);
                numbers.iter().map(|&number| self.place(made, &grid, number, size, 0)).collect()
            }
            (TargetStorage::Keep, ValueStorage::Chunked(chunk, chunks)) => {
                let grid = grid(chunk);
                let place =
                    |chunk: &Chunk| self.place(made, &grid, chunk.first, chunk.size, chunk.mask);
                chunks.iter().map(place).collect()
            }
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
    pub(crate) fn chunks(&mut self, made: &RewrittenDataset, stored: &[Chunk]) -> Result<Vec<u64>> {
        let TargetStorage::Chunked { chunk, .. } = &made.target else { return Ok(Vec::new()) };
        self.run_locked(&made.form.path, |rewrite| {
            let to = rewrite.open_to(made.to)?;
            let grid = RepackGrid::chunks(&made.form.shape, chunk, made.form.element);
            let place =
                |stored: &Chunk| rewrite.place(&to, &grid, stored.first, stored.size, stored.mask);
            stored.iter().map(place).collect()
        })
    }

    fn place(
        &mut self,
        made: &Id,
        grid: &RepackGrid,
        number: u64,
        size: u64,
        mask: u32,
    ) -> Result<u64, RewriteError> {
        self.step()?;
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
        let first = grid.area(number).start;
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
        let here = simple(&[1], &[1])?;
        // SAFETY: as the caller says; the selection is the first element.
        unsafe {
            let space = Id::new(H5Dget_space(made.raw()))?;
            if !form.shape.is_empty() {
                select(&space, &Selected::Slabs(vec![Slab::from(0..1); form.shape.len()]))?;
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

/// Adds an encoder to a dataset's creation property list.
///
/// # Safety
/// The lock is held; `make` is a dataset's creation property list.
unsafe fn set_coder(make: &Id, coder: Coder) -> Result<(), LibraryRefusal> {
    // SAFETY: as the caller says; the values are as many as the calls are given.
    status(unsafe {
        let filter = |number, values: &[c_uint]| {
            let flags = H5Z_FLAG_OPTIONAL;
            H5Pset_filter(make.raw(), number, flags, values.len(), values.as_ptr())
        };
        match coder {
            Coder::Shuffle => H5Pset_shuffle(make.raw()),
            Coder::Deflate(level) => H5Pset_deflate(make.raw(), level.into()),
            Coder::Zstd(level) => filter(filter::ZSTD, &[level.into()]),
            Coder::Fletcher32 => H5Pset_fletcher32(make.raw()),
            Coder::Lz4 => filter(filter::LZ4, &[]),
        }
    })
    .map(drop)
}

/// Adds a filter to a dataset's creation property list. If the library does not have the filter, a
/// stub is registered that always fails: chunks are copied from file to file as they are.
///
/// # Safety
/// The lock is held; `make` is a dataset's creation property list.
unsafe fn set_filter(make: &Id, filter: &FilterMessage) -> Result<(), LibraryRefusal> {
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
    let id = c_int::from(filter.number);
    // SAFETY: as the caller says; the values are as many as the call is given; the library copies
    // the class, and its name is a constant.
    unsafe {
        if status(H5Zfilter_avail(id))? == 0 {
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
        let flags = if filter.is_optional { H5Z_FLAG_OPTIONAL } else { 0 };
        let values = &filter.values;
        status(H5Pset_filter(make.raw(), id, flags, values.len(), values.as_ptr())).map(drop)
    }
}

/// Where the one run of a dataset starts, if it is stored. The lock is held.
fn run(dataset: &Id) -> Result<Option<u64>, LibraryRefusal> {
    let mut stored = H5D_space_status_t::H5D_SPACE_STATUS_ERROR;
    // SAFETY: under the lock, an open dataset; the answer outlives the call.
    let offset = unsafe {
        status(H5Dget_space_status(dataset.raw(), &raw mut stored))?;
        H5Dget_offset(dataset.raw())
    };
    // The library returns an undefined address without an error, and adds the size of a user block
    // even to that.
    let is_stored =
        stored != H5D_space_status_t::H5D_SPACE_STATUS_NOT_ALLOCATED && offset != NOWHERE;
    Ok(is_stored.then_some(offset))
}
