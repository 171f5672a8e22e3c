//! Stores of bytes: a small trait and its implementations.
//!
//! A store answers positional reads. The engine gives it a [`Feed`] of requests, and the store
//! keeps the given number of them in flight, with threads or with io_uring.

pub mod counted;
pub mod file;
pub mod joined;
pub mod many;
pub mod memory;
pub mod mmap;
pub mod throttled;
#[cfg(target_os = "linux")]
pub mod uring;

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread::{self, Scope};
use crate::sync::{Mutex, PoisonError, spawn_scoped};

pub use counted::{Asked, CountedStore, Counter};
pub use file::FileStore;
pub use joined::JoinedStore;
pub use memory::MemoryStore;
pub use mmap::MmapStore;
pub use throttled::ThrottledStore;
#[cfg(target_os = "linux")]
pub use uring::UringStore;

/// Memory and offset alignment of O_DIRECT reads, in bytes, if the kernel does not report one. The
/// page size suits every device.
pub const PAGE: usize = 4096;

/// In bytes. For requests that are smaller, the system call or a thread that waits costs as much as
/// the read: a store that can submits them together.
pub(crate) const SMALL: usize = 64 << 10;

/// A source of bytes with a fixed size that can be read at any offset.
pub trait Store: Send + Sync + fmt::Debug {
    /// Its name in messages: the path of a file.
    fn name(&self) -> &Arc<str>;

