//! Errors as Python's exceptions.

use std::io::ErrorKind;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg::Error;

/// The exception of an error: a class of `thalweg.errors` with its parts as attributes.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let cause = match error {
        Error::Io { source, .. } => source.get_ref().and_then(|e| e.downcast_ref::<PyErr>()),
        _ => None,
    };
    let exception = exception(py, error).unwrap_or_else(|other| other);
    match cause {
        // A file of Python raised it. Ctrl-C and the like end more than a read.
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause.clone_ref(py),
        Some(cause) => {
            exception.set_cause(py, Some(cause.clone_ref(py)));
            exception
        }
        None => exception,
    }
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let parts = PyDict::new(py);
    let (class, file) = match error {
        Error::Io { file, source, .. } => (class_of(source.kind()), Some(file)),
        Error::Malformed { file, .. } | Error::Truncated { file, .. } => {
            ("FormatError", Some(file))
        }
        Error::Unsupported { file, .. } => ("UnsupportedError", Some(file)),
        Error::NotFound { file, .. } => ("NotFoundError", Some(file)),
        Error::Exists { file, .. } => ("ExistsError", Some(file)),
        Error::Usage(_) => ("UsageError", None),
        _ => ("Error", None),
    };
    if let Some(file) = file {
        parts.set_item("file", &**file)?;
    }
    match error {
        Error::Io { offset, source, .. } => {
            parts.set_item("offset", offset)?;
            parts.set_item("errno", source.raw_os_error())?;
        }
        Error::Malformed { offset, found, expected, .. } => {
            parts.set_item("offset", offset)?;
            parts.set_item("found", &**found)?;
            parts.set_item("expected", in_python(expected))?;
        }
        Error::Truncated { offset, .. } => parts.set_item("offset", offset)?,
        _ => {}
    }
    let class = py.import("thalweg.errors")?.getattr(class)?;
    let message = in_python(&error.to_string());
    Ok(PyErr::from_value(class.call((message,), Some(&parts))?))
}

/// A message in which the command's options are arguments of Python.
fn in_python(message: &str) -> String {
    let options = [
        ("--force to replace", "replace=True to replace"),
        ("--memory", "memory="),
        ("--lossy", "lossy=True"),
    ];
    options.iter().fold(message.to_owned(), |text, (option, here)| text.replace(option, here))
}

/// The class for a failure of the system or of a service.
fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NoFileError",
        ErrorKind::PermissionDenied => "NoPermissionError",
        ErrorKind::TimedOut => "NoAnswerError",
        _ => "IoError",
    }
}

/// The exception of an argument that is not valid.
pub(crate) fn usage(py: Python<'_>, what: String) -> PyErr {
    raised(py, &Error::Usage(what.into()))
}
