//! Outputs at URLs: an object is what the file would be, appears when it is whole, and replaces
//! nothing without --force.

use std::fs;
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::Folder;

/// A folder with reads, and a server with an empty bucket.
fn started(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Folder, ObjectServer) {
    let folder = Folder::new();
    folder.synth("r.blow5", "300k");
    fs::create_dir(folder.path("tmp")).unwrap();
    (folder, ObjectServer::start([], behaviour))
}

/// A verb that writes to the bucket.
fn command(folder: &Folder, server: &ObjectServer, args: &[&str]) -> std::process::Command {
    let mut command = folder.command(args);
    command
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-north-1")
        .env("TMPDIR", folder.path("tmp"));
    command
}

fn run(folder: &Folder, server: &ObjectServer, args: &[&str]) -> Output {
    command(folder, server, args).output().unwrap()
}

fn ok(folder: &Folder, server: &ObjectServer, args: &[&str]) {
    let done = run(folder, server, args);
    assert!(done.status.success(), "{args:?}: {done:?}");
    nothing_is_left(folder);
}

fn refused(folder: &Folder, server: &ObjectServer, args: &[&str]) -> String {
    let done = run(folder, server, args);
    assert!(!done.status.success(), "{args:?}: {done:?}");
    nothing_is_left(folder);
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// No temporary file stays, and no folder is named as a URL is.
fn nothing_is_left(folder: &Folder) {
    let names = |path: &str| -> Vec<String> {
        let found = fs::read_dir(folder.path(path)).unwrap();
        found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names("tmp"), [""; 0]);
    assert!(names(".").iter().all(|name| !name.contains(':')), "{:?}", names("."));
}

/// The digest of the reads in an object.
fn digest(folder: &Folder, server: &ObjectServer, key: &str) -> String {
    let object = server.object(&format!("/out/{key}")).unwrap_or_else(|| panic!("no {key}"));
    let name = format!("found-{}", key.rsplit('/').next().unwrap());
    fs::write(folder.path(&name), object).unwrap();
    folder.ok(&["check", &name]);
    let digest = folder.ok(&["read", &name, "--digest"]);
    fs::remove_file(folder.path(&name)).unwrap();
    digest
}

/// Answers are bad at times, as they are on a busy day.
fn busy(asked: &Asked) -> Answer {
    match asked.number % 11 {
        3 => Answer::Refused(503, "SlowDown"),
        5 => Answer::Torn(0.4),
        7 => Answer::Late(Duration::from_millis(5)),
        _ => Answer::Right,
    }
}

#[test]
fn objects_of_reads_hold_what_files_would() {
    let (folder, server) = started(busy);
    let wanted = folder.ok(&["read", "r.blow5", "--digest"]);
    let formats: &[&str] = if cfg!(feature = "hdf5") {
        &["blow5", "slow5", "pod5", "fast5"]
    } else {
        &["blow5", "slow5", "pod5"]
    };
    for format in formats {
        for more in [&[][..], &["--verify"]] {
            let url = format!("s3://out/{}.{format}", more.len());
            let args = [&["convert", "r.blow5", &url, "--lossy"], more].concat();
            ok(&folder, &server, &args);
            let found = digest(&folder, &server, &format!("{}.{format}", more.len()));
            assert!(*format == "fast5" || found == wanted, "{format}: {found} {wanted}");
        }
    }
    ok(&folder, &server, &["merge", "r.blow5", "--out", "s3://out/merged.blow5"]);
    assert_eq!(digest(&folder, &server, "merged.blow5"), wanted);
    ok(
        &folder,
        &server,
        &["filter", "r.blow5", "--where", "samples > 0", "--out", "s3://out/kept.blow5"],
    );
    assert_eq!(digest(&folder, &server, "kept.blow5"), wanted);
    ok(&folder, &server, &["convert", "r.blow5", "s3://out/each", "--per-file", "--to", "blow5"]);
    assert_eq!(digest(&folder, &server, "each/r.blow5"), wanted);
    ok(&folder, &server, &["check", "r.blow5", "--salvage", "s3://out/saved.blow5"]);
    assert_eq!(digest(&folder, &server, "saved.blow5"), wanted);
    // From a bucket into it.
    ok(&folder, &server, &["convert", "s3://out/merged.blow5", "s3://out/copied.slow5"]);
    assert_eq!(digest(&folder, &server, "copied.slow5"), wanted);
    // A path by another name.
    let path = format!("file://{}", folder.path("local.slow5").display());
    ok(&folder, &server, &["convert", "r.blow5", &path]);
    assert_eq!(folder.ok(&["read", "local.slow5", "--digest"]), wanted);
    assert_eq!(server.unfinished(), 0);
}

#[test]
fn a_data_set_is_split_into_objects() {
    let (folder, server) = started(busy);
    ok(&folder, &server, &["split", "r.blow5", "--reads", "1", "--out", "s3://out/parts"]);
    folder.ok(&["split", "r.blow5", "--reads", "1", "--out", "parts"]);
    let mut parts = 0;
    for entry in fs::read_dir(folder.path("parts")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let local = folder.ok(&["read", &format!("parts/{name}"), "--digest"]);
        assert_eq!(digest(&folder, &server, &format!("parts/{name}")), local);
        parts += 1;
    }
    assert!(parts > 1);
    // One of them exists.
    let told =
        refused(&folder, &server, &["split", "r.blow5", "--reads", "1", "--out", "s3://out/parts"]);
    assert!(told.contains("exists"), "{told}");
}

#[test]
fn other_outputs_are_the_same_as_files() {
    let (folder, server) = started(busy);
    for name in ["t.csv", "t.tsv", "t.arrow", "t.parquet"] {
        ok(&folder, &server, &["scan", "r.blow5", "--out", &format!("s3://out/{name}")]);
        folder.ok(&["scan", "r.blow5", "--out", name]);
        let object = server.object(&format!("/out/{name}"));
        assert!(object == fs::read(folder.path(name)).ok(), "{name}");
    }
    ok(&folder, &server, &["read", "r.blow5", "--out", "s3://out/r.arrow"]);
    folder.ok(&["read", "r.blow5", "--out", "r.arrow"]);
    assert!(server.object("/out/r.arrow") == fs::read(folder.path("r.arrow")).ok());
    ok(&folder, &server, &["index", "r.blow5", "--output", "s3://out/r.idx"]);
    folder.ok(&["index", "r.blow5", "--output", "r.idx"]);
    assert!(server.object("/out/r.idx") == fs::read(folder.path("r.idx")).ok());
    for name in ["p.svg", "p.png", "p.html"] {
        ok(&folder, &server, &["plot", "r.blow5", "--out", &format!("s3://out/{name}")]);
        assert!(server.object(&format!("/out/{name}")).is_some_and(|page| page.len() > 1000));
    }
}

#[test]
#[cfg(feature = "hdf5")]
fn objects_of_arrays_hold_what_files_would() {
    let (folder, server) = started(busy);
    folder.ok(&["synth", "x.nxs", "--size", "4M"]);
    let local = folder.ok(&["read", "x.nxs", "--digest"]);
    ok(&folder, &server, &["convert", "--repack", "x.nxs", "s3://out/x.nxs", "--verify"]);
    // At both ends.
    let args = ["--chunk", "16k", "--filter", "shuffle+gzip", "--verify"];
    let args = [&["convert", "--repack", "s3://out/x.nxs", "s3://out/y.nxs"], &args[..]].concat();
    ok(&folder, &server, &args);
    for key in ["x.nxs", "y.nxs"] {
        fs::write(folder.path("got.nxs"), server.object(&format!("/out/{key}")).unwrap()).unwrap();
        assert_eq!(folder.ok(&["read", "got.nxs", "--digest"]).replace("got", "x"), local);
    }
    ok(&folder, &server, &["read", "x.nxs", "--out", "s3://out/x.npy"]);
    folder.ok(&["read", "x.nxs", "--out", "x.npy"]);
    let mut arrays = 0;
    let mut folders = vec!["x.npy".to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.path(&inner)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{inner}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(name);
                continue;
            }
            let object = server.object(&format!("/out/{name}"));
            assert!(object == fs::read(entry.path()).ok(), "{name}");
            arrays += 1;
        }
    }
    assert!(arrays > 1);
}

