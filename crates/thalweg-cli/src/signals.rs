//! Signals that end a run: Ctrl-C (SIGINT), SIGTERM and SIGHUP. A verb that gets one removes what
//! it has not finished, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use thalweg::control::Control;
use thalweg::pool::Background;

use crate::common::complain;
use crate::timing::process_cpu;

/// Shells add the number of the signal to this.
const EXIT_CODE: u8 = 128;

/// The last signal that came.
static SIGNAL: AtomicU8 = AtomicU8::new(SIGINT as u8);

/// The exit code of a run that a signal has ended.
pub(crate) fn exit_code() -> u8 {
    EXIT_CODE + SIGNAL.load(Ordering::Relaxed)
}

/// A verb that a signal cancels has this long to end if it computes. Then the process ends: a
/// library that it calls may be in an endless loop over a malformed file. The next run removes what
/// is left over.
const PATIENCE: Duration = Duration::from_secs(5);

/// The processor time that an endless loop takes in [`PATIENCE`] even on a busy machine.
const COMPUTED: Duration = Duration::from_secs(2);

/// A verb that does not compute has this long: a busy disk takes seconds to remove temporary files.
const PATIENCE_WITH_DISKS: Duration = Duration::from_secs(25);

/// What a process says that ends because the verb did not.
const UNHEEDED: &str = "interrupted; the work did not stop in time, so temporary files may be \
                        left, which the next run that writes there removes";

/// A handle that a signal cancels. A second signal ends the process at once; it also ends when the
/// verb does not stop in time.
pub(crate) fn cancel_on_signal() -> Control {
    // An upload heeds it, too.
    let cancel = Control::of_process();
    cancel.warn_with(|warning| complain(&warning));
    let handle = cancel.clone();
    on_signal(true, move |_| {
        let again = handle.is_cancelled();
        handle.cancel();
        again
    });
    cancel
}

/// Calls `stop` at a signal, which may take its time, with whether it was called before. A second
/// Ctrl-C ends the process at once.
#[cfg(all(feature = "mount", target_os = "linux"))]
pub(crate) fn stop_on_signal(mut stop: impl FnMut(bool) + Send + 'static) {
    let (mut was_called, mut interrupts) = (false, 0);
    on_signal(false, move |signal| {
        let again = std::mem::replace(&mut was_called, true);
        interrupts += u32::from(signal == SIGINT);
        let is_over = interrupts > 1;
        if !is_over {
            stop(again);
        }
        is_over
    });
}

/// A flag that a signal raises; a second signal ends the process at once.
pub(crate) fn flag_on_signal() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    // No patience: a measurement still cleans up and writes its report.
    on_signal(false, move |_| raised.swap(true, Ordering::Relaxed));
    flag
}

/// Whether the verb waits for input that cannot be cancelled.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

/// Does something that waits for a pipe or a terminal. Meanwhile a signal ends the process at once:
/// nothing has been written yet.
pub(crate) fn end_at_once<T>(wait: impl FnOnce() -> T) -> T {
    IS_WAITING.store(true, Ordering::Relaxed);
    let done = wait();
    IS_WAITING.store(false, Ordering::Relaxed);
    done
}

/// Has a write beyond the limit of file sizes (`ulimit -f`) fail, as one on a full disk does. By
/// default, a signal ends the process there, before it can say why and remove what is unfinished.
/// The handler does nothing, and programs that this one starts do not inherit it.
pub(crate) fn outlive_large_writes() {
    let nothing = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, nothing) {
        complain(&format!("a write beyond `ulimit -f` will end this process: {error}"));
    }
}

/// Calls `stop` with each signal. `stop` returns whether the process is to end now. It also ends
/// when the verb does not stop in time, if that `is_timed`.
fn on_signal(is_timed: bool, mut stop: impl FnMut(i32) -> bool + Send + 'static) {
    let mut ending = vec![SIGINT, SIGTERM];
    // nohup(1) has a command ignore SIGHUP, which must stay so.
    if !is_ignored(SIGHUP) {
        ending.push(SIGHUP);
    }
    let failed = |e| thalweg::Error::io(&"signals".into(), "waiting for", e);
    let started = Signals::new(ending).map_err(failed).and_then(|mut signals| {
        Background::start("signals", &"signals".into(), move || {
            loop {
                let Some(signal) = signals.wait().next() else { continue };
                SIGNAL.store(signal as u8, Ordering::Relaxed);
                if stop(signal) || IS_WAITING.load(Ordering::Relaxed) {
                    std::process::exit(exit_code().into());
                }
                if is_timed {
                    if !comes_another(&mut signals) {
                        complain(&UNHEEDED);
                    }
                    std::process::exit(exit_code().into());
                }
            }
        })
    });
    if let Err(error) = started {
        complain(&format!("Ctrl-C will not stop cleanly: {error}"));
    }
}

/// Waits until another signal comes, or until the verb has had its time to stop. Returns whether
/// one came.
fn comes_another(signals: &mut Signals) -> bool {
    let (started, before) = (Instant::now(), process_cpu());
    let goes_on = || {
        let elapsed = started.elapsed();
        let computes = || process_cpu().saturating_sub(before) >= COMPUTED;
        elapsed < PATIENCE || elapsed < PATIENCE_WITH_DISKS && !computes()
    };
    while goes_on() {
        if signals.pending().next().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Whether the process that started this one has it ignore a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
