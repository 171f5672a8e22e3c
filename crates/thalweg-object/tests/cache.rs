//! Objects of a server behind a cache on disc.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::object_cache::ObjectCache;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::store::Store;
use thalweg_object::{Patience, open, register};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::{sample, store_suite};

const PATH: &str = "/bucket/key";
const BLOCK: usize = 64 << 10;

fn server(bytes: &[u8]) -> ObjectServer {
    ObjectServer::start([(PATH, bytes.to_vec())], |_| Answer::Right)
}

/// Opens a URL as another process would.
fn opened(url: &str, folder: &Path) -> OpenedStore {
    register();
    let cache = Some(ObjectCache::with(folder, 1 << 30, Some(0), |text| panic!("{text}")));
    OpenedStore::new(Path::new(url), &Options { cache, ..Options::default() }).unwrap()
}

/// A store that keeps its server alive.
struct Served(Arc<dyn Store>, #[expect(dead_code, reason = "it is dropped last")] ObjectServer);

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Store for Served {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> thalweg_io::Result<()> {
        self.0.read_at(offset, buf)
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        self.0.read_at_hand(offset, buf)
    }
}

#[test]
fn an_object_behind_a_cache_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    store_suite(&|bytes| {
        let server = server(bytes);
        let store = opened(&server.url(PATH), folder.path()).store;
        Arc::new(Served(store, server))
    });
    // Warm: all is there but the answer that has the tag.
    store_suite(&|bytes| {
        let server = server(bytes);
        let url = server.url(PATH);
        let mut all = vec![0; bytes.len()];
        opened(&url, folder.path()).store.read_at(0, &mut all).unwrap();
        let store = opened(&url, folder.path()).store;
        let before = server.asked().len();
        store.read_at(0, &mut all).unwrap();
        assert!(all == bytes && server.asked().len() == before);
        Arc::new(Served(store, server))
    });
}

fn ranges(asked: &[Asked]) -> Vec<(u64, u64)> {
    asked.iter().filter_map(|asked| asked.range.clone()).map(|r| (r.start, r.end)).collect()
}

#[test]
fn a_read_is_one_request_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = sample(40 * BLOCK + 100);
    let server = server(&bytes);
    let url = server.url(PATH);
    let read = |store: &dyn Store, from: usize, to: usize| {
        let before = server.asked().len();
        let mut buf = vec![0; to - from];
        store.read_at(from as u64, &mut buf).unwrap();
        assert!(buf == bytes[from..to]);
        ranges(&server.asked()[before..])
    };
    let block = |at: usize| (at * BLOCK) as u64;
    let cold = opened(&url, folder.path());
    assert_eq!(cold.model.0, StoreModel::S3);
    assert_eq!(read(&*cold.store, 5, 99), [], "the first answer has it");
    // A read with both ends inside of blocks is one request into three pieces of memory.
    assert_eq!(read(&*cold.store, 2 * BLOCK - 7, 9 * BLOCK + 7), [(block(1), block(10))]);
    assert_eq!(read(&*cold.store, 0, 20 * BLOCK), [(0, block(20))]);
    assert_eq!(read(&*cold.store, 0, bytes.len()), [(block(20), bytes.len() as u64)]);
    let warm = opened(&url, folder.path());
    assert_ne!(warm.model.0, StoreModel::S3, "it is the disc's");
    assert_eq!(read(&*warm.store, 0, bytes.len()), []);
    assert_eq!(read(&*warm.store, 3, 30 * BLOCK + 3), []);
    // A signature is no part of the object.
    let signed = opened(&format!("{url}?X-Amz-Signature=secret"), folder.path());
    assert_eq!(read(&*signed.store, 0, bytes.len()), []);
    let other = opened(&format!("{url}?versionId=7"), folder.path());
    assert_eq!(read(&*other.store, 0, bytes.len()).len(), 1);
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    for file in &files {
        let text = fs::read(file).unwrap();
        assert!(!text.windows(6).any(|part| part == b"secret"), "{}", file.display());
    }
}

#[test]
fn a_new_version_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(&sample(10 * BLOCK));
    let read = || {
        let mut buf = vec![0; 10 * BLOCK];
        opened(&server.url(PATH), folder.path()).store.read_at(0, &mut buf).unwrap();
        buf
    };
    assert!(read() == sample(10 * BLOCK));
    let mut other = sample(10 * BLOCK);
    other.reverse();
    server.put(PATH, other.clone());
    assert!(read() == other);
}

#[test]
fn an_object_without_a_strong_tag_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = sample(3 * BLOCK);
    let size = bytes.len();
    for tag in ["ETag: W/\"weak\"", "ETag: \"\"", "Server: none"] {
        let answer = move |asked: &Asked| {
            let range = asked.range.clone().unwrap();
            let (from, to) = (range.start as usize, (range.end as usize).min(size));
            let head = format!(
                "HTTP/1.1 206 OK\r\n{tag}\r\nContent-Length: {}\r\n\
                 Content-Range: bytes {from}-{}/{size}\r\n\r\n",
                to - from,
                to - 1,
            );
            Answer::Raw([head.as_bytes(), &sample(size)[from..to]].concat().leak())
        };
        let server = ObjectServer::start([(PATH, bytes.clone())], answer);
        let store = opened(&server.url(PATH), folder.path()).store;
        let mut buf = vec![0; size];
        store.read_at(0, &mut buf).unwrap();
        assert!(buf == bytes, "{tag}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{tag}");
    }
}

/// Answers that break off go on in the right piece of memory.
#[test]
fn a_torn_answer_is_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = sample(9 * BLOCK + 100);
    let server = ObjectServer::start([(PATH, bytes.clone())], |asked| match asked.number {
        0 => Answer::Right,
        number => Answer::Torn([0.01, 0.2, 0.5, 0.99, 1.0][number as usize % 5]),
    });
    let mut buf = vec![0; 8 * BLOCK];
    for _ in 0..2 {
        let store = opened(&server.url(PATH), folder.path()).store;
        store.read_at(100, &mut buf).unwrap();
        assert!(buf == bytes[100..][..8 * BLOCK]);
    }
    let cache = ObjectCache::new(folder.path(), 1 << 30);
    assert!(cache.verify(1, &Control::new()).unwrap().damage.is_empty());
}

#[test]
fn parts_are_one_request() {
    let bytes = sample(300_000);
    let server = server(&bytes);
    let object = open(&server.url(PATH), &Control::new(), Patience::default()).unwrap();
    let (mut one, mut two, mut three) = (vec![0; 7], vec![0; 0], vec![0; 100_000]);
    object.read_parts(150_000, &mut [&mut one, &mut two, &mut three]).unwrap();
    assert_eq!(ranges(&server.asked())[1..], [(150_000, 250_007)]);
    assert!([one, two, three].concat() == bytes[150_000..250_007]);
    assert!(object.read_parts(299_990, &mut [&mut [0; 7], &mut [0; 7]]).is_err());
}
