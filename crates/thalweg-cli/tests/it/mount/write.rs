//! Writing files that become objects.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use thalweg_testing::http_server::{Answer, ObjectServer};

use super::mounted::{MIB, Mounted, bytes, can_mount, empty, left_in, names, until};
use super::store::{Store, is_put};
use crate::common::Folder;

#[test]
fn files_are_objects_once_they_are_closed() {
    if !can_mount() {
        return;
    }
    let server = empty();
    server.put("/bucket/old", bytes(1, 1000));
    let mounted = Mounted::writing(&server, &[]);
    for (name, len) in [("empty", 0), ("small", 1000), ("large", 30 * MIB + 5)] {
        let content = bytes(len as u64, len);
        fs::write(mounted.path(name), &content).unwrap();
        if len > 0 {
            assert!(server.object(&format!("/bucket/{name}")).unwrap() == content, "{name}");
        }
        assert!(fs::read(mounted.path(name)).unwrap() == content, "{name}");
    }
    // Nobody waits for one in which nothing was written.
    until(|| server.object("/bucket/empty").is_some());
    assert_eq!(server.unfinished(), 0);
    assert_eq!(names(&mounted.path("")), ["empty", "large", "old", "small"]);
    // Replaced, appended to, written in the middle, cut, and made longer.
    fs::write(mounted.path("small"), b"other").unwrap();
    assert_eq!(server.object("/bucket/small").unwrap(), b"other");
    let open =
        |name: &str| File::options().read(true).write(true).open(mounted.path(name)).unwrap();
    let mut file = File::options().append(true).open(mounted.path("old")).unwrap();
    file.write_all(b"more").unwrap();
    drop(file);
    let mut expected = bytes(1, 1000);
    expected.extend(b"more");
    assert_eq!(server.object("/bucket/old").unwrap(), expected);
    let mut expected = bytes(30 * MIB as u64 + 5, 30 * MIB + 5);
    let file = open("large");
    file.write_all_at(b"middle", 17_000_000).unwrap();
    expected[17_000_000..][..6].copy_from_slice(b"middle");
    file.set_len(25_000_000).unwrap();
    file.set_len(26_000_000).unwrap();
    expected.truncate(25_000_000);
    expected.resize(26_000_000, 0);
    let mut read = vec![0; expected.len()];
    file.read_exact_at(&mut read, 0).unwrap();
    assert!(read == expected);
    drop(file);
    assert!(server.object("/bucket/large").unwrap() == expected);
    // By its path.
    File::options().write(true).open(mounted.path("old")).unwrap().set_len(3).unwrap();
    assert_eq!(server.object("/bucket/old").unwrap(), bytes(1, 3));
    assert_eq!(server.unfinished(), 0);
    let status = mounted.status();
    assert_eq!((&status["unstored_files"], &status["errors"]), (&0.into(), &0.into()), "{status}");
}

