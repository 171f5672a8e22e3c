//! Tests of the parser and the resolver together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::cache_level::CacheLevel;
use crate::comparison::Arm;
use crate::testing::StubFiles;

const TWO: &str = r#"
name = "two"
about = "Two ways to read."
pairs = 7

[set]
file = "reads"
batch = 1000

[place.near]
path = "{cache}/near"
[place.far]

[file.reads]
synth = { kind = "blow5", samples = "2M" }
[file.list]
ids = { of = "reads", count = 10 }

[workload.ours]
thalweg = ["read", "{file}", "--threads", "{threads}", "--store", "{store}"]
sample_bytes = 2
[workload.theirs]
peer = ["slow5lib", "get", "{file}", "--ids", "{file:list}", "--batch", "{batch}"]
also = ["{file}.idx"]
needs = "reported"
[workload.any]
command = "gzip -c {file} > {out} && sync {out}"
setup = "true"
check = ["{thalweg}", "read", "{out}"]
[workload.gone]
peer = ["pod5", "{file}"]

[[comparison]]
name = "at {place}"
sweep = { place = ["near", "far"] }
arms = [
    { workload = "ours", set = { level = "hot" }, sweep = { store = [
        "mmap", "direct",
    ], threads = "1..all" } },
    "theirs",
    "gone",
]

[[comparison]]
name = "packing"
step = "gzip"
set = { place = "far", timeout = "2 min", cpus = "0-2" }
arms = ["any", { workload = "theirs", name = "peer, {threads} threads" }]
"#;

fn peer(name: &str) -> Peer {
    match name {
        "slow5lib" => Peer::Found(vec!["/peers/slow5".into()]),
        "pod5" => Peer::Absent("not built".into()),
        _ => Peer::Unknown(vec!["slow5lib".into(), "pod5".into()]),
    }
}

fn context() -> Context<'static> {
    Context {
        thalweg: "/bin/thalweg".into(),
        peer: &peer,
        places: BTreeMap::from([("far".into(), PathBuf::from("/it's far"))]),
        files: BTreeMap::new(),
        set: Vec::new(),
        pairs: None,
        cache: "/cache".into(),
        folder: "/suites".into(),
        cores: 3,
        cpus: vec![0, 1, 2],
    }
}

fn resolved(text: &str, context: &Context<'_>) -> Vec<ComparisonJob> {
    planned(text, context).unwrap_or_else(|message| panic!("{message}"))
}

fn planned(text: &str, context: &Context<'_>) -> Result<Vec<ComparisonJob>, String> {
    Suite::parse("s.toml", text, &StubFiles)
        .and_then(|suite| suite.plan(context))
        .map_err(|e| e.to_string())
}

