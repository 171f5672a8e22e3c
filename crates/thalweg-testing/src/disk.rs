//! A disk in memory that loses power.
//!
//! After a power loss, each sector of 512 bytes that was written and not synced is either kept or
//! lost. A kept sector after a lost one makes the file longer; the lost sector then reads as zeros.
//! Each creation, renaming or removal of a file since the last sync of the folder is either kept or
//! lost.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg_io::disk::{Disk, Sink};
use thalweg_io::store::{MemoryStore, Store};
use thalweg_io::sync::{Mutex, MutexGuard, PoisonError};
use thalweg_io::{Error, Result};

const SECTOR: usize = 512;

/// Which steps of a [`CrashDisk`] fail. A write that fails still writes half of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// This step and all later ones fail, as if the process ended there. Steps count from 0.
    From(u64),
    /// Only this step fails, as on a full disk or a bad sector. Steps count from 0.
    Once(u64),
    /// No step fails.
    Never,
}

#[derive(Debug, Clone, Default)]
struct DiskContents {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Byte ranges of `now`, as (start, end), that were written since the last sync.
    dirty: Vec<(usize, usize)>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Made(String, usize),
    Renamed(String, String),
    Removed(String),
}

#[derive(Debug, Default)]
struct DiskState {
    files: Vec<DiskContents>,
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    steps: u64,
}

/// A disk in memory that can lose power, fail, and be damaged.
pub struct CrashDisk {
    name: Arc<str>,
    state: Arc<Mutex<DiskState>>,
    failing: Failing,
    is_locked: Arc<AtomicBool>,
}

impl fmt::Debug for CrashDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CrashDisk({}, {:?})", self.name, self.failing)
    }
}

impl CrashDisk {
    /// Makes an empty disk, whose steps fail as `failing` says.
    pub fn new(failing: Failing) -> Self {
        Self { name: "disk".into(), state: Arc::default(), failing, is_locked: Arc::default() }
    }

    /// The number of steps so far. A step is a write, a sync, or the creation, opening for
    /// appending, renaming or removal of a file.
    pub fn steps(&self) -> u64 {
        self.lock_state().steps
    }

    /// The disk after a power loss. `seed` determines which unsynced sectors and names survive; the
    /// surviving contents count as synced, and steps count from 0.
    pub fn after_crash(&self, seed: u64, failing: Failing) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let state = self.lock_state();
        let mut names = state.durable.clone();
        for change in &state.changes {
            // A journalling file system keeps changes up to some point in time. This disk keeps any
            // subset, which is a harder test.
            if rng.random_bool(0.5) {
                apply(&mut names, change);
            }
        }
        let mut files = Vec::new();
        for contents in &state.files {
            let mut kept = contents.synced.clone();
            for (start, end) in &contents.dirty {
                if rng.random_bool(0.3) {
                    continue;
                }
                let mut at = *start;
                while at < *end {
                    let stop = (at / SECTOR * SECTOR + SECTOR).min(*end);
                    if rng.random_bool(0.7) {
                        if kept.len() < stop {
                            kept.resize(stop, 0);
                        }
                        kept[at..stop].copy_from_slice(&contents.now[at..stop]);
                    }
                    at = stop;
                }
            }
            files.push(DiskContents { now: kept.clone(), synced: kept, dirty: Vec::new() });
        }
        let state =
            DiskState { files, durable: names.clone(), names, changes: Vec::new(), steps: 0 };
        Self {
            name: self.name.clone(),
            state: Arc::new(Mutex::new(state)),
            failing,
            is_locked: Arc::default(),
        }
    }

    /// The same disk for the next process, as after `kill -9`: nothing is lost, and the lock is
    /// free. The contents are shared with `self`, and the step count of both restarts at 0.
    pub fn after_kill(&self, failing: Failing) -> Self {
        let mut state = self.lock_state();
        state.steps = 0;
        drop(state);
        Self {
            name: self.name.clone(),
            state: self.state.clone(),
            failing,
            is_locked: Arc::default(),
        }
    }

    /// A separate disk with the same contents, all of them synced. No step of it fails.
    pub fn copy(&self) -> Self {
        let state = self.lock_state();
        let file = |contents: &DiskContents| DiskContents {
            now: contents.now.clone(),
            synced: contents.now.clone(),
            dirty: Vec::new(),
        };
        let files = state.files.iter().map(file).collect();
        let names = state.names.clone();
        let state =
            DiskState { files, durable: names.clone(), names, changes: Vec::new(), steps: 0 };
        Self {
            name: self.name.clone(),
            state: Arc::new(Mutex::new(state)),
            failing: Failing::Never,
            is_locked: Arc::default(),
        }
    }

    /// Changes the bytes of `file` with `f`. The new bytes count as synced.
    pub fn damage(&self, file: &str, f: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock_state();
        let number = state.names[file];
        let contents = &mut state.files[number];
        f(&mut contents.now);
        contents.synced = contents.now.clone();
    }

    fn lock_state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a step, and returns an error if the step fails.
    fn step(&self, state: &mut DiskState) -> Result<()> {
        step(&self.name, self.failing, state)
    }
}