#[test]
fn names_change() {
    if !can_mount() {
        return;
    }
    let server = empty();
    for key in ["a", "b", "d/x", "d/y/z"] {
        server.put(&format!("/bucket/{key}"), key.into());
    }
    let mounted = Mounted::writing(&server, &[]);
    let path = |name: &str| mounted.path(name);
    let object = |key: &str| server.object(&format!("/bucket/{key}"));
    fs::rename(path("a"), path("c")).unwrap();
    assert_eq!((object("a"), object("c")), (None, Some(b"a".to_vec())));
    assert_eq!(fs::read(path("c")).unwrap(), b"a");
    // Over an existing one, while somebody reads it.
    let mut open = File::open(path("c")).unwrap();
    fs::rename(path("c"), path("b")).unwrap();
    assert_eq!((object("c"), object("b")), (None, Some(b"a".to_vec())));
    let mut read = Vec::new();
    open.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"a", "who has it open goes on");
    // A file that is being written.
    let mut file = File::create(path("new")).unwrap();
    file.write_all(b"one ").unwrap();
    fs::rename(path("new"), path("newer")).unwrap();
    file.write_all(b"two").unwrap();
    drop(file);
    assert_eq!((object("new"), object("newer")), (None, Some(b"one two".to_vec())));
    // A folder, with a file that is being written in it.
    let mut file = File::create(path("d/y/w")).unwrap();
    file.write_all(b"w").unwrap();
    fs::create_dir(path("e")).unwrap();
    assert!(object("e/").is_some());
    fs::rename(path("d"), path("e/f")).unwrap();
    drop(file);
    assert_eq!((object("d/x"), object("d/y/z")), (None, None));
    for (key, content) in [("e/f/x", "d/x"), ("e/f/y/z", "d/y/z"), ("e/f/y/w", "w")] {
        assert_eq!(object(key), Some(content.into()), "{key}");
        assert_eq!(fs::read(path(key)).unwrap(), content.as_bytes());
    }
    assert_eq!(names(&path("")), ["b", "e", "newer"]);
    let error = |done: std::io::Result<()>| done.unwrap_err().raw_os_error().unwrap();
    let code = |errno: rustix::io::Errno| errno.raw_os_error();
    use rustix::io::Errno;
    assert_eq!(error(fs::rename(path("b"), path("e"))), code(Errno::ISDIR));
    assert_eq!(error(fs::rename(path("e"), path("b"))), code(Errno::NOTDIR));
    assert_eq!(error(fs::remove_dir(path("e"))), code(Errno::NOTEMPTY));
    assert_eq!(error(fs::hard_link(path("b"), path("h"))), code(Errno::MLINK));
    assert_eq!(error(fs::create_dir(path("b"))), code(Errno::EXIST));
    assert_eq!(error(fs::remove_file(path("none"))), code(Errno::NOENT));
    assert_eq!(error(fs::write(path("x.rclonelink"), "")), code(Errno::INVAL));
    assert_eq!(error(fs::write(path(&"x".repeat(256)), "")), code(Errno::NAMETOOLONG));
    fs::remove_dir_all(path("e")).unwrap();
    fs::remove_file(path("b")).unwrap();
    fs::remove_file(path("newer")).unwrap();
    assert_eq!(names(&path("")), [""; 0]);
    let left = server.objects();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn attributes_are_metadata_of_objects() {
    use std::os::unix::fs::PermissionsExt;
    if !can_mount() {
        return;
    }
    let server = empty();
    server.put("/bucket/old", bytes(1, 1000));
    let mut mounted = Mounted::writing(&server, &["--attributes"]);
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::new(1_000_000_007, 5);
    for name in ["old", "new", "large"] {
        let path = mounted.path(name);
        let set = |file: &File| {
            file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
            file.set_modified(time).unwrap();
            rustix::fs::fsetxattr(file, "user.sample", b"\0x", rustix::fs::XattrFlags::empty())
                .unwrap();
        };
        match name {
            "old" => set(&File::open(&path).unwrap()),
            // Before and after it was closed.
            _ => {
                let mut file = File::create(&path).unwrap();
                file.write_all(&bytes(3, if name == "new" { 10 } else { 20 * MIB })).unwrap();
                set(&file);
            }
        }
    }
    std::os::unix::fs::symlink("some/where", mounted.path("link")).unwrap();
    assert_eq!(server.object("/bucket/link.rclonelink").unwrap(), b"some/where");
    for round in 0..2 {
        for name in ["old", "new", "large"] {
            let path = mounted.path(name);
            let meta = fs::metadata(&path).unwrap();
            assert_eq!(meta.mode() & 0o7777, 0o640, "{name} {round}");
            assert_eq!(meta.modified().unwrap(), time, "{name} {round}");
            let mut value = [0; 10];
            let len = rustix::fs::getxattr(&path, "user.sample", &mut value).unwrap();
            assert_eq!(&value[..len], b"\0x", "{name} {round}");
        }
        let link = mounted.path("link");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("some/where"));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(&mounted.path("")), ["large", "link", "new", "old"]);
        if round == 0 {
            assert!(mounted.end().success());
            mounted = mounted.again(&server, &["--attributes"]);
        }
    }
    fs::rename(mounted.path("link"), mounted.path("other")).unwrap();
    fs::remove_file(mounted.path("other")).unwrap();
    assert_eq!(names(&mounted.path("")), ["large", "new", "old"]);
    let long = rustix::fs::setxattr(
        mounted.path("new"),
        "user.long",
        &[7; 3000],
        rustix::fs::XattrFlags::empty(),
    );
    assert_eq!(long, Err(rustix::io::Errno::NOSPC));
    rustix::fs::removexattr(mounted.path("new"), "user.sample").unwrap();
    let none = rustix::fs::getxattr(mounted.path("new"), "user.sample", &mut [0; 10]);
    assert_eq!(none, Err(rustix::io::Errno::NODATA));
}

