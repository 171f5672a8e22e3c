//! Opens paths as what they hold.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::graph::Network as GraphNetwork;
use thalweg::{Opened, Options, Result, open_urls, reads};

use crate::arrays::ArrayFile;
use crate::errors::raised;
use crate::network::Network;
use crate::options::Arguments;
use crate::reads::ReadSet;
use crate::run::run;

/// Opens a path as reads, arrays or a network. Folders, patterns and several paths are reads.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    arguments: Arguments,
) -> PyResult<Py<PyAny>> {
    open_urls();
    let control = Control::new();
    let options = arguments.options(&control).map_err(|error| raised(py, &error))?;
    let opened = run(py, &control, || match &paths[..] {
        [path] if is_one(path, &control)? => one(path, options),
        _ => Ok(Content::Reads(reads::ReadSet::open(&paths, options)?)),
    })?;
    Ok(match opened {
        Content::Reads(set) => ReadSet { set, control }.into_pyobject(py)?.into_any().unbind(),
        Content::Arrays(file) => {
            ArrayFile { file: *file, control }.into_pyobject(py)?.into_any().unbind()
        }
        Content::Network(network) => {
            Network { network, control }.into_pyobject(py)?.into_any().unbind()
        }
    })
}

enum Content {
    Reads(reads::ReadSet),
    Arrays(Box<thalweg::ArrayFile>),
    Network(GraphNetwork),
}

fn is_one(path: &Path, control: &Control) -> Result<bool> {
    Ok(GraphNetwork::is_at(path) || !reads::is_many(path, control)?)
}

fn one(path: &Path, options: Options) -> Result<Content> {
    Ok(match thalweg::open(path, options.clone())? {
        Opened::Reads(file) => {
            Content::Reads(reads::ReadSet::open_with([path], Some(file), options)?)
        }
        Opened::Arrays(file) => Content::Arrays(Box::new(file)),
        Opened::Network(network) => Content::Network(network),
    })
}
