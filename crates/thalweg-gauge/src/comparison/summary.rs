//! Summarises raw trials. The summary depends on the trials alone, so a results file gives the same
//! summary again.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::flags::flags;
use super::record::COMPARISON_SCHEMA;
use super::{Arm, Earlier, Flag, Session, Trial, counterfactual, state};
use crate::cache_level::CacheLevel;
use crate::limit::{Limit, Probe, WorkDemand};
use crate::stats::{self, Look, Ratio, RatioFinding, median};
use crate::trial::Outcome;
use crate::units;
use crate::verdict::{Verdict, Without, verdict};
use crate::workload::{Latency, StageTimes, WorkloadReport};

/// The median and the range of an arm's trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            min: values.iter().copied().min_by(f64::total_cmp)?,
            max: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }
}

/// The summary of one arm's counted trials. Figures are medians unless noted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The name of the arm.
    pub arm: String,
    /// A label for readers, as in "runs an interpreter".
    pub label: Option<String>,
    /// The version that the program reported.
    pub version: Option<String>,
    /// The weakest level among its counted trials.
    pub level: Option<CacheLevel>,
    /// The number of trials that count.
    pub trials: usize,
    /// The number of trials that were rejected because they contradicted their cache level.
    pub rejected: usize,
    /// Why the arm was removed; `None` if it was not.
    pub failed: Option<String>,
    /// The compared time in seconds.
    pub time_s: Option<Spread>,
    /// The wall time of the whole process, in seconds.
    pub wall_s: Option<f64>,
    /// The time of the arm divided by that of the baseline, pair by pair; `None` for the baseline.
    pub ratio: Option<Ratio>,
    /// The finding from the ratio.
    pub finding: Option<RatioFinding>,
    /// CPU seconds in user mode and in the kernel.
    pub cpu_s: Option<f64>,
    /// The largest private memory of all trials.
    pub peak_anon_bytes: Option<u64>,
    /// The largest file-backed memory of all trials.
    pub peak_file_bytes: Option<u64>,
    /// The largest resident memory of all trials.
    pub max_rss_bytes: Option<u64>,
    /// Bytes that came from the device.
    pub device_read_bytes: Option<u64>,
    /// Stored bytes that the arm needed.
    pub stored_bytes: Option<u64>,
    /// Decoded bytes that the arm delivered.
    pub decoded_bytes: Option<u64>,
    /// Samples that the arm delivered.
    pub samples: Option<u64>,
    /// The lower bound on the time that the machine sets.
    pub limit: Option<Limit>,
    /// The floor (the bound of device and memory, without decoding) divided by the median time; 1
    /// is perfect.
    pub fraction_of_floor: Option<f64>,
    /// The bottleneck, in words.
    pub verdict: Option<String>,
    /// The distribution of its calls' durations, if it made many calls in a loop.
    pub latency_us: Option<Latency>,
    /// The bottleneck in figures, with the runs without a stage.
    pub bottleneck: Option<Verdict>,
    /// How the program was built, by its own report.
    pub build: Option<Value>,
    /// The stages of the program.
    pub stages: Vec<StageTimes>,
}

/// A comparison with its trials and its summary.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The arms, the plan and the machine.
    pub session: Session,
    /// Every trial, the rejected ones included.
    pub trials: Vec<Trial>,
    /// The probes, one for each file.
    pub probes: Vec<Probe>,
    /// One summary for each arm, in the order of the session.
    pub summaries: Vec<ArmSummary>,
    /// The control's ratio to the baseline: the noise between identical arms.
    pub noise: Option<Ratio>,
    /// The factor that a claim must exceed because of this noise.
    pub noise_floor: Option<f64>,
    /// Facts that a reader should know before trusting the ratios. No trial was left out because of
    /// a flag.
    pub flags: Vec<Flag>,
    /// Why the comparison was refused: the arms did not decode the same values.
    pub refused: Option<String>,
    /// Why the comparison ended.
    pub ended: EndReason,
    /// The number of complete rounds.
    pub rounds: usize,
    /// The last planned look that was reached. Ratios and findings are those of its rounds. `None`
    /// if the run ended before the first look; there are then no findings.
    pub look: Option<Look>,
}

/// Why a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// All rounds were run.
    AllRounds,
    /// The intervals were narrow enough.
    Precise,
    /// The arms did not decode the same values.
    Refused,
    /// The time budget was spent.
    Budget,
    /// The user or the machine stopped it.
    Stopped,
}

impl Comparison {
    /// Whether the comparison ended outside a planned look.
    pub fn stopped(&self) -> bool {
        matches!(self.ended, EndReason::Budget | EndReason::Stopped)
    }

