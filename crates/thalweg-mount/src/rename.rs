//! Other names for files and folders.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};

use fuser::{Errno, INodeNo, RenameFlags};
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};

use crate::bucket::Kind;
use crate::draft::{Draft, Place};
use crate::errors::io_kind;
use crate::staging::Move;
use crate::tree::{Node, key};
use crate::view::BucketFs;
use crate::writing::move_objects;

impl BucketFs {
    /// Gives a file, a link or a folder another name.
    pub(crate) fn rename_to(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let writing = self.writing()?;
        if flags.intersects(!RenameFlags::RENAME_NOREPLACE) {
            return Err(Errno::EINVAL);
        }
        let still = self.still();
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let new_name = new_name.to_str().ok_or(Errno::EINVAL)?;
        let (folder, new_folder) = (self.folder(parent)?, self.folder(new_parent)?);
        let source = self.kind_of(parent.0, &folder, name)?.ok_or(Errno::ENOENT)?;
        let (place, new_key) = self.place(&new_folder, new_name, source.suffix())?;
        let target = self.kind_of(new_parent.0, &new_folder, new_name)?;
        if (parent, name) == (new_parent, new_name) {
            return Ok(());
        }
        match (&source, &target) {
            (_, None) => {}
            (_, Some(_)) if flags.contains(RenameFlags::RENAME_NOREPLACE) => {
                return Err(Errno::EEXIST);
            }
            (Kind::Folder, Some(Kind::Folder)) => {
                self.remove_folder(new_parent, OsStr::new(new_name))?;
            }
            (Kind::Folder, Some(_)) => return Err(Errno::ENOTDIR),
            (_, Some(Kind::Folder)) => return Err(Errno::EISDIR),
            _ => {}
        }
        let key = key(&folder.key, name, source.suffix()).ok_or(Errno::ENOENT)?;
        if source == Kind::Folder {
            drop(still);
            return self.rename_folder(
                (parent.0, &folder, name),
                (new_parent.0, &new_folder, new_name),
                (&key, &new_key),
            );
        }
        let bucket = writing.storer.bucket();
        // Nobody stores the old file under its name any more.
        let mut replaced = None;
        if let Some(Kind::Draft(old)) = &target {
            let (found, upload) = old.unlink();
            writing.storer.give_up(&new_key, upload);
            replaced = found;
        } else if let Some(Kind::File(version)) = &target {
            replaced = Some(version.clone());
        }
        let held = match &source {
            Kind::Draft(draft) => Some(draft.hold()),
            _ => None,
        };
        let stored = match &source {
            Kind::File(version) | Kind::Link(version) => Some(version.clone()),
            Kind::Draft(draft) => draft.found(),
            Kind::Folder => None,
        };
        let moved = match stored {
            None => None,
            Some(version) => match bucket.copy(&key, &version, &new_key, None) {
                Ok(tag) => {
                    self.or_failed(bucket.remove(&key))?;
                    Some(ObjectVersion { tag, modified: None, ..version })
                }
                // Another program has replaced or removed what was under the old name. What was
                // written here is all there is of this file.
                Err(error) if is_other(&error) && is_here(&source) => None,
                Err(error) => {
                    if is_other(&error) {
                        writing.changes.forget(&folder.key, name);
                        self.tree.outdate(parent.0);
                    }
                    return Err(self.failed(&error));
                }
            },
        };
        let kind = match (&source, moved) {
            (Kind::Link(_), Some(version)) => Kind::Link(version),
            (Kind::Draft(draft), moved) => {
                let open = |key: &str, version: &ObjectVersion| writing.storer.open(key, version);
                let renamed = draft.rename((place, new_key.clone()), moved.or(replaced), open);
                writing.storer.give_up(&key, self.or_failed(renamed)?);
                Kind::Draft(draft.clone())
            }
            (_, Some(version)) => {
                let known = match &source {
                    Kind::File(old) => writing.known(&key, old),
                    _ => None,
                };
                if let Some((_, attributes, modified)) = known {
                    writing.know(&new_key, &version, attributes, modified);
                }
                Kind::File(version)
            }
            (_, None) => return Err(Errno::EIO),
        };
        drop(held);
        // A link and a file of one name have other keys.
        if let Some(target) = &target
            && target.suffix() != source.suffix()
            && let Some(old) = crate::tree::key(&new_folder.key, new_name, target.suffix())
        {
            self.or_failed(bucket.remove(&old))?;
        }
        writing.changes.set(&new_folder.key, new_name, Some(kind.clone()));
        let number = self.tree.number(parent.0, name);
        self.tree.rename((parent.0, name), (new_parent.0, new_name));
        writing.changes.set(&folder.key, name, None);
        self.keep_folder(&folder);
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
        Ok(())
    }

