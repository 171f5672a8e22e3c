//! Objects that are uploaded while they are written.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future;
use object_store::multipart::{MultipartStore, PartId};
use object_store::{
    Attribute, Attributes, GetOptions, MultipartId, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions, PutPayload,
};
use thalweg_io::control::Control;
use thalweg_io::new_file::{NewObject, Replaced};
use thalweg_io::random::hash01;
use thalweg_io::urls::is_web;
use thalweg_io::{Error, Result};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::address::{Access, Address, Settings};
use crate::background::runtime;
use crate::cloud::Cloud;
use crate::object::{HEAD, POLL, Refused, open_on};
use crate::refusal::Refusal;
use crate::retries::{Patience, Tally, wait_before};
use crate::transport::{Sending, Trouble, with_sending};

const MIB: usize = 1 << 20;
/// The smallest part, but for the last. S3 takes none of less than 5 MiB.
const PART: usize = 8 * MIB;
/// While an object grows, a part is this share of what has been sent. Then 10,000 parts, the most
/// that S3 takes, suffice for 5 TiB, and none exceeds 5 GiB, the largest that S3 takes. The first
/// 10.9 GiB go in parts of the same size, which is what other services ask for.
const SHARE: u64 = 1400;
/// Parts of all uploads of this process that are under way, in MiB together. A larger part goes
/// alone.
const ROOM: u32 = 48;
static ROOM_LEFT: Semaphore = Semaphore::const_new(ROOM as usize);
/// Small objects of this process that are sealed and wait in memory until they are finished, in KiB
/// together. Those beyond become parts.
static WAITING_LEFT: Semaphore = Semaphore::const_new(16 << 10);
/// Bytes that go to the connection at a time. Each shows that a request goes on.
const PIECE: usize = 256 << 10;
/// A service may take so many times longer to put the parts of an object together than to answer
/// another request.
pub(crate) const COMPLETION: u32 = 30;
/// How long an abort may take, and how long after Ctrl-C.
const ABORT: Duration = Duration::from_secs(5);
const QUICK_ABORT: Duration = Duration::from_millis(800);
/// The metadata of an object with the number of its upload. It tells the object from another's
/// where the answer to the last request was lost.
pub(crate) const MARK: &str = "thalwegupload";

/// The size of the part that follows `sent` bytes.
fn part_size(sent: u64) -> usize {
    let share = usize::try_from(sent / SHARE).unwrap_or(usize::MAX / 2);
    share.next_multiple_of(MIB).max(PART)
}

/// An object that is being uploaded: in parts, several at a time, or if it is small by one request.
/// It is visible once it is finished. Dropped before, the upload is aborted.
pub struct Upload {
    target: Arc<Target>,
    runtime: &'static Runtime,
    /// The part that is being filled.
    part: Vec<u8>,
    /// The bytes of the parts before it.
    sent: u64,
    multipart: Option<Multipart>,
    keeps: bool,
    /// Held while it is sealed and waits in memory.
    waiting: Option<SemaphorePermit<'static>>,
}

/// An upload in parts, as the service knows it.
struct Multipart {
    id: MultipartId,
    /// The parts that the service has.
    done: Vec<PartId>,
    /// Those after them.
    parts: VecDeque<JoinHandle<Option<PartId>>>,
    /// Whether the object has [`MARK`].
    is_marked: bool,
}

/// What the requests of an upload have in common.
struct Target {
    address: Address,
    uploads: Arc<dyn MultipartStore>,
    control: Control,
    patience: Patience,
    tally: Tally,
    mark: String,
    /// Why a part failed.
    failed: Mutex<Option<Error>>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upload({}, {} bytes)", self.target.address.shown, self.sent)
    }
}

/// The first bytes of the object to which one is to be written; `None` if there is none.
///
/// # Errors
/// As for [`Upload::create`].
pub(crate) fn find(url: &str, control: &Control, patience: Patience) -> Result<Option<Vec<u8>>> {
    let (address, _) = writable(url, &[])?;
    Ok(match look(&address, control, patience)? {
        Found::Object(head) => Some(head),
        Found::Nothing | Found::Unknown => None,
    })
}

