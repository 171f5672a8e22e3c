//! Runs work without the lock of the interpreter, and lets Ctrl-C end it.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::{Error, Result, pool};

use crate::errors::raised;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The result of a job, which heeds `control`. If a signal handler raises, as that of Ctrl-C does,
/// the job is cancelled, and the handler's exception is the result.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    control: &Control,
    job: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        pool::scope(|threads| {
            let (over, is_over) = sync_channel(1);
            let job = move || {
                let outcome = job();
                // The other end waits until this thread is joined.
                let _ = over.send(());
                outcome
            };
            let worker = match threads.start("thalweg-python", job) {
                Ok(worker) => worker,
                Err(error) => {
                    return (
                        Err(Error::io(&"thalweg".into(), "starting a thread for", error)),
                        None,
                    );
                }
            };
            let mut raised_here = None;
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(LOOK) {
                if raised_here.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    control.cancel();
                    raised_here = Some(error);
                }
            }
            (worker.join(), raised_here)
        })
    });
    match outcome {
        (_, Some(error)) => {
            control.reset();
            Err(error)
        }
        (outcome, None) => outcome.map_err(|error| raised(py, &error)),
    }
}
