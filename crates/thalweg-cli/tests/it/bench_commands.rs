//! `thalweg bench -- 'COMMAND' 'OTHER'`: commands of the command line beside each other.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::command::interrupt_at;
use crate::common::{Folder, json};

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("data.bin"), vec![7; 100_000]).unwrap();
    fs::write(folder.path("other.bin"), vec![8; 50_000]).unwrap();
    folder
}

fn lines(folder: &Folder, name: &str, schema: &str) -> Vec<Value> {
    let lines = json(&fs::read_to_string(folder.path(name)).unwrap());
    let is_wanted = |line: &Value| line["schema"].as_str().unwrap().starts_with(schema);
    lines.into_iter().filter(is_wanted).collect()
}

/// The files of an arm, by their names.
fn files_of(arm: &Value) -> Vec<&str> {
    let files = arm["files"].as_array().unwrap().iter();
    files.map(|file| file.as_str().unwrap().rsplit('/').next().unwrap()).collect()
}

#[test]
fn commands_run_as_a_suite_does() {
    let folder = folder();
    let text = folder.ok(&[
        "bench",
        "--pairs",
        "6",
        "--json",
        "r.jsonl",
        "--html",
        "r.html",
        "--name",
        "copied",
        "--",
        "cat data.bin 'other.bin' > copy",
        "wc -c < data.bin",
    ]);
    for said in ["copied", "wc -c < data.bin", "time / copied's", "raw trials: r.jsonl"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(fs::read_to_string(folder.path("r.html")).unwrap().contains("copied"));
    let session = &lines(&folder, "r.jsonl", "thalweg.session/")[0];
    assert_eq!(session["clock"], "wall");
    assert_eq!(session["control"], 2);
    let arms = session["arms"].as_array().unwrap();
    assert_eq!(files_of(&arms[0]), ["data.bin", "other.bin"]);
    assert_eq!(files_of(&arms[1]), ["data.bin"]);
    let trials = lines(&folder, "r.jsonl", "thalweg.trial/");
    let rounds: Vec<_> = trials.iter().filter(|trial| !trial["round"].is_null()).collect();
    assert!(rounds.len() >= 6 * 3, "{}", rounds.len());
    for trial in rounds {
        assert_eq!(trial["level_asked"], "hot");
        // Two files of the first command, one of the other.
        let pages = trial["prepared"]["residency"]["pages_total"].as_u64().unwrap();
        assert_eq!(pages > 25, trial["arm"] != "wc -c < data.bin", "{trial}");
    }
    assert_eq!(lines(&folder, "r.jsonl", "thalweg.comparison/").len(), 1);
    let again = folder.ok(&["bench", "--resume", "r.jsonl"]);
    assert!(again.contains("raw trials: r.jsonl"), "{again}");
}

#[test]
fn cold_trials_evict_the_files_that_are_named() {
    let folder = folder();
    let run = ["bench", "--pairs", "1", "--json", "r.jsonl", "--set", "level=cold"];
    folder.ok(&[&run[..], &["--", "cat data.bin", "head -c 10 data.bin"]].concat());
    for trial in lines(&folder, "r.jsonl", "thalweg.trial/") {
        if trial["round"].is_null() {
            continue;
        }
        assert_eq!(trial["level_asked"], "cold");
        let evictions = trial["prepared"]["evictions"].as_array().unwrap();
        assert_eq!(evictions.len(), 1, "{trial}");
        // What a command needs of a file is unknown, so too few bytes contradict nothing.
        let is_cut = trial["arm"].as_str().unwrap().starts_with("head");
        assert!(!is_cut || trial["level"] != "cold", "{trial}");
    }
    let told = folder.fails(2, &["bench", "--set", "level=cold", "--", "cat data.bin", "true"]);
    assert!(told.contains("true: no word of it is a file") && told.contains("--file"), "{told}");
    // A pattern is no file, and --file names what it stands for.
    let plan = folder.ok(&[
        "bench",
        "--dry-run",
        "--set",
        "level=cold",
        "--file",
        "all=.",
        "--",
        "cat *.bin",
        "ls {file:all}",
    ]);
    assert!(plan.contains("cat *.bin (cold)"), "{plan}");
    assert!(plan.contains(&format!("ls {}'", folder.0.path().display())), "{plan}");
}

#[test]
fn a_command_that_fails_ends_the_run_with_its_reason() {
    let folder = folder();
    let bad = "test -e mended || { echo ran >> log; seq 100 >&2; echo gone wrong >&2; exit 7; }";
    let told = folder.fails(1, &["bench", "--pairs", "1", "--json", "r.jsonl", "--", "true", bad]);
    assert!(told.contains("test -e mended") && told.contains("exit status 7"), "{told}");
    assert!(told.ends_with("\n99\n100\ngone wrong\n"), "{told}");
    assert!(!told.contains("\n50\n"), "only the end: {told}");
    assert_eq!(fs::read_to_string(folder.path("log")).unwrap(), "ran\n", "it ran once");
    // The other command's trial is kept. Once the cause is mended, the run goes on.
    assert_eq!(lines(&folder, "r.jsonl", "thalweg.trial/").len(), 1);
    fs::write(folder.path("mended"), "").unwrap();
    folder.ok(&["bench", "--resume", "r.jsonl"]);
    assert_eq!(lines(&folder, "r.jsonl", "thalweg.trial/").len(), 2 * 3);
    let told = folder.fails(1, &["bench", "--json", "n.jsonl", "--", "/nowhere/program"]);
    assert!(told.contains("/nowhere/program") && told.contains("exit status 127"), "{told}");
}

#[test]
fn a_run_of_commands_goes_on_in_its_folder_only() {
    let folder = folder();
    folder.ok(&["bench", "--pairs", "1", "--json", "r.jsonl", "--", "true"]);
    fs::create_dir(folder.path("below")).unwrap();
    let mut command = folder.command(["bench", "--resume", "../r.jsonl"]);
    let output = command.current_dir(folder.path("below")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("cd {}", folder.0.path().display())), "{told}");
}

