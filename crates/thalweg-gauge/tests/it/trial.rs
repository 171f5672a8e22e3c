//! Tests of trials of real processes: their resources, their reports, and how they end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_gauge::cache::{EvictOptions, evict};
use thalweg_gauge::trial::run;
use thalweg_gauge::workload::Workload;
use thalweg_gauge::{Error, Result};

use super::common::{data_file, scratch};

/// A test that takes longer than this has waited for a process that should be killed. Such
/// processes sleep longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The number of attempts at a check that the system can spoil by evicting pages.
const ATTEMPTS: usize = 10;

fn sh(script: &str) -> Workload {
    Workload::new(["sh", "-c", script])
}

fn go(workload: &Workload) -> Result<thalweg_gauge::trial::Outcome> {
    run(workload, &AtomicBool::new(false))
}

#[test]
fn a_report_is_read_and_the_clock_runs() {
    let start = Instant::now();
    let outcome = go(&sh(
        "echo noise; echo '{\"open_to_last_s\":0.1,\"digest\":\"d\",\"x\":1}'; sleep 0.2; echo end",
    ))
    .unwrap();
    let report = outcome.report.unwrap();
    assert_eq!(report.digest.as_deref(), Some("d"));
    assert!(report.other.contains_key("x"));
    let most = start.elapsed().as_secs_f64();
    assert!((0.2..=most).contains(&outcome.usage.wall_s), "{}", outcome.usage.wall_s);
    assert!(outcome.usage.memory_samples > 0);
}

#[test]
fn cpu_of_children_counts() {
    let outcome =
        go(&sh("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true")).unwrap();
    assert!(outcome.usage.cpu_s() > 0.02, "{:?}", outcome.usage);
    assert!(outcome.usage.user_s > 0.0);
}

#[test]
fn failures_are_reported_with_the_output_of_the_command() {
    let Err(Error::Failed { how, stderr, .. }) = go(&sh("echo why >&2; exit 3")) else {
        panic!("not a failure")
    };
    assert_eq!((how.as_str(), stderr.trim()), ("exit status 3", "why"));
    let Err(Error::Failed { how, .. }) = go(&sh("kill -9 $$")) else { panic!("not a failure") };
    assert!(how.contains('9'), "{how}");
    assert!(matches!(go(&Workload::new(["/no/such/program"])), Err(Error::Io { .. })));
    assert!(matches!(go(&Workload::new(Vec::<String>::new())), Err(Error::Usage(_))));
    assert!(matches!(go(&sh("echo '{\"digest\":3}'")), Err(Error::Report { .. })));
}

#[test]
fn a_command_that_runs_too_long_is_killed_with_its_children() {
    let mut w = sh("sleep 900 & sleep 900");
    w.timeout_s = Some(0.1);
    let start = Instant::now();
    assert!(matches!(go(&w), Err(Error::TimedOut { .. })));
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_stop_kills_the_running_trial() {
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(run(&sh("sleep 900"), &stop), Err(Error::Cancelled)));
    });
    assert!(start.elapsed() < PATIENCE);
    assert!(matches!(run(&sh("true"), &stop), Err(Error::Cancelled)));
}

#[test]
fn a_child_with_much_output_does_not_block() {
    let outcome = go(&sh("yes | head -c 20000000; echo; echo '{\"digest\":\"d\"}'")).unwrap();
    assert_eq!(outcome.report.unwrap().digest.as_deref(), Some("d"));
}

#[test]
fn a_pinned_child_sees_only_its_cpus_and_the_parent_keeps_its_own() {
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..1024).find(|&i| before.is_set(i)).unwrap();
    let mut w = sh("grep Cpus_allowed_list /proc/self/status >&2");
    w.cpus = Some(vec![first]);
    assert_eq!(go(&w).unwrap().stderr.split_whitespace().last(), Some(first.to_string().as_str()));
    assert_eq!(rustix::thread::sched_getaffinity(None).unwrap().count(), before.count());
    w.cpus = Some(vec![1023]);
    assert!(matches!(go(&w), Err(Error::Usage(_))));
}

#[test]
fn device_bytes_are_those_of_the_child_and_its_children() {
    let dir = scratch();
    let path = data_file(&dir, "cold", 8 << 20);
    let eviction = evict(&path, EvictOptions::default()).unwrap();
    if !eviction.proved() {
        eprintln!("skipped: {:?}", eviction.objection());
        return;
    }
    let cat = sh(&format!("cat '{}' > /dev/null; true", path.display()));
    let Some(cold) = go(&cat).unwrap().usage.device_read_bytes else {
        eprintln!("skipped: this system does not account device bytes");
        return;
    };
    assert!(cold >= 8 << 20, "{cold}");
    // If memory is short, the file and the program may be read from the device again.
    let warm = || go(&cat).unwrap().usage.device_read_bytes.unwrap();
    assert!((0..ATTEMPTS).any(|_| warm() < 1 << 20), "it is never warm");
}