#[test]
fn an_object_is_replaced_only_if_that_is_asked_for() {
    let (folder, server) = started(|_| Answer::Right);
    let wanted = folder.ok(&["read", "r.blow5", "--digest"]);
    for (verb, out) in [
        (&["convert", "r.blow5", "s3://out/o.blow5"][..], "o.blow5"),
        (&["merge", "r.blow5", "--out", "s3://out/o.blow5"], "o.blow5"),
        (&["scan", "r.blow5", "--out", "s3://out/o.csv"], "o.csv"),
        (&["plot", "r.blow5", "--out", "s3://out/o.svg"], "o.svg"),
        (&["index", "r.blow5", "--output", "s3://out/o.idx"], "o.idx"),
    ] {
        let path = format!("/out/{out}");
        server.put(&path, b"old".to_vec());
        let told = refused(&folder, &server, verb);
        assert!(told.contains("exists") && told.contains("--force"), "{told}");
        assert_eq!(server.object(&path).as_deref(), Some(&b"old"[..]));
        ok(&folder, &server, &[verb, &["--force"]].concat());
        assert_ne!(server.object(&path).as_deref(), Some(&b"old"[..]));
    }
    assert_eq!(digest(&folder, &server, "o.blow5"), wanted);
    for args in [
        ["convert", "s3://out/o.blow5", "s3://out/o.blow5", "--force"],
        ["convert", "s3://out/o.blow5", "s3a://out/o.blow5", "--force"],
    ] {
        let told = refused(&folder, &server, &args);
        assert!(told.contains("the output is the input"), "{told}");
    }
    let url = server.url("/out/new.blow5");
    let told = refused(&folder, &server, &["convert", "r.blow5", &url]);
    assert!(told.contains("writing to a plain web server"), "{told}");
    let told = refused(&folder, &server, &["convert", "r.blow5", "s3://out"]);
    assert!(told.contains("no object in it") || told.contains("name"), "{told}");
}