/// Folders and links have owners, permissions and times, too, in the metadata of their objects.
#[test]
fn folders_and_links_have_attributes() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    if !can_mount() || !rustix::process::geteuid().is_root() {
        return;
    }
    let server = empty();
    let mut mounted = Mounted::writing(&server, &["--attributes"]);
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::new(1_000_000_007, 5);
    fs::create_dir(mounted.path("old")).unwrap();
    fs::create_dir(mounted.path("old/sub")).unwrap();
    fs::write(mounted.path("old/file"), "x").unwrap();
    symlink("file", mounted.path("old/link")).unwrap();
    for name in ["old/sub", "old/file", "old/link"] {
        lchown(mounted.path(name), Some(1234), Some(567)).unwrap();
    }
    for name in ["old", "old/sub", "old/file"] {
        let mode = fs::Permissions::from_mode(0o2710);
        fs::set_permissions(mounted.path(name), mode).unwrap();
    }
    // A folder may hand its group down to what is made in it.
    fs::create_dir(mounted.path("old/sub/made")).unwrap();
    let made = fs::metadata(mounted.path("old/sub/made")).unwrap();
    assert_eq!((made.gid(), made.mode() & 0o7777), (567, 0o2755));
    // Names that change in a folder change it.
    let since = std::time::SystemTime::now() - Duration::from_secs(600);
    assert!(fs::metadata(mounted.path("old/sub")).unwrap().modified().unwrap() > since);
    for name in ["old", "old/sub", "old/file"] {
        File::open(mounted.path(name)).unwrap().set_modified(time).unwrap();
        assert!(fs::metadata(mounted.path(name)).unwrap().ctime() > 1_600_000_000);
    }
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(mounted.path("old/sub"), "user.sample", b"x", none).unwrap();
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
        last_modification: rustix::fs::Timespec { tv_sec: 7, tv_nsec: 5 },
    };
    let nofollow = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::utimensat(rustix::fs::CWD, mounted.path("old/link"), &times, nofollow).unwrap();
    assert_eq!(server.metadata("/bucket/old/sub/")["x-amz-meta-mode"], "17864");
    fs::rename(mounted.path("old"), mounted.path("new")).unwrap();
    for round in 0..2 {
        for name in ["new", "new/sub", "new/file", "new/link"] {
            let meta = fs::symlink_metadata(mounted.path(name)).unwrap();
            let owners = if name == "new" { (0, 0) } else { (1234, 567) };
            assert_eq!((meta.uid(), meta.gid()), owners, "{name} {round}");
            if name == "new/link" {
                assert_eq!((meta.mtime(), meta.mtime_nsec()), (7, 5), "{round}");
                assert_eq!(fs::read_link(mounted.path(name)).unwrap(), Path::new("file"));
            } else {
                assert_eq!(meta.mode() & 0o7777, 0o2710, "{name} {round}");
                assert_eq!(meta.modified().unwrap(), time, "{name} {round}");
            }
        }
        let mut value = [0; 10];
        let len = rustix::fs::getxattr(mounted.path("new/sub"), "user.sample", &mut value).unwrap();
        assert_eq!(&value[..len], b"x");
        if round == 0 {
            assert!(mounted.end().success());
            mounted = mounted.again(&server, &["--attributes"]);
        }
    }
    // Another owner, and other bytes, take the permission to run as the owner.
    let path = mounted.path("new/file");
    for change in [0, 1] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        match change {
            0 => lchown(&path, Some(0), None).unwrap(),
            _ => File::options().write(true).open(&path).unwrap().set_len(0).unwrap(),
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
    }
    // A folder that is made again has none of them.
    fs::remove_dir(mounted.path("new/sub/made")).unwrap();
    fs::create_dir(mounted.path("new/made")).unwrap();
    fs::remove_dir(mounted.path("new/made")).unwrap();
    assert!(server.objects().iter().all(|object| !object.contains("made")));
}

