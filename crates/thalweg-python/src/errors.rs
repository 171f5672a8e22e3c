//! Errors as Python's exceptions.

use std::io::ErrorKind;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg::Error;

/// The exception of an error: a class of `thalweg.errors` with its parts as attributes.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|other| other)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let parts = PyDict::new(py);
    let class = match error {
        Error::Io { file, offset, source, .. } => {
            parts.set_item("file", &**file)?;
            parts.set_item("offset", offset)?;
            parts.set_item("errno", source.raw_os_error())?;
            match source.kind() {
                ErrorKind::NotFound => "NoFileError",
                ErrorKind::PermissionDenied => "NoPermissionError",
                ErrorKind::TimedOut => "NoAnswerError",
                _ => "IoError",
            }
        }
        Error::Malformed { file, offset, found, expected, .. } => {
            parts.set_item("file", &**file)?;
            parts.set_item("offset", offset)?;
            parts.set_item("found", &**found)?;
            parts.set_item("expected", &**expected)?;
            "FormatError"
        }
        Error::Truncated { file, offset, .. } => {
            parts.set_item("file", &**file)?;
            parts.set_item("offset", offset)?;
            "FormatError"
        }
        Error::Unsupported { file, .. } => {
            parts.set_item("file", &**file)?;
            "UnsupportedError"
        }
        Error::NotFound { file, .. } => {
            parts.set_item("file", &**file)?;
            "NotFoundError"
        }
        Error::Exists { file, .. } => {
            parts.set_item("file", &**file)?;
            "ExistsError"
        }
        Error::Usage(_) => "UsageError",
        _ => "Error",
    };
    let class = py.import("thalweg.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((error.to_string(),), Some(&parts))?))
}

/// The exception of an argument that is not valid.
pub(crate) fn usage(py: Python<'_>, what: String) -> PyErr {
    raised(py, &Error::Usage(what.into()))
}
