//! Each row of the table of calls in `docs/mount.md`, in its order.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    Access, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, XattrFlags,
    access, fallocate, fcntl_lock, getxattr, mknodat, removexattr, renameat_with, setxattr,
    statvfs,
};
use rustix::io::Errno;
use thalweg_testing::http_server::Answer;

use super::mounted::{Mounted, can_mount, left_in, names, until};
use super::store::{Store, append, is_copy};
use crate::common::Folder;

/// What a row says, on a store without objects.
type Row = (&'static str, fn(&Store));

const ROWS: [Row; 31] = [
    ("`stat`, `access`", stat),
    ("`readdir`", readdir),
    ("`open` for reading", open_for_reading),
    ("`open` for writing, of an object", open_for_writing),
    ("`open` for writing while the kernel reads the cached copy itself", open_passed_through),
    ("`create`, `O_EXCL`, `mknod` of a file", create),
    ("`read`, `pread`, `mmap`, `O_DIRECT`", read),
    ("`write`, `pwrite`, `O_APPEND`, `ftruncate`, writable `mmap`", write),
    ("`truncate` by path", truncate),
    ("`fallocate`", allocate),
    ("`close`, `fsync`, `fdatasync`", close),
    ("`rename` of a file or a link", rename_file),
    ("`rename` of a folder", rename_folder),
    ("`unlink`", unlink),
    ("`mkdir`", mkdir),
    ("`rmdir`", rmdir),
    ("a folder whose last file is removed", emptied_folder),
    ("`symlink`, `readlink`", links),
    ("`link`", hard_link),
    ("`chmod`, `chown`, `utimens`, `setxattr` (`user.*`), `removexattr`", attributes),
    ("`mknod` of a device, a socket or a pipe", mknod),
    ("`flock`, `fcntl` locks", locks),
    ("names of over 255 bytes, keys of over 1024", long_names),
    ("`read` after the object was replaced or removed", read_replaced),
    ("`open` after the object was replaced", open_replaced),
    ("`write` to a file that is open, after its object was replaced or removed", write_replaced),
    ("`read` while the store does not answer", no_answer),
    ("`getxattr`", own_attributes),
    ("`statfs`", statfs),
    ("`umount` while files are open", umount),
    ("anything that changes, with `--read-only`", read_only),
];

#[test]
fn each_call_does_what_its_row_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mount.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("## What each call does").unwrap();
    let rows = table.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
    let rows: Vec<&str> = rows.map(|row| row.split(" | ").next().unwrap()).collect();
    let tested: Vec<String> = ROWS.iter().map(|(row, _)| format!("| {row}")).collect();
    assert_eq!(rows, tested);
    if !can_mount() {
        return;
    }
    for (row, test) in ROWS {
        let tested = std::panic::catch_unwind(|| test(&Store::new()));
        assert!(tested.is_ok(), "{row}");
    }
}

fn mount(store: &Store) -> Mounted {
    Mounted::writing(&store.server, &[])
}

fn code<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

fn is(error: Errno) -> Option<i32> {
    Some(error.raw_os_error())
}

/// Requests since the last ones were forgotten.
fn requests(store: &Store) -> usize {
    store.server.asked().len()
}

fn stat(store: &Store) {
    store.put("d/a", "four");
    let args = ["--umask", "027", "--uid", "7", "--gid", "8"];
    let mounted = Mounted::writing(&store.server, &args);
    let (file, folder) = (fs::metadata(mounted.path("d/a")), fs::metadata(mounted.path("d")));
    let (file, folder) = (file.unwrap(), folder.unwrap());
    assert_eq!((file.len(), file.mode() & 0o777, file.uid(), file.gid()), (4, 0o640, 7, 8));
    assert_eq!((folder.is_dir(), folder.mode() & 0o777, folder.uid()), (true, 0o750, 7));
    assert!(file.mtime() > 1_700_000_000);
    access(mounted.path("d/a"), Access::READ_OK).unwrap();
    assert!(access(mounted.path("d/b"), Access::EXISTS).is_err());
}

fn readdir(store: &Store) {
    for key in ["b", "a", "c/x", "c/y"] {
        store.put(key, key);
    }
    store.server.set_page(2);
    let mounted = mount(store);
    store.server.forget();
    assert_eq!(names(&mounted.path("")), ["a", "b", "c"]);
    let listed = requests(store);
    assert_eq!(listed, 2, "two names in each part of the list");
    for entry in fs::read_dir(mounted.path("")).unwrap() {
        entry.unwrap().metadata().unwrap();
    }
    assert_eq!(requests(store), listed);
}

