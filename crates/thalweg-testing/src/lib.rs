//! Test suites that every store must pass. They form a library, so that stores in other crates pass
//! the same tests.
//!
//! [`store_suite`] checks reads and serving. [`path_suite`] checks which paths a store opens.
//! [`shrink_suite`] and [`race_suite`] check files that are truncated while they are open. Each
//! suite panics at the first failure. This crate is not part of the public interface.
//!
//! [`slow5`] and [`pod5`] make small files for tests to damage. [`real_files`] finds real files.
//! [`fuzz`] has the bodies of the fuzz targets, and [`fuzz_corpus`] runs them on their seeds.

// A suite reports by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod disk;
mod faulty;
mod feed;
pub mod folder_server;
pub mod fuzz;
pub mod fuzz_corpus;
pub mod http_server;
pub mod pod5;
pub mod raw_client;
pub mod real_files;
pub mod slow5;
pub mod toy;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use thalweg_io::store::{AlignedBuf, PAGE, Store};
use thalweg_io::{Error, Result};

pub use disk::{CrashDisk, Failing};
pub use faulty::{Faulty, StoreFault};
pub use feed::Script;

/// One of how many cases a long test tries: one of seven, or each with `THOROUGH=1`, as in CI.
/// Seven shares no factor with the sizes of numbers, so that all their bytes have their turn.
pub fn one_of() -> usize {
    if std::env::var_os("THOROUGH").is_some() { 1 } else { 7 }
}

/// Makes a store that holds the given bytes.
pub type Make<'a> = &'a dyn Fn(&[u8]) -> Arc<dyn Store>;
/// Opens a path as a store.
pub type Open<'a> = &'a dyn Fn(&Path) -> Result<Arc<dyn Store>>;

/// Returns `len` pseudo-random bytes, always the same. A read at a wrong offset, such as one page
/// too far, returns other bytes.
pub fn sample(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (mix((i / 8).wrapping_add(STEP)) >> (i % 8 * 8)) as u8).collect()
}

use thalweg_codec::splitmix::{STEP, mix};

/// Runs `job`, and panics if it takes more than ten minutes. A hang then fails the test, and a busy
/// machine does not.
pub fn no_hang<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        let _ = sender.send(job());
    });
    match receiver.recv_timeout(Duration::from_secs(600)) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("still not done after ten minutes"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => panic!("the job ended without a result"),
        },
    }
}

/// Checks the properties that hold for every store.
pub fn store_suite(make: Make<'_>) {
    for len in [0, 1, 2, 511, 4095, 4096, 4097, 70_001] {
        let bytes = sample(len);
        let store = make(&bytes);
        describes_itself(&*store, &bytes);
        reads_anywhere(&*store, &bytes);
        refuses_what_is_outside(&*store);
        for depth in [1, 64] {
            serves(&store, &bytes, depth);
        }
    }
    let bytes = sample((1 << 20) + 4097);
    let store = make(&bytes);
    reads_from_many_threads(&*store, &bytes);
    for depth in [1, 3, 64] {
        serves(&store, &bytes, depth);
        serves_shy_feeds(&store, &bytes, depth);
        serves_what_is_outside(&store, &bytes, depth);
        passes_panics_on(&store, &bytes, depth);
        // A store must serve again after a panic of its feed.
        serves(&store, &bytes, depth);
    }
    ends_with_its_feed(&store, &bytes);
}

fn describes_itself(store: &dyn Store, bytes: &[u8]) {
    assert_eq!(store.size(), bytes.len() as u64);
    assert!(!store.name().is_empty());
    assert!(store.alignment().is_power_of_two() && store.alignment() <= PAGE);
    if let Some(own) = store.bytes() {
        assert_eq!(own, bytes);
    }
}

fn reads_anywhere(store: &dyn Store, bytes: &[u8]) {
    let size = bytes.len();
    let corners = [0, 1, 7, 511, 512, 513, 4095, 4096, 4097, 8192, 65_536];
    let edges: Vec<usize> = corners
        .iter()
        .flat_map(|c| [*c, size.saturating_sub(*c)])
        .filter(|edge| *edge <= size)
        .collect();
    for &from in &edges {
        for &to in edges.iter().filter(|to| **to >= from) {
            check_read(store, bytes, from, to);
        }
    }
}

