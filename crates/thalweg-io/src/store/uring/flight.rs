//! The state of one request in flight: the next read for the kernel, and the meaning of its
//! results. This module makes no system call.

use crate::error::{Error, Result};
use crate::store::{FileStore, Request, Store};

/// The longest read, in bytes. The kernel cuts reads near 2 GiB short anyway (MAX_RW_COUNT of
/// linux/fs.h is a page below 2 GiB).
const LONGEST: usize = 1 << 30;

/// A request, and the number of its bytes that have arrived.
pub(super) struct Flight {
    pub(super) request: Request,
    done: usize,
    /// Whether reads go past the page cache.
    direct: bool,
}

/// A read for the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KernelRead {
    pub(super) offset: u64,
    pub(super) buf: *mut u8,
    pub(super) len: u32,
    pub(super) direct: bool,
}

/// The next step of a request after a result of the kernel.
#[derive(Debug)]
pub(super) enum FlightStep {
    /// Submit the rest of the request, or the same read again.
    Again,
    /// The request is complete or has failed.
    Done(Result<()>),
}

impl Flight {
    pub(super) fn new(file: &FileStore, mut request: Request) -> Self {
        let Request { offset, len, buf, at, .. } = &mut request;
        let direct = file.direct().is_some_and(|direct| {
            let room = buf
                .as_mut()
                .and_then(|buf| buf.get_mut(*at..*at + len.next_multiple_of(direct.alignment)));
            room.is_some_and(|room| direct.accepts(*offset, room))
        });
        Self { request, done: 0, direct }
    }

    /// The read for the rest of the request. `None` if the request has no buffer.
    pub(super) fn read(&mut self, file: &FileStore) -> Option<KernelRead> {
        let unit = if self.direct { file.direct().map_or(1, |direct| direct.alignment) } else { 1 };
        let start = self.request.at + self.done;
        let len = (self.request.len - self.done).next_multiple_of(unit).min(LONGEST);
        let buf = self.request.buf.as_mut()?.get_mut(start..start + len)?;
        let offset = self.request.offset + self.done as u64;
        Some(KernelRead { offset, buf: buf.as_mut_ptr(), len: len as u32, direct: self.direct })
    }

    /// Takes the result of a read: the number of bytes, or a negative error number.
    pub(super) fn completed(&mut self, file: &FileStore, result: i32) -> FlightStep {
        let here = self.request.offset + self.done as u64;
        match result {
            0 => FlightStep::Done(Err(file.shrunk(here))),
            n if n > 0 => {
                self.done += n as usize;
                let unit =
                    file.direct().filter(|_| self.direct).map_or(1, |direct| direct.alignment);
                if self.done >= self.request.len {
                    FlightStep::Done(Ok(()))
                } else if !self.done.is_multiple_of(unit) {
                    // Only the end of the file yields a number of bytes that is not a multiple of
                    // the alignment.
                    FlightStep::Done(Err(file.shrunk(here + n as u64)))
                } else {
                    FlightStep::Again
                }
            }
            n => match -n {
                libc::EINTR | libc::EAGAIN => FlightStep::Again,
                libc::EINVAL if self.direct => {
                    if let Some(direct) = file.direct() {
                        direct.refuse();
                    }
                    self.direct = false;
                    FlightStep::Again
                }
                errno => {
                    let error = std::io::Error::from_raw_os_error(errno);
                    FlightStep::Done(Err(Error::io_at(file.name(), "reading", here, error)))
                }
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::store::AlignedBuf;
    use std::time::Instant;

    fn file(direct: bool) -> (tempfile::NamedTempFile, FileStore) {
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), vec![1; 100_000]).unwrap();
        let store =
            if direct { FileStore::open_direct(temp.path()) } else { FileStore::open(temp.path()) };
        (temp, store.unwrap())
    }

    fn request(offset: u64, len: usize) -> Request {
        let buf = Some(AlignedBuf::new(4096 + len.next_multiple_of(4096)));
        Request { offset, len, buf, at: 4096, tag: 0, issued: Instant::now() }
    }

    fn asked(flight: &mut Flight, file: &FileStore) -> (u64, usize, u32, bool) {
        let read = flight.read(file).unwrap();
        let start = flight.request.buf.as_ref().unwrap().as_ptr() as usize;
        (read.offset, read.buf as usize - start, read.len, read.direct)
    }

    #[test]
    fn asks_for_the_rest_until_all_is_there() {
        let (_temp, file) = file(false);
        let mut flight = Flight::new(&file, request(1000, 5000));
        assert_eq!(asked(&mut flight, &file), (1000, 4096, 5000, false));
        assert!(matches!(flight.completed(&file, 1), FlightStep::Again));
        assert_eq!(asked(&mut flight, &file), (1001, 4097, 4999, false));
        for again in [-libc::EINTR, -libc::EAGAIN] {
            assert!(matches!(flight.completed(&file, again), FlightStep::Again));
            assert_eq!(asked(&mut flight, &file), (1001, 4097, 4999, false));
        }
        assert!(matches!(flight.completed(&file, 4999), FlightStep::Done(Ok(()))));
    }

    #[test]
    fn reports_the_progress() {
        let (_temp, file) = file(false);
        let mut flight = Flight::new(&file, request(1000, 5000));
        flight.completed(&file, 500);
        let FlightStep::Done(Err(Error::Truncated { offset: 1500, .. })) =
            flight.completed(&file, 0)
        else {
            panic!()
        };
        let FlightStep::Done(Err(Error::Io { offset, source, file: name, .. })) =
            flight.completed(&file, -libc::EIO)
        else {
            panic!()
        };
        assert_eq!((offset, source.raw_os_error()), (Some(1500), Some(libc::EIO)));
        assert_eq!(&name, file.name());
    }

    #[test]
    fn reads_whole_units_past_the_cache() {
        let (_temp, file) = file(true);
        let Some(unit) = file.direct().map(|direct| direct.alignment) else { return };
        let mut flight = Flight::new(&file, request(8192, 10_001));
        let (offset, start, len, direct) = asked(&mut flight, &file);
        assert_eq!(
            (offset, start, len as usize, direct),
            (8192, 4096, 10_001usize.next_multiple_of(unit), true)
        );
        assert!(matches!(flight.completed(&file, 4096), FlightStep::Again));
        assert_eq!(asked(&mut flight, &file).0, 8192 + 4096);
        // A number of bytes that is not a multiple of the alignment marks the end of the file,
        // which comes too early here.
        assert!(matches!(
            flight.completed(&file, 13),
            FlightStep::Done(Err(Error::Truncated { .. }))
        ));

        let mut odd = Flight::new(&file, request(8193, 10));
        assert_eq!(asked(&mut odd, &file), (8193, 4096, 10, false));
    }

    #[test]
    fn goes_through_the_cache_where_the_file_system_refuses() {
        let (_temp, file) = file(true);
        let mut flight = Flight::new(&file, request(8192, 10_001));
        if !asked(&mut flight, &file).3 {
            return;
        }
        assert!(matches!(flight.completed(&file, -libc::EINVAL), FlightStep::Again));
        assert!(!file.is_direct());
        assert_eq!(asked(&mut flight, &file), (8192, 4096, 10_001, false));
        assert!(matches!(
            flight.completed(&file, -libc::EINVAL),
            FlightStep::Done(Err(Error::Io { .. }))
        ));
    }
}
