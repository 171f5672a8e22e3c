//! The file of one section: blocks that lie one after the other in an object.
//!
//! Every place in the file has one value that is right, for good: the object's version does not
//! change. So writers need no lock. Two that write the same block write the same bytes, and a write
//! that is lost, or that comes late, leaves a block that is missing or one whose checksum is wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::{ReadWriteFlags, preadv2};

use super::header::{BLOCK, DATA, HEADER, Header, SUMS, USED, seal};
use crate::error::{Error, Fault, InFile, Result};

/// Whether a read may wait for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

/// An open section.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) header: Header,
    pub(super) file: File,
    is_writable: bool,
}

/// Opens a file of the cache, and no link, pipe or folder in its place. Returns whether it can be
/// written, too.
pub(super) fn open_file(path: &Path) -> io::Result<(File, bool)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let open = |how: &mut OpenOptions| how.read(true).custom_flags(flags).open(path);
    let (file, is_writable) = match open(File::options().write(true)) {
        Err(e)
            if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            (open(&mut File::options())?, false)
        }
        file => (file?, true),
    };
    if file.metadata()?.is_file() {
        Ok((file, is_writable))
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "no regular file"))
    }
}

/// Reads up to the end of `bytes` or of the file, or up to an error. Returns how many bytes came.
fn read(file: &File, bytes: &mut [u8], offset: u64, wait: Wait) -> usize {
    let mut filled = 0;
    while filled < bytes.len() {
        let (room, at) = (&mut bytes[filled..], offset + filled as u64);
        let read = match wait {
            Wait::Yes => file.read_at(room, at),
            Wait::No => preadv2(file, &mut [IoSliceMut::new(room)], at, ReadWriteFlags::NOWAIT)
                .map_err(Into::into),
        };
        match read {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}

impl Section {
    /// Opens the section at a path, whatever it is a section of.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::Malformed`] if its header is damaged.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy().into();
        let (file, is_writable) = open_file(path).map_err(|e| Error::io(&name, "opening", e))?;
        let mut bytes = vec![0; HEADER];
        let len = read(&file, &mut bytes, 0, Wait::Yes);
        let header = Header::parse(&bytes[..len])
            .and_then(|header| match path.file_name() {
                Some(name) if *name != *header.file_name() => {
                    let found = format!("the header of {}", header.file_name());
                    Err(Fault::new(0, found, "that of this file"))
                }
                _ => Ok(header),
            })
            .map_err(|fault| fault.in_file(&name, 0, "the header of cached blocks"))?;
        Ok(Self { header, file, is_writable })
    }

    /// Opens a section and notes that it is used. `None` if there is none; a file that is not this
    /// section counts as none.
    pub(super) fn open(folder: &Path, header: &Header, uses: u64) -> Option<Self> {
        let section = Self::at(&folder.join(header.file_name())).ok()?;
        if section.header != *header {
            return None;
        }
        if section.is_writable {
            // The order of eviction is a matter of speed, so an error does not count.
            let _ = section.file.write_all_at(&uses.to_le_bytes(), USED);
        }
        Some(section)
    }

    /// Opens a section or makes it. What is in its place and is not this section is removed: a file
    /// that another process is making just now, too, and that process finds out and makes it again.
    /// `None` if others remove what this one makes, and if the URL is too long for a header.
    ///
    /// # Errors
    /// Those of the system, as on a full disk.
    pub(super) fn make(folder: &Path, header: &Header, uses: u64) -> io::Result<Option<Self>> {
        const TRIES: usize = 8;
        let path = folder.join(header.file_name());
        let Some(bytes) = header.encode() else { return Ok(None) };
        for _ in 0..TRIES {
            if let Some(section) = Self::open(folder, header, uses) {
                return Ok(Some(section));
            }
            let file = match File::options().read(true).write(true).create_new(true).open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    match std::fs::remove_file(&path) {
                        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                        _ => continue,
                    }
                }
                file => file?,
            };
            file.write_all_at(&bytes, 0)?;
            file.write_all_at(&uses.to_le_bytes(), USED)?;
            return Ok(Some(Self { header: header.clone(), file, is_writable: true }));
        }
        Ok(None)
    }

    /// Whether the file still has its name. One that was evicted can be read, but nobody finds what
    /// is written to it.
    pub(super) fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }

    /// Whether blocks can be added.
    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Where the checksum of a block of the object is.
    fn place_of_sum(&self, block: u64) -> u64 {
        SUMS + (block - self.header.blocks().start) * 8
    }

    /// Where a block of the object is.
    pub(super) fn place(&self, block: u64) -> u64 {
        DATA + (block - self.header.blocks().start) * BLOCK
    }

    /// The checksums of blocks of the object; 0 for those that are missing.
    pub(super) fn sums(&self, blocks: Range<u64>, wait: Wait) -> Vec<u64> {
        let mut bytes = vec![0; (blocks.end - blocks.start) as usize * 8];
        read(&self.file, &mut bytes, self.place_of_sum(blocks.start), wait);
        let (sums, _) = bytes.as_chunks();
        sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect()
    }

    /// Reads blocks of the object from `first` on, and compares them with their checksums. Returns
    /// which are wrong.
    pub(super) fn read(
        &self,
        first: u64,
        bytes: &mut [u8],
        sums: &[u64],
        wait: Wait,
    ) -> impl Iterator<Item = u64> {
        // What did not come is not what the checksum is of, whatever was in the buffer; but for the
        // very bytes, which are as good.
        read(&self.file, bytes, self.place(first), wait);
        let id = &self.header.id;
        let blocks = (first..).zip(bytes.chunks(BLOCK as usize).zip(sums));
        blocks.filter(|(at, (bytes, sum))| seal(id, *at, bytes) != **sum).map(|(at, _)| at)
    }

    /// Adds blocks of the object, from `first` on. Their checksums are written last.
    ///
    /// # Errors
    /// Those of the system, as on a full disk.
    pub(super) fn add(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.place(first))?;
        let id = &self.header.id;
        let sums = (first..).zip(bytes.chunks(BLOCK as usize));
        let sums: Vec<u8> =
            sums.flat_map(|(at, bytes)| seal(id, at, bytes).to_le_bytes()).collect();
        self.file.write_all_at(&sums, self.place_of_sum(first))
    }

    /// Takes a block out.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn remove(&self, block: u64) -> io::Result<()> {
        self.file.write_all_at(&[0; 8], self.place_of_sum(block))
    }
}
