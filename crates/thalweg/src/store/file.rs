//! A local file, through the page cache or past it.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;

use super::{AlignedBuf, PAGE, Store, check_inside};
use crate::error::{Error, Result};

/// A file read with `pread(2)`.
#[derive(Debug)]
pub struct FileStore {
    name: Arc<str>,
    size: u64,
    file: File,
    direct: Option<Direct>,
}

/// The same file, opened with O_DIRECT.
#[derive(Debug)]
struct Direct {
    file: File,
    alignment: usize,
    /// Set once the file system has refused an aligned read: the page cache serves from then on.
    refused: AtomicBool,
}

impl FileStore {
    /// Opens a file for reads through the page cache.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Unsupported`] if it is a folder, pipe or device.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        // Without O_NONBLOCK, opening a pipe would wait for a writer before we could say what it is.
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(|e| Error::io(&name, "opening", e))?;
        let meta = file.metadata().map_err(|e| Error::io(&name, "asking the size of", e))?;
        if !meta.is_file() {
            let what = if meta.is_dir() { "a folder in place of a file" } else { "a pipe or device" };
            let advice = "give the path of a regular file";
            return Err(Error::Unsupported { file: name, what: what.into(), advice: advice.into() });
        }
        Ok(Self { name, size: meta.len(), file, direct: None })
    }

    /// Opens a file for reads past the page cache. Where the file system cannot (tmpfs), reads go through it all the
    /// same: [`FileStore::is_direct`] tells.
    pub fn open_direct(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut store = Self::open(path)?;
        if let Ok(file) = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path) {
            let alignment = direct_alignment(&file);
            store.direct = Some(Direct { file, alignment, refused: AtomicBool::new(false) });
        }
        Ok(store)
    }

    /// Whether reads go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct.as_ref().is_some_and(|d| !d.refused.load(Ordering::Relaxed))
    }

    /// The open file, for questions about its residency or device.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn buffered(&self, mut offset: u64, mut buf: &mut [u8]) -> Result<()> {
        while !buf.is_empty() {
            match self.file.read_at(buf, offset) {
                Ok(0) => return Err(self.shrunk(offset)),
                Ok(n) => {
                    offset += n as u64;
                    buf = &mut buf[n..];
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io_at(&self.name, "reading", offset, e)),
            }
        }
        Ok(())
    }

    /// The file had these bytes when it was opened.
    fn shrunk(&self, offset: u64) -> Error {
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
    /// Reads the aligned front part of `buf`; how many bytes that was. `Err(None)` if the file system refuses.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Option<std::io::Error>> {
        let whole = buf.len() / self.alignment * self.alignment;
        let mut done = 0;
        while done < whole {
            match self.file.read_at(&mut buf[done..whole], offset + done as u64) {
                Ok(0) => break,
                Ok(n) if n % self.alignment != 0 => return Ok(done + n),
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => return Err(None),
                Err(e) => return Err(Some(e)),
            }
        }
        Ok(done)
    }
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
        let Some(direct) = self.direct.as_ref().filter(|d| !d.refused.load(Ordering::Relaxed)) else {
            return self.buffered(offset, buf);
        };
        let align = direct.alignment;
        if !offset.is_multiple_of(align as u64) || buf.as_ptr().align_offset(align) != 0 {
            return self.bounced(direct, offset, buf);
        }
        match direct.read(offset, buf) {
            // What is left is shorter than the alignment, or past the end of a file that shrank.
            Ok(n) if n < buf.len() => self.buffered_tail(direct, offset + n as u64, &mut buf[n..]),
            Ok(_) => Ok(()),
            Err(None) => {
                direct.refused.store(true, Ordering::Relaxed);
                self.buffered(offset, buf)
            }
            Err(Some(e)) => Err(Error::io_at(&self.name, "reading", offset, e)),
        }
    }

    fn alignment(&self) -> usize {
        self.direct.as_ref().map_or(1, |d| d.alignment)
    }
}

impl FileStore {
    /// An unaligned read: the aligned range around it, then a copy.
    fn bounced(&self, direct: &Direct, offset: u64, buf: &mut [u8]) -> Result<()> {
        let align = direct.alignment as u64;
        let start = offset / align * align;
        let skip = (offset - start) as usize;
        let len = (skip + buf.len()).next_multiple_of(direct.alignment);
        let mut bounce = AlignedBuf::new(len);
        match direct.read(start, &mut bounce) {
            Ok(n) if n >= skip + buf.len() => {
                buf.copy_from_slice(&bounce[skip..skip + buf.len()]);
                Ok(())
            }
            Ok(n) => Err(self.shrunk(start + n as u64)),
            Err(None) => {
                direct.refused.store(true, Ordering::Relaxed);
                self.buffered(offset, buf)
            }
            Err(Some(e)) => Err(Error::io_at(&self.name, "reading", offset, e)),
        }
    }

    fn buffered_tail(&self, direct: &Direct, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.is_multiple_of(direct.alignment as u64) && buf.len() < direct.alignment {
            return self.bounced(direct, offset, buf);
        }
        Err(self.shrunk(offset))
    }
}

/// What O_DIRECT wants of this file: `statx(STATX_DIOALIGN)` since Linux 6.1, else a page.
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
