//! The session of a comparison, which is the first line of its results, and the check whether an
//! earlier run may be continued.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use super::plan::CONTROL_SUFFIX;
use super::record::{FilePlace, ProgramVersion, SESSION_SCHEMA};
use super::{Arm, Clock, ComparisonPlan, PairCount, Session};
use crate::stats::MIN_PAIRS;
use crate::units::unix_s;
use crate::{Error, Result, cache, host};

/// Makes the session of `plan`, with the current time as its start.
pub(super) fn session(plan: &ComparisonPlan) -> Result<Session> {
    let usage = |what: String| Err(Error::Usage(what));
    let mut arms = plan.arms.clone();
    let mut control = None;
    match arms.first() {
        None => return usage("a comparison needs at least one arm".into()),
        Some(baseline) if plan.control => {
            control = Some(arms.len());
            let name = format!("{}{CONTROL_SUFFIX}", baseline.name);
            // The control has no counterfactuals: its verdict would repeat the baseline's.
            arms.push(Arm { name, counterfactuals: None, ..baseline.clone() });
        }
        Some(_) => {}
    }
    match plan.pairs {
        PairCount::Fixed(0) => return usage("a comparison needs at least one round".into()),
        PairCount::Auto { least, most, .. } if least < MIN_PAIRS || most < least => {
            return usage(format!(
                "{least} to {most} pairs: an interval needs at least {MIN_PAIRS}, and the most \
                 must not be fewer than the least"
            ));
        }
        PairCount::Auto { half_width, .. } if !(half_width > 0.0 && half_width.is_finite()) => {
            return usage(format!("half width {half_width}: not a share above 0, as 0.05 is"));
        }
        _ => {}
    }
    let mut names = BTreeMap::new();
    for arm in &arms {
        if names.insert(arm.name.as_str(), ()).is_some() {
            return usage(format!("two arms are called {:?}", arm.name));
        }
    }
    let started_unix_s = unix_s(SystemTime::now());
    Ok(Session {
        schema: SESSION_SCHEMA.into(),
        // The id is unique on one machine, because a process can't start two comparisons within a
        // microsecond.
        id: format!("{}-{:.6}-{}", plan.name, started_unix_s, std::process::id()),
        name: plan.name.clone(),
        suite: plan.suite.clone(),
        gauge_version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s,
        host: host::host(),
        places: places(&arms)?,
        programs: programs(&arms),
        clock: if arms.iter().all(|a| a.must_report) { Clock::TimeToSamples } else { Clock::Wall },
        arms,
        control,
        rounds: plan.pairs.most(),
        pairs: Some(plan.pairs),
        looks: plan.pairs.looks(),
        order: plan.order,
        retries: Some(plan.retries),
        budget_s: plan.budget.map(|b| b.as_secs_f64()),
    })
}

fn places(arms: &[Arm]) -> Result<Vec<FilePlace>> {
    let mut files: Vec<_> = arms.iter().flat_map(|a| a.files.iter()).collect();
    files.sort();
    files.dedup();
    if let Some(file) = files.iter().find(|f| f.to_str().is_none()) {
        return Err(Error::Usage(format!(
            "{}: JSON results need file names in UTF-8",
            file.display()
        )));
    }
    let place = |f: &std::path::PathBuf| {
        let (bytes, modified) = cache::state_of(f)?;
        Ok(FilePlace {
            file: f.display().to_string(),
            bytes,
            modified_unix_s: modified.map(unix_s),
            place: host::place(f),
        })
    };
    files.into_iter().map(place).collect()
}

/// The state of the programs of `arms`. A program that is not found is left out, and fails when it
/// is started.
fn programs(arms: &[Arm]) -> Vec<ProgramVersion> {
    let mut names: Vec<String> =
        arms.iter().filter_map(|arm| arm.command().argv.into_iter().next()).collect();
    names.sort();
    names.dedup();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = |name: &str| {
        if name.contains('/') {
            vec![PathBuf::new()]
        } else {
            std::env::split_paths(&path).collect()
        }
    };
    let program = |file: PathBuf| {
        let found = std::fs::metadata(&file).ok().filter(std::fs::Metadata::is_file)?;
        let modified_unix_s = found.modified().ok().map(unix_s);
        Some(ProgramVersion { file: file.to_str()?.into(), bytes: found.len(), modified_unix_s })
    };
    names
        .iter()
        .filter_map(|name| folders(name).into_iter().find_map(|folder| program(folder.join(name))))
        .collect()
}

