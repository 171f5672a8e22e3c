//! Checks the structure of the source tree that `docs/design.md` describes. Each check reports
//! every violation with its place, and every exception that is no longer needed.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "structure/checks.rs"]
mod checks;
#[path = "structure/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use checks::{Crate, Finding};

/// Crates whose top-level modules still form a cycle.
const CYCLES: &[&str] = &[];
/// Dependencies, as `user -> used`, that exist although `MAY_USE` does not allow them.
const DEPENDENCIES: &[&str] = &[];
/// Crates that still have lines wider than 100 characters.
const WIDE_LINES: &[&str] = &[];
/// Files that still start threads of their own.
const THREADS: &[&str] = &[];
/// Files that still test a libhdf5 feature in the body of a function, or inside a module folder.
const FEATURES: &[&str] =
    &["crates/thalweg-hdf5/src/encode.rs", "crates/thalweg-hdf5/src/filter.rs"];

/// The crates of this workspace that each crate may use, without the prefix `thalweg-`. Crates for
/// tests are exempt.
const MAY_USE: &[(&str, &[&str])] = &[
    ("thalweg-codec", &[]),
    ("thalweg-io", &["codec"]),
    ("thalweg-hdf5", &["codec", "io"]),
    ("thalweg-nanopore", &["codec", "io", "hdf5"]),
    ("thalweg-graph", &["codec", "io", "hdf5"]),
    ("thalweg-fastq", &["codec", "io"]),
    ("thalweg-mount", &["codec", "io", "object"]),
    ("thalweg-object", &["io"]),
    ("thalweg", &["codec", "io", "hdf5", "nanopore", "graph", "fastq", "object"]),
    ("thalweg-gauge", &["io"]),
    ("thalweg-cli", &["", "codec", "io", "hdf5", "nanopore", "graph", "gauge", "mount"]),
    ("thalweg-python", &[""]),
    ("thalweg-c", &[""]),
];

