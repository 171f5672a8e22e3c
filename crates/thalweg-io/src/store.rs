//! Where bytes live: one small trait, and adapters that behave alike.
//!
//! A store answers positional reads. The engine hands it a [`Feed`] of requests and the store keeps
//! as many of them in flight as it is told to: with threads, or, where the kernel has something
//! better, without.

pub mod file;
pub mod joined;
pub mod many;
pub mod memory;
pub mod mmap;
pub mod throttled;
#[cfg(target_os = "linux")]
pub mod uring;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Instant;

use crate::error::{Error, Result};

pub use file::FileStore;
pub use joined::JoinedStore;
pub use memory::MemoryStore;
pub use mmap::MmapStore;
pub use throttled::ThrottledStore;
#[cfg(target_os = "linux")]
pub use uring::UringStore;

/// Memory and offset granularity of O_DIRECT where the kernel does not tell: the page size covers
/// every device.
pub const PAGE: usize = 4096;

/// A thing with a size that can be read at any offset.
pub trait Store: Send + Sync + fmt::Debug {
    /// What messages call it: the path of a file.
    fn name(&self) -> &Arc<str>;

    /// Bytes it held when it was opened.
    fn size(&self) -> u64;

    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the store ends before `buf` is full, [`Error::Io`] if the system
    /// fails the read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// The store's whole contents, where they are addressable without a copy (memory, mmap).
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Whether the byte at `offset` is known to come without waiting for a device.
    fn is_at_hand(&self, _offset: u64) -> bool {
        false
    }

    /// Makes `offset..offset + len` of [`Store::bytes`] quick to touch.
    ///
    /// # Errors
    /// As for [`Store::read_at`]: the bytes are not there, so they must not be touched.
    fn touch(&self, offset: u64, len: usize) -> Result<()> {
        check_inside(self.name(), self.size(), offset, len)
    }

    /// Reads what `request` wants into its buffer, or touches it if it has none.
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

    /// Offsets, lengths and addresses that are multiples of this are read without a bounce buffer.
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
    std::thread::scope(|scope| serve_here(scope, store, feed, &left, feed.next(true)));
}

/// Answers requests from `next` on. A thread is started for each that is there at the same time, as
/// long as some are left to start: of a read of one request, starting all would take most of the
/// time.
fn serve_here<'scope, S: Store + ?Sized>(
    scope: &'scope Scope<'scope, '_>,
    store: &'scope S,
    feed: &'scope dyn Feed,
    left: &'scope AtomicUsize,
    mut next: Next,
) {
    while let Next::Read(mut request) = next {
        while left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
        {
            match feed.next(false) {
                more @ Next::Read(_) => {
                    drop(scope.spawn(move || serve_here(scope, store, feed, left, more)));
                }
                Next::Later | Next::End => {
                    left.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        let outcome = store.answer(&mut request);
        feed.done(request, outcome);
        next = feed.next(true);
    }
}

/// Bytes wanted, and the buffer that they go to.
#[derive(Debug)]
pub struct Request {
    /// First byte wanted; a multiple of the store's alignment.
    pub offset: u64,
    /// How many bytes are wanted. They lie inside the store.
    pub len: usize,
    /// Where they go. `None` for stores with [`Store::bytes`], which only need to be told what will
    /// be touched.
    pub buf: Option<AlignedBuf>,
    /// Where in `buf` they go: a multiple of the store's alignment, with room for `len` rounded up
    /// to it. What that room beyond `len` holds afterwards means nothing.
    pub at: usize,
    /// The feed's own name for the request.
    pub tag: u64,
    /// When the feed gave it out.
    pub issued: Instant,
}

/// What [`Feed::next`] says.
#[derive(Debug)]
pub enum Next {
    /// Read this.
    Read(Request),
    /// Nothing now; ask again once something is done. Only said to callers that do not wait.
    Later,
    /// No more requests will come.
    End,
}

/// Where a store gets its requests from, and brings their outcomes to.
pub trait Feed: Sync {
    /// The next request. With `wait`, blocks until there is one or there will be none.
    fn next(&self, wait: bool) -> Next;
    /// Takes back a request, in any order.
    fn done(&self, request: Request, outcome: Result<()>);
    /// Bytes of a usual request, where that is known beforehand: a store may answer many small ones
    /// in another way.
    fn usual(&self) -> Option<usize> {
        None
    }
}

/// Bytes at an address that O_DIRECT accepts, without unsafe code: an over-long vector and the
/// offset into it.
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

    /// `len` zero bytes at a multiple of the page size, or `None` where there is no memory for
    /// them: for lengths that came from a file.
    pub fn try_new(len: usize) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len.checked_add(PAGE)?).ok()?;
        bytes.resize(len + PAGE, 0);
        let start = bytes.as_ptr().align_offset(PAGE);
        Some(Self { bytes, start, len })
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
pub(crate) fn check_inside(name: &Arc<str>, size: u64, offset: u64, len: usize) -> Result<()> {
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
