//! The files and folders that the kernel knows, by their numbers.
//!
//! A number belongs to one version of an object for good. When an object is replaced, the next
//! lookup gives another number: who has the old version open goes on with it, and the kernel never
//! mixes pages of two versions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_io::open::ObjectVersion;

use crate::bucket::{Found, Kind};
use crate::names;

/// After so many names that were asked for one by one, all names of a folder are.
const ASKED: u32 = 3;
/// The number of the root (`FUSE_ROOT_ID`).
pub(crate) const ROOT: u64 = 1;

/// A file or a folder.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) parent: u64,
    pub(crate) name: Arc<str>,
    /// The key of an object, or what the keys in a folder begin with.
    pub(crate) key: Arc<str>,
    pub(crate) kind: Kind,
}

impl Node {
    /// The version of the object, if it is a file that is not being written, or a link.
    pub(crate) fn version(&self) -> Option<&ObjectVersion> {
        match &self.kind {
            Kind::File(version) | Kind::Link(version) => Some(version),
            Kind::Folder | Kind::Draft(_) => None,
        }
    }
}

/// The entries of a folder, in the order of their names.
pub(crate) type Listing = Arc<Vec<Found>>;

#[derive(Debug)]
struct Known {
    node: Node,
    /// How often the kernel has been told of it, less how often it has forgotten it.
    lookups: u64,
}

/// What [`Tree::lookup`] gives: the number, and what it is.
pub(crate) type Numbered = (u64, Node);

#[derive(Debug)]
struct State {
    nodes: HashMap<u64, Known>,
    numbers: HashMap<(u64, Arc<str>), u64>,
    listings: HashMap<u64, (Instant, Listing)>,
    /// How many names were asked for one by one in folders that are not listed, and since when.
    asked: HashMap<u64, (Instant, u32)>,
    next: u64,
}

/// All files and folders that the kernel knows.
#[derive(Debug)]
pub(crate) struct Tree {
    /// How long a list of a folder is taken for right.
    ttl: Duration,
    state: Mutex<State>,
}

