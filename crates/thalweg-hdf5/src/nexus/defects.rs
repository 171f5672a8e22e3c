//! Defects of a file's event data, and how the reader handled each.

use std::fmt;

/// The kind of a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// `event_index` has one entry fewer than there are pulses in `event_time_zero`.
    OneShort,
    /// `event_index` lacks two or more entries.
    Truncated,
    /// `event_index` has more entries than `event_time_zero`.
    Longer,
    /// The index repeats its last entry while events go on.
    Repeated,
    /// An entry of the index is less than an earlier one.
    Decreasing,
    /// The index points beyond the last event.
    Beyond,
    /// There are events before the first pulse.
    BeforeFirst,
    /// There is no index.
    NoIndex,
    /// There are no times of pulses.
    NoTimes,
    /// The time of a pulse is not a valid time.
    NoTime,
    /// Pulses are not in the order of their times.
    TimesDecrease,
    /// `event_id` and `event_time_offset` differ in length.
    Lengths,
    /// A unit is unknown or missing.
    Unit,
    /// The time that pulse times count from is not given.
    Epoch,
    /// A dataset does not hold what its name states.
    Unusable,
    /// `cue_index` and `cue_timestamp_zero` contradict themselves or the events.
    Cues,
}

impl Defect {
    /// The name of the defect in JSON.
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

/// A defect of a group, and where it first occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFinding {
    /// The group's path.
    pub group: String,
    /// The kind of the defect.
    pub defect: Defect,
    /// The first entry with the defect, if the defect is about entries.
    pub at: Option<u64>,
    /// The number of entries with the defect.
    pub count: u64,
    /// What was found there.
    pub found: String,
    /// What was expected there.
    pub expected: String,
    /// How the reader handled it.
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

/// A finding without its group, which the caller fills in.
pub(super) fn finding(
    defect: Defect,
    at: Option<u64>,
    found: impl Into<String>,
    expected: impl Into<String>,
    done: impl Into<String>,
) -> EventFinding {
    let found = found.into();
    let expected = expected.into();
    let done = done.into();
    EventFinding { group: String::new(), defect, at, count: 1, found, expected, done }
}

impl EventFinding {
    /// This finding with a count of zero entries.
    pub(super) fn none(self) -> Self {
        Self { count: 0, ..self }
    }
}
