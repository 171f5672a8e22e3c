//! Mounting a bucket, and answering the kernel.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{getgid, getuid};
use thalweg_io::open::{Options, url_model};
use thalweg_io::pool::Background;
use thalweg_io::residency::cache_room;
use thalweg_io::urls::{is_in_bucket, shown};
use thalweg_io::{Error, Result};
use thalweg_object::Patience;

use crate::bucket::Bucket;
use crate::buckets::Buckets;
use crate::fetcher::Fetcher;
use crate::handles::WRITTEN_BACK;
use crate::kernel::{Forgetter, tell};
use crate::staging::{Staging, usual_folder};
use crate::storing::Storer;
use crate::view::{BucketFs, Settings};
use crate::writing::{Close, TakenOver, Unstored, Writing};

/// The memory of a mount for what it fetches ahead, unless its user says otherwise, in bytes.
pub const DEFAULT_MEMORY: u64 = 1 << 30;
/// The most of the memory of this process's control group (or machine) that the default takes.
const SHARE_OF_ROOM: u64 = 4;
/// The default takes this much even if there is less.
const LEAST_MEMORY: u64 = 64 << 20;
/// Threads that answer the kernel. One that waits for the store answers nothing else meanwhile.
const THREADS: usize = 32;
/// How much the kernel reads ahead. It sends requests of up to 1 MiB. A page fault of a program
/// that maps a file reads as much, too.
const READ_AHEAD_KIB: u32 = 1024;

/// What is wrong with a folder whose file system answers `ENOTCONN`, and what to do.
pub const ENDED: &str = "the program that was mounted here has ended: unmount the folder first \
                         (umount, or fusermount3 -u)";

/// What to mount, and how.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// The URL of a bucket, or of a prefix in it, or of all buckets (`s3://`).
    pub source: String,
    /// The folder where it is mounted.
    pub folder: PathBuf,
    /// How objects are read: with which cache and time-out.
    pub read: Options,
    /// Bytes of memory for what is fetched ahead, over all files. By default [`DEFAULT_MEMORY`], or
    /// a quarter of what this process may use if that is less.
    pub memory: Option<u64>,
    /// How long names, sizes and lists are taken for right. After it they are asked for again.
    pub ttl: Duration,
    /// Whether other users may read, too.
    pub allow_other: bool,
    /// The owner of the files; this process's by default.
    pub uid: Option<u32>,
    /// The group of the files; this process's by default.
    pub gid: Option<u32>,
    /// The permissions that files and folders do not have.
    pub umask: u32,
    /// Whether the kernel may read files that are complete in the cache without this program.
    pub passes_through: bool,
    /// How files are written; `None` if they can only be read.
    pub write: Option<WriteOptions>,
    /// Whether the kernel collects writes, so that programs need not wait for this one at each. A
    /// write that fails is told when the file is closed. Nothing is passed through then.
    pub writes_back: bool,
    /// Whether each lookup of a file asks for its permissions, times and extended attributes, as
    /// they are in the metadata of the object.
    pub asks: bool,
    /// Is told of each operation that fails.
    pub warn: fn(&str),
}

/// How files are written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// What is promised when a file is closed.
    pub close: Close,
    /// The folder where bytes wait until the store has them; by default one of the user's.
    pub staging: Option<PathBuf>,
    /// The most bytes there.
    pub limit: Option<u64>,
    /// Bytes of the file system that stay free.
    pub free: Option<u64>,
}

/// A mounted folder.
pub struct Mount {
    session: Session<BucketFs>,
    folder: PathBuf,
    fetcher: Arc<Fetcher>,
    writing: Option<Arc<Writing>>,
    warn: fn(&str),
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({})", self.folder.display())
    }
}

/// Unmounts a folder.
#[derive(Debug)]
pub struct Unmounter {
    session: SessionUnmounter,
    folder: PathBuf,
}

impl Unmounter {
    /// Unmounts. Programs that have files open keep them until they close them. Returns whether
    /// there are such.
    ///
    /// # Errors
    /// Those of the system.
    pub fn unmount(&mut self) -> io::Result<bool> {
        match self.session.unmount() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                rustix::mount::unmount(&self.folder, UnmountFlags::DETACH)?;
                Ok(true)
            }
            unmounted => unmounted.map(|()| false),
        }
    }
}

