//! Copies datasets, and finds places for their values.

use std::ffi::{CStr, c_int, c_uint, c_void};

use hdf5_metno_sys::h5d::{
    H5D_alloc_time_t, H5D_layout_t, H5D_space_status_t, H5Dcreate_anon, H5Dget_create_plist,
    H5Dget_offset, H5Dget_space, H5Dget_space_status, H5Dget_type, H5Dwrite, H5Dwrite_chunk,
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
    H5S_seloper_t, H5Screate_simple, H5Sget_simple_extent_ndims, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::H5Tget_size;
use hdf5_metno_sys::h5z::{
    H5Z_CLASS_T_VERS, H5Z_FILTER_ALL, H5Z_FLAG_OPTIONAL, H5Z_class2_t, H5Zfilter_avail, H5Zregister,
};
use thalweg_io::Result;

use super::{Plan, Rewrite, RewriteError};
use crate::encode::Coder;
use crate::filter;
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::metadata::NOWHERE;
use crate::stored::{CopiedParts, DatasetForm, TargetStorage, ValueStorage};
use crate::types::Chunk;

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
    /// Makes the copy of a dataset. No link leads to it yet. The lock is held.
    pub(super) fn dataset(
        &mut self,
        from: &Id,
        address: u64,
        path: &str,
        plan: &mut Plan<'_>,
    ) -> Result<(RewrittenDataset, Id), RewriteError> {
        let (form, target) = plan(address, path)?;
        // SAFETY: under the lock, with identifiers that are open.
        unsafe {
            let stored = Id::new(H5Dget_type(from.raw()))?;
            let space = Id::new(H5Dget_space(from.raw()))?;
            let make = Id::new(H5Dget_create_plist(from.raw()))?;
            if H5Pget_external_count(make.raw()) > 0 && !is_outside(&form) {
                let found = "values in other files, as libhdf5 reads it".into();
                return Err(self.malformed(path, found, "values in this file".into()));
            }
            // What follows passes the library as many numbers and bytes as the form has.
            let rank = status(H5Sget_simple_extent_ndims(space.raw()))?.cast_unsigned() as usize;
            let is_elsewhere = matches!(form.storage, ValueStorage::Elsewhere { .. });
            let element = H5Tget_size(stored.raw());
            if rank != form.shape.len() || (element != form.element && !is_elsewhere) {
                let found = format!("{rank} dimensions of {element} bytes, as libhdf5 reads it");
                let expected = format!("{} of {}", form.shape.len(), form.element);
                return Err(self.malformed(path, found, expected));
            }
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
    pub(crate) fn chunks(&mut self, made: &RewrittenDataset, stored: &[Chunk]) -> Result<Vec<u64>> {
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
        let first = first_of(number, shape, chunk);
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

/// The first element, in each dimension, of the chunk with this number in C order of the grid.
pub(super) fn first_of(mut number: u64, shape: &[u64], chunk: &[u64]) -> Vec<u64> {
    let mut first = vec![0; shape.len()];
    for ((first, &length), &part) in first.iter_mut().zip(shape).zip(chunk).rev() {
        let count = length.div_ceil(part).max(1);
        *first = number % count * part;
        number /= count;
    }
    first
}

/// Whether the own reader says that the values are not in the file.
fn is_outside(form: &DatasetForm) -> bool {
    matches!(form.storage, ValueStorage::Elsewhere { copied: CopiedParts::None, .. })
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
