//! One arm of one experiment, measured or published.

use std::collections::BTreeMap;

use serde_json::Value;

use super::published::{Published, PublishedFigure};
use crate::comparison::{Comparison, Spread, Trial};
use crate::stats::{Ratio, RatioFinding};

/// One arm of one experiment. Unknown values are `None`.
#[derive(Debug, Clone, Default)]
pub struct ResultEntry {
    /// The name of the comparison, or the row of a published table.
    pub experiment: String,
    /// The arm.
    pub arm: String,
    /// The suite or publication that it belongs to.
    pub suite: Option<String>,
    /// The step of a pipeline.
    pub step: Option<String>,
    /// Swept variables and the like.
    pub settings: BTreeMap<String, Value>,
    /// The machine, in a few words.
    pub machine: String,
    /// Where the files lie, in a few words.
    pub store: Option<String>,
    /// Version of the program.
    pub version: Option<String>,
    /// The verified cache level.
    pub level: Option<String>,
    /// The kind of time, as in "wall".
    pub clock: Option<String>,
    /// The times that count, in seconds.
    pub times: Vec<f64>,
    /// The median and the range of these times.
    pub time_s: Option<Spread>,
    /// The paired ratio to the baseline of its own session; `None` for the baseline.
    pub ratio: Option<Ratio>,
    /// The finding from this ratio.
    pub finding: Option<RatioFinding>,
    /// The factor by which identical arms differed in its session.
    pub noise: Option<f64>,
    /// The machine's lower bound (device and memory).
    pub limit_s: Option<f64>,
    /// CPU seconds.
    pub cpu_s: Option<f64>,
    /// Private memory.
    pub anon_bytes: Option<u64>,
    /// Stored bytes that were needed.
    pub stored_bytes: Option<u64>,
    /// Digest of the decoded values.
    pub digest: Option<String>,
    /// Whether it was typed in from a publication.
    pub published: bool,
    /// Why there is no time, or why its ratios are invalid.
    pub trouble: Option<String>,
}

impl ResultEntry {
    /// Limit over median time: 1 is the machine's best.
    pub fn fraction(&self) -> Option<f64> {
        Some(self.limit_s? / self.time_s?.median)
    }

    /// Stored bytes per second.
    pub fn rate(&self) -> Option<f64> {
        Some(self.stored_bytes? as f64 / self.time_s?.median)
    }
}

/// The arms of a comparison, its control left out.
pub(super) fn measured(c: &Comparison) -> Vec<ResultEntry> {
    let control = c.session.control.and_then(|i| c.session.arms.get(i)).map(|a| a.name.as_str());
    let host = &c.session.host;
    let machine = format!(
        "{}{}",
        host.cpu_model.clone().unwrap_or_else(|| host.architecture.clone()),
        host.cpus_usable.map_or(String::new(), |n| format!(", {n} CPUs"))
    );
    let arms =
        c.session.arms.iter().zip(&c.summaries).filter(|(a, _)| Some(a.name.as_str()) != control);
    arms.map(|(arm, s)| {
        let own = || c.trials.iter().filter(|t| t.arm == arm.name);
        let mut settings = arm.settings.clone();
        settings.extend(c.session.suite.iter().flat_map(|x| x.settings.clone()));
        ResultEntry {
            experiment: c.session.name.clone(),
            arm: arm.name.clone(),
            suite: c.session.suite.as_ref().map(|x| x.name.clone()),
            step: c.session.suite.as_ref().and_then(|x| x.step.clone()),
            settings,
            machine: machine.clone(),
            store: arm.files.first().and_then(|file| {
                let file = file.display().to_string();
                let place = c.session.places.iter().find(|p| p.file == file)?.place.as_ref()?;
                Some(format!("{} on {}", place.file_system, place.source))
            }),
            version: s.version.clone(),
            level: s.level.map(|l| l.to_string()),
            clock: Some(c.session.clock.name().to_owned()),
            times: own().filter_map(Trial::counted_time_s).collect(),
            time_s: s.time_s,
            ratio: s.ratio,
            finding: s.finding,
            noise: c.noise_floor,
            limit_s: s.limit.as_ref().and_then(crate::limit::Limit::floor_s),
            cpu_s: s.cpu_s,
            anon_bytes: s.peak_anon_bytes,
            stored_bytes: s.stored_bytes,
            digest: own().find_map(|t| t.outcome.as_ref()?.report.as_ref()?.digest.clone()),
            published: false,
            trouble: s.failed.clone().or_else(|| c.refused.clone()),
        }
    })
    .collect()
}

/// The figures of a publication.
pub(super) fn published(p: &Published) -> Vec<ResultEntry> {
    let of = |f: &PublishedFigure| {
        let machine = f.machine.as_ref().and_then(|name| p.source.machines.get(name));
        ResultEntry {
            experiment: f.experiment.clone(),
            arm: f.arm.clone(),
            suite: Some(p.source.name.clone()),
            step: f.step.clone(),
            settings: f.settings.clone(),
            machine: machine
                .map_or_else(|| f.machine.clone().unwrap_or_default(), |m| m.cpu.clone()),
            store: f.store.clone().or_else(|| machine.and_then(|m| m.storage.clone())),
            clock: f.clock.clone(),
            times: vec![f.time_s],
            time_s: Spread::of(&[f.time_s]),
            cpu_s: f.user_s.zip(f.system_s).map(|(u, s)| u + s),
            stored_bytes: f.bytes,
            version: f.version.clone(),
            published: true,
            ..ResultEntry::default()
        }
    };
    p.figures.iter().map(of).collect()
}
