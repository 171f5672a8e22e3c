//! Completions and man pages.

use std::fs;
use std::process::Command;

use crate::common::Folder;

#[test]
fn every_verb_says_the_same_version() {
    let folder = Folder::new();
    let version = format!("thalweg {}\n", env!("CARGO_PKG_VERSION"));
    for verb in [&[][..], &["bench"], &["read"], &["subset"], &["graph"], &["graph", "import"]] {
        for option in ["--version", "-V"] {
            assert_eq!(folder.ok(&[verb, &[option]].concat()), version, "{verb:?}");
        }
    }
}

#[test]
fn shells_complete_verbs_and_options() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.ok(&["completions", shell]);
        assert!(script.contains("neighbors") && script.contains("per-file"), "{shell}");
    }
    folder.fails(2, &["completions", "csh"]);
    fs::write(folder.path("script"), folder.ok(&["completions", "bash"])).unwrap();
    let asked = "source ./script; COMP_WORDS=(thalweg conv); COMP_CWORD=1; \
                 _thalweg thalweg conv thalweg; echo \"${COMPREPLY[@]}\"";
    let bash = Command::new("bash").args(["-c", asked]).current_dir(folder.0.path()).output();
    assert_eq!(String::from_utf8(bash.unwrap().stdout).unwrap(), "convert\n");
}

#[test]
fn each_verb_has_a_man_page() {
    let folder = Folder::new();
    for _ in 0..2 {
        folder.ok(&["man", "share/man1"]);
    }
    for (page, said) in [
        ("thalweg.1", "thalweg\\-convert(1)"),
        ("thalweg-convert.1", "verify"),
        ("thalweg-graph-neighbors.1", "direction"),
    ] {
        let page = fs::read_to_string(folder.path("share/man1").join(page)).unwrap();
        assert!(page.contains(said), "{page}");
    }
    fs::write(folder.path("file"), "").unwrap();
    let said = folder.fails(1, &["man", "file"]);
    assert!(said.contains("file"), "{said}");
}
