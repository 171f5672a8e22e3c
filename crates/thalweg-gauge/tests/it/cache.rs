//! Tests of eviction on a real file system, with and without a process that holds the file.

use std::process::{Command, Stdio};

use thalweg_gauge::cache::{EvictOptions, Hold, Method, evict, holders, residency, warm};

use super::common::{data_file, scratch};

/// The number of attempts to bring a file into memory. If memory is short, pages may leave at once.
const ATTEMPTS: usize = 10;

/// Whether pages of `path` can be evicted. If not, prints the reason.
fn evictable(path: &std::path::Path) -> bool {
    let kind = thalweg_gauge::host::place(path).map(|p| p.file_system).unwrap_or_default();
    if matches!(kind.as_str(), "tmpfs" | "ramfs") {
        eprintln!("skipped: the scratch folder is a {kind}, whose pages have nowhere to go");
        return false;
    }
    if let Method::Unknown(why) = residency(path).unwrap().method {
        eprintln!("skipped: {why}");
        return false;
    }
    true
}

#[test]
fn a_warm_file_is_evicted_and_the_proof_is_seen() {
    let dir = scratch();
    let path = data_file(&dir, "f", 8 << 20);
    if !evictable(&path) {
        return;
    }
    let evictions = (0..ATTEMPTS).map(|_| {
        let warm = warm(&path).unwrap().fraction();
        let eviction = evict(&path, EvictOptions::default()).unwrap();
        assert!(eviction.proved(), "{:?}", eviction.objection());
        assert_eq!(residency(&path).unwrap().pages_resident, Some(0));
        (warm, eviction.before.fraction())
    });
    let whole = (Some(1.0), Some(1.0));
    let seen: Vec<_> = evictions.take_while(|seen| *seen != whole).collect();
    assert!(seen.len() < ATTEMPTS, "never warm: {seen:?}");
}

#[test]
fn dirty_pages_are_written_before_they_are_evicted() {
    let dir = scratch();
    let path = dir.path().join("fresh");
    std::fs::write(&path, vec![3; 4 << 20]).unwrap();
    if evictable(&path) {
        let eviction = evict(&path, EvictOptions::default()).unwrap();
        assert!(eviction.proved(), "{:?}", eviction.objection());
    }
}

#[test]
fn processes_that_hold_the_file_are_named() {
    let dir = scratch();
    let path = data_file(&dir, "held open", 1 << 20);
    let mut child = Command::new("sleep")
        .arg("60")
        .stdin(std::fs::File::open(&path).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let found = holders(&path).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let holder = found.seen.iter().find(|h| h.pid == child.id()).unwrap();
    assert_eq!((holder.hold, holder.command.as_str()), (Hold::Open, "sleep"));
    assert!(holders(&path).unwrap().seen.is_empty(), "the process is gone");
}

#[test]
fn a_mapping_keeps_the_file_and_its_holder_is_named() {
    let dir = scratch();
    let path = data_file(&dir, "mapped", 4 << 20);
    if !evictable(&path) {
        return;
    }
    let script = "import mmap,sys\n\
                  f=open(sys.argv[1],'rb')\n\
                  m=mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ); f.close()\n\
                  s=sum(m[i] for i in range(0,len(m),4096))\n\
                  print('ready',flush=True); sys.stdin.read()";
    let spawned = Command::new("python3")
        .args(["-c", script])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped: no python3 to map the file with");
        return;
    };
    let mut ready = [0; 6];
    let seen = std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready);
    let eviction = evict(&path, EvictOptions::default());
    drop(child.stdin.take());
    child.wait().unwrap();
    if seen.is_err() {
        eprintln!("skipped: python3 could not map the file");
        return;
    }
    let eviction = eviction.unwrap();
    assert!(!eviction.proved());
    let holder = eviction.holders.seen.iter().find(|h| h.pid == child.id()).unwrap();
    assert_eq!(holder.hold, Hold::Mapped);
    let why = eviction.objection().unwrap();
    assert!(why.contains("python") && why.contains(&child.id().to_string()), "{why}");
    assert!(
        evict(&path, EvictOptions::default()).unwrap().proved(),
        "the pages can be evicted once the process is gone"
    );
}

