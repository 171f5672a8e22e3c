//! Other names for files and folders.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Errno, INodeNo, RenameFlags};
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::Condition;

use crate::bucket::Kind;
use crate::buckets::Buckets;
use crate::draft::{Draft, Held, Place, Target, is_alike};
use crate::errors::{errno, io_kind};
use crate::moving::{copy_all, remove_copied, remove_version, undo_copies};
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
        if self.bucket.has_buckets(&old.folder.key) {
            return Err(Errno::EPERM);
        }
        if self.bucket.bucket_of(&old.folder.key) != self.bucket.bucket_of(&new.folder.key) {
            return Err(Errno::EXDEV);
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
        let (place, new_key) = self.place(&to.folder, to.name, source.suffix())?;
        let old_key = key(&from.folder.key, from.name, source.suffix()).ok_or(Errno::ENOENT)?;
        // Nobody opens it to write it meanwhile, but somebody may have just now: the kernel looks
        // again after `ESTALE`, and asks again.
        let number = self.tree.number(from.parent, from.name);
        let _closed = writing.keep_closed(number);
        let draft = source.draft();
        if draft.is_none() && self.is_draft(number) {
            return Err(Errno::ESTALE);
        }
        // Nobody stores either of them meanwhile.
        let (held, replaced_draft) = hold(draft, to.kind.as_ref().and_then(Kind::draft));
        let object = |kind: &Kind| match kind {
            Kind::Draft(draft) => self.or_failed(writing.object_of(draft)),
            Kind::File(version) | Kind::Link(version) => Ok(Some(version.clone())),
            Kind::Folder => Ok(None),
        };
        let stored = object(source)?;
        if let (Some(draft), None) = (draft, &stored)
            && draft.found().is_some()
            && !is_here(source)
        {
            // Another program has replaced it, and a part of its bytes was there.
            self.yield_name(from, held.as_ref());
            return Err(Errno::ESTALE);
        }
        // Another file's object, which this one was to replace, goes with the old name.
        let (stored, unreplaced) = match draft {
            Some(draft) if draft.replaces_other() => (None, stored),
            _ => (stored, None),
        };
        let replaced = to.kind.as_ref().map(object).transpose()?.flatten();
        // A link and a file of one name have other keys.
        let (there, other) = match &to.kind {
            Some(kind) if kind.suffix() != source.suffix() => (None, replaced),
            _ => (replaced, None),
        };
        if let Some(draft) = draft {
            let upload = self.or_failed(draft.forget_parts())?;
            storer.give_up(&old_key, upload);
        }
        let condition = Condition::still(there.as_ref());
        // Not every service knows conditions of copies.
        if (stored.is_some() || flags.contains(RenameFlags::RENAME_NOREPLACE))
            && !self.or_failed(storer.bucket().holds(&new_key, &condition))?
        {
            return Err(self.is_taken(to, flags));
        }
        let started = Instant::now();
        let moved = match &stored {
            None => None,
            Some(version) => {
                let copied = storer.bucket().copy((&old_key, version), &new_key, None, &condition);
                match copied {
                    Ok(tag) => Some(ObjectVersion { tag, ..version.clone() }),
                    // Another program has replaced or removed what was under the old name. What was
                    // written here is all there is of this file.
                    Err(error) if is_other(&error) && is_here(source) => None,
                    Err(error) => {
                        self.failed(&error);
                        if io_kind(&error) == Some(ErrorKind::AlreadyExists) {
                            return Err(self.is_taken(to, flags));
                        }
                        if is_other(&error) {
                            self.yield_name(from, held.as_ref());
                        }
                        // The copy may have been made though its answer was lost.
                        self.invalidate(to);
                        match (storer.bucket().head(&new_key), replaced_draft) {
                            (Ok(Some(head)), replaced) if is_alike(&head.version, version) => {
                                self.is_overwritten(to, replaced, head.version);
                            }
                            (Err(_), Some((replaced, _))) => {
                                replaced.may_be_copied_over(version.clone());
                            }
                            _ => {}
                        }
                        return Err(errno(&error));
                    }
                }
            }
        };
        let kind = match (source, &moved) {
            (Kind::Link(_), Some(version)) => Kind::Link(version.clone()),
            (Kind::File(_), Some(version)) => Kind::File(version.clone()),
            (Kind::Draft(draft), _) => Kind::Draft(draft.clone()),
            _ => return Err(Errno::EIO),
        };
        let mut renamed = Ok(());
        if let Some(draft) = draft {
            let target = Target {
                place,
                key: new_key.clone(),
                found: moved.clone().or(there.clone()),
                has_moved: moved.is_some(),
                replaces: replaced_draft.as_ref().map(|(draft, _)| &***draft),
            };
            renamed = draft.rename(target, |key, version| storer.open(key, version));
        }
        let is_long = started.elapsed() >= LONG_COPY;
        // Another program may have put something there if the draft does not know.
        let mut is_empty = stored.is_none() && draft.is_none_or(|draft| !draft.is_unsure());
        let is_left = stored.as_ref().filter(|_| moved.is_some()).or(unreplaced.as_ref());
        if let (Ok(()), Some(version)) = (&renamed, is_left) {
            match remove_copied_from(storer.bucket(), &old_key, version, is_long) {
                Ok(is_gone) => is_empty = is_gone,
                Err(error) => {
                    renamed = Err(error);
                    if let Some(draft) = draft {
                        self.keep_name(draft, from, &old_key, version, moved.is_some())?;
                    }
                }
            }
        }
        if let Err(error) = renamed {
            // The new name has the copy: who had it goes on from there.
            self.invalidate(to);
            if let Some(copy) = moved {
                self.is_overwritten(to, replaced_draft, copy);
            }
            return Err(self.failed(&error));
        }
        if let Some(old) = &stored
            && let (None, Some(version)) = (draft, &moved)
            && let Some((_, attributes, modified)) = writing.known(&old_key, old)
        {
            writing.know(&new_key, version, attributes, modified);
        }
        if let Some((replaced, held)) = replaced_draft {
            storer.give_up(&replaced.key(), held.unlink());
        }
        drop(held);
        writing.changes.set(&to.folder.key, to.name, Some(kind.clone()));
        writing.touch_folder(&from.folder.key);
        writing.touch_folder(&to.folder.key);
        self.tree.rename((from.parent, from.name), (to.parent, to.name));
        if is_empty {
            writing.changes.set(&from.folder.key, from.name, None);
        } else {
            self.look_again(from.parent, &from.folder.key, from.name);
        }
        self.keep_folder(&from.folder);
        let mut ended = Ok(());
        match (number, &kind) {
            (Some(number), Kind::File(version)) => {
                ended = self.becomes(number, &new_key, version, kind.clone());
            }
            (Some(number), _) => self.tree.set(number, kind.clone()),
            (None, _) => {}
        }
        if let (Some(other), Some(kind)) = (&other, &to.kind)
            && let Some(key) = key(&to.folder.key, to.name, kind.suffix())
        {
            let removed = storer.bucket().remove(&key, &Condition::still(Some(other)));
            ended = ended.and(removed);
        }
        if let Kind::Draft(draft) = &kind
            && self.settle(draft).is_err()
        {
            // It has its name, and is stored later.
            storer.store_later(draft);
        }
        self.or_failed(ended)
    }

    /// Gives a draft its old name again, and the object there if that is known to be there.
    fn keep_name(
        &self,
        draft: &Draft,
        from: &Entry<'_>,
        key: &Arc<str>,
        version: &ObjectVersion,
        is_its_own: bool,
    ) -> Result<(), Errno> {
        let storer = &self.writing()?.storer;
        let is_there = storer.bucket().holds(key, &Condition::still(Some(version)));
        let target = Target {
            place: Place { folder: from.folder.key.clone(), name: from.name.into() },
            key: key.clone(),
            found: Some(version.clone()),
            has_moved: is_its_own && matches!(is_there, Ok(true)),
            replaces: None,
        };
        self.or_failed(draft.rename(target, |key, version| storer.open(key, version)))
    }

    /// Notes that a copy is under a name that a file did not get in the end.
    fn is_overwritten(&self, to: &Entry<'_>, draft: Option<HeldDraft<'_>>, copy: ObjectVersion) {
        let Ok(writing) = self.writing() else { return };
        if let Some((draft, held)) = draft {
            if draft.replaces(copy.clone()) {
                drop(held);
                // It is what it was before, once it is stored again.
                self.was_released(draft.clone(), draft.handles());
                return;
            }
            held.supersede();
        }
        writing.changes.set(&to.folder.key, to.name, Some(Kind::File(copy)));
        self.tree.outdate(to.parent);
    }

    /// Gives a name up to the object that another program put there. A draft that the store does
    /// not have keeps its name.
    fn yield_name(&self, from: &Entry<'_>, held: Option<&Held<'_>>) {
        if held.is_none_or(Held::supersede) {
            self.look_again(from.parent, &from.folder.key, from.name);
        }
    }

    /// Drops the kernel's entry of a name that may have changed although the operation failed.
    fn invalidate(&self, entry: &Entry<'_>) {
        self.forgetter.forget(INodeNo(entry.parent), OsStr::new(entry.name));
    }

    /// The error for a name that another program has given to something. The kernel looks the name
    /// up again after `ESTALE`, and then asks again.
    fn is_taken(&self, to: &Entry<'_>, flags: RenameFlags) -> Errno {
        match &to.kind {
            Some(Kind::Draft(draft)) if draft.is_dirty() => self.tree.outdate(to.parent),
            _ => self.look_again(to.parent, &to.folder.key, to.name),
        }
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
        // Its mark may be there.
        if writing.changes.has_any(&new_key) || self.or_failed(self.bucket.has_any(&new_key))? {
            return Err(match to.kind {
                Some(_) => Errno::ENOTEMPTY,
                None => self.is_taken(to, RenameFlags::empty()),
            });
        }
        let mut drafts = writing.drafts();
        drafts.retain(|draft| !draft.is_superseded() && draft.key().starts_with(&*key));
        let held: Vec<_> = drafts.iter().map(|draft| draft.hold()).collect();
        for draft in &drafts {
            let upload = self.or_failed(draft.forget_parts())?;
            writing.storer.give_up(&draft.key(), upload);
        }
        writing.changes.forget_below(&new_key);
        let record = writing.staging.new_move();
        let mut moved = Move::new(&writing.url, &key, &new_key);
        let copied = writing.staging.note_move(&record, &moved).and_then(|()| {
            let copies = copy_all(&writing.storer, (&key, &new_key))?;
            moved.copies = Some(copies.clone());
            let noted = writing.staging.note_move(&record, &moved);
            noted.or_else(|error| {
                undo_copies(&writing.storer, &new_key, &copies)?;
                Err(error)
            })
        });
        if let Err(error) = copied {
            writing.staging.end_move(&record);
            return Err(self.failed(&error));
        }
        // From here on it has the new name, and an error leaves some of it both names.
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
            let named = draft.rename(target, |key, version| writing.storer.open(key, version));
            renamed = renamed.and(named);
        }
        let copies = moved.copies.unwrap_or_default();
        let removed = renamed.and_then(|()| {
            let removed = remove_copied(&writing.storer, (&key, &new_key), &copies);
            // What could not be removed is not removed later: there may be other objects by then.
            // But a draft whose record has the old name gets the new one from this record.
            writing.staging.end_move(&record);
            removed
        });
        drop(held);
        writing.know_copies(&key, &new_key, &copies);
        writing.changes.rename_folder(&key, &new_key);
        writing.changes.set(&to.folder.key, to.name, Some(Kind::Folder));
        writing.touch_folder(&from.folder.key);
        writing.touch_folder(&to.folder.key);
        match &removed {
            Ok(()) => writing.changes.set(&from.folder.key, from.name, None),
            Err(_) => {
                self.look_again(from.parent, &from.folder.key, from.name);
                self.invalidate(from);
                self.invalidate(to);
            }
        }
        self.keep_folder(&from.folder);
        self.tree.rename((from.parent, from.name), (to.parent, to.name));
        let copies = Copied::by_rest(&copies);
        let mut become_others = Ok(());
        for (number, node) in self.tree.below(&new_key) {
            let Some(copied) = copies.get(&node.key[new_key.len()..]) else { continue };
            let version = copied.version();
            let kind = match node.kind {
                Kind::File(old) if old.tag == copied.tag => Kind::File(version.clone()),
                Kind::Link(old) if old.tag == copied.tag => Kind::Link(version.clone()),
                _ => continue,
            };
            become_others = become_others.and(self.becomes(number, &node.key, &version, kind));
        }
        self.or_failed(become_others.and(removed))
    }
}

/// [`remove_version`] after a copy. If that took `long`, the store is asked first whether it is
/// still this version, for not every service knows conditions of removals.
fn remove_copied_from(
    bucket: &Buckets,
    key: &str,
    version: &ObjectVersion,
    long: bool,
) -> Result<bool> {
    if long && !bucket.holds(key, &Condition::still(Some(version)))? {
        return Ok(false);
    }
    remove_version(bucket, key, version)
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

/// Holds what is a draft of a source and a target. They are held in the order of their ids, as
/// everyone holds them, so that nobody waits for one who waits for it.
fn hold<'a>(
    source: Option<&'a Arc<Draft>>,
    target: Option<&'a Arc<Draft>>,
) -> (Option<Held<'a>>, Option<HeldDraft<'a>>) {
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
