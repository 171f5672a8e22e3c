//! A ring of io_uring, and the requests whose buffers the kernel may be writing to.
#![allow(unsafe_code)] // The kernel gets pointers into buffers; each block states its contract.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::Fixed;
use io_uring::{IoUring, Probe, opcode};

use super::flight::{Flight, FlightStep};
use crate::error::{Error, Result};
use crate::store::{FileStore, Request, Store};

/// Indices of the registered files.
const BUFFERED: u32 = 0;
const DIRECT: u32 = 1;

/// A ring of reads.
///
/// The invariant that all `unsafe` here rests on: a request whose read was pushed stays in
/// `flights`, unchanged, until the completion of that read was taken. The invariant also holds at
/// the end: [`Drop`] waits for the requests in flight, and if waiting fails, their buffers are
/// leaked rather than freed.
pub(super) struct Ring<'a> {
    file: &'a FileStore,
    uring: IoUring,
    /// The requests by slot. The slot is the user data of the read.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
}

impl<'a> Ring<'a> {
    /// A ring with room for `depth` requests.
    pub(super) fn new(file: &'a FileStore, depth: usize) -> io::Result<Self> {
        let entries = depth as u32;
        // One thread submits and reaps all reads, so that the kernel need not interrupt it to
        // complete a read (Linux 6.1).
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries)
            .or_else(|_| IoUring::builder().build(entries))?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it has no plain reads before Linux 5.6",
            ));
        }
        let direct = file.direct().map_or(file.file(), |direct| &direct.file);
        uring.submitter().register_files(&[file.file().as_raw_fd(), direct.as_raw_fd()])?;
        let flights = (0..depth).map(|_| None).collect();
        Ok(Self { file, uring, flights, free: (0..depth).rev().collect() })
    }

    /// The number of requests that are queued or submitted.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Queues `request`, whose buffer must have room for it. There must be a free slot.
    /// [`Ring::submit`] or [`Ring::wait`] passes it to the kernel.
    pub(super) fn start(&mut self, request: Request) {
        let flight = Flight::new(self.file, request);
        if let Some(slot) = self.free.pop() {
            self.flights[slot] = Some(flight);
            self.push(slot);
        }
    }

    /// Queues the next read of the request in `slot`.
    fn push(&mut self, slot: usize) {
        let Some(read) = self.flights[slot].as_mut().and_then(|flight| flight.read(self.file))
        else {
            return;
        };
        let file = Fixed(if read.direct { DIRECT } else { BUFFERED });
        let entry = opcode::Read::new(file, read.buf, read.len)
            .offset(read.offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: the pointer and length come from a slice of the buffer of `flights[slot]`, which
        // stays there until this read has completed (see `Ring`); a vector's bytes do not move when
        // the vector does. The registered files are open as long as `self.file` is borrowed.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            // Not reached: there are at least as many entries as slots, and each slot has at most
            // one read.
            let _ = self.uring.submit();
        }
    }

    /// Passes the queued reads to the kernel.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        passing(self.uring.submit())
    }

    /// Passes the queued reads to the kernel and waits until a read has completed. May also return
    /// early after a signal.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        passing(self.uring.submit_and_wait(1))
    }

    fn next_completion(&mut self) -> Option<(usize, i32)> {
        let entry = self.uring.completion().next()?;
        Some((entry.user_data() as usize, entry.result()))
    }

    /// Takes the completed reads, and passes the finished requests to `done`.
    pub(super) fn reap(&mut self, mut done: impl FnMut(Request, Result<()>)) {
        while let Some((slot, result)) = self.next_completion() {
            let Some(flight) = self.flights.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            match flight.completed(self.file, result) {
                FlightStep::Again => self.push(slot),
                FlightStep::Done(outcome) => {
                    if let Some(flight) = self.flights[slot].take() {
                        self.free.push(slot);
                        done(flight.request, outcome);
                    }
                }
            }
        }
    }

    /// Fails all requests in flight with `error`. The kernel may still write to their buffers, so
    /// they are never freed.
    pub(super) fn abandon(&mut self, error: &io::Error, mut done: impl FnMut(Request, Result<()>)) {
        for slot in 0..self.flights.len() {
            let Some(mut flight) = self.flights[slot].take() else { continue };
            self.free.push(slot);
            std::mem::forget(flight.request.buf.take());
            let error = io::Error::new(error.kind(), error.to_string());
            let error = Error::io_at(
                self.file.name(),
                "waiting for io_uring to read",
                flight.request.offset,
                error,
            );
            done(flight.request, Err(error));
        }
    }
}

/// Ignores the temporary errors of io_uring_enter(2): a signal arrived, or completions must be
/// taken before more is submitted.
fn passing(outcome: io::Result<usize>) -> io::Result<()> {
    match outcome {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {
            std::thread::yield_now();
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

impl Drop for Ring<'_> {
    /// Waits for the reads that are still in flight, for instance after a panic in the feed.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if let Err(error) = self.wait() {
                return self.abandon(&error, |_, _| {});
            }
            while let Some((slot, _)) = self.next_completion() {
                if self.flights.get_mut(slot).and_then(Option::take).is_some() {
                    self.free.push(slot);
                }
            }
        }
    }
}
