//! Tests of whole comparisons of small shell workloads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_gauge::cache_level::CacheLevel;
use thalweg_gauge::comparison::{
    Arm, Clock, Comparison, ComparisonPlan, ComparisonProgress, EndReason, Trial, read, run,
};
use thalweg_gauge::limit::ProbeOptions;
use thalweg_gauge::stats::RatioFinding;

use super::common::{data_file, scratch};

/// Makes an arm that reads the file, sleeps for `seconds`, and reports `seconds` and `digest`.
fn arm(name: &str, file: &std::path::Path, seconds: f64, digest: &str) -> Arm {
    let script = format!(
        "cat \"$1\" > /dev/null; sleep {seconds}; \
         echo '{{\"open_to_last_s\":{seconds},\"digest\":\"{digest}\",\
         \"samples\":1000,\"stages\":{{\"fetch\":0.004}}}}'"
    );
    Arm::new(name, ["sh", "-c", &script, "sh", "{file}"], file)
}

fn go(plan: &ComparisonPlan) -> (Comparison, Vec<u8>) {
    let mut lines = Vec::new();
    let comparison = run(plan, &mut lines, &AtomicBool::new(false), &mut |_| {}).unwrap();
    (comparison, lines)
}

/// Repeats a run until `is_fine` accepts it, at most six times, and returns the last run. If memory
/// is short, pages leave the page cache at once, and trials are rejected.
fn repeated_until(
    plan: &ComparisonPlan,
    is_fine: impl Fn(&Comparison) -> bool,
) -> (Comparison, Vec<u8>) {
    (0..5).map(|_| go(plan)).find(|(c, _)| is_fine(c)).unwrap_or_else(|| go(plan))
}

/// Whether no trial of the first arm was rejected.
fn first_is_sound(c: &Comparison) -> bool {
    c.summaries[0].rejected == 0
}

fn lines_of(comparison: &Comparison) -> usize {
    comparison.trials.len() + 2 // the session and the last line
}

#[test]
fn a_hot_comparison_finds_the_faster_arm_and_reads_back_the_same() {
    let dir = scratch();
    let file = data_file(&dir, "f", 2 << 20);
    let arms = vec![
        arm("slow", &file, 0.03, "d").level(CacheLevel::Hot),
        arm("fast", &file, 0.01, "d").level(CacheLevel::Hot),
    ];
    let plan = ComparisonPlan::new("hot", arms).rounds(6);
    let (c, lines) = repeated_until(&plan, |c| c.trials.iter().all(|t| t.rejected.is_none()));
    assert_eq!(c.session.clock, Clock::TimeToSamples);
    assert!(c.refused.is_none() && !c.stopped());
    let rejected: Vec<_> = c.trials.iter().filter_map(|t| t.rejected.as_ref()).collect();
    assert_eq!(c.trials.len(), 3 + 18, "warm-ups, and a control arm; rejected: {rejected:?}");
    let fast = &c.summaries[1];
    assert_eq!(
        (fast.level, fast.trials, fast.finding),
        (Some(CacheLevel::Hot), 6, Some(RatioFinding::Faster))
    );
    assert!((fast.ratio.unwrap().median - 1.0 / 3.0).abs() < 1e-9);
    assert!(c.noise.is_some());
    assert_eq!(fast.stages[0].name, "fetch");

    let path = dir.path().join("results.jsonl");
    std::fs::write(&path, &lines).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), lines_of(&c));
    let back = read(&path).unwrap();
    assert_eq!(back.len(), 1);
    assert!(back[0].trials == c.trials, "the trials changed on their way through the file");
    assert!(back[0].session == c.session, "so did the session");
    assert_eq!(back[0].summaries, c.summaries);
    assert!(!back[0].stopped());

    // If the machine stops in the middle of a line, only that line is lost.
    let cut = text.trim_end().rsplit_once('\n').unwrap().0;
    std::fs::write(&path, &cut[..cut.len() - 10]).unwrap();
    let back = read(&path).unwrap();
    assert_eq!(back[0].trials.len(), c.trials.len() - 1);
    assert!(back[0].stopped() && back[0].summaries[1].finding.is_none());
}

#[test]
fn different_values_are_refused_at_once() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let arms = vec![arm("a", &file, 0.01, "one"), arm("b", &file, 0.01, "two")];
    let (c, _) = go(&ComparisonPlan::new("refused", arms));
    let why = c.refused.clone().unwrap();
    assert!(why.contains("one") && why.contains("two"), "{why}");
    assert_eq!(c.trials.len(), 2, "the warm-ups showed it");
    let report = thalweg_gauge::report::text(&c, None);
    assert!(report.contains("REFUSED") && !report.contains("faster"), "{report}");
    assert!(c.summaries.iter().all(|s| s.ratio.is_none()));
}