fn open_for_reading(store: &Store) {
    store.put("a", "four");
    let mounted = mount(store);
    fs::metadata(mounted.path("a")).unwrap();
    store.server.forget();
    let mut file = File::open(mounted.path("a")).unwrap();
    assert_eq!(requests(store), 0);
    file.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(requests(store), 1);
}

fn open_for_writing(store: &Store) {
    store.put("a", "first second");
    let mounted = mount(store);
    fs::metadata(mounted.path("a")).unwrap();
    store.server.forget();
    let file = File::options().write(true).open(mounted.path("a")).unwrap();
    let asked: Vec<String> = store.server.asked().into_iter().map(|asked| asked.method).collect();
    assert_eq!(asked, ["HEAD"]);
    file.write_all_at(b"FIRST", 0).unwrap();
    drop(file);
    assert_eq!(store.object("a").unwrap(), "FIRST second");
}

fn open_passed_through(store: &Store) {
    store.put("a", "four");
    let folder = Folder::new();
    let cache = format!("64MiB,folder={}", folder.path("cache").display());
    let staging = super::mounted::staging(&folder);
    let args = ["--cache", &*cache, "--staging", &*staging];
    let mounted = Mounted::in_folder(folder, &store.server, &args);
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"four");
    let file = File::open(mounted.path("a")).unwrap();
    let status = mounted.status();
    // Only root has that, on kernels that can.
    if status["open_files_passed_through"] == 1 {
        let opened = File::options().write(true).open(mounted.path("a"));
        assert_eq!(code(opened), is(Errno::TXTBSY));
    }
    drop(file);
    until(|| mounted.status()["open_files"] == 0);
    drop(append(&mounted.path("a"), " more"));
    assert_eq!(store.object("a").unwrap(), "four more");
}

fn create(store: &Store) {
    let mounted = mount(store);
    let file = File::create_new(mounted.path("a")).unwrap();
    assert_eq!(File::create_new(mounted.path("a")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(file);
    until(|| store.object("a").is_some());
    mknodat(CWD, mounted.path("b"), FileType::RegularFile, Mode::RUSR, 0).unwrap();
    until(|| store.object("b").is_some());
    // Two machines make one file.
    let other = mount(store);
    let files = [&mounted, &other].map(|mounted| File::create_new(mounted.path("c")).unwrap());
    files[0].write_all_at(b"first", 0).unwrap();
    files[0].sync_all().unwrap();
    files[1].write_all_at(b"second", 0).unwrap();
    assert_eq!(code(files[1].sync_all()), is(Errno::STALE));
    assert_eq!(store.object("c").unwrap(), "first");
}

#[allow(unsafe_code)]
fn read(store: &Store) {
    let content = "0123456789".repeat(1000);
    store.put("a", &content);
    let mounted = mount(store);
    let mut file = File::open(mounted.path("a")).unwrap();
    file.seek(SeekFrom::Start(5)).unwrap();
    let mut bytes = [0; 3];
    file.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"567");
    file.read_exact_at(&mut bytes, 9_997).unwrap();
    assert_eq!(&bytes, b"789");
    // SAFETY: nobody changes the file meanwhile.
    let mapped = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    assert_eq!(&*mapped, content.as_bytes());
    let flags = OFlags::DIRECT.bits() as i32;
    let mut direct =
        File::options().read(true).custom_flags(flags).open(mounted.path("a")).unwrap();
    let mut read = Vec::new();
    direct.read_to_end(&mut read).unwrap();
    assert_eq!(read, content.as_bytes());
    // What was written here, before the store has it.
    let file = append(&mounted.path("a"), "end");
    assert!(fs::read_to_string(mounted.path("a")).unwrap() == content.clone() + "end");
    drop(file);
}

#[allow(unsafe_code)]
fn write(store: &Store) {
    let mounted = mount(store);
    let file = File::create_new(mounted.path("a")).unwrap();
    drop(file);
    let file = File::options().read(true).write(true).open(mounted.path("a")).unwrap();
    file.write_all_at(b"middle", 5).unwrap();
    file.write_all_at(b"start", 0).unwrap();
    file.set_len(13).unwrap();
    {
        // SAFETY: nobody else changes the file meanwhile.
        let mut mapped = unsafe { memmap2::MmapMut::map_mut(&file) }.unwrap();
        mapped[11..].copy_from_slice(b"!?");
        mapped.flush().unwrap();
    }
    drop(file);
    drop(append(&mounted.path("a"), " end"));
    assert_eq!(store.object("a").unwrap(), "startmiddle!? end");
    let file = File::create(mounted.path("huge")).unwrap();
    assert_eq!(code(file.set_len(516 << 30)), is(Errno::FBIG));
    file.set_len(514 << 30).unwrap();
    file.set_len(0).unwrap();
}

fn truncate(store: &Store) {
    store.put("a", "0123456789");
    let mounted = mount(store);
    File::options().write(true).open(mounted.path("a")).unwrap().set_len(4).unwrap();
    assert_eq!(store.object("a").unwrap(), "0123");
    File::options().write(true).truncate(true).open(mounted.path("a")).unwrap();
    until(|| store.object("a").is_some_and(|content| content.is_empty()));
}

fn allocate(store: &Store) {
    let mounted = mount(store);
    let file = File::create(mounted.path("a")).unwrap();
    assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, 100), Err(Errno::OPNOTSUPP));
}

