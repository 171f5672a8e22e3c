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
