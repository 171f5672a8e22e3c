//! The verdict: the bottleneck of a piece of work in one sentence, and whether runs without a stage
//! confirm it.
//!
//! The largest term of the [limit](crate::limit) names the stage. Two more runs test this: one has
//! its bytes in memory before its clock starts, and one fetches its bytes without decoding them. If
//! the store is the bottleneck, the first is faster and the second is not. If decoding is the
//! bottleneck, the second is faster and the first is not.

use serde::{Deserialize, Serialize};

use crate::limit::{Limit, Term, WorkDemand};
use crate::units::{bandwidth, decimal_bytes, digits, seconds};

/// A stage that a run leaves out, to measure its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmittedStage {
    /// The store is left out: the bytes are in memory before the clock starts.
    FromMemory,
    /// Decoding and everything after it are left out.
    WithoutDecoding,
}

impl OmittedStage {
    /// All stages that a run can leave out.
    pub const ALL: [Self; 2] = [Self::FromMemory, Self::WithoutDecoding];

    /// The part of a trial's name that says what was left out.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::FromMemory => " (bytes from memory)",
            Self::WithoutDecoding => " (decoding off)",
        }
    }
}

/// Times of the work without a stage; `None` if there was no such run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// Seconds with the bytes in memory.
    pub store_s: Option<f64>,
    /// Seconds with decoding switched off.
    pub decoding_s: Option<f64>,
}

/// The bottleneck of a piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The largest term of the limit; `None` if no limit is known.
    pub term: Option<Term>,
    /// The seconds of this term.
    pub bound_s: Option<f64>,
    /// The share of the time that the term explains; 1 is perfect.
    pub fraction: Option<f64>,
    /// Times of the work without a stage.
    pub without: Without,
    /// Whether the runs without a stage confirm the term; `None` if they were not made or show
    /// nothing.
    pub confirmed: Option<bool>,
    /// The amount and the rate that give the seconds of the term, in words.
    #[serde(default)]
    pub computed_from: Option<String>,
    /// The verdict in one sentence.
    pub words: String,
}

/// A term with at least this share of the time is reported as the bound. The rest is start-up and
/// imperfect overlap.
const CLOSE: f64 = 0.7;
/// A trial that is faster than the limit by up to this factor does not contradict the probe. The
/// probe and the trial are minutes apart, and machines drift.
const TOO_FAST: f64 = 1.05;
/// A difference below this share of the time is ignored, because there are few runs without a
/// stage.
const TELLING: f64 = 0.1;

/// The two sides of the work that a run can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StageSide {
    Store,
    Work,
}

/// Finds the bottleneck of a piece of work that took `time_s`.
pub fn verdict(limit: &Limit, work: &WorkDemand, time_s: f64, without: Without) -> Verdict {
    let largest = limit.largest();
    let fraction = largest.map(|(_, bound_s)| bound_s / time_s);
    let side = side(time_s, without);
    let term_side =
        largest.map(|(term, _)| if term.is_store() { StageSide::Store } else { StageSide::Work });
    let confirmed = side.zip(term_side).map(|(a, b)| a == b);
    let words = [stage(limit, work, time_s), confirmation(confirmed, side, without, time_s)];
    Verdict {
        term: largest.map(|(term, _)| term),
        bound_s: largest.map(|(_, bound_s)| bound_s),
        fraction,
        without,
        confirmed,
        computed_from: largest.map(|(term, bound_s)| figures(term, work, bound_s)),
        words: words.into_iter().flatten().collect::<Vec<_>>().join("; "),
    }
}

/// The term in words.
fn name(term: Term) -> &'static str {
    match term {
        Term::Device => "the store's bandwidth",
        Term::Requests => "the store's request rate",
        Term::Latency => "waiting for one request after the other",
        Term::Decode => "decoding",
        Term::Consumer => "the consumer",
        Term::Memory => "memory bandwidth",
    }
}

/// How much of the time a term explains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Explained {
    /// More than there is: its probe is not the limit.
    TooMuch,
    /// Most of it: the work is bound by the term.
    Most,
    Little,
}

impl Explained {
    fn of(fraction: f64) -> Self {
        match fraction {
            f if f > TOO_FAST => Self::TooMuch,
            f if f >= CLOSE => Self::Most,
            _ => Self::Little,
        }
    }
}

impl Verdict {
    /// The largest term, for a table that has its share beside it; `None` if no limit is known.
    pub(crate) fn largest(&self) -> Option<String> {
        let name = name(self.term?);
        let is_bound = Explained::of(self.fraction?) == Explained::Most;
        let is_bound = is_bound && self.confirmed != Some(false);
        Some(if is_bound { format!("bound by {name}") } else { format!("{name}, not the bound") })
    }

    /// The bottleneck in a few words, as in "bound by decoding"; `None` if no limit is known.
    ///
    /// A term that explains little of the time, or that runs without a stage contradict, is not
    /// called the bound.
    pub(crate) fn bound(&self) -> Option<String> {
        let name = name(self.term?);
        let fraction = self.fraction?;
        Some(match Explained::of(fraction) {
            Explained::TooMuch => format!("faster than its probe says {name} allows"),
            _ if self.confirmed == Some(false) => {
                format!("{name} is the largest term, but runs without a stage contradict it")
            }
            Explained::Most => format!("bound by {name}"),
            Explained::Little => {
                let percent = digits(fraction * 100.0);
                format!("not bound by one term (the largest, {name}, is {percent} %)")
            }
        })
    }
}

