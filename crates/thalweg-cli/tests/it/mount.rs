//! A bucket as files of a folder. Where the system mounts nothing, these tests say so and pass.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_io::random::hash01;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::{Folder, json};

const MIB: usize = 1 << 20;

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let word = |at: usize| (hash01(seed, 7, at as u64 / 4) * 4e9) as u32;
    (0..len).map(|at| word(at).to_le_bytes()[at % 4]).collect()
}

/// Whether this machine mounts file systems of programs.
#[allow(clippy::print_stderr)]
fn can_mount() -> bool {
    let can = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !can {
        eprintln!("SKIPPED: /dev/fuse cannot be opened, so nothing is mounted");
    }
    can
}

/// A mounted bucket, whose daemon runs in the foreground.
struct Mounted {
    folder: Folder,
    daemon: Child,
}

impl Mounted {
    fn command(folder: &Folder, server: &ObjectServer, args: &[&str]) -> Command {
        let mut command = folder.command(["mount", "s3://bucket", "m"]);
        command
            .args(args)
            .env("AWS_ENDPOINT_URL", server.url(""))
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-north-1")
            .env("XDG_STATE_HOME", folder.path("state"));
        command
    }

    #[allow(clippy::print_stderr)]
    fn in_folder(folder: Folder, server: &ObjectServer, args: &[&str]) -> Self {
        fs::create_dir_all(folder.path("m")).unwrap();
        let mut command = Self::command(&folder, server, args);
        let mut daemon = command.arg("--foreground").stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(daemon.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        // What a killed mount has left is told before.
        while !line.is_empty() && !line.contains("s3://bucket is mounted on m") {
            eprintln!("daemon: {}", line.trim_end());
            line.clear();
            said.read_line(&mut line).unwrap();
        }
        assert!(!line.is_empty(), "the daemon has ended");
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                eprintln!("daemon: {line}");
            }
        });
        Self { folder, daemon }
    }

    /// Mounts the bucket. What is staged is in a folder of the test.
    fn new(server: &ObjectServer, args: &[&str]) -> Self {
        Self::in_folder(Folder::new(), server, args)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path("m").join(name)
    }

    fn status(&self) -> serde_json::Value {
        json(&self.folder.ok(&["mount", "--status", "m"])).remove(0)
    }

    /// Sends the daemon SIGTERM.
    fn signal(&self) {
        let daemon = rustix::process::Pid::from_child(&self.daemon);
        rustix::process::kill_process(daemon, rustix::process::Signal::TERM).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if matches!(self.daemon.try_wait(), Ok(None)) {
            self.signal();
        }
        let _ = self.daemon.wait();
    }
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn objects_are_files() {
    if !can_mount() {
        return;
    }
    let objects = [
        ("/bucket/empty", 0),
        ("/bucket/small", 1000),
        ("/bucket/runs/1/a.bin", 5 * MIB + 77),
        ("/bucket/runs/1/b.bin", 70_000),
        ("/bucket/runs/2/", 0),
        // An object and a folder of one name; a part of a key without a letter; a step up.
        ("/bucket/runs", 30),
        ("/bucket/odd//x", 40),
        ("/bucket/odd/../y", 50),
        ("/bucket/odd/%~z", 60),
    ];
    let server =
        ObjectServer::start(objects.map(|(path, len)| (path, bytes(len as u64, len))), |_| {
            Answer::Right
        });
    server.set_page(2);
    let mounted = Mounted::new(&server, &["--read-only"]);
    assert_eq!(names(&mounted.path("")), ["%~runs", "empty", "odd", "runs", "small"]);
    assert_eq!(names(&mounted.path("runs")), ["1", "2"]);
    assert_eq!(names(&mounted.path("runs/2")), [""; 0]);
    assert_eq!(names(&mounted.path("odd")), ["%~", "%~%25%7Ez", "%~%2E%2E"]);
    for (name, len) in [
        ("empty", 0),
        ("small", 1000),
        ("runs/1/a.bin", 5 * MIB + 77),
        ("runs/1/b.bin", 70_000),
        ("%~runs", 30),
        ("odd/%~%25%7Ez", 60),
    ] {
        let meta = fs::metadata(mounted.path(name)).unwrap();
        assert_eq!((meta.len(), meta.mode() & 0o7777), (len as u64, 0o444), "{name}");
        assert!(fs::read(mounted.path(name)).unwrap() == bytes(len as u64, len), "{name}");
    }
    let missing = fs::metadata(mounted.path("runs/3")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    for refused in [
        fs::write(mounted.path("new"), "x"),
        fs::remove_file(mounted.path("small")),
        fs::create_dir(mounted.path("folder")),
    ] {
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    let status = mounted.status();
    assert_eq!((&status["schema"], &status["source"]), (&1.into(), &"s3://bucket/".into()));
    assert_eq!((&status["errors"], &status["open_files"]), (&0.into(), &0.into()));
    let metrics = mounted.folder.ok(&["mount", "--status", "m", "--prometheus"]);
    assert!(
        metrics.contains("thalweg_mount_requests_total{source=\"s3://bucket/\"} "),
        "{metrics}"
    );
    let said = mounted.folder.fails(1, &["mount", "--status", "."]);
    assert!(said.contains("nothing is mounted here by thalweg"), "{said}");
}

#[test]
fn names_are_found_without_a_list() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([], |_| Answer::Right);
    // Names that lie between the object and the folder of one name.
    for at in 0..1500 {
        server.put(&format!("/bucket/a-{at:04}"), bytes(at, 10));
    }
    server.put("/bucket/a/b", bytes(1, 100));
    server.put("/bucket/c", bytes(2, 200));
    let mounted = Mounted::new(&server, &[]);
    assert!(fs::metadata(mounted.path("a")).unwrap().is_dir());
    assert_eq!(fs::read(mounted.path("a/b")).unwrap(), bytes(1, 100));
    assert_eq!(fs::read(mounted.path("c")).unwrap(), bytes(2, 200));
    assert_eq!(fs::read(mounted.path("a-0077")).unwrap(), bytes(77, 10));
    assert!(fs::metadata(mounted.path("%~c")).is_err(), "there is no folder of this name");
}

/// Answers as on a bad day.
fn bad(asked: &Asked) -> Answer {
    match asked.number % 17 {
        3 => Answer::Refused(503, "SlowDown"),
        5 => Answer::Torn(0.4),
        7 => Answer::Late(Duration::from_millis(20)),
        9 => Answer::Reset(0.7),
        _ => Answer::Right,
    }
}

#[test]
fn readers_in_any_order_get_the_bytes() {
    if !can_mount() {
        return;
    }
    let objects = ["/bucket/0", "/bucket/1", "/bucket/2"];
    let content: Vec<Vec<u8>> = (0..3).map(|at| bytes(at, 40 * MIB + 12_345)).collect();
    for cache in ["off", "1GB,free=0"] {
        let server = ObjectServer::start(objects.into_iter().zip(content.iter().cloned()), bad);
        // Less than all readers want to have ahead.
        let mounted = Mounted::new(&server, &["--memory", "24MiB", "--cache", cache]);
        std::thread::scope(|scope| {
            for reader in 0..9u64 {
                let path = mounted.path(&format!("{}", reader % 3));
                let content = &content[reader as usize % 3];
                scope.spawn(move || {
                    let mut file = File::open(path).unwrap();
                    if reader < 3 {
                        let mut read = Vec::new();
                        file.read_to_end(&mut read).unwrap();
                        assert!(read == *content);
                    }
                    for number in 0..60 {
                        let from = (hash01(reader, 1, number) * content.len() as f64) as usize;
                        let len = (hash01(reader, 2, number) * 700_000.0) as usize;
                        let end = (from + len).min(content.len());
                        let mut read = vec![0; end - from];
                        file.read_exact_at(&mut read, from as u64).unwrap();
                        assert!(read == content[from..end], "{from}..{end}");
                    }
                });
            }
        });
        let status = mounted.status();
        assert!(status["memory_bytes"].as_u64().unwrap() <= 24 << 20, "{status}");
        assert_eq!(status["errors"], 0, "{status}");
    }
}

#[test]
fn a_file_is_one_version_of_an_object() {
    if !can_mount() {
        return;
    }
    let (old, new) = (bytes(1, 30 * MIB), bytes(2, 30 * MIB));
    let server = ObjectServer::start([("/bucket/a", old.clone())], |_| Answer::Right);
    let mounted = Mounted::new(&server, &["--ttl", "0.2"]);
    let file = File::open(mounted.path("a")).unwrap();
    let mut read = vec![0; MIB];
    file.read_exact_at(&mut read, 0).unwrap();
    assert!(read == old[..MIB]);
    server.put("/bucket/a", new.clone());
    let failed = (2..30).find_map(|at| file.read_exact_at(&mut read, at << 20).err());
    assert_eq!(failed.and_then(|error| error.raw_os_error()), Some(116), "ESTALE");
    std::thread::sleep(Duration::from_millis(250));
    assert!(fs::read(mounted.path("a")).unwrap() == new);
    // It stays the old version, of which some was fetched ahead.
    let is_old =
        file.read_exact_at(&mut read, 20 << 20).is_err() || read == old[20 * MIB..21 * MIB];
    assert!(is_old);
    let status = mounted.status();
    let said = status["last_error"].as_str().unwrap();
    assert!(said.contains("replaced after it was opened"), "{said}");
    server.remove("/bucket/a");
    std::thread::sleep(Duration::from_millis(250));
    assert!(fs::metadata(mounted.path("a")).is_err());
}

#[test]
fn what_is_complete_in_the_cache_is_not_fetched() {
    if !can_mount() {
        return;
    }
    let content = bytes(5, 20 * MIB + 5);
    let server = ObjectServer::start([("/bucket/a", content.clone())], |_| Answer::Right);
    let mounted = Mounted::new(&server, &["--cache", "1GB,free=0"]);
    assert!(fs::read(mounted.path("a")).unwrap() == content);
    let before = server.sent();
    for _ in 0..2 {
        assert!(fs::read(mounted.path("a")).unwrap() == content);
    }
    assert_eq!(server.sent(), before);
    let passed = mounted.status()["opens_passed_through"].as_u64().unwrap();
    if rustix::process::geteuid().is_root() {
        assert_eq!(passed, 2, "the kernel reads the copy in the cache");
    }
    // The command that reads URLs has the same cache.
    let cache = mounted.folder.json(&["cache", "info", "--json", "--cache", "1GB"]).remove(0);
    assert_eq!(cache["objects"][0]["cached_bytes"], content.len());
}

#[test]
fn small_files_are_fetched_before_they_are_opened() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([], |asked| match &*asked.method {
        "GET" if asked.range.is_some() => Answer::Late(Duration::from_millis(60)),
        _ => Answer::Right,
    });
    for at in 0..300 {
        server.put(&format!("/bucket/many/{at:03}"), bytes(at, 20_000));
    }
    let mounted = Mounted::new(&server, &[]);
    let folder = mounted.path("many");
    for (at, name) in names(&folder).iter().enumerate() {
        assert!(fs::read(folder.join(name)).unwrap() == bytes(at as u64, 20_000));
    }
    let status = mounted.status();
    assert!(status["read_ahead_hits"].as_u64().unwrap() > 100, "{status}");
    let gets = server.asked().iter().filter(|asked| asked.range.is_some()).count();
    assert!(gets <= 330, "each is fetched once, but for second requests: {gets}");
}

