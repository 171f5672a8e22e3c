//! A local file, read through the page cache or past it.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use rustix::io::{ReadWriteFlags, preadv2};

use super::{AlignedBuf, Feed, PAGE, Request, Store, check_inside};
use crate::error::{Error, Fault, InFile, Result};
use crate::urls::{shown_path, url};

/// A file read with `pread(2)`.
#[derive(Debug)]
pub struct FileStore {
    name: Arc<str>,
    size: u64,
    file: Arc<File>,
    direct: Option<Direct>,
}

/// A second descriptor of an open file, with O_DIRECT.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) file: File,
    pub(super) alignment: usize,
    /// Set once the file system has refused an aligned read. Later reads go through the page cache.
    refused: AtomicBool,
}

impl FileStore {
    /// Opens a file for reads through the page cache.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Unsupported`] if it is a folder, pipe or
    /// device, or a URL.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name: Arc<str> = shown_path(path).into();
        if url(path).is_some() {
            return Err(Error::Unsupported {
                file: name,
                what: "a URL in this place".into(),
                advice: "copy the object, and give the path of the copy".into(),
            });
        }
        // Without O_NONBLOCK, opening a pipe would wait for a writer before the check below can
        // reject it.
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(|e| Error::io(&name, "opening", e))?;
        let meta = file.metadata().map_err(|e| Error::io(&name, "asking the size of", e))?;
        if !meta.is_file() {
            let what =
                if meta.is_dir() { "a folder in place of a file" } else { "a pipe or device" };
            let advice = "give the path of a regular file";
            return Err(Error::Unsupported {
                file: name,
                what: what.into(),
                advice: advice.into(),
            });
        }
        Ok(Self { name, size: meta.len(), file: Arc::new(file), direct: None })
    }

    /// Opens a file for reads past the page cache. If the file system does not support that, reads
    /// go through the cache; see [`FileStore::is_direct`].
    pub fn open_direct(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut store = Self::open(path)?;
        let file =
            File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok();
        // Another file may have been put at `path` meanwhile. Bytes of two files must not mix.
        if let Some(file) = file.filter(|file| same_file(file, &store.file)) {
            let alignment = direct_alignment(&file);
            store.direct = Some(Direct { file, alignment, refused: AtomicBool::new(false) });
        }
        Ok(store)
    }

    /// A store of a file that is already open.
    ///
    /// # Errors
    /// [`Error::Io`] if its size cannot be read or its descriptor cannot be duplicated.
    pub fn of(file: &File, name: Arc<str>) -> Result<Self> {
        let failed = |e| Error::io(&name, "asking the size of", e);
        let size = file.metadata().map_err(failed)?.len();
        let file = file.try_clone().map_err(failed)?;
        Ok(Self { name, size, file: Arc::new(file), direct: None })
    }

    /// Another store of the same open file, through the page cache, without another descriptor.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self { name: self.name.clone(), size: self.size, file: self.file.clone(), direct: None }
    }

    /// The whole contents of a file that should be small. `what` names what it holds.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it has more than `most` bytes, [`Error::Io`] if the system fails a
    /// read.
    pub fn contents(&self, what: &'static str, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // The file may grow meanwhile, and some file systems give no sizes.
        if self.size <= most {
            let read = (&*self.file).take(most.saturating_add(1)).read_to_end(&mut bytes);
            read.map_err(|e| Error::io(&self.name, "reading", e))?;
        }
        let found = self.size.max(bytes.len() as u64);
        if found > most {
            let fault = Fault::new(0, format!("{found} bytes"), format!("at most {most}"));
            return Err(fault.in_file(&self.name, 0, what));
        }
        Ok(bytes)
    }

    /// Whether reads go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct().is_some()
    }

    /// The open file, for questions about its residency or device.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The O_DIRECT descriptor, unless the file system has refused it.
    pub(super) fn direct(&self) -> Option<&Direct> {
        self.direct.as_ref().filter(|direct| !direct.refused.load(Ordering::Relaxed))
    }

    pub(super) fn buffered(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match fill(buf, offset, 1, |buf, at| self.file.read_at(buf, at)) {
            Ok(n) if n == buf.len() => Ok(()),
            Ok(n) => Err(self.shrunk(offset + n as u64)),
            Err((n, e)) => Err(Error::io_at(&self.name, "reading", offset + n as u64, e)),
        }
    }

    /// The error for bytes at `offset` that existed when the file was opened and are now missing.
    pub(super) fn shrunk(&self, offset: u64) -> Error {
        let size = self.file.metadata().map_or(offset, |m| m.len());
        Error::Truncated {
            file: self.name.clone(),
            what: "bytes that were there when it was opened,".into(),
            offset,
            size,
            advice: "; something shortened it while it was read",
        }
    }
}

