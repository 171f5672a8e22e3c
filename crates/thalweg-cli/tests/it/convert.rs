//! `convert` on many files, resumed conversions, and outputs that stay intact if the program is
//! killed.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::PATIENCE;
use crate::common::Folder;

/// A folder with three files in two folders.
fn runs() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("runs/later")).unwrap();
    for (name, seed) in [("runs/a.blow5", "1"), ("runs/b.blow5", "2"), ("runs/later/a.blow5", "3")]
    {
        folder.ok(&["synth", name, "--samples", "200k", "--seed", seed]);
    }
    folder
}

fn names(folder: &Folder, below: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.path(below))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn many_files_to_one() {
    let folder = runs();
    for name in ["all.pod5", "all.blow5", "all.slow5"] {
        let told = &folder.json(&["convert", "runs", name, "--verify", "--json"])[0];
        assert_eq!((told["output"].as_str(), told["verified"].as_bool()), (Some(name), Some(true)));
        assert_eq!(told["lost"].as_array().map(Vec::len), Some(0));
        let rows = folder.ok(&["read", "runs", "--digest"]);
        assert_eq!(folder.ok(&["read", name, "--digest"]), rows);
        assert_eq!(told["reads"].as_u64(), Some(rows.lines().count() as u64));
    }
    assert!(folder.fails(2, &["convert", "runs", "x.blow5", "--sort"]).contains("one file"));
}

