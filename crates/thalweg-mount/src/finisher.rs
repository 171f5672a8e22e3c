//! Completes copies in the cache: fetches again what its disc was too slow to take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_io::pool::Background;
use thalweg_io::store::Store;

use crate::fetcher::{Fetcher, LARGEST_PIECE};

/// Files that wait. Of more, the oldest stay as they are.
const MOST_WAITING: usize = 64;
/// How often it looks whether reads have left the store and the memory free.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Fetches the blocks of closed files that the cache lacks, while no program reads.
pub(crate) struct Finisher {
    fetcher: Arc<Fetcher>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    stores: VecDeque<Arc<dyn Store>>,
    is_running: bool,
}

impl Finisher {
    pub(crate) fn new(fetcher: Arc<Fetcher>) -> Arc<Self> {
        Arc::new(Self { fetcher, queue: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the copy of a file, if there is something to complete.
    pub(crate) fn finish(self: &Arc<Self>, store: &Arc<dyn Store>) {
        if store.unkept() == 0 {
            return;
        }
        let mut queue = self.lock();
        if queue.stores.len() == MOST_WAITING {
            queue.stores.pop_front();
        }
        queue.stores.push_back(store.clone());
        if !queue.is_running {
            let finisher = self.clone();
            let started =
                Background::start("thalweg-finish", &"mount".into(), move || finisher.work());
            queue.is_running = started.is_ok();
        }
    }

    fn work(&self) {
        while let Some(store) = self.next() {
            self.keep_all(&*store);
        }
    }

    fn next(&self) -> Option<Arc<dyn Store>> {
        let mut queue = self.lock();
        let next = queue.stores.pop_front();
        queue.is_running = next.is_some();
        next
    }

    fn keep_all(&self, store: &dyn Store) {
        while store.unkept() > 0 && !self.fetcher.is_over() {
            let free = (!self.fetcher.is_busy())
                .then(|| self.fetcher.memory.take_ahead(LARGEST_PIECE))
                .flatten();
            let Some(charge) = free else {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            };
            let mut room = charge.buffer();
            let goes_on = store.keep_more(&mut room);
            charge.keep(room);
            if !goes_on {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use thalweg_io::Result;
    use thalweg_io::model::StoreModel;

    /// A store that keeps what it is given room for.
    #[derive(Debug)]
    struct Slow {
        name: Arc<str>,
        unkept: AtomicU64,
        fails: bool,
    }

    impl Store for Slow {
        fn name(&self) -> &Arc<str> {
            &self.name
        }

        fn size(&self) -> u64 {
            0
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
            Ok(())
        }

        fn unkept(&self) -> u64 {
            self.unkept.load(Ordering::Relaxed)
        }

        fn keep_more(&self, room: &mut [u8]) -> bool {
            let left = self.unkept().saturating_sub(room.len() as u64);
            self.unkept.store(left, Ordering::Relaxed);
            !self.fails
        }
    }

    fn slow(unkept: u64, fails: bool) -> Arc<Slow> {
        Arc::new(Slow { name: "slow".into(), unkept: unkept.into(), fails })
    }

    #[test]
    fn all_files_are_completed_and_a_failure_ends_one() {
        let finisher = Finisher::new(Fetcher::new(&StoreModel::MEMORY, 64 << 20));
        let stores =
            [slow(9 * LARGEST_PIECE, false), slow(9 * LARGEST_PIECE, true), slow(1, false)];
        for store in &stores {
            let store: Arc<dyn Store> = store.clone();
            finisher.finish(&store);
        }
        while finisher.lock().is_running {
            std::thread::yield_now();
        }
        let left: Vec<u64> = stores.iter().map(|store| store.unkept()).collect();
        assert_eq!(left, [0, 8 * LARGEST_PIECE, 0]);
        assert_eq!(finisher.fetcher.memory.used(), LARGEST_PIECE, "the buffer is kept");
    }

    #[test]
    fn nothing_is_begun_once_the_mount_has_ended() {
        let finisher = Finisher::new(Fetcher::new(&StoreModel::MEMORY, 64 << 20));
        finisher.fetcher.end();
        let store = slow(LARGEST_PIECE, false);
        let dynamic: Arc<dyn Store> = store.clone();
        finisher.finish(&dynamic);
        while finisher.lock().is_running {
            std::thread::yield_now();
        }
        assert_eq!(store.unkept(), LARGEST_PIECE);
    }
}
