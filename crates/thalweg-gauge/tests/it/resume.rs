//! Tests of runs that were killed, stopped or ran out of time, and are resumed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_gauge::cache_level::CacheLevel;
use thalweg_gauge::comparison::{
    Arm, Comparison, ComparisonPlan, ComparisonProgress, EndReason, Flag, PairCount, read, reopen,
    run,
};
use thalweg_gauge::limit::ProbeOptions;
use thalweg_gauge::stats::RatioFinding;

use super::common::{data_file, scratch};

/// The time after which a hang fails a test. Trials that should be stopped sleep longer than this.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes an arm that reports `seconds`, whatever time it takes.
fn arm(name: &str, file: &Path, seconds: f64) -> Arm {
    let script = format!("sleep 0.004; echo '{{\"open_to_last_s\":{seconds},\"digest\":\"d\"}}'");
    Arm::new(name, ["sh", "-c", &script], file).level(CacheLevel::Lukewarm)
}

/// Runs each of `plans`, and continues the comparisons that `results` already has.
fn go(
    plans: &[ComparisonPlan],
    results: &Path,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ComparisonProgress<'_>),
) -> Vec<Comparison> {
    let (mut out, earlier) = reopen(results).unwrap();
    let resumed = |plan: &ComparisonPlan| match earlier.iter().find(|e| e.session.name == plan.name)
    {
        Some(earlier) => plan.clone().resume(earlier.clone()),
        None => plan.clone(),
    };
    plans.iter().map(|plan| run(&resumed(plan), &mut out, stop, progress).unwrap()).collect()
}

fn quietly(plans: &[ComparisonPlan], results: &Path) -> Vec<Comparison> {
    go(plans, results, &AtomicBool::new(false), &mut |_| {})
}

/// Makes two comparisons of five arms and five rounds each: 50 trials, and 10 warm-ups.
fn fifty(file: &Path) -> Vec<ComparisonPlan> {
    let arms: Vec<Arm> = ["a", "b", "c", "d", "e"]
        .map(|name| {
            let mut arm = arm(name, file, 0.001);
            arm.workload.argv[2].insert_str(0, &format!("echo {name} >> {}.log; ", file.display()));
            arm
        })
        .into();
    let plan = |name| ComparisonPlan::new(name, arms.clone()).rounds(5).control(false);
    vec![plan("one"), plan("two")]
}

/// Not a test: the process that `kill_9_loses_nothing_and_repeats_nothing` starts and kills.
#[test]
#[ignore = "a part of another test"]
fn the_process_that_is_killed() {
    if let (Some(file), Some(results)) =
        (std::env::var_os("VICTIM_FILE"), std::env::var_os("VICTIM_RESULTS"))
    {
        quietly(&fifty(Path::new(&file)), Path::new(&results));
    }
}

