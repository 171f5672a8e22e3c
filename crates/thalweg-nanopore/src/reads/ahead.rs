//! Opening the next objects of a data set before they are asked for.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use thalweg_io::Result;
use thalweg_io::pool::Background;
use thalweg_io::urls;

use super::{Options, ReadFile};

/// Objects that are opened before they are asked for.
const AHEAD: usize = 8;

/// Files that are being opened, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Ahead(Mutex<Opening>);

#[derive(Debug, Default)]
struct Opening {
    files: HashMap<usize, Background<Result<ReadFile>>>,
    last: Option<usize>,
}

impl Ahead {
    /// The file with this number, if it is being opened.
    pub(super) fn take(&self, index: usize) -> Option<Background<Result<ReadFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).files.remove(&index)
    }

    /// Starts opening the files after `index`, if `index` is asked for after the one before it.
    /// `file`: the path and options of a file that takes long to open.
    pub(super) fn follow(&self, index: usize, file: impl Fn(usize) -> Option<(PathBuf, Options)>) {
        let mut opening = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = opening.last.replace(index);
        let wanted = index + 1..index + 1 + AHEAD;
        opening.files.retain(|index, _| wanted.contains(index));
        if before.is_some_and(|before| before + 1 != index) {
            return;
        }
        for next in wanted {
            let Some((path, options)) = file(next).filter(|_| !opening.files.contains_key(&next))
            else {
                continue;
            };
            let name = urls::shown_path(&path).into();
            // Without a thread, the file is opened when it is asked for.
            let job =
                Background::start("thalweg-open", &name, move || ReadFile::open(path, options));
            if let Ok(job) = job {
                opening.files.insert(next, job);
            }
        }
    }
}