/// The side whose removal makes the work clearly faster than the removal of the other side.
fn side(time_s: f64, without: Without) -> Option<StageSide> {
    let store = without.store_s?;
    let decoding = without.decoding_s?;
    let clear =
        |less: f64, more: f64| less < more * (1.0 - TELLING) && less < time_s * (1.0 - TELLING);
    if clear(store, decoding) {
        Some(StageSide::Store)
    } else if clear(decoding, store) {
        Some(StageSide::Work)
    } else {
        None
    }
}

fn stage(limit: &Limit, work: &WorkDemand, time_s: f64) -> Option<String> {
    let Some((term, bound_s)) = limit.largest() else { return Some("no limit known".into()) };
    let fraction = bound_s / time_s;
    let name = name(term);
    let percent = digits(fraction * 100.0);
    let figures = figures(term, work, bound_s);
    let took = seconds(time_s);
    Some(match Explained::of(fraction) {
        Explained::TooMuch => format!(
            "faster than {name} allows by its probe ({figures}, the work took {took}): the probe \
             is not the limit"
        ),
        Explained::Most => {
            format!("bound by {name}: {figures} of the {took} that it took ({percent} %)")
        }
        Explained::Little => format!(
            "waits: the largest term is {name}, but {figures}, which is {percent} % of the {took} \
             that it took"
        ),
    })
}

/// The amount, the rate and the time of a term, in words.
fn figures(term: Term, work: &WorkDemand, bound_s: f64) -> String {
    let takes = seconds(bound_s);
    let bytes = |bytes: Option<u64>, kind: &str| {
        let bytes = bytes.unwrap_or(0) as f64;
        format!("{} {kind} at {} take {takes}", decimal_bytes(bytes), bandwidth(bytes / bound_s))
    };
    let cores = (work.cores * 100.0).round() / 100.0;
    let cpu = |cpu_s: f64| format!("{} of CPU on {cores} cores take {takes}", seconds(cpu_s));
    match term {
        Term::Device => bytes(work.stored_bytes, "stored"),
        Term::Memory => bytes(work.decoded_bytes, "decoded"),
        Term::Requests => {
            let requests = work.requests.unwrap_or(0);
            format!("{requests} requests at {}/s take {takes}", digits(requests as f64 / bound_s))
        }
        Term::Latency => {
            let requests = work.dependent_requests.unwrap_or(0);
            format!(
                "{requests} of them at {} each take {takes}",
                seconds(bound_s / requests.max(1) as f64)
            )
        }
        Term::Decode => cpu(work.cpu_s.unwrap_or(0.0)),
        Term::Consumer => {
            format!(
                "{}, {} of it the consumer's,",
                cpu(work.cpu_s.unwrap_or(0.0)),
                seconds(work.consumer_s.unwrap_or(0.0))
            )
        }
    }
}

