//! Compares results: the arms of one session in pairs, or one arm in several runs, machines, stores
//! and versions.
//!
//! Arms of one session were interleaved, so their ratio is that of pairs. Trials of different
//! sessions were not interleaved: their ratio is *unpaired*, and its interval covers the scatter
//! inside each session, not the changes between sessions.

mod condition;

use serde::Serialize;
use serde_json::{Value, json};

use crate::results::{ResultEntry, ResultRun};
use crate::stats::{CONFIDENCE, Ratio, RatioFinding, sign_interval};

pub use condition::{ConditionVerdict, ResultCondition};

/// Version of a line of [`ComparedRow::line`].
pub const COMPARED_SCHEMA: &str = "thalweg.compared/1";

/// Options of [`compare`].
#[derive(Debug, Clone, Default)]
pub struct CrossRunOptions {
    /// Pairs of equivalent names of arms or experiments. The first name is shown.
    pub same: Vec<(String, String)>,
    /// Within one run: the baseline, in place of each session's own.
    pub baseline: Option<String>,
    /// Only rows whose experiment or arm contains this.
    pub only: Option<String>,
}

/// Runs, and the arms that they have in common.
#[derive(Debug, Clone)]
pub struct Compared {
    /// In the order given; the first is the baseline if there are several.
    pub runs: Vec<ResultRun>,
    /// One row for each arm of an experiment.
    pub rows: Vec<ComparedRow>,
}

/// One arm of one experiment, in every run.
#[derive(Debug, Clone)]
pub struct ComparedRow {
    /// The experiment.
    pub experiment: String,
    /// The arm.
    pub arm: String,
    /// The arm in each run; `None` where a run doesn't have it.
    pub cells: Vec<Option<ResultEntry>>,
    /// The ratios of the arm to its baselines.
    pub against: Vec<Against>,
}

/// One ratio of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Against {
    /// Index of the run whose arm this is.
    pub run: usize,
    /// The baseline: another arm, or the same arm in another run.
    pub baseline: String,
    /// Whether the trials were interleaved, pair by pair.
    pub paired: bool,
    /// The quantity that is divided.
    pub basis: Basis,
    /// Time over time; above 1 is slower. `None` if a time is unknown, or if the two are of
    /// different kinds.
    pub ratio: Option<Ratio>,
    /// The finding. Between sessions it shows a difference between sessions, whatever the cause.
    pub finding: Option<RatioFinding>,
    /// The ratio with each machine's own limit divided out: above 1 is further from what its
    /// machine could do.
    pub normalised: Option<f64>,
    /// The factor by which identical arms differed: the larger one of the two sessions.
    pub noise: Option<f64>,
    /// Why a ratio is missing, or how far it can be trusted.
    pub note: Option<String>,
}

/// The quantity of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Times of the same work.
    Time,
    /// Times a stored byte, because the data differ.
    TimePerStoredByte,
}

/// Matches the arms of the runs by name, and computes their ratios.
pub fn compare(runs: Vec<ResultRun>, options: &CrossRunOptions) -> Compared {
    let mut rows: Vec<ComparedRow> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for entry in run.entries() {
            let experiment = renamed(&entry.experiment, options);
            let arm = label(&entry, options);
            if let Some(only) = &options.only
                && !experiment.contains(only.as_str())
                && !arm.contains(only.as_str())
            {
                continue;
            }
            let row = match rows.iter_mut().find(|r| r.experiment == experiment && r.arm == arm) {
                Some(row) => row,
                None => {
                    rows.push(ComparedRow {
                        experiment,
                        arm,
                        cells: vec![None; runs.len()],
                        against: Vec::new(),
                    });
                    let last = rows.len() - 1;
                    let Some(row) = rows.get_mut(last) else { continue };
                    row
                }
            };
            // The first entry with this name wins, so a comparison that occurs twice in a file
            // keeps its first result.
            if let Some(cell) = row.cells.get_mut(i).filter(|c| c.is_none()) {
                *cell = Some(entry);
            }
        }
    }
    // Arms of one experiment stay together, whichever run they come from.
    let order: Vec<String> = rows.iter().map(|r| r.experiment.clone()).collect();
    rows.sort_by_key(|r| order.iter().position(|e| *e == r.experiment));
    let against: Vec<Vec<Against>> =
        rows.iter()
            .map(|row| {
                if runs.len() == 1 {
                    within(row, &rows, &runs, options)
                } else {
                    between(row, &runs)
                }
            })
            .collect();
    for (row, against) in rows.iter_mut().zip(against) {
        row.against = against;
    }
    Compared { runs, rows }
}

