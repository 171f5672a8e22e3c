//! Streams of batches: a run goes on while Python uses the last ones.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};

use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use thalweg::Result;
use thalweg::control::Control;
use thalweg::pool::Background;

use crate::arrow::{Batch, Rows, capsule, lock, schema_capsule, signed, signed_schema};
use crate::errors::{raised, usage};
use crate::run::watch;

/// Batches that a stream lends at the same time: in a loop, the one in use and the one before.
const LENT: usize = 2;

/// Batches that wait for Python.
const WAITING: usize = 1;

/// Some rows of a run.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) rows: Rows,
    /// The number of the file or bank that they are of.
    pub(crate) file: usize,
}

/// The batches of a run.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<Item>> + Send>;

/// A run on a thread of its own. The thread ends when nobody wants its batches.
#[derive(Debug)]
pub(crate) struct Running {
    // Dropped before the thread is waited for.
    batches: Option<Receiver<Result<Item>>>,
    thread: Option<Background<()>>,
}

impl Running {
    /// Starts a run that gives its batches to a channel. `what` is read.
    pub(crate) fn start(
        what: &Arc<str>,
        run: impl FnOnce(SyncSender<Result<Item>>) + Send + 'static,
    ) -> Result<Self> {
        let (give, batches) = sync_channel(WAITING);
        let thread = Background::start("thalweg-python", what, || run(give))?;
        Ok(Self { batches: Some(batches), thread: Some(thread) })
    }

    /// Waits for the end of a run, of which nothing came any more. Its panic continues here.
    fn end(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

/// Gives batches until nobody wants them.
fn give_all(mut batches: Batches, give: &SyncSender<Result<Item>>) {
    while batches.next().is_some_and(|item| give.send(item).is_ok()) {}
}

impl Iterator for Running {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.as_ref()?.recv().ok();
        if next.is_none() {
            self.end();
        }
        next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            thread.wait();
        }
    }
}

enum Source {
    Waiting(Batches),
    Running(Running),
}

impl Source {
    fn into_batches(self) -> Batches {
        match self {
            Self::Waiting(batches) => batches,
            Self::Running(run) => Box::new(run),
        }
    }
}

/// The batches of a run, which begins with the first. It can be read once.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct BatchStream {
    schema: SchemaRef,
    control: Control,
    source: Mutex<Option<Source>>,
    lent: Mutex<VecDeque<Weak<Mutex<Rows>>>>,
}

impl BatchStream {
    pub(crate) fn new(schema: SchemaRef, control: Control, batches: Batches) -> Self {
        Self::of(schema, control, Source::Waiting(batches))
    }

    /// The batches of a run that has begun.
    pub(crate) fn running(schema: SchemaRef, control: Control, run: Running) -> Self {
        Self::of(schema, control, Source::Running(run))
    }

    fn of(schema: SchemaRef, control: Control, source: Source) -> Self {
        Self { schema, control, source: Mutex::new(Some(source)), lent: Mutex::default() }
    }

    /// Takes all but the newest lent batch out of the run's budget.
    fn keep_older(&self) {
        let mut lent = lock(&self.lent);
        while lent.len() >= LENT {
            if let Some(rows) = lent.pop_front().and_then(|rows| rows.upgrade()) {
                lock(&rows).keep();
            }
        }
    }

    /// The next batch of the run, and the exception of a signal handler, if one raised. After
    /// either an error or that the run is over.
    fn take_next(&self) -> (Option<Result<Item>>, Option<PyErr>) {
        let mut source = lock(&self.source);
        let mut run = match source.take() {
            Some(Source::Running(run)) => run,
            Some(Source::Waiting(batches)) => {
                match Running::start(&"reads".into(), |give| give_all(batches, &give)) {
                    Ok(run) => run,
                    Err(error) => return (Some(Err(error)), None),
                }
            }
            None => return (None, None),
        };
        let Some(batches) = &run.batches else { return (None, None) };
        let (next, raised) = watch(&self.control, batches);
        match (&next, &raised) {
            (Some(Ok(_)), None) => *source = Some(Source::Running(run)),
            (None, None) => run.end(),
            (_, None) => {}
            (_, Some(_)) => {
                // Its threads heed the handle until they end.
                drop(run);
                self.control.reset();
            }
        }
        (next, raised)
    }
}

#[pymethods]
impl BatchStream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.keep_older();
        let (next, interrupt) = py.detach(|| self.take_next());
        if let Some(interrupt) = interrupt {
            return Err(interrupt);
        }
        let Some(item) = next.transpose().map_err(|error| raised(py, &error))? else {
            return Ok(None);
        };
        let rows = Arc::new(Mutex::new(item.rows));
        lock(&self.lent).push_back(Arc::downgrade(&rows));
        Ok(Some(Batch::new(rows, item.file)))
    }

    /// Ends the run.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *lock(&self.source) = None);
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &signed_schema(&self.schema))
    }

    /// The rest of the batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // As the interface allows, the data comes as it is.
        let _ = requested_schema;
        let Some(source) = py.detach(|| lock(&self.source).take()) else {
            return Err(usage(py, "these batches were read already".into()));
        };
        let records = Detached(Some(source.into_batches())).map(|item| match item {
            Ok(item) => signed(item.rows.into_record()),
            Err(error) => Err(ArrowError::ExternalError(Box::new(error))),
        });
        let reader = RecordBatchIterator::new(records, signed_schema(&self.schema));
        capsule(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        let source = lock(&self.source).take();
        detached(|| drop(source));
    }
}

/// Batches whose run goes on and ends while others may use the interpreter. Who takes them may hold
/// its lock, and threads of the run wait for the lock where the store is a file of Python.
struct Detached(Option<Batches>);

/// The result of a job without the interpreter's lock, whether or not this thread holds it.
fn detached<T: Send>(job: impl FnOnce() -> T + Send) -> T {
    let mut job = Some(job);
    let mut run = || job.take().map(|job| job());
    let done = Python::try_attach(|py| py.detach(&mut run)).flatten();
    // Without an interpreter there is no lock.
    match done.or_else(run) {
        Some(done) => done,
        None => unreachable!("the job is taken once, and its result is there"),
    }
}

impl Iterator for Detached {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.0.as_mut()?;
        detached(|| batches.next())
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let batches = self.0.take();
        detached(|| drop(batches));
    }
}
