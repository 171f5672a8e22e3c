//! The file system that the kernel talks to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BackingId, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr,
    Request,
};
use thalweg_io::open::{ObjectVersion, counts_of_urls};
use thalweg_io::{Error, Result};

use crate::ahead::Ahead;
use crate::bucket::{Bucket, Kind};
use crate::errors::errno;
use crate::fetcher::Fetcher;
use crate::files::Files;
use crate::status::{Counters, METRICS, STATUS, Status};
use crate::tree::{Listing, Node, ROOT, Tree, entry};

/// Reads that the kernel sends ahead at the same time, over all files.
const MOST_BACKGROUND: u16 = 64;
/// Bytes of a block that programs are told to read by (`st_blksize`).
const BLOCK: u32 = 1 << 20;
/// The size of the file system that `df` shows, for an object store has none (as of Mountpoint).
const TOTAL: u64 = 1 << 50;

/// How the files look, and what the kernel is told of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The bits that files and folders do not have.
    pub(crate) umask: u32,
    pub(crate) ttl: Duration,
    pub(crate) passes_through: bool,
    pub(crate) warn: fn(&str),
}

/// The objects of a bucket as files.
pub(crate) struct BucketFs {
    bucket: Bucket,
    settings: Settings,
    tree: Tree,
    files: Files,
    fetcher: Arc<Fetcher>,
    ahead: Ahead,
    folders: Mutex<HashMap<u64, Listing>>,
    next: AtomicU64,
    started: SystemTime,
}

impl BucketFs {
    pub(crate) fn new(bucket: Bucket, fetcher: Arc<Fetcher>, settings: Settings) -> Self {
        Self {
            bucket,
            settings,
            tree: Tree::new(settings.ttl),
            files: Files::new(fetcher.clone()),
            fetcher,
            ahead: Ahead::default(),
            folders: Mutex::default(),
            next: AtomicU64::new(1),
            started: SystemTime::now(),
        }
    }

    fn counters(&self) -> &Counters {
        &self.fetcher.counters
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<u64, Listing>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an error for the kernel. The error itself is written down.
    fn failed(&self, error: &Error) -> Errno {
        let text = error.to_string();
        (self.settings.warn)(&text);
        self.counters().failed(text);
        errno(error)
    }

    fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        self.tree.node(number.0).ok_or(Errno::ESTALE)
    }

    fn folder(&self, number: INodeNo) -> Result<Node, Errno> {
        let node = self.node(number)?;
        if node.kind == Kind::Folder { Ok(node) } else { Err(Errno::ENOTDIR) }
    }

    /// The entries of a folder: those that are known, or those of a new list.
    fn listing(&self, number: u64, node: &Node) -> Result<Listing, Errno> {
        if let Some(listing) = self.tree.listing(number) {
            return Ok(listing);
        }
        let since = Instant::now();
        let entries = self.bucket.list(&node.key).map_err(|error| self.failed(&error))?;
        Ok(self.tree.keep(number, since, entries))
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<(u64, FileAttr), Errno> {
        let folder = self.folder(parent)?;
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let kind = match self.tree.listing(parent.0) {
            Some(listing) => entry(&listing, name).map(|found| found.kind.clone()),
            None => self.bucket.find(&folder.key, name).map_err(|error| self.failed(&error))?,
        };
        let kind = kind.ok_or(Errno::ENOENT)?;
        let (number, node) = self.tree.lookup(parent.0, name, kind).ok_or(Errno::ESTALE)?;
        Ok((number, self.attributes(number, &node)))
    }

    fn attributes(&self, number: u64, node: &Node) -> FileAttr {
        let (kind, perm, nlink, size, modified) = match node.version() {
            Some(version) => {
                let ObjectVersion { size, modified, .. } = version;
                (FileType::RegularFile, 0o444, 1, *size, *modified)
            }
            None => (FileType::Directory, 0o555, 2, 0, None),
        };
        let since = |seconds: i64| {
            let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            SystemTime::UNIX_EPOCH + seconds
        };
        let time = modified.map_or(self.started, since);
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm: (perm & !self.settings.umask) as u16,
            nlink,
            uid: self.settings.uid,
            gid: self.settings.gid,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        }
    }

    fn open_file(
        &self,
        number: INodeNo,
        flags: OpenFlags,
        reply: &ReplyOpen,
    ) -> Result<Option<Arc<BackingId>>, Errno> {
        let node = self.node(number)?;
        let Some(version) = node.version() else { return Err(Errno::EISDIR) };
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return Err(Errno::EROFS);
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
        Ok(backing)
    }

