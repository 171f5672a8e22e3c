//! How files are opened.

use std::time::Duration;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use thalweg::Options;
use thalweg::control::Control;
use thalweg::object_cache::CacheChoice;
use thalweg::text::parse_bytes;

use crate::errors::usage;
use crate::store::call;

/// The keyword arguments of `open`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments<'py> {
    threads: Bound<'py, PyAny>,
    memory: Bound<'py, PyAny>,
    timeout: Bound<'py, PyAny>,
    cache: Option<String>,
}

/// The most threads that are of use.
const MOST_THREADS: usize = 1024;

impl Arguments<'_> {
    /// The options, and the handle of their files.
    pub(crate) fn open(self, py: Python<'_>) -> PyResult<(Control, Options)> {
        let control = Control::new();
        control.warn_with(warn);
        let cache = match self.cache {
            Some(text) => text.parse().map_err(|error| format!("cache: {error}")),
            None => CacheChoice::of_environment(),
        };
        let cache = cache.map_err(|error| usage(py, error))?;
        let usual = Options::limited(threads(&self.threads)?, memory(&self.memory)?);
        let timeout = timeout(&self.timeout)?;
        let options =
            Options { control: control.clone(), timeout, cache: cache.cache(warn), ..usual };
        Ok((control, options))
    }
}

/// A value that is there: what `known` makes of it, or else an error with what was `expected`.
fn checked<T>(
    name: &str,
    value: &Bound<'_, PyAny>,
    expected: &str,
    known: impl FnOnce() -> Option<T>,
) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    let wrong = || -> PyResult<PyErr> {
        let found = value.repr()?;
        Ok(usage(value.py(), format!("{name}: found {found}, expected {expected}")))
    };
    match known() {
        Some(known) => Ok(Some(known)),
        None => Err(wrong()?),
    }
}

fn threads(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let expected = format!("a whole number from 1 to {MOST_THREADS}");
    checked("threads", value, &expected, || {
        value.extract().ok().filter(|threads| (1..=MOST_THREADS).contains(threads))
    })
}

fn memory(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    checked("memory", value, "bytes above 0, as in 256e6 or \"256MB\"", || {
        let bytes = match value.extract::<&str>() {
            Ok(text) => parse_bytes(text.trim()).ok()? as f64,
            Err(_) => value.extract::<f64>().ok()?,
        };
        Some(bytes as usize).filter(|bytes| *bytes > 0)
    })
}

fn timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    checked("timeout", value, "seconds above 0", || {
        let seconds = value.extract().ok().filter(|seconds| *seconds > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    })
}

/// Shows a warning of the library, as Python shows its own.
fn warn(text: &str) {
    call(|py| {
        let arguments = (text, py.get_type::<PyRuntimeWarning>());
        let warned =
            py.import("warnings").and_then(|warnings| warnings.call_method1("warn", arguments));
        // No caller can receive an exception from here.
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    });
}
