//! No verb writes over its input, or over a file that exists, unless it is told to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::Folder;

/// The verbs that write a file: what they read, and their words, with IN and OUT for the paths.
const VERBS: [(&str, &str); 17] = [
    (READS, "read IN --out OUT"),
    (READS, "convert IN OUT --to blow5"),
    (READS, "filter IN --where samples>0 --out OUT --to blow5"),
    (READS, "merge IN --out OUT --to blow5"),
    (READS, "scan IN --out OUT"),
    (READS, "plot IN --out OUT"),
    (READS, "index IN -o OUT"),
    (READS, "check IN --salvage OUT"),
    (NOTHING, "synth OUT --samples 50k --kind blow5"),
    (ARRAYS, "read IN --events --out OUT"),
    (ARRAYS, "plot IN --out OUT"),
    (ARRAYS, "index IN --kerchunk OUT"),
    (ARRAYS, "convert --repack IN OUT"),
    (RESULTS, "compare IN --html OUT"),
    (RESULTS, "bench --resume IN --html OUT"),
    (SUITE, "bench IN --json new.jsonl --html OUT"),
    (MEASURED, "bench s.toml --json new.jsonl --html OUT"),
];

const READS: &str = "in.blow5";
const ARRAYS: &str = "in.nxs";
const RESULTS: &str = "r.jsonl";
const SUITE: &str = "s.toml";
const MEASURED: &str = "data.bin";
const NOTHING: &str = "";

/// A suite of one trial.
const ONE: &str = r#"
name = "one"
pairs = 1
[file.data]
path = "data.bin"
[workload.count]
command = "wc -c < {file:data}"
[[comparison]]
name = "one"
control = false
set = { level = "lukewarm", file = "data" }
arms = ["count"]
"#;

/// A folder with what the verbs read, and the verbs that this build has.
fn folder_and_verbs() -> (Folder, impl Iterator<Item = (&'static str, &'static str)>) {
    let folder = suite_folder();
    folder.ok(&["synth", READS, "--samples", "50k"]);
    let has_arrays = cfg!(feature = "hdf5");
    if has_arrays {
        folder.ok(&["synth", ARRAYS, "--size", "1MB"]);
    }
    folder.ok(&["bench", SUITE, "--json", RESULTS]);
    (folder, VERBS.into_iter().filter(move |(input, _)| has_arrays || *input != ARRAYS))
}

/// A folder with a suite, and the file that it measures.
fn suite_folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path(MEASURED), "data").unwrap();
    fs::write(folder.path(SUITE), ONE).unwrap();
    folder
}

/// The end of the name that a verb needs for its output.
fn ending(verb: &str) -> &'static str {
    match verb.split(' ').next() {
        Some("read") => ".arrow",
        Some("scan") => ".csv",
        Some("plot") => ".svg",
        _ => "",
    }
}