    /// Fetches the small files that will probably be opened after a file.
    fn fetch_next(&self, node: &Node) {
        let listing = self.tree.listing(node.parent);
        let Some((listing, folder)) = listing.zip(self.tree.node(node.parent)) else { return };
        for next in self.ahead.opened(node.parent, &listing, &node.name) {
            let key: Arc<str> = format!("{}{}", folder.key, next.part).into();
            let open = || self.bucket.open(&key, &next.version);
            // Whoever opens it gets the error.
            let _ = self.files.expect((key.clone(), next.version.clone()), open);
        }
    }

    /// The status of the mount.
    pub(crate) fn status(&self) -> Status {
        let (open, passed) = self.files.count();
        let (in_flight, oldest) = self.fetcher.in_flight();
        let memory = &self.fetcher.memory;
        let cache = self.bucket.options().cache.as_ref();
        let cache = cache.map(|cache| (cache.folder().display().to_string(), cache.limit()));
        let (cache_folder, cache_limit_bytes) = cache.unzip();
        let store = counts_of_urls();
        Status {
            source: thalweg_io::urls::shown(self.bucket.url()),
            open_files: open as u64,
            open_files_passed_through: passed as u64,
            nodes: self.tree.len() as u64,
            in_flight: in_flight as u64,
            in_flight_oldest_s: oldest.unwrap_or_default().as_secs_f64(),
            waiting: self.fetcher.waiting() as u64,
            memory_bytes: memory.used(),
            memory_limit_bytes: memory.limit(),
            requests: store.requests,
            retries: store.retries,
            retries_refused: store.reasons.refused,
            retries_unconnected: store.reasons.unconnected,
            retries_late: store.reasons.late,
            retries_broken: store.reasons.broken,
            hedges: store.hedges,
            bytes_fetched: store.bytes,
            cache_folder,
            cache_limit_bytes,
            ..self.counters().status()
        }
    }

    fn attribute(&self, number: INodeNo, name: &OsStr) -> Option<String> {
        if number.0 != ROOT {
            let node = self.tree.node(number.0)?;
            return match name.to_str()? {
                "user.thalweg.key" => Some(node.key.to_string()),
                "user.thalweg.etag" => Some(node.version()?.tag.clone()),
                _ => None,
            };
        }
        match name.to_str()? {
            STATUS => serde_json::to_string(&self.status()).ok(),
            METRICS => Some(self.status().metrics()),
            _ => None,
        }
    }
}

impl Filesystem for BucketFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not have, it does without.
        let _ = config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let stacks = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
        self.settings.passes_through &= stacks && config.set_max_stack_depth(1).is_ok();
        let _ = config.set_max_background(MOST_BACKGROUND);
        let _ = config.set_max_write(1 << 20);
        Ok(())
    }

    fn destroy(&mut self) {
        self.fetcher.end();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(parent, name) {
            Ok((_, attributes)) => reply.entry(&self.settings.ttl, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.tree.forget(number.0, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.node(number) {
            Ok(node) => reply.attr(&self.settings.ttl, &self.attributes(number.0, &node)),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        // A number belongs to one version, so what the kernel has of it stays right.
        let handle = FileHandle(number.0);
        match self.open_file(number, flags, &reply) {
            Ok(None) => reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE),
            Ok(Some(backing)) => {
                self.counters().passed_through();
                reply.opened_passthrough(handle, FopenFlags::empty(), &backing);
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
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.files.close(number.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let listing = self.folder(number).and_then(|node| self.listing(number.0, &node));
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
                Kind::File(_) => FileType::RegularFile,
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
        match self.attribute(number, name) {
            None => reply.error(Errno::ENODATA),
            Some(text) => give(reply, size, &text),
        }
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = match self.tree.node(number.0) {
            Some(Node { kind: Kind::File(_), .. }) => "user.thalweg.key\0user.thalweg.etag\0",
            _ => "",
        };
        give(reply, size, names);
    }
}

/// Gives a program extended attributes, or their length if it has room for nothing (`size` 0).
fn give(reply: ReplyXattr, size: u32, text: &str) {
    match size as usize {
        0 => reply.size(text.len() as u32),
        size if text.len() > size => reply.error(Errno::ERANGE),
        _ => reply.data(text.as_bytes()),
    }
}
