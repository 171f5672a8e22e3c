//! The headline of a comparison: who was faster by how much, in one sentence that claims no more
//! than was shown, with badges for what a reader should know before believing it.

use crate::cache_level::CacheLevel;
use crate::comparison::{ArmSummary, Comparison, Flag};
use crate::stats::{MIN_PAIRS, Ratio, RatioFinding};
use crate::units::{digits, seconds};

/// The headline of one comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Headline {
    pub(super) outcome: Outcome,
    /// The sentence, without the badges.
    pub(super) words: String,
    pub(super) badges: Vec<Badge>,
}

/// The outcome for the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    BaselineFaster,
    BaselineSlower,
    NoDifferenceShown,
    /// Nothing was compared, or nothing may be concluded.
    Nothing,
}

/// A doubt in two or three words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Badge {
    pub(super) words: &'static str,
    /// The doubt in figures.
    pub(super) why: String,
}

impl Headline {
    /// The sentence with its badges in brackets, for plain text.
    pub(super) fn text(&self) -> String {
        let badges: Vec<&str> = self.badges.iter().map(|badge| badge.words).collect();
        if badges.is_empty() {
            return self.words.clone();
        }
        format!("{} ({})", self.words, badges.join("; "))
    }
}

/// The headline of `c`.
pub(super) fn headline(c: &Comparison) -> Headline {
    let rival = rival(c);
    let (outcome, words) = outcome(c, rival);
    Headline { outcome, words, badges: badges(c, rival) }
}

/// How often the baseline of these comparisons was the faster; `None` for a single comparison.
pub(super) fn tally(comparisons: &[Comparison]) -> Option<String> {
    let all: Vec<Outcome> = comparisons.iter().map(|c| headline(c).outcome).collect();
    let count = |outcome: Outcome| all.iter().filter(|o| **o == outcome).count();
    let mut names = comparisons.iter().map(|c| c.session.arms.first().map(|a| a.name.as_str()));
    let first = names.next()??;
    let baseline = if names.all(|name| name == Some(first)) { first } else { "the baseline" };
    let mut parts = vec![
        format!("{baseline} is faster in {}", count(Outcome::BaselineFaster)),
        format!("slower in {}", count(Outcome::BaselineSlower)),
        format!("no difference is shown in {}", count(Outcome::NoDifferenceShown)),
    ];
    let nothing = count(Outcome::Nothing);
    if nothing > 0 {
        parts.push(format!("nothing is concluded in {nothing}"));
    }
    let others = "each time against the fastest arm of another program, where there is one";
    (all.len() > 1)
        .then(|| format!("Of {} comparisons, {} ({others}).", all.len(), parts.join(", ")))
}

/// The arm that the headline sets against the baseline, and of how many it is the fastest.
#[derive(Debug, Clone, Copy)]
struct Rival<'a> {
    arm: &'a ArmSummary,
    ratio: Ratio,
    of: usize,
}

/// The arm that the baseline is set against. First come arms of other programs, then those with the
/// baseline's settings, such as the number of threads; among these an arm that beats the baseline,
/// then the fastest.
fn rival(c: &Comparison) -> Option<Rival<'_>> {
    let baseline = c.summaries.first()?;
    let others =
        c.summaries.iter().enumerate().skip(1).filter(|(i, _)| Some(*i) != c.session.control);
    let mut pool: Vec<(usize, &ArmSummary, Ratio)> =
        others.filter_map(|(i, s)| Some((i, s, s.ratio?))).collect();
    prefer(&mut pool, |(_, s, _)| program(s) != program(baseline));
    prefer(&mut pool, |(i, ..)| has_same_settings(c, *i));
    let beats = |s: &ArmSummary| s.finding == Some(RatioFinding::Faster);
    let (_, arm, ratio) = *pool.iter().min_by(|(_, a, x), (_, b, y)| {
        beats(b).cmp(&beats(a)).then(x.median.total_cmp(&y.median))
    })?;
    Some(Rival { arm, ratio, of: pool.len() })
}

/// Keeps the items that are wanted, or all of them if none is.
fn prefer<T>(items: &mut Vec<T>, wanted: impl Fn(&T) -> bool) {
    if items.iter().any(&wanted) {
        items.retain(wanted);
    }
}

