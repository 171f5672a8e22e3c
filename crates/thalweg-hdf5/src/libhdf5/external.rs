//! External datasets: values in other files, without filters (HDF5 user guide, `H5Pset_external`).
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_uint};
use std::path::PathBuf;

use hdf5_metno_sys::h5p::{H5Pget_external, H5Pget_external_count};
use thalweg_io::Error;
use thalweg_io::store::Store;

use super::dataset::DatasetError;
use super::handle::{Id, status};
use super::object::Node;

/// The longest name of another file, in bytes (`PATH_MAX`).
const MOST_NAME: usize = 4096;

/// The most pieces of one dataset.
const MOST_PIECES: u32 = 1 << 16;

impl Node {
    /// Adds the `bytes` bytes of values that are in other files to the joined store, and returns
    /// their offset in it. The lock is held.
    pub(super) fn external_values(
        &self,
        creation: &Id,
        bytes: u64,
    ) -> Result<Option<u64>, DatasetError> {
        let Some(joined) = &self.shared.joined else {
            return Err(DatasetError::Unsupported("values in another file".into()));
        };
        let refused = |error: Error| DatasetError::Unsupported(error.to_string());
        let mut parts: Vec<(PathBuf, u64, u64)> = Vec::new();
        let mut left = bytes;
        // SAFETY: under the lock, an open list.
        let count = status(unsafe { H5Pget_external_count(creation.raw()) })?.cast_unsigned();
        if count > MOST_PIECES {
            return Err(DatasetError::Unsupported(format!("values in {count} other files")));
        }
        for place in 0..count {
            let (name, offset, size) = piece(creation, place)?;
            let len = size.min(left);
            if len == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&name);
            let path = self.shared.other_files().find(&name, joined.name()).map_err(refused)?;
            let Some(path) = path else {
                return Err(DatasetError::Unsupported(format!(
                    "values in another file, {text}, that is not there"
                )));
            };
            parts.push((path, offset, len));
            left -= len;
        }
        if left > 0 {
            let found = format!("other files that hold {} bytes", bytes - left);
            return Err(DatasetError::Malformed(0, found, format!("{bytes}")));
        }
        joined.append(&parts).map_err(refused)
    }

    /// Whether this offset of the joined store is behind the file, in a piece of another file.
    pub(super) fn is_external(&self, offset: u64) -> bool {
        self.shared.joined.as_ref().is_some_and(|joined| !joined.pieces(offset, 1).is_empty())
    }
}

/// A piece of an external dataset: the name of the other file, the offset of the values in it, and
/// the most bytes of values that it holds. The lock is held.
fn piece(creation: &Id, place: c_uint) -> Result<(Vec<u8>, u64, u64), DatasetError> {
    let mut name = vec![0u8; MOST_NAME + 1];
    let mut offset = 0;
    let mut size = 0;
    // SAFETY: under the lock; the buffer has one byte more than the call is given, so the name ends
    // with NUL.
    status(unsafe {
        H5Pget_external(
            creation.raw(),
            place,
            MOST_NAME,
            name.as_mut_ptr().cast(),
            &raw mut offset,
            &raw mut size,
        )
    })?;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_bytes().to_vec();
    let offset = u64::try_from(offset).map_err(|_| {
        DatasetError::Malformed(
            0,
            format!("values from byte {offset} of another file on"),
            "an offset".into(),
        )
    })?;
    Ok((name, offset, size))
}
