//! Daemons that are killed while files are written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_io::random::hash01;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::one_of;

use super::mounted::{Endpoint, MIB, Mounted, bytes, can_mount, names, until};

/// What each file may hold: what was promised last, and what somebody was about to write over it.
#[derive(Debug, Clone, Default)]
struct Expected {
    promised: Option<Vec<u8>>,
    maybe: Vec<Option<Vec<u8>>>,
}

/// Some requests fail, others come late, so that a kill falls between them.
fn slow(asked: &Asked) -> Answer {
    match asked.number % 13 {
        5 => Answer::Refused(503, "SlowDown"),
        7 => Answer::Lost,
        9 => Answer::Torn(0.5),
        number => Answer::Late(Duration::from_millis(number)),
    }
}

/// Writes, renames and removes files until the mount is killed.
fn work(
    mounted: &Mounted,
    expected: &Mutex<BTreeMap<String, Expected>>,
    is_over: &AtomicBool,
    (round, worker): (u64, u64),
) {
    for number in 0..10_000 {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let choice = |what: u64, end: f64| (hash01(round, what, number * 8 + worker) * end) as u64;
        // Each worker has names of its own.
        let name = format!("{worker}-{}", choice(1, 5.0));
        let other = format!("{worker}-{}", choice(2, 5.0));
        let content = match choice(3, 12.0) {
            0 => bytes(number + round, 17 * MIB + number as usize),
            _ => bytes(number + round, 1 + choice(4, 5000.0) as usize),
        };
        // What it may hold is noted before, and what it holds after the promise.
        let begin = |name: &str, maybe: Option<Vec<u8>>| {
            let mut expected = expected.lock().unwrap();
            expected.entry(name.to_owned()).or_default().maybe.push(maybe);
        };
        let end = |name: &str, promised: Option<Vec<u8>>| {
            let now = Expected { promised, maybe: Vec::new() };
            expected.lock().unwrap().insert(name.to_owned(), now);
        };
        match choice(5, 6.0) {
            0 => {
                begin(&name, None);
                if fs::remove_file(mounted.path(&name)).is_ok() {
                    end(&name, None);
                }
            }
            1 if name != other => {
                let moved = expected.lock().unwrap().get(&name).and_then(|e| e.promised.clone());
                let Some(moved) = moved else { continue };
                begin(&name, None);
                begin(&other, Some(moved.clone()));
                // Between two requests, both names may be there.
                if fs::rename(mounted.path(&name), mounted.path(&other)).is_ok() {
                    end(&name, None);
                    end(&other, Some(moved));
                }
            }
            _ => {
                begin(&name, Some(content.clone()));
                let written = File::create(mounted.path(&name)).and_then(|mut file| {
                    file.write_all(&content)?;
                    // Rust does not tell what `close` says.
                    file.sync_all()
                });
                if written.is_ok() {
                    end(&name, Some(content));
                }
            }
        }
    }
}

/// Kills a mount so many times, at another time each.
fn rounds() -> u64 {
    let given = std::env::var("MOUNT_KILLS").ok().and_then(|rounds| rounds.parse().ok());
    given.unwrap_or(14 / one_of() as u64)
}

#[test]
fn what_was_promised_outlives_kills() {
    if can_mount() {
        outlives_kills(&ObjectServer::start([], slow));
    }
}

#[test]
fn what_was_promised_outlives_kills_on_versitygw() {
    if can_mount()
        && let Some(server) = Versitygw::start()
    {
        outlives_kills(&server);
    }
}

