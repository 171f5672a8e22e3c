//! The offset of a dataset's one run, and its filters.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_char};

use hdf5_metno_sys::h5d::{H5D_space_status_t, H5Dget_offset, H5Dget_space_status};
use hdf5_metno_sys::h5p::{H5Pget_filter2, H5Pget_nfilters};

use super::handle::{Id, LibraryRefusal, status};
use crate::filter::{Filter, Pipeline};
use crate::metadata::NOWHERE;

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
