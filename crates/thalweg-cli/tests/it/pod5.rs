//! POD5 on the command line: full disks, missing permissions, and the messages about damaged files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::command::{after, as_nobody, nobody_can_run, thalweg};
use crate::common::json;
use crate::hostile::Place;

/// A folder with a POD5 file of some reads, and the path of the file.
fn place(name: &str, samples: &str) -> (Place, String) {
    let place = Place::new();
    let path = place.at(name);
    assert_eq!(thalweg(&["synth", &path, "--kind", "pod5", "--samples", samples]).code, Some(0));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    (place, path)
}

fn ids(path: &str) -> Vec<String> {
    let ended = thalweg(&["scan", path, "--columns", "read_id"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn no_more_room_on_the_disk() {
    let (place, path) = place("good.pod5", "3M");
    let (out, blow5, index) = (place.at("out.pod5"), place.at("out.blow5"), place.at("out.idx"));
    // The unit is blocks of 512 bytes. The signal is ignored, because it would end the process
    // before it could clean up, which a full disk does not do.
    let full = "trap '' XFSZ; ulimit -f 64";
    let verbs = [
        &["convert", &path, &out][..],
        &["convert", &path, &out, "--verify"],
        &["convert", &path, &blow5],
        &["check", &path, "--salvage", &out],
        &["synth", &out, "--kind", "pod5", "--samples", "3M"],
        &["synth", &out, "--kind", "pod5", "--samples", "3M", "--signal", "none"],
    ];
    for args in verbs {
        after(full, args).told("out.", "writing");
        assert_eq!(place.names(), ["good.pod5"], "{args:?}");
    }
    after("trap '' XFSZ; ulimit -f 0", &["index", &path, "-o", &index]).told("out.idx", "");
    assert_eq!(place.names(), ["good.pod5"]);
    // An existing file is left unchanged.
    fs::write(&out, b"old").unwrap();
    for args in &verbs[..2] {
        after(full, &[args, &["--force"][..]].concat()).told("out.pod5", "writing");
        assert_eq!(fs::read(&out).unwrap(), b"old");
    }
    // If the index cannot be written, the read succeeds without it.
    let list = place.write("list", ids(&path)[1].as_bytes());
    let ended = after("trap '' XFSZ; ulimit -f 0", &["read", &path, "--ids", &list, "--digest"]);
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 1), "{ended:?}");
    assert_eq!(place.names(), ["good.pod5", "list", "out.pod5"]);
}

#[test]
fn read_only_folders() {
    if !nobody_can_run() {
        return;
    }
    let (place, path) = place("reads.pod5", "1M");
    let wanted = [ids(&path)[2].clone(), ids(&path)[0].clone()];
    let list = place.write("list", wanted.join("\n").as_bytes());
    fs::set_permissions(&list, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(place.folder.path(), Permissions::from_mode(0o555)).unwrap();
    let cache = tempfile::tempdir().unwrap();
    fs::set_permissions(cache.path(), Permissions::from_mode(0o777)).unwrap();
    let out = place.at("out.pod5");
    for args in [
        &["convert", &path, &out][..],
        &["check", &path, "--salvage", &out],
        &["synth", &out, "--kind", "pod5", "--samples", "1M"],
    ] {
        as_nobody(args, cache.path()).told("out.pod5", "ermission");
    }
    as_nobody(&["index", &path], cache.path()).told("reads.pod5.idx", "ermission");
    let digest = ["read", &path, "--ids", &list, "--digest"];
    // Twice, for the second time the index is there; then where there is nowhere to save it.
    for (cache, saved) in
        [(cache.path(), Some(1)), (cache.path(), Some(1)), (Path::new("/proc/none"), None)]
    {
        let ended = as_nobody(&digest, cache);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Vec<&str> =
            ended.out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(found, wanted);
        let files = fs::read_dir(cache.join("thalweg/index")).map(Iterator::count).ok();
        assert_eq!(files, saved, "the index goes to the cache folder");
    }
    fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.names(), ["list", "reads.pod5"]);
}

#[test]
fn info_needs_no_index() {
    let (place, path) = place("reads.pod5", "1M");
    let info = &json(&thalweg(&["info", &path, "--json"]).out)[0];
    assert_eq!(
        (info["reads"].as_u64(), info["reads_from"].as_str()),
        (Some(ids(&path).len() as u64), Some("table"))
    );
    assert_eq!(place.names(), ["reads.pod5"]);
}

#[test]
fn a_damaged_file_is_reported_and_salvaged() {
    let (place, path) = place("reads.pod5", "1M");
    let all = ids(&path);
    let mut bytes = fs::read(&path).unwrap();
    // The head of a zstd frame; elsewhere it would be luck if anything told.
    let middle = bytes.len() / 3;
    let frame =
        bytes[middle..].windows(4).position(|window| window == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[middle + frame..middle + frame + 8].fill(0xee);
    fs::write(&path, &bytes).unwrap();
    thalweg(&["read", &path]).told("reads.pod5", "signal of read");
    let out = place.at("saved.pod5");
    let ended = thalweg(&["check", &path, "--salvage", &out]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let saved = format!("salvaged: {} reads in", all.len() - 1);
    assert!(ended.out.contains(&saved) && ended.out.contains("1 read\n"), "{ended:?}");
    assert_eq!(ids(&out).len(), all.len() - 1);
    assert_eq!(thalweg(&["check", &out]).code, Some(0));
    let report = &json(&thalweg(&["check", &path, "--json"]).out)[0];
    assert_eq!(
        (report["lost_reads"].as_u64(), report["whole"].as_bool()),
        (Some(1), Some(false)),
        "{report}"
    );
    let ended = thalweg(&["check", &path, "--salvage", &path]);
    assert!(ended.code == Some(2) && ended.err.contains("is the input"), "{ended:?}");
}
