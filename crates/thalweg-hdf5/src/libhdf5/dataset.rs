//! Datasets of one dimension: the type and the offsets of their elements, and their filters.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_char};

use hdf5_metno_sys::h5d::{
    H5D_layout_t, H5D_space_status_t, H5Dget_chunk_info_by_coord, H5Dget_create_plist,
    H5Dget_offset, H5Dget_space, H5Dget_space_status, H5Dget_type, H5Dread,
};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pget_chunk, H5Pget_external_count, H5Pget_fill_value, H5Pget_filter2,
    H5Pget_layout, H5Pget_nfilters,
};
use hdf5_metno_sys::h5s::{H5S_ALL, H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims};
use hdf5_metno_sys::h5t::{H5T_NATIVE_INT16, H5T_STD_I16LE, H5Tequal};
use thalweg_io::Result;

use super::chunk_index::edge_mask;
use super::handle::{Id, LibraryRefusal, locked, status};
use super::object::Node;
use crate::filter::{Filter, Pipeline};
use crate::metadata::NOWHERE;
use crate::types::{Chunk, SampleDataset, Storage};

/// The most client data values of a filter that are read.
const MOST_VALUES: usize = 64;

/// Why a dataset is not read: the library refuses it, its form is not supported, or it is
/// malformed.
pub(super) enum DatasetError {
    Refused(LibraryRefusal),
    Unsupported(String),
    Malformed(u64, String, String),
}

