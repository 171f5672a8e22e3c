//! Lists of read ids: which reads of a file, in which order.

use toml::de::DeValue;

use super::SettingValue;
use super::toml_table::{Problems, TomlTable, expected, whole};
use crate::schedule::SplitMix;

/// Which reads of a file, in which order. Neither depends on the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdList {
    /// How many.
    pub many: Many,
    /// The length of a run: this many chosen neighbours stay together, in file order, and the runs
    /// are shuffled.
    pub run: usize,
    /// The seed of the shuffle.
    pub seed: u64,
}

/// How many of all reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Many {
    /// This many, or all if there are fewer.
    Count(usize),
    /// This share of them, at least one.
    Share(f64),
}

impl IdList {
    pub(super) fn parse(table: &mut TomlTable<'_, '_>, problems: &mut Problems) -> Option<Self> {
        let seed = table.read("seed", problems, |v| whole(v, 0)).map_or(1, |s| s.value);
        let run = table.read("run", problems, |v| whole(v, 1)).map_or(1, |r| r.value);
        let given = (table.has("count"), table.has("share"));
        let count = table.read("count", problems, |v| whole(v, 1));
        let share = table.read("share", problems, share);
        if given.0 == given.1 {
            problems.add(&table.at, "`ids` needs a `count` or a `share`, and one of them");
            return None;
        }
        let many = match (count, share) {
            (Some(count), _) => Many::Count(usize::try_from(count.value).ok()?),
            (None, share) => Many::Share(share?.value),
        };
        Some(Self { many, run: usize::try_from(run).ok()?, seed })
    }

    /// Chooses the ids of the list from `all` ids of a file, which are in file order.
    pub fn of<'a>(&self, all: &[&'a str]) -> Vec<&'a str> {
        let count = match self.many {
            Many::Count(count) => count,
            Many::Share(share) => ((all.len() as f64 * share).round() as usize).max(1),
        };
        let mut chosen: Vec<usize> = (0..all.len()).collect();
        SplitMix(self.seed).shuffle(&mut chosen);
        chosen.truncate(count);
        if self.run > 1 {
            chosen.sort_unstable();
            let mut runs: Vec<&[usize]> = chosen.chunks(self.run).collect();
            SplitMix(self.seed).shuffle(&mut runs);
            chosen = runs.concat();
        }
        chosen.iter().filter_map(|i| all.get(*i).copied()).collect()
    }

    /// A part of a file name that contains the whole recipe.
    pub(super) fn name(&self) -> String {
        let many = match self.many {
            Many::Count(count) => count.to_string(),
            Many::Share(share) => format!("share{share}"),
        };
        let run = if self.run == 1 { String::new() } else { format!(".runs{}", self.run) };
        let seed = if self.seed == 1 { String::new() } else { format!(".seed{}", self.seed) };
        many + &run + &seed
    }
}

/// A number between 0 and 1, or a string like "20 %".
fn share(value: &DeValue<'_>) -> Result<f64, String> {
    let text = SettingValue::from_toml(value).map(|scalar| scalar.to_string()).unwrap_or_default();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    let share = share.ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| expected("a share as in 0.01 or \"1 %\"", value))
}
