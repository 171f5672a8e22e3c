//! Eviction on a real file system, with and without somebody who holds the file.

use std::process::{Command, Stdio};

use super::common::{data_file, scratch};
use thalweg_gauge::cache::{EvictOptions, Hold, Method, evict, holders, residency, warm};

/// Whether pages can leave memory here at all; prints why not.
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
    assert_eq!(warm(&path).unwrap().fraction(), Some(1.0));
    let eviction = evict(&path, EvictOptions::default()).unwrap();
    assert_eq!(eviction.before.fraction(), Some(1.0));
    assert!(eviction.proved(), "{:?}", eviction.objection());
    assert_eq!(residency(&path).unwrap().pages_resident, Some(0));
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
fn whoever_has_it_open_is_named() {
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
    assert!(holders(&path).unwrap().seen.is_empty(), "and no more once it is gone");
}

#[test]
fn a_mapping_keeps_the_file_and_its_holder_is_named() {
    let dir = scratch();
    let path = data_file(&dir, "mapped", 4 << 20);
    if !evictable(&path) {
        return;
    }
    let script = "import mmap,sys\n\
                  f=open(sys.argv[1],'rb'); m=mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ); f.close()\n\
                  s=sum(m[i] for i in range(0,len(m),4096)); print('ready',flush=True); sys.stdin.read()";
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
    assert!(evict(&path, EvictOptions::default()).unwrap().proved(), "once it is gone, so are the pages");
}

#[test]
fn an_empty_file_is_neither_cold_nor_hot() {
    let dir = scratch();
    let path = data_file(&dir, "empty", 0);
    assert_eq!(residency(&path).unwrap().fraction(), None);
    assert!(!evict(&path, EvictOptions::default()).unwrap().proved());
    assert!(evict(&dir.path().join("absent"), EvictOptions::default()).is_err());
}