fn arms(job: &ComparisonJob) -> Vec<&str> {
    job.plan.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn argv(arm: &Arm) -> String {
    arm.workload.argv.join(" ")
}

#[test]
fn a_suite_becomes_comparisons() {
    let jobs = resolved(TWO, &context());
    let names: Vec<&str> = jobs.iter().map(|job| job.plan.name.as_str()).collect();
    assert_eq!(names, ["at near", "at far", "packing"]);
    let near = &jobs[0];
    assert_eq!(
        arms(near),
        [
            "ours, store=mmap, threads=1",
            "ours, store=mmap, threads=2",
            "ours, store=mmap, threads=3",
            "ours, store=direct, threads=1",
            "ours, store=direct, threads=2",
            "ours, store=direct, threads=3",
            "theirs",
        ]
    );
    assert_eq!(near.absent, ["gone: not built"]);
    assert_eq!(near.plan.pairs, PairCount::Fixed(7));
    let file = "/cache/near/synth-2000000-seed1-gzip-false.blow5";
    assert_eq!(
        argv(&near.plan.arms[1]),
        format!("/bin/thalweg read {file} --threads 2 --store mmap")
    );
    assert_eq!(near.plan.arms[1].level, CacheLevel::Hot);
    assert_eq!(near.plan.arms[1].files, [PathBuf::from(file)]);
    let settings = serde_json::to_string(&near.plan.arms[1].settings).unwrap_or_default();
    assert_eq!(settings, r#"{"level":"hot","place":"near","store":"mmap","threads":2}"#);
    let theirs = &near.plan.arms[6];
    assert!(
        argv(theirs).starts_with(&format!("/peers/slow5 get {file} --ids /cache/synth-2000000")),
        "{}",
        argv(theirs)
    );
    assert!(argv(theirs).ends_with(".10.ids --batch 1000"));
    assert_eq!(theirs.files, [PathBuf::from(file), PathBuf::from(format!("{file}.idx"))]);
    assert_eq!((theirs.needs, theirs.level), (Needs::Reported, CacheLevel::Cold));
    let kinds: Vec<bool> =
        near.needed.iter().map(|n| matches!(n.make, FileOrigin::Synth(_))).collect();
    assert_eq!(kinds, [true, false], "the list comes after the reads that it is made from");
}

#[test]
fn commands_get_quoted_paths_and_leave_nothing_behind() {
    let jobs = resolved(TWO, &context());
    let packing = &jobs[2];
    assert_eq!(arms(packing), ["any", "peer, 3 threads"]);
    let any = &packing.plan.arms[0];
    let file = r"'/it'\''s far/synth-2000000-seed1-gzip-false.blow5'";
    assert!(argv(any).starts_with(&format!("sh -c gzip -c {file} > '/it'")), "{}", argv(any));
    assert_eq!(any.workload.timeout_s, Some(120.0));
    assert_eq!(any.workload.cpus, Some(vec![0, 1, 2]));
    assert!(!any.must_report);
    let out = any.prepare[0].argv.last().cloned().unwrap_or_default();
    assert!(
        out.starts_with("/it's far/thalweg-out-")
            && argv(&packing.plan.arms[0]).contains("thalweg-out-")
    );
    assert_eq!(packing.cleanup, any.prepare, "what was written goes away");
    assert_eq!(packing.setup.len(), 1);
    let check = any.check.as_ref().map(|check| check.argv.join(" "));
    assert_eq!(check, Some(format!("/bin/thalweg read {out}")), "and is read before");
    assert_eq!(packing.plan.suite.as_ref().and_then(|s| s.step.as_deref()), Some("gzip"));
}

#[test]
fn the_command_line_overrides_the_suite() {
    let mut c = context();
    c.set = vec![
        ("batch".into(), SettingValue::Integer(5)),
        ("threads".into(), SettingValue::Integer(2)),
    ];
    c.pairs = Some(AUTO);
    let jobs = resolved(TWO, &c);
    assert!(argv(&jobs[2].plan.arms[1]).ends_with("--batch 5"));
    assert_eq!(jobs[2].plan.arms[1].name, "peer, 2 threads");
    assert_eq!(jobs[2].plan.pairs, AUTO);
    c.set = vec![("bacth".into(), SettingValue::Integer(5))];
    assert_eq!(
        planned(TWO, &c).err().as_deref(),
        Some(r#"the suite "two" has no setting "bacth"; did you mean "batch"?"#)
    );
    c.set.clear();
    c.places.insert("fra".into(), "/x".into());
    assert_eq!(
        planned(TWO, &c).err().as_deref(),
        Some(r#"the suite "two" has no place "fra"; did you mean "far"?"#)
    );
}

#[test]
fn missing_places_and_files_are_reported_before_anything_runs() {
    let mut c = context();
    c.places.clear();
    let message = planned(TWO, &c).err().unwrap_or_default();
    assert!(
        message.starts_with("s.toml:12:8: the place \"far\" needs a folder: --place far=FOLDER"),
        "{message}"
    );
    let given =
        TWO.replace("synth = { kind = \"blow5\", samples = \"2M\" }", "path = \"absent.blow5\"");
    let message = planned(&given, &context()).err().unwrap_or_default();
    assert!(
        message.starts_with("s.toml:14:7: the file \"reads\": /suites/absent.blow5: No such file"),
        "{message}"
    );
    let asked = TWO.replace("synth = { kind = \"blow5\", samples = \"2M\" }", "");
    let message = planned(&asked, &context()).err().unwrap_or_default();
    assert!(message.contains("--file reads=PATH"), "{message}");
    let few = Context { cpus: vec![0, 1], ..context() };
    let message = planned(TWO, &few).err().unwrap_or_default();
    assert!(
        message.contains("CPU 2 is not among those that may be used here: [0, 1]"),
        "{message}"
    );
    let unknown = TWO.replace("\"slow5lib\"", "\"slow5lb\"");
    let message = planned(&unknown, &context()).err().unwrap_or_default();
    assert!(
        message.contains("no peer is called \"slow5lb\"; did you mean \"slow5lib\"?"),
        "{message}"
    );
}

#[test]
fn lists_of_reads_are_chosen_by_a_setting() {
    let text = TWO.replace("{file:list}", "{ids}");
    let text = text.replace("batch = 1000", "batch = 1000\nids = \"list\"").replace(
        "[workload.ours]",
        "[file.some]\nids = { of = \"reads\", share = \"20 %\", run = 4, seed = 2 }\n\
         [workload.ours]",
    );
    let text = text.replace(
        "{ workload = \"theirs\", name",
        "{ workload = \"theirs\", set = { ids = \"some\" }, name",
    );
    let jobs = resolved(&text, &context());
    assert!(argv(&jobs[0].plan.arms[6]).contains(".10.ids "));
    assert!(
        argv(&jobs[2].plan.arms[1]).contains(".share0.2.runs4.seed2.ids "),
        "{}",
        argv(&jobs[2].plan.arms[1])
    );
}

#[test]
fn lists_of_reads_are_shuffled_alone_or_in_runs() {
    let names: Vec<String> = (0..100).map(|i| format!("{i:03}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let list = |many, run| IdList { many, run, seed: 7 }.of(&all);
    let alone = list(Many::Count(20), 1);
    let in_runs = list(Many::Share(0.2), 5);
    let sorted =
        |ids: &[&str]| std::collections::BTreeSet::from_iter(ids.iter().map(ToString::to_string));
    assert_eq!((alone.len(), sorted(&alone).len()), (20, 20));
    assert_eq!(sorted(&alone), sorted(&in_runs), "the same reads");
    assert!(in_runs.chunks(5).all(|run| run.is_sorted()) && !in_runs.is_sorted(), "{in_runs:?}");
    assert!(!alone.chunks(5).all(|run| run.is_sorted()));
    assert_eq!(list(Many::Count(1000), 1).len(), 100);
    assert_eq!(list(Many::Share(1e-9), 3).len(), 1);
}

/// Each mistake is reported with its line, its column and a message.
#[test]
fn mistakes_are_shown_at_their_position() {
    let minimal = |more: &str| {
        format!(
            "name = \"n\"\n[workload.w]\ncommand = \"cat {{file}}\"\n\
             [[comparison]]\nname = \"c\"\narms = [\"w\"]\n{more}"
        )
    };
    for (more, at, words) in [
        ("lvl = 3", "7:1", "unknown key `lvl` of a comparison"),
        ("prob = true", "7:1", "did you mean \"probe\"?"),
        ("probe = 1", "7:9", "`probe` of a comparison: expected true or false, found the number 1"),
        ("pairs = 0", "7:9", "expected \"auto\", a number from 1 to 10000"),
        ("pairs = { least = 2 }", "7:9", "needs 6 at least"),
        ("pairs = { lest = 9 }", "7:11", "did you mean \"least\"?"),
        ("set = { level = \"colt\" }", "7:9", "did you mean \"cold\"?"),
        ("set = { file = \"no\" }", "7:9", "no file is called \"no\""),
        ("set = { timeout = 3 }", "7:9", "expected a duration as in \"90 s\""),
        ("set = { stroe = \"x\" }", "7:9", "nothing uses the setting `stroe`"),
        ("sweep = { threads = \"1..al\" }", "7:21", "a list of values, or doublings"),
        ("sweep = { threads = [0] }", "7:22", "a number from 1 to 1024"),
        (
            "sweep = { threads = [1] }\nexclude = [{ trheads = 1 }]",
            "8:14",
            "did you mean \"threads\"?",
        ),
        (
            "sweep = { threads = [1], place = [\"data\"] }\ninclude = [{ threads = 1 }]",
            "8:14",
            "missing: place",
        ),
        ("set = { threads = 1 }\nsweep = { threads = [1] }", "8:11", "both set and swept"),
        (
            "[file.x]\nsynth = { kind = \"blow5\", record = \"lzma\" }",
            "8:36",
            "expected a record compression",
        ),
        (
            "[file.x]\nsynth = { kind = \"bam\" }",
            "8:18",
            "expected \"blow5\" or \"fastq\", found \"bam\"",
        ),
        ("[file.x]\npath = \"a\"\nids = { of = \"x\", count = 3 }", "7:7", "not from path and ids"),
        ("[file.x]\nids = { of = \"x\" }", "8:7", "needs a `count` or a `share`"),
        (
            "[file.x]\nids = { of = \"x\", share = \"0 %\" }",
            "8:27",
            "a share as in 0.01 or \"1 %\"",
        ),
        ("set = { ids = \"no\" }", "7:9", "no file is called \"no\""),
        (
            "[file.x]\nids = { of = \"y\", count = 3 }",
            "8:14",
            "no file is called \"y\"; did you mean \"x\"?",
        ),
        ("[file.x]\ncommand = \"touch x\"", "7:7", "must write it to {out}"),
        (
            "[workload.v]\nthalweg = \"read\"",
            "8:11",
            "expected a list of strings, found the string",
        ),
        (
            "[workload.v]\ncommand = \"a\"\npeer = [\"b\"]",
            "7:11",
            "one of thalweg, peer or command, found peer and command",
        ),
        ("[workload.v]", "7:11", "found none"),
        ("x = [1, 2", "7:10", ""),
        (
            "[[comparison]]\nname = \"d {plaec}\"\narms = [{ workload = \"w\", name = 3 }]",
            "9:34",
            "expected a string",
        ),
        (
            "[[comparison]]\nname = \"d {plaec}\"\narms = [\"w\"]",
            "8:8",
            "{plaec} stands for nothing here",
        ),
        ("[place.p]\npath = 1", "8:8", "expected a string, found the number 1"),
        ("[[comparison]]\nname = \"d\"\narms = []", "8:8", "at least one arm"),
    ] {
        let message = Suite::parse("s.toml", &minimal(more), &StubFiles)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        let found = message
            .lines()
            .any(|line| line.starts_with(&format!("s.toml:{at}: ")) && line.contains(words));
        assert!(found, "{more}\nexpected {at}: {words}\n{message}");
    }
    let several = Suite::parse("s.toml", &minimal("lvl = 3\nprob = 1"), &StubFiles)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert_eq!(several.lines().count(), 2, "{several}");
}

#[test]
fn a_file_can_be_made_by_a_command_but_not_from_itself() {
    let text = r#"
name = "n"
set = { file = "plain.txt" }
[file."packed.gz"]
command = "gzip -c {file:plain.txt} > {out}"
[file."plain.txt"]
command = "seq 1000 > {out}"
[workload.w]
command = ["zcat", "{file:packed.gz}", "{file}"]
[[comparison]]
name = "c"
arms = ["w"]
"#;
    let c = Context { places: BTreeMap::new(), ..context() };
    let jobs = resolved(text, &c);
    let names: Vec<String> = jobs[0].needed.iter().map(|n| n.path.display().to_string()).collect();
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("/cache/plain-") && names[0].ends_with(".txt"), "{names:?}");
    assert!(names[1].starts_with("/cache/packed-") && names[1].ends_with(".gz"), "{names:?}");
    assert!(matches!(
        &jobs[0].needed[0].make,
        FileOrigin::Command { partial, .. } if partial.display().to_string().contains("partial-")
    ));
    // A peer can make the file, too. Without the peer, the arms that need the file are left out and
    // reported as absent.
    let by_peer = |peer: &str| {
        text.replace(r#"command = "gzip -c {file:plain.txt} > {out}""#, &format!("peer = {peer}"))
            .replace(r#"{ file = "plain.txt" }"#, r#"{ file = "packed.gz" }"#)
    };
    let made = resolved(&by_peer(r#"["slow5lib", "import", "{file:plain.txt}", "{out}"]"#), &c);
    match &made[0].needed[1].make {
        FileOrigin::Command { workload, partial } => {
            assert_eq!(workload.argv[..2], ["/peers/slow5", "import"]);
            assert_eq!(workload.argv[3], partial.display().to_string());
        }
        other => panic!("{other:?}"),
    }
    let absent = resolved(&by_peer(r#"["pod5", "{out}"]"#), &c);
    assert!(
        absent[0].plan.arms.is_empty() && absent[0].absent[0].contains("its file \"packed.gz\""),
        "{absent:?}"
    );
    let message = planned(&by_peer(r#"["pod5"]"#), &c).err().unwrap_or_default();
    assert!(message.contains("must write it to {out}"), "{message}");
    // A different command makes a different file.
    let other = resolved(&text.replace("1000", "2000"), &c);
    assert_ne!(jobs[0].needed[1].path, other[0].needed[1].path);
    let circle = text.replace("seq 1000", "zcat {file:packed.gz}");
    let message = planned(&circle, &c).err().unwrap_or_default();
    assert!(message.contains("is made from itself"), "{message}");
}