    /// The last line of a comparison in a results file. It has no measurements, because the trials
    /// have them.
    pub(crate) fn last_line(&self) -> Value {
        json!({
            "schema": COMPARISON_SCHEMA,
            "id": self.session.id,
            "ended": self.ended,
            "rounds": self.rounds,
            "look": self.look,
            "refused": self.refused,
            "noise": self.noise,
            "noise_floor": self.noise_floor,
            "flags": self.flags,
            "summaries": self.summaries,
        })
    }

    /// The ratio of any two arms, pair by pair, at the last look that was reached; `None` if the
    /// comparison was refused.
    pub(crate) fn paired(&self, arm: &str, baseline: &str) -> Option<Ratio> {
        let pairs = state::pairs(&self.trials, arm, baseline);
        stats::ratio(&pairs, &self.session.looks(), self.rounds).filter(|_| self.refused.is_none())
    }

    /// Whether any arm was removed because it failed.
    pub fn any_failed(&self) -> bool {
        self.summaries.iter().any(|s| s.failed.is_some())
    }
}

/// The first two arms whose values differ; `None` if all agree.
pub(super) fn disagreement(arms: &[Arm], trials: &[Trial]) -> Option<String> {
    let mut first: Vec<(&Option<String>, &Trial)> = Vec::new();
    for trial in trials.iter().filter(|t| t.failed.is_none()) {
        let Some(arm) = arms.iter().find(|a| counterfactual::is_of(trial, a)) else { continue };
        let Some(report) = trial.outcome.as_ref().and_then(|o| o.report.as_ref()) else { continue };
        // Commands other than decoders need not report a digest. If they do, the digest is
        // compared.
        if !arm.must_report && report.digest.is_none() {
            continue;
        }
        let Some((_, other)) = first.iter().find(|(values, _)| *values == &arm.values) else {
            first.push((&arm.values, trial));
            continue;
        };
        let Some(before) = other.outcome.as_ref().and_then(|o| o.report.as_ref()) else { continue };
        let name = |t: &Trial| match t.round {
            Some(round) => format!("{} (round {})", t.arm, round.saturating_add(1)),
            None => format!("{} (warm-up)", t.arm),
        };
        let a = name(other);
        let b = name(trial);
        let text = |d: &Option<String>| d.clone().unwrap_or_default();
        if before.digest != report.digest {
            return Some(format!(
                "digest of {a} is {}, of {b} {}",
                text(&before.digest),
                text(&report.digest)
            ));
        }
        if let (Some(x), Some(y)) = (before.samples, report.samples)
            && x != y
        {
            return Some(format!("{a} delivered {x} samples, {b} {y}"));
        }
    }
    None
}

/// Summarises the trials, as of the last planned look that was reached.
pub fn summarise(kept: Earlier) -> Comparison {
    let Earlier { session, trials, probes, resumed, ended } = kept;
    let refused = disagreement(&session.arms, &trials);
    let rounds = state::whole_rounds(&session, &trials);
    let look = session.looks().into_iter().rfind(|look| look.rounds <= rounds);
    let against =
        |arm: &Arm| state::against(&session, &trials, arm, rounds).filter(|_| refused.is_none());
    let noise = session.control.and_then(|i| against(session.arms.get(i)?));
    let noise_floor = noise.as_ref().map(stats::noise_floor);
    let mut summaries: Vec<ArmSummary> = session
        .arms
        .iter()
        .map(|arm| {
            let ratio = against(arm);
            let finding = ratio
                .filter(|_| look.is_some())
                .map(|r| RatioFinding::of(&r, noise_floor.unwrap_or(1.0)));
            ArmSummary { ratio, finding, ..of_arm(arm, &session, &trials, &probes) }
        })
        .collect();
    if let Some(control) = session.control.and_then(|i| summaries.get_mut(i)) {
        // The control is not judged by the noise floor, which comes from its own ratio. It could
        // never differ.
        control.finding =
            control.ratio.filter(|_| look.is_some()).map(|r| RatioFinding::of(&r, 1.0));
    }
    let ended = ended.unwrap_or(EndReason::Stopped);
    let mut flags = flags(&session, &trials, &resumed, look.map_or(usize::MAX, |look| look.rounds));
    if noise.and_then(|n| n.interval).is_some_and(|(low, high)| low > 1.0 || high < 1.0) {
        flags.insert(0, Flag::IdenticalArmsDiffer);
    }
    Comparison {
        session,
        trials,
        probes,
        summaries,
        noise,
        noise_floor,
        flags,
        refused,
        ended,
        rounds,
        look,
    }
}

