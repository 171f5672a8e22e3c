#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::TempDir;
use thalweg_codec::splitmix::mix;

use super::header::{BLOCK, BLOCKS, BYTES, SUMS, USED};
use super::*;
use crate::control::Control;
use crate::error::Result;
use crate::model::{Origin, StoreModel};
use crate::store::{CountedStore, Counter, Store, check_inside};

/// Two sections and a bit.
const LARGE: u64 = 2 * BLOCKS * BLOCK + 3 * BLOCK + 77;

/// An object whose bytes are made from their offsets. It counts what it is asked for.
#[derive(Debug)]
struct Made {
    name: Arc<str>,
    size: u64,
    seed: u64,
    asked: Mutex<Vec<(u64, u64)>>,
}

impl Made {
    fn new(name: &str, size: u64) -> Arc<Self> {
        let seed = name.bytes().fold(0, |sum, byte| mix(sum ^ u64::from(byte)));
        Arc::new(Self { name: name.into(), size, seed, asked: Mutex::default() })
    }

    fn bytes(&self, offset: u64, buf: &mut [u8]) {
        for (at, byte) in (offset..).zip(buf) {
            *byte = (mix(self.seed ^ (at / 8)) >> (at % 8 * 8)) as u8;
        }
    }

    /// The ranges that were asked for since the last call.
    fn asked(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn id(&self) -> ObjectId {
        ObjectId::new(&self.name, &self.name, "\"tag\"", self.size)
    }

    fn cached(self: &Arc<Self>, cache: &ObjectCache) -> CachedStore {
        CachedStore::new(self.clone(), cache, self.id())
    }

    /// Reads through a cache, and compares with the object.
    fn check(&self, store: &dyn Store, range: Range<u64>) {
        let len = (range.end - range.start) as usize;
        let (mut read, mut own) = (vec![1; len], vec![0; len]);
        store.read_at(range.start, &mut read).unwrap();
        self.bytes(range.start, &mut own);
        assert!(read == own, "other bytes in {range:?}");
    }
}

impl Store for Made {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_parts(offset, &mut [buf])
    }

    fn read_parts(&self, offset: u64, parts: &mut [&mut [u8]]) -> Result<()> {
        let mut at = offset;
        for part in parts {
            self.bytes(at, part);
            at += part.len() as u64;
        }
        check_inside(&self.name, self.size, offset, (at - offset) as usize)?;
        self.asked.lock().unwrap().push((offset, at));
        Ok(())
    }
}

/// A cache without a floor of free space, because the tests must not depend on the disc.
fn cache_in(folder: &Path, limit: u64) -> ObjectCache {
    ObjectCache::with(folder, limit, Some(0), |_| {})
}

fn new_cache(limit: u64) -> (TempDir, ObjectCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder.path().join("made/on/demand"), limit);
    (folder, cache)
}

/// The tables of a cache, in the order of their names.
fn files(cache: &ObjectCache) -> Vec<PathBuf> {
    room::sections(cache.folder()).unwrap().into_iter().map(|found| found.path).collect()
}

fn taken(cache: &ObjectCache) -> u64 {
    cache.contents(&Control::new()).unwrap().taken
}

#[test]
fn what_was_read_is_not_fetched_again() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", 40 * BLOCK + 5);
    let store = object.cached(&cache);
    object.check(&store, 3 * BLOCK + 1..3 * BLOCK + 9);
    assert_eq!(object.asked(), [(3 * BLOCK, 4 * BLOCK)], "whole blocks are fetched");
    object.check(&store, 10 * BLOCK..20 * BLOCK);
    assert_eq!(object.asked(), [(10 * BLOCK, 20 * BLOCK)]);
    // One request fetches from the first missing block to the last.
    object.check(&store, 2 * BLOCK + 7..22 * BLOCK - 7);
    assert_eq!(object.asked(), [(2 * BLOCK, 22 * BLOCK)]);
    object.check(&store, 40 * BLOCK + 1..40 * BLOCK + 5);
    assert_eq!(object.asked(), [(40 * BLOCK, 40 * BLOCK + 5)]);
    // Another process, which has nothing in memory.
    let store = object.cached(&cache_in(cache.folder(), 1 << 30));
    object.check(&store, 2 * BLOCK..22 * BLOCK);
    object.check(&store, 2 * BLOCK + 5..3 * BLOCK + 7);
    object.check(&store, 40 * BLOCK..40 * BLOCK + 5);
    assert!(store.read_at_hand(5 * BLOCK, &mut [0; 100]) && store.is_at_hand(40 * BLOCK));
    assert!(!store.read_at_hand(0, &mut [0; 100]) && !store.is_at_hand(30 * BLOCK));
    assert_eq!(object.asked(), []);
    object.check(&store, 21 * BLOCK..24 * BLOCK);
    assert_eq!(object.asked(), [(22 * BLOCK, 24 * BLOCK)], "what is there is not fetched");
}

