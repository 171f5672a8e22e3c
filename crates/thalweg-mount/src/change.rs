//! What programs change in a mount: files and folders that they make and remove, and attributes.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use fuser::{Errno, FileAttr, INodeNo, Request};
use rustix::fs::{FileType, Mode};
use thalweg_io::Result;
use thalweg_io::open::ObjectVersion;
use thalweg_object::Condition;

use crate::attributes::Attributes;
use crate::bucket::{Kind, LINK};
use crate::draft::{Draft, Place, mark};
use crate::errors::errno;
use crate::names;
use crate::reading::Reading;
use crate::tree::{Node, key};
use crate::view::{BucketFs, FILE_MODE, FOLDER_MODE, LINK_MODE, LONGEST_NAME, Settings};
use crate::writing::lock;

/// The longest key of S3, in bytes.
const LONGEST_KEY: usize = 1024;

/// Who makes something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct By {
    pub(crate) thread: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl By {
    pub(crate) fn of(request: &Request) -> Self {
        Self { thread: request.pid(), uid: request.uid(), gid: request.gid() }
    }
}

/// What `setattr` sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) size: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) mtime: Option<SystemTime>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

/// Whether a name can be given to a file. Names of links end with what tells them from files, and
/// an escaped name that is not the usual one is that of an object beside a folder.
fn check_name(folder: &str, name: &str, longest_key: usize) -> Result<(), Errno> {
    if name.len() > LONGEST_NAME || folder.len() + name.len() + 1 > longest_key {
        return Err(Errno::ENAMETOOLONG);
    }
    let part = names::part(name).ok_or(Errno::EINVAL)?;
    let is_usual = names::name(&part).is_some_and(|usual| usual == name);
    let leads_elsewhere = matches!(&*part, "" | "." | "..");
    if !is_usual || leads_elsewhere || part.ends_with(LINK) { Err(Errno::EINVAL) } else { Ok(()) }
}

impl BucketFs {
    /// A place for a new name in a folder.
    pub(crate) fn place(
        &self,
        folder: &Node,
        name: &str,
        suffix: &str,
    ) -> Result<(Place, Arc<str>), Errno> {
        // Buckets are made elsewhere.
        if self.bucket.has_buckets(&folder.key) {
            return Err(Errno::EPERM);
        }
        // What is mounted may be a folder of the bucket.
        let (_, rest) = self.bucket.url().split_once("://").unwrap_or_default();
        let (_, prefix) = rest.split_once('/').unwrap_or_default();
        let longest = LONGEST_KEY + self.bucket.bucket_of(&folder.key).len();
        check_name(&folder.key, name, longest.saturating_sub(prefix.len()))?;
        let key = key(&folder.key, name, suffix).ok_or(Errno::EINVAL)?;
        Ok((Place { folder: folder.key.clone(), name: name.into() }, key))
    }

    /// Makes a file, or opens the one that is there.
    pub(crate) fn create(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        (is_new, truncates): (bool, bool),
        by: &By,
    ) -> Result<(FileAttr, u64), Errno> {
        let writing = self.writing()?;
        let name = name.to_str().ok_or(Errno::EINVAL)?;
        let folder = self.folder(parent)?;
        if let Some(kind) = self.kind_of(parent.0, &folder, name)? {
            if is_new {
                return Err(Errno::EEXIST);
            }
            let (number, node) = self.tree.lookup(parent.0, name, kind).ok_or(Errno::ESTALE)?;
            let handle = self.open_draft(number, &node, truncates, by.thread);
            let handle = handle.inspect_err(|_| self.tree.forget(number, 1))?;
            return Ok((self.attributes(number, &self.node(INodeNo(number))?), handle));
        }
        let target = self.place(&folder, name, "")?;
        let attributes = self.new_attributes(&folder, mode, FileType::RegularFile, by);
        let new = || {
            let (staging, url) = (&writing.staging, &writing.url);
            Draft::new(staging, url, target.clone(), attributes.clone())
        };
        // What is kept only to be read gives way.
        let draft = new().or_else(|error| match errno(&error) {
            Errno::ENOSPC if self.make_room(1) == Ok(true) => new(),
            _ => Err(error),
        });
        let draft = self.or_failed(draft)?;
        writing.add(&draft);
        draft.open(true);
        writing.changes.set(&folder.key, name, Some(Kind::Draft(draft.clone())));
        writing.touch_folder(&folder.key);
        let kind = Kind::Draft(draft.clone());
        let (number, node) = self.tree.lookup(parent.0, name, kind).ok_or(Errno::ESTALE)?;
        let handle = writing.open_handle(&draft, Some(by.thread));
        Ok((self.attributes(number, &node), handle))
    }

