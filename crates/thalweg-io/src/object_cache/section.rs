//! The two files of one section: blocks that lie one after the other in an object, and the table
//! of their checksums.
//!
//! Every place in the files has one value that is right, for good: the object's version does not
//! change. So writers need no lock. Two that write the same block write the same bytes, and a write
//! that is lost, or that comes late, leaves a block that is missing or one whose checksum is wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::{ReadWriteFlags, preadv2};

use super::header::{BLOCK, BYTES, HEADER, Header, SUMS, USED, seal};
use super::sound::Sound;
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
    pub(super) table: File,
    bytes: File,
    is_writable: bool,
    /// The blocks that this process has compared or written.
    sound: Sound,
    /// One thread writes at a time. The kernel lets no more do so, and has others wait in a loop.
    writing: Mutex<()>,
}

/// A link is not followed, and a pipe is not waited for.
const FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// Opens a file of the cache, and no link, pipe or folder in its place. Returns whether it can be
/// written, too.
pub(super) fn open_file(path: &Path) -> io::Result<(File, bool)> {
    let open = |how: &mut OpenOptions| how.read(true).custom_flags(FLAGS).open(path);
    let (file, is_writable) = match open(File::options().write(true)) {
        Err(e)
            if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            (open(&mut File::options())?, false)
        }
        file => (file?, true),
    };
    Ok((regular(file)?, is_writable))
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "no regular file")),
    }
}

/// Makes the file for the blocks of a section, unless it is there. It has holes for all of them.
fn make_bytes(table: &Path, header: &Header) -> io::Result<File> {
    let mut how = File::options();
    let how = how.read(true).write(true).create(true).truncate(false).custom_flags(FLAGS);
    let file = regular(how.open(table.with_extension(BYTES))?)?;
    let (_, len) = header.extent();
    if file.metadata()?.len() != len {
        file.set_len(len)?;
    }
    Ok(file)
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
        let open = |path: &Path| open_file(path).map_err(|e| Error::io(&name, "opening", e));
        let (table, is_writable) = open(path)?;
        let mut head = vec![0; HEADER];
        let len = read(&table, &mut head, 0, Wait::Yes);
        let header = Header::parse(&head[..len])
            .and_then(|header| match path.file_name() {
                Some(name) if *name != *header.file_name() => {
                    let found = format!("the header of {}", header.file_name());
                    Err(Fault::new(0, found, "that of this file"))
                }
                _ => Ok(header),
            })
            .map_err(|fault| fault.in_file(&name, 0, "the header of cached blocks"))?;
        let (bytes, are_writable) = open(&path.with_extension(BYTES))?;
        Ok(Self::new(header, table, bytes, is_writable && are_writable))
    }

    fn new(header: Header, table: File, bytes: File, is_writable: bool) -> Self {
        let blocks = header.blocks();
        let sound = Sound::new(blocks.end - blocks.start);
        Self { header, table, bytes, is_writable, sound, writing: Mutex::default() }
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
            let _ = section.table.write_all_at(&uses.to_le_bytes(), USED);
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
        let Some(head) = header.encode() else { return Ok(None) };
        for _ in 0..TRIES {
            if let Some(section) = Self::open(folder, header, uses) {
                return Ok(Some(section));
            }
            let bytes = make_bytes(&path, header)?;
            let table = match File::options().read(true).write(true).create_new(true).open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    match std::fs::remove_file(&path) {
                        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                        _ => continue,
                    }
                }
                table => table?,
            };
            table.write_all_at(&head, 0)?;
            table.write_all_at(&uses.to_le_bytes(), USED)?;
            return Ok(Some(Self::new(header.clone(), table, bytes, true)));
        }
        Ok(None)
    }

    /// Whether the files still have their names. Those that were evicted can be read, but nobody
    /// finds what is written to them.
    pub(super) fn is_there(&self) -> bool {
        let has_name = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() > 0);
        has_name(&self.table) && has_name(&self.bytes)
    }

    /// Whether blocks can be added.
    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Where the checksum of a block of the object is.
    fn place_of_sum(&self, block: u64) -> u64 {
        SUMS + self.number(block) * 8
    }

    /// Where a block of the object is.
    pub(super) fn place(&self, block: u64) -> u64 {
        block * BLOCK - self.header.extent().0
    }

    /// The checksums of blocks of the object; 0 for those that are missing.
    pub(super) fn sums(&self, blocks: Range<u64>, wait: Wait) -> Vec<u64> {
        let mut bytes = vec![0; (blocks.end - blocks.start) as usize * 8];
        read(&self.table, &mut bytes, self.place_of_sum(blocks.start), wait);
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
        read(&self.bytes, bytes, self.place(first), wait);
        let blocks = (first..).zip(bytes.chunks(BLOCK as usize).zip(sums));
        blocks.filter(|(at, (bytes, sum))| !self.is_sound(*at, bytes, **sum)).map(|(at, _)| at)
    }

    /// Adds blocks of the object, from `first` on. Their checksums are written last.
    ///
    /// # Errors
    /// Those of the system, as on a full disk.
    pub(super) fn add(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        {
            let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            self.bytes.write_all_at(bytes, self.place(first))?;
        }
        let id = &self.header.id;
        let sums = (first..).zip(bytes.chunks(BLOCK as usize));
        let sums: Vec<u8> =
            sums.flat_map(|(at, bytes)| seal(id, at, bytes).to_le_bytes()).collect();
        self.table.write_all_at(&sums, self.place_of_sum(first))?;
        let end = first + (bytes.len() as u64).div_ceil(BLOCK);
        (first..end).for_each(|block| self.sound.note(self.number(block)));
        Ok(())
    }

    /// Whether a block that was read is the one that its checksum is of.
    fn is_sound(&self, block: u64, bytes: &[u8], sum: u64) -> bool {
        let is_sound = seal(&self.header.id, block, bytes) == sum;
        if is_sound {
            self.sound.note(self.number(block));
        }
        is_sound
    }

    /// The number of a block of the object in the section.
    fn number(&self, block: u64) -> u64 {
        block - self.header.blocks().start
    }

    /// The file of the blocks, if it is a copy of the whole object: this process has compared or
    /// written each of its blocks.
    pub(super) fn whole(&self) -> Option<File> {
        let is_whole = self.header.extent() == (0, self.header.id.size) && self.sound.are_all();
        let bytes = is_whole.then(|| self.bytes.try_clone().ok()).flatten()?;
        (bytes.metadata().ok()?.len() == self.header.id.size).then_some(bytes)
    }

    /// Takes a block out.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn remove(&self, block: u64) -> io::Result<()> {
        self.table.write_all_at(&[0; 8], self.place_of_sum(block))
    }
}
