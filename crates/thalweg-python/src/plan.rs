//! What a read of arrays will cost, and what makes it slow, found without reading values.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use thalweg::arrays::{ArrayFile, Dataset, Selection, Slab};
use thalweg::doctor::{ArrayLayout, Costs, Diagnosis, Finding, Predicted, ReadTime, diagnose};
use thalweg::hdf5::array::Found;
use thalweg::model::StoreModel;
use thalweg::store::Counter;
use thalweg::{Options, Result, open_urls};

use crate::options::Arguments;
use crate::run::run;

/// The file, opened so that all requests that finding its arrays takes are counted, and those of
/// its datasets at or below the paths that are read.
struct Examined {
    file: ArrayFile,
    datasets: Vec<Dataset>,
    /// How many others there are.
    left_out: usize,
}

impl Examined {
    fn open(path: &Path, patterns: &[String], options: Options, own: bool) -> Result<Self> {
        let counter = Some(Counter::default());
        let options = Options { counter, finds_in_rounds: true, own_index: own, ..options };
        let file = ArrayFile::open(path, options)?;
        let (datasets, others): (Vec<_>, Vec<_>) = file
            .survey(patterns)?
            .datasets
            .into_iter()
            .partition(|dataset| dataset.not_read().is_none());
        Ok(Self { file, datasets, left_out: others.len() })
    }

    fn model(&self) -> StoreModel {
        self.file.options().model.unwrap_or(StoreModel::LOCAL)
    }
}

/// The plan of a read of the datasets at or below paths, or of a part of each.
#[pyfunction]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    path: PathBuf,
    arguments: Arguments<'_>,
    patterns: Vec<String>,
    slabs: Option<Vec<(u64, u64, u64)>>,
) -> PyResult<Bound<'py, PyDict>> {
    open_urls();
    let (_, options) = arguments.open(py)?;
    let (requests, time, arrays) = run(py, || {
        let examined = Examined::open(&path, &patterns, options, false)?;
        let model = examined.model();
        let datasets: Vec<&Dataset> = examined.datasets.iter().collect();
        let requests = match slabs {
            None => examined.file.explain(&datasets, &model)?,
            Some(slabs) => {
                let slab = |(start, count, step)| Slab { start, count, step, block: 1 };
                let selection = Selection::Slab(slabs.into_iter().map(slab).collect());
                let wanted: Vec<_> =
                    datasets.iter().map(|dataset| (*dataset, selection.clone())).collect();
                examined.file.explain_selections(&wanted, &model)?
            }
        };
        let time = ReadTime::of(&examined.file, &datasets, &requests, &model);
        Ok((requests, time, datasets.len()))
    })?;
    let plan = PyDict::new(py);
    plan.set_item("arrays", arrays)?;
    plan.set_item("requests", requests.count)?;
    plan.set_item("fetched_bytes", requests.fetched)?;
    plan.set_item("wanted_bytes", requests.wanted)?;
    plan.set_item("jumps", requests.jumps)?;
    plan.set_item("requests_before", time.before.requests)?;
    plan.set_item("bytes_before", time.before.bytes)?;
    plan.set_item("rounds", time.rounds(&requests))?;
    plan.set_item("depth", requests.shape.depth)?;
    plan.set_item("block_bytes", requests.shape.block)?;
    plan.set_item("threads", requests.shape.threads)?;
    plan.set_item("processor_s", time.processor_s)?;
    plan.set_item("predicted_s", time.total_s)?;
    Ok(plan)
}

