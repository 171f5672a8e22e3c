//! The cache of objects at URLs: processes that share it, are killed, or find the disc full.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::{Folder, json};

/// A folder with a file of reads, its digest, and a server that has it.
fn served(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Served {
    let folder = Folder::new();
    folder.synth("r.blow5", "3M");
    let bytes = fs::read(folder.path("r.blow5")).unwrap();
    assert!(bytes.len() > 20 << 16, "there are some blocks");
    let digest = folder.ok(&["read", "r.blow5", "--digest"]);
    let server = ObjectServer::start([("/runs/r.blow5", bytes)], behaviour);
    let url = server.url("/runs/r.blow5?signature=secret");
    Served { folder, digest, server, url }
}

struct Served {
    folder: Folder,
    digest: String,
    server: ObjectServer,
    url: String,
}

impl Served {
    fn cached(&self, args: &[&str]) -> Command {
        let mut command = self.folder.command(args);
        command.env("THALWEG_CACHE", "1GB,free=0B");
        command
    }

    /// Reads with the cache on, and returns what was sent and what was said.
    fn read(&self) -> (u64, String) {
        self.read_by(self.cached(&["read", &self.url, "--digest"]))
    }

    fn read_by(&self, mut command: Command) -> (u64, String) {
        let before = self.server.sent();
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), self.digest);
        (self.server.sent() - before, String::from_utf8(done.stderr).unwrap())
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.folder.path("cache/thalweg/objects")) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|name| name == "blocks")).collect()
    }
}

/// The answer that opening an object takes.
const HEAD: u64 = 64 << 10;

#[test]
fn what_was_read_is_kept_shown_checked_and_cleared() {
    let served = served(|_| Answer::Right);
    let Served { folder, url, .. } = &served;
    folder.ok(&["read", url, "--digest"]);
    assert!(served.files().is_empty(), "it is off by default");
    let shown = folder.ok(&["cache", "info"]);
    assert!(shown.contains("off") && shown.contains("by 0 objects"), "{shown}");

    assert!(served.read().0 > HEAD);
    assert_eq!(served.read().0, HEAD, "only the tag is asked for");
    // The option goes before the variable.
    let off = served.cached(&["read", url, "--digest", "--cache", "off"]);
    assert!(served.read_by(off).0 > HEAD);
    let elsewhere = "1GB,free=0B,folder=other, cache";
    let there = || served.cached(&["read", url, "--digest", "--cache", elsewhere]);
    assert!(served.read_by(there()).0 > HEAD);
    assert_eq!(served.read_by(there()).0, HEAD);
    assert!(folder.path("other, cache").is_dir());

    let done = served.cached(&["cache", "info", "--json"]).output().unwrap();
    let info = &json(&String::from_utf8(done.stdout).unwrap())[0];
    assert_eq!(info["limit_bytes"], 1_000_000_000);
    let object = &info["objects"][0];
    assert_eq!(object["url"], url.split('?').next().unwrap());
    assert_eq!(object["cached_bytes"], object["bytes"]);
    assert!(object["used_at_unix_s"].as_u64().unwrap() > 0);
    let words = folder.ok(&["cache", "info"]);
    assert!(words.contains("(100 %)") && !words.contains("secret"), "{words}");
    let fine = folder.ok(&["cache", "verify"]);
    assert!(fine.contains("nothing is damaged"), "{fine}");

    // A damaged block is named, and fetched again.
    let file =
        fs::File::options().write(true).open(served.files()[0].with_extension("bytes")).unwrap();
    file.write_all_at(b"damage", (64 << 10) * 4 + 100).unwrap();
    let told = folder.fails(1, &["cache", "verify"]);
    assert!(told.contains("bytes 262144 of http://") && !told.contains("secret"), "{told}");
    let verified = &folder.json(&["cache", "verify", "--json"])[0];
    assert_eq!(verified["damage"].as_array().unwrap().len(), 0);
    let again = served.read().0;
    assert!(again > HEAD && again <= 3 * HEAD, "{again}");

    let host = url.split("/runs").next().unwrap();
    let none = &folder.json(&["cache", "clear", &format!("{host}/run"), "--json"])[0];
    assert_eq!(none["files"], 0);
    let told = folder.ok(&["cache", "clear", &format!("{host}/runs")]);
    assert!(told.starts_with("removed 1 object, "), "{told}");
    assert!(served.files().is_empty());
    served.read();
    folder.ok(&["cache", "clear"]);
    assert!(served.files().is_empty());
    folder.fails(2, &["read", url, "--cache", "much"]);
}

