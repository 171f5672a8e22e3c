//! The log: the changes since the last segment.
//!
//! ```text
//! "THALWLOG", number u64 of the log
//! then, for each change: its length u32, "chg!", the durable length u64 of the log by then,
//!   XXH3 u64 of the change and of the 16 bytes before, and the change (see `log_record`)
//! ```
//!
//! A crash may leave an incomplete change at the end, which was never acknowledged and is ignored.
//! An incomplete change that a later change names as durable was damaged afterwards: that is an
//! error.

use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use thalweg_codec::splitmix::word;
use thalweg_io::control::Control;
use thalweg_io::disk::{Disk, Sink};
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result, pool};
use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::Hasher;

const MAGIC: &[u8; 8] = b"THALWLOG";
const MARK: &[u8; 4] = b"chg!";
const START: u64 = 16;
const HEAD: usize = 24;

/// Bytes of a change before its mark.
const BEFORE_MARK: u64 = 4;

/// Writes a log.
pub(crate) struct LogWriter {
    sink: Box<dyn Sink>,
    /// Bytes written.
    written: u64,
    /// Bytes that are durable.
    durable: u64,
    /// Whether a write failed. It may have left any bytes at the end.
    is_broken: bool,
    name: Arc<str>,
}

impl LogWriter {
    /// Starts a log, and makes it durable except for its name.
    pub(crate) fn create(disk: &dyn Disk, file: &str, number: u64) -> Result<Self> {
        let mut sink = disk.create(file)?;
        sink.write(&[MAGIC.as_slice(), &number.to_le_bytes()].concat())?;
        sink.sync()?;
        Ok(Self {
            sink,
            written: START,
            durable: START,
            is_broken: false,
            name: disk.path_of(file),
        })
    }

    /// Continues a log after its first `len` bytes, which are whole changes.
    pub(crate) fn append(disk: &dyn Disk, file: &str, len: u64) -> Result<Self> {
        let mut sink = disk.append(file, len)?;
        // Later changes will name these bytes as durable.
        sink.sync()?;
        Ok(Self { sink, written: len, durable: len, is_broken: false, name: disk.path_of(file) })
    }

    /// Rejects all further writes: it is not known whether a manifest names this log.
    pub(crate) fn give_up(&mut self) {
        self.is_broken = true;
    }

    /// Fails if a write failed before.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_broken {
            let source = std::io::Error::other("an earlier write failed: open the network again");
            return Err(Error::io(&self.name, "writing", source));
        }
        Ok(())
    }

    /// Appends a change, without making it durable.
    pub(crate) fn push(&mut self, change: &[u8]) -> Result<()> {
        self.check()?;
        let len = u32::try_from(change.len()).map_err(|_| {
            Error::Usage(
                format!("{}: a change of {} bytes; make it several", self.name, change.len())
                    .into(),
            )
        })?;
        let mut bytes = Vec::with_capacity(HEAD + change.len());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(MARK);
        bytes.extend_from_slice(&self.durable.to_le_bytes());
        let hash = XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&bytes), change);
        bytes.extend_from_slice(&hash.to_le_bytes());
        bytes.extend_from_slice(change);
        let outcome = self.sink.write(&bytes);
        self.is_broken = outcome.is_err();
        self.written += bytes.len() as u64;
        outcome
    }

    /// Makes all changes durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let outcome = self.sink.sync();
        // After a failed fsync, the contents of the page cache are unknown (Rebello et al., ATC
        // 2020).
        self.is_broken |= outcome.is_err();
        outcome?;
        self.durable = self.written;
        Ok(())
    }
}

/// Receives the offset of a change, and the change.
pub(crate) type VisitChange<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Fault> + 'a;

/// Passes all whole changes to `f`. Returns the length of the log up to the end of the last one.
pub(crate) fn replay(
    disk: &dyn Disk,
    file: &str,
    number: u64,
    control: &Control,
    f: &mut VisitChange<'_>,
) -> Result<u64> {
    replay_store(disk.open(file)?, 1, number, control, f)
}