/// The summary of one arm, before it is compared with the baseline.
fn of_arm(arm: &Arm, session: &Session, trials: &[Trial], probes: &[Probe]) -> ArmSummary {
    let own = || trials.iter().filter(|t| t.arm == arm.name);
    let counted: Vec<&Trial> = own().filter(|t| t.counted_time_s().is_some()).collect();
    let outcomes: Vec<_> = counted.iter().filter_map(|t| t.outcome.as_ref()).collect();
    let middle = |f: &dyn Fn(&Outcome) -> Option<f64>| middle(&outcomes, f);
    let largest = |f: &dyn Fn(&Outcome) -> Option<u64>| outcomes.iter().filter_map(|o| f(o)).max();
    let report = outcomes.last().and_then(|o| o.report.as_ref());
    let time_s = Spread::of(&counted.iter().filter_map(|t| t.counted_time_s()).collect::<Vec<_>>());
    let level = counted.iter().filter_map(|t| t.level).max();
    let stored_bytes = counted.last().and_then(|t| t.needed_bytes);
    let probe = probe_of(arm, report, probes);
    let mut work = WorkDemand { stored_bytes, ..work_demand(arm, session, &outcomes) };
    // Reading a file that is in memory does not use its store, unless the store is throttled.
    if level == Some(CacheLevel::Hot) && probe.is_none_or(|p| p.throttle.is_none()) {
        work = work.without_store();
    }
    let limit = probe.map(|p| p.limit(&work));
    // The limit is compared with the time that the workload reports, even if the comparison uses
    // the time of whole processes.
    let own_s =
        middle(&|o| o.report.as_ref().and_then(|r| r.open_to_last_s)).or(time_s.map(|t| t.median));
    let without = counterfactual::times(arm, trials);
    let bottleneck = own_s
        .filter(|_| limit.is_some() || without != Without::default())
        .map(|t| verdict(&limit.unwrap_or_default(), &work, t, without));
    ArmSummary {
        arm: arm.name.clone(),
        label: arm.label.clone(),
        version: report.and_then(|r| r.version.clone()),
        level,
        trials: counted.len(),
        rejected: own().filter(|t| t.rejected.is_some()).count(),
        failed: own().find_map(|t| t.failed.clone()),
        time_s,
        wall_s: middle(&|o| Some(o.usage.wall_s)),
        ratio: None,
        finding: None,
        cpu_s: middle(&|o| Some(o.usage.cpu_s())),
        peak_anon_bytes: largest(&|o| o.usage.peak_anon_bytes),
        peak_file_bytes: largest(&|o| o.usage.peak_file_bytes),
        max_rss_bytes: largest(&|o| o.usage.max_rss_bytes),
        device_read_bytes: middle(&|o| o.usage.device_read_bytes.map(|b| b as f64))
            .map(|b| b as u64),
        stored_bytes,
        decoded_bytes: work.decoded_bytes,
        samples: report.and_then(|r| r.samples),
        fraction_of_floor: limit.zip(own_s).and_then(|(l, t)| l.fraction_of_floor(t)),
        verdict: bottleneck.as_ref().map(|v| v.words.clone()),
        bottleneck,
        build: report.and_then(|r| r.build.clone()),
        limit,
        latency_us: latency(&outcomes),
        stages: stages(&outcomes),
    }
}

/// The median of `f` over the outcomes that have a value.
fn middle(outcomes: &[&Outcome], f: &dyn Fn(&Outcome) -> Option<f64>) -> Option<f64> {
    median(&outcomes.iter().filter_map(|o| f(o)).collect::<Vec<_>>())
}

/// The demand of an arm's trials. The stored bytes are left out, because a suite may state them.
fn work_demand(arm: &Arm, session: &Session, outcomes: &[&Outcome]) -> WorkDemand {
    let report = outcomes.last().and_then(|o| o.report.as_ref());
    let decoded = report.and_then(|r| r.bytes_decoded);
    let samples = report.and_then(|r| r.samples);
    let threads = report.and_then(|r| r.threads).map_or(f64::INFINITY, |n| n as f64);
    let own_cpu_s = |o: &Outcome| o.report.as_ref().and_then(|r| r.cpu_s).or(Some(o.usage.cpu_s()));
    let cpu_s = middle(outcomes, &own_cpu_s);
    let stages = stages(outcomes);
    let busy = |name: &str| stages.iter().find(|s| s.name == name).and_then(|s| s.busy_s);
    WorkDemand {
        stored_bytes: None,
        requests: report.and_then(|r| r.requests),
        dependent_requests: report.and_then(|r| r.dependent_requests),
        decoded_bytes: decoded.or_else(|| samples.zip(arm.sample_bytes).map(|(n, b)| n * b)),
        cpu_s,
        consumer_s: consumer_s(busy("decode"), busy("deliver"), cpu_s),
        cores: cores(arm, session).min(threads),
    }
}

