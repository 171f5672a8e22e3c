//! Stores that refuse, lose answers, or are changed by others, between the requests of one
//! operation. For other names, see `rename.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use thalweg_testing::http_server::Answer;

use super::mounted::{MIB, Mounted, bytes, can_mount, staging, until};
use super::store::{Store, append, is_put};

/// An upload whose answer was lost is not taken for one of later bytes.
#[test]
fn lost_answers_are_told_from_later_changes() {
    if !can_mount() {
        return;
    }
    for is_killed in [false, true] {
        let store = Store::new();
        store.put("old", "base ");
        let mut mounted = Mounted::writing(&store.server, &["--close", "staged"]);
        let new = File::create(mounted.path("new")).unwrap();
        new.write_all_at(b"one", 0).unwrap();
        store.lose();
        assert!(new.sync_all().is_err());
        assert_eq!(store.object("new").unwrap(), "one");
        let mut old = append(&mounted.path("old"), "one");
        store.lose();
        assert!(old.sync_all().is_err());
        assert_eq!(store.object("old").unwrap(), "base one");
        store.refuse(|asked| asked.method == "PUT");
        new.write_all_at(b"two", 0).unwrap();
        old.write_all(b" two").unwrap();
        if is_killed {
            drop((new, old));
            mounted.kill();
            store.mend();
            mounted = mounted.again(&store.server, &[]);
        } else {
            store.mend();
            new.sync_all().unwrap();
            old.sync_all().unwrap();
        }
        mounted.folder.ok(&["mount", "--flush", "m"]);
        for (key, content) in [("new", "two"), ("old", "base one two")] {
            assert_eq!(store.object(key).unwrap(), content, "{is_killed}");
            assert_eq!(fs::read(mounted.path(key)).unwrap(), content.as_bytes());
        }
    }
}

/// A file whose first upload has had no answer is gone once it is removed or has another name.
#[test]
fn objects_of_lost_answers_are_removed() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mounted = Mounted::writing(&store.server, &[]);
    let lost = |name: &str| {
        let mut file = File::create(mounted.path(name)).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        store.lose();
        assert!(file.sync_all().is_err());
        assert_eq!(store.object(name).unwrap(), name);
        store.mend();
        file
    };
    let file = lost("removed");
    fs::remove_file(mounted.path("removed")).unwrap();
    drop(file);
    let file = lost("renamed");
    fs::rename(mounted.path("renamed"), mounted.path("other")).unwrap();
    drop(file);
    let file = lost("target");
    fs::rename(mounted.path("other"), mounted.path("target")).unwrap();
    drop(file);
    assert_eq!(store.server.objects(), ["/bucket/target"]);
    assert_eq!(store.object("target").unwrap(), "renamed");
}

/// A file whose name has another program's object by now cannot be written any more.
#[test]
fn a_replaced_file_is_written_no_more() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mut mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"mine").unwrap();
    file.sync_all().unwrap();
    store.put("a", "theirs");
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"theirs");
    let stale = Some(Errno::STALE.raw_os_error());
    let mode = fs::Permissions::from_mode(0o600);
    assert_eq!(file.write_all(b" and more").unwrap_err().raw_os_error(), stale);
    assert_eq!(file.set_len(1).unwrap_err().raw_os_error(), stale);
    assert_eq!(file.set_permissions(mode).unwrap_err().raw_os_error(), stale);
    assert_eq!(mounted.status()["unstored_files"], 0);
    drop(file);
    drop(append(&mounted.path("a"), " and mine"));
    assert_eq!(store.object("a").unwrap(), "theirs and mine");
    assert!(mounted.end().success());
}

/// A folder that another program makes beside a file takes its name, and not its object.
#[test]
fn a_file_beside_a_new_folder_is_written_on() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"one").unwrap();
    file.sync_all().unwrap();
    store.put("a/b", "b");
    let _ = fs::metadata(mounted.path("a"));
    file.write_all(b" two").unwrap();
    file.sync_all().unwrap();
    assert_eq!(store.object("a").unwrap(), "one two");
}

/// A file that another program has replaced while it was written here keeps its name until it is
/// removed, and the other one's object stays.
#[test]
fn what_was_written_keeps_its_name() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "a long beginning");
    let mounted = Mounted::writing(&store.server, &["--ttl", "0"]);
    let file = append(&mounted.path("a"), " and the end");
    store.put("a", "theirs");
    let stale = Some(Errno::STALE.raw_os_error());
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), stale);
    for _ in 0..2 {
        let renamed = fs::rename(mounted.path("a"), mounted.path("b"));
        assert_eq!(renamed.unwrap_err().raw_os_error(), stale);
    }
    assert_eq!(store.server.objects(), ["/bucket/a"]);
    assert_eq!(fs::metadata(mounted.path("a")).unwrap().len(), 28);
    assert_eq!(mounted.status()["unstored_files"], 1);
    fs::remove_file(mounted.path("a")).unwrap();
    drop(file);
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"theirs");
    assert_eq!(mounted.status()["unstored_files"], 0);
}