    /// Gives a folder another name: all objects below it get other keys, and then the old ones are
    /// removed.
    pub(crate) fn rename_folder(
        &self,
        (parent, folder, name): (u64, &Node, &str),
        (new_parent, new_folder, new_name): (u64, &Node, &str),
        (key, new_key): (&Arc<str>, &Arc<str>),
    ) -> Result<(), Errno> {
        let writing = self.writing()?;
        let _moving = writing.moving.write().unwrap_or_else(PoisonError::into_inner);
        let below = |draft: &Arc<Draft>| draft.key().starts_with(&**key);
        let drafts: Vec<_> = writing.changes.drafts().into_iter().filter(below).collect();
        let held: Vec<_> = drafts.iter().map(|draft| draft.hold()).collect();
        let record = writing.staging.new_move();
        let copied = std::cell::Cell::new(false);
        let moved = move_objects(&writing.storer, (key, new_key), |removes| {
            copied.set(removes.is_some());
            let moved = Move { removes, ..Move::new(&writing.url, key, new_key) };
            writing.staging.note_move(&record, &moved)
        });
        // What could not be removed is removed by the next mount.
        if moved.is_ok() || !copied.get() {
            writing.staging.end_move(&record);
        }
        let moved: HashMap<Arc<str>, ObjectVersion> = self.or_failed(moved)?.into_iter().collect();
        for draft in &drafts {
            let (old, place) = (draft.key(), draft.place());
            let new: Arc<str> = format!("{new_key}{}", &old[key.len()..]).into();
            let folder = format!("{new_key}{}", &place.folder[key.len()..]).into();
            let found = moved.get(&new).cloned();
            let open = |key: &str, version: &ObjectVersion| writing.storer.open(key, version);
            let renamed = draft.rename((Place { folder, ..place }, new), found, open);
            writing.storer.give_up(&old, self.or_failed(renamed)?);
        }
        drop(held);
        writing.know_moved(key, new_key, &moved);
        writing.changes.rename_folder(key, new_key);
        writing.changes.set(&new_folder.key, new_name, Some(Kind::Folder));
        writing.changes.set(&folder.key, name, None);
        self.keep_folder(folder);
        self.tree.rename((parent, name), (new_parent, new_name));
        for (number, node) in self.tree.below(new_key) {
            let Some(version) = moved.get(&node.key) else { continue };
            let kind = match node.kind {
                Kind::File(_) => Kind::File(version.clone()),
                Kind::Link(_) => Kind::Link(version.clone()),
                Kind::Folder | Kind::Draft(_) => continue,
            };
            self.or_failed(self.becomes(number, &node.key, version, kind))?;
        }
        Ok(())
    }
}

/// Whether an object is not the one that it was.
fn is_other(error: &Error) -> bool {
    matches!(io_kind(error), Some(ErrorKind::StaleNetworkFileHandle | ErrorKind::NotFound))
}

/// Whether a file is a draft that the store does not have, and all its bytes are here.
fn is_here(kind: &Kind) -> bool {
    matches!(kind, Kind::Draft(draft) if draft.is_dirty() && draft.is_whole())
}