fn step(name: &Arc<str>, failing: Failing, state: &mut DiskState) -> Result<()> {
    let number = state.steps;
    state.steps += 1;
    let fails = match failing {
        Failing::From(first) => number >= first,
        Failing::Once(only) => number == only,
        Failing::Never => false,
    };
    if fails {
        Err(Error::io(name, "writing", std::io::Error::other("a scripted failure")))
    } else {
        Ok(())
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Made(name, file) => drop(names.insert(name.clone(), *file)),
        NameChange::Renamed(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        NameChange::Removed(name) => drop(names.remove(name)),
    }
}

impl Disk for CrashDisk {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.lock_state().names.keys().cloned().collect())
    }

    fn open(&self, file: &str) -> Result<Arc<dyn Store>> {
        let state = self.lock_state();
        let missing = || Error::io(&self.path_of(file), "opening", std::io::ErrorKind::NotFound);
        let number = *state.names.get(file).ok_or_else(missing)?;
        Ok(Arc::new(MemoryStore::new(&self.path_of(file), state.files[number].now.clone())))
    }

    fn create(&self, file: &str) -> Result<Box<dyn Sink>> {
        let mut state = self.lock_state();
        self.step(&mut state)?;
        // Creating an existing file empties it, but a crash may bring the old bytes back. So the
        // name gets a new file, and the old file stays until the next sync of the folder.
        state.files.push(DiskContents::default());
        let number = state.files.len() - 1;
        let change = NameChange::Made(file.to_owned(), number);
        apply(&mut state.names, &change);
        state.changes.push(change);
        drop(state);
        Ok(Box::new(CrashSink {
            name: self.path_of(file),
            state: self.state.clone(),
            file: number,
            failing: self.failing,
        }))
    }

    fn append(&self, file: &str, len: u64) -> Result<Box<dyn Sink>> {
        let mut state = self.lock_state();
        self.step(&mut state)?;
        let number = state.names[file];
        let contents = &mut state.files[number];
        contents.now.truncate(len as usize);
        contents.dirty.retain_mut(|(start, end)| {
            *end = (*end).min(len as usize);
            start < end
        });
        drop(state);
        Ok(Box::new(CrashSink {
            name: self.path_of(file),
            state: self.state.clone(),
            file: number,
            failing: self.failing,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.lock_state();
        self.step(&mut state)?;
        let change = NameChange::Renamed(from.to_owned(), to.to_owned());
        apply(&mut state.names, &change);
        state.changes.push(change);
        Ok(())
    }

    fn remove(&self, file: &str) -> Result<()> {
        let mut state = self.lock_state();
        self.step(&mut state)?;
        let change = NameChange::Removed(file.to_owned());
        apply(&mut state.names, &change);
        state.changes.push(change);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.lock_state();
        self.step(&mut state)?;
        state.durable = state.names.clone();
        state.changes.clear();
        Ok(())
    }

    fn lock(&self) -> Result<Option<Box<dyn Any + Send + Sync>>> {
        if self.is_locked.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        Ok(Some(Box::new(HeldLock(self.is_locked.clone()))))
    }
}

struct HeldLock(Arc<AtomicBool>);

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

struct CrashSink {
    name: Arc<str>,
    state: Arc<Mutex<DiskState>>,
    file: usize,
    failing: Failing,
}

impl Sink for CrashSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = step(&self.name, self.failing, &mut state);
        let contents = &mut state.files[self.file];
        let start = contents.now.len();
        // A failed write may have written a part of its bytes.
        let len = if outcome.is_ok() { bytes.len() } else { bytes.len() / 2 };
        contents.now.extend_from_slice(&bytes[..len]);
        contents.dirty.push((start, start + len));
        outcome
    }

    fn sync(&mut self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        step(&self.name, self.failing, &mut state)?;
        let contents = &mut state.files[self.file];
        contents.synced = contents.now.clone();
        contents.dirty.clear();
        Ok(())
    }
}