    /// The attributes of what somebody makes in a folder, as far as they are not the usual ones.
    fn new_attributes(&self, folder: &Node, mode: u32, of: FileType, by: &By) -> Attributes {
        let Settings { uid, gid, umask, has_makers_uid, has_makers_gid, .. } = self.settings;
        let folder = self.known_attributes(folder);
        // A folder may hand its group down, and this to the folders in it (inode(7)).
        let hands_down = folder.mode.is_some_and(|mode| mode & Mode::SGID.bits() != 0);
        let group = match hands_down {
            true => folder.gid.unwrap_or(gid),
            false if has_makers_gid => by.gid,
            false => gid,
        };
        let owner = if has_makers_uid { by.uid } else { uid };
        let unless = |usual: u32, own: u32| (own != usual).then_some(own);
        let mode = mode & 0o7777 & !umask;
        let mode = match of {
            FileType::Directory if hands_down => Some(mode | Mode::SGID.bits()),
            FileType::Directory => unless(FOLDER_MODE & !umask, mode),
            FileType::RegularFile => unless(FILE_MODE & !umask, mode),
            _ => None,
        };
        let (uid, gid) = (unless(uid, owner), unless(gid, group));
        Attributes { mode, uid, gid, ..Attributes::default() }
    }

    /// Opens a draft, or a file that becomes one.
    pub(crate) fn open_draft(
        &self,
        number: u64,
        node: &Node,
        truncates: bool,
        thread: u32,
    ) -> Result<u64, Errno> {
        let draft = self.pin(number, node)?;
        let emptied = self.keep_promised(&draft).and_then(|()| {
            match truncates && (draft.size() > 0 || draft.lacks_bytes()) {
                true => self.or_failed(draft.empty()),
                false => Ok(()),
            }
        });
        if let Err(error) = emptied {
            let left = draft.close(true);
            self.was_released(draft, left);
            return Err(error);
        }
        Ok(self.writing()?.open_handle(&draft, Some(thread)))
    }

    /// Stores what was promised of a draft, before it is changed.
    fn keep_promised(&self, draft: &Arc<Draft>) -> Result<(), Errno> {
        if !draft.is_promised() {
            return Ok(());
        }
        self.or_failed(self.writing()?.storer.store(draft))
    }

    /// Opens a file to read it, if it is a draft.
    pub(crate) fn read_draft(&self, number: u64) -> Result<Option<u64>, Errno> {
        let writing = self.writing()?;
        let _turning = lock(&writing.turning);
        let Kind::Draft(draft) = self.node(INodeNo(number))?.kind else { return Ok(None) };
        if draft.is_superseded() {
            return Err(Errno::ESTALE);
        }
        draft.open(false);
        Ok(Some(writing.open_handle(&draft, None)))
    }

    /// The draft that a file is from now on, which has a handle more for who writes.
    fn pin(&self, number: u64, node: &Node) -> Result<Arc<Draft>, Errno> {
        let writing = self.writing()?;
        match &node.kind {
            Kind::Draft(_) => {}
            Kind::Folder => return Err(Errno::EISDIR),
            Kind::Link(_) => return Err(Errno::ELOOP),
            Kind::File(_) => {}
        }
        let attributes = self.attributes_of(node)?;
        let _turning = writing.turn(number);
        // It may have become another meanwhile, or have got another name.
        let node = self.node(INodeNo(number))?;
        let version = match &node.kind {
            Kind::Draft(draft) if draft.is_superseded() => return Err(Errno::ESTALE),
            Kind::Draft(draft) => {
                draft.open(true);
                return Ok(draft.clone());
            }
            Kind::File(_) if self.files.is_passed_through(number) => return Err(Errno::ETXTBSY),
            Kind::File(_) if self.tree.number(node.parent, &node.name) != Some(number) => {
                return Err(Errno::ESTALE);
            }
            Kind::File(version) => version.clone(),
            Kind::Folder | Kind::Link(_) => return Err(Errno::ESTALE),
        };
        let modified = self.attributes(number, &node).mtime;
        let folder = node.key.rfind('/').map_or("", |end| &node.key[..=end]);
        let place = Place { folder: folder.into(), name: node.name.clone() };
        let reading = self.or_failed(writing.storer.open(&node.key, &version))?;
        let target = (place.clone(), node.key.clone());
        let of = (version, modified);
        let (staging, url) = (&writing.staging, &writing.url);
        let draft = Draft::of_object(staging, url, target, of, attributes, reading);
        let draft = self.or_failed(draft)?;
        writing.add(&draft);
        draft.open(true);
        self.tree.set(number, Kind::Draft(draft.clone()));
        writing.changes.set(&place.folder, &place.name, Some(Kind::Draft(draft.clone())));
        Ok(draft)
    }

