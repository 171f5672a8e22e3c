//! Hostile files and folders on the command line: the command prints one message that names the
//! file, exits with code 1, and leaves nothing behind.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thalweg::format::slow5::{Encoding, Framing, RecordPress, SignalPress};
use thalweg_testing::slow5::{self, header, id, sample};

use crate::command::{after, as_nobody, nobody_can_run, thalweg};

pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.at(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

fn good(lengths: &[usize]) -> Vec<u8> {
    sample("good", &header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd), lengths).bytes
}

/// A file of the same size has the same reads at other places. Nothing in its index tells.
#[test]
fn a_wrong_index_is_named_and_not_the_file() {
    let place = Place::new();
    let kind = header(Encoding::Binary, RecordPress::None, SignalPress::None);
    let other = place.write("other.blow5", &sample("other", &kind, &[300, 200, 100]).bytes);
    assert_eq!(thalweg(&["index", &other]).code, Some(0));
    let file = place.write("file.blow5", &sample("file", &kind, &[200, 100, 300]).bytes);
    let list = place.write("list", format!("{}\n", id(1)).as_bytes());
    let index = format!("{file}.idx");
    fs::copy(format!("{other}.idx"), &index).unwrap();
    for more in [&["--digest"][..], &["--one-by-one", "--json"]] {
        let ended = thalweg(&[&["read", &file, "--ids", &list], more].concat());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let named = ended.err.contains(&index) && ended.err.contains("`thalweg index`");
        assert!(named && !ended.err.contains("salvage"), "{}", ended.err);
    }
}

/// One damaged file does not keep the others from being converted or indexed.
#[test]
fn a_damaged_file_does_not_stop_the_others() {
    let place = Place::new();
    let good = good(&[100, 200]);
    fs::create_dir(place.path("in")).unwrap();
    let a = place.write("in/a.blow5", &good[..20]);
    place.write("in/b.blow5", &good);
    let c = place.write("in/c.blow5", &good[..good.len() - 20]);
    place.write("in/d.blow5", &good);
    let [all, out] = [place.at("in"), place.at("out")];
    let convert = ["convert", &all, &out, "--per-file", "--to", "slow5"];
    let cases = [
        (convert.to_vec(), "out/b.slow5", "out/d.slow5"),
        ([&convert[..], &["--resume"]].concat(), "out/b.slow5", "out/d.slow5"),
        (vec!["index", &all], "in/b.blow5.idx", "in/d.blow5.idx"),
    ];
    for (args, first, second) in cases {
        let ended = thalweg(&args);
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        for told in [&a, &c, "2 of 4 files were not done"] {
            assert!(ended.err.contains(told), "{args:?}: {}", ended.err);
        }
        assert!(place.path(first).is_file() && place.path(second).is_file(), "{args:?}");
    }
    let mut left: Vec<_> = fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["b.slow5", "d.slow5"]);
}

