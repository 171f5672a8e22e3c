//! Units of time and moments, and their forms in files and user input.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use thalweg_io::{Error, Result};

use super::number::ExactNumber;

/// An unknown time: numpy's NaT.
pub const NO_TIME: i64 = i64::MIN;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Unit {
    /// The names of units, for messages.
    pub(super) const NAMES: &'static str = "d, h, min, s, ms, us or ns";

    /// Parses an attribute `units`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "d" | "day" | "days" => Self::Day,
            "h" | "hr" | "hour" | "hours" => Self::Hour,
            "min" | "minute" | "minutes" => Self::Minute,
            "s" | "sec" | "second" | "seconds" => Self::Second,
            "ms" | "msec" | "millisecond" | "milliseconds" => Self::Millisecond,
            // With a micro sign, or with the Greek letter mu.
            "us" | "usec" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" => {
                Self::Microsecond
            }
            "ns" | "nsec" | "nanosecond" | "nanoseconds" => Self::Nanosecond,
            _ => return None,
        })
    }

    /// Nanoseconds per unit.
    pub fn ns(self) -> i64 {
        match self {
            Self::Day => 86_400_000_000_000,
            Self::Hour => 3_600_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Second => 1_000_000_000,
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1000,
            Self::Nanosecond => 1,
        }
    }

    /// The time `count` units after `epoch`, in nanoseconds; [`NO_TIME`] if `count` is not a number
    /// or the time is out of range.
    pub(super) fn after(self, epoch: i64, count: ExactNumber) -> i64 {
        let ns = match count {
            ExactNumber::Unsigned(count) => i128::from(count) * i128::from(self.ns()),
            ExactNumber::Signed(count) => i128::from(count) * i128::from(self.ns()),
            // Rounds ties to even, as numpy does.
            ExactNumber::Float(count) if count.is_finite() => {
                (count * self.ns() as f64).round_ties_even() as i128
            }
            ExactNumber::Float(_) => return NO_TIME,
        };
        ns.checked_add(epoch.into()).and_then(|ns| i64::try_from(ns).ok()).unwrap_or(NO_TIME)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Day => "d",
            Self::Hour => "h",
            Self::Minute => "min",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        })
    }
}

/// Parses an ISO 8601 time to nanoseconds since 1970. A time without a zone is UTC.
pub(crate) fn parse_iso(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches('\0').trim();
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    i64::try_from(at.as_nanosecond()).ok()
}

/// Formats nanoseconds since 1970 as ISO 8601, in UTC.
pub fn iso(ns: i64) -> String {
    Timestamp::from_nanosecond(ns.into()).unwrap_or_default().to_string()
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// Nanoseconds since 1970.
    At(i64),
    /// Nanoseconds since the first pulse of the file. [`i64::MIN`] and [`i64::MAX`] are before and
    /// after all times.
    Into(i64),
}

impl Moment {
    /// Parses seconds since the first pulse, or an ISO 8601 time.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(seconds) = text.trim().parse::<f64>()
            && seconds.is_finite()
        {
            // What is too large for a time becomes the nearest end: such casts saturate.
            let ns = (seconds * Unit::Second.ns() as f64).round_ties_even();
            return Ok(Self::Into(ns as i64));
        }
        parse_iso(text).map(Self::At).ok_or_else(|| {
            let expected = "seconds since the first pulse, or a time such as 2026-03-01T12:30:00Z";
            Error::Usage(format!("{text:?} is no time: expected {expected}").into())
        })
    }

    pub(super) fn ns(self, start: i64) -> i64 {
        match self {
            Self::At(ns) | Self::Into(ns @ (i64::MIN | i64::MAX)) => ns,
            Self::Into(ns) => start.saturating_add(ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_many_names() {
        for (names, unit) in [
            (["d", "day", "Days"], Unit::Day),
            (["h", "hour", "hours"], Unit::Hour),
            (["min", "minute", "minutes"], Unit::Minute),
            (["s", "second", " Seconds"], Unit::Second),
            (["us", "µs", "microsecond"], Unit::Microsecond),
            (["ns", "nanoseconds", "NS"], Unit::Nanosecond),
        ] {
            assert_eq!(names.map(Unit::parse), [Some(unit); 3]);
        }
        assert_eq!(Unit::parse("metre"), None);
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(Unit::Second.after(5, ExactNumber::Float(1.5)), 1_500_000_005);
        assert_eq!(
            Unit::Nanosecond.after(0, ExactNumber::Unsigned(1_600_000_000_123_456_789)),
            1_600_000_000_123_456_789
        );
        assert_eq!(Unit::Second.after(0, ExactNumber::Unsigned(u64::MAX)), NO_TIME);
        assert_eq!(
            Unit::Nanosecond.after(-5, ExactNumber::Unsigned(i64::MAX as u64 + 5)),
            i64::MAX
        );
        assert_eq!(Unit::Second.after(0, ExactNumber::Float(f64::NAN)), NO_TIME);
        assert_eq!(Unit::Second.after(7, ExactNumber::Float(1e300)), NO_TIME);
    }

    #[test]
    fn iso_times_have_zones_or_are_utc() {
        assert_eq!(parse_iso("1970-01-01T00:00:01"), Some(1_000_000_000));
        assert_eq!(parse_iso("1970-01-01T00:00:00.000000007Z\0"), Some(7));
        assert_eq!(parse_iso("2012-03-14T10:57:03.5-04:00"), Some(1_331_737_023_500_000_000));
        assert_eq!(iso(1_331_737_023_500_000_000), "2012-03-14T14:57:03.5Z");
        assert_eq!(parse_iso("yesterday"), None);
        assert_eq!(Moment::parse("2.5").ok(), Some(Moment::Into(2_500_000_000)));
        assert_eq!(Moment::parse("1970-01-01T00:00:01Z").ok(), Some(Moment::At(1_000_000_000)));
        assert!(Moment::parse("nan").is_err() && Moment::parse("soon").is_err());
    }

    #[test]
    fn moments_that_are_too_far_away_are_before_or_after_all_times() {
        let ns = |text: &str, start| Moment::parse(text).map(|moment| moment.ns(start)).ok();
        for start in [0, 1_700_000_000_000_000_000, -5] {
            for far in ["1e10", "1e19", "1e300"] {
                assert_eq!(ns(far, start), Some(i64::MAX), "{far} after {start}");
                assert_eq!(ns(&format!("-{far}"), start), Some(i64::MIN), "{far} before {start}");
            }
        }
        assert_eq!(ns("9e9", 1_700_000_000_000_000_000), Some(i64::MAX));
        assert_eq!(ns("7.5e9", 1_700_000_000_000_000_000), Some(9_200_000_000_000_000_000));
    }
}
