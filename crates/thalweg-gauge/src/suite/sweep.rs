//! Expands sweeps to points.

use super::{SettingValue, Settings, Sweep, value};

/// The most points of a sweep. A larger number is reported as a mistake.
pub(super) const MOST_POINTS: usize = 10_000;

/// One value for each swept setting.
pub(super) type SweepPoint = Vec<(String, SettingValue)>;

impl Sweep {
    /// The names of the swept settings.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.over.iter().map(|(name, _)| name.as_str())
    }

    /// Every combination of the values. The last setting changes fastest. Points that an `exclude`
    /// matches are left out, and the points of `include` follow at the end. If nothing is swept,
    /// there is one empty point. `all` is the number of cores.
    pub(super) fn points(&self, all: usize) -> Vec<SweepPoint> {
        let mut points: Vec<SweepPoint> = vec![Vec::new()];
        for (name, values) in &self.over {
            let values = expanded(&values.value, all);
            points = points
                .into_iter()
                .flat_map(|point| {
                    let with = |value: &SettingValue| {
                        [point.as_slice(), &[(name.clone(), value.clone())]].concat()
                    };
                    values.iter().map(with).collect::<Vec<_>>()
                })
                .take(MOST_POINTS + 1)
                .collect();
        }
        points.retain(|point| !self.exclude.iter().any(|settings| matches(settings, point, all)));
        let included = self.include.iter().map(|settings| {
            settings
                .iter()
                .map(|(name, value)| (name.clone(), value.value.clone()))
                .collect::<SweepPoint>()
        });
        points.extend(included);
        points
    }
}

fn matches(settings: &Settings, point: &SweepPoint, all: usize) -> bool {
    settings.iter().all(|(name, wanted)| {
        let same = |value: &SettingValue| {
            *value == wanted.value
                || (name == "threads"
                    && value::threads(value, all) == value::threads(&wanted.value, all))
        };
        point.iter().any(|(n, value)| n == name && same(value))
    })
}

/// The values, with `"1..all"` replaced by 1, 2, 4, ... and the end itself. Repeated values are
/// removed.
fn expanded(values: &[SettingValue], all: usize) -> Vec<SettingValue> {
    let mut out: Vec<SettingValue> = Vec::new();
    for value in values {
        let these = match value {
            SettingValue::Text(text) => doublings(text, all).unwrap_or_else(|| vec![value.clone()]),
            other => vec![other.clone()],
        };
        for value in these {
            if !out.contains(&value) {
                out.push(value);
            }
        }
    }
    out
}

/// The values of a text like "1..all" or "4..64"; `None` for another form.
pub(super) fn doublings(text: &str, all: usize) -> Option<Vec<SettingValue>> {
    let (first, last) = text.split_once("..")?;
    let first: i64 = first.parse().ok().filter(|n| *n > 0)?;
    let last: i64 = if last == "all" { i64::try_from(all).ok()? } else { last.parse().ok()? };
    let mut values = Vec::new();
    let mut next = Some(first);
    while let Some(n) = next.filter(|n| *n < last) {
        values.push(SettingValue::Integer(n));
        next = n.checked_mul(2);
    }
    values.push(SettingValue::Integer(last));
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::WithSpan;

    fn sweep(over: &[(&str, &[&str])]) -> Sweep {
        let scalar = |s: &&str| s.parse().unwrap_or(SettingValue::Flag(false));
        let over = over.iter().map(|(name, values)| {
            (
                (*name).to_owned(),
                WithSpan { value: values.iter().map(scalar).collect::<Vec<_>>(), at: 0..0 },
            )
        });
        Sweep { over: over.collect(), ..Sweep::default() }
    }

    fn shown(sweep: &Sweep, all: usize) -> Vec<String> {
        let text =
            |p: &SweepPoint| p.iter().map(|(_, v)| v.to_string()).collect::<Vec<_>>().join(" ");
        sweep.points(all).iter().map(text).collect()
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let one = |(n, v): &(&str, &str)| {
            (
                (*n).to_owned(),
                WithSpan { value: v.parse().unwrap_or(SettingValue::Flag(false)), at: 0..0 },
            )
        };
        pairs.iter().map(one).collect()
    }

    #[test]
    fn all_combinations_less_some_plus_some() {
        let mut s = sweep(&[("store", &["mmap", "direct"]), ("threads", &["1..all"])]);
        assert_eq!(
            shown(&s, 6),
            [
                "mmap 1", "mmap 2", "mmap 4", "mmap 6", "direct 1", "direct 2", "direct 4",
                "direct 6"
            ]
        );
        s.exclude =
            vec![settings(&[("store", "mmap"), ("threads", "all")]), settings(&[("threads", "1")])];
        s.include = vec![settings(&[("store", "uring"), ("threads", "3")])];
        assert_eq!(
            shown(&s, 6),
            ["mmap 2", "mmap 4", "direct 2", "direct 4", "direct 6", "uring 3"]
        );
        assert_eq!(shown(&sweep(&[]), 6), [""]);
    }

    #[test]
    fn a_range_ends_at_its_end() {
        assert_eq!(shown(&sweep(&[("n", &["1..1"])]), 1), ["1"]);
        assert_eq!(shown(&sweep(&[("n", &["1..all", "2"])]), 2), ["1", "2"]);
        assert_eq!(shown(&sweep(&[("n", &["3..20"])]), 2), ["3", "6", "12", "20"]);
    }

    #[test]
    fn a_sweep_with_absurd_limits_ends() {
        let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let s = sweep(&[("a", &many), ("b", &many), ("c", &many)]);
        assert!(s.points(2).len() > MOST_POINTS && s.points(2).len() <= MOST_POINTS + 1);
    }
}
