//! Open files of Python as stores.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg::control::Control;
use thalweg::store::{Store, check_inside};
use thalweg::{Error, Result};

use crate::arrow::lock;

/// An open file of Python.
pub(crate) struct PythonFile {
    name: Arc<str>,
    size: u64,
    /// From an offset and a number of bytes to these bytes.
    read: Py<PyAny>,
}

impl PythonFile {
    pub(crate) fn new(name: &str, size: u64, read: Py<PyAny>) -> Self {
        Self { name: name.into(), size, read }
    }
}

/// Calls of Python from threads of runs, and whether there may be more: CPython ends a thread that
/// waits for the interpreter while it shuts down, in the middle of what it does.
static CALLS: Mutex<Calls> = Mutex::new(Calls { process: 0, running: 0, is_over: false });
static CALL_ENDED: Condvar = Condvar::new();

struct Calls {
    /// A process that this one was copied from has other calls.
    process: u32,
    running: usize,
    is_over: bool,
}

impl Calls {
    fn of_process() -> MutexGuard<'static, Self> {
        let mut calls = lock(&CALLS);
        if calls.process != std::process::id() {
            *calls = Self { process: std::process::id(), running: 0, is_over: false };
        }
        calls
    }
}

/// The longest that the end of the program waits for calls.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for the calls that run, and lets no more begin.
#[pyfunction]
pub(crate) fn end_calls(py: Python<'_>) {
    py.detach(|| {
        let mut calls = Calls::of_process();
        calls.is_over = true;
        let _ = CALL_ENDED.wait_timeout_while(calls, PATIENCE, |calls| calls.running > 0);
    });
}

/// A call of Python from any thread. `None` if the interpreter ends.
pub(crate) fn call<T>(job: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            lock(&CALLS).running -= 1;
            CALL_ENDED.notify_all();
        }
    }
    let running = {
        let mut calls = Calls::of_process();
        if calls.is_over {
            return None;
        }
        calls.running += 1;
        Running
    };
    let result = Python::try_attach(job);
    drop(running);
    result
}

impl fmt::Debug for PythonFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store for PythonFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(&self.name, self.size, offset, buf.len())?;
        // A call may take long, and cannot be ended. A handle without work of its own shows whether
        // this thread's work is cancelled.
        Control::new().check()?;
        let failed = |why: Box<dyn std::error::Error + Send + Sync>| {
            Err(Error::io(&self.name, "reading", std::io::Error::other(why)))
        };
        let done = call(|py| {
            let bytes = match self.read.call1(py, (offset, buf.len())) {
                Ok(bytes) => bytes,
                // It is found again where the failure of the run becomes an exception.
                Err(error) => return failed(error.into()),
            };
            match bytes.bind(py).cast::<PyBytes>().map(PyBytesMethods::as_bytes) {
                Ok(bytes) if bytes.len() == buf.len() => {
                    buf.copy_from_slice(bytes);
                    Ok(())
                }
                Ok(bytes) => {
                    let (found, expected) = (bytes.len(), buf.len());
                    failed(format!("{found} bytes at {offset}, expected {expected}").into())
                }
                Err(error) => failed(error.to_string().into()),
            }
        });
        // Without an interpreter, which ends, nobody waits for the bytes.
        done.unwrap_or(Err(Error::Cancelled))
    }
}