/// What slows down reading the datasets at or below paths.
#[pyfunction]
pub(crate) fn doctor<'py>(
    py: Python<'py>,
    path: PathBuf,
    arguments: Arguments<'_>,
    patterns: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    open_urls();
    let (_, options) = arguments.open(py)?;
    let (diagnosis, left_out) = run(py, || {
        let started = Instant::now();
        // Readers through libhdf5, with which thalweg is compared, use no saved index.
        let examined = Examined::open(&path, &patterns, options, true)?;
        // Virtual datasets have no chunks of their own.
        let has_layout =
            |of: &&Dataset| matches!(&of.found, Found::Array(array) if !array.is_by_rows());
        let datasets: Vec<&Dataset> = examined.datasets.iter().filter(has_layout).collect();
        let left_out = examined.left_out + examined.datasets.len() - datasets.len();
        let index = started.elapsed();
        let model = examined.model();
        let diagnosis = diagnose(&examined.file, &datasets, &model, index, &Costs::default())?;
        Ok((diagnosis, left_out))
    })?;
    let report = shown(py, &diagnosis)?;
    report.set_item("datasets_left_out", left_out)?;
    Ok(report)
}

fn shown<'py>(py: Python<'py>, diagnosis: &Diagnosis) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    let layouts = diagnosis.layouts.iter().map(|layout| layout_of(py, layout));
    report.set_item("datasets", PyList::new(py, layouts.collect::<PyResult<Vec<_>>>()?)?)?;
    report.set_item("bytes", diagnosis.bytes)?;
    report.set_item("bytes_stored", diagnosis.stored)?;
    report.set_item("chunks", diagnosis.chunks)?;
    report.set_item("in_order", diagnosis.sequential_share)?;
    report.set_item("small_share", diagnosis.small)?;
    report.set_item("wanted_bytes", diagnosis.requests.wanted)?;
    report.set_item("thalweg", predicted(py, &diagnosis.thalweg)?)?;
    report.set_item("libhdf5", predicted(py, &diagnosis.libhdf5)?)?;
    let findings = diagnosis.findings.iter().map(|finding| finding_of(py, finding));
    report.set_item("findings", PyList::new(py, findings.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(report)
}

fn layout_of<'py>(py: Python<'py>, layout: &ArrayLayout) -> PyResult<Bound<'py, PyDict>> {
    let shown = PyDict::new(py);
    shown.set_item("path", &layout.path)?;
    shown.set_item("bytes", layout.bytes)?;
    shown.set_item("bytes_stored", layout.stored)?;
    shown.set_item("chunk", &layout.chunk)?;
    shown.set_item("chunk_bytes", layout.chunk_bytes())?;
    shown.set_item("chunks", layout.pieces)?;
    let in_order = (layout.pairs > 0).then(|| layout.followed as f64 / layout.pairs as f64);
    shown.set_item("in_order", in_order)?;
    shown.set_item("filters", &layout.filters)?;
    Ok(shown)
}

fn finding_of<'py>(py: Python<'py>, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let shown = PyDict::new(py);
    shown.set_item("kind", finding.kind.name())?;
    shown.set_item("what", &finding.what)?;
    shown.set_item("writer", finding.writer)?;
    shown.set_item("repack", &finding.repack)?;
    let gain = finding.gain.as_ref();
    let time = |of: Option<&Predicted>| of.map(|of| predicted(py, of)).transpose();
    shown.set_item("thalweg", time(gain.map(|gain| &gain.thalweg))?)?;
    shown.set_item("libhdf5", time(gain.map(|gain| &gain.libhdf5))?)?;
    shown.set_item("bytes_stored", gain.map(|gain| gain.stored))?;
    Ok(shown)
}

fn predicted<'py>(py: Python<'py>, time: &Predicted) -> PyResult<Bound<'py, PyDict>> {
    let shown = PyDict::new(py);
    shown.set_item("requests", time.requests)?;
    shown.set_item("bytes", time.bytes)?;
    shown.set_item("jumps", time.jumps)?;
    shown.set_item("store_s", time.store_s)?;
    shown.set_item("cpu_s", time.cpu_s)?;
    shown.set_item("threads", time.threads)?;
    shown.set_item("index_s", time.index_s)?;
    shown.set_item("total_s", time.total_s)?;
    Ok(shown)
}