/// Removes an object.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn remove(url: &str, control: &Control, patience: Patience) -> Result<()> {
    let (address, uploads) = writable(url, &[])?;
    let runtime = runtime(&address.shown)?;
    let target = Target::new(address, uploads, control, patience);
    let request = || target.address.service.delete(&target.address.key);
    let removed = runtime.block_on(target.ask(false, target.patience.request, 0, request));
    removed.map_err(|stopped| target.error(stopped, "removing", 0))
}

/// The address of an object that can be written.
fn writable(url: &str, settings: Settings<'_>) -> Result<(Address, Arc<dyn MultipartStore>)> {
    let address = Address::parse_with(url, Access { settings, writes: true, stand_in: None })?;
    let is_of_server = is_web(url);
    let uploads = address.uploads.clone().ok_or_else(|| Error::Unsupported {
        file: address.shown.clone(),
        what: if is_of_server {
            "writing to a plain web server".into()
        } else {
            "writing an object with such a key".into()
        },
        advice: if is_of_server {
            "write to s3://, gs:// or az://, or to a file".into()
        } else {
            "write to a key without //, and without control characters".into()
        },
    })?;
    Ok((address, uploads))
}

/// What is at an address.
enum Found {
    /// An object with these first bytes.
    Object(Vec<u8>),
    Nothing,
    /// The service does not say.
    Unknown,
}

