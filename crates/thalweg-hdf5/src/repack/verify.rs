//! Checks that the new file has the contents of the old one.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thalweg_io::new_file::NewFile;
use thalweg_io::open::Options;
use thalweg_io::store::{FileStore, Store};
use thalweg_io::{Error, Result};

use super::RepackReport;
use crate::array::{ElementPlace, Found, Variable};
use crate::arrays::{ArrayFile, ByReading, Dataset};
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
    let own_files = OtherFiles::new(path, ExternalAccess::Folder)?;
    let before = ArrayFile::of(store.clone(), own_files, options.clone())?;
    let made: Arc<dyn Store> = Arc::new(FileStore::open(new.temporary())?);
    let made_options = Options { model: None, throttle: None, ..options };
    let after = ArrayFile::of(made, other_files(new.temporary())?, made_options)?;
    let old = before.datasets()?;
    if !is_beside {
        old.iter().try_for_each(|dataset| check_names(&before, dataset, new))?;
    }
    let all = after.datasets()?;
    if old.len() != all.len() {
        return Err(other(new, "datasets", &format!("{}", all.len()), &format!("{}", old.len())));
    }
    for (old, new_one) in old.iter().zip(&all) {
        let is = described(&after, new_one);
        let was = described(&before, old);
        if is != was {
            return Err(other(new, old.path(), &is, &was));
        }
    }
    if !values {
        return Ok(());
    }
    let size = before.store().size().min(after.store().size());
    let was = hashes(&before, &old, size)?;
    let is = hashes(&after, &all, size)?;
    for ((old, was), is) in old.iter().zip(was).zip(is) {
        if is != was {
            return Err(other(new, old.path(), "other values", "those of the original"));
        }
        report.verified += u64::from(was.is_some());
    }
    Ok(())
}

/// SHA-256 of the values of each dataset. `None` for datasets of something else than numbers,
/// strings and lists, of far more values than a file of `size` bytes can hold, with a filter that
/// this crate does not have, or that show what may not be read.
fn hashes(file: &ArrayFile, datasets: &[Dataset], size: u64) -> Result<Vec<Option<Vec<u8>>>> {
    let ByReading { together, apart, others, .. } = file.by_reading(datasets, size);
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
        found.push((dataset.path(), supported(read)?.map(|()| hash.finalize().to_vec())));
    }
    for dataset in others {
        found.push((dataset.path(), hash_of_variable(file, dataset, size)?));
    }
    found.sort_unstable();
    let of = |dataset: &Dataset| {
        let at = found.binary_search_by(|(path, _)| (*path).cmp(dataset.path())).ok()?;
        found.get(at)?.1.clone()
    };
    Ok(datasets.iter().map(of).collect())
}

/// The outcome; `None` if the values cannot be read.
fn supported<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The SHA-256 of strings or lists: of the shape of their dataset, and of each with its length.
/// `None` if there are none, or far more than a file of `size` bytes can hold.
fn hash_of_variable(file: &ArrayFile, dataset: &Dataset, size: u64) -> Result<Option<Vec<u8>>> {
    let variable = supported(file.variable(dataset))?.flatten();
    let can_be_stored = |variable: &Variable| file.may_hold(&variable.references, size);
    let Some(variable) = variable.filter(can_be_stored) else { return Ok(None) };
    let mut hash = Sha256::new();
    hash.update(format!("{:?} {:?}", variable.shape, variable.item));
    let read = file.each_variable(dataset, &mut |element| {
        hash.update((element.len() as u64).to_le_bytes());
        hash.update(element);
        Ok(())
    });
    Ok(supported(read)?.map(|()| hash.finalize().to_vec()))
}

/// Checks that a dataset names no other file by a name that the new file, which lies in another
/// folder, would look for beside itself.
fn check_names(file: &ArrayFile, dataset: &Dataset, new: &NewFile) -> Result<()> {
    let mut names: Vec<String> = file
        .elsewhere(dataset)
        .iter()
        .filter_map(|piece| piece.path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if let Found::Array(array) = &dataset.found
        && let ElementPlace::Virtual(mappings) = &array.place
    {
        let mut before: &[u8] = b".";
        for name in mappings.iter().map(|mapping| &*mapping.file) {
            if name == b"." || name.first() == Some(&b'/') || name == before {
                continue;
            }
            before = name;
            match file.metadata().other_files().find(name, file.store().name()) {
                Ok(None) => {}
                // It may be there, outside of the folder.
                Ok(Some(_)) | Err(Error::Unsupported { .. }) => {
                    names.push(String::from_utf8_lossy(name).into_owned());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    let Some(name) = names.first() else { return Ok(()) };
    Err(Error::Unsupported {
        file: new.name().clone(),
        what: format!("{}, whose values are in {name} beside the original,", dataset.path()).into(),
        advice: "give the new file a name in the folder of the original".into(),
    })
}

fn described(file: &ArrayFile, dataset: &Dataset) -> String {
    match &dataset.found {
        Found::Array(array) => {
            format!("{}: {:?} {}, fill {:?}", dataset.path(), array.shape, array.dtype, array.fill)
        }
        // Why it cannot be read may name the file.
        Found::Other(what) => {
            format!("{}: {}", dataset.path(), what.replace(&**file.store().name(), ""))
        }
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