impl Direct {
    /// Reads whole units of alignment from `offset` on, up to the end of the file. Returns the
    /// number of bytes read, in the error too.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize, (usize, io::Error)> {
        let whole = buf.len() / self.alignment * self.alignment;
        fill(&mut buf[..whole], offset, self.alignment, |buf, at| self.file.read_at(buf, at))
    }

    /// Records that the file system has refused an aligned read. Later reads go through the page
    /// cache.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Whether bytes at `offset` can be read directly into `buf`.
    pub(super) fn accepts(&self, offset: u64, buf: &[u8]) -> bool {
        offset.is_multiple_of(self.alignment as u64)
            && buf.as_ptr().align_offset(self.alignment) == 0
    }
}

/// Calls `read` until `buf` is full or the end is reached: `read` returns 0 bytes, or a number that
/// is not a multiple of `unit`. Returns the number of bytes read, in the error too.
fn fill(
    buf: &mut [u8],
    offset: u64,
    unit: usize,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> Result<usize, (usize, io::Error)> {
    let mut done = 0;
    while done < buf.len() {
        match read(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                if !n.is_multiple_of(unit) {
                    break;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err((done, e)),
        }
    }
    Ok(done)
}

impl Store for FileStore {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(&self.name, self.size, offset, buf.len())?;
        let Some(direct) = self.direct() else { return self.buffered(offset, buf) };
        if direct.accepts(offset, buf) && buf.len().is_multiple_of(direct.alignment) {
            return match self.past_cache(direct, offset, buf, buf.len())? {
                true => Ok(()),
                false => self.buffered(offset, buf),
            };
        }
        // Reads the aligned range around the wanted bytes, then copies these.
        let start = offset / direct.alignment as u64 * direct.alignment as u64;
        let skip = (offset - start) as usize;
        let mut bounce = AlignedBuf::new((skip + buf.len()).next_multiple_of(direct.alignment));
        if !self.past_cache(direct, start, &mut bounce, skip + buf.len())? {
            return self.buffered(offset, buf);
        }
        buf.copy_from_slice(&bounce[skip..skip + buf.len()]);
        Ok(())
    }

    /// Reads by preadv2(2) with RWF_NOWAIT (Linux 4.14). For bytes that are not cached, the call
    /// may start a read in the background.
    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        let len = buf.len();
        self.direct().is_none()
            && preadv2(&self.file, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT)
                == Ok(len)
    }

    fn answer(&self, request: &mut Request) -> Result<()> {
        let Request { offset, len, buf: Some(buf), at, .. } = request else { return Ok(()) };
        check_inside(&self.name, self.size, *offset, *len)?;
        if let Some(direct) = self.direct()
            // The request's buffer has room for whole units, so that an odd length needs no copy.
            && let Some(room) = buf.get_mut(*at..*at + len.next_multiple_of(direct.alignment))
            && direct.accepts(*offset, room)
            && self.past_cache(direct, *offset, room, *len)?
        {
            return Ok(());
        }
        self.read_at(*offset, &mut buf[*at..*at + *len])
    }

    fn alignment(&self) -> usize {
        self.direct.as_ref().map_or(1, |d| d.alignment)
    }

    /// For small requests, waiting and context switches cost a thread more than the read itself.
    /// Where the kernel allows it, one thread answers all of them through io_uring.
    fn serve(&self, depth: usize, feed: &dyn Feed) {
        #[cfg(target_os = "linux")]
        if let Some(usual) = feed.usual() {
            // All wanted bytes are requested, so that read-ahead by the kernel only reads unwanted
            // bytes: a third more for arrays of 20 MB.
            let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
            if usual < super::SMALL && super::uring::serve(self, depth, feed) {
                return;
            }
        }
        super::serve_with_threads(self, depth, feed);
    }
}