fn look(address: &Address, control: &Control, patience: Patience) -> Result<Found> {
    match open_on(address.clone(), 0..HEAD, 0, None, control, patience) {
        Ok(object) => Ok(Found::Object(object.first_bytes().to_vec())),
        Err(Error::Io { source, .. }) if refusal(&source).is_some_and(Refusal::is_silence) => {
            Ok(Found::Unknown)
        }
        Err(Error::Io { source, .. }) if refusal(&source).is_some_and(Refusal::is_absence) => {
            Ok(Found::Nothing)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn refusal(error: &std::io::Error) -> Option<&Refusal> {
    error.get_ref()?.downcast_ref()
}

/// Why a request is not made again.
enum Stopped {
    /// The service refused it. `is_unsure`: an earlier try may have been carried out.
    Refused {
        refusal: Refusal,
        is_unsure: bool,
    },
    /// The service has no such request.
    Unknown,
    Failed(Error),
}

impl Upload {
    /// Starts an object at a URL.
    ///
    /// # Errors
    /// [`Error::Usage`] for a URL that names no object, and where the environment does not fit;
    /// [`Error::Unsupported`] for a URL of a plain web server; [`Error::Exists`];
    /// [`Error::Io`] if the service refuses it or does not answer; [`Error::Cancelled`].
    pub fn create(
        url: &str,
        replaced: Replaced,
        control: &Control,
        patience: Patience,
    ) -> Result<Self> {
        Self::create_with(url, &[], replaced, control, patience)
    }

    /// [`Upload::create`] with settings of S3, by the names of their environment variables in lower
    /// case (`aws_endpoint_url`), in place of those of the environment.
    ///
    /// # Errors
    /// Those of [`Upload::create`].
    pub fn create_with(
        url: &str,
        settings: Settings<'_>,
        replaced: Replaced,
        control: &Control,
        patience: Patience,
    ) -> Result<Self> {
        let (address, uploads) = writable(url, settings)?;
        let runtime = runtime(&address.shown)?;
        let found = look(&address, control, patience)?;
        let target = Target::new(address, uploads, control, patience);
        target.tally.answered();
        let keeps = match (replaced, &found) {
            (Replaced::Nothing, Found::Object(_)) => return Err(target.appeared()),
            (Replaced::Anything, _) | (_, Found::Object(_)) => false,
            (_, Found::Nothing | Found::Unknown) => true,
        };
        let target = Arc::new(target);
        let mut upload = Self {
            target,
            runtime,
            part: Vec::new(),
            sent: 0,
            multipart: None,
            keeps,
            waiting: None,
        };
        if matches!(found, Found::Unknown) {
            // Whether it may be written shows now, and not when everything has been done for it.
            upload.begin()?;
        }
        Ok(upload)
    }

    /// Begins an upload in parts.
    fn begin(&mut self) -> Result<&mut Multipart> {
        if self.multipart.is_none() {
            let (id, is_marked) = self.runtime.block_on(self.target.begin())?;
            self.multipart =
                Some(Multipart { id, done: Vec::new(), parts: VecDeque::new(), is_marked });
        }
        self.multipart.as_mut().ok_or(Error::Cancelled)
    }

    /// Sends the part that is full, once there is room for it.
    fn send(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        let len = part.len() as u64;
        let offset = self.sent;
        let room = u32::try_from(part.len().div_ceil(MIB)).unwrap_or(ROOM).min(ROOM);
        let runtime = self.runtime;
        let target = self.target.clone();
        let permit = runtime.block_on(target.room(room))?;
        let multipart = self.begin()?;
        let number = multipart.done.len() + multipart.parts.len();
        let id = multipart.id.clone();
        let task = async move {
            let put = target.put_part(&id, number, offset, part).await;
            drop(permit);
            put.map_err(|error| target.fail(error)).ok()
        };
        multipart.parts.push_back(runtime.spawn(task));
        self.sent += len;
        Ok(())
    }

    /// Makes an object of all bytes.
    fn put(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.part);
        let target = &self.target;
        if self.keeps {
            target.check_absence()?;
        }
        let put = self.runtime.block_on(target.put(bytes, self.keeps));
        self.end(put, true)
    }

    /// Makes an object of the parts.
    fn complete(&self) -> Result<()> {
        let Some(Multipart { id, done, is_marked, .. }) = &self.multipart else { return Ok(()) };
        if self.keeps {
            self.target.check_absence()?;
        }
        let completed = self.runtime.block_on(self.target.complete(id, done, self.keeps));
        self.end(completed, *is_marked)
    }

    /// What the answer to the last request means.
    fn end(&self, last: Result<(), Stopped>, is_marked: bool) -> Result<()> {
        let target = &self.target;
        let Err(stopped) = last else { return Ok(()) };
        if let Stopped::Refused { refusal, is_unsure } = &stopped {
            let is_there = refusal.is_presence() && self.keeps;
            if *is_unsure && (is_there || refusal.is_of_upload()) && is_marked {
                // An earlier try may have made the object, and its answer got lost.
                match self.runtime.block_on(target.is_ours()) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(stopped) => return Err(target.error(stopped, "finishing", self.sent)),
                }
            }
            if is_there && (is_marked || !is_unsure) {
                return Err(target.appeared());
            }
        }
        Err(target.error(stopped, "finishing", self.sent))
    }

    /// Ends the upload without an object.
    fn abort(&mut self) {
        let Some(Multipart { id, parts, .. }) = self.multipart.take() else { return };
        parts.iter().for_each(JoinHandle::abort);
        let target = self.target.clone();
        let time = if target.control.is_cancelled() { QUICK_ABORT } else { ABORT };
        let (done, wait) = sync_channel(1);
        // Not `block_on`, which must not be called where something is dropped by an asynchronous
        // task.
        self.runtime.spawn(async move {
            let _ = timeout(time, async {
                for part in parts {
                    let _ = part.await;
                }
                target.abort(&id).await;
            })
            .await;
            let _ = done.send(());
        });
        let _ = wait.recv_timeout(time);
    }
}

impl NewObject for Upload {
    fn name(&self) -> &Arc<str> {
        &self.target.address.shown
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.target.check()?;
        while !bytes.is_empty() {
            let size = part_size(self.sent);
            let (now, later) = bytes.split_at(bytes.len().min(size - self.part.len()));
            if self.part.len() + now.len() > MIB {
                self.part.reserve_exact(size - self.part.len());
            }
            self.part.extend_from_slice(now);
            bytes = later;
            if self.part.len() == size {
                self.send()?;
            }
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        self.target.check()?;
        if self.multipart.is_none() {
            let kib = u32::try_from(self.part.len().div_ceil(1024)).unwrap_or(u32::MAX);
            self.waiting = self.waiting.take().or_else(|| WAITING_LEFT.try_acquire_many(kib).ok());
            if self.waiting.is_some() {
                return Ok(());
            }
        }
        let Multipart { done, parts, .. } = self.begin()?;
        let has_none = done.is_empty() && parts.is_empty();
        if has_none || !self.part.is_empty() {
            self.send()?;
        }
        let Some(multipart) = &mut self.multipart else { return Ok(()) };
        while let Some(part) = multipart.parts.pop_front() {
            match self.runtime.block_on(part) {
                Ok(Some(id)) => multipart.done.push(id),
                _ => return Err(self.target.failure()),
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.multipart.is_none() {
            self.target.check()?;
            return self.put();
        }
        self.seal()?;
        self.complete()?;
        // There is nothing to abort any more.
        self.multipart = None;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Target {
    fn new(
        address: Address,
        uploads: Arc<dyn MultipartStore>,
        control: &Control,
        patience: Patience,
    ) -> Self {
        Self {
            address,
            uploads,
            control: control.clone(),
            patience,
            tally: Tally::default(),
            mark: mark(),
            failed: Mutex::default(),
        }
    }

    /// Fails if a part failed, or if the work was cancelled.
    fn check(&self) -> Result<()> {
        self.control.check()?;
        let has_failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if has_failed { Err(self.failure()) } else { Ok(()) }
    }

    fn fail(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Why a part failed.
    fn failure(&self) -> Error {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.unwrap_or_else(|| {
            let why = std::io::Error::other("a part of it failed before");
            Error::io(&self.address.shown, "uploading", why)
        })
    }

    /// The error for an object that another program made.
    fn appeared(&self) -> Error {
        Error::Exists {
            file: self.address.shown.clone(),
            what: "; it appeared while the new one was written",
            advice: "it was kept, and the new one was not",
        }
    }

    /// Fails if an object has appeared. Not all services heed the condition of the last request.
    fn check_absence(&self) -> Result<()> {
        match look(&self.address, &self.control, self.patience)? {
            Found::Object(_) => Err(self.appeared()),
            Found::Nothing | Found::Unknown => Ok(()),
        }
    }

    fn error(&self, stopped: Stopped, doing: &'static str, offset: u64) -> Error {
        let source = match stopped {
            Stopped::Failed(error) => return error,
            Stopped::Refused { refusal, .. } => refusal.as_error(),
            Stopped::Unknown => std::io::Error::other("the service has no such request"),
        };
        Error::io_at(&self.address.shown, doing, offset, source)
    }

    /// Waits until so many MiB may be under way in addition.
    async fn room(&self, room: u32) -> Result<SemaphorePermit<'static>> {
        let mut room = pin!(ROOM_LEFT.acquire_many(room));
        loop {
            self.check()?;
            if let Ok(permit) = timeout(POLL, &mut room).await {
                return permit.map_err(|_| Error::Cancelled);
            }
        }
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(MARK.into()), self.mark.clone().into());
        attributes
    }

    /// Begins an upload in parts. Returns its id, and whether the object will be marked.
    async fn begin(&self) -> Result<(MultipartId, bool)> {
        let key = &self.address.key;
        let marked = || {
            let options =
                PutMultipartOptions { attributes: self.attributes(), ..Default::default() };
            self.uploads.create_multipart_opts(key, options)
        };
        let limit = self.patience.request;
        match self.ask(false, limit, 0, marked).await {
            Ok(id) => return Ok((id, true)),
            Err(Stopped::Unknown) => {}
            Err(stopped) => return Err(self.error(stopped, "uploading", 0)),
        }
        let plain = || self.uploads.create_multipart(key);
        let id = self.ask(false, limit, 0, plain).await;
        Ok((id.map_err(|stopped| self.error(stopped, "uploading", 0))?, false))
    }

    async fn put_part(
        &self,
        id: &MultipartId,
        number: usize,
        offset: u64,
        part: Vec<u8>,
    ) -> Result<PartId> {
        let payload = payload(part);
        let put = || self.uploads.put_part(&self.address.key, id, number, payload.clone());
        let put = self.ask(false, self.patience.request, offset, put).await;
        put.map_err(|stopped| self.error(stopped, "uploading", offset))
    }

    /// Puts a whole object. With `keeps`, it replaces none.
    async fn put(&self, bytes: Vec<u8>, keeps: bool) -> Result<(), Stopped> {
        let payload = payload(bytes);
        let put = |mode: PutMode| {
            let options =
                PutOptions { mode, attributes: self.attributes(), ..PutOptions::default() };
            self.address.service.put_opts(&self.address.key, payload.clone(), options)
        };
        let limit = self.patience.request;
        if keeps {
            match self.ask(false, limit, 0, || put(PutMode::Create)).await {
                Err(Stopped::Unknown) => {}
                done => return done.map(drop),
            }
        }
        self.ask(false, limit, 0, || put(PutMode::Overwrite)).await.map(drop)
    }

    /// Puts the parts together. With `keeps`, the object replaces none.
    async fn complete(
        &self,
        id: &MultipartId,
        parts: &[PartId],
        keeps: bool,
    ) -> Result<(), Stopped> {
        let complete = || self.uploads.complete_multipart(&self.address.key, id, parts.to_vec());
        let limit = self.patience.request * COMPLETION;
        // Google has no such condition for uploads in parts, and Azure signs it with the request.
        let keeps = keeps && self.address.shown.starts_with("s3");
        match self.ask(keeps, limit, 0, complete).await {
            Err(Stopped::Unknown) if keeps => self.ask(false, limit, 0, complete).await.map(drop),
            done => done.map(drop),
        }
    }

    /// Whether the object is the one that this upload made.
    async fn is_ours(&self) -> Result<bool, Stopped> {
        let head = || {
            let options = GetOptions { head: true, ..GetOptions::default() };
            self.address.service.get_opts(&self.address.key, options)
        };
        let mark = Attribute::Metadata(MARK.into());
        match self.ask(false, self.patience.request, 0, head).await {
            Ok(found) => Ok(found.attributes.get(&mark).is_some_and(|is| **is == *self.mark)),
            Err(Stopped::Refused { refusal, .. }) if refusal.is_absence() => Ok(false),
            Err(stopped) => Err(stopped),
        }
    }

    /// Asks the service to forget the parts.
    async fn abort(&self, id: &MultipartId) {
        // The work may have been cancelled, which must not cancel this.
        let target =
            Self::new(self.address.clone(), self.uploads.clone(), &Control::new(), self.patience);
        target.tally.answered();
        let abort = || target.uploads.abort_multipart(&target.address.key, id);
        // What is left over after this, a rule of the service removes.
        let _ = target.ask(false, self.patience.request, 0, abort).await;
    }

    /// Makes a request, again if it may succeed later. A try fails once nothing has gone on for
    /// `limit`. `offset`: where its bytes are in the object. `keeps`: see [`Sending`].
    async fn ask<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        keeps: bool,
        limit: Duration,
        offset: u64,
        request: impl Fn() -> F,
    ) -> Result<T, Stopped> {
        // The time in which nothing went on, over all tries.
        let mut idle = Duration::ZERO;
        let mut is_unsure = false;
        let mut tries = 0;
        loop {
            tries += 1;
            self.tally.requests.fetch_add(1, Ordering::Relaxed);
            let sending = Sending::new(keeps);
            let refused = match self.answer(&sending, limit, request()).await {
                Ok((Ok(answer), _)) => {
                    self.tally.answered();
                    return Ok(answer);
                }
                Ok((Err(error), _)) if is_unsupported(&error) => return Err(Stopped::Unknown),
                Ok((Err(error), trouble)) => Refused::of(trouble, &error),
                Err(refused) => refused,
            };
            idle += sending.last().elapsed();
            let (why, wait) = match refused {
                Refused::Server(refusal) if refusal.is_passing() => {
                    (refusal.to_string(), refusal.wait)
                }
                Refused::Server(refusal) if refusal.is_unknown() => return Err(Stopped::Unknown),
                Refused::Server(refusal) => return Err(Stopped::Refused { refusal, is_unsure }),
                // An answer of 200 whose body says an error comes here, too.
                Refused::NoAnswer(why) | Refused::Invalid(why) => (why, None),
                Refused::Late => (format!("no answer in {} s", limit.as_secs()), None),
                Refused::Cancelled => return Err(Stopped::Failed(Error::Cancelled)),
                Refused::NoCredentials => {
                    let keys = Cloud::of_url(&self.address.shown).keys();
                    let why = format!("no credentials were found: {keys}");
                    return Err(Stopped::Failed(self.denied(offset, why)));
                }
                Refused::NoKeys(said) => {
                    let why = format!("no credentials: {said}");
                    return Err(Stopped::Failed(self.denied(offset, why)));
                }
            };
            is_unsure = true;
            if idle >= self.patience.read || !self.tally.may_retry(tries) {
                let times = if tries == 1 { "try" } else { "tries" };
                let idle = idle.as_secs_f64();
                let why = format!("{why}; given up after {tries} {times} and {idle:.1} s");
                let kind = std::io::ErrorKind::ConnectionAborted;
                return Err(Stopped::Failed(self.io(offset, std::io::Error::new(kind, why))));
            }
            let requests = self.tally.requests.load(Ordering::Relaxed);
            let usual = wait_before(tries, hash01(offset, requests, tries.into()));
            let pause = wait.unwrap_or_default().max(usual);
            idle += pause;
            self.pause(pause).await?;
        }
    }

    fn denied(&self, offset: u64, why: String) -> Error {
        self.io(offset, std::io::Error::new(std::io::ErrorKind::PermissionDenied, why))
    }

    fn io(&self, offset: u64, why: std::io::Error) -> Error {
        Error::io_at(&self.address.shown, "uploading", offset, why)
    }

    /// Waits for an answer while something goes on.
    async fn answer<F: Future>(
        &self,
        sending: &Arc<Sending>,
        limit: Duration,
        request: F,
    ) -> Result<(F::Output, Option<Trouble>), Refused> {
        let mut answer = pin!(with_sending(sending.clone(), request));
        loop {
            if self.control.is_cancelled() {
                return Err(Refused::Cancelled);
            }
            let left = limit.saturating_sub(sending.last().elapsed());
            if left.is_zero() {
                return Err(Refused::Late);
            }
            if let Ok(answer) = timeout(left.min(POLL), &mut answer).await {
                return Ok(answer);
            }
        }
    }

    async fn pause(&self, time: Duration) -> Result<(), Stopped> {
        let until = Instant::now() + time;
        loop {
            self.control.check().map_err(Stopped::Failed)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let _ = timeout(left.min(POLL), future::pending::<()>()).await;
        }
    }
}

/// Bytes in the pieces in which they go to the connection.
fn payload(bytes: Vec<u8>) -> PutPayload {
    let bytes = Bytes::from(bytes);
    let piece = |from: usize| bytes.slice(from..bytes.len().min(from + PIECE));
    (0..bytes.len()).step_by(PIECE).map(piece).collect()
}

/// Whether `object_store` has no such request for a service.
fn is_unsupported(error: &object_store::Error) -> bool {
    use object_store::Error;
    matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. })
}

/// A number that no other upload has, but by chance.
pub(crate) fn mark() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

#[cfg(test)]
mod tests {
    use super::{MIB, PART, SHARE, part_size};

    #[test]
    fn ten_thousand_parts_suffice() {
        let mut sent = 0_u64;
        let mut parts = 0;
        let mut size = 0;
        while sent < 5 << 40 {
            size = part_size(sent);
            sent += size as u64;
            parts += 1;
        }
        assert!(parts <= 10_000, "{parts} parts");
        assert!(size <= 5 << 30, "the last has {size} bytes");
        let same = SHARE * PART as u64;
        assert_eq!(
            (part_size(0), part_size(same), part_size(same + SHARE)),
            (PART, PART, PART + MIB)
        );
        assert!(part_size(100 << 30) < 80 * MIB);
    }
}