#[test]
fn an_empty_file_has_no_share_and_nothing_to_evict() {
    let dir = scratch();
    let path = data_file(&dir, "empty", 0);
    assert_eq!(residency(&path).unwrap().fraction(), None);
    assert!(evict(&path, EvictOptions::default()).unwrap().proved());
    assert!(evict(&dir.path().join("absent"), EvictOptions::default()).is_err());
}

/// A mount that lasts as long as a test. Without the right to mount, there is none.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(kind: &str, options: &str, at: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", kind, kind, "-o", options])
            .arg(&at)
            .stderr(Stdio::null())
            .status();
        if !mount.is_ok_and(|status| status.success()) {
            eprintln!("skipped: {kind} can't be mounted here");
            return None;
        }
        Some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// The cached pages of an overlay belong to the file beneath it. For the overlay itself, the kernel
/// counts no pages.
#[test]
fn a_cached_file_of_a_container_is_not_called_cold() {
    let dir = scratch();
    for name in ["lower", "upper", "work"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let at = |name: &str| dir.path().join(name).display().to_string();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
    std::fs::copy(data_file(&dir, "f", 4 << 20), dir.path().join("lower/f")).unwrap();
    let Some(overlay) = Mounted::new("overlay", &options, dir.path().join("merged")) else {
        return;
    };
    let path = overlay.0.join("f");
    let is_warm = |_| {
        let warm = warm(&path).unwrap();
        assert_ne!(warm.method, Method::Cachestat);
        warm.fraction().is_none_or(|f| f == 1.0)
    };
    assert!((0..ATTEMPTS).any(is_warm), "never warm");
    let eviction = evict(&path, EvictOptions::default()).unwrap();
    assert_eq!(eviction.proved(), eviction.after.pages_resident == Some(0), "{eviction:?}");
}

#[test]
fn a_file_in_memory_is_told_to_stay_there() {
    let dir = scratch();
    let Some(memory) = Mounted::new("tmpfs", "size=4m", dir.path().join("memory")) else { return };
    let path = memory.0.join("f");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let prepared = thalweg_gauge::cache_level::prepare(
        thalweg_gauge::cache_level::CacheLevel::Cold,
        std::slice::from_ref(&path),
        EvictOptions::default(),
    );
    let objection = prepared.unwrap().objection.unwrap();
    assert!(objection.contains("tmpfs keeps everything in memory"), "{objection}");
}

/// If there is no space for the results, the run ends with an error that says so, and not with a
/// silently truncated line.
#[test]
fn a_full_disk_is_reported() {
    use thalweg_gauge::comparison::{Arm, ComparisonPlan, run};
    let dir = scratch();
    let Some(full) = Mounted::new("tmpfs", "size=64k", dir.path().join("full")) else { return };
    let filler = std::fs::write(full.0.join("filler"), vec![0; 1 << 20]);
    assert!(filler.is_err());
    let file = data_file(&dir, "f", 1 << 16);
    let mut out = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(full.0.join("results.jsonl"))
        .unwrap();
    let plan = ComparisonPlan::new("full", vec![Arm::new("a", ["true"], &file).without_report()]);
    let error = run(&plan, &mut out, &std::sync::atomic::AtomicBool::new(false), &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("results: writing") && error.contains("No space left"), "{error}");
    // A workload whose own disk is full fails, and the error has its message.
    let writes = format!("dd if=/dev/zero of={}/out bs=64k count=4", full.0.display());
    let outcome = thalweg_gauge::trial::run(
        &thalweg_gauge::workload::Workload::new(["sh", "-c", &writes]),
        &std::sync::atomic::AtomicBool::new(false),
    );
    assert!(outcome.unwrap_err().to_string().contains("No space left"));
}
