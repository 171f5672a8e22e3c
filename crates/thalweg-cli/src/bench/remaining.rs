//! The remaining time of a suite: estimated at first, then from its own trials.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use thalweg::text::Shown;
use thalweg_gauge::comparison::ComparisonProgress;
use thalweg_gauge::suite::TimeEstimate;

/// One comparison's share of the work.
#[derive(Debug, Clone, Default)]
struct JobWork {
    /// Estimated seconds of a trial.
    guess_s: f64,
    /// The largest number of remaining trials.
    trials: usize,
    /// Estimated seconds of a probe that has not started.
    probe_s: f64,
    /// The number of timed trials, and their seconds with preparation.
    timed: usize,
    timed_s: f64,
}

/// The remaining work of a whole suite.
#[derive(Debug, Clone, Default)]
pub(super) struct RemainingWork(Vec<JobWork>);

impl RemainingWork {
    pub(super) fn new(guesses: impl Iterator<Item = TimeEstimate>) -> Self {
        Self(
            guesses
                .map(|g| JobWork {
                    guess_s: g.trial_s,
                    trials: g.trials,
                    probe_s: g.probe_s,
                    ..JobWork::default()
                })
                .collect(),
        )
    }

    fn set_trials(&mut self, job: usize, trials: usize) {
        if let Some(work) = self.0.get_mut(job) {
            work.trials = trials;
        }
    }

    fn set_probed(&mut self, job: usize) {
        if let Some(work) = self.0.get_mut(job) {
            work.probe_s = 0.0;
        }
    }

    fn took(&mut self, job: usize, time: Duration) {
        if let Some(work) = self.0.get_mut(job) {
            work.timed += 1;
            work.timed_s += time.as_secs_f64();
        }
    }

    /// The largest number of seconds that job `from` and the later ones still take. Estimates are
    /// scaled by the error of the estimates of the comparisons that have started.
    pub(super) fn seconds(&self, from: usize) -> f64 {
        let timed_s: f64 = self.0.iter().map(|s| s.timed_s).sum();
        let guessed_s: f64 = self.0.iter().map(|s| s.guess_s * s.timed as f64).sum();
        let off = if timed_s > 0.0 && guessed_s > 0.0 { timed_s / guessed_s } else { 1.0 };
        let each =
            |s: &JobWork| if s.timed > 0 { s.timed_s / s.timed as f64 } else { s.guess_s * off };
        self.0.iter().skip(from).map(|s| s.trials as f64 * each(s) + s.probe_s).sum()
    }

    fn trials(&self) -> usize {
        self.0.iter().map(|s| s.trials).sum()
    }
}

/// Shows the remaining time on a terminal; silent in a pipe.
pub(super) struct Display {
    bar: ProgressBar,
    total: usize,
    pub(super) remaining: RemainingWork,
    /// When the running trial began.
    began: Option<Instant>,
}

impl Display {
    pub(super) fn new(remaining: RemainingWork) -> Self {
        let total = remaining.trials();
        let bar = if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            let style = ProgressStyle::with_template(
                "{bar:24} {pos}/{len} trials, {prefix} left; {wide_msg}",
            );
            let bar = ProgressBar::new(total as u64);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self { bar, total, remaining, began: None }
    }

    /// Shows the progress of comparison number `job`, called `name`.
    pub(super) fn show(&mut self, job: usize, name: &str, progress: &ComparisonProgress<'_>) {
        match progress {
            ComparisonProgress::Starting { arm, done, total, .. } => {
                if let Some(began) = self.began.replace(Instant::now()) {
                    self.remaining.took(job, began.elapsed());
                }
                self.remaining.set_trials(job, total.saturating_sub(*done));
                self.bar.set_length(self.total as u64);
                self.bar.set_position(self.total.saturating_sub(self.remaining.trials()) as u64);
                self.bar.set_prefix(in_words(self.remaining.seconds(0)));
                self.bar.set_message(Shown(format!("{name}: {arm}")).to_string());
            }
            ComparisonProgress::Probing { done, total } => {
                // The sweep of the probe is not a trial.
                self.began = None;
                self.remaining.set_probed(job);
                self.bar.set_message(format!("{name}: probing the device {done}/{total}"));
            }
            _ => {}
        }
    }

    /// Marks comparison number `job` as finished, in this run or in an earlier one.
    pub(super) fn over(&mut self, job: usize) {
        if let Some(began) = self.began.take() {
            self.remaining.took(job, began.elapsed());
        }
        self.remaining.set_trials(job, 0);
        self.remaining.set_probed(job);
        self.bar.set_position(self.total.saturating_sub(self.remaining.trials()) as u64);
    }

    /// Prints without disturbing the bar.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A duration with one unit.
pub(super) fn in_words(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_jobs() -> RemainingWork {
        let guess = |trial_s| TimeEstimate { trial_s, trials: 10, files_s: 0.0, probe_s: 0.0 };
        RemainingWork::new([guess(1.0), guess(2.0)].into_iter())
    }

    #[test]
    fn measured_figures_replace_guesses() {
        let mut l = two_jobs();
        assert!((l.seconds(0) - 30.0).abs() < 1e-9);
        l.took(0, Duration::from_secs(3));
        l.set_trials(0, 9);
        // Nine trials of three seconds; the other trials are estimated to take three times as long.
        assert!((l.seconds(0) - (27.0 + 60.0)).abs() < 1e-9);
        assert!((l.seconds(1) - 60.0).abs() < 1e-9);
        l.set_trials(0, 0);
        l.took(1, Duration::from_secs(1));
        l.set_trials(1, 9);
        assert!((l.seconds(0) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn times_are_printed_in_units_for_people() {
        assert_eq!(
            [in_words(61.4), in_words(600.0), in_words(7200.0)],
            ["61 s", "10 min", "2.0 h"]
        );
    }
}