/// Waits until something holds, as long as a child runs.
fn wait_for(child: &mut Child, what: impl Fn() -> bool) {
    while !what() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server that answers no part but the first.
fn stuck() -> (Folder, ObjectServer) {
    let seen = AtomicBool::new(false);
    let (folder, server) = started(move |asked| {
        let is_part = asked.target.contains("partNumber");
        if is_part && seen.swap(true, Ordering::SeqCst) { Answer::Never } else { Answer::Right }
    });
    folder.synth("large.blow5", "12M");
    (folder, server)
}

/// Waits until every upload has ended: the server may carry out an abort after the client is gone.
fn settled(server: &ObjectServer) {
    while server.unfinished() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn parts(server: &ObjectServer) -> usize {
    server.asked().iter().filter(|asked| asked.target.contains("partNumber")).count()
}

#[test]
fn an_interrupted_upload_leaves_nothing() {
    let verbs: &[&[&str]] = &[
        &["convert", "large.blow5", "s3://out/l.slow5"],
        &["convert", "large.blow5", "s3://out/l.blow5", "--verify"],
        #[cfg(feature = "hdf5")]
        &["convert", "large.blow5", "s3://out/l.fast5", "--lossy"],
    ];
    for verb in verbs {
        let (folder, server) = stuck();
        let mut child = command(&folder, &server, verb).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&mut child, || parts(&server) > 1);
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{verb:?}: {done:?}");
        settled(&server);
        assert_eq!(server.object(&format!("/{}", &verb[2][5..])), None);
        nothing_is_left(&folder);
    }
}

#[test]
fn a_killed_upload_leaves_nothing_that_is_visible() {
    let (folder, server) = stuck();
    let args = ["convert", "large.blow5", "s3://out/l.slow5"];
    let mut child = command(&folder, &server, &args).spawn().unwrap();
    wait_for(&mut child, || parts(&server) > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(server.object("/out/l.slow5"), None);
    // The service keeps the parts until a rule of the bucket removes them.
    assert_eq!(server.unfinished(), 1);
    nothing_is_left(&folder);
}

#[test]
fn refusals_are_told_before_the_work() {
    let (folder, server) = started(|asked| match &*asked.target {
        path if path.contains("/denied/") => Answer::Refused(403, "AccessDenied"),
        path if path.contains("/none/") => Answer::Refused(404, "NoSuchBucket"),
        _ => Answer::Right,
    });
    for (bucket, words) in [("denied", "may not write it"), ("none", "no such bucket")] {
        for verb in [
            ["convert", "r.blow5", "s3://BUCKET/o.blow5"],
            ["convert", "r.blow5", "s3://BUCKET/o.pod5"],
        ] {
            let verb = verb.map(|arg| arg.replace("BUCKET", bucket));
            let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
            let told = refused(&folder, &server, &[&verb[..], &["--lossy"]].concat());
            assert!(told.contains(words), "{told}");
        }
    }
    assert!(server.asked().iter().all(|asked| asked.method != "PUT"));
}
