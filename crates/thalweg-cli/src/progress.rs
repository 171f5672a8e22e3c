//! A progress bar on a terminal; nothing in a pipe.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use thalweg::control::Control;
use thalweg::pool::Background;
use thalweg::store::Counter;
use thalweg_gauge::units::bandwidth;

/// Shorter work shows no bar.
const DELAY: Duration = Duration::from_millis(700);
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(150);

/// The bar that is drawn.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints something while no bar is drawn.
pub(crate) fn without_bar<T>(print: impl FnOnce() -> T) -> T {
    let drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match drawn {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// A progress bar for the work under a [`Control`]. It disappears when this is dropped.
pub(crate) struct FetchProgress {
    stop: Option<Sender<()>>,
    thread: Option<Background<()>>,
}

impl FetchProgress {
    /// Shows how many of `total` bytes the work under `control` fetches from now on. If nobody
    /// knows how many there will be, `total` is 0.
    pub(crate) fn watch(control: &Control, total: u64) -> Self {
        let control = control.clone();
        Self::of(move || control.fetched(), total)
    }

    /// Shows how many bytes were requested of the store that `counter` counts. Nobody knows how
    /// many there will be before all metadata are found.
    pub(crate) fn count(counter: &Counter) -> Self {
        let counter = counter.clone();
        Self::of(move || counter.asked().bytes, 0)
    }

    fn of(fetched: impl Fn() -> u64 + Send + 'static, total: u64) -> Self {
        if !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Self { stop: None, thread: None };
        }
        let before = fetched();
        let (stop, stopped) = channel();
        let thread = Background::start("thalweg-progress", &"the terminal".into(), move || {
            if stopped.recv_timeout(DELAY).is_ok() {
                return;
            }
            let bar = bar(total).with_elapsed(DELAY);
            let set_drawn = |bar| *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = bar;
            set_drawn(Some(bar.clone()));
            loop {
                bar.set_position(fetched().saturating_sub(before));
                match stopped.recv_timeout(TICK) {
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    _ => break,
                }
            }
            set_drawn(None);
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

/// A progress bar that counts bytes, of which there are `total`. If that is 0, nobody knows how
/// many there are.
///
/// The rate is the mean since the start. That of the last moment would be far from it when work
/// begins, and where bytes come in large pieces.
pub(crate) fn bar(total: u64) -> ProgressBar {
    let style = match total {
        0 => "{decimal_bytes} {rate}",
        _ => "{bar:32} {decimal_bytes}/{decimal_total_bytes} {rate}{left}",
    };
    let style = ProgressStyle::with_template(style)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&rate(state.pos(), state.elapsed()));
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let left = left_s(state.pos(), state.len().unwrap_or(0), state.elapsed());
            let _ = left.map_or(Ok(()), |left| write!(out, ", {:#} left", HumanDuration(left)));
        });
    ProgressBar::new(total).with_style(style)
}

/// The mean rate in words; nothing before there is one.
fn rate(done: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64();
    if rate.is_finite() { bandwidth(rate) } else { String::new() }
}

/// The time that is left after `done` of `total` bytes took `elapsed`; `None` while there is no
/// telling.
fn left_s(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let share = total.saturating_sub(done) as f64 / done as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * share).ok().filter(|_| done > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_done() {
        let second = Duration::from_secs(1);
        for (done, total, left) in [
            (0, 100, None),
            (1, 100, Some(99)),
            (50, 100, Some(1)),
            (100, 100, Some(0)),
            // A file may grow while it is read.
            (120, 100, Some(0)),
        ] {
            assert_eq!(left_s(done, total, second), left.map(Duration::from_secs), "{done}");
        }
    }

    /// Whoever reports the first bytes right after the start has not read terabytes a second.
    #[test]
    fn the_rate_is_the_mean_since_the_start() {
        let rate = |done, millis| rate(done, Duration::from_millis(millis));
        assert_eq!(rate(4_000_000_000, 2000), "2.00 GB/s");
        assert_eq!(rate(5_000_000, 0), "");
    }
}