#[test]
fn kill_9_loses_nothing_and_repeats_nothing() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let results = dir.path().join("results.jsonl");
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "resume::the_process_that_is_killed", "--ignored"]);
    victim
        .env("VICTIM_FILE", &file)
        .env("VICTIM_RESULTS", &results)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut chance = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let seed = chance;
    let mut kills = 0;
    let mut kept = Vec::new();
    loop {
        let mut child = victim.spawn().unwrap();
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        // The last process may finish.
        if kills < 8 {
            std::thread::sleep(Duration::from_millis(30 + chance % 200));
            child.kill().unwrap();
        }
        let ended = child.wait().unwrap();
        let now = std::fs::read(&results).unwrap_or_default();
        assert!(now.starts_with(&kept), "seed {seed}: a line that was written has changed");
        if ended.success() {
            break;
        }
        kills += 1;
        let whole = now.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        kept = now[..whole].to_vec();
        if kills % 2 == 0 {
            // A machine that stops in the middle of a line leaves a truncated line.
            let torn = [&kept[..], b"{\"schema\":\"thalweg.trial/1\",\"compar"].concat();
            std::fs::write(&results, torn).unwrap();
        }
    }
    let all = read(&results).unwrap();
    assert_eq!(all.len(), 2);
    let mut trials = 0;
    for c in &all {
        assert_eq!((c.ended, c.rounds), (EndReason::AllRounds, 5), "seed {seed}");
        for (arm, round) in c.session.arms.iter().flat_map(|a| (0..6).map(move |r| (a, r))) {
            let round = (round < 5).then_some(round); // `None` is the warm-up
            let found = c.trials.iter().filter(|t| t.arm == arm.name && t.round == round).count();
            assert_eq!(found, 1, "seed {seed}: {} {round:?}", arm.name);
        }
        for trial in c.trials.iter().filter(|t| t.round.is_some()) {
            let order = c.session.order.round(5, trial.round.unwrap());
            assert_eq!(c.session.arms[order[trial.position]].name, trial.arm, "seed {seed}");
        }
        trials += c.trials.len();
    }
    assert_eq!(trials, 60);
    let started =
        std::fs::read_to_string(format!("{}.log", file.display())).unwrap().lines().count();
    assert!(
        (trials..=trials + kills).contains(&started),
        "seed {seed}: {started} were started for {trials}"
    );
}

/// A results file can be cut at any place, and the resumed run has the same trials as an
/// uninterrupted run. The plan has retries and an arm that fails.
#[test]
fn every_end_of_a_file_can_be_gone_on_with() {
    let dir = scratch();
    let file = data_file(&dir, "f", 4 << 20);
    let results = dir.path().join("results.jsonl");
    let cheat = Arm::new(
        "cheat",
        ["sh", "-c", "sleep 0.004; echo '{\"open_to_last_s\":0.001,\"digest\":\"d\"}'"],
        &file,
    );
    let fails = Arm::new("fails", ["sh", "-c", &format!("test -e {}.flag", file.display())], &file);
    let arms = vec![arm("a", &file, 0.001), cheat.clone(), fails.level(CacheLevel::Lukewarm)];
    let plans =
        [ComparisonPlan { retries: 1, ..ComparisonPlan::new("n", arms).rounds(2).control(false) }];
    let slots = |c: &Comparison| -> BTreeSet<_> {
        let slot = |t: &thalweg_gauge::comparison::Trial| {
            (t.round, t.position, t.arm.clone(), t.attempt, t.failed.is_some())
        };
        let all: Vec<_> = c.trials.iter().map(slot).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "twice: {all:?}");
        all.into_iter().collect()
    };
    let whole = slots(&quietly(&plans, &results)[0]);
    let bytes = std::fs::read(&results).unwrap();
    let ends = bytes.iter().enumerate().filter(|&(_, &b)| b == b'\n').map(|(i, _)| i);
    // The file is cut before the end of each line, at it, and after it.
    for end in ends.flat_map(|i| [i - 9, i, i + 1]) {
        std::fs::write(&results, &bytes[..end]).unwrap();
        let c = &quietly(&plans, &results)[0];
        assert_eq!(slots(c), whole, "cut at {end}");
        assert_eq!(read(&results).unwrap()[0].summaries, c.summaries, "cut at {end}");
    }
}

