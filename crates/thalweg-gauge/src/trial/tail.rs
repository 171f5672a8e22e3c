//! Drains a child's pipe in the background and keeps its end.

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_io::pool::Background;

use crate::Result;

/// The last bytes that a child writes to a pipe.
pub(super) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Tail {
    /// Reads `pipe` until it closes, and keeps the last `most` bytes. `name` is the name of the
    /// child.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if the system cannot start a thread.
    pub(super) fn of(
        name: &Arc<str>,
        pipe: Option<impl Read + Send + 'static>,
        most: usize,
    ) -> Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (tell, ended) = channel();
        let keep = Arc::clone(&kept);
        let read = move || {
            let mut buffer = [0; 16 << 10];
            let mut pipe = pipe;
            while let Some(n) =
                pipe.as_mut().and_then(|p| p.read(&mut buffer).ok()).filter(|&n| n > 0)
            {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
                // The buffer is cut only when it reaches twice the length, so that each byte is
                // moved at most once.
                if kept.len() > 2 * most {
                    let cut = kept.len() - most;
                    kept.drain(..cut);
                }
            }
            let _ = tell.send(());
        };
        // A descendant of the child may hold the pipe open, so nothing waits for the thread.
        drop(Background::start("thalweg-tail", name, read)?);
        Ok(Self { kept, ended })
    }

    /// The kept bytes, once the pipe has closed, or after `patience` (a descendant may hold the
    /// pipe open).
    pub(super) fn finish(self, patience: Duration) -> String {
        let _ = self.ended.recv_timeout(patience);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}