#[test]
fn each_file_is_converted_alone_and_the_rest_later() {
    let folder = runs();
    let convert = ["convert", "runs", "out", "--per-file", "--to", "pod5", "--json"];
    let told = folder.json(&convert);
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|line| line["skipped"] == false));
    assert_eq!(names(&folder, "out"), ["a.pod5", "b.pod5", "later"]);
    assert_eq!(names(&folder, "out/later"), ["a.pod5"]);
    for name in ["a", "b", "later/a"] {
        let rows = folder.ok(&["read", &format!("runs/{name}.blow5"), "--digest"]);
        assert_eq!(folder.ok(&["read", &format!("out/{name}.pod5"), "--digest"]), rows);
    }

    // Absent outputs are made; damaged and outdated ones only with --force; others are left alone.
    let resume = [&convert[..], &["--resume", "--force"]].concat();
    let skipped = || -> Vec<bool> {
        folder.json(&resume).iter().map(|line| line["skipped"] == true).collect()
    };
    assert_eq!(skipped(), [true, true, true]);
    fs::remove_file(folder.path("out/b.pod5")).unwrap();
    assert_eq!(skipped(), [true, false, true]);
    let whole = fs::read(folder.path("out/a.pod5")).unwrap();
    fs::write(folder.path("out/a.pod5"), &whole[..whole.len() - 1]).unwrap();
    assert!(folder.fails(1, &resume[..resume.len() - 1]).contains("--force"));
    assert_eq!(skipped(), [false, true, true]);
    let later = fs::metadata(folder.path("out/later/a.pod5")).unwrap().modified().unwrap()
        + Duration::from_secs(5);
    fs::File::options()
        .write(true)
        .open(folder.path("runs/later/a.blow5"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert_eq!(skipped(), [true, true, false]);
}

#[test]
fn outputs_with_the_same_path_are_refused() {
    let folder = runs();
    let told = folder.fails(
        2,
        &["convert", "runs/a.blow5", "runs/later/a.blow5", "out", "--per-file", "--to", "pod5"],
    );
    assert!(told.contains("would both become"), "{told}");
    let told = folder.fails(2, &["convert", "runs", "runs", "--per-file", "--to", "blow5"]);
    assert!(told.contains("is the input"), "{told}");
    assert!(!folder.path("out").exists());
    let before = fs::read(folder.path("runs/a.blow5")).unwrap();
    let itself = ["convert", "runs/a.blow5", "runs/a.blow5", "--record", "zlib", "--force"];
    assert!(folder.fails(2, &itself).contains("is the input"));
    assert_eq!(fs::read(folder.path("runs/a.blow5")).unwrap(), before);
}

#[test]
fn losses_are_refused_or_reported() {
    let folder = Folder::new();
    folder.synth("a.blow5", "200k");
    folder.ok(&["convert", "a.blow5", "a.slow5"]);
    let text =
        fs::read_to_string(folder.path("a.slow5")).unwrap().replace("\t2048\t-", "\t2048\t0.1-");
    fs::write(folder.path("a.slow5"), text.replace("0.1-", "0.1")).unwrap();
    let told = folder.fails(1, &["convert", "a.slow5", "a.pod5"]);
    assert!(told.contains("offset") && told.contains("--lossy"), "{told}");
    assert!(!folder.path("a.pod5").exists());
    let output = folder.run(&["convert", "a.slow5", "a.pod5", "--lossy", "--verify", "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("lost: the offset"));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["lost"][0]["reads"], line["reads"]);
}

/// How often a command is started that must be stopped in the middle. On a busy machine it may end
/// before the test can stop it.
const ATTEMPTS: usize = 20;

/// Starts a command and kills it as soon as `seen` is true. Returns whether it ended by itself.
fn kill_once(mut command: Command, seen: impl Fn() -> bool) -> bool {
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !seen() && child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < PATIENCE, "nothing to be seen of {command:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap().success()
}

/// A conversion that was killed and resumed gives the same bytes as one that ran through, whatever
/// the time and the number of threads.
#[test]
fn resumed_work_is_the_same_to_the_byte() {
    let folder = runs();
    folder.ok(&["synth", "runs/later/b.blow5", "--samples", "12M", "--seed", "4"]);
    let formats: &[&str] = if cfg!(feature = "hdf5") {
        &["slow5", "blow5", "pod5", "fast5"]
    } else {
        &["slow5", "blow5", "pod5"]
    };
    let all = ["a", "b", "later/a", "later/b"];
    for format in formats {
        let whole = format!("whole-{format}");
        folder.ok(&["convert", "runs", &whole, "--per-file", "--to", format, "-t", "2"]);
    }
    // Some formats store the time in seconds, so the second conversion starts at least one second
    // later.
    std::thread::sleep(Duration::from_millis(1100));
    for format in formats {
        let whole = format!("whole-{format}");
        let resumed = format!("resumed-{format}");
        let convert =
            ["convert", "runs", &resumed, "--per-file", "--to", format, "-t", "1", "--resume"];
        let stopped = (0..ATTEMPTS).any(|_| {
            let _ = fs::remove_dir_all(folder.path(&resumed));
            // Three entries in this folder, a file, a lock and a temporary file: the last file is
            // being written.
            let later = folder.path(&resumed).join("later");
            kill_once(folder.command(convert), || {
                fs::read_dir(&later).map_or(0, Iterator::count) == 3
            });
            !folder.path(&format!("{resumed}/later/b.{format}")).exists()
        });
        assert!(stopped, "{format}: over before it was stopped, {ATTEMPTS} times");
        folder.ok(&[&convert[..], &["--json"]].concat());
        for name in all {
            let bytes = |of: &str| fs::read(folder.path(&format!("{of}/{name}.{format}"))).unwrap();
            assert!(bytes(&resumed) == bytes(&whole), "{name}.{format}");
        }
    }
}

/// If the program is killed in the middle, no file has the output's name, and the next run
/// succeeds.
#[test]
fn a_kill_in_the_middle_leaves_a_sound_store() {
    let folder = Folder::new();
    folder.synth("a.blow5", "30M");
    fs::create_dir(folder.path("out")).unwrap();
    for name in ["out/a.pod5", "out/a.blow5"] {
        let stopped = (0..ATTEMPTS).any(|_| {
            let command = folder.command(["convert", "a.blow5", name, "-t", "1", "--verify"]);
            let whole = kill_once(command, || !names(&folder, "out").is_empty());
            let left = names(&folder, "out");
            assert!(whole || left.iter().all(|name| name.starts_with(".thalweg-")), "{left:?}");
            if whole {
                fs::remove_file(folder.path(name)).unwrap();
            }
            !whole
        });
        assert!(stopped, "{name}: over before it was stopped, {ATTEMPTS} times");
        folder.ok(&["convert", "a.blow5", name, "--verify"]);
        assert_eq!(names(&folder, "out"), [&name[4..]], "the killed run left files");
        fs::remove_file(folder.path(name)).unwrap();
    }
}

#[test]
fn options_may_stand_between_the_files() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["convert", "a.blow5", "--record", "zlib", "b.blow5"]);
    folder.ok(&["convert", "a.blow5", "c.blow5", "--record", "zlib"]);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    assert!(read("b.blow5") == read("c.blow5"));
    let said = folder.fails(2, &["convert", "a.blow5"]);
    assert!(said.contains("expected OUT, too"), "{said}");
}
