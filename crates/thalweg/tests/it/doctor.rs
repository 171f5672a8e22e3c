//! Compares the predicted requests of reads of arrays with the actual ones.

use std::path::Path;

use thalweg::arrays::{ArrayFile, Dataset};
use thalweg::hdf5::array::Found;
use thalweg::model::StoreModel;
use thalweg::reads::Options;
use thalweg::synth::nexus::{ChunkOrder, DatasetLayout, NexusRecipe, NexusWriter, SynthRun};
use thalweg_testing::real_files;

const DISC: StoreModel = StoreModel {
    latency_s: 1e-3,
    bandwidth: 150e6,
    request_rate: 2e3,
    depth: 8,
    ..StoreModel::LOCAL
};

/// Requests and wanted bytes, predicted and measured. `None` if the file is not HDF5.
fn both(path: &Path, model: StoreModel) -> Option<[(u64, u64); 2]> {
    let file = ArrayFile::open(path, Options { model: Some(model), ..Options::default() }).ok()?;
    let datasets = file.datasets().ok()?;
    let is_fetched = |dataset: &&Dataset| match &dataset.found {
        Found::Array(array) => !array.is_by_rows(),
        _ => false,
    };
    let all: Vec<&Dataset> = datasets.iter().filter(is_fetched).collect();
    let planned = file.explain(&all, &model).ok()?;
    let done = file.each(&all, &mut |_, _| Ok(())).ok()?;
    assert!(planned.fetched >= planned.wanted || planned.count == 0);
    Some([(planned.count, planned.wanted), (done.clocks.requests, done.stored)])
}

#[test]
fn a_run_makes_the_requests_that_are_predicted() {
    let dir = tempfile::tempdir().unwrap();
    for (number, (layout, order)) in [
        (DatasetLayout::Chunked(512), ChunkOrder::Live),
        (DatasetLayout::Chunked(4096), ChunkOrder::Ordered),
        (DatasetLayout::Contiguous, ChunkOrder::Ordered),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{number}.nxs"));
        let run = SynthRun::new(NexusRecipe {
            events: 2_000_000,
            banks: 8,
            layout,
            order,
            ..NexusRecipe::default()
        })
        .unwrap();
        NexusWriter::write(&path, &run).unwrap();
        for model in [DISC, StoreModel::LOCAL, StoreModel::HDD, StoreModel::S3] {
            let [planned, done] = both(&path, model).unwrap();
            assert_eq!(planned, done, "{model:?}");
            assert!(planned.0 > 0);
        }
    }
}

#[test]
fn doctor_is_right_about_real_files() {
    let Some(folder) = real_files::shared("hdf5") else { return };
    let mut compared = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // These folders hold malicious files, which may crash libhdf5.
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default();
                if name != "cve" && name != "fuzz" {
                    folders.push(path);
                }
            } else if let Some([planned, done]) = both(&path, DISC) {
                assert_eq!(planned, done, "{}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "{compared}");
}
