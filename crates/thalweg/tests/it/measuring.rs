//! Reading for measurements: from memory, without decoding, and from a slower store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::Error;
use thalweg::control::Control;
use thalweg::model::{Origin, StoreModel};
use thalweg::reads::{Options, Read, ReadFile, ReadSet, Selection, StoreKind, Visitor};
use thalweg::store::throttled::Limits;
use thalweg::synth::Recipe;
use thalweg_testing::slow5::write_synthetic;

const READS: u64 = 60;

fn file(folder: &Path, name: &str, seed: u64) -> (PathBuf, Vec<String>) {
    let path = folder.join(name);
    let (_, ids) = write_synthetic(
        &path,
        Recipe { reads: READS, mean_length: 20_000.0, seed, ..Recipe::default() },
    );
    (path, ids)
}

#[derive(Default)]
struct Sum(i64);

impl Visitor for Sum {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        self.0 += read.samples.iter().map(|&s| i64::from(s)).sum::<i64>();
        Ok(())
    }
}

fn total(sums: &[Sum]) -> i64 {
    sums.iter().map(|s| s.0).sum()
}

#[test]
fn from_memory_is_the_same_and_needs_the_file_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = file(dir.path(), "a.blow5", 1);
    let open = |store| ReadFile::open(&path, Options { store, ..Options::default() }).unwrap();
    let (sums, stored) = open(StoreKind::Buffered).visit(&Selection::All, Sum::default).unwrap();
    let memory = open(StoreKind::Memory);
    std::fs::remove_file(&path).unwrap();
    let (same, from_memory) = memory.visit(&Selection::All, Sum::default).unwrap();
    assert_eq!((total(&same), from_memory.reads), (total(&sums), READS));
    assert_eq!(from_memory.clocks.fetch.bytes, stored.clocks.fetch.bytes);
    assert_eq!(memory.model(), (StoreModel::MEMORY, Origin::Prior));
}

#[test]
fn a_load_into_memory_can_be_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = file(dir.path(), "a.blow5", 1);
    let control = Control::new();
    control.cancel();
    let options = Options { store: StoreKind::Memory, control, ..Options::default() };
    assert!(matches!(ReadFile::open(&path, options), Err(Error::Cancelled)));
}

#[test]
fn fetching_makes_the_same_requests_and_decodes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (a, ids) = file(dir.path(), "a.blow5", 1);
    let (b, _) = file(dir.path(), "b.blow5", 2);
    let some = Selection::Ids(Arc::new(ids.into_iter().step_by(3).collect()));
    for store in [StoreKind::Buffered, StoreKind::Direct, StoreKind::Memory] {
        let options = Options { store, ..Options::default() };
        for (paths, selection) in
            [(vec![&a], Selection::All), (vec![&a], some.clone()), (vec![&a, &b], Selection::All)]
        {
            let set = ReadSet::open(&paths, options.clone()).unwrap();
            let (_, whole) = set.visit(&selection, Sum::default).unwrap();
            let fetched = set.fetch(&selection).unwrap();
            assert_eq!((fetched.reads, fetched.samples), (whole.reads, 0));
            assert_eq!(fetched.clocks.requests, whole.clocks.requests);
            assert_eq!(fetched.clocks.fetch.bytes, whole.clocks.fetch.bytes);
            assert_eq!(fetched.clocks.decode.bytes, 0);
            // For each file in turn: the header, then the data.
            let chain = 2 * paths.len() as u64;
            assert_eq!((fetched.dependent_requests, whole.dependent_requests), (chain, chain));
        }
    }
    let cut = std::fs::read(&a).unwrap();
    std::fs::write(&a, &cut[..cut.len() / 2]).unwrap();
    let half = ReadFile::open(&a, Options::default()).unwrap().fetch(&Selection::All);
    assert!(matches!(half, Err(Error::Malformed { .. })), "framing is not left out: {half:?}");
}

#[test]
fn a_throttle_is_in_force_and_known() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = file(dir.path(), "a.blow5", 1);
    let limits: Limits = "bandwidth=5MB/s,latency=3ms".parse().unwrap();
    for store in [StoreKind::Buffered, StoreKind::Memory, StoreKind::Mmap, StoreKind::Uring] {
        let options = Options { store, throttle: Some(limits), ..Options::default() };
        let file = ReadFile::open(&path, options).unwrap();
        assert_eq!((file.model().0.bandwidth, file.model().0.latency_s), (5e6, 3e-3));
        let start = Instant::now();
        let (sums, summary) = file.visit(&Selection::All, Sum::default).unwrap();
        let least = Duration::from_secs_f64(summary.clocks.fetch.bytes as f64 / 5e6);
        assert!(
            start.elapsed() >= least && !least.is_zero(),
            "{store:?}: {:?} {least:?}",
            start.elapsed()
        );
        assert_ne!(total(&sums), 0);
    }
    let given = StoreModel { depth: 5, ..StoreModel::LOCAL };
    let options = Options { model: Some(given), throttle: Some(limits), ..Options::default() };
    assert_eq!(
        ReadFile::open(&path, options).unwrap().model(),
        (given, Origin::Given),
        "the caller knows better"
    );
}
