//! What this mount has changed, until lists of the store show it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::bucket::{Found, Kind};
use crate::draft::Draft;
use crate::tree::Listing;

#[derive(Debug, Clone)]
struct Change {
    /// What has the name now. `None`: nothing.
    kind: Option<Kind>,
    since: Instant,
}

impl Change {
    /// Whether it holds whatever lists say. The store knows no drafts, and no folder in which there
    /// is nothing.
    fn lasts(&self) -> bool {
        matches!(self.kind, Some(Kind::Draft(_) | Kind::Folder))
    }
}

/// So many changes of a folder are not swept.
const MANY: usize = 1 << 12;
/// No list takes longer.
const LONGEST_LIST: Duration = Duration::from_secs(3600);

type Names = BTreeMap<String, Change>;

/// Changes by the folder, that is, what its keys begin with, and by the name there.
#[derive(Debug)]
pub(crate) struct Changes {
    /// How long a list is taken for right.
    ttl: Duration,
    folders: Mutex<HashMap<String, Names>>,
}

impl Changes {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self { ttl, folders: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Names>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what has a name from now on.
    pub(crate) fn set(&self, folder: &str, name: &str, kind: Option<Kind>) {
        let change = Change { kind, since: Instant::now() };
        let mut folders = self.lock();
        let names = folders.entry(folder.to_owned()).or_default();
        names.insert(name.to_owned(), change);
        // Each of them is looked at a few times at most.
        if names.len() >= MANY && names.len().is_power_of_two() {
            let longest = self.ttl.saturating_add(LONGEST_LIST);
            names.retain(|_, change| change.lasts() || change.since.elapsed() < longest);
        }
    }

    /// What has a name, if that was changed after lists that are taken for right, or if lists do
    /// not show it.
    pub(crate) fn get(&self, folder: &str, name: &str) -> Option<Option<Kind>> {
        let mut folders = self.lock();
        let names = folders.get_mut(folder)?;
        let change = names.get(name)?;
        if change.lasts() || change.since.elapsed() < self.ttl {
            return Some(change.kind.clone());
        }
        names.remove(name);
        None
    }

    /// Whether a name stands for a draft.
    pub(crate) fn is_draft(&self, folder: &str, name: &str, draft: &Arc<Draft>) -> bool {
        let folders = self.lock();
        let change = folders.get(folder).and_then(|names| names.get(name));
        change.is_some_and(
            |change| matches!(&change.kind, Some(Kind::Draft(found)) if found == draft),
        )
    }

    /// Forgets that a name stands for a draft, if it does.
    pub(crate) fn forget_draft(&self, folder: &str, name: &str, draft: &Arc<Draft>) {
        let mut folders = self.lock();
        if let Some(names) = folders.get_mut(folder)
            && let Some(Change { kind: Some(Kind::Draft(found)), .. }) = names.get(name)
            && found == draft
        {
            names.remove(name);
        }
    }

    /// Forgets a change of a name.
    pub(crate) fn forget(&self, folder: &str, name: &str) {
        let mut folders = self.lock();
        if let Some(names) = folders.get_mut(folder) {
            names.remove(name);
            if names.is_empty() {
                folders.remove(folder);
            }
        }
    }

    /// Forgets changes in a folder and below it, whose place another one takes.
    pub(crate) fn forget_below(&self, folder: &str) {
        self.lock().retain(|below, _| !below.starts_with(folder));
    }

    /// A list of a folder, which was asked for at `since`, with what has changed after that.
    pub(crate) fn merge(&self, folder: &str, since: Instant, listing: Listing) -> Listing {
        let mut folders = self.lock();
        let Some(names) = folders.get_mut(folder) else { return listing };
        names.retain(|_, change| change.lasts() || change.since >= since);
        if names.is_empty() {
            folders.remove(folder);
            return listing;
        }
        let mut found: BTreeMap<&str, Option<&Kind>> =
            listing.iter().map(|found| (&*found.name, Some(&found.kind))).collect();
        for (name, change) in names.iter() {
            let is_known = matches!(
                (found.get(&**name), &change.kind),
                (Some(Some(Kind::Folder)), Some(Kind::Folder))
            );
            if !is_known {
                found.insert(name, change.kind.as_ref());
            }
        }
        let found = found
            .into_iter()
            .filter_map(|(name, kind)| Some(Found { name: name.to_owned(), kind: kind?.clone() }));
        Arc::new(found.collect())
    }

    /// Whether a folder has a name that lists do not show, and that is not gone.
    pub(crate) fn has_any(&self, folder: &str) -> bool {
        let folders = self.lock();
        folders.get(folder).is_some_and(|names| names.values().any(Change::lasts))
    }

    /// [`Changes::has_any`] for the folder or one below it.
    pub(crate) fn has_any_below(&self, folder: &str) -> bool {
        let is_below = |(key, _): &(&String, _)| key.starts_with(folder);
        let folders = self.lock();
        folders.iter().filter(is_below).any(|(_, names)| names.values().any(Change::lasts))
    }

    /// Moves what has changed below a folder.
    pub(crate) fn rename_folder(&self, from: &str, to: &str) {
        let mut folders = self.lock();
        let below: Vec<String> =
            folders.keys().filter(|folder| folder.starts_with(from)).cloned().collect();
        for folder in below {
            if let Some(names) = folders.remove(&folder) {
                folders.insert(format!("{to}{}", &folder[from.len()..]), names);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thalweg_io::open::ObjectVersion;

    use super::*;

    fn file(tag: &str) -> Kind {
        Kind::File(ObjectVersion { size: 1, tag: tag.into(), modified: None })
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.iter().map(|found| &*found.name).collect()
    }

    #[test]
    fn changes_show_until_a_later_list_does() {
        let changes = Changes::new(Duration::from_secs(100));
        let before = Instant::now();
        let found = |name: &str| Found { name: name.into(), kind: file("1") };
        let listing: Listing = Arc::new(vec![found("a"), found("c")]);
        changes.set("f/", "b", Some(file("2")));
        changes.set("f/", "c", None);
        changes.set("f/", "d", Some(Kind::Folder));
        let merged = changes.merge("f/", before, listing.clone());
        assert_eq!(names(&merged), ["a", "b", "d"]);
        assert_eq!(changes.get("f/", "c"), Some(None));
        assert_eq!(changes.get("f/", "a"), None);
        let merged = changes.merge("f/", Instant::now(), listing.clone());
        assert_eq!(names(&merged), ["a", "c", "d"], "the list is newer");
        assert!(changes.has_any("f/"));
        changes.rename_folder("f/", "g/h/");
        assert_eq!(changes.get("g/h/", "d"), Some(Some(Kind::Folder)));
        assert!(!changes.has_any("f/"));
        changes.forget("g/h/", "d");
        let merged = changes.merge("g/h/", before, listing.clone());
        assert!(Arc::ptr_eq(&merged, &listing));
        let changes = Changes::new(Duration::ZERO);
        changes.set("f/", "c", None);
        assert_eq!(changes.get("f/", "c"), None, "it is too old");
    }
}
