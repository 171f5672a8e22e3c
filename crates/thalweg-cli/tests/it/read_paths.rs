//! Several files and folders: `read` and its Arrow files, `check`, `index`.

use std::fs;

use crate::common::Folder;

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("run/deep")).unwrap();
    folder.ok(&["synth", "run/b.blow5", "--samples", "300k", "--seed", "1"]);
    folder.ok(&["synth", "run/deep/a.blow5", "--samples", "200k", "--seed", "2"]);
    fs::write(folder.path("run/notes.txt"), "not reads").unwrap();
    folder
}

#[test]
fn a_folder_is_read_file_by_file() {
    let folder = folder();
    let one_by_one = folder.ok(&["read", "run/b.blow5", "--digest"])
        + &folder.ok(&["read", "run/deep/a.blow5", "--digest"]);
    assert_eq!(folder.ok(&["read", "run", "--digest"]), one_by_one);
    assert_eq!(folder.ok(&["read", "run/deep/a.blow5", "run/b.blow5", "--digest"]), one_by_one);
    let both = &folder.json(&["read", "run", "--json"])[0];
    assert_eq!(both["reads"].as_u64(), Some(one_by_one.lines().count() as u64));
    let ids: Vec<&str> =
        one_by_one.lines().rev().map(|line| line.split('\t').next().unwrap()).collect();
    fs::write(folder.path("ids"), ids.join("\n")).unwrap();
    let backwards: Vec<&str> = one_by_one.lines().rev().collect();
    assert_eq!(
        folder.ok(&["read", "run", "--ids", "ids", "--digest"]).lines().collect::<Vec<_>>(),
        backwards
    );
}

#[test]
fn a_folder_is_checked_and_indexed() {
    let folder = folder();
    folder.ok(&["convert", "run/b.blow5", "run/b.pod5"]);
    let info = &folder.json(&["info", "run/b.pod5", "--json"])[0];
    assert_eq!(
        (&info["signal_press"], &info["tables"]["reads_batches"]),
        (&"vbz".into(), &1.into()),
        "{info}"
    );
    assert!(
        info["written_by"].as_str().unwrap().starts_with("thalweg ")
            && info["reads"].as_u64() > Some(0),
        "{info}"
    );
    let told = folder.ok(&["check", "run"]);
    assert_eq!(told.matches(": whole; ").count(), 3, "{told}");
    folder.ok(&["index", "run"]);
    assert!(
        ["b.blow5.idx", "b.pod5.idx", "deep/a.blow5.idx"]
            .iter()
            .all(|name| folder.path("run").join(name).exists())
    );
    folder.fails(2, &["index", "run", "--output", "all.idx"]);

    // A writer that was killed before the footer leaves such a file. It is readable, but not
    // complete.
    let whole = fs::read(folder.path("run/b.pod5")).unwrap();
    fs::write(folder.path("run/b.pod5"), &whole[..whole.len() - 60]).unwrap();
    let output = folder.run(&["read", "run/b.pod5", "--digest"]);
    assert_eq!(output.stdout, folder.ok(&["read", "run/b.blow5", "--digest"]).into_bytes());
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("footer") && !note.contains("page cache"), "{note}");
    let output = folder.run(&["check", "run"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), told.matches(": damaged; ").count()), (Some(1), 1), "{told}");
    assert!(told.contains("footer: found"), "{told}");
}

#[test]
fn an_arrow_file_appears_whole_or_not_at_all() {
    let folder = folder();
    folder.ok(&["read", "run", "--out", "out.arrow"]);
    let arrow = fs::read(folder.path("out.arrow")).unwrap();
    // Arrow columnar format, "IPC File Format": the magic number is at both ends.
    assert!(arrow.starts_with(b"ARROW1") && arrow.ends_with(b"ARROW1"));
    let whole = fs::read(folder.path("run/b.blow5")).unwrap();
    fs::write(folder.path("run/b.blow5"), &whole[..whole.len() - 9]).unwrap();
    folder.fails(1, &["read", "run", "--out", "cut.arrow"]);
    let left = fs::read_dir(&folder.0)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().contains("cut"));
    assert_eq!(left.count(), 0);
}

#[test]
fn options_about_one_file_refuse_several() {
    let folder = folder();
    for options in [&["--explain"][..], &["--out", "x.arrow", "--digest"]] {
        folder.fails(2, &[&["read", "run"], options].concat());
    }
    fs::create_dir(folder.path("empty")).unwrap();
    assert!(folder.fails(1, &["read", "empty"]).contains(".blow5"));
}