#[test]
fn a_stopped_run_claims_what_its_last_look_showed() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let results = dir.path().join("results.jsonl");
    // The times vary between 1 and 2 ms, so that no interval is narrow enough to end the run.
    let mut unsteady = arm("unsteady", &file, 0.001);
    unsteady.workload.argv[2] =
        "sleep 0.004; echo '{\"open_to_last_s\":0.001'$(date +%N | cut -c 4-9)',\"digest\":\"d\"}'"
            .into();
    let plans = [ComparisonPlan::new("n", vec![unsteady, arm("slow", &file, 0.0039)])
        .control(false)
        .pairs(PairCount::Auto { least: 8, most: 20, half_width: 1e-6 })];
    let stop = AtomicBool::new(false);
    let c = &go(&plans, &results, &stop, &mut |p| {
        if let ComparisonProgress::Finished(t) = p
            && t.round == Some(9)
        {
            stop.store(true, Ordering::Relaxed);
        }
    })[0];
    assert_eq!((c.ended, c.rounds, c.look.map(|l| l.rounds)), (EndReason::Stopped, 9, Some(8)));
    let slow = &c.summaries[1];
    assert_eq!(slow.ratio.map(|r| r.pairs), Some(8), "what came after the look is not used");
    assert!(slow.ratio.unwrap().interval.is_some() && slow.finding.is_some());
    assert!(thalweg_gauge::report::text(c, None).contains("STOPPED after 9"));

    let before = std::fs::read(&results).unwrap();
    let again = &quietly(&plans, &results)[0];
    assert!(std::fs::read(&results).unwrap().starts_with(&before));
    assert_eq!((again.ended, again.rounds, again.trials.len()), (EndReason::AllRounds, 20, 2 + 40));
    assert!(
        again
            .flags
            .iter()
            .any(|f| matches!(f, Flag::Interrupted { round: Some(9), gap_s: Some(_) })),
        "{:?}",
        again.flags
    );
    // A finished comparison is not run again.
    let done = std::fs::read(&results).unwrap();
    assert_eq!(quietly(&plans, &results)[0].summaries, again.summaries);
    assert_eq!(std::fs::read(&results).unwrap(), done);
}

#[test]
fn a_stop_in_the_middle_of_a_trial_ends_it_at_once() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let results = dir.path().join("results.jsonl");
    let flag = format!("{}.flag", file.display());
    let mut slow = arm("slow", &file, 0.001);
    slow.workload.argv[2]
        .insert_str(0, &format!("test -e {flag} && touch {flag}.2 && sleep 900; touch {flag}; "));
    let plans = [ComparisonPlan::new("n", vec![slow]).control(false).rounds(3)];
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let c = std::thread::scope(|scope| {
        scope.spawn(|| {
            // When this file exists, the warm-up has ended and the next trial is running.
            while !Path::new(&format!("{flag}.2")).exists() && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        go(&plans, &results, &stop, &mut |_| {}).remove(0)
    });
    assert!(start.elapsed() < PATIENCE, "it waited for the trial");
    assert_eq!(
        (c.ended, c.trials.len(), c.look),
        (EndReason::Stopped, 1, None),
        "the warm-up had ended"
    );
    assert!(c.summaries[0].finding.is_none());
}

#[test]
fn a_budget_ends_a_run_and_the_next_one_goes_on() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let results = dir.path().join("results.jsonl");
    let plan = ComparisonPlan::new("n", vec![arm("a", &file, 0.001), arm("b", &file, 0.002)])
        .rounds(6)
        .control(false);
    let c = &quietly(&[plan.clone().budget(Duration::from_millis(1))], &results)[0];
    assert_eq!((c.ended, c.trials.len()), (EndReason::Budget, 2), "only the warm-up");
    assert!(c.stopped() && read(&results).unwrap()[0].stopped());
    let c = &quietly(&[plan.budget(Duration::from_secs(3600))], &results)[0];
    assert_eq!(
        (c.ended, c.trials.len(), c.summaries[1].finding),
        (EndReason::AllRounds, 14, Some(RatioFinding::Slower))
    );
}

#[test]
fn preparation_may_use_the_reserve_of_the_budget() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 20);
    // The probe alone takes longer than the budget.
    let probe = ProbeOptions {
        blocks: vec![1 << 16],
        depths: vec![1, 2],
        window: Duration::from_millis(100),
        windows: 4,
        single_stream_bytes: 0,
        throttle: None,
    };
    let arms = vec![arm("a", &file, 0.001), arm("b", &file, 0.002)];
    let mut plan = ComparisonPlan::new("n", arms)
        .rounds(2)
        .control(false)
        .probe(probe)
        .budget(Duration::from_millis(700));
    let alone = &quietly(&[plan.clone()], &dir.path().join("alone.jsonl"))[0];
    assert_eq!((alone.ended, alone.rounds), (EndReason::Budget, 0));
    plan.reserve = PATIENCE;
    let shared = &quietly(&[plan], &dir.path().join("shared.jsonl"))[0];
    assert!(shared.rounds > 0, "{:?}", shared.ended);
}

