//! Checks that the new file has the contents of the old one.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thalweg_io::new_file::NewFile;
use thalweg_io::open::Options;
use thalweg_io::store::{FileStore, Store};
use thalweg_io::{Error, Result};

use super::RepackReport;
use crate::array::Found;
use crate::arrays::{ArrayFile, Dataset};
use crate::other_files::{ExternalAccess, OtherFiles};

/// Compares the datasets of both files, their shapes, types and fill values. With `values`, also
/// compares their values.
pub(super) fn verify(
    path: &Path,
    store: &Arc<dyn Store>,
    new: &NewFile,
    options: Options,
    values: bool,
    report: &mut RepackReport,
) -> Result<()> {
    let folder = |path: &Path| path.parent().and_then(|parent| parent.canonicalize().ok());
    let is_beside =
        folder(&path.canonicalize().unwrap_or_else(|_| path.to_owned())) == folder(new.temporary());
    // In another folder the new file does not find the other files that the original names.
    let other_files = |path: &Path| {
        if is_beside {
            OtherFiles::new(path, ExternalAccess::Folder)
        } else {
            Ok(OtherFiles::default())
        }
    };
    let before = ArrayFile::of(store.clone(), other_files(path)?, options.clone())?;
    let made: Arc<dyn Store> = Arc::new(FileStore::open(new.temporary())?);
    let made_options = Options { model: None, throttle: None, ..options };
    let after = ArrayFile::of(made, other_files(new.temporary())?, made_options)?;
    let old = before.datasets()?;
    let all = after.datasets()?;
    if old.len() != all.len() {
        return Err(other(new, "datasets", &format!("{}", all.len()), &format!("{}", old.len())));
    }
    for (old, new_one) in old.iter().zip(&all) {
        let is = described(new_one);
        let was = described(old);
        if is != was {
            return Err(other(new, old.path(), &is, &was));
        }
    }
    if !values {
        return Ok(());
    }
    for ((old, was), is) in old.iter().zip(hashes(&before, &old)?).zip(hashes(&after, &all)?) {
        if is != was {
            return Err(other(new, old.path(), "other values", "those of the original"));
        }
        report.verified += u64::from(was.is_some());
    }
    Ok(())
}

/// SHA-256 of the values of each dataset. `None` for datasets that are not arrays, and for those
/// that only libhdf5 could read and fails to read; the rewrite did not read these either.
fn hashes(file: &ArrayFile, datasets: &[Dataset]) -> Result<Vec<Option<Vec<u8>>>> {
    let is_array = |dataset: &&Dataset| matches!(dataset.found, Found::Array(_));
    let (apart, together): (Vec<&Dataset>, Vec<&Dataset>) =
        datasets.iter().filter(is_array).partition(|dataset| is_elsewhere(dataset));
    let mut found: Vec<(&str, Option<Vec<u8>>)> = Vec::with_capacity(datasets.len());
    let mut states = vec![Sha256::new(); together.len()];
    file.each(&together, &mut |number, values| {
        if let Some(state) = states.get_mut(number) {
            state.update(values);
        }
        Ok(())
    })?;
    found.extend(
        together
            .iter()
            .zip(states)
            .map(|(dataset, hash)| (dataset.path(), Some(hash.finalize().to_vec()))),
    );
    for dataset in apart {
        let mut hash = Sha256::new();
        let read = file.values(dataset, &mut |values| {
            hash.update(values);
            Ok(())
        });
        match read {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            read => found.push((dataset.path(), read.ok().map(|()| hash.finalize().to_vec()))),
        }
    }
    found.sort_unstable();
    let of = |dataset: &Dataset| {
        let at = found.binary_search_by(|(path, _)| (*path).cmp(dataset.path())).ok()?;
        found.get(at)?.1.clone()
    };
    Ok(datasets.iter().map(of).collect())
}

fn is_elsewhere(dataset: &Dataset) -> bool {
    matches!(&dataset.found, Found::Array(array) if array.is_by_rows())
}

fn described(dataset: &Dataset) -> String {
    match &dataset.found {
        Found::Array(array) => {
            format!("{}: {:?} {}, fill {:?}", dataset.path(), array.shape, array.dtype, array.fill)
        }
        Found::Other(what) => format!("{}: {what}", dataset.path()),
    }
}

fn other(new: &NewFile, what: &str, is: &str, was: &str) -> Error {
    Error::Malformed {
        file: new.name().clone(),
        what: format!("{what}, as it was written").into(),
        offset: 0,
        found: is.to_owned().into(),
        expected: was.to_owned().into(),
    }
}