fn renamed(name: &str, options: &CrossRunOptions) -> String {
    options.same.iter().find(|(_, other)| other == name).map_or(name, |(shown, _)| shown).to_owned()
}

/// The arm and, in a table of figures, the settings that set it apart.
fn label(e: &ResultEntry, options: &CrossRunOptions) -> String {
    let arm = renamed(&e.arm, options);
    let settings: Vec<String> =
        e.settings.iter().filter(|_| e.published).map(|(k, v)| format!("{k} {v}")).collect();
    if settings.is_empty() { arm } else { format!("{arm} ({})", settings.join(", ")) }
}

/// Arms of one run against the baseline of their experiment.
fn within(
    row: &ComparedRow,
    rows: &[ComparedRow],
    runs: &[ResultRun],
    options: &CrossRunOptions,
) -> Vec<Against> {
    let Some(Some(entry)) = row.cells.first() else { return Vec::new() };
    let mates = || {
        rows.iter()
            .filter(|r| r.experiment == row.experiment)
            .filter_map(|r| Some((r, r.cells.first()?.as_ref()?)))
    };
    let base = match &options.baseline {
        Some(name) => mates().find(|(r, _)| r.arm == *name),
        // A published table has a baseline only where its settings agree.
        None => mates().find(|(_, e)| e.settings == entry.settings || !e.published),
    };
    let Some((base_row, base)) = base.filter(|(r, _)| r.arm != row.arm) else { return Vec::new() };
    if entry.published {
        // A published table claims that its arms did the same work. Its remarks list the
        // exceptions.
        let against = unpaired(0, &base_row.arm, entry, base);
        return vec![Against { note: Some(NO_INTERVAL.into()), ..against }];
    }
    let comparison = runs
        .first()
        .and_then(|r| r.comparisons.iter().find(|c| c.session.name == entry.experiment));
    let ratio = comparison.and_then(|c| c.paired(&entry.arm, &base.arm));
    let too_early = comparison.is_some_and(|c| c.look.is_none());
    let finding =
        ratio.filter(|_| !too_early).map(|r| RatioFinding::of(&r, entry.noise.unwrap_or(1.0)));
    vec![Against {
        run: 0,
        baseline: base_row.arm.clone(),
        paired: true,
        basis: Basis::Time,
        ratio,
        finding,
        normalised: normalised(entry, base),
        noise: entry.noise,
        note: entry.trouble.clone().or_else(|| {
            too_early.then(|| "ended before its first look: nothing is concluded".into())
        }),
    }]
}

/// Ratios of an arm in later runs to the first run that has it.
fn between(row: &ComparedRow, runs: &[ResultRun]) -> Vec<Against> {
    let mut cells = row.cells.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?)));
    let Some((first, base)) = cells.next() else { return Vec::new() };
    let name = runs.get(first).map_or("", |r| r.name.as_str());
    cells.map(|(i, entry)| unpaired(i, name, entry, base)).collect()
}

fn unpaired(run: usize, baseline: &str, entry: &ResultEntry, base: &ResultEntry) -> Against {
    let mut notes: Vec<String> = Vec::new();
    notes.extend([entry, base].into_iter().filter_map(|e| e.trouble.clone()));
    let (basis, works) = same_work(entry, base, &mut notes);
    let scale = match basis {
        Basis::Time => Some(1.0),
        Basis::TimePerStoredByte => {
            entry.stored_bytes.zip(base.stored_bytes).map(|(a, b)| b as f64 / a as f64)
        }
    };
    let ratio = scale
        .filter(|_| works && notes_allow(entry, base))
        .and_then(|s| ratio(&entry.times, &base.times, s));
    let noise = entry.noise.into_iter().chain(base.noise).max_by(f64::total_cmp);
    if entry.level != base.level && entry.level.is_some() && base.level.is_some() {
        let level = |e: &ResultEntry| e.level.clone().unwrap_or_default();
        notes.push(format!("{} against {} caches", level(entry), level(base)));
    }
    if let (Some(a), Some(b)) = (&entry.clock, &base.clock)
        && a != b
    {
        notes.push(format!("{a} against {b}"));
    }
    if entry.published || base.published {
        notes.push(NO_INTERVAL.into());
    }
    Against {
        run,
        baseline: baseline.to_owned(),
        paired: false,
        basis,
        ratio,
        finding: ratio.map(|r| RatioFinding::of(&r, noise.unwrap_or(1.0))),
        normalised: normalised(entry, base).filter(|_| works),
        noise,
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    }
}