fn args(verb: &str, input: &str, output: &str) -> Vec<String> {
    verb.split(' ').map(|word| word.replace("IN", input).replace("OUT", output)).collect()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn no_verb_writes_over_its_input() {
    let (folder, verbs) = folder_and_verbs();
    for (input, verb) in verbs.filter(|(input, _)| *input != NOTHING) {
        let before = fs::read(folder.path(input)).unwrap();
        // The file by names with the right ending: as a hard link, and as a symbolic one.
        let [hard, soft] = ["hard", "soft"].map(|name| format!("{name}-{input}{}", ending(verb)));
        let _ = fs::hard_link(folder.path(input), folder.path(&hard));
        let _ = symlink(input, folder.path(&soft));
        let mut outputs = vec![hard, soft];
        if ending(verb).is_empty() {
            outputs.extend([input.to_owned(), format!("./{input}")]);
        }
        for output in &outputs {
            let mut all = args(verb, input, output);
            for _ in 0..2 {
                let told = folder.fails(2, &words(&all));
                assert!(told.contains("the output is the input"), "{verb}: {told}");
                assert_eq!(fs::read(folder.path(input)).unwrap(), before, "{verb}");
                all.push("--force".into());
            }
        }
        assert!(!folder.path("new.jsonl").exists(), "nothing runs before the check");
    }
}

/// The verbs that write a folder, or a file for each input, and those that replace no file.
#[test]
fn no_verb_of_many_outputs_writes_over_an_input() {
    let (folder, _) = folder_and_verbs();
    for name in ["hard", "soft"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    let mut cases = Vec::new();
    for (input, output) in [(READS, READS), (READS, "part-00000.blow5"), (SUITE, "new.jsonl")] {
        fs::hard_link(folder.path(input), folder.path("hard").join(output)).unwrap();
        symlink(folder.path(input), folder.path("soft").join(output)).unwrap();
    }
    for place in ["hard", "soft"] {
        cases.push(format!("convert {READS} {place} --per-file --to blow5"));
        cases.push(format!("convert {READS} {place} --per-file --to blow5 --force"));
        cases.push(format!("split {READS} --reads 1M --out {place}"));
        cases.push(format!("bench {SUITE} --json {place}/new.jsonl"));
        cases.push(format!("bench {SUITE} --json {place}/new.jsonl --force"));
    }
    cases.push(format!("convert {READS} . --per-file --to blow5 --force"));
    cases.push(format!("bench {SUITE} --json {SUITE} --force"));
    if cfg!(feature = "hdf5") {
        fs::hard_link(folder.path(ARRAYS), folder.path("hard.npy")).unwrap();
        symlink(ARRAYS, folder.path("soft.npy")).unwrap();
        for place in ["hard", "soft"] {
            for options in ["", " --events", " --logs", " --force"] {
                cases.push(format!("read {ARRAYS} --out {place}.npy{options}"));
            }
        }
    }
    let contents = || [READS, SUITE, ARRAYS].map(|name| fs::read(folder.path(name)).ok());
    let before = contents();
    for case in cases {
        let output = folder.run(&case.split(' ').collect::<Vec<_>>());
        assert!(matches!(output.status.code(), Some(1 | 2)), "{case}: {output:?}");
        assert_eq!(contents(), before, "{case}");
    }
}

#[test]
fn a_file_that_exists_is_replaced_only_with_force() {
    let (folder, verbs) = folder_and_verbs();
    for (input, verb) in verbs {
        let out = format!("out{}", ending(verb));
        let mut all = args(verb, input, &out);
        let _ = fs::remove_file(folder.path(&out));
        // A link that leads nowhere is there, too.
        symlink("nowhere", folder.path(&out)).unwrap();
        let told = folder.fails(1, &words(&all));
        assert!(told.contains("--force"), "{verb}: {told}");
        assert!(folder.path(&out).is_symlink() && !folder.path("nowhere").exists(), "{verb}");
        fs::remove_file(folder.path(&out)).unwrap();
        fs::write(folder.path(&out), "not yours").unwrap();
        let told = folder.fails(1, &words(&all));
        assert!(told.contains("--force"), "{verb}: {told}");
        assert_eq!(fs::read(folder.path(&out)).unwrap(), b"not yours", "{verb}");
        all.push("--force".into());
        folder.ok(&words(&all));
        assert_ne!(fs::read(folder.path(&out)).unwrap(), b"not yours", "{verb}");
        let _ = fs::remove_file(folder.path("new.jsonl"));
    }
    // An index replaces an index, and a page a page.
    for verb in ["index in.blow5", "compare r.jsonl --html page"] {
        for _ in 0..2 {
            folder.ok(&verb.split(' ').collect::<Vec<_>>());
        }
    }
}

/// A page that cannot be written whole leaves the one before.
#[test]
fn a_full_disk_keeps_the_page_before() {
    let folder = suite_folder();
    folder.ok(&["bench", SUITE, "--out", "runs"]);
    let run = fs::read_dir(folder.path("runs")).unwrap().next().unwrap().unwrap().path();
    let run = run.to_str().unwrap();
    let verbs = ["compare IN/results.jsonl --html page", "bench --resume IN --html page"];
    folder.ok(&words(&args(verbs[0], run, "")));
    let pages = || {
        let own = ["report.html", "report.md"].map(|name| Path::new(run).join(name));
        own.into_iter().chain([folder.path("page")]).map(|path| fs::read(path).unwrap())
    };
    let before: Vec<_> = pages().collect();
    for verb in verbs.into_iter().chain(["bench --resume IN"]) {
        let mut command = Command::new("sh");
        // The signal would end the process before it could clean up, which a full disk does not do.
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_thalweg")).args(args(verb, run, ""));
        let output = command.current_dir(folder.0.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{verb}: {output:?}");
        assert!(told.contains("File too large"), "{verb}: {told}");
        assert!(pages().eq(before.iter().cloned()), "{verb}");
    }
    assert_eq!(fs::read_dir(run).unwrap().count(), 3, "no temporary file is left");
}

/// Nobody names the reports of a run's folder.
#[test]
fn reports_that_nobody_named_replace_reports_only() {
    let folder = suite_folder();
    folder.ok(&["bench", SUITE, "--out", "runs"]);
    let run = fs::read_dir(folder.path("runs")).unwrap().next().unwrap().unwrap().path();
    let resume = ["bench", "--yes", "--resume", run.to_str().unwrap()];
    folder.ok(&resume);
    for name in ["report.html", "report.md"] {
        let report = run.join(name);
        let own = fs::read(&report).unwrap();
        fs::write(&report, "## mine\n").unwrap();
        for words in [&resume[..], &[&resume[..], &["--force"]].concat()] {
            let told = folder.fails(1, words);
            assert!(told.contains(name) && told.contains("move it"), "{told}");
            assert_eq!(fs::read(&report).unwrap(), b"## mine\n");
        }
        // A link may lead to any file of the user's, even to a report.
        for contents in [Some(&b"mine"[..]), Some(&own), None] {
            fs::remove_file(&report).unwrap();
            let _ = fs::remove_file(folder.path("mine"));
            contents.iter().for_each(|mine| fs::write(folder.path("mine"), mine).unwrap());
            symlink(folder.path("mine"), &report).unwrap();
            let told = folder.fails(1, &resume);
            assert!(told.contains("symbolic link"), "{told}");
            assert_eq!(fs::read(folder.path("mine")).ok().as_deref(), contents);
        }
        fs::remove_file(&report).unwrap();
        folder.ok(&resume);
        assert_eq!(fs::read(&report).unwrap(), own);
    }
}

#[test]
fn results_are_not_written_through_a_link_that_leads_nowhere() {
    let folder = suite_folder();
    symlink("elsewhere", folder.path("new.jsonl")).unwrap();
    let told = folder.fails(2, &["bench", SUITE, "--json", "new.jsonl"]);
    assert!(told.contains("new.jsonl is a symbolic link that leads nowhere"), "{told}");
    assert!(!folder.path("elsewhere").exists());
}

#[test]
fn a_page_replaces_no_file_in_a_folder_that_is_read() {
    let folder = suite_folder();
    fs::create_dir(folder.path("c")).unwrap();
    folder.ok(&["bench", SUITE, "--json", "c/a.jsonl"]);
    let before = fs::read(folder.path("c/a.jsonl")).unwrap();
    symlink("c/a.jsonl", folder.path("soft")).unwrap();
    for out in ["c/a.jsonl", "soft"] {
        let told = folder.fails(2, &["compare", "c", "--html", out, "--force"]);
        assert!(told.contains("the output is the input"), "{told}");
    }
    assert_eq!(fs::read(folder.path("c/a.jsonl")).unwrap(), before);
    // Other files of the folder are not read.
    fs::write(folder.path("c/page.html"), "old").unwrap();
    folder.ok(&["compare", "c", "--html", "c/page.html", "--force"]);
    // The reads in a folder.
    fs::create_dir(folder.path("run")).unwrap();
    folder.ok(&["synth", "run/in.blow5", "--samples", "50k"]);
    symlink("run/in.blow5", folder.path("soft.svg")).unwrap();
    for reads in ["run", "run/*.blow5"] {
        let told = folder.fails(2, &["plot", reads, "--out", "soft.svg", "--force"]);
        assert!(told.contains("the output is the input"), "{told}");
    }
    folder.ok(&["info", "run/in.blow5"]);
    // A store that is measured is a folder, too.
    let suite = ONE.replace("data.bin", "run");
    fs::write(folder.path(SUITE), suite).unwrap();
    let words = ["bench", SUITE, "--json", "new.jsonl", "--html", "run/in.blow5", "--force"];
    assert!(folder.fails(2, &words).contains("the output is the input"));
}

/// The list of ids is made in the cache folder, which nobody looks at.
#[test]
fn a_list_of_ids_for_a_suite_is_not_written_through_a_link() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    let suite = ONE.replace("data.bin", "in.blow5").replace("file = \"data\"", "file = \"ids\"");
    let suite = suite.replace("{file:data}", "{file}");
    fs::write(folder.path(SUITE), suite + "[file.ids]\nids = { of = \"data\", count = 9 }\n")
        .unwrap();
    folder.ok(&["bench", SUITE, "--json", "a.jsonl"]);
    let cache = fs::read_dir(folder.path("cache/thalweg/bench")).unwrap();
    let list = cache
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "ids"))
        .unwrap();
    assert!(fs::read_to_string(&list).unwrap().lines().count() > 0);
    folder.ok(&["bench", SUITE, "--json", "b.jsonl"]);
    fs::write(folder.path("mine"), "mine").unwrap();
    fs::remove_file(&list).unwrap();
    symlink(folder.path("mine"), &list).unwrap();
    let told = folder.fails(1, &["bench", SUITE, "--json", "c.jsonl"]);
    assert!(told.contains("symbolic link"), "{told}");
    assert_eq!(fs::read(folder.path("mine")).unwrap(), b"mine");
}

