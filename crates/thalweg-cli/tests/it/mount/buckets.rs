//! All buckets of a service under one folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use thalweg_testing::http_server::{Answer, Asked};

use super::mounted::{Mounted, can_mount, names};
use super::store::{Store, append, is_put};
use crate::common::Folder;

/// Answers of a service that has no other buckets than these.
fn has_only(buckets: &'static [&str]) -> impl Fn(&Asked) -> Answer {
    |asked| {
        let path = asked.target.trim_start_matches('/');
        let name = path.split(['/', '?']).next().unwrap_or_default();
        match name.is_empty() || buckets.contains(&name) {
            true => Answer::Right,
            false => Answer::Refused(404, "NoSuchBucket"),
        }
    }
}

fn service() -> Store {
    let store = Store::new();
    store.rule(has_only(&["bucket", "other"]));
    store.put("d/a", "in the first");
    store.server.put("/other/b", b"in the other".to_vec());
    store
}

#[test]
fn buckets_are_folders() {
    if !can_mount() {
        return;
    }
    let store = service();
    let mut mounted = Mounted::all_buckets(Folder::new(), &store.server, &["--ttl", "0"]);
    assert_eq!(mounted.status()["source"], "s3://");
    assert_eq!(names(&mounted.path("")), ["bucket", "other"]);
    assert_eq!(names(&mounted.path("other")), ["b"]);
    assert_eq!(fs::read(mounted.path("bucket/d/a")).unwrap(), b"in the first");
    assert!(!mounted.path("third").exists() && !mounted.path(".git").exists());
    // What is written goes to the right one.
    drop(append(&mounted.path("other/b"), ", and more"));
    fs::write(mounted.path("bucket/d/b"), "new").unwrap();
    fs::rename(mounted.path("bucket/d"), mounted.path("bucket/e")).unwrap();
    fs::rename(mounted.path("other/b"), mounted.path("other/c")).unwrap();
    assert_eq!(store.server.object("/other/c").unwrap(), b"in the other, and more");
    assert_eq!(store.object("e/b").unwrap(), "new");
    // Between buckets, programs copy.
    let moved = fs::rename(mounted.path("other/c"), mounted.path("bucket/c"));
    assert_eq!(moved.unwrap_err().kind(), ErrorKind::CrossesDevices);
    // It is still the file that they have looked at, or they would not.
    let number = |name: &str| fs::metadata(mounted.path(name)).unwrap().ino();
    let before = number("other/c");
    assert!(fs::rename(mounted.path("other/c"), mounted.path("bucket/c")).is_err());
    assert_eq!(number("other/c"), before);
    fs::copy(mounted.path("other/c"), mounted.path("bucket/c")).unwrap();
    // Buckets themselves are nothing that a mount changes.
    let denied = |result: std::io::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    };
    denied(fs::create_dir(mounted.path("third")));
    denied(File::create(mounted.path("file")).map(drop));
    denied(fs::rename(mounted.path("other"), mounted.path("third")));
    denied(fs::remove_dir(mounted.path("other")));
    fs::set_permissions(mounted.path("other"), fs::Permissions::from_mode(0o700)).unwrap();
    let mode = fs::metadata(mounted.path("other")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut found = store.server.objects();
    found.sort();
    assert_eq!(found, ["/bucket/c", "/bucket/e/a", "/bucket/e/b", "/other/c"]);
    assert!(mounted.end().success());
}

#[test]
fn what_is_left_is_stored_in_its_bucket() {
    if !can_mount() {
        return;
    }
    let store = service();
    let args = ["--close", "staged"];
    let mut mounted = Mounted::all_buckets(Folder::new(), &store.server, &args);
    store.refuse(is_put);
    fs::write(mounted.path("other/left"), "left").unwrap();
    drop(append(&mounted.path("bucket/d/a"), ", and more"));
    mounted.kill();
    store.mend();
    let folder = std::mem::replace(&mut mounted.folder, Folder::new());
    let mounted = Mounted::all_buckets(folder, &store.server, &args);
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.server.object("/other/left").unwrap(), b"left");
    assert_eq!(store.object("d/a").unwrap(), "in the first, and more");
}

/// A bucket that is gone keeps its name until nothing waits for it.
#[test]
fn what_waits_for_a_bucket_that_is_gone_has_a_name() {
    if !can_mount() {
        return;
    }
    let store = service();
    let args = ["--close", "staged", "--ttl", "0"];
    let mut mounted = Mounted::all_buckets(Folder::new(), &store.server, &args);
    store.refuse(is_put);
    fs::write(mounted.path("other/left"), "left").unwrap();
    store.rule(has_only(&["bucket"]));
    let unstored = || mounted.status()["unstored_files"].as_u64().unwrap();
    let flushed = Mounted::verb(&mounted.folder, &store.server, &["--flush", "m"]).output();
    assert_eq!(flushed.unwrap().status.code(), Some(1));
    assert_eq!((fs::read(mounted.path("other/left")).unwrap(), unstored()), (b"left".to_vec(), 1));
    fs::remove_file(mounted.path("other/left")).unwrap();
    assert_eq!(unstored(), 0);
    let gone = fs::metadata(mounted.path("other")).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert!(mounted.end().success());
}

/// Who may not ask for the names of buckets finds them by their names.
#[test]
fn buckets_need_not_be_listed() {
    if !can_mount() {
        return;
    }
    let store = service();
    store.refuse(|asked| asked.target == "/");
    let mounted = Mounted::all_buckets(Folder::new(), &store.server, &[]);
    assert_eq!(fs::read(mounted.path("bucket/d/a")).unwrap(), b"in the first");
    let mut file = File::create(mounted.path("other/new")).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    assert_eq!(store.server.object("/other/new").unwrap(), b"new");
    let listed = fs::read_dir(mounted.path("")).map(drop);
    assert_eq!(listed.unwrap_err().kind(), ErrorKind::PermissionDenied);
}

/// Wrong keys are told at once.
#[test]
fn wrong_keys_mount_no_buckets() {
    if !can_mount() {
        return;
    }
    let store = service();
    store.rule(|_| Answer::Refused(403, "InvalidAccessKeyId"));
    let folder = Folder::new();
    fs::create_dir(folder.path("m")).unwrap();
    let mounted = Mounted::verb(&folder, &store.server, &["s3://", "m"]).output().unwrap();
    let said = String::from_utf8(mounted.stderr).unwrap();
    assert!(!mounted.status.success() && said.contains("AWS_ACCESS_KEY_ID"), "{said}");
}
