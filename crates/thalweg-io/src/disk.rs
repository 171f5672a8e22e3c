//! The storage of a network's files: a folder, objects at a URL, or a stand-in for a folder in
//! tests of what a crash leaves behind.

mod url_folder;

use std::any::Any;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::model::StoreModel;
use crate::new_file::write_counted;
use crate::store::throttled::{Limits, ThrottledStore};
use crate::store::{FileStore, MmapStore, Store};

pub use url_folder::UrlFolder;

/// A flat folder of files. Their names are plain, and none is a link. Written bytes are durable
/// once [`Sink::sync`] has returned. Created, renamed and removed names are durable once
/// [`Disk::sync`] has returned.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Its name in messages.
    fn name(&self) -> &Arc<str>;

    /// The name of one of its files in messages.
    fn path_of(&self, file: &str) -> Arc<str> {
        format!("{}/{file}", self.name()).into()
    }

    /// Names of its files.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn list(&self) -> Result<Vec<String>>;

    /// Opens a file to read its present contents. They stay readable even if the file is removed.
    ///
    /// # Errors
    /// [`Error::Io`]; of kind `NotFound` if the file does not exist.
    fn open(&self, file: &str) -> Result<Arc<dyn Store>>;

    /// Opens a file whose bytes the caller brings into the page cache. The store is never a map:
    /// page faults of a map read single pages, or pages that nobody asked for.
    ///
    /// # Errors
    /// [`Error::Io`]; of kind `NotFound` if the file does not exist.
    fn open_plain(&self, file: &str) -> Result<Arc<dyn Store>> {
        self.open(file)
    }

    /// What [`Disk::open`] and [`Disk::open_plain`] open, of one file: with one descriptor where
    /// that is possible, because a network may have many files.
    ///
    /// # Errors
    /// [`Error::Io`]; of kind `NotFound` if the file does not exist.
    fn open_both(&self, file: &str) -> Result<[Arc<dyn Store>; 2]> {
        Ok([self.open(file)?, self.open_plain(file)?])
    }

    /// What [`Disk::open_both`] opens, of one of `files` files whose last bytes are needed first,
    /// and which should have `size` bytes.
    ///
    /// # Errors
    /// As [`Disk::open_both`].
    fn open_end(&self, file: &str, _size: u64, _files: usize) -> Result<[Arc<dyn Store>; 2]> {
        self.open_both(file)
    }

    /// Whether each read has to be waited for, and no page cache keeps what was read: objects at
    /// URLs.
    fn is_far(&self) -> bool {
        false
    }

    /// How many files are opened, or pieces of a file are read, at the same time.
    fn at_once(&self) -> usize {
        1
    }

    /// The cost model for reads from it.
    fn model(&self) -> StoreModel {
        StoreModel::MEMORY
    }

    /// A folder for files that need not last, if there is one.
    fn scratch(&self) -> Option<&Path> {
        None
    }

    /// Creates an empty file. An existing file of that name is truncated.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn create(&self, file: &str) -> Result<Box<dyn Sink>>;

    /// Opens a file to append after its first `len` bytes. Bytes after these are removed.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn append(&self, file: &str, len: u64) -> Result<Box<dyn Sink>>;

    /// Renames a file. A file that has the new name is replaced.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file. A file that does not exist is no error.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn remove(&self, file: &str) -> Result<()>;

    /// Makes the names of files durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn sync(&self) -> Result<()>;

    /// Locks the folder for writing until the returned value is dropped. `None` if another writer
    /// holds the lock.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn lock(&self) -> Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// A file being written.
