//! How files are opened.

use std::time::Duration;

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::object_cache::CacheChoice;
use thalweg::text::parse_bytes;
use thalweg::{Error, Options, Result};

/// The keyword arguments of `open`.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    threads: Option<usize>,
    memory: Option<Size>,
    timeout: Option<f64>,
    cache: Option<String>,
}

/// A number of bytes, or text as in `256MB`.
#[derive(FromPyObject, Debug)]
enum Size {
    Bytes(usize),
    Rounded(f64),
    Text(String),
}

impl Size {
    fn bytes(self) -> Result<usize> {
        Ok(match self {
            Self::Bytes(bytes) => bytes,
            Self::Rounded(bytes) => bytes as usize,
            Self::Text(text) => {
                let bytes = parse_bytes(text.trim())
                    .map_err(|error| Error::Usage(format!("memory: {error}").into()))?;
                usize::try_from(bytes).unwrap_or(usize::MAX)
            }
        })
    }
}

impl Arguments {
    pub(crate) fn options(self, control: &Control) -> Result<Options> {
        control.warn_with(warn);
        let memory = self.memory.map(Size::bytes).transpose()?;
        let timeout = self.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout
            .map_err(|error| Error::Usage(format!("timeout: {error}; expected seconds").into()))?;
        let cache = match self.cache {
            Some(text) => text.parse().map_err(|error| format!("cache: {error}")),
            None => CacheChoice::of_environment(),
        };
        let cache = cache.map_err(|error| Error::Usage(error.into()))?;
        Ok(Options {
            control: control.clone(),
            timeout,
            cache: cache.cache(warn),
            ..Options::limited(self.threads, memory)
        })
    }
}

/// Shows a warning of the library, as Python shows its own.
fn warn(text: &str) {
    let warned = Python::attach(|py| {
        let arguments = (text, py.get_type::<pyo3::exceptions::PyRuntimeWarning>());
        py.import("warnings")?.call_method1("warn", arguments).map(drop)
    });
    // Warnings may be errors, and there is nobody to get this one.
    let _ = warned;
}
