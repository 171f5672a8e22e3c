//! Which small files are fetched before they are opened: those that follow in a folder, for
//! programs such as tar open them in the order in which the folder is listed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use thalweg_io::open::ObjectVersion;

use crate::bucket::{Found, Kind};
use crate::names;
use crate::tree::{Listing, place};

/// Files that are fetched ahead. While one of them is late, others are fetched.
pub(crate) const FILES: usize = 256;
/// The largest of them.
const MOST: u64 = 1 << 20;
/// Files that must have been opened in order.
const IN_ORDER: u32 = 2;

/// A small file that will probably be opened soon.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// The last part of its key.
    pub(crate) part: String,
    pub(crate) version: ObjectVersion,
}

#[derive(Debug, Default)]
struct Run {
    /// The place of the next file in the list of the folder.
    next: usize,
    /// Files that were opened in order.
    len: u32,
    /// The place of the first file that is not yet fetched ahead.
    to: usize,
}

/// The order in which the files of each folder are opened.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<HashMap<u64, Run>>);

/// Folders that are remembered.
const MOST_FOLDERS: usize = 1024;

impl Ahead {
    /// Notes that a file of a folder was opened. Returns the files that are to be fetched now.
    pub(crate) fn opened(&self, folder: u64, listing: &Listing, name: &str) -> Vec<Next> {
        let Some(at) = place(listing, name) else { return Vec::new() };
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MOST_FOLDERS && !runs.contains_key(&folder) {
            runs.clear();
        }
        let run = runs.entry(folder).or_default();
        let between = listing.get(run.next..at);
        // Folders in between are opened by other means.
        let goes_on = between.is_some_and(|between| between.iter().all(is_folder));
        *run = match goes_on {
            true => Run { next: at + 1, len: run.len + 1, to: run.to.max(at + 1) },
            false => Run { next: at + 1, len: 0, to: at + 1 },
        };
        if run.len < IN_ORDER {
            return Vec::new();
        }
        let end = (at + 1 + FILES).min(listing.len());
        let wanted = listing.get(run.to..end).unwrap_or_default();
        run.to = run.to.max(end);
        wanted.iter().filter_map(next).collect()
    }
}

fn is_folder(found: &Found) -> bool {
    found.kind == Kind::Folder
}

fn next(found: &Found) -> Option<Next> {
    match &found.kind {
        Kind::File(version) if (1..=MOST).contains(&version.size) && version.is_certain() => {
            let part = names::part(&found.name)?.into_owned();
            Some(Next { part, version: version.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn listing(count: usize) -> Listing {
        let found = |at: usize| {
            let version = ObjectVersion { size: 9, tag: "\"1\"".into(), modified: None };
            Found { name: format!("{at:04}"), kind: Kind::File(version) }
        };
        Arc::new((0..count).map(found).collect())
    }

    #[test]
    fn files_opened_in_order_have_the_next_ones_fetched() {
        let (ahead, listing) = (Ahead::default(), listing(1000));
        let counts: Vec<usize> =
            (10..20).map(|at| ahead.opened(1, &listing, &format!("{at:04}")).len()).collect();
        assert_eq!(counts, [0, 0, FILES, 1, 1, 1, 1, 1, 1, 1]);
        let last = ahead.opened(1, &listing, "0020");
        assert_eq!(last[0].part, format!("{:04}", 20 + FILES));
        assert!(ahead.opened(1, &listing, "0050").is_empty(), "not in order");
        assert!(ahead.opened(2, &listing, "0051").is_empty(), "another folder");
        assert!(ahead.opened(1, &listing, "none").is_empty());
    }
}