pub trait Sink: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`], for instance on a full disk.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the written bytes durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn sync(&mut self) -> Result<()>;
}

/// A folder of the file system.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    name: Arc<str>,
    is_mapped: bool,
    throttle: Option<Limits>,
}

/// The file that a writer holds locked.
const LOCK: &str = "lock";

impl Folder {
    /// A folder at `path`. It need not exist until a file is created in it. If `is_mapped`, files
    /// are read through maps; this requires that written files are never changed, only removed.
    /// Otherwise files are read with `pread`, for file systems on which another process may shorten
    /// them.
    pub fn new(path: &Path, is_mapped: bool) -> Self {
        let name = path.to_string_lossy().into();
        Self { path: path.to_owned(), name, is_mapped, throttle: None }
    }

    /// Slows down the stores of [`Disk::open_plain`], each on its own, and applies the limits to
    /// the model: for measurements.
    #[must_use]
    pub fn throttled(self, throttle: Option<Limits>) -> Self {
        Self { throttle, ..self }
    }

    /// The path of a file. Names come from a manifest that others may have written, so they must
    /// not lead out of the folder.
    fn at(&self, file: &str) -> Result<PathBuf> {
        let is_plain = !matches!(file, "" | "." | "..") && !file.contains(['/', '\0']);
        if is_plain {
            return Ok(self.path.join(file));
        }
        Err(Error::Unsupported {
            file: self.name.clone(),
            what: format!("the file {file:?} of a network").into(),
            advice: "a network names its files by plain names, without a folder".into(),
        })
    }

    /// Opens a file of the folder, and no link to another one.
    fn open_own(&self, file: &str, how: &mut OpenOptions) -> Result<File> {
        let path = self.at(file)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = how.custom_flags(flags.bits().cast_signed()).open(&path);
        let failed = |e| self.failed(file, "opening")(e);
        let opened = opened.map_err(|e| self.link(file, &path).unwrap_or_else(|| failed(e)))?;
        if opened.metadata().map_err(failed)?.is_file() {
            return Ok(opened);
        }
        Err(Error::Unsupported {
            file: self.path_of(file),
            what: "a folder, pipe or device in place of a file of a network".into(),
            advice: "remove it, or restore the network from a copy".into(),
        })
    }

    /// The error for a symbolic link in the place of a file.
    fn link(&self, file: &str, path: &Path) -> Option<Error> {
        fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?;
        Some(Error::Unsupported {
            file: self.path_of(file),
            what: "a symbolic link in place of a file of a network".into(),
            advice: "a network holds its files itself: put the file there, or remove the link"
                .into(),
        })
    }

    fn store(&self, file: &str) -> Result<FileStore> {
        FileStore::of(&self.open_own(file, File::options().read(true))?, self.path_of(file))
    }

    /// A file to be read repeatedly.
    fn mapped(&self, store: FileStore) -> Result<Arc<dyn Store>> {
        // All touched pages stay mapped, because they are read repeatedly.
        Ok(if self.is_mapped {
            Arc::new(MmapStore::of(store)?.keep(u64::MAX))
        } else {
            Arc::new(store)
        })
    }

    /// A file whose bytes are brought into the page cache.
    fn plain(&self, store: FileStore) -> Arc<dyn Store> {
        let store = Arc::new(store);
        match self.throttle {
            Some(limits) => Arc::new(ThrottledStore::new(store, limits)),
            None => store,
        }
    }

    fn failed(&self, file: &str, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let name = self.path_of(file);
        move |e| Error::io(&name, doing, e)
    }

    /// Whether an open file is the one of this name.
    fn has(&self, open: &File, file: &str) -> bool {
        let place = |data: fs::Metadata| (data.dev(), data.ino());
        let named = self.at(file).ok().and_then(|path| fs::symlink_metadata(path).ok());
        named.is_some_and(|named| open.metadata().is_ok_and(|open| place(open) == place(named)))
    }

    fn make(&self) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(|e| Error::io(&self.name, "creating", e))
    }
}

impl Disk for Folder {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn list(&self) -> Result<Vec<String>> {
        let failed = |e| Error::io(&self.name, "listing", e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, file: &str) -> Result<Arc<dyn Store>> {
        self.mapped(self.store(file)?)
    }

    fn open_plain(&self, file: &str) -> Result<Arc<dyn Store>> {
        Ok(self.plain(self.store(file)?))
    }

    fn open_both(&self, file: &str) -> Result<[Arc<dyn Store>; 2]> {
        let store = self.store(file)?;
        let plain = self.plain(store.shared());
        Ok([self.mapped(store)?, plain])
    }

    fn scratch(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn model(&self) -> StoreModel {
        let model =
            File::open(&self.path).map_or(StoreModel::LOCAL, |folder| StoreModel::known(&folder).0);
        self.throttle.map_or(model, |limits| limits.applied_to(&model))
    }

    fn create(&self, file: &str) -> Result<Box<dyn Sink>> {
        self.make()?;
        let made = self.open_own(file, File::options().write(true).create(true).truncate(false))?;
        // Only now is it known to be a file of the folder.
        made.set_len(0).map_err(self.failed(file, "creating"))?;
        Ok(Box::new(FileSink { file: made, name: self.path_of(file), written: 0 }))
    }

    fn append(&self, file: &str, len: u64) -> Result<Box<dyn Sink>> {
        let mut open = self.open_own(file, File::options().write(true))?;
        open.set_len(len).map_err(self.failed(file, "shortening"))?;
        open.seek(SeekFrom::Start(len)).map_err(self.failed(file, "seeking in"))?;
        Ok(Box::new(FileSink { file: open, name: self.path_of(file), written: len }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(self.at(from)?, self.at(to)?).map_err(self.failed(to, "naming"))
    }

    fn remove(&self, file: &str) -> Result<()> {
        match fs::remove_file(self.at(file)?) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(self.failed(file, "removing")(e))
            }
            _ => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        let folder = File::open(&self.path).and_then(|folder| folder.sync_all());
        folder.map_err(|e| Error::io(&self.name, "finishing", e))
    }

    fn lock(&self) -> Result<Option<Box<dyn Any + Send + Sync>>> {
        loop {
            self.make()?;
            let how = &mut File::options();
            let file = self.open_own(LOCK, how.create(true).truncate(false).write(true))?;
            match file.try_lock() {
                Ok(()) if self.has(&file, LOCK) => return Ok(Some(Box::new(file))),
                // Whoever removed a new network removed this file between the two calls.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(self.failed(LOCK, "locking")(e)),
            }
        }
    }
}

struct FileSink {
    file: File,
    name: Arc<str>,
    written: u64,
}

impl Sink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        write_counted(&mut self.file, bytes, &mut self.written)
            .map_err(|e| Error::io_at(&self.name, "writing", self.written, e))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.name, "finishing", e))
    }
}