#[test]
fn every_verb_takes_the_cache() {
    let served = served(|_| Answer::Right);
    let (url, server) = (served.url.as_str(), &served.server);
    served.read();
    for args in [&["info", url, "--count"][..], &["check", url], &["scan", url, "--tsv"]] {
        let before = server.sent();
        let done = served.cached(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        // `info` opens an object twice.
        assert!(server.sent() - before <= 2 * HEAD, "{args:?}: {}", server.sent() - before);
    }
}

#[test]
fn processes_that_are_killed_leave_nothing_wrong() {
    // Slow answers: the processes die in the middle.
    let served = served(|asked| match asked.number % 3 {
        0 => Answer::Late(Duration::from_millis(3)),
        _ => Answer::Right,
    });
    let start = || -> Child {
        let mut command =
            served.cached(&["read", &served.url, "--digest", "--memory", "4MiB", "-t", "2"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for turn in 0..12u64 {
        let mut children = [start(), start(), start()];
        for (child, after) in children.iter_mut().zip([turn * 7 % 40, 5, turn * 13 % 60]) {
            std::thread::sleep(Duration::from_millis(after));
            // SIGKILL.
            let _ = child.kill();
        }
        for child in &mut children {
            child.wait().unwrap();
        }
        if turn % 4 == 1 {
            let done = served.cached(&["cache", "verify"]).output().unwrap();
            let told = String::from_utf8_lossy(&done.stderr);
            // A file whose header was not written is the only trace of a killed process.
            assert!(!told.contains("the checksum"), "{told}");
        }
        if turn % 6 == 5 {
            served.folder.ok(&["cache", "clear"]);
        }
        served.read();
    }
    assert_eq!(served.read().0, HEAD);
    served.folder.ok(&["cache", "verify"]);
}

#[test]
fn processes_share_a_cache_that_others_empty() {
    let served = served(|_| Answer::Right);
    for turn in 0..4 {
        let mut readers: Vec<Child> = (0..4)
            .map(|_| {
                let mut command = served.cached(&["read", &served.url, "--digest"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        if turn % 2 == 1 {
            readers.extend((0..3).map(|_| {
                let mut command = served.cached(&["cache", "clear"]);
                command.stdout(Stdio::null()).spawn().unwrap()
            }));
        }
        for (number, reader) in readers.into_iter().enumerate() {
            let done = reader.wait_with_output().unwrap();
            assert!(done.status.success(), "{done:?}");
            if number < 4 {
                assert_eq!(String::from_utf8_lossy(&done.stdout), served.digest);
                assert!(done.stderr.is_empty(), "{done:?}");
            }
        }
    }
}

/// A limit on the size of files stands in for a full disc: writes beyond it fail.
#[test]
fn a_full_disc_does_not_stop_a_read() {
    let served = served(|_| Answer::Right);
    let limited = |kib: u32| {
        let program = served.cached(&["read", &served.url, "--digest"]);
        let mut command = Command::new("bash");
        command.args(["-c", &format!("ulimit -f {kib} && exec \"$@\""), "bash"]);
        command.arg(program.get_program()).args(program.get_args());
        command.current_dir(program.get_current_dir().unwrap());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        served.read_by(command)
    };
    for kib in [1, 40, 63, 64, 200, 700] {
        let (_, told) = limited(kib);
        assert_eq!(told.matches("nothing more is kept").count(), 1, "{kib} KiB: {told}");
        assert_eq!(told.lines().count(), 1, "{kib} KiB: {told}");
    }
    let (_, told) = served.read();
    assert_eq!(told, "", "what was half written is written again");
    assert_eq!(served.read().0, HEAD);
    served.folder.ok(&["cache", "verify"]);
}

/// A file system of its own that is full: only where this user may mount one.
#[test]
fn a_small_file_system_does_not_stop_a_read() {
    let served = served(|_| Answer::Right);
    let script =
        "mkdir -p small && mount -t tmpfs -o size=700k tmpfs small || exit 77; exec \"$@\"";
    for free in ["0B", "300kB"] {
        let choice = format!("1GB,free={free},folder=small/objects");
        let program = served.cached(&["read", &served.url, "--digest", "--cache", &choice]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "bash", "-c", script, "bash"]);
        command.arg(program.get_program()).args(program.get_args());
        command.current_dir(program.get_current_dir().unwrap());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let Ok(done) = command.output() else { return };
        if done.status.code() == Some(77) || !done.status.success() && done.stdout.is_empty() {
            println!("not tested: {}", String::from_utf8_lossy(&done.stderr));
            return;
        }
        assert_eq!(String::from_utf8_lossy(&done.stdout), served.digest);
        let told = String::from_utf8_lossy(&done.stderr);
        // Where space is to stay free, the disc never gets full.
        let is_full = free == "0B" && told.contains("No space left");
        assert!(told.is_empty() || is_full, "{free}: {told}");
    }
}