/// An index that is made because ids are looked up is kept beside the file, or in the cache folder.
#[test]
fn looking_up_ids_writes_no_index_through_a_link() {
    for name in ["in.blow5", "in.pod5"] {
        let folder = Folder::new();
        folder.ok(&["synth", "other.blow5", "--samples", "50k"]);
        folder.ok(&["synth", name, "--samples", "60k"]);
        let index = folder.path(&format!("{name}.idx"));
        let _ = fs::remove_file(&index);
        let ids = folder.ok(&["scan", name, "--columns", "read_id"]);
        let ids = ids.lines().skip(1).collect::<Vec<_>>().join("\n");
        fs::write(folder.path("ids"), &ids).unwrap();
        fs::write(folder.path("mine"), "mine").unwrap();
        for target in ["mine", "other.blow5.idx", "nowhere"] {
            let before = fs::read(folder.path(target)).ok();
            symlink(target, &index).unwrap();
            // What is there and no index of this file is an error, or not used.
            let output = folder.run(&["read", name, "--ids", "ids", "--digest"]);
            assert!(output.status.success() || target != "nowhere", "{name}: {output:?}");
            let rows = String::from_utf8(output.stdout).unwrap().lines().count();
            assert!(rows == if output.status.success() { ids.lines().count() } else { 0 });
            assert!(index.is_symlink(), "{name}: {target}");
            assert_eq!(fs::read(folder.path(target)).ok(), before, "{name}: {target}");
            fs::remove_file(&index).unwrap();
        }
    }
}