/// [`replay`] of a file that is open. `at_once`: how many pieces of it are read at the same time.
pub(crate) fn replay_store(
    store: Arc<dyn Store>,
    at_once: usize,
    number: u64,
    control: &Control,
    f: &mut VisitChange<'_>,
) -> Result<u64> {
    let name = store.name().clone();
    let mut log = LogBytes { at_once, ..LogBytes::new(store, control) };
    let head = log.range(0, log.size.min(START) as usize)?;
    if head != [MAGIC.as_slice(), &number.to_le_bytes()].concat() {
        let found = format!("{head:02x?}");
        return Err(
            Fault::new(0, found, "\"THALWLOG\" and the log's number").in_file(&name, 0, "a log")
        );
    }
    let mut at = START;
    while let Some(whole) = log.whole(at)? {
        f(at, log.change(&whole)?)
            .map_err(|fault| fault.in_file(&name, at + HEAD as u64, "a change"))?;
        at = whole.end();
    }
    log.check_end(at)?;
    Ok(at)
}

/// Passes the whole changes of a damaged log to `f`, including those after damage. Returns the byte
/// ranges that held something else: a damaged head, changes that `f` rejects or that later changes
/// name as durable, and the end, where a damaged change cannot be told from what a crash leaves.
pub(crate) fn replay_damaged(
    disk: &dyn Disk,
    file: &str,
    control: &Control,
    f: &mut VisitChange<'_>,
) -> Result<Vec<Range<u64>>> {
    let mut log = LogBytes::new(disk.open(file)?, control);
    let mut lost = Vec::new();
    let head = log.range(0, log.size.min(START) as usize)?;
    if head.len() < START as usize || !head.starts_with(MAGIC) {
        lost.push(0..head.len() as u64);
    }
    let (found, promised) = log.intact_changes()?;
    let mut at = START;
    for whole in found {
        // Bytes that a crash left were never durable, nor was anything after them.
        if whole.begin > at {
            if at >= promised {
                break;
            }
            lost.push(at..whole.begin);
        }
        at = whole.end();
        if f(whole.begin, log.change(&whole)?).is_err() {
            lost.push(whole.begin..at);
        }
    }
    if at < log.size {
        lost.push(at..log.size);
    }
    Ok(lost)
}

/// Bytes of a log that are read together. A longer change is read at once.
const WINDOW: u64 = 1 << 20;

/// Bytes that are read at once, where several pieces are.
const PIECE: usize = 256 << 10;

/// Windows that are then read together.
const MORE_WINDOWS: u64 = 8;

/// The place of a whole change.
struct WholeChange {
    begin: u64,
    /// The durable length of the log that it names.
    durable: u64,
    /// Its length, without its head.
    len: usize,
}

impl WholeChange {
    fn end(&self) -> u64 {
        self.begin + (HEAD + self.len) as u64
    }
}

/// The bytes of a log, of which a window is in memory: a log that is damaged, or that was never
/// moved to a segment, may be longer than memory.
struct LogBytes {
    store: Arc<dyn Store>,
    size: u64,
    /// The offset of `window` in the log.
    start: u64,
    window: Vec<u8>,
    /// How many pieces are read at the same time.
    at_once: usize,
    /// Cancels the reading, which may take long.
    control: Control,
}

impl LogBytes {
    fn new(store: Arc<dyn Store>, control: &Control) -> Self {
        let control = control.clone();
        Self { size: store.size(), store, start: 0, window: Vec::new(), at_once: 1, control }
    }

    /// Some bytes of the log.
    fn range(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        Ok(&self.ahead(at, len)?[..len])
    }

    /// The bytes in memory from an offset on: at least this many.
    fn ahead(&mut self, at: u64, least: usize) -> Result<&[u8]> {
        let end = at.saturating_add(least as u64);
        if at < self.start || end > self.start + self.window.len() as u64 {
            self.load(at, least)?;
        }
        Ok(&self.window[(at - self.start) as usize..])
    }

