//! Compares the predictions of `ReadFile::explain` with actual runs, and tests which store model a
//! file gets.

use std::path::Path;
use std::sync::Arc;

use thalweg::Error;
use thalweg::engine::Delivery;
use thalweg::model::{Origin, StoreModel};
use thalweg::plan::{Budget, Load};
use thalweg::reads::{Options, Read, ReadFile, Selection, StoreKind, Visitor};
use thalweg::synth::Recipe;
use thalweg::write::save_index;
use thalweg_testing::slow5::write_synthetic;

const READS: u64 = 120;

/// Writes a file of `READS` reads with its index, and returns the ids in file order.
fn file(path: &Path) -> Vec<String> {
    let recipe = Recipe { reads: READS, mean_length: 9_000.0, ..Recipe::default() };
    let (index, ids) = write_synthetic(path, recipe);
    save_index(&index, &thalweg::reads::index_path(path)).unwrap();
    ids
}

#[derive(Default)]
struct Count(u64);

impl Visitor for Count {
    fn visit(&mut self, _: &Read<'_>) -> thalweg::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

#[test]
fn a_run_makes_the_requests_that_were_explained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reads.blow5");
    let mut ids = file(&path);
    ids.reverse();
    let sparse: Vec<String> = ids.iter().step_by(7).cloned().collect();
    let mut twice = sparse.clone();
    twice.extend(sparse.iter().take(5).cloned());
    let lists = [ids, sparse, twice, Vec::new()];
    let selections =
        lists.into_iter().map(|ids| Selection::Ids(Arc::new(ids))).chain([Selection::All]);
    for selection in selections {
        for store in [StoreKind::Buffered, StoreKind::Direct, StoreKind::Mmap, StoreKind::Uring] {
            for (memory, gap) in [(4 << 20, 1e5), (192 << 20, 1.0)] {
                let model =
                    StoreModel { bandwidth: 1e9, request_rate: 1e9 / gap, ..StoreModel::LOCAL };
                let budget = Budget { threads: 2, memory };
                let options = Options { store, budget, model: Some(model), ..Options::default() };
                let file = ReadFile::open(&path, options).unwrap();
                let plan = file.explain(&selection, Delivery::Worker).unwrap();
                let (_, summary) = file.visit(&selection, Count::default).unwrap();
                let case = format!("{store:?}, {memory} bytes, gap {gap}");
                assert_eq!(plan.requests, summary.clocks.requests, "{case}");
                assert_eq!(plan.fetched_bytes, summary.clocks.fetch.bytes, "{case}");
                assert_eq!(plan.reads, Some(summary.reads), "{case}");
                assert!(plan.wanted_bytes <= plan.fetched_bytes, "{case}");
                let shares = plan.shares;
                assert_eq!(
                    shares.buffers_bytes + shares.batches_bytes + shares.codecs_bytes,
                    memory,
                    "{case}"
                );
                assert_eq!(plan.origin, Origin::Given);
                assert_eq!(plan.gap_bytes, gap as u64);
                let load = Load { requests: plan.requests, bytes: plan.fetched_bytes };
                assert_eq!(plan.predicted, load.predicted_with(&model, plan.processor_s));
            }
        }
    }
}

/// The places of a FAST5 file's reads come from its metadata, not from an index of offsets.
#[cfg(feature = "hdf5")]
#[test]
fn a_run_over_a_fast5_file_makes_the_requests_that_were_explained() {
    use thalweg::convert::{Conversion, convert};
    use thalweg::format::fast5::Compression;
    use thalweg::reads::ReadSet;
    use thalweg::write::Coding;

    let dir = tempfile::tempdir().unwrap();
    let blow5 = dir.path().join("reads.blow5");
    let ids = file(&blow5);
    let path = dir.path().join("reads.fast5");
    let set = ReadSet::open([&blow5], Options::default()).unwrap();
    let conversion =
        Conversion { lossy: true, ..Conversion::new(Coding::Fast5(Compression::default())) };
    convert(&set, &Selection::All, &path, &conversion).unwrap();
    let sparse: Vec<String> = ids.iter().step_by(7).cloned().collect();
    for selection in [Selection::All, Selection::Ids(Arc::new(sparse))] {
        let model = StoreModel { bandwidth: 1e9, request_rate: 1e6, ..StoreModel::LOCAL };
        let options = Options { model: Some(model), ..Options::default() };
        let file = ReadFile::open(&path, options).unwrap();
        let plan = file.explain(&selection, Delivery::Worker).unwrap();
        let (_, summary) = file.visit(&selection, Count::default).unwrap();
        assert!(plan.wanted_bytes > 100_000, "{plan:?}");
        assert_eq!(plan.requests, summary.clocks.requests, "{plan:?}");
        assert_eq!(plan.fetched_bytes, summary.clocks.fetch.bytes, "{plan:?}");
    }
}

#[test]
fn explain_reads_no_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reads.blow5");
    let ids = file(&path);
    std::fs::remove_file(thalweg::reads::index_path(&path)).unwrap();
    let file = ReadFile::open(&path, Options::default()).unwrap();
    let all = file.explain(&Selection::All, Delivery::Ordered).unwrap();
    assert_eq!(all.reads, None);
    assert!(all.shares.batches_bytes > 0);
    let error = file.explain(&Selection::Ids(Arc::new(ids)), Delivery::Ordered).unwrap_err();
    assert!(matches!(&error, Error::NotFound { .. }), "{error:?}");
    assert!(error.to_string().contains("thalweg index"), "{error}");
    assert!(!thalweg::reads::index_path(&path).exists());
    assert_eq!(file.store().name().as_ref(), path.to_str().unwrap());
}

#[test]
fn every_store_gives_the_same_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reads.blow5");
    file(&path);
    let sums = |store| {
        let file = ReadFile::open(&path, Options { store, ..Options::default() }).unwrap();
        let rows = file
            .map(&Selection::All, |read| (read.record.read_id.to_owned(), read.samples.to_vec()))
            .unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let buffered = sums(StoreKind::Buffered);
    for store in [StoreKind::Direct, StoreKind::Mmap, StoreKind::Uring] {
        assert!(sums(store) == buffered, "{store:?}");
    }
}
