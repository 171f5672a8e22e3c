//! The tries of a read: why one ended, and when another makes sense.

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future;
use thalweg_io::random::hash01;
use thalweg_io::{Error, Result};
use tokio::time::Instant;

use super::Object;
use super::answer::Room;
use super::refused::Refused;
use crate::checksums::Checksum;
use crate::retries::wait_before;
use crate::totals::retried;

/// Why a try ended.
pub(super) enum Ended {
    /// The read fails.
    Failed(Error),
    /// Another try may succeed. The words say why this one did not; the server may ask for a wait.
    Passing { why: String, kind: io::ErrorKind, wait: Option<Duration> },
}

/// The tries of one read.
pub(super) struct Tries<'a> {
    object: &'a Object,
    /// The first byte of the read.
    pub(super) offset: u64,
    /// Tries since the last progress.
    pub(super) count: u32,
    /// When the last progress was made.
    pub(super) last: Instant,
    /// Whether the checksum of what came was wrong.
    was_wrong: bool,
}

impl<'a> Tries<'a> {
    pub(super) fn new(object: &'a Object, offset: u64) -> Self {
        Self { object, offset, count: 0, last: Instant::now(), was_wrong: false }
    }

    pub(super) fn progress(&mut self) {
        self.count = 0;
        self.last = Instant::now();
    }

    /// Compares the whole object with its checksum. The first time that it differs, another try may
    /// succeed.
    pub(super) fn verify(
        &mut self,
        sum: Option<&Checksum>,
        room: &Room<'_, '_>,
        size: u64,
    ) -> Result<(), Ended> {
        let whole = sum.zip(room.whole(size));
        let Some(Err(why)) = whole.map(|(sum, bytes)| sum.verify(bytes)) else { return Ok(()) };
        let kind = io::ErrorKind::InvalidData;
        if !std::mem::replace(&mut self.was_wrong, true) {
            return Err(Ended::Passing { why, kind, wait: None });
        }
        let why = format!("{why}, twice: it is damaged on the way, or in the store");
        Err(Ended::Failed(self.object.failed(0, kind, why)))
    }

    /// Waits until another try makes sense, or returns the error of the last one.
    pub(super) async fn again(&mut self, ended: Ended) -> Result<()> {
        let (why, kind, wait) = match ended {
            Ended::Failed(error) => return Err(error),
            Ended::Passing { why, kind, wait } => (why, kind, wait),
        };
        let object = self.object;
        self.count += 1;
        let requests = object.tally.requests.load(Ordering::Relaxed);
        let usual = wait_before(self.count, hash01(self.offset, requests, self.count.into()));
        let until = Instant::now() + wait.unwrap_or_default().max(usual);
        let is_over = until >= self.last + object.patience.read;
        if is_over || !object.tally.may_retry(self.count) {
            let tries = if self.count == 1 { "try" } else { "tries" };
            let limit = object.patience.read.as_secs_f64();
            let limit =
                if is_over { format!(", the time-out being {limit} s") } else { String::new() };
            let why = format!(
                "{why}; given up after {} {tries} and {:.1} s without progress{limit}",
                self.count,
                self.last.elapsed().as_secs_f64()
            );
            return Err(object.failed(self.offset, kind, why));
        }
        match object.patiently(pin!(future::pending::<()>()), until).await {
            Err(Refused::Cancelled) => Err(Error::Cancelled),
            _ => {
                retried(kind);
                Ok(())
            }
        }
    }
}
