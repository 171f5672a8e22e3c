//! Reading objects as files.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;
use std::time::{Duration, Instant};

use thalweg_io::random::hash01;
use thalweg_testing::http_server::{Answer, ObjectServer};

use super::mounted::{MIB, Mounted, bad, bytes, can_mount, names, until};
use crate::common::Folder;

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
    let mounted = Mounted::writing(&server, &[]);
    assert!(fs::metadata(mounted.path("a")).unwrap().is_dir());
    assert_eq!(fs::read(mounted.path("a/b")).unwrap(), bytes(1, 100));
    assert_eq!(fs::read(mounted.path("c")).unwrap(), bytes(2, 200));
    assert_eq!(fs::read(mounted.path("a-0077")).unwrap(), bytes(77, 10));
    assert!(fs::metadata(mounted.path("%~c")).is_err(), "there is no folder of this name");
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
        let mounted = Mounted::writing(&server, &["--memory", "24MiB", "--cache", cache]);
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
    // Less memory than the file has bytes: not all of it can be fetched ahead.
    let mounted = Mounted::writing(&server, &["--ttl", "0.2", "--memory", "16MiB"]);
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
    let mounted = Mounted::writing(&server, &["--cache", "1GB,free=0"]);
    assert!(fs::read(mounted.path("a")).unwrap() == content);
    let before = server.sent();
    assert!(fs::read(mounted.path("a")).unwrap() == content);
    if rustix::process::geteuid().is_root() {
        // The kernel reads the copy in the cache, once all of it has been written there.
        until(|| {
            assert!(fs::read(mounted.path("a")).unwrap() == content);
            mounted.status()["opens_passed_through"].as_u64().unwrap() > 0
        });
    }
    assert_eq!(server.sent(), before);
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
    let mounted = Mounted::writing(&server, &[]);
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
    let done =
        Mounted::command(&folder, &server, &["--read-only", "--log", "log"]).output().unwrap();
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
    let mut mounted = Mounted::writing(&server, &[]);
    assert_eq!(names(&mounted.path("")), ["a"]);
    mounted.signal();
    let started = Instant::now();
    while mounted.daemon.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(names(&mounted.path("")).is_empty());
}

/// A service manager is told when the folder is mounted, and when that ends.
#[test]
fn service_managers_are_told() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([("/bucket/a", bytes(1, 100))], |_| Answer::Right);
    let folder = Folder::new();
    fs::create_dir(folder.path("m")).unwrap();
    let socket = std::os::unix::net::UnixDatagram::bind(folder.path("notify")).unwrap();
    // A daemon that has failed tells nothing.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = Mounted::command(&folder, &server, &["--read-only", "--foreground"]);
    let mut daemon = command.env("NOTIFY_SOCKET", folder.path("notify")).spawn().unwrap();
    let told = || {
        let mut text = [0; 100];
        let len = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..len]).trim().to_owned()
    };
    assert_eq!(told(), "READY=1");
    assert_eq!(fs::read(folder.path("m/a")).unwrap(), bytes(1, 100));
    let process = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert_eq!(told(), "STOPPING=1");
    assert!(daemon.wait().unwrap().success());
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
    for url in ["s3://.", "s3://..", "s3://?", "s3://bucket#x", "s3:///a"] {
        let (code, said) = run(&["mount", url, "m"]);
        assert!(code == Some(2) && said.contains("no name of a bucket"), "{url}: {code:?} {said}");
    }
    for url in ["s3://bucket/./", "s3://bucket/..", "s3://bucket/a/../b", "s3://bucket/a//b"] {
        let (code, said) = run(&["mount", url, "m"]);
        assert!(code == Some(2) && said.contains("no part of"), "{url}: {code:?} {said}");
    }
    let (code, said) = run(&["mount", "m", "s3://bucket"]);
    assert!(code == Some(2) && said.contains("the URL first"), "{code:?} {said}");
    fs::write(folder.path("file"), "").unwrap();
    let (code, said) = run(&["mount", "s3://bucket", "file"]);
    assert!(code == Some(1) && said.contains("no folder"), "{code:?} {said}");
}

#[test]
fn a_dead_mount_is_told() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([], |_| Answer::Right);
    let mut mounted = Mounted::new(&server, &["--read-only"]);
    mounted.folder.ok(&["mount", "--flush", "m"]);
    mounted.kill_daemon();
    mounted.daemon.wait().unwrap();
    for args in [["--status", "m"], ["s3://bucket", "m"]] {
        let output = Mounted::verb(&mounted.folder, &server, &args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("unmount the folder"), "{said}");
    }
    mounted.detach();
}
