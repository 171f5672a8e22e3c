//! Other names, where the store refuses, loses answers, or is changed between the requests.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use thalweg_testing::http_server::Answer;

use super::mounted::{Mounted, can_mount, names, until};
use super::store::{Store, append, is_copy, is_put};

/// Has another thread do something that does not end before the daemon is killed, and kills it once
/// a request of a kind was made.
fn kill_at(mounted: &mut Mounted, store: &Store, method: &str, act: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(act);
        until(|| store.server.asked().iter().any(|asked| asked.method == method));
        mounted.kill_daemon();
    });
    mounted.detach();
    store.mend();
}

/// The file whose name was to be given to another one is as it was.
#[test]
fn a_rename_that_fails_changes_nothing() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("source", "source");
    store.put("other", "other");
    let mut mounted = Mounted::writing(&store.server, &["--close", "staged"]);
    let mut open = File::create(mounted.path("open")).unwrap();
    open.write_all(b"one ").unwrap();
    store.refuse(|asked| asked.method == "PUT");
    fs::write(mounted.path("closed"), "closed").unwrap();
    for target in ["open", "closed"] {
        let renamed = fs::rename(mounted.path("source"), mounted.path(target));
        assert_eq!(renamed.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read(mounted.path("source")).unwrap(), b"source");
    }
    store.refuse(is_put);
    open.write_all(b"two").unwrap();
    drop(open);
    assert_eq!(fs::read(mounted.path("open")).unwrap(), b"one two");
    mounted.kill();
    store.mend();
    let mounted = mounted.again(&store.server, &[]);
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.object("open").unwrap(), "one two");
    assert_eq!(store.object("closed").unwrap(), "closed");
    // One that can be renamed takes the name from a file that is not stored, for good.
    store.refuse(is_put);
    let mut open = File::create(mounted.path("open")).unwrap();
    open.write_all(b"three").unwrap();
    fs::rename(mounted.path("source"), mounted.path("open")).unwrap();
    store.mend();
    open.write_all(b"four").unwrap();
    drop(open);
    assert_eq!(fs::read(mounted.path("open")).unwrap(), b"source");
    assert_eq!((store.object("source"), store.object("open").unwrap()), (None, "source".into()));
}

/// A file of which only a part is here goes on to have the object that has the rest.
#[test]
fn a_rename_that_is_cut_loses_no_bytes() {
    if !can_mount() {
        return;
    }
    for folder in ["", "d/"] {
        let store = Store::new();
        store.put(&format!("{folder}a"), "first");
        let mut mounted = Mounted::writing(&store.server, &["--close", "staged"]);
        store.refuse(is_put);
        drop(append(&mounted.path(&format!("{folder}a")), " second"));
        store.rule(|asked| match &*asked.method {
            "DELETE" => Answer::Never,
            "PUT" if is_put(asked) => Answer::Refused(403, "AccessDenied"),
            _ => Answer::Right,
        });
        let (from, to) = match folder {
            "" => (mounted.path("a"), mounted.path("b")),
            _ => (mounted.path("d"), mounted.path("e")),
        };
        kill_at(&mut mounted, &store, "DELETE", move || {
            let _ = fs::rename(from, to);
        });
        let mounted = mounted.again(&store.server, &[]);
        mounted.folder.ok(&["mount", "--flush", "m"]);
        let new = if folder.is_empty() { "b" } else { "e/a" };
        assert_eq!(store.object(new).unwrap(), "first second");
        if !folder.is_empty() {
            assert_eq!(store.object("d/a"), None, "the next mount has removed it");
        }
    }
}

/// What a mount removes that ends the renaming of a folder was copied, and the copy is there.
#[test]
fn an_object_is_not_removed_without_its_copy() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    for key in ["d/changed", "d/copied", "d/lost"] {
        store.put(key, key);
    }
    let mut mounted = Mounted::writing(&store.server, &[]);
    // A removal that is refused leaves both names, and nothing is removed later.
    store.refuse(|asked| asked.method == "DELETE");
    assert!(fs::rename(mounted.path("d"), mounted.path("e")).is_err());
    store.mend();
    for key in ["d/changed", "d/copied", "d/lost"] {
        assert_eq!(fs::read(mounted.path(key)).unwrap(), key.as_bytes());
        assert_eq!(fs::read(mounted.path(&key.replace("d/", "e/"))).unwrap(), key.as_bytes());
    }
    mounted.kill();
    let mut mounted = mounted.again(&store.server, &[]);
    assert_eq!(store.server.objects().len(), 6);
    // One that a crash has cut is done by the next mount.
    store.server.forget();
    store.rule(|asked| match &*asked.method {
        "DELETE" => Answer::Never,
        _ => Answer::Right,
    });
    let (from, to) = (mounted.path("d"), mounted.path("f"));
    kill_at(&mut mounted, &store, "DELETE", move || {
        let _ = fs::rename(from, to);
    });
    store.server.remove("/bucket/f/lost");
    store.put("d/changed", "theirs");
    drop(mounted.again(&store.server, &[]));
    assert_eq!(store.object("d/changed").unwrap(), "theirs");
    assert_eq!(store.object("d/lost").unwrap(), "d/lost");
    assert_eq!(store.object("d/copied"), None);
    assert_eq!(store.object("f/copied").unwrap(), "d/copied");
}