#[test]
fn staged_files_reach_the_store_later() {
    if !can_mount() {
        return;
    }
    let is_away = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let server = {
        let is_away = is_away.clone();
        ObjectServer::start([], move |asked| {
            let fails = is_away.load(std::sync::atomic::Ordering::SeqCst)
                && !matches!(&*asked.method, "GET" | "HEAD");
            if fails { Answer::Refused(403, "AccessDenied") } else { Answer::Right }
        })
    };
    let mut mounted = Mounted::writing(&server, &["--close", "staged"]);
    fs::write(mounted.path("a"), b"one").unwrap();
    fs::write(mounted.path("b"), bytes(4, 20 * MIB)).unwrap();
    let mut open = File::create(mounted.path("open")).unwrap();
    open.write_all(b"half").unwrap();
    assert!(server.objects().is_empty());
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"one");
    // fsync waits for the store, and says that it refuses.
    assert!(open.sync_all().is_err());
    let said = mounted.folder.fails(1, &["mount", "--flush", "m"]);
    assert!(said.contains("some files could not be stored"), "{said}");
    for key in ["a", "b", "open"] {
        assert!(said.contains(&format!("s3://bucket/{key}: ")), "{said}");
    }
    let said = Mounted::command(&mounted.folder, &server, &[]).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("a bucket is mounted here already"), "{said}");
    let said = mounted.folder.fails(1, &["mount", "--flush", "."]);
    assert!(said.contains("nothing is mounted here by thalweg"), "{said}");
    assert_eq!(mounted.status()["unstored_files"], 3);
    mounted.kill();
    drop(open);
    is_away.store(false, std::sync::atomic::Ordering::SeqCst);
    let mut mounted = mounted.again(&server, &["--close", "staged"]);
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"one");
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(server.object("/bucket/a").unwrap(), b"one");
    assert!(server.object("/bucket/b").unwrap() == bytes(4, 20 * MIB));
    assert_eq!(server.object("/bucket/open"), None, "it was never closed");
    assert_eq!(server.unfinished(), 0);
    assert_eq!(mounted.status()["unstored_files"], 0);
    let unfinished = unfinished(&mounted.folder.path("staging"));
    assert_eq!(unfinished.len(), 1, "{unfinished:?}");
    assert_eq!(fs::read(&unfinished[0]).unwrap(), b"half");
    assert!(mounted.end().success());
    assert_eq!(left_in(&mounted.folder.path("staging")), unfinished);
}

#[test]
fn open_files_outlive_a_signal() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let mut mounted = Mounted::writing(&server, &[]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"one ").unwrap();
    mounted.signal();
    until(|| names(&mounted.path("")).is_empty());
    // An impatient service manager changes nothing.
    mounted.signal();
    file.write_all(b"two").unwrap();
    file.sync_all().unwrap();
    assert_eq!(server.object("/bucket/a").unwrap(), b"one two");
    mounted.signal();
    assert!(mounted.daemon.try_wait().unwrap().is_none());
    file.write_all(b" three").unwrap();
    drop(file);
    assert!(mounted.daemon.wait().unwrap().success());
    assert_eq!(server.object("/bucket/a").unwrap(), b"one two three");
    assert!(left_in(&mounted.folder.path("staging")).is_empty());
}

#[test]
fn an_update_is_not_lost_without_a_word() {
    if !can_mount() {
        return;
    }
    let server = empty();
    server.put("/bucket/a", b"first".to_vec());
    let mounted = Mounted::writing(&server, &[]);
    let mut file = File::options().append(true).open(mounted.path("a")).unwrap();
    file.write_all(b" ours").unwrap();
    server.put("/bucket/a", b"theirs".to_vec());
    let stale = Some(rustix::io::Errno::STALE.raw_os_error());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), stale);
    drop(file);
    assert_eq!(server.object("/bucket/a").unwrap(), b"theirs");
    let mut file = File::create(mounted.path("new")).unwrap();
    file.write_all(b"ours").unwrap();
    server.put("/bucket/new", b"theirs".to_vec());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), stale);
    drop(file);
    assert_eq!(mounted.status()["unstored_failed"], 2);
    // What was written can be given another name.
    assert_eq!(fs::read(mounted.path("new")).unwrap(), b"ours");
    fs::rename(mounted.path("new"), mounted.path("ours")).unwrap();
    assert_eq!(server.object("/bucket/ours").unwrap(), b"ours");
    assert_eq!(server.object("/bucket/new").unwrap(), b"theirs");
    until(|| fs::read(mounted.path("new")).is_ok_and(|found| found == b"theirs"));
    // Or be given up, which leaves the other's.
    fs::remove_file(mounted.path("a")).unwrap();
    assert_eq!(server.object("/bucket/a").unwrap(), b"theirs");
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"theirs");
}

#[test]
fn names_stay_when_the_store_alone_has_the_bytes() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let mounted = Mounted::writing(&server, &[]);
    fs::create_dir(mounted.path("d")).unwrap();
    // More than stay here to be read.
    for number in 0..90 {
        let name = |number: usize| mounted.path(&format!("d/{number:02}"));
        fs::write(name(number), number.to_string()).unwrap();
        for last in number.saturating_sub(3)..=number {
            assert_eq!(fs::read(name(last)).unwrap(), last.to_string().as_bytes());
        }
        if number % 10 == 7 {
            fs::remove_file(name(number - 5)).unwrap();
        }
        let gone = (number + 3) / 10;
        assert_eq!(names(&mounted.path("d")).len(), number + 1 - gone, "{number}");
    }
    fs::remove_dir_all(mounted.path("d")).unwrap();
    assert!(server.objects().is_empty());
}

