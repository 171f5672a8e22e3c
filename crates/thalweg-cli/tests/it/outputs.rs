//! No verb writes over its input, or over a file that exists, unless it is told to.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::Folder;

/// The verbs that write a file, with IN and OUT for the paths.
const VERBS: [&str; 9] = [
    "read IN --to OUT",
    "convert IN OUT --format blow5",
    "filter IN --where samples>0 --to OUT --format blow5",
    "merge IN --to OUT --format blow5",
    "scan IN --to OUT",
    "plot IN --to OUT",
    "index IN -o OUT",
    "check IN --salvage OUT",
    "synth OUT --samples 50k --kind blow5",
];

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
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    let before = fs::read(folder.path("in.blow5")).unwrap();
    for verb in VERBS.iter().filter(|verb| verb.contains("IN")) {
        // The file by a name with the right ending: as a hard link, and as a symbolic one.
        let [hard, soft] = ["hard", "soft"].map(|name| format!("{name}{}", ending(verb)));
        let _ = fs::hard_link(folder.path("in.blow5"), folder.path(&hard));
        let _ = symlink("in.blow5", folder.path(&soft));
        for output in [&hard, &soft] {
            let mut all = args(verb, "in.blow5", output);
            for _ in 0..2 {
                let told = folder.fails(2, &words(&all));
                assert!(told.contains("the output is the input"), "{verb}: {told}");
                assert_eq!(fs::read(folder.path("in.blow5")).unwrap(), before, "{verb}");
                all.push("--force".into());
            }
        }
    }
}

#[test]
fn a_file_that_exists_is_replaced_only_with_force() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    for verb in VERBS {
        let out = format!("out{}", ending(verb));
        fs::write(folder.path(&out), "not yours").unwrap();
        let mut all = args(verb, "in.blow5", &out);
        let told = folder.fails(1, &words(&all));
        assert!(told.contains("--force"), "{verb}: {told}");
        assert_eq!(fs::read(folder.path(&out)).unwrap(), b"not yours", "{verb}");
        all.push("--force".into());
        folder.ok(&words(&all));
        assert_ne!(fs::read(folder.path(&out)).unwrap(), b"not yours", "{verb}");
    }
    // An index replaces an index.
    folder.ok(&["index", "in.blow5"]);
    folder.ok(&["index", "in.blow5"]);
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
        ("filter in.blow5 --where samples>0 --to out.blow5", &blow5),
        ("merge in.blow5 --to out.blow5", &blow5),
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

/// A program that knows formats by names would take the file for another format.
#[test]
fn a_format_that_the_name_does_not_say_is_told() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    let cases = [
        ("convert in.blow5 a.blow5 --to slow5", Some("as SLOW5, as --to says, not as BLOW5")),
        ("merge in.blow5 --to b.slow5 --format blow5", Some("as BLOW5, as --format says")),
        ("convert in.blow5 c.slow5 --to slow5", None),
        ("convert in.blow5 d.txt --to slow5", None),
        ("convert in.blow5 parts.blow5 --per-file --to slow5", None),
    ];
    for (verb, told) in cases {
        let words: Vec<&str> = verb.split(' ').collect();
        let output = folder.run(&words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{verb}: {said}");
        assert!(told.map_or(said.is_empty(), |told| said.contains(told)), "{verb}: {said}");
    }
}

#[test]
fn no_file_is_called_like_standard_output() {
    let folder = Folder::new();
    folder.ok(&["synth", "in.blow5", "--samples", "50k"]);
    for verb in [
        "convert in.blow5 -",
        "convert in.blow5 - --to blow5",
        "merge in.blow5 --to - --format blow5",
    ] {
        let words: Vec<&str> = verb.split(' ').collect();
        assert!(folder.fails(2, &words).contains("standard output"), "{verb}");
        assert!(!folder.path("-").exists(), "{verb}");
    }
    folder.ok(&["convert", "in.blow5", "./-", "--to", "blow5"]);
    assert!(folder.path("-").is_file());
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
    fs::hard_link(folder.path("ids"), folder.path("hard.arrow")).unwrap();
    symlink("ids", folder.path("soft.arrow")).unwrap();
    for verb in [
        "convert in.blow5 OUT --to blow5 --ids ids",
        "filter in.blow5 --to OUT --format blow5 --ids ids",
        "read in.blow5 --to OUT --ids ids",
        "scan in.blow5 --to OUT --ids ids",
    ] {
        for out in ["hard.arrow", "soft.arrow"] {
            let mut all = args(verb, "", out);
            for _ in 0..2 {
                let told = folder.fails(2, &words(&all));
                assert!(told.contains("the output is the input"), "{verb}: {told}");
                all.push("--force".into());
            }
        }
    }
    assert_eq!(fs::read(folder.path("ids")).unwrap(), ids.as_bytes());
}