#[test]
fn another_version_is_another_object() {
    let (_folder, cache) = new_cache(1 << 30);
    let (one, other) = (Made::new("one", 2 * BLOCK), Made::new("other", 2 * BLOCK));
    let id = |address, tag, size| ObjectId::new("u", address, tag, size);
    let read = |object: &Arc<Made>, id| {
        object.check(&CachedStore::new(object.clone(), &cache, id), 0..2 * BLOCK);
        object.asked().len()
    };
    assert_eq!(read(&one, id("a", "1", 2 * BLOCK)), 1);
    assert_eq!(read(&other, id("a", "2", 2 * BLOCK)), 1);
    assert_eq!(read(&other, id("b", "1", 2 * BLOCK)), 1);
    assert_eq!(read(&one, id("a", "1", 2 * BLOCK)), 0);
    assert_eq!(cache.contents(&Control::new()).unwrap().objects.len(), 3);
}

#[test]
fn reads_cross_sections() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", LARGE);
    let section = BLOCK * BLOCKS;
    for around in [section, 2 * section] {
        let range = around - 3 * BLOCK - 5..around + 2 * BLOCK + 5;
        let store = object.cached(&cache);
        object.check(&store, range.clone());
        assert_eq!(object.asked(), [(around - 4 * BLOCK, around + 3 * BLOCK)]);
        let store = object.cached(&cache_in(cache.folder(), 1 << 30));
        object.check(&store, range);
        assert_eq!(object.asked(), []);
    }
    assert_eq!(files(&cache).len(), 3, "a section has 64 GiB");
    let contents = cache.contents(&Control::new()).unwrap();
    assert_eq!((contents.objects.len(), contents.objects[0].cached), (1, 14 * BLOCK));
    assert!(contents.taken < 2 << 20, "files are sparse: {contents:?}");
}

/// Kinds of [`damage`].
const KINDS: u8 = 15;

