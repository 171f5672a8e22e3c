//! Files that are rewritten, as libhdf5 opens them.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::sync::Arc;

use hdf5_metno_sys::h5o::H5O_token_t;
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::driver::{self, DriverStatus};
use super::handle::{Id, LibraryRefusal};

/// An open file.
#[derive(Debug)]
pub(crate) struct File {
    pub(super) id: Id,
    name: Arc<str>,
    size: u64,
    driver_status: Arc<DriverStatus>,
}

impl File {
    /// Opens a store as an HDF5 file. The files that its virtual and external datasets name stay
    /// closed.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is not HDF5; [`Error::Truncated`]; the store's own errors.
    pub(crate) fn open(store: &Arc<dyn Store>, control: &Control) -> Result<Self> {
        let (opened, driver_status) = driver::open(store, control);
        let (name, size) = (store.name(), store.size());
        match opened {
            Ok(id) => Ok(Self { id, name: name.clone(), size, driver_status }),
            Err(refused) => Err(error(name, size, &driver_status, "HDF5 file", refused)),
        }
    }

    /// The store's error if it has one, else the library's.
    pub(super) fn error(&self, what: &str, refused: LibraryRefusal) -> Error {
        error(&self.name, self.size, &self.driver_status, what, refused)
    }

    pub(super) fn malformed(&self, what: &str, found: String, expected: String) -> Error {
        Error::Malformed {
            file: self.name.clone(),
            what: what.to_owned().into(),
            offset: 0,
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub(super) fn unsupported(&self, what: String, advice: &'static str) -> Error {
        Error::Unsupported { file: self.name.clone(), what: what.into(), advice: advice.into() }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

fn error(
    name: &Arc<str>,
    size: u64,
    driver_status: &DriverStatus,
    what: &str,
    refused: LibraryRefusal,
) -> Error {
    if let Some(error) = driver_status.take_error() {
        return error;
    }
    let LibraryRefusal(said) = refused;
    if said.starts_with("truncated file") {
        return Error::Truncated {
            file: name.clone(),
            what: "an HDF5 file".into(),
            offset: 0,
            size,
            advice: ", or still being written; fetch the file again, or close it in its writer",
        };
    }
    let expected = if driver_status.is_unclosed() {
        "HDF5 that was closed: this file is still being written, or its writer was killed"
    } else {
        "HDF5"
    };
    Error::Malformed {
        file: name.clone(),
        what: what.to_owned().into(),
        offset: 0,
        found: format!("what libhdf5 refuses ({said})").into(),
        expected: expected.into(),
    }
}

/// The address in a token of the library's native connector. It is in the low bytes; the others are
/// zeros.
pub(super) fn address(token: &H5O_token_t) -> u64 {
    // SAFETY: a token is 16 plain bytes.
    let bytes: [u8; 16] = unsafe { std::mem::transmute(*token) };
    u128::from_le_bytes(bytes) as u64
}

/// The token of an address.
pub(super) fn token(address: u64) -> H5O_token_t {
    // SAFETY: as above.
    unsafe { std::mem::transmute(u128::from(address).to_le_bytes()) }
}
