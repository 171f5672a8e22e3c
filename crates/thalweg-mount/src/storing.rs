//! Bringing drafts to the store: at once for who waits for it, or later, again and again.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use thalweg_io::open::ObjectVersion;
use thalweg_io::pool::Background;
use thalweg_io::{Error, Result};
use thalweg_object::{Condition, Head, Metadata, PartsUpload};

use crate::attributes::Attributes;
use crate::bucket;
use crate::buckets::Buckets;
use crate::draft::{Draft, Snapshot, Unsent};
use crate::errors::{io_kind, is_stale};
use crate::fetcher::Fetcher;
use crate::memory::Charge;
use crate::parts::PART;
use crate::reading::Reading;

/// Parts that are sent at the same time, and drafts that are stored later at the same time.
const PARTS: usize = 8;
const DRAFTS: usize = 8;
/// After so many rounds of sending what was changed meanwhile, writers wait for the last one.
const ROUNDS: usize = 3;
/// Tries to replace objects that a draft became before.
const MOST_TRIES: usize = 4;
/// How long a draft that could not be stored waits. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

type Job = Box<dyn FnOnce() + Send>;

/// Brings drafts to the store.
pub(crate) struct Storer {
    bucket: Buckets,
    source: Arc<bucket::Bucket>,
    fetcher: Arc<Fetcher>,
    parts: Arc<Threads>,
    later: Arc<Threads>,
    warn: fn(&str),
}