#[test]
fn cold_trials_prove_their_bytes_and_cheats_are_rejected() {
    let dir = scratch();
    let file = data_file(&dir, "f", 4 << 20);
    let honest = arm("honest", &file, 0.01, "d");
    let mut cheat = arm("cheat", &file, 0.01, "d");
    cheat.workload.argv[2] =
        cheat.workload.argv[2].replace("cat \"$1\" > /dev/null", "head -c 9000 \"$1\" >/dev/null");
    let plan = ComparisonPlan {
        retries: 1,
        ..ComparisonPlan::new("cold", vec![honest, cheat]).rounds(2).control(false)
    };
    let (c, _) = repeated_until(&plan, first_is_sound);
    let first = c.trials.iter().find(|t| t.round.is_some()).unwrap();
    if first.level != Some(CacheLevel::Cold) {
        eprintln!("skipped: cold can't be verified here: {:?} {:?}", first.level, first.rejected);
        return;
    }
    assert_eq!((c.summaries[0].trials, c.summaries[0].rejected), (2, 0));
    assert_eq!(
        (c.summaries[1].trials, c.summaries[1].rejected),
        (0, 4),
        "each round and its retry"
    );
    assert!(
        c.trials
            .iter()
            .filter_map(|t| t.rejected.as_ref())
            .all(|why| why.contains("came from the device"))
    );
    assert!(c.summaries[1].ratio.is_none());
}

#[test]
fn a_store_is_as_cold_as_all_of_its_files() {
    let dir = scratch();
    let store = dir.path().join("store");
    std::fs::create_dir_all(store.join("segments")).unwrap();
    for (name, len) in [("log", 1 << 20), ("segments/0", 3 << 20), ("segments/1", 2 << 20)] {
        std::fs::rename(data_file(&dir, "f", len), store.join(name)).unwrap();
    }
    std::fs::write(store.join("LOCK"), "").unwrap();
    let reads = |name: &str, what: &str| {
        let mut arm = arm(name, &store, 0.01, "d");
        arm.workload.argv[2] = arm.workload.argv[2].replace("cat \"$1\"", &format!("cat {what}"));
        arm
    };
    let (all, part) =
        (reads("all", "\"$1\"/log \"$1\"/segments/*"), reads("part", "\"$1\"/segments/*"));
    let plan = ComparisonPlan {
        retries: 0,
        ..ComparisonPlan::new("store", vec![all.clone(), part]).rounds(2).control(false)
    };
    let (c, _) = repeated_until(&plan, first_is_sound);
    assert_eq!(c.session.places[0].bytes, 6 << 20, "all of its files");
    let first = c.trials.iter().find(|t| t.round.is_some()).unwrap();
    assert_eq!(first.prepared.as_ref().unwrap().evictions.len(), 4);
    if first.level == Some(CacheLevel::Cold) {
        assert_eq!((c.summaries[0].trials, c.summaries[0].rejected), (2, 0));
        assert_eq!((c.summaries[1].trials, c.summaries[1].rejected), (0, 2), "a file was left out");
    } else {
        eprintln!("skipped: cold can't be verified here: {:?} {:?}", first.level, first.rejected);
    }
    let quick =
        ProbeOptions { window: Duration::from_millis(10), windows: 1, ..ProbeOptions::default() };
    let hot = ComparisonPlan::new("hot", vec![all.level(CacheLevel::Hot)])
        .rounds(1)
        .control(false)
        .probe(quick);
    let (c, _) = repeated_until(&hot, first_is_sound);
    assert_eq!(c.summaries[0].trials, 1, "{:?}", c.trials);
    assert_eq!(c.probes[0].file, store.display().to_string());
}

#[test]
fn an_arm_that_fails_is_out_and_the_others_go_on() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let works = arm("works", &file, 0.01, "d").level(CacheLevel::Lukewarm);
    let breaks = Arm::new("breaks", ["sh", "-c", "echo broken >&2; exit 1"], &file);
    let mute = Arm::new("mute", ["true"], &file);
    let liar = Arm::new("liar", ["echo", "{\"open_to_last_s\":1000,\"digest\":\"d\"}"], &file);
    let (c, _) = go(&ComparisonPlan::new("failing", vec![works, breaks, mute, liar])
        .rounds(2)
        .control(false));
    assert_eq!(c.summaries[0].trials, 2);
    assert!(c.any_failed());
    for (i, word) in [(1, "broken"), (2, "open_to_last_s"), (3, "1000")] {
        assert!(
            c.summaries[i].failed.as_ref().unwrap().contains(word),
            "{:?}",
            c.summaries[i].failed
        );
    }
    assert_eq!(c.trials.len(), 4 + 2, "removed arms run no rounds");
}

#[test]
fn foreign_commands_are_timed_by_the_wall() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let cat = |name: &str| {
        Arm::new(name, ["cat", "{file}"], &file).level(CacheLevel::Lukewarm).without_report()
    };
    let (c, _) =
        go(&ComparisonPlan::new("foreign", vec![cat("x"), cat("y")]).rounds(2).control(false));
    assert_eq!(c.session.clock, Clock::Wall);
    assert_eq!(c.summaries[1].finding, Some(RatioFinding::TooFewPairs));
    assert!(c.summaries[1].time_s.is_some());
}

