//! Requests for ranges of an object, and receiving their answers.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::future::{self, Either};
use object_store::{GetOptions, GetRange, ObjectStore};
use thalweg_io::{Error, Result};
use tokio::time::{Instant, sleep, timeout};

use super::answer::{Answer, Body, Room};
use super::refused::Refused;
use super::tries::{Ended, Tries};
use super::{LEAST_PROGRESS, Object, POLL, Version};
use crate::admission::Admitted;
use crate::checksums::Checksum;
use crate::lane;
use crate::transport::{Aside, Trouble, with_aside};

impl Object {
    /// Waits until the server may have another request. The server need not be patient with that.
    pub(super) async fn admitted(&self, tries: &mut Tries<'_>) -> Result<Admitted<'_>> {
        let started = Instant::now();
        let mut entering = pin!(self.tally.admission.enter());
        loop {
            match self.patiently(entering.as_mut(), Instant::now() + self.patience.read).await {
                Ok(admitted) => {
                    tries.last += started.elapsed();
                    return Ok(admitted);
                }
                Err(Refused::Cancelled) => return Err(Error::Cancelled),
                // Others are being answered.
                Err(_) => {}
            }
        }
    }

    /// The answer to a request for a range. A slow request is made a second time, and the answer
    /// that comes first counts. `since`: when the last progress was made.
    pub(super) async fn answer(&self, range: GetRange, since: Instant) -> Result<Answer, Refused> {
        let late = Instant::now() + self.patience.request;
        let deadline = late.min(since + self.patience.read);
        let get = || {
            self.tally.requests.fetch_add(1, Ordering::Relaxed);
            let options = GetOptions {
                range: Some(range.clone()),
                if_match: self.version.condition(),
                ..GetOptions::default()
            };
            Box::pin(with_aside(self.service.get_opts(&self.key, options)))
        };
        let waiting = self.tally.pace.made(match &range {
            GetRange::Bounded(range) => range.end - range.start,
            GetRange::Suffix(len) => *len,
            GetRange::Offset(_) => u64::MAX,
        });
        let both = async {
            let mut first = get();
            loop {
                match future::select(first, pin!(sleep(waiting.next_look()))).await {
                    Either::Left((answer, _)) => return answer,
                    Either::Right(((), late)) => first = late,
                }
                if waiting.is_slow() && self.tally.may_hedge() {
                    break;
                }
            }
            match future::select(first, get()).await {
                Either::Left((answer, other)) | Either::Right((answer, other)) => {
                    if answer.0.is_ok() { answer } else { other.await }
                }
            }
        };
        let (answer, Aside { trouble, body }) = self.patiently(pin!(both), deadline).await?;
        let is_overload =
            matches!(&trouble, Some(Trouble::Refused(refusal)) if refusal.is_overload());
        self.tally.admission.answered(is_overload);
        match answer {
            Ok(answer) => {
                self.tally.answered();
                waiting.answered();
                let version = Version::of(&answer.meta);
                let range = answer.range.clone();
                let sum = answer.extensions.get::<Checksum>().cloned();
                let body = match body {
                    Some(connection) => {
                        let len = answer.range.end - answer.range.start;
                        let announced = connection.left().unwrap_or(len);
                        if announced > len {
                            let why = format!("the server sends {announced} bytes, not {len}");
                            return Err(Refused::Invalid(why));
                        }
                        Body::Direct(connection)
                    }
                    None => Body::Pieces(answer.into_stream(), Bytes::new()),
                };
                Ok(Answer { version, range, sum, body })
            }
            Err(error) => Err(Refused::of(trouble, &error)),
        }
    }

    /// Puts the bytes of an answer into `room`.
    pub(super) async fn receive(
        &self,
        mut body: Body,
        room: &mut Room<'_, '_>,
        tries: &mut Tries<'_>,
    ) -> Result<(), Ended> {
        let offset = tries.offset;
        let mut deadline = Instant::now() + self.patience.request;
        let mut since_progress = 0;
        while room.filled < room.len {
            let received = self.patiently(pin!(body.read(room.space())), deadline).await;
            let len = match received.and_then(|received| received) {
                Ok(len) => len,
                Err(refused) => return Err(self.ended(refused, offset + room.filled as u64)),
            };
            if len == 0 {
                let why = format!("the answer ended {} bytes early", room.len - room.filled);
                let kind = io::ErrorKind::UnexpectedEof;
                return Err(Ended::Passing { why, kind, wait: None });
            }
            room.filled += len;
            self.tally.bytes.fetch_add(len as u64, Ordering::Relaxed);
            since_progress += len;
            if since_progress >= LEAST_PROGRESS || room.filled == room.len {
                since_progress = 0;
                deadline = Instant::now() + self.patience.request;
                tries.progress();
            }
        }
        match body {
            Body::Direct(connection) => lane::keep(connection),
            Body::Pieces(_, rest) if rest.is_empty() => {}
            Body::Pieces(..) => {
                let why = "the server sent more bytes than were asked for";
                let at = offset + room.filled as u64;
                let error = self.failed(at, io::ErrorKind::InvalidData, why.into());
                return Err(Ended::Failed(error));
            }
        }
        Ok(())
    }

    /// Waits for something until a deadline, or until the read is cancelled.
    pub(super) async fn patiently<F: Future>(
        &self,
        mut wanted: Pin<&mut F>,
        deadline: Instant,
    ) -> Result<F::Output, Refused> {
        loop {
            if self.control.is_cancelled() {
                return Err(Refused::Cancelled);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Refused::Late);
            }
            if let Ok(output) = timeout(left.min(POLL), &mut wanted).await {
                return Ok(output);
            }
        }
    }
}
