//! Defects of a file's event data, and how the reader handled each.

use std::fmt;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// `event_index` has one entry fewer than there are pulses in `event_time_zero`.
    OneShort,
    /// `event_index` has fewer entries than that.
    Truncated,
    /// `event_index` has more entries than `event_time_zero`.
    Longer,
    /// The index stands still while events go on.
    Repeated,
    /// The index goes back.
    Decreasing,
    /// The index points behind the last event.
    Beyond,
    /// There are events before the first pulse.
    BeforeFirst,
    /// There is no index.
    NoIndex,
    /// There are no times of pulses.
    NoTimes,
    /// A pulse's time is no time.
    NoTime,
    /// Pulses are not in the order of their times.
    TimesDecrease,
    /// `event_id` and `event_time_offset` differ in length.
    Lengths,
    /// A unit that is not known, or none.
    Unit,
    /// What pulse times count from is not said.
    Epoch,
    /// A dataset that is not what its name says.
    Unusable,
    /// `cue_index` and `cue_timestamp_zero` contradict themselves or the events.
    Cues,
}

impl Defect {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneShort => "index_one_short",
            Self::Truncated => "index_truncated",
            Self::Longer => "index_longer",
            Self::Repeated => "index_repeated",
            Self::Decreasing => "index_decreasing",
            Self::Beyond => "index_beyond",
            Self::BeforeFirst => "events_before_first_pulse",
            Self::NoIndex => "no_index",
            Self::NoTimes => "no_times",
            Self::NoTime => "no_time",
            Self::TimesDecrease => "times_decreasing",
            Self::Lengths => "lengths_differ",
            Self::Unit => "unit",
            Self::Epoch => "epoch",
            Self::Unusable => "unusable",
            Self::Cues => "cues",
        }
    }
}

/// A defect of a group, where it shows first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFinding {
    /// The group's path.
    pub group: String,
    /// What is wrong.
    pub defect: Defect,
    /// The entry where it shows first, if it is about entries.
    pub at: Option<u64>,
    /// How many entries it is about.
    pub count: u64,
    /// What stands there.
    pub found: String,
    /// What should stand there.
    pub expected: String,
    /// What was done about it.
    pub done: String,
}

impl fmt::Display for EventFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, defect, at, found, expected, done, .. } = self;
        write!(f, "{group}: {}", defect.name())?;
        if let Some(at) = at {
            write!(f, " at entry {at}")?;
        }
        write!(f, ": found {found}, expected {expected}; {done}")
    }
}

/// A finding before its group is known.
pub(super) fn finding(
    defect: Defect,
    at: Option<u64>,
    found: impl Into<String>,
    expected: impl Into<String>,
    done: impl Into<String>,
) -> EventFinding {
    let (found, expected, done) = (found.into(), expected.into(), done.into());
    EventFinding { group: String::new(), defect, at, count: 1, found, expected, done }
}

impl EventFinding {
    /// This finding with a count of zero entries.
    pub(super) fn none(self) -> Self {
        Self { count: 0, ..self }
    }
}