impl Mount {
    /// Mounts a bucket.
    ///
    /// # Errors
    /// [`Error::Usage`] for a source that is no bucket; [`Error::Io`] if the bucket cannot be
    /// listed, and if the system does not mount.
    pub fn new(options: MountOptions) -> Result<Self> {
        let MountOptions { source, folder, read, memory, ttl, .. } = options;
        check_source(&source)?;
        check_folder(&folder)?;
        if let Some(staging) = options.write.as_ref().and_then(staging_folder)
            && is_within(&staging, &folder)
        {
            let why = "the folder for staging (--staging) is in the folder that is mounted";
            return Err(Error::Usage(format!("{}: {why}", staging.display()).into()));
        }
        let limit = options.write.as_ref().and_then(|write| write.limit);
        if options.writes_back && limit.is_some_and(|limit| limit < 2 * WRITTEN_BACK) {
            let why = "writing back needs room for 128 MiB (--staging)";
            return Err(Error::Usage(why.into()));
        }
        let bucket = Arc::new(Bucket::new(&source, read));
        // A bucket that is not there, and wrong keys, show now.
        if !bucket.check()? {
            (options.warn)("these credentials may not list the buckets: each opens by its name");
        }
        let (model, _) = url_model(&source);
        let memory = memory.unwrap_or_else(default_memory);
        let settings = Settings {
            uid: options.uid.unwrap_or_else(|| getuid().as_raw()),
            gid: options.gid.unwrap_or_else(|| getgid().as_raw()),
            has_makers_uid: options.uid.is_none(),
            has_makers_gid: options.gid.is_none(),
            umask: options.umask,
            ttl,
            passes_through: options.passes_through,
            writes_back: options.writes_back,
            asks: options.asks,
            warn: options.warn,
        };
        let fetcher = Fetcher::new(&model, memory);
        let writing = options.write.as_ref();
        let writing = writing.map(|write| writing_to(&bucket, &fetcher, write, ttl, options.warn));
        let writing = writing.transpose()?;
        let (forgetter, forgotten) = Forgetter::new();
        let fs = BucketFs::new(bucket, fetcher.clone(), writing.clone(), forgetter, settings);
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(shown(&source)),
            MountOption::Subtype("thalweg".into()),
            if writing.is_some() { MountOption::RW } else { MountOption::RO },
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::NoAtime,
            MountOption::DefaultPermissions,
        ];
        config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session =
            Session::new(fs, &folder, &config).map_err(|error| refused(&folder, error))?;
        let notifier = session.notifier();
        let name: Arc<str> = folder.to_string_lossy().into();
        // It ends with the file system.
        Background::start("thalweg-forget", &name, move || tell(&notifier, &forgotten))?;
        // Not before it is mounted: what fails until here changes nothing.
        if let Some(writing) = &writing {
            writing.take_over().told.iter().for_each(|told| (options.warn)(told));
        }
        Ok(Self { session, folder, fetcher, writing, warn: options.warn })
    }

    /// What unmounts it.
    pub fn unmounter(&mut self) -> Unmounter {
        Unmounter { session: self.session.unmount_callable(), folder: self.folder.clone() }
    }

    /// Answers the kernel until the folder is unmounted, and then brings to the store what it does
    /// not have. Calls `ready` once it answers.
    ///
    /// # Errors
    /// [`Error::Io`] if the connection to the kernel breaks, and if something could not be brought
    /// to the store. It stays in the folder for staging then.
    pub fn run(self, ready: impl FnOnce() + Send + 'static) -> Result<()> {
        let name: Arc<str> = self.folder.to_string_lossy().into();
        let folder = self.folder;
        // It asks for the folder, which the threads below answer.
        let asking = Background::start("thalweg-mounted", &name, move || {
            raise_read_ahead(&folder);
            ready();
        })?;
        let ran = self.session.run();
        asking.wait();
        let staging = self.writing.as_ref().map(|writing| writing.staging.folder().to_owned());
        let staging = staging.unwrap_or_default().display().to_string();
        let left = self.writing.map_or(0, |writing| flush(&writing, self.warn));
        self.fetcher.end();
        match ran {
            // The kernel was just asking for something when it was unmounted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            ran => ran.map_err(|error| Error::io(&name, "answering the kernel for", error))?,
        }
        if left == 0 {
            return Ok(());
        }
        let files = if left == 1 { "file" } else { "files" };
        let why = format!("{left} {files} could not be stored, and stay in {staging}");
        Err(Error::io(&name, "unmounting", io::Error::other(why)))
    }
}

/// Fails if a URL is none of a bucket, of a folder in it, or of a service.
fn check_source(source: &str) -> Result<()> {
    let refuse = |why: &str| Err(Error::Usage(format!("{}: {why}", shown(source)).into()));
    if !is_in_bucket(source) {
        return refuse("only buckets can be mounted (s3://bucket/folder, s3://, gs://, az://)");
    }
    let (_, path) = source.split_once("://").unwrap_or_default();
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '$';
    let is_right = |c: char| is_first(c) || "-_.".contains(c);
    let is_bucket = bucket.starts_with(is_first) && bucket.chars().all(is_right);
    if !path.is_empty() && !is_bucket {
        return refuse("what comes after :// is no name of a bucket");
    }
    let mut parts = prefix.strip_suffix('/').unwrap_or(prefix).split('/');
    if !prefix.is_empty() && parts.any(|part| matches!(part, "" | "." | "..")) {
        return refuse("no part of a folder's path can be empty, \".\" or \"..\"");
    }
    Ok(())
}

