//! Repair: copies what can be read of a damaged network to a new network.
//!
//! Each edge is stored by its source and by its target, so lists of one side that cannot be read
//! are rebuilt from the other side. Among the readable records of an edge or a vertex, the last one
//! counts. Changes in the log are used even after a damaged one.
//!
//! ```text
//! gaps ──> salvage_columns ──> damaged ──> edge_merge ──> edges ──> rebuild
//! report ────────────────────────┴──> attributes, vertices ──────────┘
//! ```

mod attributes;
mod damaged;
mod edge_merge;
mod edges;
mod gaps;
mod rebuild;
mod report;
mod salvage_columns;
mod vertices;

use std::path::Path;

use thalweg_io::disk::{Disk, Folder};
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

use self::damaged::DamagedNetwork;
use crate::read::network::{NetworkOptions, read_only};
use crate::storage::manifest::Manifest;

pub use self::report::{LostRecords, RepairReport, RepairSummary};

/// Writes what can be read of the network in the folder `from` to the folder `to`, which must be
/// empty or missing, and reports what is lost. `from` is not changed; no program may write to it
/// meanwhile. [`Network::check`](crate::Network::check) finds no defect in the new network.
///
/// An edge is kept if the list of either of its ends can be read, with nulls for attributes that
/// cannot be read. Edges and vertices that are lost are reported by segment and by ranges of
/// vertices.
///
/// # Errors
/// [`Error::NotFound`] if there is no network, or if neither its manifest nor the manifest's copy
/// can be read; [`Error::Usage`] if `to` exists and is not empty; [`Error::Cancelled`];
/// [`Error::Io`]. After an error nothing is left at `to`.
pub fn repair(from: &Path, to: &Path, options: &NetworkOptions) -> Result<RepairReport> {
    for path in [from, to] {
        if let Some(url) = url(path) {
            return Err(read_only(url));
        }
    }
    check_is_outside(from, to)?;
    repair_on(&Folder::new(from, options.is_mapped), &Folder::new(to, options.is_mapped), options)
}

/// Writes what can be read of the network on the disk `from` to the empty disk `to`: [`repair`] for
/// disks other than folders.
///
/// # Errors
/// As [`repair`].
pub fn repair_on(from: &dyn Disk, to: &dyn Disk, options: &NetworkOptions) -> Result<RepairReport> {
    let (damaged, mut report) = DamagedNetwork::open(from, to, options)?;
    check_is_empty(to)?;
    let _lock = to.lock()?;
    let mut manifest = Manifest::new();
    let outcome = damaged.rebuild(&mut manifest, &mut report);
    if outcome.is_err() {
        let names = to.list().unwrap_or_default();
        names.iter().for_each(|name| drop(to.remove(name)));
    }
    outcome.map(|()| report)
}

/// Refuses a new store inside the damaged one, which must not change.
fn check_is_outside(from: &Path, to: &Path) -> Result<()> {
    let to_or_above = to.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().ok()
    });
    let is_inside =
        from.canonicalize().is_ok_and(|from| to_or_above.is_some_and(|to| to.starts_with(from)));
    if is_inside {
        let to = to.display();
        let from = from.display();
        let what = format!(
            "{to}: is inside the store {from}, which must not change; \
                            name a folder outside of it"
        );
        return Err(Error::Usage(what.into()));
    }
    Ok(())
}

fn check_is_empty(disk: &dyn Disk) -> Result<()> {
    match disk.list() {
        Ok(names) if names.is_empty() => Ok(()),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) => {
            let what = format!(
                "{}: there is something already; name a folder that is empty or not there",
                disk.name()
            );
            Err(Error::Usage(what.into()))
        }
        Err(e) => Err(e),
    }
}