fn confirmation(
    confirmed: Option<bool>,
    side: Option<StageSide>,
    without: Without,
    time_s: f64,
) -> Option<String> {
    let store = without.store_s?;
    let decoding = without.decoding_s?;
    let times = format!(
        "{} with the bytes from memory, {} with decoding off",
        seconds(store),
        seconds(decoding)
    );
    Some(match (confirmed, side) {
        (Some(true), _) => format!("confirmed: {times}"),
        (Some(false), Some(StageSide::Store)) => format!("contradicted, it is the store: {times}"),
        (Some(false), _) => format!("contradicted, it is the work on the bytes: {times}"),
        (None, Some(StageSide::Store)) => format!("it is the store: {times}"),
        (None, Some(StageSide::Work)) => format!("it is the work on the bytes: {times}"),
        (None, None) if store.min(decoding) < time_s * (1.0 - TELLING) => {
            format!("not decided, the store and the work on the bytes matter alike: {times}")
        }
        (None, None) => format!("not decided, neither alone is to blame: {times}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(store_s: f64, decoding_s: f64) -> Without {
        Without { store_s: Some(store_s), decoding_s: Some(decoding_s) }
    }

    fn work() -> WorkDemand {
        WorkDemand {
            stored_bytes: Some(2_000_000_000),
            requests: Some(2000),
            dependent_requests: Some(40),
            decoded_bytes: Some(4_000_000_000),
            cpu_s: Some(3.0),
            consumer_s: Some(2.0),
            cores: 2.0,
        }
    }

    fn words(limit: Limit, time_s: f64, without: Without) -> String {
        verdict(&limit, &work(), time_s, without).words
    }

    #[test]
    fn each_term_is_named_with_its_figures() {
        let none = Limit::default();
        for (limit, said) in [
            (
                Limit { device_s: Some(1.0), ..none },
                "bound by the store's bandwidth: 2.00 GB stored at 2.00 GB/s take 1.00 s",
            ),
            (
                Limit { requests_s: Some(1.0), ..none },
                "bound by the store's request rate: 2000 requests at 2000/s take 1.00 s",
            ),
            (
                Limit { latency_s: Some(1.0), ..none },
                "bound by waiting for one request after the other: 40 of them at 25.0 ms each \
                 take 1.00 s",
            ),
            (
                Limit { decode_s: Some(1.0), ..none },
                "bound by decoding: 3.00 s of CPU on 2 cores take 1.00 s",
            ),
            (
                Limit { decode_s: Some(0.3), consumer_s: Some(0.7), ..none },
                "bound by the consumer: 3.00 s of CPU on 2 cores take 1.00 s, 2.00 s of it the \
                 consumer's,",
            ),
            (
                Limit { memcpy_s: Some(1.0), ..none },
                "bound by memory bandwidth: 4.00 GB decoded at 4.00 GB/s take 1.00 s",
            ),
        ] {
            assert_eq!(
                words(limit, 1.25, Without::default()),
                format!("{said} of the 1.25 s that it took (80.0 %)")
            );
        }
    }

    #[test]
    fn the_report_names_a_term_that_explains_little_or_too_much() {
        let limit = Limit { device_s: Some(1.0), decode_s: Some(0.2), ..Limit::default() };
        assert!(
            words(limit, 4.0, Without::default())
                .starts_with("waits: the largest term is the store's bandwidth, but")
        );
        assert!(words(limit, 0.5, Without::default()).contains("the probe is not the limit"));
        let nothing = verdict(&Limit::default(), &WorkDemand::default(), 1.0, Without::default());
        assert_eq!(
            (nothing.words.as_str(), nothing.term, nothing.confirmed),
            ("no limit known", None, None)
        );
    }

    #[test]
    fn a_term_is_called_the_bound_only_if_nothing_speaks_against_it() {
        let says = |fraction: f64, without| {
            let limit = Limit { decode_s: Some(fraction), ..Limit::default() };
            verdict(&limit, &work(), 1.0, without).bound().unwrap_or_default()
        };
        let none = Without::default();
        assert_eq!(says(0.9, none), "bound by decoding");
        assert_eq!(says(0.9, without(0.95, 0.35)), "bound by decoding");
        assert!(says(0.9, without(0.2, 0.9)).contains("contradict"));
        assert!(says(0.4, none).starts_with("not bound by one term (the largest, decoding, is 40"));
        assert!(says(2.0, none).starts_with("faster than its probe"));
        let largest = |fraction: f64, without| {
            let limit = Limit { decode_s: Some(fraction), ..Limit::default() };
            verdict(&limit, &work(), 1.0, without).largest().unwrap_or_default()
        };
        assert_eq!(largest(0.9, none), "bound by decoding");
        for (fraction, without) in [(0.9, without(0.2, 0.9)), (0.4, none), (2.0, none)] {
            assert_eq!(largest(fraction, without), "decoding, not the bound");
        }
        let unknown = verdict(&Limit::default(), &work(), 1.0, none);
        assert_eq!((unknown.bound(), unknown.computed_from), (None, None));
    }

    #[test]
    fn removing_a_stage_confirms_or_contradicts_a_verdict() {
        let store = Limit { device_s: Some(0.9), decode_s: Some(0.5), ..Limit::default() };
        let says = |limit: &Limit, without| {
            let v = verdict(limit, &work(), 1.0, without);
            (v.confirmed, v.words)
        };
        let (confirmed, words) = says(&store, without(0.55, 0.97));
        assert_eq!(confirmed, Some(true));
        assert!(
            words.ends_with(
                "; confirmed: 550 ms with the bytes from memory, 970 ms with decoding off"
            ),
            "{words}"
        );
        let (confirmed, words) = says(&store, without(0.98, 0.4));
        assert_eq!(confirmed, Some(false));
        assert!(words.contains("; contradicted, it is the work on the bytes: "), "{words}");
        let decode = Limit { device_s: Some(0.3), decode_s: Some(0.9), ..Limit::default() };
        assert_eq!(says(&decode, without(0.95, 0.35)).0, Some(true));
        let (confirmed, words) = says(&decode, without(0.2, 0.9));
        assert_eq!(confirmed, Some(false));
        assert!(words.contains("contradicted, it is the store"), "{words}");
    }

    #[test]
    fn undecidable_evidence_gives_no_decision() {
        let limit = Limit { device_s: Some(0.9), ..Limit::default() };
        for (pair, said) in
            [(without(0.97, 0.95), "neither alone"), (without(0.5, 0.52), "matter alike")]
        {
            let v = verdict(&limit, &work(), 1.0, pair);
            assert!(v.confirmed.is_none() && v.words.contains(said), "{}", v.words);
        }
        let half = Without { store_s: Some(0.1), decoding_s: None };
        assert_eq!(verdict(&limit, &work(), 1.0, half).confirmed, None);
        let unknown = verdict(&Limit::default(), &work(), 1.0, without(0.1, 0.9));
        assert!(
            unknown.confirmed.is_none() && unknown.words.contains("; it is the store: "),
            "{}",
            unknown.words
        );
    }
}
