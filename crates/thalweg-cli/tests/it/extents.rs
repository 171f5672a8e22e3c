//! `index` of HDF5 arrays: a saved index of the chunks is used as long as it belongs to the file.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::common::Folder;

/// A live NeXus file, and its digests.
fn live() -> (Folder, String) {
    let folder = Folder::new();
    folder.ok(&[
        "synth",
        "live.nxs",
        "--kind",
        "nexus-live",
        "--size",
        "2MB",
        "--banks",
        "3",
        "--chunk",
        "512",
    ]);
    let digests = folder.ok(&["read", "live.nxs", "--digest"]);
    assert!(digests.contains("/entry/bank3_events/event_id\t"), "{digests}");
    (folder, digests)
}

/// Reads the file, asserts that its digests are `digests`, and returns the standard error.
fn said(folder: &Folder, digests: &str, more: &[&str]) -> String {
    let output = folder.run(&[&["read", "live.nxs", "--digest"], more].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), digests);
    String::from_utf8(output.stderr).unwrap()
}

fn index(folder: &Folder) -> Vec<u8> {
    folder.ok(&["index", "live.nxs"]);
    fs::read(folder.path("live.nxs.idx")).unwrap()
}

#[test]
fn chunks_are_found_in_the_index() {
    let (folder, digests) = live();
    let saved = index(&folder);
    assert_eq!(said(&folder, &digests, &[]), "");
    assert_eq!(said(&folder, &digests, &["--trusted"]), "");
    assert_eq!(said(&folder, &digests, &["--no-index"]), "");
    let info = folder.ok(&["info", "live.nxs"]);
    assert!(info.contains("chunks from  live.nxs.idx\n"), "{info}");
    assert_eq!(folder.json(&["info", "live.nxs", "--json"])[0]["index"], "live.nxs.idx");
    // An index is made from the file itself, so an existing index does not change the result.
    assert_eq!(index(&folder), saved);
    let references = |name: &str, more: &[&str]| {
        folder.ok(&[&["index", "live.nxs", "--kerchunk", name], more].concat());
        fs::read(folder.path(name)).unwrap()
    };
    assert_eq!(references("a.json", &[]), references("b.json", &["--no-index"]));
}

#[test]
fn an_index_of_another_state_is_noticed() {
    let (folder, digests) = live();
    index(&folder);
    let touched = SystemTime::now() - Duration::from_secs(1000);
    File::options()
        .append(true)
        .open(folder.path("live.nxs"))
        .unwrap()
        .set_modified(touched)
        .unwrap();
    let told = said(&folder, &digests, &[]);
    assert!(told.contains(
        "live.nxs.idx is not used: the file has changed since; `thalweg index` makes a new one"
    ));
    assert_eq!(said(&folder, &digests, &["--no-index"]), "");
    assert_eq!(folder.json(&["info", "live.nxs", "--json"])[0]["index"], serde_json::Value::Null);
    index(&folder);
    assert_eq!(said(&folder, &digests, &[]), "");
    // Another program puts another file in its place; --force would remove the index.
    folder.ok(&[
        "synth",
        "other.nxs",
        "--kind",
        "nexus-live",
        "--size",
        "2MB",
        "--banks",
        "3",
        "--seed",
        "5",
    ]);
    fs::rename(folder.path("other.nxs"), folder.path("live.nxs")).unwrap();
    let other = folder.ok(&["read", "live.nxs", "--digest", "--no-index"]);
    assert_ne!(other, digests);
    assert!(said(&folder, &other, &[]).contains("the file has changed since"));
}

#[test]
fn a_damaged_index_is_noticed() {
    let (folder, digests) = live();
    let saved = index(&folder);
    let place = folder.path("live.nxs.idx");
    let with = |bytes: &[u8]| {
        fs::write(&place, bytes).unwrap();
        said(&folder, &digests, &[])
    };
    for at in [0, 9, 20, 60, saved.len() / 2, saved.len() - 1] {
        let mut bytes = saved.clone();
        bytes[at] ^= 4;
        let told = with(&bytes);
        assert!(told.contains("live.nxs.idx is not used: byte "), "{at}: {told}");
    }
    assert!(with(&saved[..saved.len() - 9]).contains("is not used"));
    assert!(with(b"").contains("is not used"));
    assert!(with(&vec![0; 8 << 20]).contains("it has 8388608 bytes, and the file"));
    // A file that is not an index is not overwritten.
    fs::write(&place, b"mine, and no index").unwrap();
    assert!(folder.fails(1, &["index", "live.nxs"]).contains("the file exists"));
    assert_eq!(fs::read(&place).unwrap(), b"mine, and no index");
    folder.ok(&["index", "live.nxs", "--output", "elsewhere.idx"]);
    assert_eq!(fs::read(folder.path("elsewhere.idx")).unwrap(), saved);
}
