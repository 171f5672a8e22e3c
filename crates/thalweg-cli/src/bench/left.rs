//! How long a suite still takes: guessed at first, then from what its own trials took.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use thalweg_gauge::comparison::ComparisonProgress;
use thalweg_gauge::suite::TimeEstimate;

/// One comparison's share of the work.
#[derive(Debug, Clone, Default)]
struct Share {
    /// Guessed seconds a trial.
    guess_s: f64,
    /// Trials that are left, at most.
    left: usize,
    /// Guessed seconds of a probe that has not begun.
    probe_s: f64,
    /// Trials that were timed, and their seconds with all that is around them.
    timed: usize,
    timed_s: f64,
}

/// The work of a whole suite.
#[derive(Debug, Clone, Default)]
pub(super) struct Left(Vec<Share>);

impl Left {
    pub(super) fn new(guesses: impl Iterator<Item = TimeEstimate>) -> Self {
        Self(
            guesses
                .map(|g| Share {
                    guess_s: g.trial_s,
                    left: g.trials,
                    probe_s: g.probe_s,
                    ..Share::default()
                })
                .collect(),
        )
    }

    fn is_left(&mut self, job: usize, trials: usize) {
        if let Some(share) = self.0.get_mut(job) {
            share.left = trials;
        }
    }

    fn is_probed(&mut self, job: usize) {
        if let Some(share) = self.0.get_mut(job) {
            share.probe_s = 0.0;
        }
    }

    fn took(&mut self, job: usize, time: Duration) {
        if let Some(share) = self.0.get_mut(job) {
            share.timed += 1;
            share.timed_s += time.as_secs_f64();
        }
    }

    /// Seconds that job `from` and those behind it still take, at most. Guesses are corrected by
    /// how far those of the comparisons that were begun are off.
    pub(super) fn seconds(&self, from: usize) -> f64 {
        let timed_s: f64 = self.0.iter().map(|s| s.timed_s).sum();
        let guessed_s: f64 = self.0.iter().map(|s| s.guess_s * s.timed as f64).sum();
        let off = if timed_s > 0.0 && guessed_s > 0.0 { timed_s / guessed_s } else { 1.0 };
        let each =
            |s: &Share| if s.timed > 0 { s.timed_s / s.timed as f64 } else { s.guess_s * off };
        self.0.iter().skip(from).map(|s| s.left as f64 * each(s) + s.probe_s).sum()
    }

    fn trials(&self) -> usize {
        self.0.iter().map(|s| s.left).sum()
    }
}

/// Shows it on a terminal; silent in a pipe.
pub(super) struct Display {
    bar: ProgressBar,
    total: usize,
    pub(super) left: Left,
    /// When the running trial began.
    began: Option<Instant>,
}

impl Display {
    pub(super) fn new(left: Left) -> Self {
        let total = left.trials();
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
        Self { bar, total, left, began: None }
    }

    /// What comparison number `job`, called `name`, says of itself.
    pub(super) fn show(&mut self, job: usize, name: &str, progress: &ComparisonProgress<'_>) {
        match progress {
            ComparisonProgress::Starting { arm, done, total, .. } => {
                if let Some(began) = self.began.replace(Instant::now()) {
                    self.left.took(job, began.elapsed());
                }
                self.left.is_left(job, total.saturating_sub(*done));
                self.bar.set_length(self.total as u64);
                self.bar.set_position(self.total.saturating_sub(self.left.trials()) as u64);
                self.bar.set_prefix(in_words(self.left.seconds(0)));
                self.bar.set_message(format!("{name}: {arm}"));
            }
            ComparisonProgress::Probing { done, total } => {
                // The sweep is no trial.
                self.began = None;
                self.left.is_probed(job);
                self.bar.set_message(format!("{name}: probing the device {done}/{total}"));
            }
            _ => {}
        }
    }

    /// Comparison number `job` is over, or was over before this run.
    pub(super) fn over(&mut self, job: usize) {
        if let Some(began) = self.began.take() {
            self.left.took(job, began.elapsed());
        }
        self.left.is_left(job, 0);
        self.left.is_probed(job);
        self.bar.set_position(self.total.saturating_sub(self.left.trials()) as u64);
    }

    /// Prints without disturbing the bar.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Rounded as people say it.
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

    fn left() -> Left {
        let guess = |trial_s| TimeEstimate { trial_s, trials: 10, files_s: 0.0, probe_s: 0.0 };
        Left::new([guess(1.0), guess(2.0)].into_iter())
    }

    #[test]
    fn guesses_give_way_to_what_was_measured() {
        let mut l = left();
        assert!((l.seconds(0) - 30.0).abs() < 1e-9);
        l.took(0, Duration::from_secs(3));
        l.is_left(0, 9);
        // Nine of three seconds; the others are guessed to take three times as long as was thought.
        assert!((l.seconds(0) - (27.0 + 60.0)).abs() < 1e-9);
        assert!((l.seconds(1) - 60.0).abs() < 1e-9);
        l.is_left(0, 0);
        l.took(1, Duration::from_secs(1));
        l.is_left(1, 9);
        assert!((l.seconds(0) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn times_are_said_as_people_do() {
        assert_eq!(
            [in_words(61.4), in_words(600.0), in_words(7200.0)],
            ["61 s", "10 min", "2.0 h"]
        );
    }
}
