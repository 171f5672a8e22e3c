//! Writes that the kernel collects (`--write-back`).

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::mounted::{MIB, Mounted, bytes, can_mount, empty, room_in, until};
use super::store::{Store, append, is_put};
use crate::common::Folder;

/// Whether requests came for parts of an upload.
fn sends_parts(store: &Store) -> bool {
    store.server.asked().iter().any(|asked| asked.target.contains("partNumber"))
}

#[test]
fn what_is_written_back_is_stored() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("old", "a long beginning");
    let mut mounted = Mounted::writing(&store.server, &["--write-back"]);
    // Small writes into a large file, which is sent while it is written.
    let content = bytes(1, 160 * MIB + 5);
    let mut file = File::create(mounted.path("large")).unwrap();
    for piece in content.chunks(100_000) {
        file.write_all(piece).unwrap();
    }
    assert!(sends_parts(&store));
    drop(file);
    assert!(store.server.object("/bucket/large").unwrap() == content);
    drop(append(&mounted.path("old"), " and the end"));
    assert_eq!(store.object("old").unwrap(), "a long beginning and the end");
    let file = File::create(mounted.path("holes")).unwrap();
    file.write_all_at(b"end", 10_000).unwrap();
    file.write_all_at(b"start", 0).unwrap();
    file.sync_all().unwrap();
    let stored = store.server.object("/bucket/holes").unwrap();
    assert!(stored.len() == 10_003 && stored.starts_with(b"start\0") && stored.ends_with(b"\0end"));
    assert_eq!(fs::read(mounted.path("holes")).unwrap(), stored);
    // The time at which a program wrote, and the one that it set.
    let written = fs::metadata(mounted.path("holes")).unwrap().modified().unwrap();
    assert!(written.elapsed().unwrap() < Duration::from_secs(60));
    assert!(!store.server.metadata("/bucket/holes").contains_key("x-amz-meta-mtime"));
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_007, 0);
    file.write_all_at(b"START", 0).unwrap();
    file.set_modified(time).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    drop(file);
    let found = fs::metadata(mounted.path("holes")).unwrap();
    assert_eq!((found.modified().unwrap(), found.mode() & 0o777), (time, 0o600));
    assert!(store.server.metadata("/bucket/holes").contains_key("x-amz-meta-mtime"));
    assert!(mounted.end().success());
}

/// A store that refuses the bytes is told by close and fsync.
#[test]
fn failures_are_told_at_the_end() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mounted = Mounted::writing(&store.server, &["--write-back"]);
    store.refuse(is_put);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"bytes").unwrap();
    assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::PermissionDenied);
    store.mend();
    file.sync_all().unwrap();
    assert_eq!(store.object("a").unwrap(), "bytes");
    store.put("a", "theirs");
    file.write_all(b" and more").unwrap();
    let stale = Some(Errno::STALE.raw_os_error());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), stale);
    assert_eq!(store.object("a").unwrap(), "theirs");
}

/// What is written back to a file whose name has another program's object leaves nothing behind.
#[test]
fn a_replaced_file_is_not_written_back() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mut mounted = Mounted::writing(&store.server, &["--write-back", "--ttl", "0"]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"mine").unwrap();
    file.sync_all().unwrap();
    store.put("a", "theirs");
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"theirs");
    file.write_all(b" and more").unwrap();
    assert!(file.sync_all().is_err());
    drop(file);
    assert_eq!(mounted.status()["unstored_files"], 0);
    assert_eq!(store.object("a").unwrap(), "theirs");
    assert!(mounted.end().success());
}

/// Another name is one copy, and the file keeps the time at which it was written.
#[test]
fn renaming_makes_one_copy() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("old", "old");
    let mounted = Mounted::writing(&store.server, &["--write-back"]);
    fs::write(mounted.path("new"), "new").unwrap();
    store.server.forget();
    for name in ["old", "new"] {
        fs::rename(mounted.path(name), mounted.path(&format!("{name} 2"))).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    let asked = store.server.asked();
    assert_eq!(asked.iter().filter(|asked| asked.method == "PUT").count(), 2, "{asked:?}");
    assert!(!store.server.metadata("/bucket/old 2").contains_key("x-amz-meta-mtime"));
}

/// A file may be larger than the room, whatever order the kernel writes it back in.
#[test]
fn a_large_file_is_written_back_through_a_small_folder() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let folder = Folder::new();
    let staging = room_in(&folder, "127MiB");
    let args = ["s3://bucket", "m", "--staging", &*staging, "--write-back"];
    fs::create_dir(folder.path("m")).unwrap();
    let refused = Mounted::verb(&folder, &server, &args).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("128 MiB"), "{said}");
    let staging = room_in(&folder, "128MiB");
    let args = ["--staging", &*staging, "--write-back"];
    let mounted = Mounted::in_folder(folder, &server, &args);
    let content = bytes(1, 300 * MIB + 77);
    let mut file = File::create(mounted.path("large")).unwrap();
    for piece in content.chunks(300_000) {
        file.write_all(piece).unwrap();
    }
    assert!(mounted.status()["staged_bytes"].as_u64().unwrap() <= 128 << 20);
    file.sync_all().unwrap();
    drop(file);
    assert!(server.object("/bucket/large").unwrap() == content);
}

/// Bytes for which there is no room are lost: the file is not stored without them.
#[test]
fn a_file_that_lacks_bytes_is_not_stored() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let folder = Folder::new();
    let staging = room_in(&folder, "128MiB");
    let args = ["--staging", &*staging, "--write-back", "--timeout", "2"];
    let mut mounted = Mounted::in_folder(folder, &server, &args);
    let content = bytes(1, MIB);
    let file = File::create(mounted.path("a")).unwrap();
    // With gaps, so that no part is sent.
    for number in 0..150 {
        let _ = file.write_all_at(&content, 2 * number * MIB as u64);
    }
    assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::StorageFull);
    drop(file);
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.objects().is_empty());
    assert_eq!(mounted.status()["unstored_files"], 1);
    assert_eq!(mounted.status()["unstored_failed"], 1);
    // One of which nothing was taken.
    let file = File::create(mounted.path("b")).unwrap();
    file.write_all_at(&content, 0).unwrap();
    assert_eq!(file.sync_all().unwrap_err().kind(), ErrorKind::StorageFull);
    drop(file);
    mounted.folder.fails(1, &["mount", "--flush", "m"]);
    assert!(server.objects().is_empty());
    // Written anew, they are stored. The kernel may tell the old failure once more.
    for name in ["a", "b"] {
        fs::write(mounted.path(name), "all").unwrap();
        until(|| server.object(&format!("/bucket/{name}")).is_some_and(|found| found == b"all"));
    }
    until(|| mounted.status()["unstored_files"] == 0);
    assert!(mounted.end().success());
}