/// Bytes that were sent, and that there was no room to keep here.
#[test]
fn sent_parts_are_kept_until_the_file_is_stored() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("large", "small");
    let mounted = Mounted::with_room(&store.server, "40MiB");
    let content = bytes(3, 90 * MIB + 77);
    let mut file = File::create(mounted.path("large")).unwrap();
    file.write_all(&content).unwrap();
    // It would have to be cut out of a part that is not here.
    let cut = file.set_len(5 * MIB as u64).unwrap_err();
    assert_eq!(cut.kind(), std::io::ErrorKind::StorageFull);
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    // The object that it replaces is gone.
    store.server.remove("/bucket/large");
    file.sync_all().unwrap();
    assert!(store.server.object("/bucket/large").unwrap() == content);
    assert_eq!(store.server.metadata("/bucket/large")["x-amz-meta-mode"], "33152");
    assert_eq!(store.server.unfinished(), 0);
}

/// A file that could not be stored when it was closed is stored later, though somebody reads it.
#[test]
fn what_could_not_be_stored_is_stored_later() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mounted = Mounted::writing(&store.server, &[]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"bytes").unwrap();
    let reader = File::open(mounted.path("a")).unwrap();
    store.refuse(|asked| asked.method == "PUT");
    assert!(file.sync_all().is_err());
    drop(file);
    std::thread::sleep(Duration::from_millis(20));
    store.mend();
    until(|| store.object("a").is_some_and(|content| content == "bytes"));
    drop(reader);
}

/// A store that does not say whether an object is there is not taken for one that has none.
#[test]
fn nothing_is_removed_without_a_word() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "old");
    let mounted = Mounted::writing(&store.server, &[]);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(b"new").unwrap();
    store.refuse(|asked| matches!(&*asked.method, "PUT" | "HEAD"));
    assert!(file.sync_all().is_err());
    assert!(fs::remove_file(mounted.path("a")).is_err());
    store.refuse(|asked| matches!(&*asked.method, "PUT" | "DELETE"));
    assert!(fs::remove_file(mounted.path("a")).is_err());
    assert_eq!(fs::read(mounted.path("a")).unwrap(), b"new");
    store.mend();
    file.sync_all().unwrap();
    assert_eq!(store.object("a").unwrap(), "new");
    fs::remove_file(mounted.path("a")).unwrap();
    assert_eq!(store.object("a"), None);
}

/// An upload that was completed without an answer is not completed again for other bytes.
#[test]
fn a_lost_completion_is_not_one_of_other_bytes() {
    if !can_mount() {
        return;
    }
    for (len, room) in [(24 * MIB + 5, "off"), (90 * MIB + 5, "40MiB")] {
        let store = Store::new();
        let mounted = Mounted::with_room(&store.server, room);
        let mut content = bytes(1, len);
        let mut file = File::create(mounted.path("a")).unwrap();
        file.write_all(&content).unwrap();
        let mut is_first = true;
        store.rule(move |asked| {
            match asked.method == "POST" && asked.target.contains("uploadId") {
                true if std::mem::take(&mut is_first) => Answer::Lost,
                true => Answer::Refused(403, "AccessDenied"),
                false => Answer::Right,
            }
        });
        assert!(file.sync_all().is_err());
        assert_eq!(store.server.object("/bucket/a").unwrap().len(), len);
        store.mend();
        if len < 30 * MIB {
            // A boundary of parts.
            content.truncate(16 * MIB);
            file.set_len(16 << 20).unwrap();
        } else {
            content.extend(b"more");
            file.write_all(b"more").unwrap();
        }
        file.sync_all().unwrap();
        assert!(store.server.object("/bucket/a").unwrap() == content);
        assert_eq!(store.server.unfinished(), 0);
    }
}

/// After chmod, a file that was closed goes on to be noted before its bytes change.
#[test]
fn torn_bytes_are_not_stored_after_a_crash() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mut mounted = Mounted::writing(&store.server, &["--close", "staged"]);
    store.refuse(|asked| asked.method == "PUT");
    let open = File::create(mounted.path("a")).unwrap();
    open.write_all_at(b"first bytes", 0).unwrap();
    let other = File::options().write(true).open(mounted.path("a")).unwrap();
    other.write_all_at(b"closed bytes", 0).unwrap();
    drop(other);
    fs::set_permissions(mounted.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    open.write_all_at(b"torn", 0).unwrap();
    mounted.kill();
    drop(open);
    store.mend();
    let mounted = mounted.again(&store.server, &[]);
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.object("a"), None, "it was open again");
}

