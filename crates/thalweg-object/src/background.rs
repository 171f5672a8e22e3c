//! The runtime of uploads, whose parts are sent while the caller goes on.

use std::io;
use std::sync::{Arc, OnceLock};

use thalweg_io::{Error, Result};
use tokio::runtime::{Builder, Runtime};

/// The most threads that send. Each can sign and send about half a gigabyte per second.
const MOST_THREADS: usize = 4;

/// The threads that send. They start with the first upload, whose object is called `name`.
///
/// # Errors
/// [`Error::Io`] if the system starts no thread.
pub(crate) fn runtime(name: &Arc<str>) -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("thalweg-http").enable_all().build().ok()
    };
    RUNTIME.get_or_init(start).as_ref().ok_or_else(|| {
        let full = io::Error::other("the system starts no more threads");
        Error::io(name, "starting threads to send", full)
    })
}
