//! A local file read through io_uring: many requests in flight from one thread.
//!
//! It pays off for reads past the page cache, where threads would only wait for the device, and for
//! small requests, where a waiting thread costs more than the read. If the kernel, a container or a
//! sandbox forbids io_uring, the store answers with threads, and [`UringStore::refused`] gives the
//! reason.

mod flight;
mod ring;

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Feed, FileStore, Next, Request, SMALL, Store, check_inside, serve_with_threads};
use crate::error::{Error, Result};
use ring::Ring;

/// The most entries of a ring that the kernel allows (IORING_MAX_ENTRIES of io_uring.c).
const MAX_DEPTH: usize = 32_768;

/// A file read with io_uring, where io_uring is allowed.
///
/// Single reads ([`Store::read_at`]) go through the underlying [`FileStore`].
#[derive(Debug)]
pub struct UringStore {
    file: FileStore,
    refused: Option<String>,
}

impl UringStore {
    /// Opens a file for reads through the page cache, or, if `direct`, past it.
    ///
    /// # Errors
    /// As for [`FileStore::open`]. Forbidden io_uring is not an error: see [`UringStore::refused`].
    pub fn open(path: impl AsRef<Path>, direct: bool) -> Result<Self> {
        let file = if direct { FileStore::open_direct(path) } else { FileStore::open(path) }?;
        let refused = Ring::new(&file, 1).err().map(|e| why_refused(&e));
        Ok(Self { file, refused })
    }

    /// Why threads answer requests instead of io_uring; `None` if io_uring is used.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The underlying file, for queries about its residency or device.
    pub fn file(&self) -> &FileStore {
        &self.file
    }

    /// Makes the store act as if io_uring were forbidden, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn pretend_refused(mut self) -> Self {
        self.refused = Some(why_refused(&rustix::io::Errno::PERM.into()));
        self
    }
}

/// The message to the user for an error from setting up a ring.
fn why_refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring".into(),
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden here, by kernel.io_uring_disabled or by the container's \
             seccomp profile"
                .into()
        }
        Some(libc::ENOMEM) => {
            "the limit of locked memory (ulimit -l) leaves no room for io_uring".into()
        }
        _ => format!("io_uring cannot be set up: {error}"),
    }
}

impl Store for UringStore {
    fn name(&self) -> &Arc<str> {
        self.file.name()
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buf)
    }

    fn answer(&self, request: &mut Request) -> Result<()> {
        self.file.answer(request)
    }

    fn alignment(&self) -> usize {
        self.file.alignment()
    }

    fn serve(&self, depth: usize, feed: &dyn Feed) {
        if self.refused.is_some() || !serve(&self.file, depth, feed) {
            serve_with_threads(&self.file, depth, feed);
        }
    }
}

/// Answers all requests through a ring. Returns false, with no request answered, if no ring can be
/// made: a limit may have been reached since an earlier ring was made.
pub(super) fn serve(file: &FileStore, depth: usize, feed: &dyn Feed) -> bool {
    let depth = depth.clamp(1, MAX_DEPTH);
    let ring = Ring::new(file, depth);
    ring.is_ok_and(|ring| {
        serve_ring(file, ring, depth, feed);
        true
    })
}

fn serve_ring(file: &FileStore, mut ring: Ring<'_>, depth: usize, feed: &dyn Feed) {
    let mut ended = false;
    loop {
        while !ended && ring.in_flight() < depth {
            // Waits for a request only if none is in flight: the feed may be waiting for the buffer
            // of one that is.
            match feed.next(ring.in_flight() == 0) {
                Next::Read(request) => begin(file, &mut ring, request, feed),
                Next::Later => break,
                Next::End => ended = true,
            }
        }
        if ring.in_flight() == 0 {
            if ended {
                return;
            }
            continue;
        }
        if let Err(error) = ring.wait() {
            ring.abandon(&error, |request, outcome| feed.put(request, outcome));
            feed.wake();
            return;
        }
        reap(&mut ring, feed);
    }
}

/// Takes what was answered, and wakes who waits for it, if anything was.
fn reap(ring: &mut Ring<'_>, feed: &dyn Feed) {
    let mut is_any = false;
    ring.reap(|request, outcome| {
        is_any = true;
        feed.put(request, outcome);
    });
    if is_any {
        feed.wake();
    }
}

fn begin(file: &FileStore, ring: &mut Ring<'_>, request: Request, feed: &dyn Feed) {
    if let Err(error) = check_inside(file.name(), file.size(), request.offset, request.len) {
        return feed.done(request, Err(error));
    }
    if request.buf.as_ref().is_none_or(|buf| buf.len() < request.at + request.len) {
        return feed.done(
            request,
            Err(Error::Usage("a request to a file needs a buffer with room for it".into())),
        );
    }
    if request.len == 0 {
        return feed.done(request, Ok(()));
    }
    // The first long request is under way while the buffer of the next is made.
    let alone = request.len >= SMALL;
    ring.start(request);
    if alone && ring.submit().is_ok() {
        // Reads from the page cache have already completed.
        reap(ring, feed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_explained() {
        let why = |errno| why_refused(&io::Error::from_raw_os_error(errno));
        assert!(why(libc::ENOSYS).contains("kernel"));
        assert!(why(libc::EPERM).contains("seccomp"));
        assert!(why(libc::ENOMEM).contains("ulimit"));
        assert!(why(libc::EINVAL).contains("cannot be set up"));
    }
}