/// An upload that is over, of which the store does not say so, is not gone on with for ever.
#[test]
fn parts_of_an_ended_upload_are_sent_anew() {
    if !can_mount() {
        return;
    }
    for is_replaced in [false, true] {
        let store = Store::new();
        let mounted = Mounted::writing(&store.server, &[]);
        let mut content = bytes(1, 24 * MIB);
        let mut file = File::create(mounted.path("a")).unwrap();
        file.write_all(&content).unwrap();
        let completed = Arc::new(Mutex::new(None));
        let ended = completed.clone();
        store.rule(move |asked| {
            let Some((_, upload)) = asked.target.split_once("uploadId=") else {
                return Answer::Right;
            };
            let mut ended = ended.lock().unwrap();
            match (&*asked.method, &*ended) {
                ("POST", None) => {
                    *ended = Some(upload.to_owned());
                    Answer::Lost
                }
                (_, Some(ended)) if upload == ended => Answer::Refused(403, "AccessDenied"),
                _ => Answer::Right,
            }
        });
        assert!(file.sync_all().is_err());
        assert!(completed.lock().unwrap().is_some());
        assert!(store.server.object("/bucket/a").unwrap() == content);
        if is_replaced {
            store.put("a", "theirs");
        }
        content.extend(b"more");
        file.write_all(b"more").unwrap();
        if is_replaced {
            let stale = Some(Errno::STALE.raw_os_error());
            until(|| file.sync_all().is_err_and(|error| error.raw_os_error() == stale));
            assert_eq!(store.object("a").unwrap(), "theirs");
        } else {
            file.sync_all().unwrap();
            assert!(store.server.object("/bucket/a").unwrap() == content);
        }
    }
}

/// Attributes of an open file that cannot be stored are not stored with its next bytes, and these
/// are not taken for attributes whose answer was lost.
#[test]
fn a_failed_chmod_of_an_open_file_is_undone() {
    if !can_mount() {
        return;
    }
    for is_lost in [false, true] {
        let store = Store::new();
        let mounted = Mounted::writing(&store.server, &[]);
        let file = File::create(mounted.path("a")).unwrap();
        file.write_all_at(b"one", 0).unwrap();
        file.sync_all().unwrap();
        if is_lost {
            store.lose();
        } else {
            store.refuse(|asked| asked.method == "PUT");
        }
        assert!(file.set_permissions(fs::Permissions::from_mode(0o600)).is_err());
        store.mend();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        file.write_all_at(b"two", 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(store.object("a").unwrap(), "two");
        assert!(!store.server.metadata("/bucket/a").contains_key("x-amz-meta-mode"));
    }
}

/// Attributes that cannot be stored are not changed, and hide nothing.
#[test]
fn a_failed_chmod_leaves_the_file_as_it_is() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "mine");
    store.put("b", "b");
    let mounted = Mounted::writing(&store.server, &["--ttl", "1"]);
    let mode = |name: &str| fs::metadata(mounted.path(name)).unwrap().permissions().mode() & 0o777;
    let set =
        |name: &str| fs::set_permissions(mounted.path(name), PermissionsExt::from_mode(0o600));
    assert_eq!((mode("a"), mode("b")), (0o644, 0o644));
    store.put("a", "theirs");
    // The kernel may look again, and then change what is there.
    let _ = set("a");
    until(|| fs::read(mounted.path("a")).is_ok_and(|found| found == b"theirs"));
    store.refuse(|asked| asked.method == "PUT");
    assert!(set("b").is_err());
    store.mend();
    until(|| mode("b") == 0o644);
    assert_eq!(mounted.status()["unstored_files"], 0);
    set("b").unwrap();
    assert_eq!(mode("b"), 0o600);
}

/// A removal that fails leaves the file what was sent of it.
#[test]
fn a_removal_that_fails_loses_no_parts() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("a", "old");
    let mounted = Mounted::with_room(&store.server, "40MiB");
    let content = bytes(3, 90 * MIB);
    let mut file = File::create(mounted.path("a")).unwrap();
    file.write_all(&content).unwrap();
    store.refuse(|asked| asked.method == "DELETE");
    assert!(fs::remove_file(mounted.path("a")).is_err());
    file.sync_all().unwrap();
    assert!(store.server.object("/bucket/a").unwrap() == content);
}

