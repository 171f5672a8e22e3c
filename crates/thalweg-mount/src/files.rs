//! The files that are open, and how each of them is read.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::BackingId;
use thalweg_io::Result;
use thalweg_io::open::ObjectVersion;
use thalweg_io::store::Store;

use crate::ahead::FILES;
use crate::fetcher::Fetcher;
use crate::finisher::Finisher;
use crate::reading::Reading;

/// Files that stay ready to be opened again after they were closed.
const MOST_CLOSED: usize = 64;
/// Files that are fetched before they are opened.
const MOST_EXPECTED: usize = 2 * FILES;

/// A version of an object, by its key.
pub(crate) type Object = (Arc<str>, ObjectVersion);

struct Open {
    object: Object,
    reading: Arc<Reading>,
    /// The copy in the cache that the kernel reads, and not the daemon. From the first open to the
    /// last close it is the one or the other, as the kernel demands (`fuse_inode.iocachectr` in
    /// Linux).
    backing: Option<Arc<BackingId>>,
    handles: u64,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, Open>,
    closed: Ready,
    expected: Ready,
}

/// Files that are ready to be opened, the oldest first.
#[derive(Default)]
struct Ready(VecDeque<(Object, Arc<Reading>)>);

/// The files of a mount, by the numbers of their nodes.
pub(crate) struct Files {
    fetcher: Arc<Fetcher>,
    finisher: Arc<Finisher>,
    state: Mutex<State>,
}

impl Files {
    pub(crate) fn new(fetcher: Arc<Fetcher>) -> Self {
        let finisher = Finisher::new(fetcher.clone());
        Self { fetcher, finisher, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file. `open` opens its store, and `pass` hands a copy to the kernel. Returns what
    /// the kernel reads without the daemon, if it does.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open(
        &self,
        number: u64,
        object: Object,
        open: impl FnOnce() -> Result<Arc<dyn Store>>,
        pass: impl FnOnce(&File) -> io::Result<BackingId>,
    ) -> Result<Option<Arc<BackingId>>> {
        let mut state = self.lock();
        if let Some(open) = state.open.get_mut(&number) {
            open.handles += 1;
            return Ok(open.backing.clone());
        }
        let ready = state.expected.take(&object).or_else(|| state.closed.take(&object));
        // Opening a store takes no request, but for one without a certain tag.
        let reading = match ready {
            Some(reading) => reading,
            None => Reading::new(open()?, &self.fetcher),
        };
        let copy = reading.store().local_copy().and_then(|copy| pass(&copy).ok());
        let backing = copy.map(Arc::new);
        state.open.insert(number, Open { object, reading, backing: backing.clone(), handles: 1 });
        Ok(backing)
    }

    /// Begins to fetch a small file that will probably be opened soon.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn expect(
        &self,
        object: Object,
        open: impl FnOnce() -> Result<Arc<dyn Store>>,
    ) -> Result<()> {
        let mut state = self.lock();
        if !state.expected.0.iter().any(|(expected, _)| *expected == object) {
            let reading = Reading::new(open()?, &self.fetcher);
            reading.expect();
            state.expected.keep(object, reading, MOST_EXPECTED);
        }
        Ok(())
    }

    /// The reading of an open file.
    pub(crate) fn reading(&self, number: u64) -> Option<Arc<Reading>> {
        self.lock().open.get(&number).map(|open| open.reading.clone())
    }

    /// Closes a handle of a file.
    pub(crate) fn close(&self, number: u64) {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(&number) else { return };
        open.handles -= 1;
        if open.handles > 0 {
            return;
        }
        if let Some(Open { object, reading, .. }) = state.open.remove(&number) {
            reading.close();
            self.finisher.finish(reading.store());
            // What is known of its blocks in the cache stays known.
            state.closed.keep(object, reading, MOST_CLOSED);
        }
    }

    /// Whether the kernel reads a file that is open without the daemon.
    pub(crate) fn is_passed_through(&self, number: u64) -> bool {
        self.lock().open.get(&number).is_some_and(|open| open.backing.is_some())
    }

    /// Notes that a file that may be open is another version of an object from now on, whose bytes
    /// are the same. `open` opens it.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn replace(
        &self,
        number: u64,
        object: Object,
        open: impl FnOnce() -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let mut state = self.lock();
        if let Some(of) = state.open.get_mut(&number) {
            of.reading = open()?;
            of.object = object;
        }
        Ok(())
    }

    /// How many files are open, and how many of them the kernel reads without the daemon.
    pub(crate) fn count(&self) -> (usize, usize) {
        let state = self.lock();
        let is_passed = |open: &&Open| open.backing.is_some();
        (state.open.len(), state.open.values().filter(is_passed).count())
    }
}

impl Ready {
    fn take(&mut self, object: &Object) -> Option<Arc<Reading>> {
        let at = self.0.iter().position(|(ready, _)| ready == object)?;
        self.0.remove(at).map(|(_, reading)| reading)
    }

    fn keep(&mut self, object: Object, reading: Arc<Reading>, most: usize) {
        if self.0.len() >= most
            && let Some((_, oldest)) = self.0.pop_front()
        {
            oldest.close();
        }
        self.0.push_back((object, reading));
    }
}
