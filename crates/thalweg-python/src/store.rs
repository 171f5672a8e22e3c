//! Open files of Python as stores.

use std::fmt;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg::store::{Store, check_inside};
use thalweg::{Error, Result};

/// An open file of Python.
pub(crate) struct PythonFile {
    name: Arc<str>,
    size: u64,
    /// From an offset and a number of bytes to these bytes.
    read: Py<PyAny>,
}

impl PythonFile {
    pub(crate) fn new(name: &str, size: u64, read: Py<PyAny>) -> Self {
        Self { name: name.into(), size, read }
    }
}

impl fmt::Debug for PythonFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store for PythonFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(&self.name, self.size, offset, buf.len())?;
        let failed = |why: Box<dyn std::error::Error + Send + Sync>| {
            Err(Error::io(&self.name, "reading", std::io::Error::other(why)))
        };
        let done = Python::try_attach(|py| {
            let bytes = match self.read.call1(py, (offset, buf.len())) {
                Ok(bytes) => bytes,
                // It is found again where the failure of the run becomes an exception.
                Err(error) => return failed(error.into()),
            };
            match bytes.bind(py).cast::<PyBytes>().map(PyBytesMethods::as_bytes) {
                Ok(bytes) if bytes.len() == buf.len() => {
                    buf.copy_from_slice(bytes);
                    Ok(())
                }
                Ok(bytes) => {
                    let (found, expected) = (bytes.len(), buf.len());
                    failed(format!("{found} bytes at {offset}, expected {expected}").into())
                }
                Err(error) => failed(error.to_string().into()),
            }
        });
        // Without an interpreter, which ends, nobody waits for the bytes.
        done.unwrap_or(Err(Error::Cancelled))
    }
}
