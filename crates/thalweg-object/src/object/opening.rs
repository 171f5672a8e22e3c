//! Opening an object: the request for its first bytes, whose answer has its version.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use futures_util::future;
use object_store::{GetRange, ObjectStoreExt};
use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::open::ObjectVersion;
use tokio::runtime::Runtime;

use super::answer::{Answer, Room};
use super::refused::Refused;
use super::tries::{Ended, Tries};
use super::{HEAD, Object, Part, Version};
use crate::address::{Address, device};
use crate::retries::Patience;
use crate::totals::shared_tally;
use crate::transport::with_aside;

/// Opens the object at a URL.
///
/// # Errors
/// [`Error::Usage`](thalweg_io::Error::Usage) for a URL that names no object, and where the
/// environment does not fit; [`Error::Io`](thalweg_io::Error::Io) if the server refuses it or does
/// not answer; [`Error::Cancelled`](thalweg_io::Error::Cancelled).
pub fn open(url: &str, control: &Control, patience: Patience) -> Result<Object> {
    open_at(url, 0..HEAD, control, patience)
}

/// [`open`], where other bytes than the first are needed first: `first`. They are kept.
///
/// # Errors
/// As [`open`].
pub fn open_at(
    url: &str,
    first: Range<u64>,
    control: &Control,
    patience: Patience,
) -> Result<Object> {
    open_on(Address::parse(url)?, first, 0, None, control, patience)
}

/// [`open`], where also the last `len` bytes are needed. They are asked for at the same time, and
/// kept until a read has all of them.
///
/// # Errors
/// As [`open`].
pub fn open_with_end(url: &str, len: u64, control: &Control, patience: Patience) -> Result<Object> {
    open_on(Address::parse(url)?, 0..HEAD, len, None, control, patience)
}

/// Opens a version of the object at a URL without a request. Whether it is there shows when it is
/// read.
///
/// # Errors
/// [`Error::Usage`](thalweg_io::Error::Usage) for a URL that names no object, and where the
/// environment does not fit.
pub fn open_version(
    url: &str,
    version: ObjectVersion,
    control: &Control,
    patience: Patience,
) -> Result<Object> {
    let Address { service, key, shown, place, .. } = Address::parse(url)?;
    let ObjectVersion { size, tag, modified } = version;
    let version = Version { size, etag: Some(tag), modified: modified.unwrap_or(0) };
    let unopened = Object::unopened(shown, service, control, patience);
    let tally = shared_tally(&device(url)?);
    Ok(Object { key, place, version, tally, ..unopened })
}

/// Opens the object at an address: asks for the bytes `first`, and for `end` bytes at its end. Its
/// requests run on a runtime, or else in lanes.
pub(crate) fn open_on(
    address: Address,
    first: Range<u64>,
    end: u64,
    runtime: Option<&'static Runtime>,
    control: &Control,
    patience: Patience,
) -> Result<Object> {
    let Address { service, key, shown, place, .. } = address;
    let unopened = Object::unopened(shown, service, control, patience);
    let mut object = Object { key, place, runtime, ..unopened };
    let (looked, end) = object.wait(async {
        let (looked, end) = future::join(object.look(first), object.look_at_end(end)).await;
        Ok((looked?, end))
    })?;
    (object.version, object.head) = looked;
    let end = end.filter(|(version, _)| object.version.is_same(version));
    object.end = Mutex::new(end.map(|(_, end)| end));
    Ok(object)
}

impl Object {
    /// Asks for the bytes that are needed first, and with them for the version.
    async fn look(&self, mut first: Range<u64>) -> Result<(Version, Part)> {
        let mut tries = Tries::new(self, first.start);
        loop {
            let at = first.start;
            let admitted = self.admitted(&mut tries).await?;
            let (count, last) = (tries.count, tries.last);
            let outcome = match self.answer(GetRange::Bounded(first.clone()), tries.last).await {
                Ok(answer) => {
                    let version = answer.version.clone();
                    let mut head = vec![0; version.size.min(first.end).saturating_sub(at) as usize];
                    let sum = answer.sum.clone();
                    let parts = &mut [&mut head[..]];
                    let mut room = Room::new(parts);
                    let received = self.receive(answer.body, &mut room, &mut tries).await;
                    received
                        .and_then(|()| tries.verify(sum.as_ref(), &room, version.size))
                        .map(|()| (version, (at, head)))
                }
                Err(Refused::Server(refusal)) if refusal.is_outside() && at > 0 => {
                    // It is shorter than was thought.
                    first = 0..HEAD;
                    continue;
                }
                Err(Refused::Server(refusal)) if refusal.is_outside() => self.look_at_empty().await,
                Err(refused) => Err(self.ended(refused, at)),
            };
            drop(admitted);
            match outcome {
                Ok(found) => return Ok(found),
                Err(ended) => {
                    // What came is not kept, and so was no progress.
                    (tries.count, tries.last) = (count, last);
                    tries.again(ended).await?;
                }
            }
        }
    }

    /// The last `len` bytes, and the version that has them. `None` if the first try gives none:
    /// they are read again when they are needed, and a server need not know how to give them.
    async fn look_at_end(&self, len: u64) -> Option<(Version, Part)> {
        if len == 0 {
            return None;
        }
        let mut tries = Tries::new(self, 0);
        let _admitted = self.admitted(&mut tries).await.ok()?;
        let answer = self.answer(GetRange::Suffix(len), tries.last).await.ok()?;
        let Answer { version, range, body, .. } = answer;
        let start = version.size.saturating_sub(len);
        if range != (start..version.size) {
            return None;
        }
        let mut bytes = vec![0; (version.size - start) as usize];
        let parts = &mut [&mut bytes[..]];
        self.receive(body, &mut Room::new(parts), &mut tries).await.ok()?;
        Some((version, (start, bytes)))
    }

    /// An object without bytes has no range.
    async fn look_at_empty(&self) -> Result<(Version, Part), Ended> {
        self.tally.requests.fetch_add(1, Ordering::Relaxed);
        let (answer, aside) = with_aside(self.service.head(&self.key)).await;
        match answer {
            Ok(meta) if meta.size == 0 => Ok((Version::of(&meta), (0, Vec::new()))),
            Ok(meta) => Err(Ended::Failed(self.failed(
                0,
                io::ErrorKind::InvalidData,
                format!("the server has {} bytes, and gives no range of them", meta.size),
            ))),
            Err(error) => Err(self.ended(Refused::of(aside.trouble, &error), 0)),
        }
    }
}