/// Checks that trials of `now` may join those of `then`: arms, plan, files and machine are equal.
///
/// # Errors
/// [`Error::Resume`] with the first difference.
pub(super) fn same(then: &Session, now: &Session) -> Result<()> {
    let differs = |what: String| Err(Error::Resume { comparison: now.name.clone(), what });
    if let Some(what) = arms_differ(then, now).or_else(|| plans_differ(then, now)) {
        return differs(what);
    }
    if let Some(what) = files_differ(then, now) {
        return differs(what);
    }
    if then.gauge_version != now.gauge_version {
        return differs(format!(
            "it was measured by thalweg-gauge {}; this is {}",
            then.gauge_version, now.gauge_version
        ));
    }
    if machine(then) != machine(now) {
        return differs(format!("it ran on {}; this is {}", machine(then), machine(now)));
    }
    Ok(())
}

fn arms_differ(then: &Session, now: &Session) -> Option<String> {
    if then.arms.len() != now.arms.len() || then.control != now.control {
        let names =
            |s: &Session| s.arms.iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ");
        return Some(format!("its arms were {}; now they are {}", names(then), names(now)));
    }
    let json = |arm: &Arm| serde_json::to_string(arm).unwrap_or_default();
    let (a, b) = then.arms.iter().zip(&now.arms).find(|(a, b)| a != b)?;
    Some(format!("arm {:?} was {}; now it is {}", a.name, json(a), json(b)))
}

fn plans_differ(then: &Session, now: &Session) -> Option<String> {
    let same = then.pairs == now.pairs
        && then.looks == now.looks
        && then.order == now.order
        && then.retries == now.retries;
    let plan =
        |s: &Session| format!("{:?} in order {:?}, {:?} retries", s.pairs, s.order, s.retries);
    (!same).then(|| format!("it was planned as {}; now as {}", plan(then), plan(now)))
}

/// A file or program: its path, its size in bytes, and when it was changed.
type FileState = (String, u64, Option<f64>);

fn files_differ(then: &Session, now: &Session) -> Option<String> {
    let states = |s: &Session| -> Vec<FileState> {
        let files = s.places.iter().map(|p| (p.file.clone(), p.bytes, p.modified_unix_s));
        let programs = s.programs.iter().map(|p| (p.file.clone(), p.bytes, p.modified_unix_s));
        files.chain(programs).collect()
    };
    let before = states(then);
    let after = states(now);
    let in_words = |file: Option<&FileState>| match file {
        Some((file, bytes, Some(t))) => {
            format!("{file} of {bytes} bytes, changed at {t} s since 1970")
        }
        Some((file, bytes, None)) => format!("{file} of {bytes} bytes"),
        None => "nothing".into(),
    };
    let count = before.len().max(after.len());
    let i = (0..count).find(|&i| before.get(i) != after.get(i))?;
    let was = in_words(before.get(i));
    Some(format!("it used {was}; now it would use {}", in_words(after.get(i))))
}

/// The parts of the machine that trials of one comparison must share, in words.
fn machine(s: &Session) -> String {
    let h = &s.host;
    let cpu = h.cpu_model.clone().unwrap_or_else(|| h.architecture.clone());
    let number = |n: Option<f64>| n.map_or("?".into(), |n| n.to_string());
    let cpus = number(h.cpus_usable.map(|n| n as f64));
    let quota = number(h.cgroup_cpus);
    let memory = number(h.memory_bytes.map(|b| (b as f64 / f64::from(1 << 30)).round()));
    format!("{cpu}, {cpus} CPUs (quota {quota}), {memory} GiB, kernel {}", h.kernel)
}
