//! Other names for files and folders.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Errno, INodeNo, RenameFlags};
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::Condition;

use crate::bucket::Kind;
use crate::draft::{Draft, Held, Place, Target};
use crate::errors::io_kind;
use crate::moving::{copy_all, remove_copied};
use crate::staging::{Copied, Move};
use crate::tree::{Node, key};
use crate::view::BucketFs;

/// After a copy that took longer, the store is asked whether the object is still the one that was
/// copied, for not every service knows conditions of removals.
const LONG_COPY: Duration = Duration::from_secs(1);

/// A name in a folder, and what has it.
struct Entry<'a> {
    parent: u64,
    folder: Node,
    name: &'a str,
    kind: Option<Kind>,
}

impl BucketFs {
    /// Gives a file, a link or a folder another name.
    pub(crate) fn rename_to(
        &self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.writing()?;
        if flags.intersects(!RenameFlags::RENAME_NOREPLACE) {
            return Err(Errno::EINVAL);
        }
        let still = self.still();
        let (old, new) = (self.entry_of(from)?, self.entry_of(to)?);
        let source = old.kind.as_ref().ok_or(Errno::ENOENT)?;
        if from == to {
            return Ok(());
        }
        if *source != Kind::Folder {
            check(source, &new, flags)?;
            return self.rename_file(&old, source, &new, flags);
        }
        drop(still);
        let writing = self.writing()?;
        let _moving = writing.moving.write().unwrap_or_else(PoisonError::into_inner);
        // They may have changed meanwhile.
        let (old, new) = (self.entry_of(from)?, self.entry_of(to)?);
        match &old.kind {
            Some(Kind::Folder) => {}
            Some(_) => return Err(Errno::ESTALE),
            None => return Err(Errno::ENOENT),
        }
        check(&Kind::Folder, &new, flags)?;
        self.rename_folder(&old, &new)
    }

