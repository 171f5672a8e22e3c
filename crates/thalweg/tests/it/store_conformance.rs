//! Every store passes the same suite.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use thalweg::Result;
use thalweg::store::throttled::Limits;
use thalweg::store::{FileStore, MemoryStore, MmapStore, Store, ThrottledStore, UringStore};
use thalweg_testing::{Faulty, StoreFault, path_suite, race_suite, shrink_suite, store_suite};

fn dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn written(dir: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(format!("{} bytes", bytes.len()));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// All suites over a store that opens a path.
fn suites(open: fn(&Path) -> Result<Arc<dyn Store>>) {
    let dir = dir();
    store_suite(&|bytes| open(&written(&dir, bytes)).unwrap());
    let dir = self::dir();
    path_suite(&open, dir.path());
    shrink_suite(&open, dir.path());
    let written = written(&dir, b"x");
    if open(&written).unwrap().bytes().is_none() {
        race_suite(&open, dir.path());
    }
}

#[test]
fn memory() {
    store_suite(&|bytes| Arc::new(MemoryStore::new("memory", bytes.to_vec())));
}

#[test]
fn file() {
    suites(|path| Ok(Arc::new(FileStore::open(path)?)));
}

#[test]
fn recent_changes_are_in_memory() {
    let dir = dir();
    let path = written(&dir, &[7; 10_000]);
    let stores: [(&dyn Store, bool); 3] = [
        (&FileStore::open(&path).unwrap(), true),
        (&MmapStore::open(&path).unwrap(), true),
        (&FileStore::open_direct(&path).unwrap(), false),
    ];
    for (store, expected) in stores {
        assert_eq!(
            [0, 9_999, 10_000].map(|at| store.is_at_hand(at)),
            [expected, expected, false],
            "{store:?}"
        );
        let mut bytes = [0; 100];
        assert_eq!(store.read_at_hand(9_900, &mut bytes), expected, "{store:?}");
        assert!(!expected || bytes == [7; 100], "{store:?}");
        assert!(!store.read_at_hand(9_901, &mut bytes), "{store:?}: beyond the end");
    }
}

#[test]
fn file_direct() {
    suites(|path| Ok(Arc::new(FileStore::open_direct(path)?)));
}

#[test]
fn the_fault_store_without_a_fault() {
    store_suite(&|bytes| {
        Arc::new(Faulty::new(
            Arc::new(MemoryStore::new("memory", bytes.to_vec())),
            StoreFault::None,
        ))
    });
}

/// Slow enough to make requests wait, and fast enough for a test.
fn limits() -> Limits {
    Limits {
        latency: Duration::from_micros(20),
        jitter: Duration::from_micros(20),
        ..Limits::default()
    }
}

#[test]
fn throttled_memory() {
    store_suite(&|bytes| {
        Arc::new(ThrottledStore::new(
            Arc::new(MemoryStore::new("memory", bytes.to_vec())),
            limits(),
        ))
    });
}

#[test]
fn throttled_file() {
    suites(|path| {
        Ok(Arc::new(ThrottledStore::new(Arc::new(FileStore::open_direct(path)?), limits())))
    });
}

#[test]
fn a_throttled_store_takes_its_time() {
    let memory = Arc::new(MemoryStore::new("memory", vec![1; 100_000]));
    let limits = Limits { latency: Duration::from_millis(5), bandwidth: 5e6, ..Limits::default() };
    let store = ThrottledStore::new(memory, limits);
    let start = std::time::Instant::now();
    store.read_at(0, &mut vec![0; 100_000]).unwrap();
    // The wait may be longer on a busy machine, but never shorter. Other tests check the schedule
    // without a clock.
    assert!(start.elapsed() >= Duration::from_millis(25));
}

#[test]
fn mmap() {
    suites(|path| Ok(Arc::new(MmapStore::open(path)?)));
}

#[test]
fn mmap_that_drops_its_pages() {
    suites(|path| Ok(Arc::new(MmapStore::open(path)?.keep(0))));
}

#[test]
fn uring() {
    suites(|path| Ok(Arc::new(UringStore::open(path, false)?)));
}

#[test]
fn uring_direct() {
    suites(|path| Ok(Arc::new(UringStore::open(path, true)?)));
}

#[test]
fn uring_where_it_is_forbidden() {
    suites(|path| Ok(Arc::new(UringStore::open(path, true)?.pretend_refused())));
}