const NO_INTERVAL: &str = "a published figure has no interval";

fn notes_allow(entry: &ResultEntry, base: &ResultEntry) -> bool {
    entry.trouble.is_none() && base.trouble.is_none()
}

/// Stored bytes that differ by less than this share are one work: headers and padding differ.
const SAME_BYTES: f64 = 0.01;

/// Whether two arms did the same work, and what can be compared if not.
fn same_work(entry: &ResultEntry, base: &ResultEntry, notes: &mut Vec<String>) -> (Basis, bool) {
    if let (Some(a), Some(b)) = (&entry.digest, &base.digest)
        && a == b
    {
        return (Basis::Time, true);
    }
    match entry.stored_bytes.zip(base.stored_bytes) {
        Some((a, b)) if (a as f64 / b as f64 - 1.0).abs() <= SAME_BYTES => {
            if entry.digest.is_some() && base.digest.is_some() {
                notes.push("as many stored bytes, other values".into());
            }
            (Basis::Time, true)
        }
        Some((a, b)) if a > 0 && b > 0 => {
            notes.push("other data: compared by time a stored byte".into());
            (Basis::TimePerStoredByte, true)
        }
        _ => {
            notes.push("whether the data are the same is not known".into());
            (Basis::Time, true)
        }
    }
}

/// How much further from its machine's limit `entry` is than `base`.
fn normalised(entry: &ResultEntry, base: &ResultEntry) -> Option<f64> {
    Some(base.fraction()? / entry.fraction()?)
}

/// The ratio of the medians of two unpaired samples. Its interval is the quotient of the samples'
/// own intervals: each has half of the error probability, so the quotient has all of it, for any
/// distributions.
fn ratio(times: &[f64], base: &[f64], scale: f64) -> Option<Ratio> {
    let logs = |t: &[f64]| t.iter().map(|s| s.ln()).collect::<Vec<f64>>();
    let a = logs(times);
    let b = logs(base);
    let median = (crate::stats::median(&a)? - crate::stats::median(&b)?).exp() * scale;
    let half = (1.0 - CONFIDENCE) / 2.0;
    let ends = sign_interval(&a, half).zip(sign_interval(&b, half));
    let interval = ends.map(|(a, b)| ((a.0 - b.1).exp() * scale, (a.1 - b.0).exp() * scale));
    median.is_finite().then_some(Ratio { median, interval, pairs: 0 })
}

impl Compared {
    /// The entry that a ratio of `row` divides by.
    pub fn base<'a>(&'a self, row: &'a ComparedRow, against: &Against) -> Option<&'a ResultEntry> {
        if self.runs.len() > 1 {
            return row.cells.iter().flatten().next();
        }
        let base = self
            .rows
            .iter()
            .find(|r| r.experiment == row.experiment && r.arm == against.baseline)?;
        base.cells.first()?.as_ref()
    }
}

impl ComparedRow {
    /// The row as a line of JSON.
    pub fn line(&self, runs: &[ResultRun]) -> Value {
        let name = |i: usize| runs.get(i).map(|r| r.name.clone());
        let cell = |(i, c): (usize, &Option<ResultEntry>)| {
            c.as_ref().map(|e| {
                json!({
                    "run": name(i), "machine": e.machine, "store": e.store, "version": e.version,
                    "level": e.level,
                    "published": e.published, "trials": e.times.len(), "time_s": e.time_s,
                    "limit_s": e.limit_s,
                    "fraction_of_floor": e.fraction(), "cpu_s": e.cpu_s,
                    "peak_anon_bytes": e.anon_bytes,
                    "stored_bytes": e.stored_bytes, "digest": e.digest,
                    "ratio_in_session": e.ratio, "trouble": e.trouble,
                })
            })
        };
        let against = |a: &Against| {
            let mut value = serde_json::to_value(a).unwrap_or_default();
            if let Some(object) = value.as_object_mut() {
                object.insert("run".into(), json!(name(a.run)));
            }
            value
        };
        json!({
            "schema": COMPARED_SCHEMA, "experiment": self.experiment, "arm": self.arm,
            "runs": self.cells.iter().enumerate().filter_map(cell).collect::<Vec<_>>(),
            "against": self.against.iter().map(against).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