/// Whether no setting of arm number `i` has another value than that of the baseline.
fn has_same_settings(c: &Comparison, i: usize) -> bool {
    let (Some(own), Some(base)) = (c.session.arms.get(i), c.session.arms.first()) else {
        return false;
    };
    own.settings.iter().all(|(k, v)| base.settings.get(k).is_none_or(|other| other == v))
}

/// The name of an arm's program, without its version.
fn program(s: &ArmSummary) -> Option<&str> {
    let version = s.version.as_deref()?;
    Some(version.rsplit_once(' ').map_or(version, |(name, _)| name))
}

fn outcome(c: &Comparison, rival: Option<Rival<'_>>) -> (Outcome, String) {
    if c.refused.is_some() {
        return (Outcome::Nothing, "refused: the arms did not decode the same values".into());
    }
    let Some(baseline) = c.summaries.first() else {
        return (Outcome::Nothing, "no arms".into());
    };
    let Some(rival) = rival else { return (Outcome::Nothing, alone(c, baseline)) };
    let name = &rival.arm.arm;
    let of = if rival.of > 1 { format!(" (the fastest of {})", rival.of) } else { String::new() };
    let pairs = format!("{} pairs{of}", rival.ratio.pairs);
    let both = format!("{} and {name}", baseline.arm);
    let ratio = in_brackets(&rival.ratio);
    match rival.arm.finding {
        Some(RatioFinding::Slower) => {
            let words = format!("{} {} {name} {}", baseline.arm, times(&rival.ratio), ratio);
            (Outcome::BaselineFaster, format!("{words}, {pairs}{}", bound(baseline, false)))
        }
        Some(RatioFinding::Faster) => {
            let ratio = inverse(&rival.ratio);
            let range = in_brackets(&ratio);
            let words = format!("{name} {} {} {range}", times(&ratio), baseline.arm);
            (Outcome::BaselineSlower, format!("{words}, {pairs}{}", bound(rival.arm, false)))
        }
        Some(RatioFinding::NoDifferenceShown) => {
            let noise = c
                .noise_floor
                .filter(|_| excludes_1(&rival.ratio))
                .map_or_else(String::new, |floor| {
                    format!(", within the noise of {} %", digits((floor - 1.0) * 100.0))
                });
            let words = format!(
                "no difference shown between {both}: {name} takes {}x the time {ratio}{noise}",
                digits(rival.ratio.median)
            );
            (Outcome::NoDifferenceShown, format!("{words}, {pairs}{}", bound(baseline, true)))
        }
        Some(RatioFinding::TooFewPairs) => (
            Outcome::Nothing,
            format!(
                "too few pairs to tell {both} apart: {}x the time over {pairs}, and an interval \
                 needs {MIN_PAIRS}",
                digits(rival.ratio.median)
            ),
        ),
        None => (
            Outcome::Nothing,
            format!(
                "nothing concluded about {both}: stopped after {} of at most {} rounds, before \
                 the first planned look",
                c.rounds, c.session.rounds
            ),
        ),
    }
}

/// The words for a comparison without a second arm, or whose other arms gave no pairs.
fn alone(c: &Comparison, baseline: &ArmSummary) -> String {
    let name = &baseline.arm;
    if c.session.arms.len() > 1 + usize::from(c.session.control.is_some()) {
        return format!("nothing to conclude: {name} has no pair with another arm");
    }
    let time = baseline.time_s.map_or("no time".into(), |t| seconds(t.median));
    match c.noise {
        Some(noise) => {
            let told = match noise.interval {
                Some((low, high)) if low > 1.0 || high < 1.0 => "identical arms were told apart",
                Some(_) => "no difference shown",
                None => "too few pairs",
            };
            let ratio = format!("{}x {}", digits(noise.median), in_brackets(&noise));
            format!("{name} against itself: {ratio}, {} pairs: {told}; {time}", noise.pairs)
        }
        None => format!("{name} alone: {time}, compared with nothing"),
    }
}

/// "2.99x faster than", for a ratio above 1.
fn times(ratio: &Ratio) -> String {
    format!("{}x faster than", digits(ratio.median))
}

fn in_brackets(ratio: &Ratio) -> String {
    ratio.interval.map_or("[no interval]".into(), |(low, high)| {
        format!("[{}, {}]", digits(low), digits(high))
    })
}