fn check_read(store: &dyn Store, bytes: &[u8], from: usize, to: usize) {
    // With O_DIRECT, aligned buffers and unaligned buffers take different code paths.
    for shift in [0, 3] {
        let mut buf = AlignedBuf::new(to - from + shift);
        store
            .read_at(from as u64, &mut buf[shift..])
            .unwrap_or_else(|e| panic!("{from}..{to}: {e}"));
        assert!(buf[shift..] == bytes[from..to], "wrong bytes in {from}..{to} of {}", store.name());
    }
    store.touch(from as u64, to - from).unwrap();
}

fn refuses_what_is_outside(store: &dyn Store) {
    let size = store.size();
    for (offset, len) in
        [(size, 1), (size + 1, 0), (size.saturating_sub(1), 2), (u64::MAX, 1), (u64::MAX - 1, 9)]
    {
        let mut buf = vec![7; len];
        let read = store.read_at(offset, &mut buf).unwrap_err();
        for error in [read, store.touch(offset, len).unwrap_err()] {
            let Error::Truncated { file, size: reported, .. } = &error else {
                panic!("{offset}+{len}: {error:?}")
            };
            assert_eq!((file, *reported), (store.name(), size));
        }
        assert!(buf.iter().all(|b| *b == 7), "bytes outside the store were made up");
    }
}

fn reads_from_many_threads(store: &dyn Store, bytes: &[u8]) {
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            scope.spawn(move || {
                for i in 0..40 {
                    let from = mix(thread * 1000 + i) as usize % bytes.len();
                    let to = (from + mix(i) as usize % 50_000).min(bytes.len());
                    check_read(store, bytes, from, to);
                }
            });
        }
    });
}

/// Makes `count` aligned requests at random offsets in `bytes`, and one that reads up to the last
/// byte. Some may be empty.
fn requests(store: &dyn Store, bytes: &[u8], count: u64) -> Vec<(u64, usize)> {
    let align = store.alignment() as u64;
    let size = bytes.len() as u64;
    let mut wanted: Vec<(u64, usize)> = (0..count)
        .map(|i| {
            let offset = mix(i) % (size + 1) / align * align;
            (offset, (mix(i + 77) % 40_000).min(size - offset) as usize)
        })
        .collect();
    let last = size.saturating_sub(1) / align * align;
    wanted.push((last, (size - last) as usize));
    wanted
}

fn serves(store: &Arc<dyn Store>, bytes: &[u8], depth: usize) {
    let wanted = requests(&**store, bytes, 120);
    Script::new(store, bytes, wanted).serve(depth).all_right();
}

fn serves_shy_feeds(store: &Arc<dyn Store>, bytes: &[u8], depth: usize) {
    // A store that waits for the next request before it reports an outcome hangs here.
    let one_at_a_time =
        Script { most_out: 1, ..Script::new(store, bytes, requests(&**store, bytes, 50)) };
    one_at_a_time.serve(depth).all_right();
    let never_at_once = Script {
        only_to_who_waits: true,
        ..Script::new(store, bytes, requests(&**store, bytes, 50))
    };
    never_at_once.serve(depth).all_right();
    let both = Script {
        most_out: 1,
        only_to_who_waits: true,
        ..Script::new(store, bytes, requests(&**store, bytes, 50))
    };
    both.serve(depth).all_right();
}

fn serves_what_is_outside(store: &Arc<dyn Store>, bytes: &[u8], depth: usize) {
    let align = store.alignment() as u64;
    let beyond = (store.size() / align + 1) * align;
    let last = store.size() / align * align;
    let mut wanted = requests(&**store, bytes, 20);
    wanted.insert(3, (beyond, 10));
    wanted.insert(9, (last, (store.size() - last) as usize + 1));
    let served = Script::new(store, bytes, wanted).serve(depth);
    for (tag, outcome) in served.outcomes().iter().enumerate() {
        match outcome {
            Err(Error::Truncated { file, .. }) if [3, 9].contains(&tag) => {
                assert_eq!(file, store.name());
            }
            Ok(()) if ![3, 9].contains(&tag) => {}
            other => panic!("request {tag}: {other:?}"),
        }
    }
}

fn ends_with_its_feed(store: &Arc<dyn Store>, bytes: &[u8]) {
    Script::new(store, bytes, Vec::new()).serve(4).all_right();
    for after in [1, 5, 30] {
        let script = Script {
            ends_after: after,
            ..Script::new(store, bytes, requests(&**store, bytes, 40))
        };
        assert_eq!(script.serve(8).outcomes().len(), after);
    }
}

