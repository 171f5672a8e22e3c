//! The process that reads a file opens it once, whatever the format.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::inotify;

use crate::common::Folder;

/// The number of times that a file is opened while `work` runs.
fn opens_during(path: &Path, work: impl FnOnce()) -> usize {
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    // inotify(7) merges equal consecutive events, so several opens could count as one. Events for
    // reads separate them.
    let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
    inotify::add_watch(&watch, path, flags).unwrap();
    work();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut count = 0;
    while let Ok(event) = events.next() {
        count += usize::from(event.events().contains(inotify::ReadFlags::OPEN));
    }
    count
}

/// The number of times that a command opens a file.
fn opens(folder: &Folder, args: &[&str], file: &str) -> usize {
    opens_during(&folder.path(file), || {
        folder.ok(args);
    })
}

#[test]
fn opens_are_counted() {
    let folder = Folder::new();
    let path = folder.path("file");
    fs::write(&path, "text").unwrap();
    let twice = opens_during(&path, || {
        fs::read(&path).unwrap();
        fs::read(&path).unwrap();
    });
    assert_eq!(twice, 2);
}

#[test]
fn files_of_reads_are_opened_once() {
    let folder = Folder::new();
    folder.ok(&["synth", "a.blow5", "--samples", "100k"]);
    folder.ok(&["convert", "a.blow5", "a.pod5", "--lossy"]);
    fs::copy(folder.path("a.blow5"), folder.path("unnamed")).unwrap();
    for file in ["a.blow5", "a.pod5", "unnamed"] {
        for args in [
            &["read", file, "--digest"][..],
            &["info", file],
            &["check", file],
            &["index", file],
            &["plot", file, "--out", "out.svg", "--force"],
            &["scan", file, "--out", "out.csv", "--force"],
        ] {
            assert_eq!(opens(&folder, args, file), 1, "{args:?}");
        }
    }
}

/// Only trusted files: otherwise a child process opens the file first.
#[cfg(feature = "hdf5")]
#[test]
fn hdf5_files_are_opened_once() {
    let folder = Folder::new();
    folder.ok(&["synth", "a.blow5", "--samples", "100k"]);
    folder.ok(&["convert", "a.blow5", "a.fast5", "--lossy"]);
    fs::copy(folder.path("a.fast5"), folder.path("reads.h5")).unwrap();
    let nexus = ["--kind", "nexus-live", "--size", "300kB", "--chunk", "2048"];
    folder.ok(&[&["synth", "run.nxs"], &nexus[..]].concat());
    for file in ["a.fast5", "reads.h5", "run.nxs"] {
        for args in [
            &["read", file, "--digest", "--trusted"][..],
            &["info", file, "--trusted"],
            &["doctor", file, "--trusted"],
            &["plot", file, "--out", "out.svg", "--trusted", "--force"],
        ] {
            assert_eq!(opens(&folder, args, file), 1, "{args:?}");
        }
    }
}
