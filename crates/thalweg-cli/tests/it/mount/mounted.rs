//! A mounted bucket for tests.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use thalweg_io::random::hash01;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::{Folder, json};

pub(super) const MIB: usize = 1 << 20;

pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let word = |at: usize| (hash01(seed, 7, at as u64 / 4) * 4e9) as u32;
    (0..len).map(|at| word(at).to_le_bytes()[at % 4]).collect()
}

/// Whether this machine mounts file systems of programs.
#[allow(clippy::print_stderr)]
pub(super) fn can_mount() -> bool {
    let can = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !can {
        eprintln!("SKIPPED: /dev/fuse cannot be opened, so nothing is mounted");
    }
    can
}

/// A server of the protocol of S3 that has the bucket.
pub(super) trait Endpoint {
    fn endpoint(&self) -> String;
}

impl Endpoint for ObjectServer {
    fn endpoint(&self) -> String {
        self.url("")
    }
}

/// A mounted bucket, whose daemon runs in the foreground.
pub(super) struct Mounted {
    pub(super) folder: Folder,
    pub(super) daemon: Child,
}

impl Mounted {
    pub(super) fn command(folder: &Folder, server: &dyn Endpoint, args: &[&str]) -> Command {
        Self::verb(folder, server, &[&["s3://bucket", "m"], args].concat())
    }

    /// Mounts all buckets for writing.
    pub(super) fn all_buckets(folder: Folder, server: &dyn Endpoint, args: &[&str]) -> Self {
        let staging = staging(&folder);
        let args = [&["s3://", "m", "--staging", &*staging], args].concat();
        let command = Self::verb(&folder, server, &args);
        Self::start(folder, command)
    }

    /// `thalweg mount` with these arguments.
    pub(super) fn verb(folder: &Folder, server: &dyn Endpoint, args: &[&str]) -> Command {
        let mut command = folder.command(["mount"]);
        command
            .args(args)
            .env("AWS_ENDPOINT_URL", server.endpoint())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-north-1")
            .env("XDG_STATE_HOME", folder.path("state"));
        command
    }

    pub(super) fn in_folder(folder: Folder, server: &dyn Endpoint, args: &[&str]) -> Self {
        let command = Self::command(&folder, server, args);
        Self::start(folder, command)
    }

    #[allow(clippy::print_stderr)]
    fn start(folder: Folder, mut command: Command) -> Self {
        fs::create_dir_all(folder.path("m")).unwrap();
        let mut daemon = command.arg("--foreground").stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(daemon.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        // What a killed mount has left is told before.
        while !line.is_empty() && !line.contains(" is mounted on m") {
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

    /// Mounts the bucket. Without `--read-only` this fails where the disc is nearly full.
    pub(super) fn new(server: &dyn Endpoint, args: &[&str]) -> Self {
        Self::in_folder(Folder::new(), server, args)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path("m").join(name)
    }

    pub(super) fn status(&self) -> serde_json::Value {
        json(&self.folder.ok(&["mount", "--status", "m"])).remove(0)
    }

    /// Sends the daemon SIGTERM.
    pub(super) fn signal(&self) {
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
pub(super) fn names(folder: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

impl Mounted {
    /// Mounts the bucket for writing.
    pub(super) fn writing(server: &dyn Endpoint, args: &[&str]) -> Self {
        let folder = Folder::new();
        let staging = staging(&folder);
        let args: Vec<&str> = [&["--staging", &*staging], args].concat();
        Self::in_folder(folder, server, &args)
    }

    /// Mounts the bucket for writing, with room for so many bytes.
    pub(super) fn with_room(server: &dyn Endpoint, room: &str) -> Self {
        let folder = Folder::new();
        let staging = room_in(&folder, room);
        Self::in_folder(folder, server, &["--staging", &staging])
    }

    /// Mounts the bucket again after the daemon has ended.
    pub(super) fn again(mut self, server: &dyn Endpoint, args: &[&str]) -> Self {
        let _ = self.daemon.wait();
        let folder = std::mem::replace(&mut self.folder, Folder::new());
        let staging = staging(&folder);
        let args: Vec<&str> = [&["--staging", &*staging], args].concat();
        Self::in_folder(folder, server, &args)
    }

    /// Unmounts, and waits until the daemon has ended.
    pub(super) fn end(&mut self) -> ExitStatus {
        self.signal();
        self.daemon.wait().unwrap()
    }

    /// Ends the daemon at once, and unmounts.
    pub(super) fn kill(&mut self) {
        self.kill_daemon();
        self.detach();
    }

    /// Ends the daemon at once.
    pub(super) fn kill_daemon(&self) {
        let daemon = rustix::process::Pid::from_child(&self.daemon);
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    }

    /// Unmounts after the daemon has ended.
    pub(super) fn detach(&mut self) {
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

/// A server whose objects can be written, without any.
pub(super) fn empty() -> ObjectServer {
    ObjectServer::start([], |_| Answer::Right)
}

/// The options of a mount whose staging folder is in the folder of a test.
pub(super) fn staging(folder: &Folder) -> String {
    room_in(folder, "off")
}

pub(super) fn room_in(folder: &Folder, room: &str) -> String {
    format!("{room},free=0,folder={}", folder.path("staging").display())
}

/// Waits until something holds, for half a minute at most.
pub(super) fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it does not hold after 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The files below a folder.
pub(super) fn left_in(folder: &Path) -> Vec<PathBuf> {
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

/// Answers as on a bad day.
pub(super) fn bad(asked: &Asked) -> Answer {
    match asked.number % 17 {
        3 => Answer::Refused(503, "SlowDown"),
        5 => Answer::Torn(0.4),
        7 => Answer::Late(Duration::from_millis(20)),
        9 => Answer::Reset(0.7),
        _ => Answer::Right,
    }
}