#[test]
fn a_daemon_ends_when_it_is_unmounted() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([("/bucket/a", bytes(1, 100))], |_| Answer::Right);
    let folder = Folder::new();
    fs::create_dir(folder.path("m")).unwrap();
    let done = Mounted::command(&folder, &server, &["--log", "log"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read(folder.path("m/a")).unwrap(), bytes(1, 100));
    server.remove("/bucket/a");
    let umount = Command::new("umount").arg(folder.path("m")).status();
    let umount = umount.unwrap().success().then_some(()).or_else(|| {
        let fusermount = Command::new("fusermount3").arg("-u").arg(folder.path("m")).status();
        fusermount.unwrap().success().then_some(())
    });
    assert!(umount.is_some());
    assert!(names(&folder.path("m")).is_empty());
    let missing = Mounted::command(&folder, &server, &["--uid", "x"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn a_signal_unmounts() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([("/bucket/a", bytes(1, 100))], |_| Answer::Right);
    let mut mounted = Mounted::new(&server, &[]);
    assert_eq!(names(&mounted.path("")), ["a"]);
    mounted.signal();
    let started = Instant::now();
    while mounted.daemon.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(names(&mounted.path("")).is_empty());
}

#[test]
fn what_cannot_be_mounted_is_told() {
    let server = ObjectServer::start([], |_| Answer::Refused(403, "AccessDenied"));
    let folder = Folder::new();
    fs::create_dir(folder.path("m")).unwrap();
    let run = |args: &[&str]| {
        let mut command = folder.command(args);
        command
            .env("AWS_ENDPOINT_URL", server.url(""))
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = run(&["mount", "s3://bucket", "m"]);
    assert!(code == Some(1) && said.contains("AccessDenied"), "{code:?} {said}");
    let (code, said) = run(&["mount", "https://host/a", "m"]);
    assert!(code == Some(2) && said.contains("only buckets can be mounted"), "{code:?} {said}");
    let (code, said) = run(&["mount", "s3://bucket"]);
    assert!(code == Some(2), "{code:?} {said}");
}

/// A server whose objects can be written, without any.
fn empty() -> ObjectServer {
    ObjectServer::start([], |_| Answer::Right)
}

/// The options of a mount whose staging folder is in the folder of a test.
fn staging(folder: &Folder) -> String {
    format!("off,free=0,folder={}", folder.path("staging").display())
}

impl Mounted {
    /// Mounts the bucket for writing.
    fn writing(server: &ObjectServer, args: &[&str]) -> Self {
        let folder = Folder::new();
        let staging = staging(&folder);
        let args: Vec<&str> = [&["--staging", &*staging], args].concat();
        Self::in_folder(folder, server, &args)
    }

    /// Mounts the bucket again after the daemon has ended.
    fn again(mut self, server: &ObjectServer, args: &[&str]) -> Self {
        let _ = self.daemon.wait();
        let folder = std::mem::replace(&mut self.folder, Folder::new());
        let staging = staging(&folder);
        let args: Vec<&str> = [&["--staging", &*staging], args].concat();
        Self::in_folder(folder, server, &args)
    }

    /// Unmounts, and waits until the daemon has ended.
    fn end(&mut self) -> std::process::ExitStatus {
        self.signal();
        self.daemon.wait().unwrap()
    }

    /// Ends the daemon at once.
    fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        for command in [["fusermount3", "-uz"], ["umount", "-l"]] {
            let [program, flags] = command;
            let unmount = Command::new(program).args([flags]).arg(self.folder.path("m")).output();
            if unmount.is_ok_and(|output| output.status.success()) {
                return;
            }
        }
    }
}

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

/// Waits until something holds, for half a minute at most.
fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it does not hold after 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
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
    assert!(said.contains("could not be stored"), "{said}");
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

/// The files below a folder.
fn left_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(left_in(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// The bytes of files that were never closed.
fn unfinished(staging: &Path) -> Vec<PathBuf> {
    let mut left = left_in(staging);
    left.retain(|path| path.components().any(|part| part.as_os_str() == "unfinished"));
    left
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
    // Or be given up.
    fs::remove_file(mounted.path("a")).unwrap();
}

#[test]
fn a_large_file_goes_through_a_small_folder() {
    if !can_mount() {
        return;
    }
    let server = empty();
    let folder = Folder::new();
    let staging = format!("40MiB,free=0,folder={}", folder.path("staging").display());
    let mounted = Mounted::in_folder(folder, &server, &["--staging", &staging]);
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
    // A file that is not written in order has no more room than there is.
    let file = File::create(mounted.path("random")).unwrap();
    let written = (0..50).rev().map(|at| file.write_all_at(&content[..MIB], at * MIB as u64));
    let error = written.filter_map(Result::err).next().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    drop(file);
}