/// What another program has put where a file is to go is not replaced without a word.
#[test]
fn a_name_that_another_program_has_taken_is_noticed() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    for key in ["a", "b", "d/a"] {
        store.put(key, key);
    }
    let mounted = Mounted::writing(&store.server, &["--ttl", "100"]);
    assert!(!mounted.path("taken").exists() && !mounted.path("e").exists());
    store.put("taken", "theirs");
    store.put("e/x", "theirs");
    let flags = RenameFlags::NOREPLACE;
    let renamed = renameat_with(CWD, mounted.path("a"), CWD, mounted.path("taken"), flags);
    assert_eq!(renamed, Err(Errno::EXIST));
    assert_eq!(store.object("taken").unwrap(), "theirs");
    assert_eq!(store.object("a").unwrap(), "a");
    // The kernel looks again, and finds a folder that is not empty.
    assert!(fs::rename(mounted.path("d"), mounted.path("e")).is_err());
    assert_eq!(store.object("d/a").unwrap(), "d/a");
    // `rename` replaces what it finds.
    fs::rename(mounted.path("a"), mounted.path("taken")).unwrap();
    assert_eq!((store.object("taken").unwrap(), store.object("a")), ("a".into(), None));
}

/// A folder gets another name while another program replaces the object of which a file in it was
/// made: that is told when the file is stored, and no bytes are mixed.
#[test]
fn a_replaced_object_in_a_renamed_folder_is_not_taken_for_its_own() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("d/a", "a long beginning");
    let mounted = Mounted::writing(&store.server, &[]);
    let file = append(&mounted.path("d/a"), " and the end");
    store.put("d/a", "short");
    fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
    let stale = Some(Errno::STALE.raw_os_error());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), stale);
    assert_eq!(file.read_at(&mut [0; 5], 0).unwrap_err().raw_os_error(), stale);
    drop(file);
    assert_eq!(store.object("e/a").unwrap(), "short");
    assert_eq!(store.object("d/a"), None);
}

/// A file that another program has removed does not come back with its folder.
#[test]
fn a_removed_file_stays_removed_in_a_renamed_folder() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mut mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
    fs::create_dir(mounted.path("d")).unwrap();
    for name in ["d/a", "d/b"] {
        fs::write(mounted.path(name), name).unwrap();
    }
    store.server.remove("/bucket/d/a");
    assert!(!mounted.path("d/a").exists());
    fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
    assert!(mounted.end().success());
    assert_eq!((store.object("e/a"), store.object("e/b").unwrap()), (None, "d/b".into()));
}

/// A file that was replaced in the store before it was stored is stored whole under its other name.
#[test]
fn a_renamed_file_has_its_own_bytes() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("target", "target");
    let mounted = Mounted::writing(&store.server, &[]);
    fs::write(mounted.path("a"), "old").unwrap();
    store.refuse(|asked| asked.method == "PUT");
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"mine").unwrap();
    assert!(file.sync_all().is_err());
    drop(file);
    store.mend();
    store.put("a", "theirs");
    fs::rename(mounted.path("a"), mounted.path("target")).unwrap();
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.object("target").unwrap(), "mine");
    assert_eq!(store.object("a").unwrap(), "theirs");
}

/// What a new file has replaced goes with its name, and does not get the file's next one.
#[test]
fn a_replaced_object_gets_no_other_name() {
    if !can_mount() {
        return;
    }
    for (args, is_killed) in [(["--close", "durable"], false), (["--close", "staged"], true)] {
        let store = Store::new();
        store.put("target", "replaced");
        let mut mounted = Mounted::writing(&store.server, &args);
        let mut new = File::create(mounted.path("new")).unwrap();
        fs::rename(mounted.path("new"), mounted.path("target")).unwrap();
        assert_eq!(store.object("target").unwrap(), "replaced");
        fs::rename(mounted.path("target"), mounted.path("third")).unwrap();
        assert_eq!((store.object("target"), store.object("third")), (None, None));
        if is_killed {
            mounted.kill();
            mounted = mounted.again(&store.server, &[]);
            assert_eq!(names(&mounted.path("")), [""; 0]);
            continue;
        }
        assert_eq!(names(&mounted.path("")), ["third"]);
        new.write_all(b"new").unwrap();
        drop(new);
        mounted.folder.ok(&["mount", "--flush", "m"]);
        assert_eq!((store.object("target"), store.object("third").unwrap()), (None, "new".into()));
    }
}