/// Crates that only tests use.
const FOR_TESTS: &[&str] = &["thalweg-testing"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Rust files below a folder, sorted by path.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => rust_files(&path),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The Rust files below a folder of the workspace, each as (path from the root of the workspace,
/// text).
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = workspace();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let files = rust_files(&root.join(folder));
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn crate_folders() -> Vec<String> {
    let folders = fs::read_dir(workspace().join("crates")).unwrap();
    let mut names: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| workspace().join("crates").join(name).join("Cargo.toml").exists());
    assert!(names.len() >= 9, "{names:?}");
    names
}

static CRATES: LazyLock<Vec<Crate>> = LazyLock::new(|| {
    let read = |name: String| Crate::new(&name, sources(&format!("crates/{name}/src")));
    crate_folders().into_iter().map(read).collect()
});

/// Panics with every finding that no exception covers, and every exception that covers no finding.
#[track_caller]
fn report(what: &str, findings: &[Finding], exceptions: &[&str]) {
    let covered: BTreeSet<&str> = findings.iter().map(|finding| finding.of.as_str()).collect();
    let open = findings.iter().filter(|finding| !exceptions.contains(&finding.of.as_str()));
    let mut lines: Vec<String> = open.map(|finding| finding.words.clone()).collect();
    let unneeded = exceptions.iter().filter(|exception| !covered.contains(*exception));
    lines.extend(unneeded.map(|exception| format!("exception no longer needed: {exception}")));
    assert!(lines.is_empty(), "{what}: {} findings\n{}\n", lines.len(), lines.join("\n"));
}

#[test]
fn modules_of_a_crate_form_no_cycle() {
    let findings: Vec<Finding> = CRATES.iter().flat_map(checks::cycles).collect();
    report("cycles of modules", &findings, CYCLES);
}

#[test]
fn crates_use_what_the_design_allows() {
    let mut findings = Vec::new();
    for name in crate_folders().iter().filter(|name| !FOR_TESTS.contains(&name.as_str())) {
        let path = format!("crates/{name}/Cargo.toml");
        let text = fs::read_to_string(workspace().join(&path)).unwrap();
        let allowed = MAY_USE.iter().find(|(user, _)| user == name).map(|(_, used)| *used);
        findings.extend(checks::dependencies(name, &path, &text, allowed));
    }
    report("dependencies between crates", &findings, DEPENDENCIES);
}

#[test]
fn lines_are_at_most_100_wide() {
    let mut findings = Vec::new();
    for name in crate_folders() {
        for (path, text) in sources(&format!("crates/{name}")) {
            findings.extend(checks::wide_lines(&name, &path, &text));
        }
    }
    report("lines wider than 100", &findings, WIDE_LINES);
}

#[test]
fn threads_start_in_io_only() {
    let others = CRATES
        .iter()
        .filter(|one| one.name != "thalweg-io" && !FOR_TESTS.contains(&one.name.as_str()));
    let findings: Vec<Finding> = others.flat_map(checks::threads).collect();
    report("threads outside thalweg-io", &findings, THREADS);
}

#[test]
fn features_stand_at_front_doors_only() {
    let findings: Vec<Finding> = CRATES.iter().flat_map(checks::features).collect();
    report("features within bodies", &findings, FEATURES);
}

/// Each check finds violations in code, and ignores comments, strings and tests.
#[test]
fn the_checks_find_what_they_are_for() {
    let krate = |files: &[(&str, &str)]| {
        let owned = files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned()));
        Crate::new("x", owned.collect())
    };
    let front = ("lib.rs", "mod a; mod b; mod c; pub use c::{Deep, Other};");
    let back = ("b.rs", "use std::fmt; use crate::{fmt, c::d};");
    let cycle = [
        "use crate::b::B;",
        "fn f() -> super::b::B { todo!() }",
        "mod inner { fn f() { super::super::b::g(\"'\", '\\'', 'a') } }",
        "#[cfg(test)] const T: u8 = 1; use crate::{fmt, b};",
    ];
    let to_a = ("c/d.rs", "pub struct Deep(super::super::a::A);");
    for text in cycle {
        let found = checks::cycles(&krate(&[front, ("a.rs", text), back, ("c.rs", ""), to_a]));
        assert_eq!(found.len(), 1, "{text}");
        assert!(found[0].words.contains("src/c/d.rs:1"), "{}", found[0].words);
    }
    let by_name = [front, ("a.rs", "use crate::Deep;"), ("c.rs", ""), to_a];
    assert_eq!(checks::cycles(&krate(&by_name)).len(), 1);
    let innocent = [
        "// use crate::b::B;",
        "const T: &str = \"crate::b\"; const R: &str = r#\"crate::b \" \"#;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)] fn f<A, B>(a: A) -> [u8; 2] { crate::b::f() }",
        "/* /* */ crate::b */ fn f<'a>(b: &'a str) {}",
        "mod inner { fn f() { super::b() } }",
        "#[cfg(test)] mod tests;",
    ];
    for text in innocent {
        let files = [front, ("a.rs", text), back, ("c.rs", ""), to_a, ("a/tests.rs", cycle[0])];
        let found = checks::cycles(&krate(&files[..5 + usize::from(text.ends_with("tests;"))]));
        assert!(found.is_empty(), "{text}: {}", found[0].words);
    }

    let starts = "\nfn f() { std::thread::scope(|s| {}); thread::Builder::new(); }\n\
                  #[test] fn t() { thread::spawn(f); }\nuse std::thread::{self, spawn};";
    let found = checks::threads(&krate(&[("a.rs", starts)]));
    let words: Vec<&str> = found.iter().map(|finding| finding.words.as_str()).collect();
    assert_eq!(
        words,
        ["src/a.rs:2: thread::scope", "src/a.rs:2: thread::Builder", "src/a.rs:4: thread::spawn"]
    );

    let item = "#[cfg(feature = \"hdf5\")]\nmod y;\n";
    let body = "fn f() -> u8 {\n#[cfg(feature = \"hdf5\")]\ng() }\n";
    for (path, text, expected) in [
        ("lib.rs", item, 0),
        ("a.rs", item, 0),
        ("c.rs", item, 1),
        ("a/y.rs", item, 1),
        ("lib.rs", body, 1),
        ("a.rs", "impl A { fn f() { if cfg!(feature = \"libhdf5\") {} } }", 1),
        ("a.rs", "impl A { #[cfg(feature = \"libhdf5\")] fn f() {} }", 0),
        ("a.rs", "fn f() { if cfg!(feature = \"mpi\") {} }", 0),
    ] {
        let found = checks::features(&krate(&[(path, text), ("a/z.rs", "")]));
        assert_eq!(found.len(), expected, "{path}: {text}");
    }

    let manifest = "[package]\nname = \"y\"\n[dependencies]\nthalweg-io.workspace = true\n\
                    thalweg = { workspace = true }\n\
                    [dev-dependencies]\nthalweg-gauge.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nthalweg-graph = { path = \"..\" }\n";
    let of = |allowed| checks::dependencies("y", "Cargo.toml", manifest, allowed);
    let found: Vec<String> = of(Some(&["io"])).into_iter().map(|finding| finding.of).collect();
    assert_eq!(found, ["y -> thalweg", "y -> thalweg-graph"]);
    assert!(of(Some(&["io", "graph", ""])).is_empty());
    assert_eq!(of(None).len(), 1, "a crate that the table lacks");

    let wide = format!("{}\n{}\n", "é".repeat(100), "é".repeat(101));
    let found = checks::wide_lines("x", "a.rs", &wide);
    assert_eq!(found.len(), 1);
    assert!(found[0].words.starts_with("a.rs:2: 101"), "{}", found[0].words);
}

#[test]
#[should_panic(expected = "exception no longer needed: a.rs")]
fn an_exception_that_covers_nothing_is_reported() {
    report("nothing", &[], &["a.rs"]);
}