    /// Its size in bytes when it was opened.
    fn size(&self) -> u64;

    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the store ends before `buf` is full, [`Error::Io`] if the system
    /// fails the read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Fills each of `parts`, whose bytes follow each other in the store, from byte `offset` on. A
    /// store that has to be asked does it with one request.
    ///
    /// # Errors
    /// As for [`Store::read_at`].
    fn read_parts(&self, offset: u64, parts: &mut [&mut [u8]]) -> Result<()> {
        let mut at = offset;
        for part in parts {
            self.read_at(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// The whole contents, if they are addressable without a copy (memory, mmap). A store that has
    /// them returns the same bytes for as long as it lives, because a run keeps views of them.
    /// Requests that start beyond them get a buffer.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Fills `buf` from byte `offset` on if that needs no waiting for a device. Returns whether
    /// `buf` is full; `false` if the store cannot tell.
    fn read_at_hand(&self, _offset: u64, _buf: &mut [u8]) -> bool {
        false
    }

    /// Whether the byte at `offset` can be read without waiting for a device. `false` if the store
    /// cannot tell.
    fn is_at_hand(&self, offset: u64) -> bool {
        self.read_at_hand(offset, &mut [0])
    }

    /// Bytes at the start that came when the store was opened: reading them takes no request.
    fn head(&self) -> u64 {
        0
    }

    /// The bytes that a read of `range` asks for where requests are paid for: with a
    /// [cache](crate::object_cache) in front of an object, the blocks that are not in it. Empty if
    /// there are none.
    fn missing(&self, range: Range<u64>) -> Range<u64> {
        range
    }

    /// A file with all bytes of the store at their places, which can be read in its stead. `None`
    /// if there is none. A cache in front of an object has one once the object is complete there.
    fn local_copy(&self) -> Option<File> {
        None
    }

    /// Bytes that reads have fetched and a cache could not take in time. [`Store::keep_more`]
    /// fetches them again.
    fn unkept(&self) -> u64 {
        0
    }

    /// Fetches some of the [unkept](Store::unkept) bytes into `room`, and adds them to the cache,
    /// however long its disc takes. Returns whether there may be more: not if nothing was left, and
    /// not after a failure.
    fn keep_more(&self, _room: &mut [u8]) -> bool {
        false
    }

    /// Makes `offset..offset + len` of [`Store::bytes`] quick to touch.
    ///
    /// # Errors
    /// As for [`Store::read_at`]. After an error, these bytes must not be accessed.
    fn touch(&self, offset: u64, len: usize) -> Result<()> {
        check_inside(self.name(), self.size(), offset, len)
    }

    /// Reads the bytes of `request` into its buffer, or touches them if it has no buffer.
    ///
    /// # Errors
    /// As for [`Store::read_at`].
    fn answer(&self, request: &mut Request) -> Result<()> {
        match &mut request.buf {
            Some(buf) => {
                self.read_at(request.offset, &mut buf[request.at..request.at + request.len])
            }
            None => self.touch(request.offset, request.len),
        }
    }

    /// The alignment, in bytes, of offsets, lengths and addresses that are read without a bounce
    /// buffer.
    fn alignment(&self) -> usize {
        1
    }

    /// Answers requests from `feed` until it has no more, with up to `depth` of them in flight.
    ///
    /// This default runs `depth` threads over [`Store::answer`].
    fn serve(&self, depth: usize, feed: &dyn Feed) {
        serve_with_threads(self, depth, feed);
    }
}

fn serve_with_threads<S: Store + ?Sized>(store: &S, depth: usize, feed: &dyn Feed) {
    let left = AtomicUsize::new(depth.saturating_sub(1));
    thread::scope(|scope| serve_here(scope, store, feed, &left, feed.next(true)));
}

/// Answers requests, beginning with `next`. Starts another thread only if another request is
/// waiting and `left` is not 0. For a read of one request, starting all threads would take most of
/// the time.
fn serve_here<'scope, S: Store + ?Sized>(
    scope: &'scope Scope<'scope, '_>,
    store: &'scope S,
    feed: &'scope dyn Feed,
    left: &'scope AtomicUsize,
    mut next: Next,
) {
    while let Next::Read(mut request) = next {
        let mut kept = None;
        while left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
        {
            match feed.next(false) {
                Next::Read(more) => {
                    // A thread that does not start is not tried again.
                    kept = serve_there(scope, store, feed, left, more);
                    if kept.is_some() {
                        break;
                    }
                }
                Next::Later | Next::End => {
                    left.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        let outcome = store.answer(&mut request);
        feed.done(request, outcome);
        next = kept.map_or_else(|| feed.next(true), Next::Read);
    }
}

/// Answers requests on another thread, beginning with `first`. Returns that request if the system
/// starts no thread.
fn serve_there<'scope, S: Store + ?Sized>(
    scope: &'scope Scope<'scope, '_>,
    store: &'scope S,
    feed: &'scope dyn Feed,
    left: &'scope AtomicUsize,
    first: Request,
) -> Option<Request> {
    let first = Arc::new(Mutex::new(Some(first)));
    let taken = first.clone();
    let take = |first: &Mutex<Option<Request>>| {
        first.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let job = move || {
        if let Some(first) = take(&taken) {
            serve_here(scope, store, feed, left, Next::Read(first));
        }
    };
    spawn_scoped(scope, "thalweg-store", job).is_err().then(|| take(&first)).flatten()
}

/// A read of some bytes into a buffer.
#[derive(Debug)]
pub struct Request {
    /// Offset of the first byte; a multiple of the store's alignment.
    pub offset: u64,
    /// The number of bytes. They lie inside the store.
    pub len: usize,
    /// The buffer that receives the bytes. `None` for bytes that [`Store::bytes`] has, which
    /// the store only prepares for access.
    pub buf: Option<AlignedBuf>,
    /// Offset in `buf` where the bytes go: a multiple of the store's alignment. After it, `buf` has
    /// room for `len` rounded up to the alignment. The contents of the room beyond `len` are
    /// undefined.
    pub at: usize,
    /// Identifies the request for the feed.
    pub tag: u64,
    /// When the feed issued the request.
    pub issued: Instant,
}

/// The answer of [`Feed::next`].
#[derive(Debug)]
pub enum Next {
    /// Read this.
    Read(Request),
    /// There is no request now; ask again once a request is done. Only callers that do not wait get
    /// this answer.
    Later,
    /// No more requests will come.
    End,
}

/// Issues requests to a store and takes their outcomes.
pub trait Feed: Sync {
    /// The next request. If `wait` is true, it blocks until there is one or no more will come.
    fn next(&self, wait: bool) -> Next;
    /// Takes back an answered request. Requests may come back in any order.
    fn done(&self, request: Request, outcome: Result<()>) {
        self.put(request, outcome);
        self.wake();
    }
    /// Takes back one of several requests that were answered at the same time. [`Feed::wake`]
    /// follows the last one.
    fn put(&self, request: Request, outcome: Result<()>);
    /// Wakes the threads that wait for answers.
    fn wake(&self) {}
    /// Bytes of a typical request, if known beforehand. A store may answer small requests
    /// differently.
    fn usual(&self) -> Option<usize> {
        None
    }
}

/// A buffer at an address that O_DIRECT accepts. To avoid unsafe code, it is a longer vector and
/// the offset of the aligned bytes in it.
pub struct AlignedBuf {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// `len` zero bytes at a multiple of the page size.
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        Self { bytes, start, len }
    }

    /// `len` zero bytes at a multiple of the page size, or `None` if there is not enough memory.
    /// For lengths that were read from a file.
    pub fn try_new(len: usize) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len.checked_add(PAGE)?).ok()?;
        bytes.resize(len + PAGE, 0);
        let start = bytes.as_ptr().align_offset(PAGE);
        Some(Self { bytes, start, len })
    }

    /// These bytes, at whatever address they are: for a store whose alignment is 1.
    pub(crate) fn unaligned(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes, start: 0 }
    }

    /// Its bytes.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        self.bytes.truncate(self.start + self.len);
        self.bytes.drain(..self.start);
        self.bytes
    }
}

impl std::ops::Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({})", self.len)
    }
}

/// Fails unless `len` bytes from `offset` on lie inside a store of `size` bytes.
///
/// # Errors
/// [`Error::Truncated`].
pub fn check_inside(name: &Arc<str>, size: u64, offset: u64, len: usize) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Error::Truncated {
            file: name.clone(),
            what: "a read".into(),
            offset,
            size,
            advice: "",
        }),
    }
}
