//! `thalweg bench` from end to end, with suites whose workloads are shell commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::command::{PATIENCE, interrupt_at};
use crate::common::{Folder, json};

/// A suite that compares a command with itself, and two arms that report the same digest with 1 and
/// 2 threads.
const TWO: &str = r#"
name = "two"
pairs = 6
[set]
file = "data"
word = "x"
[file.data]
path = "data.bin"
[workload.plain]
command = "wc -c < {file}"
[workload.told]
command = ["sh", "-c", """echo noise; \
    echo \"{\\\"open_to_last_s\\\": 1e-6, \\\"digest\\\": \\\"{word}\\\", \
    \\\"latency_us\\\": {\\\"n\\\": 9, \\\"p50\\\": 1.5, \\\"p99\\\": 4}}\""""]
report = true
[[comparison]]
name = "plain"
set = { level = "lukewarm" }
arms = ["plain"]
[[comparison]]
name = "told, {threads} threads"
step = "tell"
sweep = { threads = [1, 2] }
arms = [{ workload = "told", name = "one" }, { workload = "told", name = "two" }]
"#;

fn folder(suite: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path("data.bin"), vec![7; 100_000]).unwrap();
    std::fs::write(folder.path("s.toml"), suite).unwrap();
    folder
}

fn lines(folder: &Folder, name: &str) -> Vec<Value> {
    json(&std::fs::read_to_string(folder.path(name)).unwrap())
}

fn of<'a>(lines: &'a [Value], schema: &str) -> Vec<&'a Value> {
    lines.iter().filter(|l| l["schema"].as_str().unwrap().starts_with(schema)).collect()
}

#[test]
fn a_suite_leaves_lines_and_a_page() {
    let folder = folder(TWO);
    let text = folder.ok(&["bench", "s.toml", "--json", "r.jsonl", "--html", "r.html"]);
    assert!(
        text.contains("plain")
            && text.contains("told, 2 threads")
            && text.contains("raw trials: r.jsonl"),
        "{text}"
    );
    assert!(text.contains("9 calls: p50 1.50 µs, p99 4.00 µs"), "{text}");
    let lines = lines(&folder, "r.jsonl");
    assert_eq!(lines[0]["schema"], "thalweg.suite/1");
    assert_eq!(
        lines[0]["comparisons"],
        serde_json::json!(["plain", "told, 1 threads", "told, 2 threads"])
    );
    let sessions = of(&lines, "thalweg.session/");
    assert_eq!(
        sessions[2]["suite"],
        serde_json::json!({"name": "two", "step": "tell", "settings": {"threads": 2}})
    );
    assert_eq!(sessions[1]["clock"], "time_to_samples");
    // A warm-up and six rounds. The first comparison has one arm and its control; the other two
    // have two arms and a control.
    assert_eq!(of(&lines, "thalweg.trial/").len(), 7 * (2 + 3 + 3));
    assert!(std::fs::read_to_string(folder.path("r.html")).unwrap().contains("told, 2 threads"));
    assert!(!folder.path("thalweg-bench").exists(), "a folder nobody asked for");
    let told = folder.fails(2, &["bench", "s.toml", "--json", "r.jsonl"]);
    assert!(
        told.contains("r.jsonl is there already") && told.contains("--resume r.jsonl"),
        "{told}"
    );
}

