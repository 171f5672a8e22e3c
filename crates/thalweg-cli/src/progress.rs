//! A progress bar on a terminal; nothing in a pipe.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use thalweg::control::Control;
use thalweg::pool::Background;

/// Shorter work shows no bar.
const DELAY: Duration = Duration::from_millis(700);
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(150);

/// A progress bar for the work under a [`Control`]. It disappears when this is dropped.
pub(crate) struct FetchProgress {
    stop: Option<Sender<()>>,
    thread: Option<Background<()>>,
}

impl FetchProgress {
    /// Shows how many of `total` bytes the work under `control` has fetched.
    pub(crate) fn watch(control: &Control, total: u64) -> Self {
        if !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Self { stop: None, thread: None };
        }
        let control = control.clone();
        let (stop, stopped) = channel();
        let thread = Background::start("thalweg-progress", &"the terminal".into(), move || {
            if stopped.recv_timeout(DELAY).is_ok() {
                return;
            }
            let bar = bar(total);
            loop {
                bar.set_position(control.fetched());
                match stopped.recv_timeout(TICK) {
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    _ => break,
                }
            }
            bar.finish_and_clear();
        });
        // Without a thread there is no bar.
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for FetchProgress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.wait();
        }
    }
}

/// A progress bar that counts bytes.
pub(crate) fn bar(total: u64) -> ProgressBar {
    let style = "{bar:32} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} left";
    let style =
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}