fn passes_panics_on(store: &Arc<dyn Store>, bytes: &[u8], depth: usize) {
    let script =
        Script { panics_at: Some(5), ..Script::new(store, bytes, requests(&**store, bytes, 40)) };
    let outcome = no_hang(move || {
        let quiet = std::panic::AssertUnwindSafe(|| script.serve_here(depth));
        std::panic::catch_unwind(quiet)
    });
    assert!(outcome.is_err(), "a panic in the feed was swallowed");
}

/// Checks which paths a store opens, and the errors for all others. `dir` is an empty folder for
/// the files of the test.
pub fn path_suite(open: Open<'_>, dir: &Path) {
    let missing = dir.join("missing");
    let error = open(&missing).unwrap_err();
    assert!(
        matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound),
        "{error:?}"
    );
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");

    let pipe = dir.join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for odd in [dir, &pipe, Path::new("/dev/null")] {
        let error = open(odd).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{}: {error:?}", odd.display());
        assert!(error.to_string().contains(odd.to_str().unwrap()), "{error}");
    }

    let plain = dir.join("plain");
    std::fs::write(&plain, b"contents").unwrap();
    let link = dir.join("link");
    std::os::unix::fs::symlink(&plain, &link).unwrap();
    let mut buf = [0; 8];
    open(&link).unwrap().read_at(0, &mut buf).unwrap();
    assert_eq!(&buf, b"contents");

    let closed = dir.join("closed");
    std::fs::write(&closed, b"secret").unwrap();
    std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Root may open every file.
    if std::fs::File::open(&closed).is_err() {
        let error = open(&closed).unwrap_err();
        let denied = std::io::ErrorKind::PermissionDenied;
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == denied), "{error:?}");
    }
}

/// Checks a file that is truncated after it was opened: reads past the new end fail with an error
/// that says so, and return no invented bytes. `dir` is a folder for the file.
pub fn shrink_suite(open: Open<'_>, dir: &Path) {
    let path = dir.join("shrinking");
    let bytes = sample(300_000);
    let shorter = 100_001;
    std::fs::write(&path, &bytes).unwrap();
    let store = open(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(shorter).unwrap();
    let mut buf = AlignedBuf::new(300_000);
    store.read_at(0, &mut buf[..50_000]).unwrap();
    assert!(buf[..50_000] == bytes[..50_000]);
    for (offset, len) in [(0, 300_000), (200_704, 10), (98_304, 4096), (98_304, 1700)] {
        let error = store.read_at(offset, &mut buf[..len]).unwrap_err();
        assert!(
            matches!(error, Error::Truncated { size, .. } if size == shorter),
            "{offset}+{len}: {error:?}"
        );
        assert!(error.to_string().contains("shortened"), "{error}");
    }
    let wanted = vec![
        (0, 50_000),
        (0, 300_000),
        (200_704, 10),
        (98_304, 4096),
        (98_304, 1700),
        (98_304, 1000),
    ];
    let served = Script::new(&store, &bytes, wanted).serve(3);
    for (tag, outcome) in served.outcomes().iter().enumerate() {
        match outcome {
            Ok(()) if tag == 0 || tag == 5 => {}
            Err(Error::Truncated { size, .. }) if (1..5).contains(&tag) => {
                assert_eq!(*size, shorter);
            }
            other => panic!("request {tag}: {other:?}"),
        }
    }
}

/// Checks a file that is truncated during the reads. Stores that map the file can't take this test,
/// because reading past the new end raises SIGBUS. `dir` is a folder for the file.
pub fn race_suite(open: Open<'_>, dir: &Path) {
    let path = dir.join("racing");
    let bytes = sample(2 << 20);
    for round in 0..10u64 {
        std::fs::write(&path, &bytes).unwrap();
        let store = open(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let left = mix(round) % bytes.len() as u64;
        let wanted = (0..256).map(|i| (i * 8192, 8192)).collect();
        // Linux zeroes the truncated part of a page before it drops the page. A read at that moment
        // may return zeros, so bytes past the new end are not compared.
        let script = Script { sure: left, ..Script::new(&store, &bytes, wanted) };
        let cutter = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(50 * round));
            file.set_len(left).unwrap();
        });
        let outcomes = script.serve(4).outcomes();
        cutter.join().unwrap();
        assert_eq!(outcomes.len(), 256);
        for (i, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(()) => {}
                Err(Error::Truncated { .. }) => {
                    assert!((i as u64 + 1) * 8192 > left, "{i} is inside what is left");
                }
                Err(error) => panic!("request {i}: {error:?}"),
            }
        }
    }
}