#[test]
fn without_names_results_go_to_a_folder_of_their_own() {
    let folder = folder(TWO);
    let text = folder.ok(&[
        "bench",
        "s.toml",
        "--only",
        "plain",
        "--pairs",
        "1",
        "--out",
        "res",
        "--markdown",
    ]);
    assert!(text.starts_with("## plain"), "{text}");
    let made: Vec<_> =
        std::fs::read_dir(folder.path("res")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(made.len(), 1);
    for name in ["results.jsonl", "report.html", "report.md"] {
        assert!(made[0].join(name).is_file(), "{name}");
    }
    // Nothing is left to do. This is not an error, and the suite need not be named again.
    let again = folder.ok(&["bench", "--resume", made[0].to_str().unwrap()]);
    assert!(again.contains("raw trials: "), "{again}");
}

#[test]
fn lists_and_dry_runs_run_nothing() {
    let folder = folder(&TWO.replace("wc -c < {file}", "touch ran; wc -c < {file}"));
    let shipped = folder.ok(&["bench", "--list"]);
    for name in [
        "tour",
        "slow5",
        "nanopore",
        "neutron",
        "objects",
        "connectome",
        "pipeline",
        "mounts",
        "scaling",
    ] {
        assert!(shipped.lines().any(|line| line.starts_with(name)), "{name}: {shipped}");
        let plan = folder.ok(&["bench", name, "--dry-run"]);
        assert!(plan.contains("about ") && plan.contains("pairs"), "{plan}");
    }
    assert_eq!(
        folder.ok(&["bench", "s.toml", "--list"]),
        "plain: plain\ntold, 1 threads: one; two\ntold, 2 threads: one; two\n"
    );
    let plan =
        folder.ok(&["bench", "s.toml", "--dry-run", "--pairs", "auto", "--set", "word=it's"]);
    assert!(
        plan.contains("touch ran; wc -c <")
            && plan.contains("10 to 20 pairs")
            && plan.contains("it'"),
        "{plan}"
    );
    assert!(
        !folder.path("ran").exists()
            && !folder.path("thalweg-bench").exists()
            && !folder.path("cache").exists()
    );
}

#[test]
fn mistakes_are_reported_before_anything_runs() {
    let folder = folder(&TWO.replace("pairs = 6", "pears = 6").replace("data.bin", "absent.bin"));
    let told = folder.fails(2, &["bench", "s.toml"]);
    assert!(
        told.contains("s.toml:3:1: unknown key `pears` of a suite; did you mean \"pairs\"?"),
        "{told}"
    );
    std::fs::write(folder.path("s.toml"), TWO.replace("data.bin", "absent.bin")).unwrap();
    let told = folder.fails(2, &["bench", "s.toml"]);
    assert!(
        told.contains("s.toml:7:7: the file \"data\":")
            && told.contains("absent.bin: No such file"),
        "{told}"
    );
    let told = folder.fails(2, &["bench", "tuor"]);
    let said = "tuor: neither a file nor a suite; did you mean tour? (suites: tour, ";
    assert!(told.contains(said), "{told}");
    let told = folder.fails(2, &["bench", "nanopor"]);
    assert!(told.contains("did you mean nanopore?"), "{told}");
    let told = folder.fails(2, &["bench", "reads.blow5"]);
    assert!(!told.contains("did you mean"), "{told}");
    let told = folder.fails(2, &["bench", "pipeline", "--place", "a=nowhere"]);
    assert!(told.contains("nowhere: not a folder"), "{told}");
    let told = folder.fails(2, &["bench", "pipeline", "--place", "c=."]);
    assert!(told.contains("has no place \"c\""), "{told}");
    let told = folder.fails(2, &["bench", "file"]);
    assert!(told.contains("--file reads=PATH"), "{told}");
    std::fs::write(folder.path("other.jsonl"), "{}\n").unwrap();
    let told = folder.fails(2, &["bench", "--resume", "other.jsonl"]);
    assert!(told.contains("other.jsonl names no suite"), "{told}");
    assert!(!folder.path("thalweg-bench").exists());
}

/// A suite with two ways to write a file. The file is read after each trial.
const WRITTEN: &str = r#"
name = "written"
pairs = 1
[set]
file = "data"
level = "lukewarm"
[file.data]
path = "data.bin"
[workload.copy]
command = "cp {file} {out}"
check = "printf '{\"digest\": \"%s\", \"samples\": 3, \"bytes_stored\": %d}\n' $(cksum < {out})"
[workload.cat]
command = "cat {file} > {out}"
check = "printf '{\"digest\": \"%s\"}\n' $(cksum < {out} | cut -d' ' -f1)"
[[comparison]]
name = "copies"
arms = ["copy", "cat"]
"#;

#[test]
fn outputs_of_trials_are_read_and_must_agree() {
    let folder = folder(WRITTEN);
    folder.ok(&["bench", "s.toml", "--json", "r.jsonl"]);
    let lines = lines(&folder, "r.jsonl");
    let copy =
        of(&lines, "thalweg.trial/").into_iter().find(|t| t["arm"] == "copy").unwrap().clone();
    let report = &copy["outcome"]["report"];
    assert_eq!(report["bytes_written"], 100_000);
    assert_eq!(report["samples"], 3);
    assert_eq!(of(&lines, "thalweg.session/")[0]["clock"], "wall");
    std::fs::write(
        folder.path("s.toml"),
        WRITTEN.replace("cat {file} >", "tac {file} | head -c 9 >"),
    )
    .unwrap();
    let told = folder.fails(3, &["bench", "s.toml", "--json", "other.jsonl"]);
    assert!(told.contains("digest of copy"), "{told}");
    std::fs::write(
        folder.path("s.toml"),
        WRITTEN.replace("check = \"printf", "check = \"exit 3; printf"),
    )
    .unwrap();
    let out = folder.fails(1, &["bench", "s.toml", "--json", "none.jsonl"]);
    assert!(out.contains("failed"), "{out}");
}

/// A suite with one comparison: a good arm, and an arm that runs `bad`.
fn beside(bad: &str, more: &str) -> Folder {
    folder(&format!(
        r#"
name = "bad"
pairs = 6
[set]
timeout = "10 min"
[workload.good]
command = '''echo '{{"open_to_last_s": 1e-6, "digest": "d"}}' '''
report = true
[workload.bad]
command = '''{bad}'''
{more}
[[comparison]]
name = "c"
arms = ["good", "bad"]
"#
    ))
}

/// Runs the suite and returns why the bad arm failed. The summary of that arm must have no time, no
/// ratio and no finding.
fn failed(folder: &Folder) -> String {
    let told = folder.fails(1, &["bench", "s.toml", "--json", "r.jsonl", "--html", "r.html"]);
    assert!(told.contains("an arm failed"), "{told}");
    let lines = lines(folder, "r.jsonl");
    let last = of(&lines, "thalweg.comparison/")[0];
    let bad = last["summaries"].as_array().unwrap().iter().find(|s| s["arm"] == "bad").unwrap();
    for figure in ["time_s", "ratio", "finding", "wall_s", "cpu_s"] {
        assert!(bad[figure].is_null(), "{figure}: {bad}");
    }
    bad["failed"].as_str().unwrap().to_owned()
}

#[test]
fn a_workload_that_crashes_has_no_figures() {
    let why = failed(&beside("echo bang >&2; exit 4", ""));
    assert!(why.contains("exit status 4") && why.contains("bang"), "{why}");
    let why = failed(&beside("kill -SEGV $$", ""));
    assert!(why.contains("signal: 11"), "{why}");
    let why = failed(&beside("/nowhere/peer", ""));
    assert!(why.contains("exit status 127"), "{why}");
}

#[test]
fn garbage_is_no_report() {
    let why = failed(&beside("head -c 100000 /dev/urandom", "report = true"));
    assert!(why.contains("open_to_last_s"), "{why}");
    let report = |fields: &str| failed(&beside(&format!("echo '{{{fields}}}'"), "report = true"));
    assert!(report(r#""open_to_last_s": 1e-6"#).contains("no digest"));
    assert!(report(r#""open_to_last_s": 1e-6, "digest": """#).contains("no digest"));
    assert!(report(r#""open_to_last_s": -1, "digest": "d""#).contains("open_to_last_s = -1"));
    assert!(report(r#""open_to_last_s": 1e9, "digest": "d""#).contains("the whole process took"));
    assert!(report(r#""open_to_last_s": "fast", "digest": "d""#).contains("can't be read"));
    // An impossible time fails the arm even if no report was required.
    assert!(
        failed(&beside("echo '{\"open_to_last_s\": 1e9}'", "")).contains("the whole process took")
    );
}

#[test]
fn a_hanging_workload_is_killed_with_its_children() {
    let folder = beside("sleep 900 & echo $! > child; sleep 900", "");
    let suite = std::fs::read_to_string(folder.path("s.toml")).unwrap();
    std::fs::write(folder.path("s.toml"), suite.replace("10 min", "2 s")).unwrap();
    let began = Instant::now();
    let why = failed(&folder);
    assert!(why.contains("still running after 2 s, killed"), "{why}");
    assert!(began.elapsed() < PATIENCE, "it was waited for");
    let child = std::fs::read_to_string(folder.path("child")).unwrap();
    let state =
        std::fs::read_to_string(format!("/proc/{}/status", child.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains("State:\tZ"), "{state}");
}

#[test]
fn other_values_are_refused() {
    let other = r#"echo '{"open_to_last_s": 1e-6, "digest": "e"}'"#;
    // A reported digest is compared even if no report was required.
    for more in ["report = true", ""] {
        let folder = beside(other, more);
        let told = folder.fails(3, &["bench", "s.toml", "--json", "r.jsonl"]);
        assert!(told.contains("digest of good (warm-up) is d, of bad (warm-up) e"), "{told}");
        let lines = lines(&folder, "r.jsonl");
        let last = of(&lines, "thalweg.comparison/")[0];
        assert!(
            last["summaries"]
                .as_array()
                .unwrap()
                .iter()
                .all(|s| s["ratio"].is_null() && s["finding"].is_null())
        );
    }
}

#[test]
fn a_full_disk_ends_the_run_and_shows_no_figure() {
    let folder = folder(TWO);
    let output = folder.run(&["bench", "s.toml", "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stdout.is_empty()
            && String::from_utf8_lossy(&output.stderr).contains("No space left"),
        "{output:?}"
    );
    // The disk is full in the middle of the trials.
    let mut command = std::process::Command::new("sh");
    let limited =
        "trap '' XFSZ; ulimit -f 24; exec \"$0\" bench s.toml --json r.jsonl --html r.html";
    command.args(["-c", limited, env!("CARGO_BIN_EXE_thalweg")]).current_dir(folder.0.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("File too large"), "{output:?}");
    // A run that was cut off can be resumed once there is space.
    folder.ok(&["bench", "--resume", "r.jsonl"]);
    assert_each_trial_once(&lines(&folder, "r.jsonl"), 7 * (2 + 3 + 3));
}

/// Fifty trials in three comparisons. Each trial records that it began.
const FIFTY: &str = r#"
name = "fifty"
pairs = 4
[workload.slow]
command = "echo {arm} >> began; sleep 0.03"
setup = "echo setup >> began"
[[comparison]]
name = "first"
control = false
arms = [{ workload = "slow", sweep = { arm = ["a", "b", "c", "d"] } }]
[[comparison]]
name = "second"
control = false
arms = [{ workload = "slow", sweep = { arm = ["e", "f", "g"] } }]
[[comparison]]
name = "third"
control = false
arms = [{ workload = "slow", sweep = { arm = ["h", "i", "j"] } }]
"#;

fn assert_each_trial_once(lines: &[Value], total: usize) {
    let mut seen = BTreeMap::new();
    for trial in of(lines, "thalweg.trial/") {
        let key = format!(
            "{} {} {} {}",
            trial["comparison"], trial["arm"], trial["round"], trial["attempt"]
        );
        *seen.entry(key).or_insert(0) += 1;
    }
    assert!(seen.values().all(|n| *n == 1), "run twice: {seen:?}");
    assert_eq!(seen.len(), total, "lost or too many: {seen:?}");
}

#[test]
fn fifty_trials_survive_kills_with_none_lost_or_run_twice() {
    let folder = folder(FIFTY);
    let start = |args: &[&str]| {
        folder.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let trials = |folder: &Folder| {
        let text = std::fs::read_to_string(folder.path("r.jsonl")).unwrap_or_default();
        text.lines().filter(|l| l.contains("thalweg.trial/") && l.ends_with('}')).count()
    };
    let mut child = start(&["bench", "s.toml", "--json", "r.jsonl"]);
    let mut kills = 0;
    // Kills the run in the middle of each comparison, and again after it was resumed.
    for at in [3, 11, 23, 30, 41] {
        let began = Instant::now();
        while trials(&folder) < at && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "only {} trials", trials(&folder));
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        if at == 23 {
            // Cuts the file as if the machine had stopped in the middle of a line.
            let path = folder.path("r.jsonl");
            let text = std::fs::read(&path).unwrap();
            std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        }
        child = start(&["bench", "--resume", "r.jsonl"]);
    }
    assert!(child.wait().unwrap().success());
    let lines = lines(&folder, "r.jsonl");
    assert_each_trial_once(&lines, 50);
    assert_eq!(
        (of(&lines, "thalweg.session/").len(), of(&lines, "thalweg.comparison/").len()),
        (3, 3)
    );
    assert_eq!(of(&lines, "thalweg.suite/").len(), 1);
    // Only the trials that were running when the run was killed, and the one whose line was cut,
    // ran again.
    let began = std::fs::read_to_string(folder.path("began")).unwrap();
    let began = began.lines().filter(|line| *line != "setup").count();
    assert!((50..=50 + kills + 1).contains(&began), "{began} trials began");
    assert_eq!(
        of(&lines, "thalweg.session/")[0]["arms"][0]["settings"],
        serde_json::json!({"arm": "a"})
    );
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_writes_its_page() {
    let folder = folder(&FIFTY.replace("sleep 0.03", "sleep 0.2; rm -f {out}; touch {out}"));
    let child = folder
        .command(["bench", "s.toml", "--out", "res"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let count =
        || std::fs::read_to_string(folder.path("began")).unwrap_or_default().lines().count();
    let output = interrupt_at(child, count, 8);
    let made = std::fs::read_dir(folder.path("res")).unwrap().next().unwrap().unwrap().path();
    let page = std::fs::read_to_string(made.join("report.html")).unwrap();
    assert!(
        page.contains("STOPPED") && String::from_utf8_lossy(&output.stdout).contains("STOPPED")
    );
    let kept = json(&std::fs::read_to_string(made.join("results.jsonl")).unwrap());
    let finished = of(&kept, "thalweg.trial/").len();
    assert!((4..50).contains(&finished), "{finished} of 50, in spite of the signal");
    let left_behind =
        walk(&folder.path("cache")).into_iter().filter(|name| name.contains("thalweg-out")).count();
    assert_eq!(left_behind, 0, "what a workload wrote is gone");
    folder.ok(&["bench", "--resume", made.to_str().unwrap()]);
    assert_each_trial_once(
        &json(&std::fs::read_to_string(made.join("results.jsonl")).unwrap()),
        50,
    );
}

/// A run whose second arm stops it in round 3, and ends by the same signal, as where a batch system
/// sends one to all processes.
fn interrupted(ending: &str) -> Folder {
    let folder = folder(&format!(
        r#"
name = "signal"
pairs = 6
[workload.good]
command = "true"
[workload.peer]
command = """echo . >> began; if test $(wc -l < began) -eq 4; then \
    kill -s INT $PPID; {ending}; fi"""
[[comparison]]
name = "c"
control = false
arms = ["good", "peer"]
"#
    ));
    let output = folder.run(&["bench", "s.toml", "--json", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(130), "{ending}: {output:?}");
    folder
}

#[test]
fn a_signal_that_ends_an_arm_too_takes_no_arm_out() {
    // By the signal; as a shell, or a program that heeds it, tells of it; by any failure.
    for ending in ["kill -s INT $$", "exit 130", "exit 1"] {
        let folder = interrupted(ending);
        let of_peer = |lines: &[Value]| -> Vec<Value> {
            let trials = of(lines, "thalweg.trial/").into_iter();
            trials.filter(|trial| trial["arm"] == "peer").cloned().collect()
        };
        let kept = of_peer(&lines(&folder, "r.jsonl"));
        assert_eq!(kept.len(), 3, "{ending}: the fourth is not kept: {kept:?}");
        folder.ok(&["bench", "--resume", "r.jsonl"]);
        let all = lines(&folder, "r.jsonl");
        assert_each_trial_once(&all, 7 * 2);
        assert!(of_peer(&all).iter().all(|trial| trial["failed"].is_null()), "{ending}: {all:?}");
        let last = of(&all, "thalweg.comparison/")[0];
        assert!(last["summaries"][1]["ratio"].is_object(), "{ending}: {last}");
    }
}

fn walk(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let path = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().path();
    entries
        .map(path)
        .flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p.display().to_string()] })
        .collect()
}

#[test]
fn a_budget_ends_a_suite_in_time() {
    let folder =
        folder(&FIFTY.replace("sleep 0.03", "sleep 0.1").replace("pairs = 4", "pairs = 1000"));
    let output = folder.run(&["bench", "s.toml", "--json", "r.jsonl", "--budget", "4 s"]);
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&folder, "r.jsonl");
    // A trial sleeps for 0.1 s, so the budget has room for 40 of more than 10,000 trials.
    let trials = of(&lines, "thalweg.trial/").len();
    assert!(trials < 100, "{trials} trials");
    // A comparison that runs out of time has no last line, so that a resumed run continues it.
    assert!(
        !of(&lines, "thalweg.session/").is_empty() && of(&lines, "thalweg.comparison/").is_empty(),
        "{output:?}"
    );
}

#[test]
fn prepare_and_cleanup_are_outside_the_time() {
    let folder = folder(
        r#"
name = "around"
pairs = 2
[workload.w]
setup = "echo setup >> log"
prepare = "sleep 0.3; echo prepare >> log"
command = "echo run >> log; test ! -e {out} && echo > {out}"
cleanup = "echo cleanup >> log"
[[comparison]]
name = "c"
control = false
arms = ["w"]
"#,
    );
    folder.ok(&["bench", "s.toml", "--json", "r.jsonl"]);
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    let expected = "setup prepare run prepare run prepare run cleanup";
    assert_eq!(log.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    for trial in of(&lines(&folder, "r.jsonl"), "thalweg.trial/") {
        assert!(trial["time_s"].as_f64().unwrap() < 0.25, "{trial}");
    }
}

#[test]
fn files_are_made_once_and_lie_in_their_places() {
    let folder = folder(
        r#"
name = "made"
pairs = 1
[set]
file = "plain.fastq"
[place.a]
[place.b]
[file."packed.fastq.gz"]
synth = { kind = "fastq", bases = 60000, gzip = true }
[file."plain.fastq"]
command = "echo made >> log; gzip -dc {file:packed.fastq.gz} > {out}"
[workload.w]
command = "gzip -dc {file:packed.fastq.gz} | cmp - {file}"
[[comparison]]
name = "c"
set = { level = "lukewarm" }
arms = [{ workload = "w", name = "{place}", sweep = { place = ["a", "b"] } }]
"#,
    );
    for place in ["a", "b"] {
        std::fs::create_dir(folder.path(place)).unwrap();
    }
    let run = |out: &str| {
        folder.ok(&["bench", "s.toml", "--place", "a=a", "--place", "b=b", "--out", out])
    };
    run("one");
    run("two");
    for place in ["a", "b"] {
        let names = walk(&folder.path(place));
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| !name.contains("partial")), "{names:?}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.path("log")).unwrap().lines().count(),
        2,
        "once in each place"
    );
}

#[test]
fn a_store_is_a_folder_that_a_command_made() {
    let folder = folder(
        r#"
name = "store"
pairs = 1
[set]
file = "store"
[file.store]
command = """mkdir {out} {out}/segments && echo 12345 > {out}/segments/0 && \
    echo 1 > {out}/log; test -e stop || { touch stop; false; }"""
[workload.w]
command = "cat {file}/segments/0 {file}/log"
[[comparison]]
name = "c"
set = { level = "hot" }
control = false
arms = ["w"]
"#,
    );
    // The first run leaves half a store, and the second one removes it.
    folder.fails(1, &["bench", "s.toml", "--json", "half.jsonl"]);
    folder.ok(&["bench", "s.toml", "--json", "r.jsonl"]);
    let lines = lines(&folder, "r.jsonl");
    assert_eq!(of(&lines, "thalweg.session/")[0]["places"][0]["bytes"], 8);
    let trials = of(&lines, "thalweg.trial/");
    assert!(
        trials
            .iter()
            .all(|t| t["failed"].is_null() && t["prepared"]["residency"]["pages_total"] == 2),
        "{trials:?}"
    );
}

#[test]
fn commands_of_another_user_run_only_if_that_is_agreed() {
    if !rustix::process::getuid().is_root() {
        return; // Only root can give a file to another user.
    }
    let folder = folder(TWO);
    folder.ok(&["bench", "s.toml", "--json", "mine.jsonl"]);
    for name in ["s.toml", "mine.jsonl"] {
        std::os::unix::fs::chown(folder.path(name), Some(65_534), None).unwrap();
    }
    for args in
        [&["bench", "s.toml", "--json", "r.jsonl"][..], &["bench", "--resume", "mine.jsonl"]]
    {
        let told = folder.fails(2, args);
        assert!(told.contains("--yes") && told.contains("65534"), "{told}");
        assert!(!folder.path("r.jsonl").exists());
    }
    folder.ok(&["bench", "s.toml", "--dry-run"]);
    folder.ok(&["bench", "s.toml", "--json", "r.jsonl", "--yes"]);
    folder.ok(&["bench", "--resume", "mine.jsonl", "--yes"]);
}

#[test]
fn a_trial_and_what_it_started_end_with_the_run_that_is_killed() {
    const LONG: &str = r#"
name = "long"
pairs = 1
[workload.long]
command = ["sh", "-c", "sleep 100000 & echo $$ $! > pid.new; mv pid.new pid; wait"]
[[comparison]]
name = "long"
arms = ["long"]
"#;
    let folder = folder(LONG);
    let mut child = folder
        .command(["bench", "s.toml", "--json", "r.jsonl"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let wait = || {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    };
    while !folder.path("pid").exists() {
        assert!(child.try_wait().unwrap().is_none());
        wait();
    }
    let pids = std::fs::read_to_string(folder.path("pid")).unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // A process that has ended, but that nobody waited for, has no command line.
    for pid in pids.split_whitespace() {
        let command = format!("/proc/{pid}/cmdline");
        while std::fs::read(&command).is_ok_and(|command| !command.is_empty()) {
            wait();
        }
    }
}