#[test]
fn a_large_file_goes_through_a_small_folder() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let mounted = Mounted::with_room(&server, "40MiB");
    let content = bytes(9, 150 * MIB + 77);
    let mut file = File::create(mounted.path("large")).unwrap();
    let mut written = 0;
    for piece in content.chunks(MIB) {
        file.write_all(piece).unwrap();
        written += piece.len();
        if written % (10 * MIB) == 0 {
            let staged = mounted.status()["staged_bytes"].as_u64().unwrap();
            assert!(staged <= 40 << 20, "{staged}");
        }
    }
    // What has been sent cannot be written again.
    let error = file.write_all_at(b"x", 0).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    drop(file);
    assert!(server.object("/bucket/large").unwrap() == content);
    assert!(fs::read(mounted.path("large")).unwrap() == content);
    // The order does not matter.
    let file = File::create(mounted.path("backwards")).unwrap();
    for (number, piece) in content.chunks(MIB).enumerate().rev() {
        file.write_all_at(piece, (number * MIB) as u64).unwrap();
    }
    drop(file);
    assert!(server.object("/bucket/backwards").unwrap() == content);
    // Parts that are not whole are not sent.
    let file = File::create(mounted.path("gaps")).unwrap();
    let written = (0..50).map(|at| file.write_all_at(&content[..MIB], 2 * at * MIB as u64));
    let error = written.filter_map(Result::err).next().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    drop(file);
}

/// The bytes of files that were never closed.
fn unfinished(staging: &Path) -> Vec<PathBuf> {
    let mut left = left_in(staging);
    left.retain(|path| path.components().any(|part| part.as_os_str() == "unfinished"));
    left
}

/// Options about owners and permissions hold for files that are made, too.
#[test]
fn made_files_have_the_owner_and_the_permissions_of_the_mount() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let args = ["--umask", "077", "--uid", "1234", "--gid", "4321"];
    let mounted = Mounted::writing(&store.server, &args);
    fs::write(mounted.path("a"), "a").unwrap();
    fs::create_dir(mounted.path("d")).unwrap();
    for (name, mode) in [("a", 0o600), ("d", 0o700)] {
        let found = fs::metadata(mounted.path(name)).unwrap();
        let found = (found.mode() & 0o777, found.uid(), found.gid());
        assert_eq!(found, (mode, 1234, 4321), "{name}");
    }
}

/// A folder has the time that it is given, though it be the one that its mark has.
#[test]
fn a_folder_is_given_the_same_time_twice() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let mounted = Mounted::writing(&server, &[]);
    fs::create_dir(mounted.path("d")).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    for name in ["a", "b"] {
        fs::write(mounted.path("d").join(name), name).unwrap();
        File::open(mounted.path("d")).unwrap().set_modified(time).unwrap();
        assert_eq!(fs::metadata(mounted.path("d")).unwrap().modified().unwrap(), time);
    }
}

/// `--flush` and `--unmount` take any folder of the mount; `--unmount` fails as long as something
/// could not be stored.
#[test]
fn a_mount_is_ended_once_all_is_stored() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let log = Folder::new();
    let log = log.path("log");
    let log = log.to_str().unwrap();
    let mut mounted = Mounted::writing(&store.server, &["--close", "staged", "--log", log]);
    let run = |args: [&str; 2]| {
        let output = Mounted::verb(&mounted.folder, &store.server, &args).output().unwrap();
        output.status.code()
    };
    fs::create_dir(mounted.path("d")).unwrap();
    store.refuse(is_put);
    fs::write(mounted.path("d/a"), "a").unwrap();
    assert_eq!(run(["--flush", "m/d"]), Some(1));
    assert_eq!(run(["--unmount", "m"]), Some(1));
    assert_eq!(mounted.status()["unstored_files"], 1);
    let lines = fs::read_to_string(log).unwrap();
    let process = format!("Z [{}] s3://bucket/d/a: ", mounted.daemon.id());
    assert!(lines.starts_with("20") && lines.contains(&process), "{lines}");
    store.mend();
    let open = File::open(mounted.path("d/a")).unwrap();
    assert_eq!(run(["--unmount", "m"]), Some(1));
    assert_eq!(store.object("d/a").unwrap(), "a");
    drop(open);
    until(|| run(["--unmount", "m"]) == Some(0));
    assert!(mounted.daemon.wait().unwrap().success());
    assert_eq!(names(&mounted.path("")), [""; 0]);
}