impl From<LibraryRefusal> for DatasetError {
    fn from(refused: LibraryRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl Node {
    /// A dataset of 16-bit samples, and where they lie. Every range that it names is inside the
    /// file.
    ///
    /// # Errors
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for other types, dimensions, filters
    /// and layouts, [`Error::Malformed`](thalweg_io::Error::Malformed) for addresses outside the
    /// file.
    pub fn samples(&self) -> Result<SampleDataset> {
        let found = locked(|| self.samples_locked()).map_err(|error| {
            let advice = "convert the file with its maker's tools first";
            self.shared.dataset_error(&self.path, error, advice)
        })?;
        let outside = found.check_inside(self.shared.size());
        outside.map_err(|fault| {
            self.shared.malformed(
                &self.path,
                fault.at,
                fault.found.into_owned(),
                fault.expected.into_owned(),
            )
        })?;
        Ok(found)
    }

    fn samples_locked(&self) -> Result<SampleDataset, DatasetError> {
        // SAFETY: under the lock, with identifiers that are open; each buffer has the size that the
        // call is given.
        unsafe {
            if H5Iget_type(self.id.raw()) != H5I_type_t::H5I_DATASET {
                return Err(DatasetError::Malformed(0, "a group".into(), "a dataset".into()));
            }
            let kind = Id::new(H5Dget_type(self.id.raw()))?;
            if status(H5Tequal(kind.raw(), *H5T_STD_I16LE))? == 0 {
                return Err(DatasetError::Unsupported(
                    "samples other than little-endian 16-bit integers".into(),
                ));
            }
            let space = Id::new(H5Dget_space(self.id.raw()))?;
            if H5Sget_simple_extent_ndims(space.raw()) != 1 {
                return Err(DatasetError::Unsupported(
                    "a signal of other than one dimension".into(),
                ));
            }
            let mut len = 0;
            status(H5Sget_simple_extent_dims(space.raw(), &raw mut len, std::ptr::null_mut()))?;
            let creation = Id::new(H5Dget_create_plist(self.id.raw()))?;
            let pipeline = pipeline(&creation)?;
            let storage = match H5Pget_layout(creation.raw()) {
                H5D_layout_t::H5D_COMPACT => self.inline(len)?,
                H5D_layout_t::H5D_CONTIGUOUS if H5Pget_external_count(creation.raw()) > 0 => {
                    return Err(DatasetError::Unsupported("a signal in another file".into()));
                }
                H5D_layout_t::H5D_CONTIGUOUS => Storage::Contiguous(run(&self.id)?),
                H5D_layout_t::H5D_CHUNKED => {
                    let mut chunk = 0;
                    if status(H5Pget_chunk(creation.raw(), 1, &raw mut chunk))? != 1 || chunk == 0 {
                        return Err(DatasetError::Unsupported(
                            "chunks of other than one dimension".into(),
                        ));
                    }
                    let mut chunks = self.chunks(len, chunk)?;
                    if let Some(last) = chunks.last_mut().filter(|last| len - last.first < chunk) {
                        last.mask |= edge_mask(&creation)?;
                    }
                    Storage::Chunked(chunk, chunks)
                }
                _ => return Err(DatasetError::Unsupported("a virtual dataset".into())),
            };
            let mut fill = 0i16;
            // Reading the fill value takes time, so it is only read if it is needed.
            if SampleDataset::stored(len, &storage) < len {
                status(H5Pget_fill_value(
                    creation.raw(),
                    *H5T_NATIVE_INT16,
                    (&raw mut fill).cast(),
                ))?;
            }
            Ok(SampleDataset { len, fill, storage, pipeline })
        }
    }

    /// The samples of a compact dataset, which the library has in memory already.
    fn inline(&self, len: u64) -> Result<Storage, DatasetError> {
        // A header message is below 64 KiB.
        if len > u64::from(u16::MAX) {
            return Err(DatasetError::Malformed(
                0,
                format!("{len} samples in a header"),
                "fewer".into(),
            ));
        }
        let mut samples = vec![0i16; len as usize];
        // SAFETY: under the lock; the buffer has room for all elements.
        status(unsafe {
            H5Dread(
                self.id.raw(),
                *H5T_NATIVE_INT16,
                H5S_ALL,
                H5S_ALL,
                H5P_DEFAULT,
                samples.as_mut_ptr().cast(),
            )
        })?;
        Ok(Storage::Inline(samples))
    }

    fn chunks(&self, len: u64, chunk: u64) -> Result<Vec<Chunk>, DatasetError> {
        if len == 0 {
            return Ok(Vec::new());
        }
        if chunk >= len {
            let (first, mut mask, mut offset, mut size) = (0u64, 0u32, 0u64, 0u64);
            // SAFETY: under the lock; one dimension, so one coordinate, and three numbers for the
            // answers.
            status(unsafe {
                H5Dget_chunk_info_by_coord(
                    self.id.raw(),
                    &raw const first,
                    &raw mut mask,
                    &raw mut offset,
                    &raw mut size,
                )
            })?;
            let stored = (offset != NOWHERE).then_some(Chunk { first, offset, size, mask });
            return Ok(stored.into_iter().collect());
        }
        let chunks = self.grid(&[len], &[chunk])?.into_iter();
        Ok(chunks.map(|stored| Chunk { first: stored.first * chunk, ..stored }).collect())
    }
}

/// Where the one run of a dataset starts, if it is stored. The lock is held.
pub(super) fn run(dataset: &Id) -> Result<Option<u64>, LibraryRefusal> {
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

/// The filters of a creation property list. The lock is held.
pub(super) fn pipeline(creation: &Id) -> Result<Pipeline, DatasetError> {
    let mut filters = Vec::new();
    // SAFETY: under the lock; every buffer has the size that the call is given.
    unsafe {
        let count = status(H5Pget_nfilters(creation.raw()))?;
        for place in 0..count.cast_unsigned() {
            let mut values = [0; MOST_VALUES];
            let mut value_count = MOST_VALUES;
            let mut name = [0u8; 64];
            let mut flags = 0;
            let mut config = 0;
            let number = status(H5Pget_filter2(
                creation.raw(),
                place,
                &raw mut flags,
                &raw mut value_count,
                values.as_mut_ptr(),
                name.len() - 1,
                name.as_mut_ptr().cast::<c_char>(),
                &raw mut config,
            ))?;
            let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
            let values = &values[..value_count.min(MOST_VALUES)];
            filters.push(Filter::new(number, &name, values).map_err(DatasetError::Unsupported)?);
        }
    }
    Ok(Pipeline(filters))
}