#[test]
fn commands_reach_the_shell_as_they_are() {
    let folder = folder();
    let odd = r#"printf '%s\n' '{file} {{x}} {{{y}}} {out}' "${HOME:+home}" \"q\" '\t' > said"#;
    let run = ["bench", "--pairs", "1", "--file", "in=data.bin", "--name", "{odd}"];
    let rest = ["--", odd, "cat {file:in} >> read", "printf 'a\nb'"];
    folder.ok(&[&run[..], &["--json", "r.jsonl"], &rest].concat());
    let said = fs::read_to_string(folder.path("said")).unwrap();
    assert_eq!(said, "{file} {{x}} {{{y}}} {out}\nhome\n\"q\"\n\\t\n");
    assert_eq!(fs::metadata(folder.path("read")).unwrap().len(), 2 * 100_000);
    let session = &lines(&folder, "r.jsonl", "thalweg.session/")[0];
    let names: Vec<_> =
        session["arms"].as_array().unwrap().iter().map(|arm| &arm["name"]).collect();
    assert_eq!(names, ["{odd}", rest[2], rest[3], "{odd} (again)"]);
}

#[test]
fn each_command_may_have_a_command_before_its_trials() {
    let folder = folder();
    let run = |name: &str, before: &[&str]| {
        let before: Vec<&str> = before.iter().flat_map(|before| ["--prepare", before]).collect();
        let run = ["bench", "--pairs", "1", "--json", name];
        folder.ok(&[&run[..], &before, &["--", "echo run >> one", "echo run >> two"]].concat());
        ["one", "two"].map(|name| {
            let log = fs::read_to_string(folder.path(name)).unwrap();
            fs::remove_file(folder.path(name)).unwrap();
            log.replace('\n', " ")
        })
    };
    // The first command runs once more in each round, and all run once to warm up.
    let [one, two] = run("each.jsonl", &["echo 1 >> one", "echo 2 >> two"]);
    assert_eq!((one.as_str(), two.as_str()), ("1 run 1 run 1 run 1 run ", "2 run 2 run "));
    let [one, two] = run("both.jsonl", &["echo 1 >> one"]);
    assert_eq!(two, "run run ");
    assert_eq!((one.matches('1').count(), one.matches("run").count()), (6, 4));
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let folder = folder();
    for (args, said) in [
        (&["--", "touch ran", " "][..], "a command is empty"),
        (&["--name", "a", "--name", "b", "--", "touch ran"], "2 names for 1 command"),
        (&["--name", "a", "--name", "a", "--", "touch ran", "true"], "two commands are called"),
        (&["--prepare", "a", "--prepare", "b", "--", "touch ran"], "one for all, or one for each"),
        (&["--file", "a/b=data.bin", "--", "touch ran"], "--file a/b"),
        (&["--file", "in=absent", "--", "touch ran"], "absent: No such file"),
        (&["--set", "level=tepid", "--", "touch ran"], "tepid"),
        (&["--set", "threats=1", "--", "touch ran"], "threads"),
        (&["--prepare", "touch ran"], "<COMMAND>"),
        (&["tour", "--", "touch ran"], "cannot be used with"),
        (&["--only", "x", "--", "touch ran"], "cannot be used with"),
    ] {
        let told = folder.fails(2, &[&["bench", "--json", "r.jsonl"], args].concat());
        assert!(told.contains(said), "{args:?}: {told}");
    }
    for left in ["ran", "r.jsonl", "thalweg-bench"] {
        assert!(!folder.path(left).exists(), "{left}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_the_run_goes_on() {
    let folder = folder();
    let args = ["bench", "--pairs", "8", "--out", "res", "--"];
    let commands = ["echo . >> began; sleep 0.1", "echo . >> began; sleep 0.2"];
    let mut command = folder.command([&args[..], &commands].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let count = || fs::read_to_string(folder.path("began")).unwrap_or_default().lines().count();
    let output = interrupt_at(child, count, 8);
    assert!(String::from_utf8_lossy(&output.stdout).contains("STOPPED"), "{output:?}");
    let made = fs::read_dir(folder.path("res")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read_to_string(made.join("report.html")).unwrap().contains("STOPPED"));
    let name = format!("res/{}/results.jsonl", made.file_name().unwrap().to_str().unwrap());
    let kept = lines(&folder, &name, "thalweg.trial/").len();
    assert!((7..27).contains(&kept), "{kept}");
    folder.ok(&["bench", "--resume", made.to_str().unwrap()]);
    assert_eq!(lines(&folder, &name, "thalweg.trial/").len(), 9 * 3);
}