/// Fails if nothing can be mounted on a path.
fn check_folder(folder: &Path) -> Result<()> {
    let name: Arc<str> = folder.to_string_lossy().into();
    match std::fs::metadata(folder) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => {
            let why = io::Error::new(io::ErrorKind::NotADirectory, "it is no folder");
            Err(Error::io(&name, "mounting on", why))
        }
        Err(error) => Err(refused(folder, error)),
    }
}

/// Brings everything to the store that is not there. Returns how many files it does not have.
fn flush(writing: &Arc<Writing>, warn: fn(&str)) -> usize {
    let Unstored { files, bytes, .. } = writing.unstored();
    if files > 0 {
        let noun = if files == 1 { "file" } else { "files" };
        warn(&format!("storing {files} {noun}, {bytes} bytes"));
    }
    let failures = writing.flush();
    failures.iter().for_each(|failure| warn(failure));
    writing.end();
    failures.len()
}

fn staging_folder(options: &WriteOptions) -> Option<PathBuf> {
    options.staging.clone().or_else(usual_folder)
}

/// Whether a path, which need not be there, is in a folder.
fn is_within(path: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let Ok(path) = std::path::absolute(path) else { return false };
    path.ancestors()
        .find_map(|part| part.canonicalize().ok())
        .is_some_and(|part| part.starts_with(&folder))
}

/// What writes to a bucket.
fn writing_to(
    bucket: &Arc<Bucket>,
    fetcher: &Arc<Fetcher>,
    options: &WriteOptions,
    ttl: Duration,
    warn: fn(&str),
) -> Result<Arc<Writing>> {
    let url: Arc<str> = bucket.url().into();
    let patience = bucket.options().timeout.map_or_else(Patience::default, Patience::of);
    let objects = Buckets::new(&url, &bucket.options().control, patience)?;
    let root = staging_folder(options).ok_or_else(|| {
        Error::Usage("there is no folder for staging: set HOME, or name one (--staging)".into())
    })?;
    let staging = Staging::new(&root, &url, options.limit, options.free)?;
    if staging.is_short(1) {
        let why = "no byte could be written: fewer bytes of its file system are free than are to \
                   stay free (--staging SIZE,free=SIZE)";
        return Err(Error::Usage(format!("{}: {why}", root.display()).into()));
    }
    let storer = Storer::new(objects, bucket.clone(), fetcher.clone(), warn);
    Ok(Writing::new(storer, staging, url, options.close, ttl))
}

/// What was not brought to the store.
#[derive(Debug, Clone, Copy)]
pub struct NotRecovered {
    /// The files that could not be brought there.
    pub failed: usize,
    /// The mounts that have not ended, and have something that the store may not have.
    pub living: usize,
}

/// Brings to the store what mounts of a URL have left that have ended.
///
/// # Errors
/// Those of [`Mount::new`].
pub fn recover(
    source: &str,
    read: Options,
    write: &WriteOptions,
    warn: fn(&str),
) -> Result<NotRecovered> {
    check_source(source)?;
    let bucket = Arc::new(Bucket::new(source, read));
    let (model, _) = url_model(source);
    let fetcher = Fetcher::new(&model, default_memory());
    let writing = writing_to(&bucket, &fetcher, write, Duration::ZERO, warn)?;
    let TakenOver { told, failures, living } = writing.take_over();
    told.iter().chain(&living).for_each(|told| warn(told));
    let folder = writing.staging.folder().parent().unwrap_or(Path::new("")).display();
    if told.is_empty() && living.is_empty() {
        warn(&format!(
            "mounts of {} have left nothing in {folder}; if they had another folder for staging, \
             name it (--staging)",
            shown(source)
        ));
    }
    let failed = failures + flush(&writing, warn);
    fetcher.end();
    if failed == 0 && !told.is_empty() {
        warn(&format!("the store has what mounts of {} had closed", shown(source)));
    }
    Ok(NotRecovered { failed, living: living.len() })
}

fn refused(folder: &Path, error: io::Error) -> Error {
    let error = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOTCONN) => io::Error::other(ENDED),
        Some(Errno::ACCESS) => {
            let why = "this user may not open /dev/fuse, or not write to the folder";
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        }
        // What fusermount3 says ends a line.
        None => io::Error::new(error.kind(), error.to_string().trim_end().to_owned()),
        Some(_) => error,
    };
    Error::io(&folder.to_string_lossy().into(), "mounting on", error)
}

fn default_memory() -> u64 {
    let room = cache_room().map_or(DEFAULT_MEMORY, |room| room / SHARE_OF_ROOM);
    room.clamp(LEAST_MEMORY, DEFAULT_MEMORY)
}

/// Lets the kernel read ahead more than 128 KiB. Only root may; the daemon fetches ahead anyway.
fn raise_read_ahead(folder: &Path) {
    if let Ok(stat) = rustix::fs::stat(folder) {
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        let file = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
        let _ = std::fs::write(file, READ_AHEAD_KIB.to_string());
    }
}