fn inverse(ratio: &Ratio) -> Ratio {
    Ratio {
        median: 1.0 / ratio.median,
        interval: ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
        pairs: ratio.pairs,
    }
}

fn excludes_1(ratio: &Ratio) -> bool {
    ratio.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

/// The bottleneck of an arm and its share of the machine's limit, each after a semicolon.
fn bound(s: &ArmSummary, named: bool) -> String {
    let percent = |share: f64| match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}"),
        p => digits(p),
    };
    let bound = s.bottleneck.as_ref().and_then(crate::verdict::Verdict::bound);
    let share =
        s.fraction_of_floor.map(|share| format!("{} % of this machine's limit", percent(share)));
    let parts: Vec<String> = [bound, share].into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false if named => format!("; {}: {}", s.arm, parts.join("; ")),
        false => format!("; {}", parts.join("; ")),
    }
}

/// The doubts about the headline.
fn badges(c: &Comparison, rival: Option<Rival<'_>>) -> Vec<Badge> {
    let mut badges = Vec::new();
    let mut say = |words: &'static str, why: Vec<String>| {
        if !why.is_empty() {
            badges.push(Badge { words, why: why.join("; ") });
        }
    };
    let flags = |wanted: fn(&Flag) -> bool| -> Vec<String> {
        c.flags.iter().filter(|flag| wanted(flag)).map(ToString::to_string).collect()
    };
    say("machine was not quiet", flags(is_load));
    say("clock or run was interrupted", flags(is_interruption));
    say("identical arms differ", flags(|flag| matches!(flag, Flag::IdenticalArmsDiffer)));
    let drifts = |flag: &&Flag| match flag {
        Flag::RatioDrift { arm, .. } => rival.is_some_and(|r| r.arm.arm == *arm),
        _ => false,
    };
    say("ratio drifts", c.flags.iter().filter(drifts).map(ToString::to_string).collect());
    say("within the control's scatter", overlap(c, rival).into_iter().collect());
    if c.noise.is_none() && rival.is_some() {
        say("noise not measured", vec!["no control arm repeats the baseline".into()]);
    }
    say("caches not verified", unverified(c, rival).into_iter().collect());
    say("caches not alike", unlike(c, rival).into_iter().collect());
    let failed: Vec<String> =
        c.summaries.iter().filter(|s| s.failed.is_some()).map(|s| s.arm.clone()).collect();
    say("an arm failed", failed);
    if c.stopped() && c.look.is_some() {
        let rounds = format!("{} of at most {} rounds", c.rounds, c.session.rounds);
        say("stopped early", vec![rounds]);
    }
    badges
}

fn is_load(flag: &Flag) -> bool {
    matches!(flag, Flag::Stolen { .. } | Flag::OthersBusy { .. } | Flag::Pressure { .. })
}

fn is_interruption(flag: &Flag) -> bool {
    matches!(flag, Flag::ClockStep { .. } | Flag::Interrupted { .. })
}

/// The doubt about a claim whose interval overlaps that of the control.
fn overlap(c: &Comparison, rival: Option<Rival<'_>>) -> Option<String> {
    let rival = rival?;
    let claimed = matches!(rival.arm.finding, Some(RatioFinding::Faster | RatioFinding::Slower));
    let (low, high) = rival.ratio.interval.filter(|_| claimed)?;
    let noise = c.noise?;
    let (least, most) = noise.interval?;
    (low <= most && high >= least)
        .then(|| format!("the interval overlaps that of the baseline against itself, {noise}"))
}

/// The doubt about caches whose state could not be shown.
fn unverified(c: &Comparison, rival: Option<Rival<'_>>) -> Option<String> {
    let arms = [c.summaries.first(), rival.map(|r| r.arm)];
    let of = |s: &&ArmSummary| s.level == Some(CacheLevel::Unverified);
    let names: Vec<&str> = arms.into_iter().flatten().filter(of).map(|s| s.arm.as_str()).collect();
    (!names.is_empty()).then(|| format!("not verified for every trial of {}", names.join(" and ")))
}

/// The doubt about arms that start with different states of the caches.
fn unlike(c: &Comparison, rival: Option<Rival<'_>>) -> Option<String> {
    let level = c.summaries.first()?.level?;
    let other = rival?.arm.level?;
    (level != other).then(|| format!("{level} trials are compared with {other} ones"))
}

#[cfg(test)]
mod tests;