/// The CPU seconds of the consumer. It shares its threads with the decoder, and both are timed by a
/// clock that goes on while another process has the core. So the consumer has at most its share of
/// the CPU seconds.
fn consumer_s(decode: Option<f64>, deliver: Option<f64>, cpu_s: Option<f64>) -> Option<f64> {
    let deliver = deliver?;
    let (Some(decode), Some(cpu_s)) = (decode, cpu_s) else { return Some(deliver) };
    let both = decode + deliver;
    Some(if both > 0.0 { deliver.min(cpu_s * deliver / both) } else { deliver })
}

/// The probe of the arm's first file. The throttle of the probe must equal that of the arm, because
/// the figures of one throttle do not hold for another.
fn probe_of<'a>(
    arm: &Arm,
    report: Option<&WorkloadReport>,
    probes: &'a [Probe],
) -> Option<&'a Probe> {
    let throttle = report.and_then(|r| r.throttle.as_ref());
    let file = arm.files.first()?.display().to_string();
    probes.iter().find(|p| p.file == file && p.throttle.as_ref() == throttle)
}

impl WorkDemand {
    /// The demand of the same work if all bytes are in memory.
    fn without_store(self) -> Self {
        Self {
            stored_bytes: self.stored_bytes.map(|_| 0),
            requests: self.requests.map(|_| 0),
            dependent_requests: self.dependent_requests.map(|_| 0),
            ..self
        }
    }
}

/// The number of cores that the arm may use, by its pinning and the quota of the control group.
fn cores(arm: &Arm, session: &Session) -> f64 {
    let usable = session.host.cpus_usable.unwrap_or(1);
    let usable = arm.workload.cpus.as_ref().map_or(usable, Vec::len) as f64;
    session.host.cgroup_cpus.map_or(usable, |quota| quota.min(usable))
}

/// The distribution of the calls' durations: medians of each trial's mean and percentiles, and the
/// longest call of all trials.
fn latency(outcomes: &[&Outcome]) -> Option<Latency> {
    let each: Vec<Latency> =
        outcomes.iter().filter_map(|o| o.report.as_ref()?.latency_us).collect();
    let middle =
        |f: fn(&Latency) -> Option<f64>| median(&each.iter().filter_map(f).collect::<Vec<_>>());
    each.last().map(|last| Latency {
        n: last.n,
        mean: middle(|l| l.mean),
        p50: middle(|l| l.p50),
        p99: middle(|l| l.p99),
        max: each.iter().filter_map(|l| l.max).max_by(f64::total_cmp),
    })
}

fn stages(outcomes: &[&Outcome]) -> Vec<StageTimes> {
    let lists: Vec<Vec<StageTimes>> = outcomes
        .iter()
        .filter_map(|o| o.report.as_ref())
        .map(crate::workload::WorkloadReport::stage_list)
        .collect();
    let Some(names) = lists.last() else { return Vec::new() };
    let middle = |name: &str, f: &dyn Fn(&StageTimes) -> Option<f64>| {
        median(&lists.iter().flatten().filter(|s| s.name == name).filter_map(f).collect::<Vec<_>>())
    };
    names
        .iter()
        .map(|s| StageTimes {
            name: s.name.clone(),
            busy_s: middle(&s.name, &|s| s.busy_s),
            exposed_s: middle(&s.name, &|s| s.exposed_s),
        })
        .collect()
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x", units::digits(self.median))?;
        match self.interval {
            Some((low, high)) => write!(f, " [{}..{}]", units::digits(low), units::digits(high)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::consumer_s;

    #[test]
    fn other_load_is_not_the_consumers_work() {
        assert_eq!(consumer_s(Some(0.5), Some(0.5), Some(1.1)), Some(0.5));
        // The threads waited for a core nine tenths of the time.
        assert_eq!(consumer_s(Some(8.0), Some(2.0), Some(1.0)), Some(0.2));
        assert_eq!(consumer_s(None, Some(2.0), Some(1.0)), Some(2.0));
        assert_eq!(consumer_s(Some(0.0), Some(0.0), Some(1.0)), Some(0.0));
        assert_eq!(consumer_s(Some(1.0), None, Some(1.0)), None);
    }
}
