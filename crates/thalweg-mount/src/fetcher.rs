//! Threads that fetch pieces of files, and the memory for these pieces.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use thalweg_io::Result;
use thalweg_io::model::StoreModel;
use thalweg_io::pool::Background;

use crate::memory::{Charge, Memory};
use crate::status::Counters;

/// The most pieces that are fetched at the same time.
const MOST_THREADS: usize = 64;
/// The most bytes of a piece. A reader in order waits for the whole of a piece, and many that are
/// fetched together arrive together.
pub(crate) const LARGEST_PIECE: u64 = 4 << 20;
/// So many times what is in flight may be ahead of a reader. While it waits for a piece that is
/// late, others are fetched.
const ROUNDS: u64 = 2;
/// How long a read waits for memory before it looks again for something to evict.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A piece of a file that is to be fetched.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) at: u64,
    /// Tells it from other pieces at the same place.
    pub(crate) id: u64,
    /// The memory for its bytes.
    pub(crate) charge: Charge,
}

/// A file whose pieces are fetched.
pub(crate) trait Fetched: Send + Sync {
    /// Fetches a piece, and keeps it for who waits for it.
    fn fetch(&self, piece: Piece);
    /// Drops pieces that nobody waits for, up to about so many bytes. Returns how many it dropped.
    fn evict(&self, bytes: u64) -> u64;
    /// When it was read last, by [`Fetcher::now`].
    fn last_read(&self) -> u64;
}

type Job = (Arc<dyn Fetched>, Piece);

#[derive(Default)]
struct Queue {
    /// Somebody waits for these.
    wanted: VecDeque<Job>,
    ahead: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

/// How a store is read: from its model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes of a request.
    pub(crate) piece: u64,
    /// Bytes that one reader has ahead of it, to keep the store busy.
    pub(crate) ahead: u64,
    threads: usize,
}

impl Shape {
    pub(crate) fn of(model: &StoreModel) -> Self {
        let depth = model.depth.clamp(4, MOST_THREADS);
        // As many small requests as the store answers during the latency of one.
        let small = (model.request_rate * model.latency_s) as usize;
        let threads = small.clamp(depth, MOST_THREADS);
        let piece = (model.block as u64).min(LARGEST_PIECE);
        Self { piece, ahead: piece * depth as u64 * ROUNDS, threads }
    }
}

/// The threads of a mount.
pub(crate) struct Fetcher {
    pub(crate) shape: Shape,
    pub(crate) memory: Arc<Memory>,
    pub(crate) counters: Counters,
    queue: Mutex<Queue>,
    filled: Condvar,
    files: Mutex<Vec<Weak<dyn Fetched>>>,
    in_flight: Mutex<BTreeMap<u64, Instant>>,
    clock: AtomicU64,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fetcher {
    pub(crate) fn new(model: &StoreModel, memory: u64) -> Arc<Self> {
        Arc::new(Self {
            shape: Shape::of(model),
            memory: Memory::new(memory),
            counters: Counters::default(),
            queue: Mutex::default(),
            filled: Condvar::new(),
            files: Mutex::default(),
            in_flight: Mutex::default(),
            clock: AtomicU64::new(0),
        })
    }

    /// A number that is greater each time.
    pub(crate) fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a file whose pieces may be evicted.
    pub(crate) fn add(&self, file: Weak<dyn Fetched>) {
        let mut files = lock(&self.files);
        files.retain(|file| file.strong_count() > 0);
        files.push(file);
    }

    /// Makes room for a read that waits for it: evicts what was fetched ahead for the files that
    /// were read least recently. If there is nothing, it waits a moment.
    pub(crate) fn make_room(&self, bytes: u64) {
        let mut files: Vec<_> = lock(&self.files).iter().filter_map(Weak::upgrade).collect();
        files.sort_by_key(|file| file.last_read());
        let mut freed = 0;
        for file in files {
            if freed >= bytes {
                return;
            }
            freed += file.evict(bytes - freed);
        }
        self.counters.stalled();
        self.memory.wait(LOOK_AGAIN);
    }

    /// Fetches a piece as soon as a thread is free; one that somebody waits for before the others.
    ///
    /// # Errors
    /// If the system starts no thread, and there is none.
    pub(crate) fn start(
        self: &Arc<Self>,
        file: Arc<dyn Fetched>,
        piece: Piece,
        is_wanted: bool,
    ) -> Result<()> {
        let mut queue = lock(&self.queue);
        let Queue { wanted, ahead, .. } = &mut *queue;
        if is_wanted { wanted } else { ahead }.push_back((file, piece));
        let waiting = queue.wanted.len() + queue.ahead.len();
        if waiting > queue.idle && queue.threads < self.shape.threads {
            let fetcher = self.clone();
            let started =
                Background::start("thalweg-fetch", &"mount".into(), move || fetcher.work());
            match started {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// Has a piece that was to be fetched ahead fetched before others, for somebody waits for it.
    pub(crate) fn hurry(&self, id: u64) {
        let mut queue = lock(&self.queue);
        if let Some(at) = queue.ahead.iter().position(|(_, piece)| piece.id == id)
            && let Some(job) = queue.ahead.remove(at)
        {
            queue.wanted.push_back(job);
        }
    }

    /// Ends the threads once they are idle.
    pub(crate) fn end(&self) {
        lock(&self.queue).is_over = true;
        self.filled.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.queue).is_over
    }

    /// Whether a piece is being fetched or waits for a thread.
    pub(crate) fn is_busy(&self) -> bool {
        self.waiting() > 0 || !lock(&self.in_flight).is_empty()
    }

    fn work(&self) {
        while let Some((file, piece)) = self.next() {
            let id = piece.id;
            lock(&self.in_flight).insert(id, Instant::now());
            file.fetch(piece);
            lock(&self.in_flight).remove(&id);
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_over {
                return None;
            }
            let Queue { wanted, ahead, .. } = &mut *queue;
            if let Some(job) = wanted.pop_front().or_else(|| ahead.pop_front()) {
                return Some(job);
            }
            queue.idle += 1;
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Pieces that are being fetched, and since when the oldest one is.
    pub(crate) fn in_flight(&self) -> (usize, Option<Duration>) {
        let in_flight = lock(&self.in_flight);
        let oldest = in_flight.values().min().map(Instant::elapsed);
        (in_flight.len(), oldest)
    }

    /// Pieces that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        let queue = lock(&self.queue);
        queue.wanted.len() + queue.ahead.len()
    }
}
