//! Streams of batches: a run goes on while Python uses the last ones.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};

use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use thalweg::control::Control;
use thalweg::pool::Background;
use thalweg::{Error, Result};

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

/// A run on a thread of its own. Who drops it cancels the run, and waits for its end.
#[derive(Debug)]
pub(crate) struct Running {
    // Dropped before the thread is waited for.
    batches: Option<Receiver<Result<Item>>>,
    thread: Option<Background<()>>,
    part: Control,
    process: u32,
}

/// The error of a stream in a process that was copied from the one that began it: its threads are
/// not there.
fn elsewhere() -> Error {
    let what = "this stream was begun before the process was forked: open the file again in the \
                new process, or use the start method \"spawn\"";
    Error::Usage(what.into())
}

impl Running {
    /// Starts a run that gives its batches to a channel. `what` is read.
    pub(crate) fn start(
        what: &Arc<str>,
        part: &Control,
        run: impl FnOnce(SyncSender<Result<Item>>) + Send + 'static,
    ) -> Result<Self> {
        let (give, batches) = sync_channel(WAITING);
        let (part, work) = (part.clone(), part.clone());
        let job = move || work.within(|| run(give));
        let thread = Background::start("thalweg-python", what, job)?;
        let process = std::process::id();
        Ok(Self { batches: Some(batches), thread: Some(thread), part, process })
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
        if self.process != std::process::id() {
            return Some(Err(elsewhere()));
        }
        let next = self.batches.as_ref()?.recv().ok();
        if next.is_none() {
            self.end();
        }
        next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // There is nothing to wait for.
            std::mem::forget((self.batches.take(), self.thread.take()));
            return;
        }
        self.batches = None;
        self.part.cancel();
        // The last one who has the stream may be an open file of Python that it reads.
        if let Some(thread) = self.thread.take().filter(|_| !self.part.is_here()) {
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

/// The batches of a run. They can be read once.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct BatchStream {
    schema: SchemaRef,
    part: Control,
    source: Mutex<Option<Source>>,
    lent: Mutex<VecDeque<Weak<Mutex<Rows>>>>,
}

impl BatchStream {
    pub(crate) fn new(schema: SchemaRef, batches: Batches) -> Self {
        Self::of(schema, Control::new(), Source::Waiting(batches))
    }

    /// The batches of a run that has begun.
    pub(crate) fn running(schema: SchemaRef, run: Running) -> Self {
        Self::of(schema, run.part.clone(), Source::Running(run))
    }

    fn of(schema: SchemaRef, part: Control, source: Source) -> Self {
        Self { schema, part, source: Mutex::new(Some(source)), lent: Mutex::default() }
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

    /// The next batch of the run, and the exception of a signal handler, if one raised. After an
    /// error or an exception the stream is at its end.
    fn take_next(&self) -> (Option<Result<Item>>, Option<PyErr>) {
        let mut source = lock(&self.source);
        let mut run = match source.take() {
            Some(Source::Running(run)) => run,
            Some(Source::Waiting(batches)) => {
                match Running::start(&"reads".into(), &self.part, |give| give_all(batches, &give)) {
                    Ok(run) => run,
                    Err(error) => return (Some(Err(error)), None),
                }
            }
            None => return (None, None),
        };
        if run.process != std::process::id() {
            return (Some(Err(elsewhere())), None);
        }
        let Some(batches) = &run.batches else { return (None, None) };
        let (next, raised) = watch(&run.part, batches);
        match (&next, &raised) {
            (Some(Ok(_)), None) => *source = Some(Source::Running(run)),
            (None, None) => run.end(),
            _ => {}
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
        if self.part.is_here() {
            // An open file of Python closes the stream that reads it, which ends after this call.
            return self.part.cancel();
        }
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
        let items = Detached::new(source.into_batches());
        let records = items.map(|item| signed(item?.rows.into_record()));
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
/// its lock, and threads of the run wait for the lock where the store is a file of Python. A
/// library that holds the lock on one thread while another takes the batches would wait forever:
/// the limited API does not tell who holds it.
struct Detached {
    batches: Option<Batches>,
    process: u32,
}

impl Detached {
    fn new(batches: Batches) -> Self {
        Self { batches: Some(batches), process: std::process::id() }
    }
}

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
    type Item = std::result::Result<Item, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.process != std::process::id() {
            return Some(Err(ArrowError::ExternalError(Box::new(elsewhere()))));
        }
        let batches = self.batches.as_mut()?;
        // A panic must not go on in the C code that asks for the batch.
        let next = detached(|| catch_unwind(AssertUnwindSafe(|| batches.next())));
        let Ok(next) = next else {
            self.batches = None;
            let what = "a thread of the read panicked, and standard error says where: report it";
            return Some(Err(ArrowError::ComputeError(what.into())));
        };
        Some(next?.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let batches = self.batches.take();
        if self.process != std::process::id() {
            // Its threads are not there to be waited for.
            return std::mem::forget(batches);
        }
        detached(|| drop(batches));
    }
}
