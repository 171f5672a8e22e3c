//! Opens paths as what they hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::fastq::FastqFile;
use thalweg::graph::{Network as GraphNetwork, NetworkOptions};
use thalweg::model::StoreModel;
use thalweg::urls::url;
use thalweg::{Error, Opened, Options, Result, open_store, open_urls, reads};

use crate::arrays::ArrayFile;
use crate::fastq::Fastq;
use crate::network::Network;
use crate::options::Arguments;
use crate::reads::ReadSet;
use crate::run::run;
use crate::store::PythonFile;

/// Opens a path as reads, arrays, a network or FASTQ. Folders, patterns and several paths are
/// reads.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    arguments: Arguments<'_>,
) -> PyResult<Py<PyAny>> {
    open_urls();
    let (control, options) = arguments.open(py)?;
    let for_networks = NetworkOptions::from(&options);
    let opened = run(py, || match &paths[..] {
        [path] if is_one(path, &control)? => one(path, options),
        [path] if url(path).is_some() => many_at(path, options),
        _ => Ok(Content::Reads(reads::ReadSet::open(&paths, options)?)),
    })?;
    let path = paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
    shown(py, opened, path, url(path).is_some(), for_networks)
}

/// Opens an open file of Python as reads, arrays or FASTQ. `read`: from an offset and a number of
/// bytes to these bytes. `is_far`: whether each request is waited for, as one to an object store
/// is.
#[pyfunction]
pub(crate) fn open_file(
    py: Python<'_>,
    name: &str,
    size: u64,
    read: Py<PyAny>,
    is_far: bool,
    arguments: Arguments<'_>,
) -> PyResult<Py<PyAny>> {
    let (control, options) = arguments.open(py)?;
    let prior = if is_far { StoreModel::S3 } else { StoreModel::MEMORY };
    let store = Arc::new(PythonFile::new(name, size, read));
    let opened = run(py, || {
        let (model, _) = options.model_or(prior);
        let options = options.on(model);
        Ok(match open_store(store, options.clone())? {
            Opened::Reads(file) => Content::Reads(reads::ReadSet::of(file, options)),
            Opened::Arrays(file) => Content::Arrays(Box::new(file)),
            Opened::Network(network) => Content::Network(network),
            Opened::Fastq(file) => Content::Fastq(Box::new(file)),
        })
    })?;
    let for_networks = NetworkOptions { control, ..NetworkOptions::default() };
    shown(py, opened, Path::new(name), true, for_networks)
}

fn shown(
    py: Python<'_>,
    opened: Content,
    path: &Path,
    is_slow: bool,
    for_networks: NetworkOptions,
) -> PyResult<Py<PyAny>> {
    let control = for_networks.control.clone();
    Ok(match opened {
        Content::Reads(set) => ReadSet { set, control }.into_pyobject(py)?.into_any().unbind(),
        Content::Arrays(file) => {
            let file = ArrayFile { file: *file, control, is_slow };
            file.into_pyobject(py)?.into_any().unbind()
        }
        Content::Network(network) => {
            let network = Network::new(network, path, for_networks);
            network.into_pyobject(py)?.into_any().unbind()
        }
        Content::Fastq(file) => Fastq { file: *file }.into_pyobject(py)?.into_any().unbind(),
    })
}

enum Content {
    Reads(reads::ReadSet),
    Arrays(Box<thalweg::ArrayFile>),
    Network(GraphNetwork),
    Fastq(Box<FastqFile>),
}

fn is_one(path: &Path, control: &Control) -> Result<bool> {
    Ok(GraphNetwork::is_at(path) || !reads::is_many(path, control)?)
}

/// What a prefix of objects has: files of reads or else a network.
fn many_at(url: &Path, options: Options) -> Result<Content> {
    let for_networks = NetworkOptions::from(&options);
    match reads::ReadSet::open([url], options) {
        Ok(set) => Ok(Content::Reads(set)),
        Err(none @ Error::NotFound { .. }) => match GraphNetwork::open(url, for_networks) {
            Ok(network) => Ok(Content::Network(network)),
            Err(Error::NotFound { .. }) => Err(none),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn one(path: &Path, options: Options) -> Result<Content> {
    Ok(match thalweg::open(path, options.clone())? {
        Opened::Reads(file) => {
            Content::Reads(reads::ReadSet::open_with([path], Some(file), options)?)
        }
        Opened::Arrays(file) => Content::Arrays(Box::new(file)),
        Opened::Network(network) => Content::Network(network),
        Opened::Fastq(file) => Content::Fastq(Box::new(file)),
    })
}
