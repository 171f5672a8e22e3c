#![allow(clippy::unwrap_used)]

use thalweg_io::open::Options;

use super::*;
use crate::libhdf5::{Hdf5Writer, StoredNumber, VectorSpec};

const GROUPS: usize = 30;

/// A file with groups of two datasets each, and an empty group.
fn written() -> (tempfile::TempDir, ArrayFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = Hdf5Writer::create(&path, &"f.h5".into()).unwrap();
    for number in 0..GROUPS {
        let group = writer.group(None, &format!("group{number:02}")).unwrap();
        for name in ["a", "b"] {
            let numbers = VectorSpec { kind: StoredNumber::U32, len: 1, chunk: None, filters: &[] };
            writer.values(&writer.vector(&group, name, numbers).unwrap(), 0, &[7; 4]).unwrap();
        }
    }
    drop(writer.group(None, "hollow").unwrap());
    writer.finish().unwrap();
    let file = ArrayFile::open(&path, Options::default()).unwrap();
    (folder, file)
}

/// Different patterns that all match the same groups.
fn patterns(count: usize) -> Vec<String> {
    let other = ('A'..='Z').chain('a'..='q').take(count);
    other.map(|letter| format!("/g[!{letter}]*")).collect()
}

fn paths(survey: &Survey) -> Vec<&str> {
    survey.datasets.iter().map(Dataset::path).collect()
}

/// What many patterns match is held once, whatever their number.
#[test]
fn patterns_share_what_they_match() {
    let (_folder, file) = written();
    let patterns = patterns(40);
    let ways = file.ways(&patterns).unwrap();
    assert_eq!(ways.len(), 40);
    let nodes: Vec<_> = ways.iter().flat_map(|way| way.matching.as_ref().unwrap()).collect();
    assert!(nodes.len() > 20 * GROUPS, "{}", nodes.len());
    let own: HashSet<_> = nodes.iter().map(|node| Arc::as_ptr(node)).collect();
    assert_eq!(own.len(), GROUPS);
    // The same pattern again is no other one.
    let again = [&patterns[..], &patterns[..]].concat();
    assert_eq!(file.ways(&again).unwrap().len(), 40);
}

#[test]
fn each_dataset_is_there_once() {
    let (_folder, file) = written();
    let all = file.survey(&["/"]).unwrap();
    assert_eq!(paths(&all).len(), 2 * GROUPS);
    let many = [&["/**", "/*/a", "/group00", "/"][..], &["/*"; 50]].concat();
    let survey = file.survey(&many).unwrap();
    let (mut found, mut wanted) = (paths(&survey), paths(&all));
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    // They come in the order of the patterns.
    let ordered = file.survey(&["/group02/b", "/group01/*", "group02"]).unwrap();
    assert_eq!(paths(&ordered), ["/group02/b", "/group01/a", "/group01/b", "/group02/a"]);
    // A pattern that matches nothing is told, though another one has been there before.
    for nothing in [&["/h*"][..], &["/*", "/h*"], &["/h*", "/hollow*"], &["/x*"]] {
        assert!(matches!(file.survey(nothing), Err(Error::NotFound { .. })), "{nothing:?}");
    }
    // A path without wildcards may be an empty group.
    assert!(file.survey(&["/hollow"]).unwrap().datasets.is_empty());
}

/// docs/formats/hdf5.md has these rules.
#[test]
fn letters_of_patterns_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = Hdf5Writer::create(&path, &"f.h5".into()).unwrap();
    let group = writer.group(None, "g").unwrap();
    for name in ["a*b", "aXb", "a[1]", "a1", "q?", "back\\slash", "new\nline"] {
        let numbers = VectorSpec { kind: StoredNumber::U32, len: 1, chunk: None, filters: &[] };
        writer.values(&writer.vector(&group, name, numbers).unwrap(), 0, &[7; 4]).unwrap();
    }
    drop(group);
    writer.finish().unwrap();
    let file = ArrayFile::open(&path, Options::default()).unwrap();
    for (pattern, wanted) in [
        ("/g/a*b", &["a*b"][..]),
        ("/g/a[*]b", &["a*b"]),
        ("/g/a?b", &["a*b", "aXb"]),
        ("/g/a[!X]b", &["a*b"]),
        ("/g/a[A-Z]b", &["aXb"]),
        ("/g/a[1]", &["a[1]"]),
        ("/g/a[[]1]", &["a[1]"]),
        ("/?/a[0-9]", &["a1"]),
        ("/*/q[?]", &["q?"]),
        ("/g/back\\slash", &["back\\slash"]),
        ("/g/new\nline", &["new\nline"]),
        ("/**/a1", &["a1"]),
        ("g/a1", &["a1"]),
    ] {
        let survey = file.survey(&[pattern]).unwrap();
        let names: Vec<_> = paths(&survey).iter().map(|path| &path["/g/".len()..]).collect();
        assert_eq!(names, wanted, "{pattern}");
    }
    for nothing in ["/g/new\\nline", "/*/*/a1", "/**/*/a1"] {
        assert!(matches!(file.survey(&[nothing]), Err(Error::NotFound { .. })), "{nothing}");
    }
}

#[test]
fn the_objects_of_all_patterns_are_limited() {
    let (_folder, file) = written();
    let node = file.node("/group00").unwrap().unwrap();
    let mut matches = Matches { in_sum: MOST_IN_SUM - 1, ..Matches::default() };
    matches.shared(node.clone(), "/*").unwrap();
    let told = matches.shared(node, "/*").unwrap_err().to_string();
    assert!(told.contains("/*: more than 4194304 objects match"), "{told}");
}