/// slow5lib looks up reads in whatever index it finds beside a file.
#[test]
fn a_file_that_is_replaced_loses_its_index() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    let blow5 = fs::read(folder.path("in.blow5.idx")).unwrap();
    folder.ok(&["convert", "in.blow5", "in.pod5", "--lossy"]);
    folder.ok(&["index", "in.pod5"]);
    let pod5 = fs::read(folder.path("in.pod5.idx")).unwrap();
    let cases = [
        ("convert in.blow5 out.blow5 --sort", &blow5),
        ("convert in.blow5 out.blow5 --record none", &blow5),
        ("convert in.blow5 out.pod5 --lossy", &pod5),
        ("filter in.blow5 --where samples>0 --out out.blow5", &blow5),
        ("merge in.blow5 --out out.blow5", &blow5),
        ("check in.blow5 --salvage out.blow5", &blow5),
        ("synth out.pod5 --samples 50k", &pod5),
    ];
    for (verb, index) in cases {
        let words: Vec<&str> = verb.split(' ').chain(["--force"]).collect();
        let out = words.iter().find(|word| word.starts_with("out")).unwrap();
        let index_path = folder.path(&format!("{out}.idx"));
        fs::write(folder.path(out), "old").unwrap();
        fs::write(&index_path, index).unwrap();
        let output = folder.run(&words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && told.contains(".idx: removed"), "{verb}: {told}");
        assert!(!index_path.exists(), "{verb}");
        // Another file with this name is not ours.
        fs::write(&index_path, "notes").unwrap();
        folder.ok(&words);
        assert_eq!(fs::read(&index_path).unwrap(), b"notes", "{verb}");
        fs::remove_file(&index_path).unwrap();
    }
    if cfg!(feature = "hdf5") {
        for name in ["in.nxs", "out.nxs"] {
            folder.ok(&["synth", name, "--size", "1MB", "--force"]);
            folder.ok(&["index", name, "--force"]);
        }
        let index = folder.path("out.nxs.idx");
        assert!(index.exists());
        folder.ok(&["convert", "--repack", "in.nxs", "out.nxs", "--force"]);
        assert!(!index.exists());
    }
    // This verb writes a new index.
    fs::write(folder.path("out.blow5.idx"), &blow5).unwrap();
    folder.ok(&["synth", "out.blow5", "--samples", "100k", "--force"]);
    assert_ne!(fs::read(folder.path("out.blow5.idx")).unwrap(), blow5);
}