/// `--recover` stores what a killed mount has left, and says where it looked.
#[test]
fn what_a_mount_has_left_is_recovered() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    let mut mounted = Mounted::writing(&store.server, &["--close", "staged"]);
    store.refuse(is_put);
    fs::write(mounted.path("a"), "staged").unwrap();
    mounted.kill();
    let recover = |mounted: &Mounted| {
        let staging = staging(&mounted.folder);
        let args = ["--recover", "s3://bucket", "--staging", &*staging];
        let output = Mounted::verb(&mounted.folder, &store.server, &args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = recover(&mounted);
    assert!(code == Some(1) && said.contains("1 file could not be stored"), "{said}");
    assert_eq!(store.object("a"), None);
    store.mend();
    let (code, said) = recover(&mounted);
    assert!(code == Some(0) && said.contains("the store has what mounts of"), "{said}");
    assert_eq!(store.object("a").unwrap(), "staged");
    let (code, said) = recover(&mounted);
    assert!(code == Some(0) && said.contains("have left nothing"), "{said}");
    assert!(said.contains(mounted.folder.path("staging").to_str().unwrap()), "{said}");
    let mut mounted = mounted.again(&store.server, &["--close", "staged"]);
    store.refuse(is_put);
    fs::write(mounted.path("b"), "staged").unwrap();
    let (code, said) = recover(&mounted);
    let process = format!("1 file of process {}, which has not ended", mounted.daemon.id());
    assert!(code == Some(1) && said.contains(&process), "{said}");
    store.mend();
    assert!(mounted.end().success());
    assert_eq!(store.object("b").unwrap(), "staged");
}

/// A file that was closed empty is there after a crash.
#[test]
fn an_empty_file_outlives_a_kill_once_it_is_closed() {
    if !can_mount() {
        return;
    }
    for close in ["durable", "staged"] {
        let store = Store::new();
        store.put("old", "old");
        let mut mounted = Mounted::writing(&store.server, &["--close", close]);
        store.refuse(is_put);
        // The kernel tells that nobody has them open some time after they were closed.
        let open = File::create(mounted.path("new")).unwrap();
        drop(open.try_clone().unwrap());
        drop(File::create(mounted.path("empty")).unwrap());
        mounted.kill();
        drop(open);
        store.mend();
        let mounted = mounted.again(&store.server, &[]);
        mounted.folder.ok(&["mount", "--flush", "m"]);
        for key in ["empty", "new"] {
            assert_eq!(store.object(key).unwrap(), "", "{key} {close}");
        }
    }
}

/// Two mounts and another program append to the same files: what was stored stays, and who comes
/// second is told. What the other program puts in place of a file is not replaced by what a mount
/// made of the file before.
#[test]
fn two_mounts_and_another_program_lose_no_update() {
    if !can_mount() {
        return;
    }
    const UPDATES: usize = 25;
    let store = Store::new();
    let mounts = [(), ()].map(|()| Mounted::writing(&store.server, &["--ttl", "0"]));
    for key in ["a", "b", "replaced"] {
        store.put(key, "");
    }
    // The other one writes meanwhile.
    store.rule(|asked| match &*asked.method {
        "PUT" => Answer::Late(Duration::from_millis(asked.number % 10)),
        _ => Answer::Right,
    });
    let stale = Some(Errno::STALE.raw_os_error());
    let conflicts = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (number, mounted) in mounts.iter().enumerate() {
            let conflicts = &conflicts;
            scope.spawn(move || {
                for update in 0..UPDATES {
                    let path = mounted.path(["a", "b", "replaced"][update % 3]);
                    let token = format!("<{number}.{update}>");
                    loop {
                        let stored =
                            File::options().append(true).open(&path).and_then(|mut file| {
                                file.write_all(token.as_bytes())?;
                                file.sync_all()
                            });
                        let Err(error) = stored else { break };
                        assert_eq!(error.raw_os_error(), stale, "{error}");
                        conflicts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        // What could not be stored is given up, which leaves the other's.
                        let _ = fs::remove_file(&path);
                    }
                }
            });
        }
        for update in 0..UPDATES {
            let append = |bytes: &mut Vec<u8>| bytes.extend(format!("<2.{update}>").bytes());
            match ["a", "b", "replaced"][update % 3] {
                "replaced" => store.put("replaced", &format!("put {update} ")),
                key => store.server.change(&format!("/bucket/{key}"), append),
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    let replaced = store.object("replaced").unwrap();
    let last = (0..UPDATES).rfind(|update| update % 3 == 2).unwrap();
    assert!(replaced.starts_with(&format!("put {last} ")), "{replaced}");
    let all = store.object("a").unwrap() + &store.object("b").unwrap();
    let appended = (0..UPDATES).filter(|update| update % 3 < 2);
    for token in (0..3).flat_map(|by| appended.clone().map(move |at| format!("<{by}.{at}>"))) {
        let count = all.matches(&token).count();
        let conflicts = conflicts.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(count, 1, "{token} after {conflicts} conflicts in {all}");
    }
}