/// Everything that can happen to the files of a section, whose table is at `path`.
fn damage(path: &Path, other: &Path, kind: u8, at: u64) {
    let (bytes, other_bytes) = (path.with_extension(BYTES), other.with_extension(BYTES));
    let change = |path: &Path, offset: u64, bytes: &[u8]| {
        let file = fs::File::options().write(true).open(path);
        file.and_then(|file| file.write_all_at(bytes, offset)).unwrap_or_default();
    };
    let cut = |path: &Path, len: u64| {
        drop(fs::File::options().write(true).open(path).map(|file| file.set_len(len)));
    };
    match kind {
        0 => change(&bytes, at % (12 * BLOCK), &[7, 7, 7]),
        1 => change(path, SUMS + at % 96, &[7, 7, 7]),
        2 => change(path, SUMS + at % 12 * 8, &[0; 8]),
        3 => change(path, at % USED, &[7]),
        4 => change(path, USED, &at.to_le_bytes()),
        5 => cut(path, at % (SUMS + 96)),
        6 => cut(&bytes, at % 900_000),
        7 => drop(fs::remove_file(path)),
        8 => drop(fs::copy(other, path)),
        9 => drop(fs::write(path, "nonsense")),
        10 => drop(fs::remove_file(bytes)),
        11 => drop(fs::copy(other_bytes, bytes)),
        12 => drop(fs::write(bytes, "nonsense")),
        13 => cut(&bytes, at % (100 * BLOCK)),
        // Two blocks in each other's place, with their checksums.
        _ => {
            let (Ok(table), Ok(blocks)) = (fs::read(path), fs::read(&bytes)) else { return };
            let part = |of: &[u8], offset: u64, len: u64| {
                let part = of.get(offset as usize..(offset + len) as usize);
                part.unwrap_or_default().to_vec()
            };
            let places = [at % 12, at / 12 % 12];
            for (from, to) in [(places[0], places[1]), (places[1], places[0])] {
                change(&bytes, to * BLOCK, &part(&blocks, from * BLOCK, BLOCK));
                change(path, SUMS + to * 8, &part(&table, SUMS + from * 8, 8));
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Read { object: usize, process: usize, from: u64, len: u64 },
    Damage { object: usize, kind: u8, at: u64 },
    Clear { process: usize },
    Verify { process: usize },
    Start { process: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let read = (0..2usize, 0..2usize, 0..12 * BLOCK, 0..5 * BLOCK);
    let read =
        read.prop_map(|(object, process, from, len)| Step::Read { object, process, from, len });
    let damage = (0..2usize, 0..KINDS, any::<u64>());
    prop_oneof![
        8 => read,
        3 => damage.prop_map(|(object, kind, at)| Step::Damage { object, kind, at }),
        1 => (0..2usize).prop_map(|process| Step::Clear { process }),
        1 => (0..2usize).prop_map(|process| Step::Verify { process }),
        2 => (0..2usize).prop_map(|process| Step::Start { process }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Two processes read two objects with a small limit, while files are damaged, exchanged and
    /// removed: each read has the object's bytes.
    #[test]
    fn every_read_is_right(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let objects = [Made::new("one", 12 * BLOCK + 9), Made::new("two", 12 * BLOCK)];
        let start = || {
            let cache = cache_in(folder.path(), 20 * BLOCK);
            let stores = objects.each_ref().map(|object| object.cached(&cache));
            (cache, stores)
        };
        let mut processes = [start(), start()];
        let path = |object: usize| {
            folder.path().join(Header { id: objects[object].id(), number: 0 }.file_name())
        };
        for step in steps {
            match step {
                Step::Read { object, process, from, len } => {
                    let size = objects[object].size;
                    let range = from.min(size)..(from + len).min(size);
                    let store = &processes[process].1[object];
                    let mut at_hand = vec![0; (range.end - range.start) as usize];
                    if store.read_at_hand(range.start, &mut at_hand) {
                        let mut own = vec![0; at_hand.len()];
                        objects[object].bytes(range.start, &mut own);
                        prop_assert!(at_hand == own, "at hand: {:?}", range);
                    }
                    objects[object].check(store, range);
                }
                Step::Damage { object, kind, at } => {
                    damage(&path(object), &path(1 - object), kind, at);
                }
                Step::Clear { process } => {
                    processes[process].0.clear_all(&Control::new()).unwrap();
                }
                Step::Verify { process } => {
                    let cache = &processes[process].0;
                    cache.verify(2, &Control::new()).unwrap();
                    let again = cache.verify(1, &Control::new()).unwrap();
                    prop_assert!(again.damage.is_empty(), "{:?}", again.damage);
                }
                Step::Start { process } => processes[process] = start(),
            }
        }
    }
}

#[test]
fn damage_is_found_named_and_removed() {
    let (_folder, cache) = new_cache(1 << 30);
    let objects = [Made::new("s3://b/one", 12 * BLOCK), Made::new("s3://b/two", 12 * BLOCK)];
    objects.iter().for_each(|object| object.check(&object.cached(&cache), 0..12 * BLOCK));
    let path = |object: usize| {
        cache.folder().join(Header { id: objects[object].id(), number: 0 }.file_name())
    };
    let verify = || cache.verify(2, &Control::new()).unwrap();
    let fine = verify();
    assert_eq!((fine.blocks, fine.bytes, fine.damage.len()), (24, 24 * BLOCK, 0));
    for (kind, expected, named) in [
        (0, 1, "bytes 131072 of s3://b/one, byte 131072: found other bytes"),
        (3, 1, "the header of cached blocks"),
        (7, 1, "opening"),
        (8, 1, "the header of cached blocks, byte"),
        (9, 1, "found 8 bytes, expected 4096"),
        (10, 1, "opening"),
        (11, 12, "s3://b/one"),
        (14, 2, "s3://b/one"),
    ] {
        damage(&path(0), &path(1), kind, 2 * BLOCK);
        let found = verify();
        assert_eq!(found.damage.len(), expected, "{kind}: {found:?}");
        assert!(found.damage[0].to_string().contains(named), "{kind}: {}", found.damage[0]);
        assert!(verify().damage.is_empty(), "{kind}");
        // What was removed is fetched again.
        objects[0].asked();
        let store = objects[0].cached(&cache_in(cache.folder(), 1 << 30));
        objects[0].check(&store, 0..12 * BLOCK);
        assert_eq!(objects[0].asked().len(), 1, "{kind}");
        objects[0].check(&store, 0..12 * BLOCK);
        assert_eq!(objects[0].asked(), [], "{kind}");
    }
    let control = Control::new();
    control.cancel();
    assert!(matches!(cache.verify(1, &control), Err(crate::Error::Cancelled)));
}

#[test]
fn what_was_used_least_recently_is_evicted() {
    let (_folder, cache) = new_cache(64 * BLOCK);
    let objects: Vec<_> =
        (0..20).map(|at| Made::new(&format!("s3://b/{at}"), 12 * BLOCK)).collect();
    let read = |at: usize| {
        // Each read is by another process.
        let store = objects[at].cached(&cache_in(cache.folder(), 64 * BLOCK));
        objects[at].check(&store, 0..12 * BLOCK);
        objects[at].asked().len()
    };
    let mut last = 0;
    for at in 0..20 {
        assert_eq!(read(at), 1);
        assert_eq!(read(0), 0, "used again and again");
        // The clock of another machine is a century ahead, or was never set.
        let time = [SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(3 << 30)];
        for (file, path) in files(&cache).iter().enumerate() {
            let file_times = fs::FileTimes::new().set_modified(time[(file + at) % 2]);
            fs::File::options().write(true).open(path).unwrap().set_times(file_times).unwrap();
        }
        last = at;
    }
    assert!(taken(&cache) <= 64 * BLOCK, "{}", taken(&cache));
    assert_eq!((read(last), read(last - 1), read(0)), (0, 0, 0));
    assert_eq!(read(1), 1);
    // Without the count, the order goes on from the sections; whatever they say.
    fs::remove_file(cache.folder().join("uses")).unwrap();
    assert_eq!((read(2), read(2), read(0)), (1, 0, 0));
    for damaged in [u64::MAX, 1 << 59, 0] {
        files(&cache).iter().for_each(|path| damage(path, path, 4, damaged));
        fs::write(cache.folder().join("uses"), damaged.to_le_bytes()).unwrap();
        assert_eq!((read(3), read(3)), (usize::from(damaged == u64::MAX), 0), "{damaged}");
    }
}

#[test]
fn the_object_that_is_read_is_not_evicted() {
    let (_folder, cache) = new_cache(8 * BLOCK);
    let object = Made::new("a", 40 * BLOCK);
    let store = object.cached(&cache);
    (0..40).for_each(|block| object.check(&store, block * BLOCK..(block + 1) * BLOCK));
    assert!(taken(&cache) <= 8 * BLOCK);
    object.asked();
    object.check(&store, 0..4 * BLOCK);
    assert_eq!(object.asked(), [], "what came first is still there");
}

#[test]
fn a_copy_of_the_object_is_there_once_all_was_compared() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", 40 * BLOCK + 5);
    let store = object.cached(&cache);
    object.check(&store, 0..40 * BLOCK);
    assert!(store.local_copy().is_none(), "a block is missing");
    object.check(&store, 40 * BLOCK + 1..40 * BLOCK + 2);
    let mut copy = vec![0; object.size as usize];
    let mut own = copy.clone();
    object.bytes(0, &mut own);
    let mut is_whole = |store: &CachedStore| {
        let Some(file) = store.local_copy() else { return false };
        assert_eq!(file.metadata().unwrap().len(), object.size);
        file.read_exact_at(&mut copy, 0).unwrap();
        copy == own
    };
    assert!(is_whole(&store));
    // Another process has compared nothing.
    let other = object.cached(&cache_in(cache.folder(), 1 << 30));
    assert!(other.local_copy().is_none());
    object.check(&other, 0..object.size);
    assert!(is_whole(&other));
    let evicted = other.local_copy().unwrap();
    cache.clear_all(&Control::new()).unwrap();
    evicted.read_exact_at(&mut [0; 9], 0).unwrap();
    assert!(object.cached(&cache).local_copy().is_none());
}

#[test]
fn what_a_slow_disc_did_not_take_is_kept_later() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", 40 * BLOCK + 5);
    let store = object.cached(&cache);
    object.check(&store, 0..8 * BLOCK);
    store.pretend_to_be_slow();
    object.check(&store, 8 * BLOCK..20 * BLOCK);
    object.check(&store, 20 * BLOCK..object.size);
    assert_eq!(store.unkept(), 33 * BLOCK);
    // Another process has kept some of it meanwhile.
    object.check(&object.cached(&cache), 10 * BLOCK..15 * BLOCK);
    object.asked();
    let mut room = vec![0; 8 * BLOCK as usize];
    let mut rounds = 0;
    while store.keep_more(&mut room) {
        rounds += 1;
    }
    assert_eq!((store.unkept(), rounds), (0, 5));
    let asked = object.asked();
    assert!(asked.iter().all(|(start, end)| end - start <= 8 * BLOCK), "{asked:?}");
    assert!(store.missing(0..object.size).is_empty());
    object.check(&store, 0..object.size);
    assert!(object.asked().is_empty() && store.local_copy().is_some());
}

#[test]
fn a_cache_that_takes_no_more_ends_what_is_kept_later() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ObjectCache::with(folder.path(), u64::MAX, Some(u64::MAX), |_| {});
    let object = Made::new("a", 40 * BLOCK);
    let store = object.cached(&cache);
    store.pretend_to_be_slow();
    object.check(&store, 0..object.size);
    object.asked();
    assert!(!store.keep_more(&mut [0; 8 * BLOCK as usize]));
    assert!(object.asked().is_empty(), "nothing is fetched that cannot be kept");
}

#[test]
fn free_space_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ObjectCache::with(folder.path(), u64::MAX, Some(u64::MAX), |_| {});
    let object = Made::new("a", 40 * BLOCK);
    let store = object.cached(&cache);
    object.check(&store, 0..40 * BLOCK);
    object.check(&store, 0..40 * BLOCK);
    assert_eq!((object.asked().len(), taken(&cache)), (2, 0));
}

#[test]
fn a_folder_that_takes_nothing_is_told_of_once() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let tell = |text: &str| TOLD.lock().unwrap().push(text.to_owned());
    let cache = ObjectCache::with(&file.join("x"), 1 << 30, Some(0), tell);
    let object = Made::new("a", 40 * BLOCK);
    let store = object.cached(&cache);
    (0..40).for_each(|block| object.check(&store, block * BLOCK..(block + 1) * BLOCK));
    let told = TOLD.lock().unwrap().clone();
    assert!(told.len() == 1 && told[0].contains("nothing more is kept"), "{told:?}");
    assert!(cache.contents(&Control::new()).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"no folder");
}

#[test]
fn other_files_in_the_folder_stay() {
    let (_folder, cache) = new_cache(4 * BLOCK);
    let object = Made::new("a", 40 * BLOCK);
    fs::create_dir_all(cache.folder()).unwrap();
    let notes = cache.folder().join("notes.blocks");
    fs::write(&notes, "mine").unwrap();
    let target = cache.folder().join("target");
    fs::write(&target, "mine").unwrap();
    // A link and a folder with the names of a section and of the count.
    std::os::unix::fs::symlink(&target, cache.folder().join("uses")).unwrap();
    let name = Header { id: object.id(), number: 0 }.file_name();
    fs::create_dir(cache.folder().join(&name)).unwrap();
    object.check(&object.cached(&cache), 0..40 * BLOCK);
    cache.clear_all(&Control::new()).unwrap();
    assert_eq!(fs::read(notes).unwrap(), b"mine");
    assert_eq!(fs::read(target).unwrap(), b"mine");
    assert!(cache.folder().join(name).is_dir());
}

#[test]
fn objects_are_cleared_by_their_urls() {
    let (_folder, cache) = new_cache(1 << 30);
    for name in ["s3://b/one", "s3://b/two"] {
        let object = Made::new(name, 2 * BLOCK);
        object.check(&object.cached(&cache), 0..2 * BLOCK);
    }
    let urls = || -> Vec<String> {
        let contents = cache.contents(&Control::new()).unwrap();
        contents.objects.iter().map(|object| object.url.to_string()).collect()
    };
    assert_eq!(urls(), ["s3://b/one", "s3://b/two"]);
    let cleared = cache.clear(|url| url.ends_with("one"), &Control::new()).unwrap();
    assert!(cleared.files == 1 && cleared.bytes >= 2 * BLOCK, "{cleared:?}");
    assert_eq!(urls(), ["s3://b/two"]);
    cache.clear_all(&Control::new()).unwrap();
    assert_eq!(urls(), [""; 0]);
}

#[test]
fn the_model_is_the_discs_if_all_is_there() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", 200 * BLOCK);
    let remote = (StoreModel::S3, Origin::Prior);
    let store = object.cached(&cache);
    assert_eq!(store.model(remote), remote, "nothing is there");
    object.check(&store, 3 * BLOCK..200 * BLOCK);
    assert_eq!(store.model(remote), remote, "98.5 % are there");
    object.check(&store, 2 * BLOCK..3 * BLOCK);
    let (disc, _) = StoreModel::known(&fs::File::open(cache.folder()).unwrap());
    assert_eq!(store.model(remote), (disc, Origin::Cache));
}