/// The accounts of a zombie belong to root. The accounts of this process are no substitute, because
/// they include other children that run at the same time.
#[test]
fn device_bytes_of_others_do_not_count() {
    let dir = scratch();
    let path = data_file(&dir, "of another", 8 << 20);
    let begun = dir.path().join("begun");
    let ended = dir.path().join("ended");
    // This process starts before the other one and ends after it, even on a slow machine.
    let waits = format!(
        "touch '{}'; until test -e '{}'; do sleep 0.01; done",
        begun.display(),
        ended.display()
    );
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        if !evict(&path, EvictOptions::default()).unwrap().proved() {
            eprintln!("skipped: the file can't be evicted");
            return;
        }
        let quiet = std::thread::scope(|s| {
            let quiet = s.spawn(|| go(&sh(&waits)).unwrap());
            while !begun.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            go(&sh(&format!("cat '{}' > /dev/null; true", path.display()))).unwrap();
            std::fs::write(&ended, "").unwrap();
            quiet.join().unwrap()
        });
        // If memory is short, the quiet process may be loaded from the device again, but not in
        // every attempt.
        if quiet.usage.device_read_bytes.is_none_or(|b| b < 1 << 20) {
            return;
        }
        seen.push(quiet.usage.device_read_bytes);
        std::fs::remove_file(&begun).unwrap();
        std::fs::remove_file(&ended).unwrap();
    }
    panic!("{seen:?}");
}

/// Linux reports the memory of the parent process as the peak of a process if it is larger.
#[test]
fn memory_of_the_parent_is_not_the_childs() {
    let large = vec![1_u8; 256 << 20];
    std::hint::black_box(&large);
    // On a busy machine, a short process may end before its first sample.
    let seen = |seconds: f64| go(&sh(&format!("sleep {seconds}"))).unwrap().usage;
    let seconds = [0.05, 0.2, 1.0, 5.0, 20.0];
    let usage = seconds.into_iter().map(seen).find(|usage| usage.peak_anon_bytes.is_some());
    let usage = usage.unwrap();
    assert!(usage.max_rss_bytes.is_none_or(|b| b < 64 << 20), "{usage:?}");
    assert!(usage.peak_anon_bytes.is_some_and(|b| b < 64 << 20), "{usage:?}");
}

#[test]
fn a_killed_grandchild_is_reported() {
    let Err(Error::Failed { how, .. }) = go(&sh("sh -c 'kill -9 $$'; exit $?")) else {
        panic!("not a failure")
    };
    assert!(how.contains("exit status 137") && how.contains("killed by signal 9"), "{how}");
}

/// A process that leaves the group escapes the kill, but the next trial must not wait for its
/// output.
#[test]
fn a_detached_child_that_holds_the_pipe_is_not_awaited() {
    let dir = scratch();
    let stop = dir.path().join("stop");
    let runs_away =
        format!("setsid sh -c 'until test -e \"$0\"; do sleep 0.2; done' '{}' &", stop.display());
    let (done, told) = std::sync::mpsc::channel();
    let outcome = std::thread::scope(|s| {
        s.spawn(|| {
            let outcome = go(&sh(&format!("{runs_away} echo '{{\"digest\":\"d\"}}'")));
            let _ = done.send(outcome);
        });
        let came = told.recv_timeout(PATIENCE);
        std::fs::write(&stop, "").unwrap();
        came
    });
    assert!(outcome.is_ok(), "the run waited for the process");
    let outcome = outcome.unwrap().unwrap();
    assert_eq!(outcome.report.unwrap().digest.as_deref(), Some("d"));
}

#[test]
fn garbage_is_no_report_and_no_crash() {
    for script in [
        "head -c 100000 /dev/urandom",
        "printf '{\"digest\":'",
        "printf '\\377\\376{}\\n'",
        "echo '[1,2,3]'; echo 'null'",
        "yes '{\"digest\":\"d\"' | head -c 9000000",
        // Data of its own, which has a field of a report by chance.
        "echo '{\"version\":3}'",
        "echo '{\"samples\":[1]}'",
    ] {
        assert_eq!(go(&sh(script)).unwrap().report, None, "{script}");
    }
    for script in [
        "echo '{\"open_to_last_s\":\"soon\"}'",
        "echo '{\"digest\":\"d\",\"samples\":-1}'",
        "echo '{\"digest\":\"d\",\"requests\":1.5}'",
    ] {
        let told = go(&sh(script));
        assert!(matches!(told, Err(Error::Report { .. })), "{script}: {told:?}");
    }
}