/// Threads that do jobs in their order, as soon as they are due.
struct Threads {
    most: usize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    jobs: VecDeque<(Instant, Job)>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl Threads {
    fn new(most: usize) -> Arc<Self> {
        let queue = Queue { jobs: VecDeque::new(), threads: 0, idle: 0, is_over: false };
        Arc::new(Self { most, queue: Mutex::new(queue), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a job done at a time. If no thread can be started, it is done here.
    fn add(self: &Arc<Self>, at: Instant, job: Job) {
        let mut queue = self.lock();
        if queue.jobs.len() >= queue.idle && queue.threads < self.most {
            let threads = self.clone();
            let started =
                Background::start("thalweg-store", &"mount".into(), move || threads.run());
            if started.is_ok() {
                queue.threads += 1;
            } else if queue.threads == 0 {
                drop(queue);
                return job();
            }
        }
        queue.jobs.push_back((at, job));
        drop(queue);
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut queue = self.lock();
        loop {
            if queue.is_over {
                return;
            }
            let now = Instant::now();
            if let Some(due) = queue.jobs.iter().position(|(at, _)| *at <= now)
                && let Some((_, job)) = queue.jobs.remove(due)
            {
                drop(queue);
                job();
                queue = self.lock();
                continue;
            }
            let next = queue.jobs.iter().map(|(at, _)| *at).min();
            let wait = next.map_or(LONGEST_WAIT, |next| next.saturating_duration_since(now));
            queue.idle += 1;
            let waited = self.changed.wait_timeout(queue, wait);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            queue.idle -= 1;
        }
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Jobs that wait.
    fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    fn is_busy(&self) -> bool {
        let queue = self.lock();
        queue.threads > queue.idle || !queue.jobs.is_empty()
    }
}

impl Storer {
    pub(crate) fn new(
        bucket: Buckets,
        source: Arc<bucket::Bucket>,
        fetcher: Arc<Fetcher>,
        warn: fn(&str),
    ) -> Arc<Self> {
        let (parts, later) = (Threads::new(PARTS), Threads::new(DRAFTS));
        Arc::new(Self { bucket, source, fetcher, parts, later, warn })
    }

    /// The objects themselves.
    pub(crate) fn bucket(&self) -> &Buckets {
        &self.bucket
    }

    /// The bucket to read from.
    pub(crate) fn source(&self) -> &bucket::Bucket {
        &self.source
    }

    /// Drafts that wait to be stored.
    pub(crate) fn waiting(&self) -> usize {
        self.later.len()
    }

    /// Whether something is being sent, or waits for it.
    pub(crate) fn is_busy(&self) -> bool {
        self.parts.is_busy() || self.later.is_busy()
    }

    /// Does something for each of many, at the same time. Returns what was done, in their order.
    ///
    /// # Errors
    /// The first one of `each`.
    pub(crate) fn for_each<T, R>(
        self: &Arc<Self>,
        all: Vec<T>,
        each: impl Fn(&Arc<Self>, T) -> Result<R> + Send + Sync + 'static,
    ) -> Result<Vec<R>>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        self.on(&self.parts, all, each)
    }

    /// Brings drafts to the store, several at the same time. Returns what became of each.
    pub(crate) fn store_all(self: &Arc<Self>, drafts: Vec<Arc<Draft>>) -> Vec<Result<()>> {
        let store = |storer: &Arc<Self>, draft| Ok(storer.store(&draft));
        self.on(&self.later, drafts, store).unwrap_or_default()
    }

    fn on<T, R>(
        self: &Arc<Self>,
        threads: &Arc<Threads>,
        all: Vec<T>,
        each: impl Fn(&Arc<Self>, T) -> Result<R> + Send + Sync + 'static,
    ) -> Result<Vec<R>>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        let (done, results) = channel();
        let each = Arc::new(each);
        let count = all.len();
        for (at, one) in all.into_iter().enumerate() {
            let (storer, done, each) = (self.clone(), done.clone(), each.clone());
            let job = move || drop(done.send((at, each(&storer, one))));
            threads.add(Instant::now(), Box::new(job));
        }
        drop(done);
        let mut found: Vec<Option<R>> = (0..count).map(|_| None).collect();
        let mut failure = None;
        for (at, result) in results {
            match result {
                Ok(result) => found[at] = Some(result),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    /// Ends the threads once they are idle.
    pub(crate) fn end(&self) {
        self.parts.end();
        self.later.end();
    }

    /// Opens a version of an object to read it.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn open(&self, key: &str, version: &ObjectVersion) -> Result<Arc<Reading>> {
        Ok(Reading::new(self.source.open(key, version)?, &self.fetcher))
    }

    /// Has the service forget an upload, if there is one. What it does not forget now, it forgets
    /// some day.
    pub(crate) fn give_up(&self, key: &str, upload: Option<PartsUpload>) {
        if let Some(upload) = upload {
            let _ = self.bucket.abort(key, &upload);
        }
    }

    /// Sends parts of a draft that is being written.
    pub(crate) fn send_soon(self: &Arc<Self>, draft: &Arc<Draft>, parts: Vec<usize>) {
        for number in parts {
            let (storer, draft) = (self.clone(), draft.clone());
            // Who stores the draft sends it again, and gets the error.
            let job = move || drop(storer.send(&draft, number));
            self.parts.add(Instant::now(), Box::new(job));
        }
    }

    /// Has a draft stored later, and again after a failure.
    pub(crate) fn store_later(self: &Arc<Self>, draft: &Arc<Draft>) {
        self.again(draft.clone(), 0, Duration::ZERO);
    }

    fn again(self: &Arc<Self>, draft: Arc<Draft>, tries: u32, wait: Duration) {
        let storer = self.clone();
        let queued = draft.queue();
        let job = move || {
            // Who writes stores it, once it is closed.
            if draft.has_writers() || !draft.is_queued(queued) {
                return;
            }
            let Err(error) = storer.store(&draft) else { return };
            (storer.warn)(&format!("{error}; it stays in the folder for staging"));
            // What another program has changed is for people to decide.
            if !is_stale(&error) && !draft.lacks_bytes() {
                let wait = (FIRST_WAIT * 2_u32.pow(tries.min(10))).min(LONGEST_WAIT);
                storer.again(draft, tries + 1, wait);
            }
        };
        self.later.add(Instant::now() + wait, Box::new(job));
    }

    /// Brings a draft to the store, as it is now or later. Returns once the object is visible.
    ///
    /// # Errors
    /// [`Error::Io`] if the store refuses it or does not answer, of the kind
    /// `StaleNetworkFileHandle` if another program has changed the object. The draft stays.
    pub(crate) fn store(self: &Arc<Self>, draft: &Arc<Draft>) -> Result<()> {
        let since = draft.last_change();
        while let Some(mut snapshot) = draft.begin_storing(since)? {
            let stored = self.attempt(draft, &mut snapshot);
            let ended =
                draft.end_storing(&snapshot, stored, |key, version| self.open(key, version));
            // Nobody wants it any more.
            if draft.is_removed() {
                return Ok(());
            }
            ended?;
        }
        Ok(())
    }

    fn attempt(
        self: &Arc<Self>,
        draft: &Arc<Draft>,
        snapshot: &mut Snapshot,
    ) -> Result<ObjectVersion> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.put(draft, snapshot) {
                Ok(version) => return Ok(version),
                Err(error) => error,
            };
            let is_gone = io_kind(&error) == Some(ErrorKind::NotFound);
            if tries >= MOST_TRIES || !is_gone && !is_stale(&error) {
                return Err(error);
            }
            let head = self.bucket.head(&snapshot.key)?;
            match self.made(draft, snapshot, head.as_ref())? {
                Some(Made::All(version)) => return Ok(version),
                Some(Made::Less) => {}
                None if head.as_ref().is_some_and(|head| draft.is_copied_over_by(head)) => {
                    snapshot.found = head.map(|head| head.version);
                    snapshot.has_bytes = true;
                }
                // Another program has removed the object that it replaces.
                None if head.is_none() && snapshot.found.is_some() => {
                    snapshot.found = None;
                    snapshot.has_bytes = true;
                }
                // The service may have forgotten the upload.
                None if is_gone => self.give_up(&snapshot.key, draft.forget_parts()?),
                None => return Err(error),
            }
        }
    }

    /// What an earlier try, whose answer was lost, has made of a draft. If that is less than the
    /// snapshot, the draft goes on from it.
    fn made(
        &self,
        draft: &Draft,
        snapshot: &mut Snapshot,
        head: Option<&Head>,
    ) -> Result<Option<Made>> {
        let Some(head) = head.filter(|head| draft.has_made(head)) else { return Ok(None) };
        let (version, mark) = (head.version.clone(), head.mark.as_deref().unwrap_or_default());
        if draft.is_all(mark, snapshot) {
            return Ok(Some(Made::All(version)));
        }
        draft.goes_on_from((mark, version), snapshot, |key, version| self.open(key, version))?;
        Ok(Some(Made::Less))
    }

    fn put(self: &Arc<Self>, draft: &Arc<Draft>, snapshot: &mut Snapshot) -> Result<ObjectVersion> {
        let condition = Condition::still(snapshot.found.as_ref());
        let key = snapshot.key.clone();
        if let (false, Some(found)) = (snapshot.has_bytes, &snapshot.found) {
            return self.set_metadata(draft, snapshot, found.clone());
        }
        // It has become small since parts of it were sent.
        if draft.size() <= PART {
            self.give_up(&key, draft.forget_parts()?);
        }
        if draft.goes_in_parts() {
            return self.put_parts(draft, snapshot, &condition);
        }
        let bytes = draft.whole(snapshot)?;
        let _charge = self.charge(bytes.len() as u64);
        let size = bytes.len() as u64;
        let tag = {
            let metadata = (&metadata(&snapshot.attributes), &*draft.mark_of(snapshot));
            self.bucket.put(&key, bytes.into(), metadata, &condition)?
        };
        Ok(ObjectVersion { size, tag, modified: None })
    }

    /// Copies an object onto itself, with the attributes of a draft.
    fn set_metadata(
        &self,
        draft: &Draft,
        snapshot: &Snapshot,
        version: ObjectVersion,
    ) -> Result<ObjectVersion> {
        let (key, metadata, mark) =
            (&snapshot.key, metadata(&snapshot.attributes), draft.mark_of(snapshot));
        let metadata = Some((&metadata, &*mark));
        // That it is this version is a condition of the copy anyway.
        let tag = self.bucket.copy((key, &version), key, metadata, &Condition::Anything)?;
        Ok(ObjectVersion { tag, modified: None, ..version })
    }

    fn put_parts(
        self: &Arc<Self>,
        draft: &Arc<Draft>,
        snapshot: &mut Snapshot,
        condition: &Condition,
    ) -> Result<ObjectVersion> {
        let key = snapshot.key.clone();
        let upload = draft.completed_upload();
        if let Some(upload) = &upload {
            // The answer was lost, and the object may have been made, of other bytes.
            let head =
                self.bucket.head(&key)?.filter(|head| head.mark.as_deref() == Some(upload.mark()));
            match self.made(draft, snapshot, head.as_ref())? {
                None => {}
                Some(Made::All(version)) => {
                    snapshot.is_made_of(upload);
                    return Ok(version);
                }
                Some(Made::Less) => return self.put(draft, snapshot),
            }
        }
        // An early part may have failed, which is tried again now.
        draft.take_failure();
        let mut round = 0;
        let (tags, is_all, size) = loop {
            match draft.unsent(round >= ROUNDS)? {
                Unsent::None { tags, attributes, has_attributes, size, change, bytes } => {
                    snapshot.is_of(size, change, bytes);
                    snapshot.attributes = attributes;
                    break (tags, has_attributes, size);
                }
                Unsent::Parts(_) if draft.is_removed() => return Err(Error::Cancelled),
                Unsent::Parts(numbers) => self.send_all(draft, &numbers).inspect_err(|_| {
                    // The service may have ended the upload, and not say so. The next try begins
                    // another one, unless bytes are in this one alone.
                    if upload.is_some() {
                        self.give_up(&key, draft.forget_parts().ok().flatten());
                    }
                })?,
            }
            round += 1;
        };
        let Some((_, upload)) = self.upload(draft)? else { return Err(Error::Cancelled) };
        draft.completes(&upload, snapshot, is_all)?;
        let tag = self.bucket.complete(&key, &upload, &tags, condition)?;
        let version = ObjectVersion { size, tag, modified: None };
        if is_all { Ok(version) } else { self.set_metadata(draft, snapshot, version) }
    }

    /// Sends parts, and waits until they are sent.
    fn send_all(self: &Arc<Self>, draft: &Arc<Draft>, numbers: &[usize]) -> Result<()> {
        let of = draft.clone();
        self.for_each(numbers.to_vec(), move |storer, number| storer.send(&of, number))?;
        draft.take_failure().map_or(Ok(()), Err)
    }

    fn upload(&self, draft: &Draft) -> Result<Option<(Arc<str>, PartsUpload)>> {
        draft.upload(|key, attributes, mark| self.bucket.begin(key, (&metadata(attributes), mark)))
    }

    /// Sends a part of a draft, if the store does not have it.
    fn send(&self, draft: &Draft, number: usize) -> Result<()> {
        let Some((key, upload)) = self.upload(draft)? else { return Ok(()) };
        let Some(range) = draft.begin_part(&upload, number) else { return Ok(()) };
        let sent = draft.read_to_send(range).and_then(|bytes| {
            // Reading may need memory itself, which others hold that wait for theirs.
            let _charge = self.charge(bytes.len() as u64);
            self.bucket.put_part(&key, &upload, number, bytes.into())
        });
        draft.end_part(&upload, number, sent);
        Ok(())
    }

    /// Memory for bytes that are sent.
    fn charge(&self, bytes: u64) -> Charge {
        loop {
            if let Some(charge) = self.fetcher.memory.take_now(bytes) {
                return charge;
            }
            self.fetcher.make_room(bytes);
        }
    }
}

/// What a try has made of a draft whose answer was lost.
enum Made {
    /// All that was to be stored.
    All(ObjectVersion),
    /// What it was before later changes.
    Less,
}

/// The metadata of attributes, which were checked when they were set.
fn metadata(attributes: &Attributes) -> Metadata {
    attributes.metadata(FileType::RegularFile).unwrap_or_default()
}