#[test]
fn what_is_missing_is_known_without_reading() {
    let (_folder, cache) = new_cache(1 << 30);
    let object = Made::new("a", 9 * BLOCK + 5);
    let store = object.cached(&cache);
    assert_eq!(store.missing(BLOCK + 1..BLOCK + 2), BLOCK..2 * BLOCK, "whole blocks are fetched");
    object.check(&store, 2 * BLOCK..5 * BLOCK);
    assert_eq!(store.missing(BLOCK + 1..5 * BLOCK), BLOCK..2 * BLOCK);
    assert_eq!(store.missing(0..9 * BLOCK + 5), 0..9 * BLOCK + 5);
    assert!(store.missing(3 * BLOCK + 7..4 * BLOCK).is_empty());
    assert_eq!(store.missing(9 * BLOCK..9 * BLOCK + 5), 9 * BLOCK..9 * BLOCK + 5);
    // What the store says is what a read does.
    let counter = Counter::default();
    let counted = CountedStore::new(Arc::new(store), counter.clone());
    for range in [2 * BLOCK + 5..3 * BLOCK, BLOCK + 3..4 * BLOCK, 8 * BLOCK..9 * BLOCK + 5] {
        let missing = counted.missing(range.clone());
        let before = counter.asked();
        object.check(&counted, range);
        let after = counter.asked();
        assert_eq!(after.bytes - before.bytes, missing.end - missing.start);
        assert_eq!(after.requests - before.requests, u64::from(!missing.is_empty()));
    }
}

