//! The files and datasets that virtual datasets show.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::open::{OpenedStore, Options, open_files};
use thalweg_io::plan::Budget;
use thalweg_io::sync::{Mutex, PoisonError};
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

use crate::array::Found;
use crate::arrays::{ArrayFile, Dataset};
use crate::other_files::{OtherFiles, last_part};

/// The most levels of virtual datasets that show elements of virtual datasets.
const MOST_LEVELS: usize = 8;
/// The most source files that are kept open.
const MOST_OPEN: usize = 64;
/// A source file may take the memory budget divided by this.
const SOURCE_SHARE: usize = 4;

/// What has been looked for by name; `None` for what does not exist.
type Named<T> = Mutex<HashMap<Arc<[u8]>, Option<Arc<T>>>>;

/// The source files of virtual datasets.
#[derive(Debug, Default)]
pub(in crate::arrays) struct Sources(Named<SourceFile>);

/// A source file, and its datasets by their paths.
#[derive(Debug)]
pub(in crate::arrays) struct SourceFile {
    pub(in crate::arrays) file: ArrayFile,
    datasets: Named<Dataset>,
}

/// What is known by a name, or what `find` finds. At most `most` names are kept.
fn known_or<T>(
    named: &Named<T>,
    name: &Arc<[u8]>,
    most: usize,
    find: impl FnOnce() -> Result<Option<T>>,
) -> Result<Option<Arc<T>>> {
    let lock = || named.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(name) {
        return Ok(found.clone());
    }
    let found = find()?.map(Arc::new);
    let mut known = lock();
    if known.len() >= most {
        known.clear();
    }
    Ok(known.entry(name.clone()).or_insert(found).clone())
}

impl SourceFile {
    pub(super) fn dataset(&self, path: &Arc<[u8]>) -> Result<Option<Arc<Dataset>>> {
        known_or(&self.datasets, path, usize::MAX, || {
            let node = self.file.node(&String::from_utf8_lossy(path))?;
            node.map_or(Ok(None), |node| self.file.dataset(&node))
        })
    }
}

impl ArrayFile {
    /// The source file with this name; `None` if it does not exist.
    pub(in crate::arrays) fn source(&self, name: &Arc<[u8]>) -> Result<Option<Arc<SourceFile>>> {
        known_or(&self.sources.0, name, open_files(MOST_OPEN), || {
            let found = self.open_source(name)?;
            Ok(found.map(|file| SourceFile { file, datasets: Mutex::default() }))
        })
    }

    fn open_source(&self, name: &[u8]) -> Result<Option<Self>> {
        if self.level >= MOST_LEVELS {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("virtual datasets in more than {MOST_LEVELS} levels").into(),
                advice: "read the datasets that they show".into(),
            });
        }
        let Budget { threads, memory } = self.options.budget;
        let budget = Budget { threads, memory: memory / SOURCE_SHARE };
        let options = Options { budget, long_line_memory: None, ..self.options.clone() };
        let other_files = self.file.other_files();
        let file = if name == b"." {
            Self::of(self.store().clone(), other_files.clone(), options)?
        } else {
            let mut path = other_files.find(name, self.store.name())?;
            if path.is_none()
                && let Some(last) = last_part(name)
            {
                // libhdf5 then looks for a file of that name beside this one.
                path = other_files.find(last, self.store.name())?;
            }
            let Some(path) = path else { return Ok(None) };
            match self.other(&path, options) {
                // Whether there is an object, is known once it is opened.
                Err(Error::Io { source, .. })
                    if url(&path).is_some() && source.kind() == ErrorKind::NotFound =>
                {
                    return Ok(None);
                }
                other => other?,
            }
        };
        Ok(Some(Self { level: self.level + 1, nested: self.nested.clone(), ..file }))
    }

    /// Another file, as a source of this one.
    fn other(&self, path: &Path, options: Options) -> Result<Self> {
        let other_files = OtherFiles::new(path, self.file.other_files().reach())?;
        // It may be on another store.
        let opened = OpenedStore::new(path, &Options { model: None, ..options.clone() })?;
        Self::of(opened.store, other_files, Options { model: Some(opened.model.0), ..options })
    }

    /// The shape of a dataset; what it holds, in words, if its elements cannot be read.
    pub(super) fn shape_of(&self, dataset: &Dataset) -> Result<Result<Vec<u64>, String>> {
        match &dataset.found {
            Found::Array(array) => Ok(Ok(array.shape.clone())),
            Found::Other(what) => {
                Ok(self.variable(dataset)?.map(|variable| variable.shape).ok_or(what.clone()))
            }
        }
    }
}
