//! Makes each stage the slowest in turn. The verdict must name it, and the runs without a stage
//! must confirm it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "a part of it is for the other tests")]
#[path = "it/common.rs"]
mod common;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_gauge::cache_level::CacheLevel;
use thalweg_gauge::comparison::{Arm, Comparison, ComparisonPlan, Counterfactuals, run};
use thalweg_gauge::limit::{ProbeOptions, Term};
use thalweg_gauge::verdict::Verdict;

use common::Folder;

/// Only one of these tests runs at a time, because each measures the whole machine.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder with a file of about 5 MB and 100 reads. Reading it takes about 20 ms if nothing is
/// slowed down.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.synth("a.blow5", "6M");
    folder
}

/// Measures `thalweg read` on a hot file without a peer. The probe has the same throttle as the
/// store.
fn measure(folder: &Folder, args: &[&str], throttle: Option<&str>) -> Comparison {
    let _alone = alone();
    let command = [&[env!("CARGO_BIN_EXE_thalweg"), "read", "{file}", "--json"], args].concat();
    let mut arm = Arm::new("thalweg", command, folder.path("a.blow5"))
        .level(CacheLevel::Hot)
        .timeout(Duration::from_secs(600))
        .env("XDG_CACHE_HOME", folder.path("cache").to_str().unwrap())
        .counterfactuals(Counterfactuals::of_thalweg());
    arm.sample_bytes = Some(2);
    let probe = ProbeOptions {
        blocks: vec![1 << 20],
        depths: vec![1, 4],
        window: Duration::from_millis(100),
        windows: 2,
        single_stream_bytes: 0,
        throttle: throttle.map(|limits| limits.parse().unwrap()),
    };
    let plan = ComparisonPlan::new("verdict", vec![arm]).rounds(3).control(false).probe(probe);
    let measured = || run(&plan, &mut Vec::new(), &AtomicBool::new(false), &mut |_| {}).unwrap();
    // If memory is short, the system may evict pages that were just read. A hot trial is then
    // correctly rejected.
    let mut found = measured();
    for _ in 0..2 {
        if found.trials.iter().all(|trial| trial.rejected.is_none()) {
            break;
        }
        found = measured();
    }
    found
}

/// The first of up to five verdicts that names the term and is confirmed. On a busy machine, other
/// load may slow one stage more than another, but not every time.
fn settled(measured: impl Fn() -> Verdict, term: Term) -> Verdict {
    let is_named = |found: &Verdict| (found.term, found.confirmed) == (Some(term), Some(true));
    (0..4).map(|_| measured()).find(is_named).unwrap_or_else(&measured)
}

fn throttled(folder: &Folder, limits: &str, args: &[&str]) -> Verdict {
    verdict(&measure(folder, &[&["--throttle", limits], args].concat(), Some(limits)))
}

#[track_caller]
fn verdict(c: &Comparison) -> Verdict {
    let told: Vec<_> =
        c.trials.iter().filter_map(|t| t.failed.as_ref().or(t.rejected.as_ref())).collect();
    assert!(told.is_empty(), "{told:?}");
    assert!(c.refused.is_none(), "{:?}", c.refused);
    assert_eq!(
        c.trials.len(),
        1 + 2 * 3 + 3,
        "the warm-up, three of each without a stage, three rounds"
    );
    assert_eq!(c.trials.iter().filter(|t| t.role.is_some()).count(), 6);
    assert_eq!(c.summaries[0].trials, 3, "those without a stage are not averaged in");
    c.summaries[0].bottleneck.clone().unwrap()
}

#[track_caller]
fn names(verdict: &Verdict, term: Term, words: &str) {
    assert_eq!((verdict.term, verdict.confirmed), (Some(term), Some(true)), "{verdict:?}");
    assert!(
        verdict.words.contains(words) && verdict.words.contains("; confirmed: "),
        "{verdict:?}"
    );
    assert!(verdict.without.store_s.is_some() && verdict.without.decoding_s.is_some());
}

#[test]
fn a_narrow_store_is_named() {
    let folder = folder();
    let limits = "bandwidth=10MB/s";
    // The store is throttled so that the read takes 0.5 s. The work alone takes a twentieth of
    // that, and on a busy machine a fifth.
    let is_held = |found: &Verdict| found.fraction.is_some_and(|f| f > 0.6);
    let measured = || settled(|| throttled(&folder, limits, &[]), Term::Device);
    let found = (0..4).map(|_| measured()).find(is_held).unwrap_or_else(measured);
    names(&found, Term::Device, "the store's bandwidth");
    assert!(is_held(&found), "{found:?}");
}

#[test]
fn a_store_that_answers_few_requests_is_named() {
    // A small memory budget makes small requests, 17 of them.
    let folder = folder();
    let measured = || throttled(&folder, "requests=60/s", &["--memory", "4MiB"]);
    let found = settled(measured, Term::Requests);
    names(&found, Term::Requests, "the store's request rate");
}

#[test]
fn a_store_with_high_latency_is_named() {
    let folder = folder();
    let rows = folder.ok(&["read", "a.blow5", "--digest"]);
    let ids: Vec<&str> = rows.lines().filter_map(|row| row.split('\t').next()).collect();
    std::fs::write(folder.path("ids"), ids.join("\n")).unwrap();
    let list = folder.path("ids");
    let args = ["--ids", list.to_str().unwrap(), "--one-by-one"];
    let found = settled(|| throttled(&folder, "latency=10ms", &args), Term::Latency);
    names(&found, Term::Latency, "waiting for one request after the other");
    assert!(found.words.contains(&format!("{} of them at ", ids.len() + 1)), "{}", found.words);
}

#[test]
fn decoding_is_named_when_nothing_else_is_slow() {
    let folder = Folder::new();
    folder.ok(&["synth", "a.blow5", "--samples", "24M", "--record", "zlib"]);
    let found = settled(|| verdict(&measure(&folder, &["--threads", "1"], None)), Term::Decode);
    names(&found, Term::Decode, "decoding");
}

#[test]
fn a_slow_consumer_is_named() {
    let folder = folder();
    let measured = || verdict(&measure(&folder, &["--consumer-ns", "100"], None));
    let found = settled(measured, Term::Consumer);
    names(&found, Term::Consumer, "the consumer");
}

#[test]
fn the_limit_of_another_store_is_no_limit() {
    // The probe is throttled, but the work is not.
    let found = verdict(&measure(&folder(), &["--consumer-ns", "20"], Some("bandwidth=20MB/s")));
    assert_eq!((found.term, found.confirmed), (None, None), "{found:?}");
    for words in ["no limit known", "it is the work on the bytes: "] {
        assert!(found.words.contains(words), "{found:?}");
    }
}
