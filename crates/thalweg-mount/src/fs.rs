//! The file system that the kernel talks to.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    BackingId, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use thalweg_io::Result;

use crate::bucket::Kind;
use crate::change::{By, Wanted};
use crate::status::FLUSH;
use crate::tree::{Node, ROOT};
use crate::view::{BLOCK, BucketFs};
use crate::writing::DRAFT;

/// Reads that the kernel sends ahead at the same time, over all files.
const MOST_BACKGROUND: u16 = 64;
/// The same, and writes, where the kernel writes back.
const MOST_WRITTEN_BACK: u16 = 16;
/// The size of the file system that `df` shows, for an object store has none (as of Mountpoint).
const TOTAL: u64 = 1 << 50;

impl BucketFs {
    fn open_file(
        &self,
        number: INodeNo,
        flags: OpenFlags,
        thread: u32,
        reply: &ReplyOpen,
    ) -> Result<Opened, Errno> {
        let node = self.node(number)?;
        let version = match &node.kind {
            Kind::File(version) => version,
            Kind::Folder => return Err(Errno::EISDIR),
            Kind::Link(_) => return Err(Errno::ELOOP),
            Kind::Draft(_) if flags.acc_mode() == OpenAccMode::O_RDONLY => {
                return match self.read_draft(number.0)? {
                    Some(handle) => Ok(Opened::Draft(handle)),
                    // It has become a file meanwhile.
                    None => self.open_file(number, flags, thread, reply),
                };
            }
            Kind::Draft(_) => {
                return self
                    .open_draft(number.0, &node, truncates(flags), thread)
                    .map(Opened::Draft);
            }
        };
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return self.open_draft(number.0, &node, truncates(flags), thread).map(Opened::Draft);
        }
        let object = (node.key.clone(), version.clone());
        let open = || self.bucket.open(&node.key, version);
        let pass = |copy: &std::fs::File| {
            let refused = io::Error::from(io::ErrorKind::Unsupported);
            if self.settings.passes_through { reply.open_backing(copy) } else { Err(refused) }
        };
        let backing = self.files.open(number.0, object, open, pass);
        let backing = backing.map_err(|error| self.failed(&error))?;
        self.fetch_next(&node);
        Ok(Opened::Object(backing))
    }

    /// Whether this sets no more than the time that a file has. A kernel that writes back tells it
    /// after it has written, and after other changes.
    fn is_known_time(&self, number: INodeNo, wanted: &Wanted) -> bool {
        let Some(mtime) = wanted.mtime.filter(|_| self.settings.writes_back) else { return false };
        let Ok(node) = self.node(number) else { return false };
        *wanted == (Wanted { mtime: Some(mtime), ..Wanted::default() })
            && (self.attributes(number.0, &node).mtime == mtime
                || node.kind.draft().is_some_and(|draft| draft.was_written(mtime)))
    }

    fn entry(&self, made: Result<(u64, FileAttr), Errno>, reply: ReplyEntry) {
        match made {
            Ok((_, attributes)) => reply.entry(&self.settings.ttl, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }
}

impl Filesystem for BucketFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not have, it does without.
        if !self.settings.asks {
            let _ = config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS);
        }
        if self.writing.is_some() {
            // Without it, opening a file to replace it would be two operations.
            config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC).map_err(|_| {
                io::Error::other("this kernel cannot open and truncate files in one operation")
            })?;
            let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
        }
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        if self.writing.is_some() && self.settings.writes_back {
            let _ = config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE);
            // Kernels have either.
            self.settings.passes_through = false;
        }
        let stacks = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
        self.settings.passes_through &= stacks && config.set_max_stack_depth(1).is_ok();
        // Writes that wait for room leave threads for the rest.
        let most = if self.settings.writes_back { MOST_WRITTEN_BACK } else { MOST_BACKGROUND };
        let _ = config.set_max_background(most);
        let _ = config.set_max_write(1 << 20);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _still = self.still();
        match self.find(parent, name) {
            Ok((_, attributes)) => reply.entry(&self.settings.ttl, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.tree.forget(number.0, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let node = self.node(number).and_then(|node| {
            if self.settings.asks {
                self.attributes_of(&node)?;
            }
            Ok(node)
        });
        match node {
            Ok(node) => reply.attr(&self.settings.ttl, &self.attributes(number.0, &node)),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        // A number belongs to one version, so what the kernel has of it stays right.
        let handle = FileHandle(number.0);
        let still = self.still();
        let opened = self.open_file(number, flags, request.pid(), &reply);
        drop(still);
        match opened {
            Ok(Opened::Object(None)) => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
            Ok(Opened::Object(Some(backing))) => {
                self.counters().passed_through();
                reply.opened_passthrough(handle, FopenFlags::empty(), &backing);
            }
            Ok(Opened::Draft(handle)) => {
                reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let node = self.tree.node(number.0);
        if let Some(Node { kind: Kind::Draft(draft), .. }) = node {
            let range = offset..offset.saturating_add(u64::from(size));
            return match draft.read(range) {
                Ok(bytes) => {
                    self.counters().read(bytes.len() as u64);
                    reply.data(&bytes);
                }
                Err(error) => reply.error(self.failed(&error)),
            };
        }
        let Some(reading) = self.files.reading(number.0) else { return reply.error(Errno::EBADF) };
        let mut reply = Some(reply);
        let give = |bytes: &[u8]| {
            self.counters().read(bytes.len() as u64);
            if let Some(reply) = reply.take() {
                reply.data(bytes);
            }
        };
        let range = offset..offset.saturating_add(u64::from(size));
        if let Err(error) = reading.read(range, give) {
            let errno = self.failed(&error);
            // The object was replaced after it was listed.
            if let Some(node) = self.tree.node(number.0).filter(|_| errno == Errno::ESTALE) {
                self.tree.outdate(node.parent);
            }
            if let Some(reply) = reply {
                reply.error(errno);
            }
        }
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        match handle.0 & DRAFT {
            0 => self.files.close(number.0),
            _ => self.release_handle(handle.0),
        }
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let still = self.still();
        let listing = self.folder(number).and_then(|node| self.listing(number.0, &node));
        drop(still);
        match listing {
            Ok(listing) => {
                let handle = self.next.fetch_add(1, Ordering::Relaxed);
                self.folders().insert(handle, listing);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(listing) = self.folders().get(&handle.0).cloned() else {
            return reply.error(Errno::EBADF);
        };
        let parent = self.tree.node(number.0).map_or(ROOT, |node| node.parent);
        let dots = [(number.0, "."), (parent, "..")];
        for (at, (number, name)) in (0..).zip(dots).skip(offset as usize) {
            if reply.add(INodeNo(number), at + 1, FileType::Directory, name) {
                return reply.ok();
            }
        }
        let skip = offset.saturating_sub(2) as usize;
        for (at, found) in (2..).zip(listing.iter()).skip(skip) {
            let kind = match found.kind {
                Kind::Folder => FileType::Directory,
                Kind::File(_) | Kind::Draft(_) => FileType::RegularFile,
                Kind::Link(_) => FileType::Symlink,
            };
            // The kernel looks the name up before it uses a number.
            if reply.add(INodeNo(u64::MAX), at + 1, kind, &found.name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let Some(listing) = self.folders().get(&handle.0).cloned() else {
            return reply.error(Errno::EBADF);
        };
        let Ok(node) = self.node(number) else { return reply.error(Errno::ESTALE) };
        for (at, name) in (0..).zip([".", ".."]).skip(offset as usize) {
            // The kernel makes no lookup of these two.
            let number = if at == 0 { number.0 } else { node.parent };
            let attributes = self.attributes(number, &Node { kind: Kind::Folder, ..node.clone() });
            let ino = INodeNo(number);
            if reply.add(ino, at + 1, name, &self.settings.ttl, &attributes, Generation(0)) {
                return reply.ok();
            }
        }
        let skip = offset.saturating_sub(2) as usize;
        for (at, found) in (2..).zip(listing.iter()).skip(skip) {
            let known = self.tree.lookup(number.0, &found.name, found.kind.clone());
            let Some((child, node)) = known else { continue };
            let attributes = self.attributes(child, &node);
            let ino = INodeNo(child);
            if reply.add(ino, at + 1, &found.name, &self.settings.ttl, &attributes, Generation(0)) {
                // It was not told.
                self.tree.forget(child, 1);
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.folders().remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = TOTAL / u64::from(BLOCK);
        reply.statfs(blocks, blocks, blocks, u64::MAX, u64::MAX, BLOCK, 255, BLOCK);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if let Some(text) = self.attribute(number, name) {
            return give(reply, size, text.as_bytes());
        }
        let own = name.to_str().filter(|name| is_users(name)).ok_or(Errno::ENODATA);
        let value = own.and_then(|name| {
            let xattrs = self.attributes_of(&self.node(number)?)?.xattrs;
            xattrs.get(name).cloned().ok_or(Errno::ENODATA)
        });
        match value {
            Ok(value) => give(reply, size, &value),
            Err(error) => reply.error(error),
        }
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.node(number).and_then(|node| {
            let mut names = match node.kind {
                Kind::File(_) | Kind::Draft(_) => {
                    "user.thalweg.key\0user.thalweg.etag\0".to_owned()
                }
                Kind::Folder | Kind::Link(_) => String::new(),
            };
            for name in self.attributes_of(&node)?.xattrs.keys() {
                names += name;
                names.push('\0');
            }
            Ok(names)
        });
        match names {
            Ok(names) => give(reply, size, names.as_bytes()),
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        if number.0 == ROOT && name == FLUSH {
            return answer(self.flush_all(), reply);
        }
        let Some(name) = name.to_str().filter(|name| is_users(name)) else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        let node = self.node(number);
        let is_there =
            node.and_then(|node| Ok(self.attributes_of(&node)?.xattrs.contains_key(name)));
        let set = match is_there {
            Ok(true) if flags & XATTR_CREATE != 0 => Err(Errno::EEXIST),
            Ok(false) if flags & XATTR_REPLACE != 0 => Err(Errno::ENODATA),
            Err(error) => Err(error),
            Ok(_) => self.change(number.0, |attributes| {
                attributes.xattrs.insert(name.to_owned(), value.to_vec());
            }),
        };
        answer(set, reply);
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut was_there = false;
        let removed = self.change(number.0, |attributes| {
            let name = name.to_str().unwrap_or_default();
            was_there = attributes.xattrs.remove(name).is_some();
        });
        answer(removed.and(if was_there { Ok(()) } else { Err(Errno::ENODATA) }), reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let still = self.still();
        let open = OpenFlags(flags);
        let how = (is_new(open), truncates(open));
        let made = self.create(parent, name, mode, how, &By::of(request));
        drop(still);
        match made {
            Ok((attributes, handle)) => {
                let (ttl, handle) = (&self.settings.ttl, FileHandle(handle));
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(ttl, &attributes, Generation(0), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        // Devices, sockets and pipes have no bytes that a store could keep.
        if rustix::fs::FileType::from_raw_mode(mode) != rustix::fs::FileType::RegularFile {
            return reply.error(Errno::EPERM);
        }
        let still = self.still();
        let made = self.create(parent, name, mode, (true, false), &By::of(request));
        drop(still);
        match made {
            Ok((attributes, handle)) => {
                self.release_handle(handle);
                reply.entry(&self.settings.ttl, &attributes, Generation(0));
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_late = how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let written = self.write_at(handle.0, offset, data, is_late).and_then(|()| {
            match how.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                true => self.end_privileges(handle.0),
                false => Ok(()),
            }
        });
        match written {
            Ok(()) => {
                self.counters().wrote(data.len() as u64);
                reply.written(data.len() as u32);
            }
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        let thread = request.pid();
        let is_draft = handle.0 & DRAFT != 0;
        answer(if is_draft { self.flush_handle(handle.0, thread) } else { Ok(()) }, reply);
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(if handle.0 & DRAFT == 0 { Ok(()) } else { self.sync(handle.0) }, reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // What changes in a folder is in the store before the operation returns.
        reply.ok();
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mtime = mtime.map(|time| match time {
            TimeOrNow::SpecificTime(time) => time,
            TimeOrNow::Now => SystemTime::now(),
        });
        let wanted = Wanted { size, mode, mtime, uid, gid };
        let is_news = ctime.is_none() || atime.is_some() || !self.is_known_time(number, &wanted);
        let set = if is_news { self.set_attributes(number.0, &wanted) } else { Ok(()) };
        let set = set.and_then(|()| self.node(number));
        match set {
            Ok(node) => reply.attr(&self.settings.ttl, &self.attributes(number.0, &node)),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _still = self.still();
        answer(self.remove_file(parent, name), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let _still = self.still();
        self.entry(self.make_folder(parent, name, mode, &By::of(request)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _still = self.still();
        answer(self.remove_folder(parent, name), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _still = self.still();
        self.entry(self.make_link(parent, name, target, &By::of(request)), reply);
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.target(number) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        answer(self.rename_to((parent, name), (new_parent, new_name), flags), reply);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        // An object has one name.
        reply.error(Errno::EMLINK);
    }
}

/// Flags of `setxattr` (`linux/xattr.h`).
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// Whether extended attributes of a name are those of users, and not this program's own.
fn is_users(name: &str) -> bool {
    name.starts_with("user.") && !name.starts_with("user.thalweg.")
}

fn answer(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn truncates(flags: OpenFlags) -> bool {
    flags.0 & rustix::fs::OFlags::TRUNC.bits() as i32 != 0
}

fn is_new(flags: OpenFlags) -> bool {
    flags.0 & rustix::fs::OFlags::EXCL.bits() as i32 != 0
}

/// A file that was opened.
enum Opened {
    /// An object, and the copy that the kernel reads without the daemon, if it does.
    Object(Option<Arc<BackingId>>),
    /// A draft, by its handle.
    Draft(u64),
}

/// Gives a program extended attributes, or their length if it has room for nothing (`size` 0).
fn give(reply: ReplyXattr, size: u32, value: &[u8]) {
    match size as usize {
        0 => reply.size(value.len() as u32),
        size if value.len() > size => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}