fn close(store: &Store) {
    let mounted = mount(store);
    let mut file = File::create(mounted.path("a")).unwrap();
    for (number, sync) in [File::sync_all, File::sync_data].into_iter().enumerate() {
        file.write_all(b"x").unwrap();
        sync(&file).unwrap();
        assert_eq!(store.object("a").unwrap().len(), number + 1);
    }
    file.write_all(b"x").unwrap();
    drop(file);
    assert_eq!(store.object("a").unwrap(), "xxx");
    fs::create_dir(mounted.path("d")).unwrap();
    File::open(mounted.path("d")).unwrap().sync_all().unwrap();
    drop(mounted);
    let mounted = Mounted::writing(&store.server, &["--close", "staged"]);
    store.refuse(|asked| asked.method == "PUT");
    fs::write(mounted.path("b"), "staged").unwrap();
    assert_eq!(store.object("b"), None);
    assert!(File::options().write(true).open(mounted.path("b")).is_err(), "it was promised");
    store.mend();
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.object("b").unwrap(), "staged");
}

fn rename_file(store: &Store) {
    for key in ["a", "b", "c"] {
        store.put(key, key);
    }
    let mounted = mount(store);
    let open = File::open(mounted.path("b")).unwrap();
    fs::rename(mounted.path("a"), mounted.path("b")).unwrap();
    assert!(store.server.asked().iter().any(is_copy));
    assert_eq!((store.object("a"), store.object("b").unwrap()), (None, "a".into()));
    drop(open);
    // Who has it open goes on.
    let mut file = append(&mounted.path("b"), "1");
    fs::rename(mounted.path("b"), mounted.path("d")).unwrap();
    file.write_all(b"2").unwrap();
    drop(file);
    assert_eq!((store.object("b"), store.object("d").unwrap()), (None, "a12".into()));
    let rename = |flags| renameat_with(CWD, mounted.path("c"), CWD, mounted.path("d"), flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(rename(RenameFlags::EXCHANGE), Err(Errno::INVAL));
    store.refuse(is_copy);
    assert_eq!(rename(RenameFlags::empty()), Err(Errno::ACCESS));
    assert_eq!(
        (store.object("c").unwrap(), store.object("d").unwrap()),
        ("c".into(), "a12".into())
    );
    store.mend();
    symlink("d", mounted.path("link")).unwrap();
    fs::rename(mounted.path("link"), mounted.path("link2")).unwrap();
    assert_eq!(fs::read_link(mounted.path("link2")).unwrap(), Path::new("d"));
}

fn rename_folder(store: &Store) {
    for key in ["d/a", "d/e/b", "f/c"] {
        store.put(key, key);
    }
    let mounted = mount(store);
    fs::rename(mounted.path("d"), mounted.path("g")).unwrap();
    assert_eq!(store.object("g/e/b").unwrap(), "d/e/b");
    assert_eq!(store.server.objects().len(), 3);
    let renamed = fs::rename(mounted.path("g"), mounted.path("f"));
    assert_eq!(renamed.unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    store.refuse(is_copy);
    assert!(fs::rename(mounted.path("g"), mounted.path("h")).is_err());
    store.mend();
    assert_eq!(names(&mounted.path("")), ["f", "g"]);
    assert_eq!(store.server.objects().len(), 3);
}

fn unlink(store: &Store) {
    store.put("a", &"x".repeat(3 << 20));
    let mounted = mount(store);
    let file = File::open(mounted.path("a")).unwrap();
    let mut written = File::create_new(mounted.path("b")).unwrap();
    written.write_all(b"mine").unwrap();
    for name in ["a", "b"] {
        fs::remove_file(mounted.path(name)).unwrap();
    }
    assert!(store.server.objects().is_empty() && names(&mounted.path("")).is_empty());
    assert_eq!(file.read_at(&mut [0; 10], 0).unwrap_err().kind(), ErrorKind::NotFound);
    written.write_all(b" still").unwrap();
    drop(written);
    assert!(store.server.objects().is_empty());
}

fn mkdir(store: &Store) {
    let mounted = mount(store);
    fs::create_dir_all(mounted.path("d/e")).unwrap();
    assert_eq!(
        (store.object("d/").unwrap(), store.object("d/e/").unwrap()),
        ("".into(), "".into())
    );
    assert_eq!(fs::create_dir(mounted.path("d")).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

fn rmdir(store: &Store) {
    store.put("d/a", "a");
    let mounted = mount(store);
    let removed = fs::remove_dir(mounted.path("d"));
    assert_eq!(removed.unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    fs::remove_file(mounted.path("d/a")).unwrap();
    fs::remove_dir(mounted.path("d")).unwrap();
    assert!(!mounted.path("d").exists() && store.server.objects().is_empty());
}

fn emptied_folder(store: &Store) {
    store.put("d/a", "a");
    let mut mounted = mount(store);
    fs::remove_file(mounted.path("d/a")).unwrap();
    assert!(mounted.path("d").is_dir() && store.server.objects().is_empty());
    mounted.end();
    let mounted = mounted.again(&store.server, &[]);
    assert!(!mounted.path("d").exists());
}

fn links(store: &Store) {
    let mounted = mount(store);
    symlink("../some/where", mounted.path("l")).unwrap();
    assert_eq!(store.object("l.rclonelink").unwrap(), "../some/where");
    assert_eq!(fs::read_link(mounted.path("l")).unwrap(), Path::new("../some/where"));
    assert_eq!(code(File::create(mounted.path("x.rclonelink"))), is(Errno::INVAL));
}

fn hard_link(store: &Store) {
    store.put("a", "a");
    let mounted = mount(store);
    assert_eq!(code(fs::hard_link(mounted.path("a"), mounted.path("b"))), is(Errno::MLINK));
}

fn attributes(store: &Store) {
    store.put("a", "a");
    store.put("d/a", "a");
    let mounted = mount(store);
    let path = mounted.path("a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    setxattr(&path, "user.x", b"value", XattrFlags::empty()).unwrap();
    let metadata = store.server.metadata("/bucket/a");
    for name in ["mode", "mtime", "ctime", "xattr"] {
        assert!(metadata.contains_key(&format!("x-amz-meta-{name}")), "{name}");
    }
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.mode() & 0o777, found.modified().unwrap()), (0o600, time));
    removexattr(&path, "user.x").unwrap();
    assert_eq!(getxattr(&path, "user.x", &mut [0; 9]), Err(Errno::NODATA));
    let large = setxattr(&path, "user.y", &[7; 3000], XattrFlags::empty());
    assert_eq!(large, Err(Errno::NOSPC));
    store.refuse(is_copy);
    assert!(fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).is_err());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    store.mend();
    // A folder has a mark from then on.
    assert_eq!(store.object("d/"), None);
    fs::set_permissions(mounted.path("d"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(store.server.metadata("/bucket/d/").contains_key("x-amz-meta-mode"));
    // Other bytes take the bit `setuid`.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    drop(append(&path, "more"));
    let is_root = rustix::process::getuid().is_root();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, if is_root { 0o4755 } else { 0o755 });
}

fn mknod(store: &Store) {
    let mounted = mount(store);
    for kind in [FileType::Fifo, FileType::Socket] {
        let made = mknodat(CWD, mounted.path("a"), kind, Mode::RUSR, 0);
        assert_eq!(made, Err(Errno::PERM));
    }
}

fn locks(store: &Store) {
    store.put("a", "a");
    let mounted = mount(store);
    let open = || File::options().read(true).write(true).open(mounted.path("a")).unwrap();
    let (one, other) = (open(), open());
    one.lock().unwrap();
    assert!(other.try_lock().is_err());
    one.unlock().unwrap();
    other.try_lock().unwrap();
    fcntl_lock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
}

fn long_names(store: &Store) {
    let mounted = mount(store);
    let too_long = is(Errno::NAMETOOLONG);
    assert_eq!(code(File::create(mounted.path(&"x".repeat(256)))), too_long);
    let mut folder = mounted.path("");
    for _ in 0..5 {
        folder.push("y".repeat(200));
        fs::create_dir(&folder).unwrap();
    }
    File::create(folder.join("z".repeat(10))).unwrap();
    assert_eq!(code(File::create(folder.join("z".repeat(20)))), too_long);
}

fn read_replaced(store: &Store) {
    store.put("a", "first");
    store.put("b", "first");
    let mounted = mount(store);
    let [a, b] = ["a", "b"].map(|name| File::open(mounted.path(name)).unwrap());
    store.put("a", "other");
    store.server.remove("/bucket/b");
    assert_eq!(code(a.read_at(&mut [0; 5], 0)), is(Errno::STALE));
    assert_eq!(code(b.read_at(&mut [0; 5], 0)), is(Errno::NOENT));
}

fn open_replaced(store: &Store) {
    store.put("a", "first");
    let mounted = Mounted::writing(&store.server, &["--ttl", "0.2"]);
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"first");
    store.put("a", "second");
    until(|| fs::read(mounted.path("a")).is_ok_and(|found| found == b"second"));
}

fn write_replaced(store: &Store) {
    store.put("a", "old");
    store.put("b", "old");
    let mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
    let clean = append(&mounted.path("a"), " and new");
    clean.sync_all().unwrap();
    store.put("a", "theirs");
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"theirs");
    assert_eq!(code(clean.write_at(b"x", 0)), is(Errno::STALE));
    let dirty = append(&mounted.path("b"), " and new");
    store.put("b", "theirs");
    assert_eq!(code(dirty.sync_all()), is(Errno::STALE));
    assert_eq!(fs::metadata(mounted.path("b")).unwrap().len(), 11);
    drop((clean, dirty));
    assert_eq!(store.object("b").unwrap(), "theirs");
}

fn no_answer(store: &Store) {
    store.put("a", "a");
    let mounted = Mounted::writing(&store.server, &["--timeout", "1"]);
    let file = File::open(mounted.path("a")).unwrap();
    store.rule(|_| Answer::Never);
    let error = file.read_at(&mut [0; 1], 0).unwrap_err();
    assert!([is(Errno::TIMEDOUT), is(Errno::IO)].contains(&error.raw_os_error()), "{error}");
    store.mend();
}

fn own_attributes(store: &Store) {
    store.put("d/a", "a");
    let mounted = mount(store);
    let text = |name: &str| {
        let mut value = [0; 100];
        let len = getxattr(mounted.path("d/a"), name, &mut value).unwrap();
        String::from_utf8(value[..len].to_vec()).unwrap()
    };
    assert_eq!(text("user.thalweg.key"), "d/a");
    assert!(text("user.thalweg.etag").starts_with('"'));
}

fn statfs(store: &Store) {
    let mounted = mount(store);
    let found = statvfs(mounted.path("")).unwrap();
    assert_eq!(found.f_bavail * found.f_frsize, 1 << 50);
}

fn umount(store: &Store) {
    let mut mounted = mount(store);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"one").unwrap();
    let umount = |args: &[&str]| {
        let mut command = std::process::Command::new("umount");
        command.args(args).arg(mounted.folder.path("m")).output().unwrap().status.success()
    };
    // Who is not root has `fusermount3`, which does the same.
    if rustix::process::getuid().is_root() {
        assert!(!umount(&[]), "it is busy");
        assert!(umount(&["-l"]));
    } else {
        mounted.signal();
    }
    until(|| names(&mounted.path("")).is_empty());
    file.write_all(b" two").unwrap();
    drop(file);
    assert!(mounted.daemon.wait().unwrap().success());
    assert_eq!(store.object("a").unwrap(), "one two");
    assert!(left_in(&mounted.folder.path("staging")).is_empty());
}

fn read_only(store: &Store) {
    store.put("d/a", "a");
    let folder = Folder::new();
    let mounted = Mounted::in_folder(folder, &store.server, &["--read-only"]);
    let read_only = is(Errno::ROFS);
    let path = mounted.path("d/a");
    assert_eq!(code(File::create(mounted.path("b"))), read_only);
    assert_eq!(code(File::options().append(true).open(&path)), read_only);
    assert_eq!(code(fs::remove_file(&path)), read_only);
    assert_eq!(code(fs::rename(&path, mounted.path("b"))), read_only);
    assert_eq!(code(fs::create_dir(mounted.path("e"))), read_only);
    assert_eq!(code(fs::remove_dir(mounted.path("d"))), read_only);
    assert_eq!(code(symlink("a", mounted.path("l"))), read_only);
    assert_eq!(code(fs::set_permissions(&path, fs::Permissions::from_mode(0o600))), read_only);
    assert_eq!(setxattr(&path, "user.x", b"", XattrFlags::empty()), Err(Errno::ROFS));
    assert_eq!(store.object("d/a").unwrap(), "a");
}
