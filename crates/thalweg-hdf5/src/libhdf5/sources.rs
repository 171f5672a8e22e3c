//! Refuses values that libhdf5 would fetch from other files past the driver, as it does for
//! external datasets. thalweg reads external datasets itself. Where libhdf5 reads them, as the
//! source of a virtual dataset or because it has to convert the values, they are refused unless
//! the file may name files anywhere.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, CString, c_char};

use hdf5_metno_sys::h5d::{H5D_layout_t, H5Dget_create_plist, H5Dopen2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pget_external_count, H5Pget_layout, H5Pget_virtual_count,
    H5Pget_virtual_dsetname, H5Pget_virtual_filename,
};

use thalweg_io::Result;

use super::dataset::DatasetError;
use super::driver::open_other;
use super::handle::{Id, status};
use super::object::Node;
use crate::other_files::{ADVICE, OtherFiles};

/// The most sources of one dataset that are looked at, and the most levels of virtual datasets.
const MOST_SOURCES: usize = 1 << 16;
const MOST_LEVELS: usize = 16;
/// The longest name of a file or dataset, in bytes.
const MOST_NAME: usize = 1 << 16;

impl Node {
    /// Checks a dataset before libhdf5 reads its values: the inspector reads them first, and other
    /// files with values must lie where they may. Done once for each dataset.
    ///
    /// # Errors
    /// The error of the inspector. [`Error::Unsupported`](thalweg_io::Error::Unsupported) for
    /// values in files of external datasets.
    pub(super) fn check_values(&self) -> Result<()> {
        self.shared.check_values(&self.path, || {
            self.shared.locked(
                || check_sources(&self.id, self.shared.other_files()),
                |error| Err(self.shared.dataset_error(&self.path, error, ADVICE)),
            )
        })
    }
}

/// Refuses a dataset whose values libhdf5 would fetch from files of external datasets, unless these
/// may lie anywhere. The lock is held.
pub(super) fn check_sources(dataset: &Id, other_files: &OtherFiles) -> Result<(), DatasetError> {
    if other_files.is_anywhere() {
        return Ok(());
    }
    check(dataset, MOST_LEVELS, &mut { MOST_SOURCES })
}

fn check(dataset: &Id, levels: usize, left: &mut usize) -> Result<(), DatasetError> {
    // SAFETY: under the lock, an open dataset.
    let creation = Id::new(unsafe { H5Dget_create_plist(dataset.raw()) })?;
    // SAFETY: under the lock, an open list.
    let (layout, external) = unsafe {
        let layout = H5Pget_layout(creation.raw());
        let is_one_run = layout == H5D_layout_t::H5D_CONTIGUOUS;
        (layout, is_one_run && H5Pget_external_count(creation.raw()) > 0)
    };
    if external {
        return Err(DatasetError::Unsupported(
            "a file of an external dataset that only libhdf5 reads".into(),
        ));
    }
    if layout != H5D_layout_t::H5D_VIRTUAL {
        return Ok(());
    }
    let Some(levels) = levels.checked_sub(1) else {
        return Err(DatasetError::Unsupported(format!(
            "a virtual dataset of more than {MOST_LEVELS} levels of virtual datasets"
        )));
    };
    let within = dataset.raw();
    let mut count = 0;
    // SAFETY: under the lock, an open list of a virtual dataset.
    status(unsafe { H5Pget_virtual_count(creation.raw(), &raw mut count) })?;
    for place in 0..count {
        // SAFETY: under the lock; the place is below the count. The buffer is as long as said.
        let file =
            name(|out, len| unsafe { H5Pget_virtual_filename(creation.raw(), place, out, len) })?;
        // SAFETY: as above.
        let dataset =
            name(|out, len| unsafe { H5Pget_virtual_dsetname(creation.raw(), place, out, len) })?;
        if has_number(&file) || has_number(&dataset) {
            // Files and datasets with ascending numbers, up to the first that is not there.
            for number in 0.. {
                let (file, dataset) = (numbered(&file, number), numbered(&dataset, number));
                if !check_source(&file, &dataset, within, levels, left)? {
                    break;
                }
            }
        } else {
            check_source(&numbered(&file, 0), &numbered(&dataset, 0), within, levels, left)?;
        }
    }
    Ok(())
}

/// Looks at one source, in a file that is named relative to the one with the object `from`. Returns
/// false if it is not there: libhdf5 takes it for fill values then.
fn check_source(
    file: &[u8],
    dataset: &[u8],
    from: hid_t,
    levels: usize,
    left: &mut usize,
) -> Result<bool, DatasetError> {
    let Some(rest) = left.checked_sub(1) else {
        return Err(DatasetError::Unsupported(format!(
            "a virtual dataset of more than {MOST_SOURCES} sources"
        )));
    };
    *left = rest;
    let (Ok(file), Ok(dataset)) = (CString::new(file), CString::new(dataset)) else {
        return Ok(false);
    };
    let other = if file.as_bytes() == b"." { None } else { Some(open_other(&file)) };
    let Ok(other) = other.transpose() else { return Ok(false) };
    let within = other.as_ref().map_or(from, Id::raw);
    // SAFETY: under the lock, an open file or an object in it, and a name that ends with NUL.
    let opened = unsafe { H5Dopen2(within, dataset.as_ptr(), H5P_DEFAULT) };
    let Ok(opened) = Id::new(opened) else { return Ok(false) };
    check(&opened, levels, left)?;
    Ok(true)
}

/// A name that the library writes into a buffer of a length.
fn name(get: impl Fn(*mut c_char, usize) -> isize) -> Result<Vec<u8>, DatasetError> {
    let mut out = vec![0_u8; MOST_NAME];
    let length = get(out.as_mut_ptr().cast(), MOST_NAME);
    if usize::try_from(length).is_ok_and(|length| length < MOST_NAME) {
        return Ok(CStr::from_bytes_until_nul(&out).unwrap_or_default().to_bytes().to_vec());
    }
    Err(DatasetError::Unsupported("a virtual dataset with very long names of sources".into()))
}

/// Whether `%b` in a name stands for a number. `%%` is a percent sign.
fn has_number(name: &[u8]) -> bool {
    numbered(name, 0) != numbered(name, 1)
}

/// The name with this number.
fn numbered(name: &[u8], number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        let (piece, len) = match (first, after.first()) {
            (b'%', Some(b'%')) => (b"%".to_vec(), 2),
            (b'%', Some(b'b')) => (number.to_string().into_bytes(), 2),
            _ => (vec![first], 1),
        };
        out.extend(piece);
        rest = rest.get(len..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{has_number, numbered};

    #[test]
    fn names_have_numbers() {
        assert_eq!(numbered(b"a%b.h5", 12), b"a12.h5");
        assert_eq!(numbered(b"100%%b", 3), b"100%b");
        assert!(has_number(b"%b") && !has_number(b"%%b%") && !has_number(b"plain"));
    }
}
