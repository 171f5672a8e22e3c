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

use std::ops::Range;
use std::sync::Arc;

use thalweg_codec::splitmix::word;
use thalweg_io::disk::{Disk, Sink};
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 8] = b"THALWLOG";
const MARK: &[u8; 4] = b"chg!";
const START: u64 = 16;
const HEAD: usize = 24;

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
    f: &mut VisitChange<'_>,
) -> Result<u64> {
    let store = disk.open(file)?;
    let name = store.name().clone();
    let bytes = bytes_of(&*store)?;
    let head = [MAGIC.as_slice(), &number.to_le_bytes()].concat();
    if bytes.get(..START as usize) != Some(&head) {
        let found = format!("{:02x?}", &bytes[..bytes.len().min(START as usize)]);
        return Err(
            Fault::new(0, found, "\"THALWLOG\" and the log's number").in_file(&name, 0, "a log")
        );
    }
    let mut at = START as usize;
    while let Some((change, end)) = whole(&bytes, at) {
        f(at as u64, change)
            .map_err(|fault| fault.in_file(&name, (at + HEAD) as u64, "a change"))?;
        at = end;
    }
    // Look for a whole change after the incomplete one. Other bytes do not look like a change by
    // accident, because their hash would have to match.
    let mut next = at + 1;
    while let Some(found) =
        bytes.get(next..).and_then(|rest| rest.windows(4).position(|four| four == MARK))
    {
        let begin = (next + found).checked_sub(4).filter(|begin| *begin > at);
        next += found + 1;
        let Some(begin) = begin else { continue };
        if whole(&bytes, begin).is_some() && word(&bytes[begin + 8..begin + 16]) > at as u64 {
            let found = format!("a damaged change before a whole one at byte {begin}");
            let advice = "a whole one; put it back from a copy";
            return Err(Fault::new(0, found, advice).in_file(&name, at as u64, "a log"));
        }
    }
    Ok(at as u64)
}

/// Passes the whole changes of a damaged log to `f`, including those after damage. Returns the byte
/// ranges that held something else: a damaged head, changes that `f` rejects or that later changes
/// name as durable, and the end, where a damaged change cannot be told from what a crash leaves.
pub(crate) fn replay_damaged(
    disk: &dyn Disk,
    file: &str,
    f: &mut VisitChange<'_>,
) -> Result<Vec<Range<u64>>> {
    let bytes = bytes_of(&*disk.open(file)?)?;
    let mut lost = Vec::new();
    if bytes.get(..MAGIC.len()) != Some(MAGIC) || bytes.len() < START as usize {
        lost.push(0..START.min(bytes.len() as u64));
    }
    let mut found = Vec::new();
    let mut next = START as usize;
    let mut promised = START;
    while next < bytes.len() {
        // An attribute may contain the bytes of a change. Its durable length does not fit between
        // those of the changes before and after.
        let fits =
            |begin: usize| (promised..=begin as u64).contains(&word(&bytes[begin + 8..begin + 16]));
        if let Some((change, end)) = whole(&bytes, next).filter(|_| fits(next)) {
            promised = word(&bytes[next + 8..next + 16]);
            found.push((next, change));
            next = end;
        } else if let Some(more) =
            bytes.get(next + 5..).and_then(|rest| rest.windows(4).position(|four| four == MARK))
        {
            next += 1 + more;
        } else {
            break;
        }
    }
    let mut at = START;
    for (begin, change) in found {
        // Bytes that a crash left were never durable, nor was anything after them.
        if begin as u64 > at {
            if at >= promised {
                break;
            }
            lost.push(at..begin as u64);
        }
        at = (begin + HEAD + change.len()) as u64;
        if f(begin as u64, change).is_err() {
            lost.push(begin as u64..at);
        }
    }
    if at < bytes.len() as u64 {
        lost.push(at..bytes.len() as u64);
    }
    Ok(lost)
}

fn bytes_of(store: &dyn Store) -> Result<Vec<u8>> {
    let mut bytes = vec![0; store.size() as usize];
    store.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// The change that begins at an offset, and where it ends, if it is whole.
fn whole(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head = bytes.get(at..at + HEAD)?;
    let end = (at + HEAD).checked_add(word(&head[..4]) as usize)?;
    let change = bytes.get(at + HEAD..end)?;
    let hash = XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&head[..16]), change);
    (&head[4..8] == MARK && word(&head[16..24]) == hash).then_some((change, end))
}
