//! Stores that refuse, lose answers, or are changed by others, between the requests of one
//! operation.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use super::mounted::{MIB, Mounted, bytes, can_mount, until};
use crate::common::Folder;

type Rule = Box<dyn FnMut(&Asked) -> Answer + Send>;

/// A server whose rule may change.
struct Store {
    server: ObjectServer,
    rule: Arc<Mutex<Rule>>,
}

impl Store {
    fn new() -> Self {
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|_| Answer::Right)));
        let asked = rule.clone();
        let server = ObjectServer::start([], move |request| (asked.lock().unwrap())(request));
        Self { server, rule }
    }

    fn rule(&self, rule: impl FnMut(&Asked) -> Answer + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// Answers all requests as it should.
    fn mend(&self) {
        self.rule(|_| Answer::Right);
    }

    /// Refuses some requests.
    fn refuse(&self, is_refused: impl Fn(&Asked) -> bool + Send + 'static) {
        self.rule(move |asked| match is_refused(asked) {
            true => Answer::Refused(403, "AccessDenied"),
            false => Answer::Right,
        });
    }

    /// Puts the next object without an answer, and refuses all others.
    fn lose(&self) {
        let mut is_first = true;
        self.rule(move |asked| match &*asked.method {
            "PUT" if std::mem::take(&mut is_first) => Answer::Lost,
            "PUT" => Answer::Refused(403, "AccessDenied"),
            _ => Answer::Right,
        });
    }

    fn object(&self, key: &str) -> Option<String> {
        let bytes = self.server.object(&format!("/bucket/{key}"))?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// Puts an object as another program does.
    fn put(&self, key: &str, content: &str) {
        self.server.put(&format!("/bucket/{key}"), content.into());
    }
}

fn is_copy(asked: &Asked) -> bool {
    asked.headers.contains_key("x-amz-copy-source")
}

fn is_put(asked: &Asked) -> bool {
    asked.method == "PUT" && !is_copy(asked)
}

fn append(path: &Path, content: &str) -> File {
    let mut file = File::options().read(true).append(true).open(path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

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

/// A file of which the store lacks just attributes, and which was replaced there, is stored whole
/// under its other name.
#[test]
fn a_renamed_file_has_its_own_bytes() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("target", "target");
    let mounted = Mounted::writing(&store.server, &[]);
    fs::write(mounted.path("a"), "mine").unwrap();
    store.refuse(|asked| asked.method == "PUT");
    // It is not taken back while somebody has it open.
    let open = File::open(mounted.path("a")).unwrap();
    assert!(open.set_permissions(fs::Permissions::from_mode(0o600)).is_err());
    store.mend();
    store.put("a", "theirs");
    fs::rename(mounted.path("a"), mounted.path("target")).unwrap();
    mounted.folder.ok(&["mount", "--flush", "m"]);
    assert_eq!(store.object("target").unwrap(), "mine");
    assert_eq!(store.object("a").unwrap(), "theirs");
}

/// What was written to a file whose name has another object by now is still known.
#[test]
fn a_file_without_its_name_is_not_forgotten() {
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
    file.write_all(b" and more").unwrap();
    assert_eq!(mounted.status()["unstored_files"], 1);
    let said = mounted.folder.fails(1, &["mount", "--flush", "m"]);
    assert!(said.contains("could not be stored"), "{said}");
    drop(file);
    assert_eq!(store.object("a").unwrap(), "theirs");
    assert!(!mounted.end().success(), "it is told at the end, too");
}

/// Bytes that were sent, and that there was no room to keep here.
#[test]
fn sent_parts_are_kept_until_the_file_is_stored() {
    if !can_mount() {
        return;
    }
    let store = Store::new();
    store.put("large", "small");
    let folder = Folder::new();
    let staging = format!("40MiB,free=0,folder={}", folder.path("staging").display());
    let mounted = Mounted::in_folder(folder, &store.server, &["--staging", &staging]);
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

/// An upload that was completed without an answer is not completed again for other bytes.
#[test]
fn a_lost_completion_is_not_one_of_other_bytes() {
    if !can_mount() {
        return;
    }
    for (len, staging) in [(24 * MIB + 5, "off"), (90 * MIB + 5, "40MiB")] {
        let store = Store::new();
        let folder = Folder::new();
        let staging = format!("{staging},free=0,folder={}", folder.path("staging").display());
        let mounted = Mounted::in_folder(folder, &store.server, &["--staging", &staging]);
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
    let folder = Folder::new();
    let staging = format!("40MiB,free=0,folder={}", folder.path("staging").display());
    let mounted = Mounted::in_folder(folder, &store.server, &["--staging", &staging]);
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
    let recover = || {
        let staging = super::mounted::staging(&mounted.folder);
        let args = ["--recover", "s3://bucket", "--staging", &*staging];
        let output = Mounted::verb(&mounted.folder, &store.server, &args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(mounted.folder.path("staging").to_str().unwrap()), "{said}");
        (output.status.code(), said)
    };
    let (code, said) = recover();
    assert!(code == Some(1) && said.contains("1 file could not be stored"), "{said}");
    assert_eq!(store.object("a"), None);
    store.mend();
    let (code, said) = recover();
    assert!(code == Some(0) && said.contains("what mounts have left is in"), "{said}");
    assert_eq!(store.object("a").unwrap(), "staged");
    let (code, said) = recover();
    assert!(code == Some(0) && said.contains("have left nothing"), "{said}");
}

/// Two mounts append to the same files: what was stored stays, and who comes second is told.
#[test]
fn two_mounts_lose_no_update() {
    if !can_mount() {
        return;
    }
    const UPDATES: usize = 25;
    let store = Store::new();
    let mounts = [(), ()].map(|()| Mounted::writing(&store.server, &["--ttl", "0"]));
    for key in ["a", "b"] {
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
                    let path = mounted.path(if update % 3 == 0 { "a" } else { "b" });
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
    });
    let all = store.object("a").unwrap() + &store.object("b").unwrap();
    for token in (0..2).flat_map(|number| (0..UPDATES).map(move |at| format!("<{number}.{at}>"))) {
        let count = all.matches(&token).count();
        let conflicts = conflicts.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(count, 1, "{token} after {conflicts} conflicts in {all}");
    }
}