#[test]
fn a_run_ends_when_its_intervals_are_narrow() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let plan = ComparisonPlan::new(
        "n",
        vec![arm("a", &file, 0.001), arm("b", &file, 0.002), Arm::new("out", ["false"], &file)],
    )
    .pairs(PairCount::Auto { least: 8, most: 100, half_width: 0.05 });
    let c = &quietly(&[plan], &dir.path().join("results.jsonl"))[0];
    assert_eq!(
        (c.ended, c.rounds),
        (EndReason::Precise, 9),
        "an arm that is out is not waited for"
    );
    assert_eq!(c.summaries[1].finding, Some(RatioFinding::Slower));
    assert_eq!(c.summaries[3].finding, Some(RatioFinding::NoDifferenceShown));
}

#[test]
fn another_run_is_not_resumed() {
    let dir = scratch();
    let file = data_file(&dir, "f", 1 << 16);
    let results = dir.path().join("results.jsonl");
    let plan = ComparisonPlan::new("n", vec![arm("a", &file, 0.001), arm("b", &file, 0.002)])
        .control(false)
        .rounds(2);
    quietly(std::slice::from_ref(&plan), &results);
    let (_, earlier) = reopen(&results).unwrap();
    let refusal = |plan: ComparisonPlan| {
        let plan = plan.resume(earlier[0].clone());
        let error = run(&plan, &mut Vec::new(), &AtomicBool::new(false), &mut |_| {}).err();
        error.map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refusal(plan.clone()), "");
    let mut other = plan.clone();
    other.arms[1] = arm("b", &file, 0.003);
    assert!(refusal(other).contains("arm \"b\" was"), "another command");
    let mut other = plan.clone();
    other.arms.pop();
    assert!(refusal(other).contains("its arms were a, b; now they are a"));
    assert!(refusal(plan.clone().rounds(3)).contains("Fixed(2)"));
    // A rebuild may write the same bytes again, with a new time of change.
    let program = dir.path().join("program");
    std::fs::copy("/bin/sh", &program).unwrap();
    let mut rebuilt = plan.clone();
    rebuilt.name = "rebuilt".into();
    rebuilt.arms[0].workload.argv[0] = program.display().to_string();
    quietly(std::slice::from_ref(&rebuilt), &results);
    std::fs::File::options().write(true).open(&program).unwrap().set_modified(UNIX_EPOCH).unwrap();
    let again = rebuilt.resume(reopen(&results).unwrap().1.remove(1));
    let told =
        run(&again, &mut Vec::new(), &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string();
    assert!(told.contains("program of") && told.contains("changed at 0 s"), "{told}");
    std::fs::write(&file, [0; 100]).unwrap();
    let told = refusal(plan);
    assert!(told.contains("f of 65536 bytes") && told.contains("f of 100 bytes"), "{told}");
}

#[test]
fn two_runs_cannot_write_one_file() {
    let dir = scratch();
    let results = dir.path().join("results.jsonl");
    let (_open, earlier) = reopen(&results).unwrap();
    assert!(earlier.is_empty());
    assert!(reopen(&results).unwrap_err().to_string().contains("another run"));
}

#[test]
fn a_damaged_file_is_left_as_it_is() {
    let dir = scratch();
    let results = dir.path().join("results.jsonl");
    std::fs::write(&results, "{\"schema\":\"thalweg.trial/1\"\n{}\n{\"half").unwrap();
    let told = reopen(&results).unwrap_err().to_string();
    assert!(told.contains("line 1"), "{told}");
    assert!(std::fs::read_to_string(&results).unwrap().ends_with("{\"half"));
}
