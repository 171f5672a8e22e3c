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

/// Longest name of another file (`PATH_MAX`).
const MOST_NAME: usize = 4096;

/// Most pieces of one dataset.
const MOST_PIECES: u32 = 1 << 16;

impl Node {
    /// Where `bytes` of values that are in other files stand in the joined store. The lock is held.
    pub(super) fn external_values(
        &self,
        made: &Id,
        bytes: u64,
    ) -> Result<Option<u64>, DatasetError> {
        let Some(joined) = &self.shared.joined else {
            return Err(DatasetError::Unsupported("values in another file".into()));
        };
        let refused = |error: Error| DatasetError::Unsupported(error.to_string());
        let mut parts: Vec<(PathBuf, u64, u64)> = Vec::new();
        let mut left = bytes;
        // SAFETY: under the lock, an open list.
        let count = status(unsafe { H5Pget_external_count(made.raw()) })?.cast_unsigned();
        if count > MOST_PIECES {
            return Err(DatasetError::Unsupported(format!("values in {count} other files")));
        }
        for place in 0..count {
            let (name, offset, size) = piece(made, place)?;
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

    /// Whether this offset lies in the part of the joined store behind the file.
    pub(super) fn is_external(&self, offset: u64) -> bool {
        self.shared.joined.as_ref().is_some_and(|joined| !joined.pieces(offset, 1).is_empty())
    }
}

/// The name of another file, the offset of the values in it, and the most bytes of them there.
/// The lock is held.
fn piece(made: &Id, place: c_uint) -> Result<(Vec<u8>, u64, u64), DatasetError> {
    let mut name = vec![0u8; MOST_NAME + 1];
    let mut offset = 0;
    let mut size = 0;
    // SAFETY: under the lock; the name has a byte more than the call is told of, so that it ends
    // with NUL.
    status(unsafe {
        H5Pget_external(
            made.raw(),
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