/// The old object cannot be removed: the file keeps its name, and another try does no harm.
#[test]
fn a_rename_whose_removal_fails_can_be_repeated() {
    if !can_mount() {
        return;
    }
    for has_target in [false, true] {
        let store = Store::new();
        store.put("a", "old a");
        if has_target {
            store.put("b", "old b");
        }
        let mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
        let mut file = File::create(mounted.path("a")).unwrap();
        file.write_all(b"new").unwrap();
        let mut target = has_target.then(|| append(&mounted.path("b"), " and more"));
        store.refuse(|asked| asked.method == "DELETE");
        assert!(fs::rename(mounted.path("a"), mounted.path("b")).is_err());
        if let Some(target) = &mut target {
            // It lost what it was made of, but it can be written anew.
            target.set_len(0).unwrap();
            target.write_all(b"target").unwrap();
            target.sync_all().unwrap();
            assert_eq!(store.object("b").unwrap(), "target");
        }
        file.write_all(b"er").unwrap();
        drop(file);
        assert_eq!(store.object("a").unwrap(), "newer");
        assert_eq!(fs::read(mounted.path("a")).unwrap(), b"newer");
        assert!(fs::rename(mounted.path("a"), mounted.path("b")).is_err());
        drop(target);
        let expected = if has_target { "target" } else { "newer" };
        assert_eq!(fs::read(mounted.path("b")).unwrap(), expected.as_bytes());
        until(|| store.object("b").unwrap() == expected);
        store.mend();
        fs::rename(mounted.path("a"), mounted.path("b")).unwrap();
        assert_eq!((store.object("a"), store.object("b").unwrap()), (None, "newer".into()));
    }
}

/// After a rename that could not remove the old name, the new one shows what it has at once.
#[test]
fn a_rename_that_is_half_done_is_seen() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "a");
    store.put("b", "b");
    let mounted = Mounted::writing(&store.server, &["--immutable"]);
    assert_eq!(fs::read(mounted.path("b")).unwrap(), b"b");
    assert!(!mounted.path("c").exists());
    store.refuse(|asked| asked.method == "DELETE");
    for target in ["b", "c"] {
        assert!(fs::rename(mounted.path("a"), mounted.path(target)).is_err());
        assert_eq!(store.object(target).unwrap(), "a");
        // The kernel is told after it has the answer.
        until(|| fs::read(mounted.path(target)).is_ok_and(|found| found == b"a"));
    }
}

/// A file that is written goes on to be stored after a copy over it of which nobody has told.
#[test]
fn a_lost_copy_over_an_open_file_is_not_another_programs() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "a");
    store.put("b", "old");
    let mounted = Mounted::writing(&store.server, &[]);
    let mut file = File::create(mounted.path("b")).unwrap();
    file.write_all(b"mine").unwrap();
    let mut is_first = true;
    store.rule(move |asked| match is_copy(asked) && std::mem::take(&mut is_first) {
        true => Answer::Lost,
        false if is_first => Answer::Right,
        false => Answer::Refused(403, "AccessDenied"),
    });
    assert!(fs::rename(mounted.path("a"), mounted.path("b")).is_err());
    assert_eq!(store.object("b").unwrap(), "a");
    store.mend();
    file.sync_all().unwrap();
    assert_eq!(store.object("b").unwrap(), "mine");
    assert_eq!(store.object("a").unwrap(), "a");
}

/// What a folder brings is seen at once, though its place had names that are gone.
#[test]
fn a_folder_takes_the_place_of_another_one() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("g/a", "a");
    let mounted = Mounted::writing(&store.server, &["--immutable"]);
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/a"), "other").unwrap();
    fs::remove_file(mounted.path("d/a")).unwrap();
    fs::rename(mounted.path("g"), mounted.path("d")).unwrap();
    assert_eq!(fs::read(mounted.path("d/a")).unwrap(), b"a");
    // A copy whose answer was lost is recognised, of an object that another program has made, too.
    let mut is_first = true;
    store.rule(move |asked| match is_copy(asked) && std::mem::take(&mut is_first) {
        true => Answer::Lost,
        false => Answer::Right,
    });
    fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
    assert_eq!(fs::read(mounted.path("e/a")).unwrap(), b"a");
    assert_eq!(store.object("d/a"), None);
}

/// Who opens a file to write it while it gets another name writes it there.
#[test]
fn a_file_may_be_opened_while_it_is_renamed() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "old");
    let mounted = Mounted::writing(&store.server, &[]);
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"old");
    store.rule(|asked| match is_copy(asked) {
        true => Answer::Late(Duration::from_millis(700)),
        false => Answer::Right,
    });
    std::thread::scope(|scope| {
        let (from, to) = (mounted.path("a"), mounted.path("b"));
        scope.spawn(move || fs::rename(from, to).unwrap());
        until(|| store.server.asked().iter().any(is_copy));
        let open = |name| File::options().append(true).open(mounted.path(name));
        // On a busy machine it may have the other name by now.
        let mut file = open("a").or_else(|_| open("b")).unwrap();
        file.write_all(b" and newer").unwrap();
        file.sync_all().unwrap();
    });
    assert_eq!(store.object("b").unwrap(), "old and newer");
    assert_eq!(store.object("a"), None);
    assert_eq!(mounted.status()["unstored_files"], 0);
}
