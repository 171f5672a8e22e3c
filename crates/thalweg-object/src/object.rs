//! One object as a store.

mod answer;
mod asking;
mod opening;
mod refused;
mod tries;

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::path::Path;
use object_store::{GetRange, ObjectStore};
use thalweg_io::control::Control;
use thalweg_io::object_cache::ObjectId;
use thalweg_io::open::Counts;
use thalweg_io::store::{Store, check_inside};
use thalweg_io::{Error, Result};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::cloud::Cloud;
use crate::lane;
use crate::retries::{Patience, Tally};
use crate::totals::tally;
use crate::transport::with_aside;
use answer::Room;
use tries::{Ended, Tries};

pub(crate) use opening::open_on;
pub use opening::{open, open_at, open_version, open_with_end};
pub(crate) use refused::Refused;

/// How often a wait looks whether the read was cancelled.
pub(crate) const POLL: Duration = Duration::from_millis(100);
/// The first bytes of an object, which come with the answer that says how long it is. They suffice
/// to tell its format, and for most headers.
pub(crate) const HEAD: u64 = 64 << 10;

/// Fewer bytes than this, unless they are the last, are no progress of a request: a server that
/// sends a byte now and then must not keep a read waiting for ever.
const LEAST_PROGRESS: usize = 16 << 10;

/// An object of an object store or of an HTTP server.
pub struct Object {
    name: Arc<str>,
    place: String,
    service: Arc<dyn ObjectStore>,
    key: Path,
    /// For tests; else requests run in lanes.
    runtime: Option<&'static Runtime>,
    version: Version,
    /// The bytes that came with the version.
    head: Part,
    /// The last bytes, if they were asked for beside the first ones, until they are read.
    end: Mutex<Option<Part>>,
    control: Control,
    patience: Patience,
    tally: Arc<Tally>,
}

/// Bytes of an object, and the offset of the first.
type Part = (u64, Vec<u8>);

/// What tells one version of an object from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    size: u64,
    etag: Option<String>,
    /// In seconds since 1970; 0 if the server does not say.
    modified: i64,
}

impl Version {
    fn of(meta: &object_store::ObjectMeta) -> Self {
        Self { size: meta.size, etag: meta.e_tag.clone(), modified: meta.last_modified.timestamp() }
    }

    /// Whether an answer is of this version. Where there is a tag, it decides.
    fn is_same(&self, found: &Self) -> bool {
        let tags = self.etag.as_ref().zip(found.etag.as_ref());
        self.size == found.size
            && tags.map_or(self.modified == found.modified, |(was, is)| was == is)
    }

    /// The tag to ask for. A weak one never matches (RFC 9110, section 13.1.1).
    fn condition(&self) -> Option<String> {
        self.etag.clone().filter(|tag| !tag.starts_with("W/"))
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({}, {:?})", self.name, self.version)
    }
}

impl Object {
    /// What makes requests to a service.
    pub(crate) fn unopened(
        name: Arc<str>,
        service: Arc<dyn ObjectStore>,
        control: &Control,
        patience: Patience,
    ) -> Self {
        Self {
            name,
            place: String::new(),
            service,
            key: Path::default(),
            runtime: None,
            version: Version { size: 0, etag: None, modified: 0 },
            head: (0, Vec::new()),
            end: Mutex::default(),
            control: control.clone(),
            patience,
            tally: tally(),
        }
    }

    /// The answer to a request of any kind, which is made again where that may help.
    pub(crate) fn ask<T, R>(&self, request: impl Fn() -> R) -> Result<T>
    where
        R: Future<Output = object_store::Result<T>>,
    {
        self.ask_within(self.patience, request)
    }

    /// [`Object::ask`] with a patience of its own.
    pub(crate) fn ask_within<T, R>(&self, patience: Patience, request: impl Fn() -> R) -> Result<T>
    where
        R: Future<Output = object_store::Result<T>>,
    {
        self.wait(async {
            let mut tries = Tries::new(self, 0);
            loop {
                let deadline = Instant::now() + patience.request;
                let deadline = deadline.min(tries.last + patience.read);
                self.tally.requests.fetch_add(1, Ordering::Relaxed);
                let refused = match self.patiently(pin!(with_aside(request())), deadline).await {
                    Ok((Ok(answer), _)) => {
                        self.tally.answered();
                        return Ok(answer);
                    }
                    Ok((Err(error), aside)) => Refused::of(aside.trouble, &error),
                    Err(refused) => refused,
                };
                tries.again(self.ended(refused, 0)).await?;
            }
        })
    }

    /// What reading it took so far.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// The tag of its version (RFC 9110, section 8.8.3), if the server gives one.
    pub fn etag(&self) -> Option<&str> {
        self.version.etag.as_deref()
    }

    /// What tells its version from others: its tag, or else when it was changed. `None` if the
    /// server gives neither.
    pub fn version(&self) -> Option<String> {
        let Version { size, etag, modified } = &self.version;
        let changed = (*modified != 0).then(|| format!("{size} bytes of {modified}"));
        etag.clone().or(changed)
    }