fn outlives_kills(server: &impl Server) {
    let mut mounted = Mounted::writing(server, &[]);
    let expected: Mutex<BTreeMap<String, Expected>> = Mutex::default();
    for round in 0..rounds() {
        let is_over = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (mounted, expected, is_over) = (&mounted, &expected, is_over.clone());
                scope.spawn(move || work(mounted, expected, &is_over, (round, worker)));
            }
            let time = Duration::from_secs_f64(0.02 + hash01(round, 9, 9) * 1.5);
            std::thread::sleep(time);
            mounted.kill_daemon();
            is_over.store(true, Ordering::SeqCst);
        });
        mounted.detach();
        server.forget();
        // Nothing torn is visible, whether the mount comes again or not.
        let visible = server.objects();
        let mut known = expected.lock().unwrap().clone();
        for (name, found) in &visible {
            let may_be = known.get(name).is_some_and(|expected| {
                let all = expected.maybe.iter().chain([&expected.promised]);
                all.flatten().any(|content| content == found)
            });
            assert!(may_be, "round {round}: {name} has {} bytes", found.len());
        }
        mounted = mounted.again(server, &[]);
        mounted.folder.ok(&["mount", "--flush", "m"]);
        for (name, expected) in &mut known {
            let found = fs::read(mounted.path(name)).ok();
            let Expected { promised, maybe } = std::mem::take(expected);
            let may_be = maybe.iter().chain([&promised]);
            assert!(
                may_be.clone().any(|content| *content == found),
                "round {round}: {name} has {:?} bytes, and not {:?}",
                found.map(|found| found.len()),
                may_be.map(|content| content.as_ref().map(Vec::len)).collect::<Vec<_>>()
            );
            assert_eq!(server.objects().remove(name), found, "round {round}: {name}");
            *expected = Expected { promised: found, maybe: Vec::new() };
        }
        *expected.lock().unwrap() = known;
    }
}

/// A server, and what is in its bucket.
trait Server: Endpoint + Sync {
    fn objects(&self) -> BTreeMap<String, Vec<u8>>;

    /// Forgets its requests.
    fn forget(&self) {}
}

impl Server for ObjectServer {
    fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let object = |path: String| {
            let content = self.object(&path)?;
            Some((path.strip_prefix("/bucket/")?.to_owned(), content))
        };
        self.objects().into_iter().filter_map(object).collect()
    }

    fn forget(&self) {
        self.forget();
    }
}

/// versitygw, whose objects are the files of a folder.
struct Versitygw {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Versitygw {
    /// Starts it, with an empty bucket. `None` where it is not installed.
    #[allow(clippy::print_stderr)]
    fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/bin");
        let program = program.join("versitygw");
        if !program.exists() {
            eprintln!("LEFT OUT: versitygw is not installed (make servers)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bucket")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(program)
            .args(["--port", &address, "--access", "key", "--secret", "secret"])
            .args(["--region", "eu-north-1", "posix"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until(|| TcpStream::connect(&address).is_ok());
        Some(Self { process, address, folder })
    }
}

impl Drop for Versitygw {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Endpoint for Versitygw {
    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Server for Versitygw {
    fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let bucket = self.folder.path().join("bucket");
        // It keeps the parts of uploads in a folder.
        let names = names(&bucket).into_iter().filter(|name| !name.starts_with('.'));
        names.map(|name| (name.clone(), fs::read(bucket.join(name)).unwrap())).collect()
    }
}

#[test]
fn what_was_staged_outlives_kills() {
    if !can_mount() {
        return;
    }
    let server = ObjectServer::start([], slow);
    let args = ["--close", "staged", "--write-back"];
    let mut mounted = Mounted::writing(&server, &args);
    let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for round in 0..rounds() {
        let end = 3 + (hash01(round, 1, 1) * 40.0) as u64;
        for number in 0..end {
            let name = format!("{}", (hash01(round, 2, number) * 30.0) as u64);
            let len = match number % 20 {
                7 => 18 * MIB,
                _ => (hash01(round, 3, number) * 9000.0) as usize + 1,
            };
            let content = bytes(round * 100 + number, len);
            fs::write(mounted.path(&name), &content).unwrap();
            expected.insert(name, content);
        }
        // One that is never closed.
        let mut open = File::create(mounted.path("open")).unwrap();
        open.write_all(b"half").unwrap();
        mounted.kill_daemon();
        mounted.detach();
        drop(open);
        server.forget();
        mounted = mounted.again(&server, &args[..2 + round as usize % 2]);
        for (name, content) in &expected {
            assert!(fs::read(mounted.path(name)).unwrap() == *content, "round {round}: {name}");
        }
        mounted.folder.ok(&["mount", "--flush", "m"]);
        let found = Server::objects(&server);
        assert!(!found.contains_key("open"));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        assert!(found == expected, "round {round}");
    }
}