impl FileStore {
    /// Reads at least `wanted` bytes into `buf` past the page cache, in whole units of alignment.
    /// Returns false if the file system refuses.
    fn past_cache(
        &self,
        direct: &Direct,
        offset: u64,
        buf: &mut [u8],
        wanted: usize,
    ) -> Result<bool> {
        match direct.read(offset, buf) {
            Ok(n) if n >= wanted => Ok(true),
            Ok(n) => Err(self.shrunk(offset + n as u64)),
            Err((_, e)) if e.kind() == io::ErrorKind::InvalidInput => {
                direct.refuse();
                Ok(false)
            }
            Err((n, e)) => Err(Error::io_at(&self.name, "reading", offset + n as u64, e)),
        }
    }
}

fn same_file(one: &File, other: &File) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// The alignment that O_DIRECT needs for this file, in bytes: from `statx(STATX_DIOALIGN)` since
/// Linux 6.1, else a page.
fn direct_alignment(file: &File) -> usize {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    // STATX_DIOALIGN of statx(2).
    let mask = StatxFlags::from_bits_retain(0x2000);
    match statx(file, c"", AtFlags::EMPTY_PATH, mask) {
        Ok(stat) if stat.stx_mask & mask.bits() != 0 && stat.stx_dio_offset_align > 0 => {
            (stat.stx_dio_mem_align.max(stat.stx_dio_offset_align) as usize).min(PAGE)
        }
        _ => PAGE,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Runs `fill` with the given answers of pread(2), one per call. Each byte of the file has its
    /// offset as value.
    fn filled(
        unit: usize,
        answers: &[io::Result<usize>],
    ) -> (Result<usize, (usize, io::ErrorKind)>, Vec<u8>) {
        let mut buf = vec![255; 40];
        let mut answers = answers.iter();
        let outcome = fill(&mut buf, 10, unit, |buf, at| match answers.next().unwrap() {
            Ok(n) => {
                buf[..*n].iter_mut().enumerate().for_each(|(i, b)| *b = (at as usize + i) as u8);
                Ok(*n)
            }
            Err(e) => Err(e.kind().into()),
        });
        assert!(answers.next().is_none(), "not all reads were made");
        (outcome.map_err(|(n, e)| (n, e.kind())), buf)
    }

    #[test]
    fn short_reads_go_on_and_interrupted_ones_again() {
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let (outcome, buf) =
            filled(1, &[Ok(1), interrupted(), Ok(20), interrupted(), interrupted(), Ok(19)]);
        assert_eq!(outcome, Ok(40));
        assert_eq!(buf, (10..50).collect::<Vec<u8>>());
    }

    #[test]
    fn reports_progress() {
        assert_eq!(filled(1, &[Ok(7), Ok(0)]).0, Ok(7));
        let error = Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(filled(1, &[Ok(7), Ok(8), error]).0, Err((15, io::ErrorKind::PermissionDenied)));
    }

    #[test]
    fn a_direct_read_of_an_odd_length_is_the_last() {
        assert_eq!(filled(8, &[Ok(16), Ok(5)]).0, Ok(21));
        assert_eq!(filled(8, &[Ok(16), Ok(24)]).0, Ok(40));
    }
}