    /// Notes that the service is known to be there: it is not given up after a few tries.
    pub(crate) fn is_answered(&self) {
        self.tally.answered();
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// Its first bytes, 64 KiB of them at most.
    pub(crate) fn first_bytes(&self) -> &[u8] {
        &self.head.1
    }

    /// Waits in this thread.
    fn wait<T>(&self, wanted: impl Future<Output = Result<T>>) -> Result<T> {
        match self.runtime {
            Some(runtime) => runtime.block_on(wanted),
            None => lane::block_on(&self.name, wanted),
        }
    }

    /// When its version was made, in seconds since 1970, if the server says it.
    pub fn modified(&self) -> Option<i64> {
        Some(self.version.modified).filter(|&modified| modified != 0)
    }

    /// Its version for a cache: no two versions of the object share it. `None` if the server gives
    /// no strong tag.
    pub(crate) fn cache_id(&self) -> Option<ObjectId> {
        let tag = self.version.condition().filter(|tag| !matches!(&**tag, "" | "\"\""))?;
        Some(ObjectId::new(&self.name, &self.place, &tag, self.version.size))
    }

    /// Fills `room` from `offset` on. What has come stays when a request fails: the next one goes
    /// on from there.
    async fn fill(&self, offset: u64, mut room: Room<'_, '_>) -> Result<()> {
        let mut tries = Tries::new(self, offset);
        let mut sum = None;
        while room.filled < room.len {
            let range = offset + room.filled as u64..offset + room.len as u64;
            let at = range.start;
            let admitted = self.admitted(&mut tries).await?;
            let outcome = match self.answer(GetRange::Bounded(range), tries.last).await {
                Ok(answer) if self.version.is_same(&answer.version) => {
                    sum = sum.or(answer.sum);
                    let received = self.receive(answer.body, &mut room, &mut tries).await;
                    received.and_then(|()| {
                        let verified = tries.verify(sum.as_ref(), &room, self.version.size);
                        // What differs is fetched again.
                        verified.inspect_err(|_| room.filled = 0)
                    })
                }
                Ok(_) => Err(Ended::Failed(self.replaced(at))),
                Err(refused) => Err(self.ended(refused, at)),
            };
            drop(admitted);
            if let Err(ended) = outcome {
                tries.again(ended).await?;
            }
        }
        Ok(())
    }

    fn replaced(&self, offset: u64) -> Error {
        let why = "the object was replaced after it was opened: open it again";
        self.failed(offset, io::ErrorKind::StaleNetworkFileHandle, why.into())
    }

    fn failed(&self, offset: u64, kind: io::ErrorKind, why: String) -> Error {
        Error::io_at(&self.name, "fetching", offset, io::Error::new(kind, why))
    }

    /// What a refused request means for a read at `offset`.
    fn ended(&self, refused: Refused, offset: u64) -> Ended {
        match refused {
            Refused::Server(refusal) if refusal.is_passing() => Ended::Passing {
                why: refusal.to_string(),
                kind: io::ErrorKind::ConnectionAborted,
                wait: refusal.wait,
            },
            Refused::Server(refusal) if refusal.is_other_version() && self.is_open() => {
                Ended::Failed(self.replaced(offset))
            }
            Refused::Server(refusal) => {
                Ended::Failed(Error::io_at(&self.name, "fetching", offset, refusal.as_error()))
            }
            Refused::NoAnswer(why) => {
                Ended::Passing { why, kind: io::ErrorKind::NotConnected, wait: None }
            }
            Refused::Late => Ended::Passing {
                why: format!("no answer in {:.1} s", self.patience.request.as_secs_f64()),
                kind: io::ErrorKind::TimedOut,
                wait: None,
            },
            Refused::Cancelled => Ended::Failed(Error::Cancelled),
            Refused::NoCredentials => {
                let cloud = Cloud::of_url(&self.name);
                let (keys, unsigned) = (cloud.keys(), cloud.unsigned());
                let why =
                    format!("no credentials were found: {keys}, or for public data {unsigned}");
                Ended::Failed(self.failed(offset, io::ErrorKind::PermissionDenied, why))
            }
            Refused::NoKeys(said) => {
                let why = format!("no credentials: {said}");
                Ended::Failed(self.failed(offset, io::ErrorKind::PermissionDenied, why))
            }
            Refused::Invalid(why) => {
                Ended::Failed(self.failed(offset, io::ErrorKind::InvalidData, why))
            }
        }
    }

    fn is_open(&self) -> bool {
        self.version.size > 0
    }
}

impl Store for Object {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.version.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(&self.name, self.version.size, offset, buf.len())?;
        if buf.is_empty() || self.read_at_hand(offset, buf) {
            return Ok(());
        }
        self.wait(self.fill(offset, Room::new(&mut [buf])))
    }

    fn head(&self) -> u64 {
        let (at, bytes) = &self.head;
        if *at == 0 { bytes.len() as u64 } else { 0 }
    }

    fn read_parts(&self, offset: u64, parts: &mut [&mut [u8]]) -> Result<()> {
        let room = Room::new(parts);
        check_inside(&self.name, self.version.size, offset, room.len)?;
        self.wait(self.fill(offset, room))
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        if copy(&self.head, offset, buf) {
            return true;
        }
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(part) = &*end else { return false };
        let is_here = copy(part, offset, buf);
        if is_here && part.1.len() == buf.len() {
            *end = None;
        }
        is_here
    }
}

/// Fills `buf` from an offset on, if all its bytes are in a part.
fn copy((start, bytes): &Part, offset: u64, buf: &mut [u8]) -> bool {
    let place = offset.checked_sub(*start).and_then(|from| usize::try_from(from).ok());
    let known = place.and_then(|from| bytes.get(from..from.checked_add(buf.len())?));
    known.is_some_and(|known| {
        buf.copy_from_slice(known);
        true
    })
}