    fn load(&mut self, at: u64, least: usize) -> Result<()> {
        self.control.check()?;
        let most = if self.at_once > 1 { WINDOW * MORE_WINDOWS } else { WINDOW };
        let len = least.max(self.size.saturating_sub(at).min(most) as usize);
        let mut window = std::mem::take(&mut self.window);
        window.clear();
        if window.try_reserve_exact(len).is_err() {
            let source = std::io::ErrorKind::OutOfMemory;
            return Err(Error::io(self.store.name(), "reading", source));
        }
        window.resize(len, 0);
        if self.at_once > 1 {
            let pieces = window.chunks_mut(PIECE).zip((at..).step_by(PIECE));
            pool::try_map(self.at_once, pieces, |(piece, at)| self.store.read_at(at, piece))?;
        } else {
            self.store.read_at(at, &mut window)?;
        }
        self.start = at;
        self.window = window;
        Ok(())
    }

    /// The change that begins at an offset, if it is whole.
    fn whole(&mut self, begin: u64) -> Result<Option<WholeChange>> {
        let Some(room) = self.size.checked_sub(begin).and_then(|n| n.checked_sub(HEAD as u64))
        else {
            return Ok(None);
        };
        let head = self.range(begin, HEAD)?;
        let len = word(&head[..4]);
        let durable = word(&head[8..16]);
        let hash = word(&head[16..24]);
        // The length is looked at before the change is read: other bytes may hold any number. The
        // change is hashed before it is taken into memory as a whole.
        if &head[4..8] != MARK || len > room {
            return Ok(None);
        }
        let whole = WholeChange { begin, durable, len: len as usize };
        let mut hasher = Hasher::with_seed(XxHash3_64::oneshot(&head[..16]));
        let mut at = begin + HEAD as u64;
        while at < whole.end() {
            let bytes = self.ahead(at, 1)?;
            let len = bytes.len().min((whole.end() - at) as usize);
            hasher.write(&bytes[..len]);
            at += len as u64;
        }
        Ok((hasher.finish() == hash).then_some(whole))
    }

    /// The bytes of a change, without its head.
    fn change(&mut self, whole: &WholeChange) -> Result<&[u8]> {
        Ok(&self.range(whole.begin, HEAD + whole.len)?[HEAD..])
    }

    /// The next offset after `after` at which a change may begin.
    fn next_begin(&mut self, after: u64) -> Result<Option<u64>> {
        let mut from = after.saturating_add(1 + BEFORE_MARK);
        while from.saturating_add(MARK.len() as u64) <= self.size {
            let bytes = self.ahead(from, MARK.len())?;
            if let Some(place) = memmem::find(bytes, MARK) {
                return Ok(Some(from + place as u64 - BEFORE_MARK));
            }
            // A mark may begin in this window and end in the next one.
            from += (bytes.len() + 1 - MARK.len()) as u64;
        }
        Ok(None)
    }

    /// Looks for a whole change after the incomplete one at `at`. Other bytes do not look like a
    /// change by accident, because their hash would have to match.
    fn check_end(&mut self, at: u64) -> Result<()> {
        let mut begin = at;
        while let Some(next) = self.next_begin(begin)? {
            begin = next;
            if self.whole(begin)?.is_some_and(|whole| whole.durable > at) {
                let found = format!("a damaged change before an intact one at byte {begin}");
                let fault = Fault::new(0, found, "an intact change; restore the log from a copy");
                return Err(fault.in_file(self.store.name(), at, "a log"));
            }
        }
        Ok(())
    }

    /// All whole changes, those after damage too, and the durable length that the last one names.
    fn intact_changes(&mut self) -> Result<(Vec<WholeChange>, u64)> {
        let mut found = Vec::new();
        let mut promised = START;
        let mut next = Some(START);
        while let Some(begin) = next {
            // An attribute may contain the bytes of a change. Its durable length does not fit
            // between those of the changes before and after.
            let whole = self.whole(begin)?;
            let whole = whole.filter(|whole| (promised..=begin).contains(&whole.durable));
            next = match whole {
                Some(whole) => {
                    promised = whole.durable;
                    let end = whole.end();
                    found.push(whole);
                    Some(end)
                }
                None => self.next_begin(begin)?,
            };
        }
        Ok((found, promised))
    }
}

#[cfg(test)]
mod tests;
