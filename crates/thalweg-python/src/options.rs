//! How files are opened.

use std::time::Duration;

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::plan::{Budget, DEFAULT_MEMORY, long_line_memory};
use thalweg::{Options, Result};

/// The keyword arguments of `open`.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    threads: Option<usize>,
    memory: Option<usize>,
    timeout: Option<f64>,
}

impl Arguments {
    pub(crate) fn options(self, control: &Control) -> Result<Options> {
        let usual = Budget::default();
        let budget = Budget {
            threads: self.threads.unwrap_or(usual.threads),
            memory: self.memory.unwrap_or(DEFAULT_MEMORY),
        };
        let timeout = self.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| {
            thalweg::Error::Usage(format!("timeout: {error}; expected seconds").into())
        })?;
        Ok(Options {
            budget,
            // Who names a size gets no more.
            long_line_memory: self.memory.is_none().then(long_line_memory),
            control: control.clone(),
            timeout,
            ..Options::default()
        })
    }
}