#[test]
fn arms_that_decode_nothing_need_no_digest() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let decodes = arm("decodes", &file, 0.004, "d").level(CacheLevel::Lukewarm);
    let report = "cat \"$0\" > /dev/null; echo '{\"open_to_last_s\":1e-6}'";
    let mut device =
        Arm::new("device", ["sh", "-c", report, "{file}"], &file).level(CacheLevel::Lukewarm);
    device.values = Some(Arm::NO_VALUES.into());
    let (c, _) = go(&ComparisonPlan::new("device", vec![decodes, device]).rounds(2).control(false));
    assert_eq!((c.refused.as_ref(), c.session.clock), (None, Clock::TimeToSamples));
    assert_eq!((c.summaries[1].trials, c.summaries[1].failed.as_ref()), (2, None));
}

#[test]
fn a_stop_keeps_what_has_finished() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let stop = AtomicBool::new(false);
    let mut lines = Vec::new();
    let plan =
        ComparisonPlan::new("stopped", vec![arm("a", &file, 0.01, "d").level(CacheLevel::Hot)])
            .control(false)
            .rounds(50);
    let mut finished: Vec<Trial> = Vec::new();
    let c = run(&plan, &mut lines, &stop, &mut |p| {
        if let ComparisonProgress::Finished(trial) = p {
            finished.push(trial.clone());
            stop.store(finished.len() == 4, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!((c.ended, c.look), (EndReason::Stopped, None));
    assert_eq!(c.trials, finished);
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 1 + 4);
}

#[test]
fn the_limit_is_probed_in_the_same_session() {
    let dir = scratch();
    let file = data_file(&dir, "f", 8 << 20);
    let quick = ProbeOptions {
        blocks: vec![128 << 10, 1 << 20],
        depths: vec![1, 4],
        window: Duration::from_millis(10),
        windows: 3,
        single_stream_bytes: 8 << 20,
        throttle: None,
    };
    let mut a = arm("a", &file, 0.05, "d");
    a.sample_bytes = Some(2);
    let (c, lines) =
        go(&ComparisonPlan::new("limit", vec![a]).rounds(1).control(false).probe(quick));
    let probe = &c.probes[0];
    assert_eq!(probe.points.len(), 6, "two by two in order, two scattered");
    assert!(probe.best().unwrap().bytes_per_s > 0.0 && probe.requests_per_s().unwrap() > 0.0);
    assert!(probe.memory_bytes_per_s().unwrap() > 1e6);
    assert!(probe.points.iter().all(|p| p.windows.len() == 3));
    let s = &c.summaries[0];
    if s.trials == 1 {
        assert_eq!(s.decoded_bytes, Some(2000));
        assert!(s.limit.unwrap().device_s.unwrap() > 0.0);
        assert!(s.fraction_of_floor.unwrap() > 0.0 && s.verdict.is_some());
    }
    assert!(String::from_utf8(lines).unwrap().contains("thalweg.limit/1"));
}

#[test]
fn senseless_plans_are_refused() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1);
    let refuses = |plan: &ComparisonPlan| {
        run(plan, &mut Vec::new(), &AtomicBool::new(false), &mut |_| {}).is_err()
    };
    assert!(refuses(&ComparisonPlan::new("none", Vec::new())));
    assert!(refuses(&ComparisonPlan::new(
        "twice",
        vec![arm("a", &file, 0.0, "d"), arm("a", &file, 0.0, "d")]
    )));
    assert!(refuses(&ComparisonPlan::new("no rounds", vec![arm("a", &file, 0.0, "d")]).rounds(0)));
    assert!(refuses(&ComparisonPlan::new(
        "no file",
        vec![arm("a", &dir.path().join("absent"), 0.0, "d")]
    )));
}

/// A peer that misbehaves in any way is removed with the reason, and the other arms continue.
#[test]
fn failing_peers_are_left_out_and_reported() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let peer = |name: &str, script: &str| Arm::new(name, ["sh", "-c", script], &file);
    let arms = vec![
        arm("works", &file, 0.01, "d").level(CacheLevel::Lukewarm),
        peer("crashes", "ulimit -c 0; kill -SEGV $$"),
        peer("hangs", "sleep 60").timeout(Duration::from_millis(300)),
        peer("garbage", "head -c 5000 /dev/urandom"),
        peer("no digest", "echo '{\"open_to_last_s\":0.0001}'"),
        peer("negative", "echo '{\"open_to_last_s\":-1,\"digest\":\"d\"}'"),
        peer("absent", "no-such-program-here"),
    ];
    let (c, _) = go(&ComparisonPlan::new("bad peers", arms).rounds(2).control(false));
    assert_eq!((c.summaries[0].trials, c.refused.as_ref()), (2, None));
    let words = [
        "killed by",
        "still running after 0.3 s",
        "open_to_last_s",
        "digest",
        "-1",
        "exit status 127",
    ];
    for (summary, word) in c.summaries.iter().skip(1).zip(words) {
        let told = summary.failed.clone().unwrap_or_default();
        assert!(
            told.contains(word) && summary.time_s.is_none() && summary.ratio.is_none(),
            "{}: {told}",
            summary.arm
        );
    }
    assert_eq!(c.trials.len(), 7 + 2);
}
