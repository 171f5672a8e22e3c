//! Runs work without the lock of the interpreter, and lets Ctrl-C end it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::{Error, Result, pool};

use crate::errors::raised;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a message of work [within](Control::within) `part`; `None` if no more come. If a
/// signal handler raises meanwhile, as that of Ctrl-C does, the work is cancelled, and the
/// handler's exception comes with the message.
pub(crate) fn watch<T>(part: &Control, messages: &Receiver<T>) -> (Option<T>, Option<PyErr>) {
    let mut raised = None;
    loop {
        match messages.recv_timeout(LOOK) {
            Ok(message) => return (Some(message), raised),
            Err(RecvTimeoutError::Disconnected) => return (None, raised),
            Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
            Err(RecvTimeoutError::Timeout) => {
                // Without an interpreter, no handler runs.
                if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
                    part.cancel();
                    raised = Some(error);
                }
            }
        }
    }
}

/// The result of a job. If a signal handler raises, as that of Ctrl-C does, the job is cancelled,
/// whatever handles it has, and the handler's exception is the result. Other work goes on.
pub(crate) fn run<T: Send>(py: Python<'_>, job: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let part = Control::new();
    let outcome = py.detach(|| {
        pool::scope(|threads| {
            let (over, is_over) = sync_channel(1);
            let work = part.clone();
            let job = move || {
                let outcome = work.within(job);
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
            let (_, raised_here) = watch(&part, &is_over);
            (worker.join(), raised_here)
        })
    });
    match outcome {
        (_, Some(error)) => Err(error),
        (outcome, None) => outcome.map_err(|error| raised(py, &error)),
    }
}