#[test]
fn what_is_cut_short_is_called_truncated() {
    let place = Place::new();
    let [whole, blow5] = [place.at("whole.pod5"), place.at("whole.blow5")];
    assert_eq!(thalweg(&["synth", &whole, "--samples", "300k"]).code, Some(0));
    assert_eq!(thalweg(&["synth", &blow5, "--samples", "300k"]).code, Some(0));
    let bytes = fs::read(&whole).unwrap();
    let told = |name: &str, bytes: &[u8], what: &str| {
        let path = place.write(name, bytes);
        for verb in ["read", "check", "info"] {
            let ended = thalweg(&[verb, &path]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            for part in [what, "it is truncated", "fetch the file again"] {
                assert!(ended.err.contains(part), "{verb} {name}: {part:?} in {}", ended.err);
            }
        }
    };
    for len in [0, 4, 7, 20, 1000, bytes.len() / 2] {
        told("cut.pod5", &bytes[..len], "a POD5 file");
    }
    told("cut.blow5", b"", "a BLOW5 file");
    told("cut.blow5", b"BLO", "a BLOW5 file");
    told("cut.fast5", b"", "a FAST5 file");
    told("cut.fast5", b"\x89HD", "a FAST5 file");
}

/// An address limit with room for the program and the memory that it may use, and little more, in
/// KiB for `ulimit -v`. Threads and allocator arenas reserve addresses that they do not use.
const ADDRESSES: &str = "ulimit -v 700000; ulimit -c 0";

#[test]
fn paths_that_are_not_files_are_refused() {
    let place = Place::new();
    let pipe = place.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let folder = place.at("");
    let out = place.at("out.blow5");
    for path in [folder.as_str(), &place.at("pipe"), "/dev/null", "/dev/zero"] {
        for args in
            [&["read", path][..], &["index", path], &["check", path], &["convert", path, &out]]
        {
            // A folder is a data set, and this one has no reads.
            let told = if path == folder { "not found" } else { "not supported" };
            thalweg(args).told(path, told);
        }
    }
    for path in [&place.at("pipe"), "/dev/null", "/dev/zero"] {
        for verb in ["info", "evict", "doctor", "probe", "compare"] {
            thalweg(&[verb, path]).told(path, "not supported");
        }
    }
    let good = place.write("good.blow5", &good(&[5]));
    for list in ["/dev/zero", folder.as_str()] {
        thalweg(&["read", &good, "--ids", list]).told(list, "not supported");
    }
    thalweg(&["read", &place.write("empty.blow5", b"")]).told("empty.blow5", "truncated");
    thalweg(&["check", &place.write("empty.slow5", b"")]).told("empty.slow5", "truncated");
    thalweg(&["read", &place.write("text.blow5", b"hello")]).told("text.blow5", "BLOW5");
}

#[test]
fn a_pipe_in_the_place_of_an_index_is_told() {
    let place = Place::new();
    let reads = place.write("good.blow5", &good(&[5, 6]));
    let pipe = place.path("good.blow5.idx");
    let (here, fifo, mode) = (rustix::fs::CWD, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(here, &pipe, fifo, mode, 0).unwrap();
    let ids = place.write("ids", id(0).as_bytes());
    let checked = thalweg(&["check", &reads]);
    assert!(checked.out.contains("good.blow5.idx: a pipe or device is not supported"));
    thalweg(&["read", &reads, "--ids", &ids]).told("good.blow5.idx", "not supported");
    let _ = thalweg(&["info", &reads]);
    assert_eq!(place.names(), ["good.blow5", "good.blow5.idx", "ids"]);
}

/// A device or a pipe must not be replaced by a file.
#[test]
fn outputs_that_are_not_files() {
    let place = Place::new();
    let good = place.write("good.blow5", &good(&[5, 6]));
    let pipe = place.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    for out in ["pipe", "folder"] {
        let path = place.at(out);
        for args in [
            &["convert", &good, &path, "--to", "blow5"][..],
            &["index", &good, "-o", &path],
            &["check", &good, "--salvage", &path],
        ] {
            thalweg(args).told(out, "");
        }
    }
    assert_eq!(place.names(), ["folder", "good.blow5", "pipe"]);
    // A link remains a link.
    let target = place.write("target.blow5", b"old");
    std::os::unix::fs::symlink(&target, place.path("link.blow5")).unwrap();
    assert_eq!(
        thalweg(&["check", &good, "--force", "--salvage", &place.at("link.blow5")]).code,
        Some(0)
    );
    assert!(fs::symlink_metadata(place.path("link.blow5")).unwrap().is_symlink());
    assert!(fs::read(target).unwrap() == fs::read(good).unwrap());
    thalweg(&["convert", &place.at("good.blow5"), &place.at("none/out.blow5")])
        .told("none/out.blow5", "make the folder first");
}

#[test]
fn no_more_room_on_the_disk() {
    let place = Place::new();
    let path = place.write("good.blow5", &good(&[40_000; 40]));
    let out = place.at("out.blow5");
    let text = place.at("out.slow5");
    let pod5 = place.at("out.pod5");
    // The unit is blocks of 512 bytes.
    let full = "ulimit -f 64";
    for args in [
        &["convert", &path, &text][..],
        &["check", &path, "--salvage", &out],
        &["synth", &out, "--samples", "2M"],
        &["synth", &pod5, "--kind", "pod5", "--samples", "2M"],
    ] {
        after(full, args).told("out.", "writing");
        assert_eq!(place.names(), ["good.blow5"], "{args:?}");
    }
    // The same for standard output.
    let ended = after("exec >/dev/full", &["read", &path, "--digest"]);
    ended.told("standard output", "No space left");
    // An existing file is left unchanged.
    fs::write(&out, b"old").unwrap();
    after(full, &["check", &path, "--force", "--salvage", &out]).told("out.blow5", "writing");
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

/// 5 GB from 160 kB: zstd blocks that repeat one byte, in a frame that does not store its length.
fn zstd_bomb() -> Vec<u8> {
    const BLOCK: u32 = 128 << 10;
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for left in (0..40_000).rev() {
        let block = BLOCK << 3 | 1 << 1 | u32::from(left == 0);
        bomb.extend(&block.to_le_bytes()[..3]);
        bomb.push(0);
    }
    bomb
}

#[test]
fn bombs_stay_within_memory() {
    let place = Place::new();
    for (press, signal) in
        [(RecordPress::Zstd, SignalPress::None), (RecordPress::None, SignalPress::Zstd)]
    {
        let kind = header(Encoding::Binary, press, signal);
        let mut stored = zstd_bomb();
        if press == RecordPress::None {
            let mut record = slow5::frame(&kind, "bomb", &[])[8..].to_vec();
            let at = 2 + 4 + 4 + 32;
            let old = u64::from_le_bytes(record[at..at + 8].try_into().unwrap()) as usize;
            record.splice(
                at..at + 8 + old,
                (stored.len() as u64).to_le_bytes().into_iter().chain(stored),
            );
            stored = record;
        }
        let mut bytes = kind.write().unwrap();
        let framing = Framing::new(Encoding::Binary);
        framing.push(&stored, &mut bytes);
        bytes.extend(framing.end_marker());
        let path = place.write("bomb.blow5", &bytes);
        for verb in ["read", "check"] {
            let ended = after(ADDRESSES, &[verb, &path, "--memory", "16MiB", "-t", "2"]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!((ended.err + &ended.out).contains("decoded bytes"));
        }
        let ended = after(
            ADDRESSES,
            &["convert", &path, &place.at("out.blow5"), "--memory", "16MiB", "-t", "2"],
        );
        ended.told("bomb.blow5", "decoded bytes");
        assert_eq!(place.names(), ["bomb.blow5"]);
    }
}

/// A file that is as long as a damaged size claims: 8 GiB, of which all but the beginning is a
/// hole.
#[test]
fn sizes_that_the_file_can_hold() {
    let place = Place::new();
    let mut bytes = good(&[100, 100]);
    let kind = sample(
        "good",
        &header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd),
        &[100, 100],
    );
    let first = kind.frames[0].start;
    bytes[first..first + 8].copy_from_slice(&(7u64 << 30).to_le_bytes());
    let path = place.write("hole.blow5", &bytes);
    File::options().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
    after(ADDRESSES, &["read", &path, "--memory", "16MiB", "-t", "2"])
        .told("hole.blow5", "room for a record");
    // An index that agrees with the damaged size.
    let mut index = thalweg::format::slow5::Index::new(thalweg::format::slow5::Version::V0_2_0);
    // The second record is all that follows, but for the end marker.
    let second = first as u64 + (7 << 30) + 8;
    for (number, places) in [first as u64..second, second..(8 << 30) - 5].into_iter().enumerate() {
        let (offset, size) = (places.start, places.end - places.start);
        index.push(&id(number), thalweg::format::slow5::Entry { offset, size }).unwrap();
    }
    place.write("hole.blow5.idx", &index.parts().concat());
    let list = place.write("list", id(0).as_bytes());
    let ended = after(ADDRESSES, &["read", &path, "--ids", &list, "--memory", "16MiB", "-t", "2"]);
    ended.told("hole.blow5", "room for a record");
}

#[test]
fn unreadable_files_and_read_only_folders() {
    if !nobody_can_run() {
        return;
    }
    let place = Place::new();
    let secret = place.write("secret.blow5", &good(&[5]));
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
    let cache = tempfile::tempdir().unwrap();
    fs::set_permissions(cache.path(), Permissions::from_mode(0o777)).unwrap();
    as_nobody(&["read", &secret], cache.path()).told("secret.blow5", "ermission");

    let path = place.write("reads.blow5", &good(&[5, 6, 7]));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let list = place.write("list", format!("{}\n{}\n", id(2), id(0)).as_bytes());
    fs::set_permissions(&list, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(place.folder.path(), Permissions::from_mode(0o555)).unwrap();
    let digest = ["read", &path, "--ids", &list, "--digest"];
    for _ in 0..2 {
        let ended = as_nobody(&digest, cache.path());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Vec<&str> =
            ended.out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(found, [id(2), id(0)]);
        let saved = fs::read_dir(cache.path().join("thalweg/index")).unwrap().count();
        assert_eq!(saved, 1, "the index goes to the cache folder");
    }
    // If the index cannot be saved, the reads are still printed.
    let ended = as_nobody(&digest, Path::new("/proc/none"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    as_nobody(&["index", &path], cache.path()).told("reads.blow5.idx", "ermission");
    as_nobody(&["check", &path, "--salvage", &place.at("out.blow5")], cache.path())
        .told("out.blow5", "ermission");
    fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.names(), ["list", "reads.blow5", "secret.blow5"]);
}

#[test]
fn id_lists() {
    let place = Place::new();
    let path = place.write("reads.blow5", &good(&[5, 6, 7]));
    let read = |list: &str| {
        let list = place.write("list", list.as_bytes());
        thalweg(&["read", &path, "--ids", &list, "--digest"])
    };
    let ended = read("");
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    let ended = read(&format!("{}\r\n\n  {}\n{}", id(1), id(1), id(0)));
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 3), "{ended:?}");
    read(&format!("{}\nnobody\n", id(1))).told("reads.blow5", "1 of 2 reads (nobody)");
    fs::write(place.path("list"), [0xff, 0xfe, b'\n']).unwrap();
    thalweg(&["read", &path, "--ids", &place.at("list")]).told("list", "UTF-8");
    let out = place.at("out.blow5");
    thalweg(&["convert", &path, &out, "--ids", &place.at("none")]).told("none", "reading");
    // A file with a duplicate read could not be indexed.
    let list = place.write("list", format!("{0}\n{0}\n", id(1)).as_bytes());
    let ended = thalweg(&["convert", &path, &out, "--ids", &list]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!place.names().iter().any(|name| name.starts_with("out")), "{:?}", place.names());
}

/// For files that are truncated at many places, every command reports the truncation.
#[test]
fn truncated_files() {
    let place = Place::new();
    let bytes = good(&[30, 40]);
    for len in (0..bytes.len()).step_by(23) {
        let path = place.write("cut.blow5", &bytes[..len]);
        thalweg(&["read", &path, "--digest"]).told("cut.blow5", "");
        thalweg(&["index", &path]).told("cut.blow5", "");
        assert_eq!(place.names(), ["cut.blow5"]);
    }
}

/// With stacks of 1 GiB, the limit of addresses has room for a few threads only. The limit of
/// processes does the same, but does not apply to root.
#[test]
fn threads_that_cannot_start_are_done_without_or_told() {
    let place = Place::new();
    let reads = place.at("reads.blow5");
    assert_eq!(thalweg(&["synth", &reads, "--samples", "20M"]).code, Some(0));
    let args = ["read", &reads, "--digest", "-t", "2", "--memory", "4MiB", "--store", "buffered"];
    let digest = thalweg(&args).out;
    let mut ended_well = 0;
    for threads in [1, 2, 3, 4, 5, 6, 7, 8, 200] {
        let addresses = threads * 1_050_000 + 700_000;
        let stack = "export RUST_MIN_STACK=1073741824";
        let ended = after(&format!("ulimit -c 0; ulimit -v {addresses}; {stack}"), &args);
        if ended.code == Some(0) {
            assert_eq!(ended.out, digest, "{threads} threads");
            ended_well += 1;
        } else {
            ended.told("reads.blow5", "starting a thread");
        }
    }
    assert!(ended_well > 0);
}
