//! One object as a store.

use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, Either};
use futures_util::{Stream, StreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use thalweg_io::control::Control;
use thalweg_io::object_cache::ObjectId;
use thalweg_io::open::Counts;
use thalweg_io::random::hash01;
use thalweg_io::store::{Store, check_inside};
use thalweg_io::{Error, Result};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::address::Address;
use crate::admission::Admitted;
use crate::checksums::Checksum;
use crate::connection::Connection;
use crate::lane;
use crate::refusal::Refusal;
use crate::retries::{Patience, Tally, wait_before};
use crate::totals::tally;
use crate::transport::{Aside, Trouble, with_aside};

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

/// Why a try ended.
enum Ended {
    /// The read fails.
    Failed(Error),
    /// Another try may succeed. The words say why this one did not; the server may ask for a wait.
    Passing { why: String, kind: io::ErrorKind, wait: Option<Duration> },
}

/// Opens the object at a URL.
///
/// # Errors
/// [`Error::Usage`] for a URL that names no object, and where the environment does not fit;
/// [`Error::Io`] if the server refuses it or does not answer; [`Error::Cancelled`].
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
        self.wait(async {
            let mut tries = Tries::new(self, 0);
            loop {
                let deadline = Instant::now() + self.patience.request;
                let deadline = deadline.min(tries.last + self.patience.read);
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

    /// Waits until the server may have another request. The server need not be patient with that.
    async fn admitted(&self, tries: &mut Tries<'_>) -> Result<Admitted<'_>> {
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
                let why = "no credentials were found: set AWS_ACCESS_KEY_ID and \
                           AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or for public data \
                           AWS_SKIP_SIGNATURE=true";
                Ended::Failed(self.failed(offset, io::ErrorKind::PermissionDenied, why.into()))
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

    /// The answer to a request for a range. A slow request is made a second time, and the answer
    /// that comes first counts. `since`: when the last progress was made.
    async fn answer(&self, range: GetRange, since: Instant) -> Result<Answer, Refused> {
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
    async fn receive(
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
    async fn patiently<F: Future>(
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

/// An answer to a request for a range.
struct Answer {
    version: Version,
    range: Range<u64>,
    /// The checksum of the whole object.
    sum: Option<Checksum>,
    body: Body,
}

/// The bytes of an answer.
enum Body {
    /// Still in the connection.
    Direct(Connection),
    /// In pieces, of which the last one was read in part.
    Pieces(Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>, Bytes),
}

impl Body {
    /// Some bytes; 0 at the end.
    async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Refused> {
        match self {
            Self::Direct(connection) => {
                connection.read(buf).await.map_err(|error| Refused::NoAnswer(error.to_string()))
            }
            Self::Pieces(pieces, piece) => {
                while piece.is_empty() {
                    let (next, aside) = with_aside(pieces.next()).await;
                    match next {
                        Some(Ok(next)) => *piece = next,
                        Some(Err(error)) => return Err(Refused::of(aside.trouble, &error)),
                        None => return Ok(0),
                    }
                }
                let len = buf.len().min(piece.len());
                buf[..len].copy_from_slice(&piece.split_to(len));
                Ok(len)
            }
        }
    }
}

/// Memory for the bytes of a read, in parts that follow each other in the object.
struct Room<'a, 'b> {
    parts: &'a mut [&'b mut [u8]],
    len: usize,
    filled: usize,
}

impl<'a, 'b> Room<'a, 'b> {
    fn new(parts: &'a mut [&'b mut [u8]]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum();
        Self { parts, len, filled: 0 }
    }

    /// What is empty of the first part that is not full.
    fn space(&mut self) -> &mut [u8] {
        let mut skip = self.filled;
        for part in &mut *self.parts {
            if skip < part.len() {
                return &mut part[skip..];
            }
            skip -= part.len();
        }
        &mut []
    }

    /// The bytes of the whole object, which has this size, if they are here in one part.
    fn whole(&self, size: u64) -> Option<&[u8]> {
        match &*self.parts {
            [part] if part.len() as u64 == size => Some(part),
            _ => None,
        }
    }
}

/// Why there is no answer.
pub(crate) enum Refused {
    Server(Refusal),
    NoAnswer(String),
    /// Nothing came for as long as a request may take.
    Late,
    Cancelled,
    NoCredentials,
    /// The service for credentials gives none.
    NoKeys(String),
    /// The answer is not one to the request.
    Invalid(String),
}

impl Refused {
    pub(crate) fn of(trouble: Option<Trouble>, error: &object_store::Error) -> Self {
        match trouble {
            Some(Trouble::Refused(refusal)) => Self::Server(refusal),
            Some(Trouble::NoAnswer(why)) => Self::NoAnswer(why),
            Some(Trouble::NoCredentials) => Self::NoCredentials,
            Some(Trouble::NoKeys(said)) => Self::NoKeys(said),
            None if is_whole(error) => Self::Invalid(
                "the server gives whole objects only, and no ranges of them: copy the object, and \
                 read the copy"
                    .into(),
            ),
            None => Self::Invalid(error.to_string()),
        }
    }
}

/// Whether a server gives whole objects only. `object_store` has one error for its own client for
/// HTTP, and another for the others.
fn is_whole(error: &object_store::Error) -> bool {
    let words = error.to_string();
    ["non-partial", "Range request not supported"].iter().any(|part| words.contains(part))
}

/// The tries of one read.
struct Tries<'a> {
    object: &'a Object,
    /// The first byte of the read.
    offset: u64,
    /// Tries since the last progress.
    count: u32,
    /// When the last progress was made.
    last: Instant,
    /// Whether the checksum of what came was wrong.
    was_wrong: bool,
}

impl<'a> Tries<'a> {
    fn new(object: &'a Object, offset: u64) -> Self {
        Self { object, offset, count: 0, last: Instant::now(), was_wrong: false }
    }

    fn progress(&mut self) {
        self.count = 0;
        self.last = Instant::now();
    }

    /// Compares the whole object with its checksum. The first time that it differs, another try may
    /// succeed.
    fn verify(
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
    async fn again(&mut self, ended: Ended) -> Result<()> {
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
            _ => Ok(()),
        }
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
