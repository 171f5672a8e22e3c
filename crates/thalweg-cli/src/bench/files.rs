//! Makes the files that a suite needs, before anything is measured.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg::new_file::NewFile;
use thalweg::reads::{Options, ReadFile};
use thalweg::text::escaped;
use thalweg_gauge::suite::{FileOrigin, NeededFile};
use thalweg_gauge::trial;
use thalweg_io::urls;

use crate::common::VerbResult;

/// Makes the file `needed` if it is absent. A partly written file has another name.
pub(super) fn make(needed: &NeededFile, stop: &AtomicBool) -> VerbResult {
    let path = &needed.path;
    match &needed.make {
        FileOrigin::Given => {}
        FileOrigin::Synth(file) if !path.is_file() => {
            folder(path)?;
            file.write(path, &|| stop.load(Ordering::SeqCst))?;
        }
        FileOrigin::Ids { of, list } => {
            // The list is made anew each time, because the reads may have changed. It takes a
            // moment.
            let file = ReadFile::open(of, Options::default())?;
            let ids = file.read_ids()?;
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            folder(path)?;
            let lines: String = list.of(&ids).iter().map(|id| escaped(id) + "\n").collect();
            NewFile::sidecar(path, |_| true)?.finish_with(lines.as_bytes())?;
        }
        FileOrigin::Command { workload, partial } if !path.exists() => {
            folder(path)?;
            // Removes the remains of an interrupted run. A graph store is a folder, other files are
            // plain files.
            let left = match std::fs::symlink_metadata(partial) {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(partial),
                Ok(_) => std::fs::remove_file(partial),
                Err(_) => Ok(()),
            };
            left.map_err(|e| io(partial, "removing what was left of", e))?;
            trial::run(workload, stop)?;
            std::fs::rename(partial, path)
                .map_err(|e| io(partial, "renaming what the command made:", e))?;
        }
        FileOrigin::Synth(_) | FileOrigin::Command { .. } => {}
    }
    Ok(())
}

/// Makes the folder of `path`.
fn folder(path: &Path) -> VerbResult {
    let folder = path.parent().unwrap_or(Path::new("."));
    Ok(std::fs::create_dir_all(folder).map_err(|e| io(folder, "creating", e))?)
}

pub(super) fn io(path: &Path, doing: &'static str, error: std::io::Error) -> thalweg::Error {
    thalweg::Error::io(&urls::shown_path(path).into(), doing, error)
}