    fn entry_of<'a>(&self, (parent, name): (INodeNo, &'a OsStr)) -> Result<Entry<'a>, Errno> {
        let folder = self.folder(parent)?;
        let name = name.to_str().ok_or(Errno::EINVAL)?;
        let kind = self.kind_of(parent.0, &folder, name)?;
        Ok(Entry { parent: parent.0, folder, name, kind })
    }

    fn rename_file(
        &self,
        from: &Entry<'_>,
        source: &Kind,
        to: &Entry<'_>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let writing = self.writing()?;
        let storer = &writing.storer;
        let open = |key: &str, version: &ObjectVersion| storer.open(key, version);
        let (place, new_key) = self.place(&to.folder, to.name, source.suffix())?;
        let old_key = key(&from.folder.key, from.name, source.suffix()).ok_or(Errno::ENOENT)?;
        // Nobody stores either of them meanwhile.
        let (held, replaced_draft) = hold(source, to.kind.as_ref());
        let object = |kind: &Kind| match kind {
            Kind::Draft(draft) => self.or_failed(writing.object_of(draft)),
            Kind::File(version) | Kind::Link(version) => Ok(Some(version.clone())),
            Kind::Folder => Ok(None),
        };
        let stored = object(source)?;
        let replaced = to.kind.as_ref().map(object).transpose()?.flatten();
        // A link and a file of one name have other keys.
        let (there, other) = match &to.kind {
            Some(kind) if kind.suffix() != source.suffix() => (None, replaced),
            _ => (replaced, None),
        };
        if let Kind::Draft(draft) = source {
            let upload = self.or_failed(draft.forget_parts())?;
            storer.give_up(&old_key, upload);
        }
        let condition = Condition::still(there.as_ref());
        let is_to_be_new = flags.contains(RenameFlags::RENAME_NOREPLACE);
        if stored.is_some() || is_to_be_new {
            // Not every service knows conditions of copies.
            let found = self.or_failed(storer.bucket().head(&new_key))?;
            if !condition.holds_for(found.as_ref().map(|head| &head.version.tag)) {
                return Err(self.is_taken(to, flags));
            }
        }
        let started = Instant::now();
        let moved = match &stored {
            None => None,
            Some(version) => {
                match storer.bucket().copy((&old_key, version), &new_key, None, &condition) {
                    Ok(tag) => Some(ObjectVersion { tag, modified: None, ..version.clone() }),
                    Err(error) if io_kind(&error) == Some(ErrorKind::AlreadyExists) => {
                        self.failed(&error);
                        return Err(self.is_taken(to, flags));
                    }
                    // Another program has replaced or removed what was under the old name. What was
                    // written here is all there is of this file.
                    Err(error) if is_other(&error) && is_here(source) => None,
                    Err(error) => {
                        if is_other(&error) {
                            writing.changes.forget(&from.folder.key, from.name);
                            self.tree.outdate(from.parent);
                        }
                        return Err(self.failed(&error));
                    }
                }
            }
        };
        let mut noted = Ok(());
        let kind = match (source, &moved) {
            (Kind::Link(_), Some(version)) => Kind::Link(version.clone()),
            (Kind::Draft(draft), _) => {
                let target = Target {
                    place,
                    key: new_key.clone(),
                    found: moved.clone().or(there),
                    has_moved: moved.is_some(),
                    replaces: replaced_draft.as_ref().map(|(draft, _)| &***draft),
                };
                noted = draft.rename(target, open);
                Kind::Draft(draft.clone())
            }
            (_, Some(version)) => {
                let known = match source {
                    Kind::File(old) => writing.known(&old_key, old),
                    _ => None,
                };
                if let Some((_, attributes, modified)) = known {
                    writing.know(&new_key, version, attributes, modified);
                }
                Kind::File(version.clone())
            }
            (_, None) => return Err(Errno::EIO),
        };
        // It has the new name. What fails leaves it the old one, too.
        if let Some((replaced, held)) = replaced_draft {
            storer.give_up(&replaced.key(), held.unlink());
        }
        drop(held);
        let other_key =
            to.kind.as_ref().and_then(|kind| key(&to.folder.key, to.name, kind.suffix()));
        let mut removed = Ok(true);
        if let (Some(other), Some(key)) = (&other, other_key) {
            removed = storer.bucket().remove(&key, &Condition::still(Some(other))).map(|()| true);
        }
        if let (Some(version), Some(_)) = (&stored, &moved) {
            let is_long = started.elapsed() >= LONG_COPY;
            removed = removed.and(self.remove_version(&old_key, version, is_long));
        }
        writing.changes.set(&to.folder.key, to.name, Some(kind.clone()));
        let number = self.tree.number(from.parent, from.name);
        self.tree.rename((from.parent, from.name), (to.parent, to.name));
        match removed {
            Ok(true) => writing.changes.set(&from.folder.key, from.name, None),
            _ => {
                writing.changes.forget(&from.folder.key, from.name);
                self.tree.outdate(from.parent);
            }
        }
        self.keep_folder(&from.folder);
        match (number, &kind) {
            (Some(number), Kind::File(version)) => {
                self.or_failed(self.becomes(number, &new_key, version, kind.clone()))?;
            }
            (Some(number), _) => self.tree.set(number, kind.clone()),
            (None, _) => {}
        }
        if let Kind::Draft(draft) = &kind {
            self.settle(draft)?;
        }
        self.or_failed(noted.and(removed)).map(drop)
    }

    /// Removes a version of an object. Returns whether nothing is left: another version stays.
    fn remove_version(&self, key: &str, version: &ObjectVersion, asks: bool) -> Result<bool> {
        let bucket = self.writing.as_ref().map(|writing| writing.storer.bucket());
        let Some(bucket) = bucket else { return Ok(false) };
        let condition = Condition::still(Some(version));
        if asks {
            let found = bucket.head(key)?;
            if !condition.holds_for(found.as_ref().map(|head| &head.version.tag)) {
                return Ok(found.is_none());
            }
        }
        match bucket.remove(key, &condition) {
            Ok(()) => Ok(true),
            Err(error) if io_kind(&error) == Some(ErrorKind::StaleNetworkFileHandle) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The error for a name that another program has given to something. The kernel looks the name
    /// up again after `ESTALE`, and then asks again.
    fn is_taken(&self, to: &Entry<'_>, flags: RenameFlags) -> Errno {
        if let Ok(writing) = self.writing()
            && !matches!(to.kind, Some(Kind::Draft(_)))
        {
            writing.changes.forget(&to.folder.key, to.name);
        }
        self.tree.outdate(to.parent);
        let is_to_be_new = flags.contains(RenameFlags::RENAME_NOREPLACE);
        if is_to_be_new { Errno::EEXIST } else { Errno::ESTALE }
    }

    /// Gives a folder another name: all objects below it are copied to other keys, and then the old
    /// ones are removed.
    fn rename_folder(&self, from: &Entry<'_>, to: &Entry<'_>) -> Result<(), Errno> {
        let writing = self.writing()?;
        let suffix = Kind::Folder.suffix();
        let (_, new_key) = self.place(&to.folder, to.name, suffix)?;
        let key = key(&from.folder.key, from.name, suffix).ok_or(Errno::ENOENT)?;
        if new_key.starts_with(&*key) {
            return Err(Errno::EINVAL);
        }
        if to.kind.is_some() {
            self.remove_folder(INodeNo(to.parent), OsStr::new(to.name))?;
        } else if self.or_failed(self.bucket.has_any(&new_key))? {
            return Err(self.is_taken(to, RenameFlags::empty()));
        }
        let mut drafts = writing.drafts();
        drafts.retain(|draft| draft.key().starts_with(&*key));
        let held: Vec<_> = drafts.iter().map(|draft| draft.hold()).collect();
        for draft in &drafts {
            let upload = self.or_failed(draft.forget_parts())?;
            writing.storer.give_up(&draft.key(), upload);
        }
        let record = writing.staging.new_move();
        let mut moved = Move::new(&writing.url, &key, &new_key);
        let copied = writing.staging.note_move(&record, &moved).and_then(|()| {
            let copies = copy_all(&writing.storer, (&key, &new_key))?;
            moved.copies = Some(copies);
            writing.staging.note_move(&record, &moved)
        });
        if let Err(error) = copied {
            writing.staging.end_move(&record);
            return Err(self.failed(&error));
        }
        // It has the new name. What fails leaves some of it under the old one, too.
        let mut renamed = Ok(());
        for draft in &drafts {
            let (old, place) = (draft.key(), draft.place());
            let rest = &old[key.len()..];
            let found = draft.found();
            let copy = found.as_ref().and_then(|found| moved.copy_of(rest, found));
            let target = Target {
                place: Place {
                    folder: format!("{new_key}{}", &place.folder[key.len()..]).into(),
                    ..place
                },
                key: format!("{new_key}{rest}").into(),
                has_moved: copy.is_some(),
                // Another program has replaced what it was made of, which is told when it is
                // stored.
                found: copy.or(found),
                replaces: None,
            };
            let open = |key: &str, version: &ObjectVersion| writing.storer.open(key, version);
            renamed = renamed.and(draft.rename(target, open));
        }
        drop(held);
        let copies = moved.copies.unwrap_or_default();
        let removed = remove_copied(&writing.storer, (&key, &new_key), &copies);
        // What could not be removed is not removed later: there may be other objects by then.
        writing.staging.end_move(&record);
        writing.know_copies(&key, &new_key, &copies);
        writing.changes.rename_folder(&key, &new_key);
        writing.changes.set(&to.folder.key, to.name, Some(Kind::Folder));
        match &removed {
            Ok(()) => writing.changes.set(&from.folder.key, from.name, None),
            Err(_) => {
                writing.changes.forget(&from.folder.key, from.name);
                self.tree.outdate(from.parent);
            }
        }
        self.keep_folder(&from.folder);
        self.tree.rename((from.parent, from.name), (to.parent, to.name));
        let copies: HashMap<&str, &Copied> =
            copies.iter().map(|copied| (&*copied.rest, copied)).collect();
        for (number, node) in self.tree.below(&new_key) {
            let Some(copied) = copies.get(&node.key[new_key.len()..]) else { continue };
            let version = copied.version();
            let kind = match node.kind {
                Kind::File(old) if old.tag == copied.tag => Kind::File(version.clone()),
                Kind::Link(old) if old.tag == copied.tag => Kind::Link(version.clone()),
                _ => continue,
            };
            self.or_failed(self.becomes(number, &node.key, &version, kind))?;
        }
        self.or_failed(renamed.and(removed))
    }
}

/// Whether something can get a name.
fn check(source: &Kind, to: &Entry<'_>, flags: RenameFlags) -> Result<(), Errno> {
    match (source, &to.kind) {
        (_, None) => Ok(()),
        (_, Some(_)) if flags.contains(RenameFlags::RENAME_NOREPLACE) => Err(Errno::EEXIST),
        (Kind::Folder, Some(Kind::Folder)) => Ok(()),
        (Kind::Folder, Some(_)) => Err(Errno::ENOTDIR),
        (_, Some(Kind::Folder)) => Err(Errno::EISDIR),
        _ => Ok(()),
    }
}

type HeldDraft<'a> = (&'a Arc<Draft>, Held<'a>);

/// Holds the drafts among a source and a target. They are held in the order of their ids, as
/// everyone holds them, so that nobody waits for one who waits for it.
fn hold<'a>(
    source: &'a Kind,
    target: Option<&'a Kind>,
) -> (Option<Held<'a>>, Option<HeldDraft<'a>>) {
    let draft = |kind: &'a Kind| match kind {
        Kind::Draft(draft) => Some(draft),
        _ => None,
    };
    let (source, target) = (draft(source), target.and_then(draft));
    let hold_target = || target.map(|draft| (draft, draft.hold()));
    if let (Some(source), Some(target)) = (source, target)
        && target.id < source.id
    {
        let target = hold_target();
        return (Some(source.hold()), target);
    }
    (source.map(|draft| draft.hold()), hold_target())
}

/// Whether an object is not the one that it was.
fn is_other(error: &Error) -> bool {
    matches!(io_kind(error), Some(ErrorKind::StaleNetworkFileHandle | ErrorKind::NotFound))
}

/// Whether a file is a draft that the store does not have, and all its bytes are here.
fn is_here(kind: &Kind) -> bool {
    matches!(kind, Kind::Draft(draft) if draft.is_dirty() && draft.is_whole())
}
