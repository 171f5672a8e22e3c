//! Values of settings, and checks of the known settings.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::toml_table::expected;
use crate::cache_level::CacheLevel;
use crate::units::parse_duration;

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// Any other text.
    Text(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(i) => i.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Flag(b) => b.fmt(f),
            Self::Text(s) => f.write_str(s),
        }
    }
}

impl FromStr for SettingValue {
    type Err = std::convert::Infallible;

    /// Parses a whole number, true or false; any other text stays text.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match (s.parse(), s.parse()) {
            (Ok(i), _) => Self::Integer(i),
            (_, Ok(b)) => Self::Flag(b),
            _ => Self::Text(s.to_owned()),
        })
    }
}

impl SettingValue {
    pub(super) fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let wrong = || expected("a string, a number, true or false", value);
        match value {
            DeValue::String(s) => Ok(Self::Text(s.to_string())),
            DeValue::Integer(i) => {
                i64::from_str_radix(i.as_str(), i.radix()).map(Self::Integer).map_err(|_| wrong())
            }
            DeValue::Float(x) => x
                .as_str()
                .parse()
                .ok()
                .filter(|x: &f64| x.is_finite())
                .map(Self::Float)
                .ok_or_else(wrong),
            DeValue::Boolean(b) => Ok(Self::Flag(*b)),
            _ => Err(wrong()),
        }
    }
}

/// Settings that the harness itself uses, whether or not a command mentions them.
pub(super) const KNOWN: [&str; 6] = ["threads", "cpus", "level", "place", "file", "timeout"];

/// The most threads that are accepted, so that a typing mistake does not start a million.
const MOST_THREADS: i64 = 1024;

/// Reads a number of threads. "all" stands for `all`, the number of cores that this process may
/// use.
pub(super) fn threads(value: &SettingValue, all: usize) -> Result<usize, String> {
    match value {
        SettingValue::Integer(n @ 1..=MOST_THREADS) => Ok(usize::try_from(*n).unwrap_or(1)),
        SettingValue::Text(word) if word == "all" => Ok(all),
        other => Err(format!(
            "threads: {other} is neither \"all\" nor a number from 1 to {MOST_THREADS}"
        )),
    }
}

/// The most CPUs that Linux can be built for.
const MOST_CPUS: usize = 8192;

/// Reads a list of CPUs, as in "0-3,8".
pub(super) fn cpus(value: &SettingValue) -> Result<Vec<usize>, String> {
    let text = value.to_string();
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last && last < MOST_CPUS => cpus.extend(first..=last),
            _ => return Err(format!("cpus: {text:?} is not a list of CPUs, as in \"0-3,8\"")),
        }
    }
    Ok(cpus)
}

/// Reads a cache level.
pub(super) fn level(value: &SettingValue) -> Result<CacheLevel, String> {
    value.to_string().parse().map_err(|e: crate::Error| format!("level: {e}"))
}

/// Reads the time limit of a trial.
pub(super) fn timeout(value: &SettingValue) -> Result<Duration, String> {
    match value {
        SettingValue::Text(text) => parse_duration(text).map_err(|e| format!("timeout: {e}")),
        other => Err(format!("timeout: {other} has no unit, expected a duration as in \"90 s\"")),
    }
}

/// Checks the value of a known setting, as far as the text alone can tell.
pub(super) fn check(name: &str, value: &SettingValue) -> Result<(), String> {
    match name {
        "threads" => threads(value, 1).map(|_| ()),
        "cpus" => cpus(value).map(|_| ()),
        "level" => level(value).map(|_| ()),
        "timeout" => timeout(value).map(|_| ()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let list = |s: &str| cpus(&SettingValue::Text(s.into())).ok();
        assert_eq!(list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list("2-1"), None);
        assert_eq!(list(""), None);
        assert_eq!(list("0-99999999"), None);
        assert_eq!(cpus(&SettingValue::Integer(3)).ok(), Some(vec![3]));
    }

    #[test]
    fn command_line_values_keep_their_type() {
        let of = |s: &str| s.parse::<SettingValue>().ok();
        assert_eq!(of("8"), Some(SettingValue::Integer(8)));
        assert_eq!(of("true"), Some(SettingValue::Flag(true)));
        assert_eq!(of("0-3"), Some(SettingValue::Text("0-3".into())));
    }
}
