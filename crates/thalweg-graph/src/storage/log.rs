//! The log: changes since the last segment, each whole or not at all.
//!
//! ```text
//! "THALWLOG", number u64 of the log
//! then, for each change: bytes u32 of it, "chg!", end u64 of what was durable when it was written,
//!   XXH3 u64 of it and of the 16 bytes before, and the change (see `records`)
//! ```
//!
//! What a crash leaves at the end is no whole change, and was never promised. But a change that is
//! not whole, and after which another one says that it was durable, was damaged later: that is an
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

/// A log being written.
pub(crate) struct LogWriter {
    sink: Box<dyn Sink>,
    /// Bytes written, and how many of them are durable.
    written: u64,
    durable: u64,
    /// A failed write may have left anything at the end.
    is_broken: bool,
    name: Arc<str>,
}

impl LogWriter {
    /// Starts a log, durable but for its name.
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

    /// Goes on with one after its first `len` bytes, which are whole.
    pub(crate) fn append(disk: &dyn Disk, file: &str, len: u64) -> Result<Self> {
        let mut sink = disk.append(file, len)?;
        // A reader that finds a change after them may rely on them.
        sink.sync()?;
        Ok(Self { sink, written: len, durable: len, is_broken: false, name: disk.path_of(file) })
    }

    /// Lets nothing more be written: whether a manifest names this log is not known.
    pub(crate) fn give_up(&mut self) {
        self.is_broken = true;
    }

    /// Fails once a write has failed.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_broken {
            let source = std::io::Error::other("an earlier write failed: open the network again");
            return Err(Error::io(&self.name, "writing", source));
        }
        Ok(())
    }

    /// Appends a change; it is not durable yet.
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
        // What is in the page cache after a failed fsync is not known (Rebello et al., ATC 2020).
        self.is_broken |= outcome.is_err();
        outcome?;
        self.durable = self.written;
        Ok(())
    }
}

/// Is shown where a change begins, and the change.
pub(crate) type Take<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Fault> + 'a;

/// Shows `f` all whole changes and where each begins; the bytes that they take. A log that is not
/// there, or shorter than its head, has none.
pub(crate) fn replay(disk: &dyn Disk, file: &str, number: u64, f: &mut Take<'_>) -> Result<u64> {
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
    // Bytes of a change are no change by accident: its hash would have to be right.
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

/// What is left of a log: shows `f` the whole changes, those after damage too. Returns the bytes
/// that held others: a damaged head, changes that `f` refuses or that later ones rely on, and the
/// end, where nobody can tell a damaged change from what a crash leaves.
pub(crate) fn replay_damaged(
    disk: &dyn Disk,
    file: &str,
    f: &mut Take<'_>,
) -> Result<Vec<Range<u64>>> {
    let bytes = bytes_of(&*disk.open(file)?)?;
    let mut lost = Vec::new();
    if bytes.get(..MAGIC.len()) != Some(MAGIC) || bytes.len() < START as usize {
        lost.push(0..START.min(bytes.len() as u64));
    }
    let (mut found, mut next, mut promised) = (Vec::new(), START as usize, START);
    while next < bytes.len() {
        // What lies in a damaged change, as an attribute may, does not fit between those before and
        // after.
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
        // What a crash left unwritten was never promised, and nothing after it was.
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

/// The change that begins here, and where it ends, if it is whole.
fn whole(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head = bytes.get(at..at + HEAD)?;
    let end = (at + HEAD).checked_add(word(&head[..4]) as usize)?;
    let change = bytes.get(at + HEAD..end)?;
    let hash = XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&head[..16]), change);
    (&head[4..8] == MARK && word(&head[16..24]) == hash).then_some((change, end))
}