impl Tree {
    pub(crate) fn new(ttl: Duration) -> Self {
        let (name, key) = ("".into(), "".into());
        let root = Node { parent: ROOT, name, key, kind: Kind::Folder };
        let nodes = [(ROOT, Known { node: root, lookups: 1 })].into();
        let (numbers, listings, asked) = Default::default();
        Self { ttl, state: Mutex::new(State { nodes, numbers, listings, asked, next: ROOT + 1 }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has a number.
    pub(crate) fn node(&self, number: u64) -> Option<Node> {
        self.lock().nodes.get(&number).map(|known| known.node.clone())
    }

    /// How many files and folders the kernel knows.
    pub(crate) fn len(&self) -> usize {
        self.lock().nodes.len()
    }

    /// Gives a name in a folder its number, and notes that the kernel knows it. `None` if there is
    /// no such folder.
    pub(crate) fn lookup(&self, parent: u64, name: &str, kind: Kind) -> Option<Numbered> {
        let mut state = self.lock();
        let (name, known) = match state.numbers.get_key_value(&(parent, name.into())) {
            Some(((_, name), number)) => (name.clone(), Some(*number)),
            None => (Arc::from(name), None),
        };
        if let Some(number) = known
            && let Some(known) = state.nodes.get_mut(&number)
            && is_same(&known.node.kind, &kind)
        {
            known.lookups += 1;
            known.node.kind = kind;
            note_number(&known.node.kind, number);
            return Some((number, known.node.clone()));
        }
        let folder = state.nodes.get(&parent)?.node.key.clone();
        let key = key(&folder, &name, kind.suffix())?;
        let node = Node { parent, name: name.clone(), key, kind };
        let number = state.next;
        state.next += 1;
        note_number(&node.kind, number);
        state.nodes.insert(number, Known { node: node.clone(), lookups: 1 });
        state.numbers.insert((parent, name), number);
        Some((number, node))
    }

    /// Notes what a number is from now on, with the same bytes or with those that this mount wrote.
    pub(crate) fn set(&self, number: u64, kind: Kind) {
        if let Some(known) = self.lock().nodes.get_mut(&number) {
            note_number(&kind, number);
            known.node.kind = kind;
        }
    }

    /// The number of a name in a folder, if the kernel knows it.
    pub(crate) fn number(&self, parent: u64, name: &str) -> Option<u64> {
        self.lock().numbers.get(&(parent, name.into())).copied()
    }

    /// Notes that a name is gone. Who has it open goes on.
    pub(crate) fn remove(&self, parent: u64, name: &str) {
        self.lock().numbers.remove(&(parent, name.into()));
    }

    /// Gives what has a name another one, and to what is below it other keys.
    pub(crate) fn rename(&self, from: (u64, &str), to: (u64, &str)) {
        let mut state = self.lock();
        state.numbers.remove(&(to.0, to.1.into()));
        let Some(number) = state.numbers.remove(&(from.0, from.1.into())) else { return };
        let Some(folder) = state.nodes.get(&to.0).map(|known| known.node.key.clone()) else {
            return;
        };
        let name: Arc<str> = to.1.into();
        let Some(known) = state.nodes.get_mut(&number) else { return };
        let Some(key) = key(&folder, &name, known.node.kind.suffix()) else { return };
        let old = std::mem::replace(&mut known.node.key, key.clone());
        (known.node.parent, known.node.name) = (to.0, name.clone());
        let is_folder = known.node.kind == Kind::Folder;
        state.numbers.insert((to.0, name), number);
        if is_folder {
            let State { nodes, listings, .. } = &mut *state;
            listings.remove(&number);
            for (below, known) in nodes {
                if let Some(rest) = known.node.key.strip_prefix(&*old) {
                    known.node.key = format!("{key}{rest}").into();
                    // The copies have other versions.
                    listings.remove(below);
                }
            }
        }
    }

    /// What the kernel knows below a folder.
    pub(crate) fn below(&self, folder: &str) -> Vec<Numbered> {
        let state = self.lock();
        let below = state.nodes.iter().filter(|(_, known)| known.node.key.starts_with(folder));
        below.map(|(number, known)| (*number, known.node.clone())).collect()
    }

    /// Notes that the kernel has forgotten `lookups` lookups of a number.
    pub(crate) fn forget(&self, number: u64, lookups: u64) {
        let mut state = self.lock();
        let Some(known) = state.nodes.get_mut(&number).filter(|_| number != ROOT) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return;
        }
        if let Some(Known { node, .. }) = state.nodes.remove(&number) {
            let place = (node.parent, node.name);
            if state.numbers.get(&place) == Some(&number) {
                state.numbers.remove(&place);
            }
        }
        state.listings.remove(&number);
        state.asked.remove(&number);
    }

    /// Notes that a name is asked for in a folder that is not listed. Returns whether a list of all
    /// names would have been cheaper by now.
    pub(crate) fn ask(&self, folder: u64) -> bool {
        let mut state = self.lock();
        let (since, count) = state.asked.entry(folder).or_insert((Instant::now(), 0));
        if since.elapsed() > self.ttl {
            (*since, *count) = (Instant::now(), 0);
        }
        *count = count.saturating_add(1);
        *count == ASKED
    }

    /// The entries of a folder and when they were listed, if that was not long ago.
    pub(crate) fn listing(&self, folder: u64) -> Option<(Instant, Listing)> {
        let mut state = self.lock();
        let (since, listing) = state.listings.get(&folder)?;
        if since.elapsed() < self.ttl {
            return Some((*since, listing.clone()));
        }
        state.listings.remove(&folder);
        None
    }

    /// Keeps the entries of a folder, which were listed at `since`.
    pub(crate) fn keep(&self, folder: u64, since: Instant, entries: Vec<Found>) -> Listing {
        let listing = Arc::new(entries);
        self.lock().listings.insert(folder, (since, listing.clone()));
        listing
    }

    /// Forgets the entries of a folder, for one of them was found to be other.
    pub(crate) fn outdate(&self, folder: u64) {
        self.lock().listings.remove(&folder);
    }
}

/// The key of a name in a folder, with what keys of its kind end with ([`Kind::suffix`]). `None` if
/// it is a name for none.
pub(crate) fn key(folder: &str, name: &str, suffix: &str) -> Option<Arc<str>> {
    let part = names::part(name)?;
    Some(format!("{folder}{part}{suffix}").into())
}

/// Whether what had a name is what has it now: a number may stay.
fn is_same(was: &Kind, is: &Kind) -> bool {
    let same = |was: &ObjectVersion, is: &ObjectVersion| {
        was == is || was.is_certain() && (&was.tag, was.size) == (&is.tag, is.size)
    };
    match (was, is) {
        (Kind::File(was), Kind::File(is)) | (Kind::Link(was), Kind::Link(is)) => same(was, is),
        (Kind::Draft(draft), Kind::File(is)) => {
            draft.stored().is_some_and(|stored| same(&stored, is))
        }
        (Kind::File(was), Kind::Draft(draft)) => {
            draft.stored().is_some_and(|stored| same(was, &stored))
        }
        (was, is) => was == is,
    }
}

/// Tells a draft its number.
fn note_number(kind: &Kind, number: u64) {
    if let Kind::Draft(draft) = kind {
        draft.set_number(number);
    }
}

/// Where a name is in a listing.
pub(crate) fn place(listing: &Listing, name: &str) -> Option<usize> {
    listing.binary_search_by(|found| (*found.name).cmp(name)).ok()
}

/// An entry of a listing by its name.
pub(crate) fn entry<'a>(listing: &'a Listing, name: &str) -> Option<&'a Found> {
    listing.get(place(listing, name)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(tag: &str) -> Kind {
        Kind::File(ObjectVersion { size: 9, tag: tag.into(), modified: Some(1) })
    }

    #[test]
    fn a_number_belongs_to_one_version() {
        let tree = Tree::new(Duration::from_secs(1));
        let number = |tag| tree.lookup(ROOT, "a", file(tag)).unwrap().0;
        let first = number("1");
        assert_eq!(number("1"), first);
        let second = number("2");
        assert_ne!(first, second);
        assert_eq!(
            tree.node(first).unwrap().version().unwrap().tag,
            "1",
            "who has it open goes on"
        );
        tree.forget(first, 2);
        assert!(tree.node(first).is_none());
        assert_eq!(number("2"), second, "forgetting the old one keeps the new one");
        tree.forget(second, 2);
        assert_eq!(tree.len(), 1);
        tree.forget(ROOT, 100);
        assert!(tree.node(ROOT).is_some());
    }

    #[test]
    fn keys_are_those_of_the_bucket() {
        let tree = Tree::new(Duration::from_secs(1));
        let (folder, _) = tree.lookup(ROOT, "%~%2E%2E", Kind::Folder).unwrap();
        let (_, node) = tree.lookup(folder, "a", file("1")).unwrap();
        assert_eq!(&*node.key, "../a");
        assert!(tree.lookup(77, "a", Kind::Folder).is_none());
    }

    #[test]
    fn listings_get_old() {
        let tree = Tree::new(Duration::from_millis(20));
        let found = vec![Found { name: "a".into(), kind: Kind::Folder }];
        tree.keep(ROOT, Instant::now(), found.clone());
        assert!(tree.listing(ROOT).is_some_and(|(_, listing)| entry(&listing, "a").is_some()));
        std::thread::sleep(Duration::from_millis(25));
        assert!(tree.listing(ROOT).is_none());
        tree.keep(ROOT, Instant::now(), found);
        tree.outdate(ROOT);
        assert!(tree.listing(ROOT).is_none());
    }
}