    /// Changes a file as if a program had it open for that. What is not stored of attributes alone
    /// is not changed.
    fn alter(
        &self,
        number: u64,
        node: &Node,
        alter: impl FnOnce(&Arc<Draft>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let draft = self.pin(number, node)?;
        let writing = self.writing()?;
        let before = draft.attributes();
        let altered = alter(&draft);
        let after = draft.attributes();
        let left = draft.close(true);
        let settled = altered.and_then(|()| {
            if draft.has_new_bytes() {
                return self.settle(&draft);
            }
            let stored = self.or_failed(writing.storer.store(&draft));
            stored.inspect_err(|error| {
                draft.undo_change(before, &after);
                let is_replaced = matches!(*error, Errno::ESTALE | Errno::ENOENT);
                let stored = draft.stored().filter(|_| is_replaced);
                if stored.is_some_and(|stored| draft.supersede(&draft.key(), &stored)) {
                    let place = draft.place();
                    self.look_again(node.parent, &place.folder, &place.name);
                }
            })
        });
        self.was_released(draft, left);
        settled
    }

    /// Has the store say what has a name, whatever was known of it.
    pub(crate) fn look_again(&self, parent: u64, folder: &str, name: &str) {
        if let Ok(writing) = self.writing() {
            writing.changes.forget(folder, name);
        }
        self.tree.outdate(parent);
    }

    /// Does what is promised of a draft that was changed without a handle, if nobody writes it.
    pub(crate) fn settle(&self, draft: &Arc<Draft>) -> Result<(), Errno> {
        if draft.is_dirty() && !draft.has_writers() { self.keep_promise(draft) } else { Ok(()) }
    }

    /// Sets size, permissions and times.
    pub(crate) fn set_attributes(&self, number: u64, wanted: &Wanted) -> Result<(), Errno> {
        let _still = self.still();
        let node = self.node(INodeNo(number))?;
        self.writing()?;
        let is_file = matches!(node.kind, Kind::File(_) | Kind::Draft(_));
        if *wanted == Wanted::default() {
            return Ok(());
        }
        if !is_file {
            if wanted.size.is_some() {
                return Err(Errno::EISDIR);
            }
            self.change_unwritten(number, &node, |attributes| wanted.set(attributes))?;
            if wanted.mtime.is_some() {
                self.writing()?.end_touch(&node.key);
            }
            return Ok(());
        }
        self.alter(number, &node, |draft| {
            if let Some(size) = wanted.size {
                self.keep_promised(draft)?;
                self.or_failed(draft.set_size(size))?;
            }
            self.or_failed(draft.change(|attributes| {
                if wanted.uid.or(wanted.gid).is_some() || wanted.size.is_some() {
                    attributes.end_privileges();
                }
                wanted.set(attributes);
            }))
        })
    }

    /// Changes the attributes of a file.
    pub(crate) fn change(
        &self,
        number: u64,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<(), Errno> {
        let _still = self.still();
        let node = self.node(INodeNo(number))?;
        self.writing()?;
        match &node.kind {
            Kind::Folder | Kind::Link(_) => self.change_unwritten(number, &node, change),
            Kind::File(_) | Kind::Draft(_) => {
                self.alter(number, &node, |draft| self.or_failed(draft.change(change)))
            }
        }
    }

    /// Changes the attributes of a folder, whose mark has them, or of a link.
    fn change_unwritten(
        &self,
        number: u64,
        node: &Node,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<(), Errno> {
        let writing = self.writing()?;
        let bucket = writing.storer.bucket();
        let before = self.attributes_of(node)?;
        let mut attributes = before.clone();
        change(&mut attributes);
        if attributes == before {
            return Ok(());
        }
        attributes.touch();
        let Kind::Link(version) = &node.kind else {
            // The mark that has them is new, and the folder is not.
            let modified = self.attributes(number, node).mtime;
            let mut kept = attributes.clone();
            if kept.mtime.is_none() {
                kept.set_modified(modified);
            }
            let metadata = kept.metadata(FileType::Directory).ok_or(Errno::ENOSPC)?;
            // The folder that is mounted has no mark, and no bucket has one.
            if !self.bucket.is_top(&node.key) {
                let (any, nothing) = (Condition::Anything, Bytes::new());
                self.or_failed(bucket.put(&node.key, nothing, (&metadata, &mark()), &any))?;
            }
            writing.know_folder(&node.key, attributes);
            return Ok(());
        };
        let metadata = attributes.metadata(FileType::Symlink).ok_or(Errno::ENOSPC)?;
        let metadata = Some((&metadata, &*mark()));
        let copied = bucket.copy((&node.key, version), &node.key, metadata, &Condition::Anything);
        let tag = self.or_failed(copied)?;
        let version = ObjectVersion { tag, modified: None, ..version.clone() };
        writing.know(&node.key, &version, attributes, None);
        let folder = self.tree.node(node.parent).ok_or(Errno::ESTALE)?;
        writing.changes.set(&folder.key, &node.name, Some(Kind::Link(version.clone())));
        self.tree.set(number, Kind::Link(version));
        Ok(())
    }

    /// Notes that a file or a link that the kernel knows is another version of an object from now
    /// on, with the same bytes.
    pub(crate) fn becomes(
        &self,
        number: u64,
        key: &Arc<str>,
        version: &ObjectVersion,
        kind: Kind,
    ) -> Result<()> {
        let open = || Ok(Reading::new(self.bucket.open(key, version)?, &self.fetcher));
        self.files.replace(number, (key.clone(), version.clone()), open)?;
        self.tree.set(number, kind);
        Ok(())
    }

    /// Whether a number is one of a draft.
    pub(crate) fn is_draft(&self, number: Option<u64>) -> bool {
        let node = number.and_then(|number| self.tree.node(number));
        node.is_some_and(|node| node.kind.draft().is_some())
    }

    pub(crate) fn remove_file(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let writing = self.writing()?;
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let folder = self.folder(parent)?;
        let kind = self.kind_of(parent.0, &folder, name)?.ok_or(Errno::ENOENT)?;
        let key = key(&folder.key, name, kind.suffix()).ok_or(Errno::ENOENT)?;
        let bucket = writing.storer.bucket();
        let number = self.tree.number(parent.0, name);
        let _closed = writing.keep_closed(number);
        // What another program has put there stays, and is seen from now on.
        let mut is_other = false;
        match &kind {
            Kind::Folder => return Err(Errno::EISDIR),
            Kind::File(_) | Kind::Link(_) => {
                // Somebody may have opened it to write it just now.
                if self.is_draft(number) {
                    return Err(Errno::ESTALE);
                }
                self.or_failed(bucket.remove(&key, &Condition::Anything))?;
            }
            Kind::Draft(draft) => {
                let held = draft.hold_to_remove();
                let removed = writing.object_of(draft).and_then(|object| match &object {
                    Some(_) => bucket.remove(&key, &Condition::still(object.as_ref())),
                    None => Ok(()),
                });
                match removed {
                    Ok(()) => is_other = draft.is_unsure(),
                    Err(error) if errno(&error) == Errno::ESTALE => is_other = true,
                    Err(error) => {
                        held.stays();
                        // What was to be stored meanwhile was not.
                        self.was_released(draft.clone(), draft.handles());
                        return Err(self.failed(&error));
                    }
                }
                writing.storer.give_up(&key, held.unlink());
            }
        }
        self.is_gone(parent.0, &folder, name);
        if is_other {
            self.look_again(parent.0, &folder.key, name);
        }
        Ok(())
    }

    pub(crate) fn is_gone(&self, parent: u64, folder: &Node, name: &str) {
        if let Ok(writing) = self.writing() {
            writing.changes.set(&folder.key, name, None);
            writing.touch_folder(&folder.key);
        }
        self.tree.remove(parent, name);
        self.keep_folder(folder);
    }

    /// Notes that a folder goes on to be one, even if there is no object in it any more.
    pub(crate) fn keep_folder(&self, folder: &Node) {
        let is_top = self.bucket.is_top(&folder.key);
        let parent = self.tree.node(folder.parent).filter(|_| !is_top);
        if let (Some(parent), Ok(writing)) = (parent, self.writing()) {
            writing.changes.set(&parent.key, &folder.name, Some(Kind::Folder));
        }
    }

    pub(crate) fn make_folder(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        by: &By,
    ) -> Result<(u64, FileAttr), Errno> {
        let writing = self.writing()?;
        let name = name.to_str().ok_or(Errno::EINVAL)?;
        let folder = self.folder(parent)?;
        if self.kind_of(parent.0, &folder, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let (_, key) = self.place(&folder, name, Kind::Folder.suffix())?;
        let attributes = self.new_attributes(&folder, mode, FileType::Directory, by);
        let metadata = attributes.metadata(FileType::Directory).ok_or(Errno::ENOSPC)?;
        // Another program may have made it, which is as well.
        let (nothing, any) = (Bytes::new(), Condition::Anything);
        self.or_failed(writing.storer.bucket().put(&key, nothing, (&metadata, &mark()), &any))?;
        writing.know_folder(&key, attributes);
        writing.touch_folder(&key);
        writing.touch_folder(&folder.key);
        writing.changes.set(&folder.key, name, Some(Kind::Folder));
        self.found(parent.0, name, Kind::Folder)
    }

    pub(crate) fn remove_folder(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let writing = self.writing()?;
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let folder = self.folder(parent)?;
        match self.kind_of(parent.0, &folder, name)? {
            None => return Err(Errno::ENOENT),
            Some(Kind::Folder) => {}
            Some(_) => return Err(Errno::ENOTDIR),
        }
        if self.bucket.has_buckets(&folder.key) {
            return Err(Errno::EPERM);
        }
        let key = key(&folder.key, name, Kind::Folder.suffix()).ok_or(Errno::ENOENT)?;
        if writing.changes.has_any(&key) || self.or_failed(self.bucket.has_any(&key))? {
            return Err(Errno::ENOTEMPTY);
        }
        self.or_failed(writing.storer.bucket().remove(&key, &Condition::Anything))?;
        writing.forget_known(&key);
        writing.changes.forget_below(&key);
        self.is_gone(parent.0, &folder, name);
        Ok(())
    }

    pub(crate) fn make_link(
        &self,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        by: &By,
    ) -> Result<(u64, FileAttr), Errno> {
        let writing = self.writing()?;
        let name = name.to_str().ok_or(Errno::EINVAL)?;
        let target = target.to_str().ok_or(Errno::EINVAL)?.to_owned();
        let folder = self.folder(parent)?;
        if self.kind_of(parent.0, &folder, name)?.is_some() {
            return Err(Errno::EEXIST);
        }
        let size = target.len() as u64;
        let (_, key) = self.place(&folder, name, LINK)?;
        let attributes = self.new_attributes(&folder, LINK_MODE, FileType::Symlink, by);
        let metadata = attributes.metadata(FileType::Symlink).ok_or(Errno::ENOSPC)?;
        let condition = Condition::Nothing;
        let bucket = writing.storer.bucket();
        let put = bucket.put(&key, target.into(), (&metadata, &mark()), &condition);
        let version = ObjectVersion { size, tag: self.or_failed(put)?, modified: None };
        writing.know(&key, &version, attributes, None);
        let kind = Kind::Link(version);
        writing.touch_folder(&folder.key);
        writing.changes.set(&folder.key, name, Some(kind.clone()));
        self.found(parent.0, name, kind)
    }
}

impl Wanted {
    fn set(&self, attributes: &mut Attributes) {
        attributes.uid = self.uid.or(attributes.uid);
        attributes.gid = self.gid.or(attributes.gid);
        if let Some(mode) = self.mode {
            attributes.mode = Some(mode & 0o7777);
        }
        if let Some(mtime) = self.mtime {
            attributes.set_modified(mtime);
        }
    }
}