/// Threads of three processes read while others clear, verify and damage.
#[test]
fn many_read_while_others_evict() {
    let folder = tempfile::tempdir().unwrap();
    let objects = [Made::new("one", 30 * BLOCK + 9), Made::new("two", 30 * BLOCK)];
    let running = AtomicUsize::new(6);
    crate::pool::scope(|threads| {
        let workers: Vec<_> = (0..6u64)
            .map(|thread| {
                let (objects, folder, running) = (&objects, folder.path(), &running);
                let job = move || {
                    for turn in 0..6 {
                        let cache = cache_in(folder, 40 * BLOCK);
                        for at in 0..20 {
                            let object = &objects[at % 2];
                            let store = object.cached(&cache);
                            let chance = mix(thread << 32 | turn << 16 | at as u64);
                            let from = chance % (25 * BLOCK);
                            object.check(&store, from..from + 1 + (chance >> 40) % (4 * BLOCK));
                        }
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                };
                threads.start("reader", job).unwrap()
            })
            .collect();
        let cache = cache_in(folder.path(), 40 * BLOCK);
        for turn in 0.. {
            if running.load(Ordering::SeqCst) == 0 || workers.is_empty() {
                break;
            }
            match turn % 3 {
                0 => drop(cache.verify(1, &Control::new()).unwrap()),
                1 => drop(cache.clear_all(&Control::new()).unwrap()),
                _ => files(&cache).iter().for_each(|path| {
                    damage(path, path, (turn / 3) as u8 % (KINDS - 1), mix(turn));
                }),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        workers.into_iter().for_each(crate::pool::Worker::join);
    });
    let left: BTreeSet<PathBuf> = files(&cache_in(folder.path(), 0)).into_iter().collect();
    assert!(left.len() <= 2, "{left:?}");
}