/// A link beside the output may lead to any file of the user's.
#[test]
fn an_index_that_nobody_named_replaces_indexes_only() {
    let folder = Folder::new();
    let synth = ["synth", "out.blow5", "--samples", "50k", "--force"];
    fs::write(folder.path("mine"), "mine").unwrap();
    let kept = |told: String| {
        assert!(told.contains("out.blow5.idx: the file exists"), "{told}");
        assert_eq!(fs::read(folder.path("mine")).unwrap(), b"mine");
    };
    symlink("mine", folder.path("out.blow5.idx")).unwrap();
    kept(folder.fails(1, &synth[..4]));
    kept(folder.fails(1, &synth));
    assert!(!folder.path("out.blow5").exists(), "nothing is written before the check");
    fs::remove_file(folder.path("out.blow5.idx")).unwrap();
    fs::hard_link(folder.path("mine"), folder.path("out.blow5.idx")).unwrap();
    kept(folder.fails(1, &synth[..4]));
    kept(folder.fails(1, &synth));
    fs::remove_file(folder.path("out.blow5.idx")).unwrap();
    folder.ok(&synth);
    folder.ok(&synth);
    // The link leads to an index, but of another file.
    fs::rename(folder.path("out.blow5.idx"), folder.path("other.idx")).unwrap();
    let before = fs::read(folder.path("other.idx")).unwrap();
    folder.ok(&["synth", "reads.blow5", "--samples", "80k"]);
    fs::remove_file(folder.path("reads.blow5.idx")).unwrap();
    symlink("other.idx", folder.path("reads.blow5.idx")).unwrap();
    let told = folder.fails(1, &["index", "reads.blow5"]);
    assert!(told.contains("symbolic link"), "{told}");
    assert_eq!(fs::read(folder.path("other.idx")).unwrap(), before);
}

#[test]
fn no_verb_writes_over_a_list_that_it_reads() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    let ids = folder.ok(&["scan", "in.blow5", "--columns", "read_id"]);
    let ids = ids.lines().skip(1).collect::<Vec<_>>().join("\n");
    fs::write(folder.path("ids"), &ids).unwrap();
    for end in ["arrow", "blow5"] {
        fs::hard_link(folder.path("ids"), folder.path(&format!("hard.{end}"))).unwrap();
        symlink("ids", folder.path(&format!("soft.{end}"))).unwrap();
    }
    for verb in [
        "convert in.blow5 OUT --to blow5 --ids ids",
        "filter in.blow5 --out OUT --to blow5 --ids ids",
        "read in.blow5 --out OUT --ids ids",
        "scan in.blow5 --out OUT --ids ids",
    ] {
        let end = if verb.contains("blow5 --ids") { "blow5" } else { "arrow" };
        for out in [format!("hard.{end}"), format!("soft.{end}")] {
            let mut all = args(verb, "", &out);
            for _ in 0..2 {
                let told = folder.fails(2, &words(&all));
                assert!(told.contains("the output is the input"), "{verb}: {told}");
                all.push("--force".into());
            }
        }
    }
    assert_eq!(fs::read(folder.path("ids")).unwrap(), ids.as_bytes());
}
