use super::*;
use crate::comparison::made_up::{session, summary, trial};
use crate::workload::WorkloadReport;

const ROUNDS: usize = 8;

/// The comparison of arms with these times, which scatter by the given share. The last arm is the
/// control if its name ends in "again".
fn compared(arms: &[(&str, f64)], scatter: f64) -> Comparison {
    changed(arms, scatter, |c| c)
}

fn changed(
    arms: &[(&str, f64)],
    scatter: f64,
    change: impl Fn(crate::comparison::Trial) -> crate::comparison::Trial,
) -> Comparison {
    let names: Vec<&str> = arms.iter().map(|a| a.0).collect();
    let mut session = session(&names, ROUNDS);
    session.control = names.iter().position(|name| name.ends_with("again"));
    let mut trials = Vec::new();
    for round in 0..ROUNDS {
        for (at, (name, time_s)) in arms.iter().enumerate() {
            let sign = if (round + at) % 2 == 0 { 1.0 } else { -1.0 };
            let far = scatter * (1.0 + round as f64 / 10.0);
            trials.push(change(trial(name, round, time_s * (1.0 + sign * far))));
        }
    }
    summary(session, trials)
}

fn words(c: &Comparison) -> String {
    headline(c).words
}

fn badge_words(c: &Comparison) -> Vec<&'static str> {
    headline(c).badges.iter().map(|badge| badge.words).collect()
}

#[test]
fn the_winner_is_named_whichever_it_is() {
    let won = compared(&[("a", 1.0), ("b", 3.0), ("a again", 1.0)], 0.001);
    assert_eq!(headline(&won).outcome, Outcome::BaselineFaster);
    assert_eq!(words(&won), "a 3.00x faster than b [2.99, 3.01], 8 pairs");
    let lost = compared(&[("a", 3.0), ("b", 1.0), ("a again", 3.0)], 0.001);
    assert_eq!(headline(&lost).outcome, Outcome::BaselineSlower);
    assert_eq!(words(&lost), "b 3.00x faster than a [2.99, 3.01], 8 pairs");
    assert_eq!(badge_words(&lost), Vec::<&str>::new());
}

#[test]
fn an_interval_with_1_shows_no_difference() {
    let c = compared(&[("a", 1.0), ("b", 1.01), ("a again", 1.0)], 0.1);
    let said = words(&c);
    assert_eq!(headline(&c).outcome, Outcome::NoDifferenceShown);
    assert!(said.starts_with("no difference shown between a and b: b takes "), "{said}");
    assert!(!said.contains("faster") && !said.contains("noise"), "{said}");
}

#[test]
fn a_difference_within_the_noise_is_none() {
    // The control is 10 % slower than the baseline, so a ratio of 1.05 is within the noise.
    let c = compared(&[("a", 1.0), ("b", 1.05), ("a again", 1.1)], 0.001);
    let said = words(&c);
    assert_eq!(headline(&c).outcome, Outcome::NoDifferenceShown);
    assert!(said.contains(", within the noise of 10"), "{said}");
    assert!(badge_words(&c).contains(&"identical arms differ"));
}

#[test]
fn the_fastest_rival_is_chosen_and_a_rival_that_won_before_all() {
    let c = compared(&[("a", 1.0), ("slow", 5.0), ("near", 2.0), ("a again", 1.0)], 0.001);
    assert_eq!(words(&c), "a 2.00x faster than near [2.00, 2.00], 8 pairs (the fastest of 2)");
    let c = compared(&[("a", 1.0), ("slow", 5.0), ("quick", 0.5), ("a again", 1.0)], 0.001);
    assert!(words(&c).starts_with("quick 2.00x faster than a "), "{}", words(&c));
}

#[test]
fn variants_of_the_same_program_are_no_rivals_beside_other_programs() {
    let version = |mut t: crate::comparison::Trial| {
        let name = if t.arm == "other" { "other 9" } else { "thalweg 1" };
        let report = WorkloadReport { version: Some(name.into()), ..WorkloadReport::default() };
        t.outcome.get_or_insert_default().report = Some(report);
        t
    };
    let arms = [("thalweg", 1.0), ("thalweg direct", 1.2), ("other", 3.0), ("thalweg again", 1.0)];
    let c = changed(&arms, 0.001, version);
    assert!(words(&c).starts_with("thalweg 3.00x faster than other "), "{}", words(&c));
    let c = changed(&arms[..2], 0.001, version);
    assert!(words(&c).contains("faster than thalweg direct"), "{}", words(&c));
    assert_eq!(badge_words(&c), ["noise not measured"]);
}

#[test]
fn arms_with_the_same_settings_are_compared() {
    let names = ["a, threads=1", "b, threads=1", "b, threads=2"];
    let mut session = session(&names, ROUNDS);
    for (arm, threads) in session.arms.iter_mut().zip([1, 1, 2]) {
        arm.settings.insert("threads".into(), threads.into());
    }
    let round = |round| names.iter().zip([1.0, 2.0, 0.5]).map(move |(n, s)| trial(n, round, s));
    let c = summary(session, (0..ROUNDS).flat_map(round).collect());
    assert_eq!(words(&c), "a, threads=1 2.00x faster than b, threads=1 [2.00, 2.00], 8 pairs");
}

#[test]
fn nothing_is_claimed_without_enough_pairs_or_equal_values() {
    let mut session = session(&["a", "b"], ROUNDS);
    let pair = |round| [trial("a", round, 1.0), trial("b", round, 2.0)];
    let few: Vec<_> = (0..3).flat_map(pair).collect();
    let c = summary(session.clone(), few.clone());
    assert_eq!(headline(&c).outcome, Outcome::Nothing);
    assert!(words(&c).starts_with("nothing concluded about a and b: stopped after 3"));
    session.looks = vec![crate::stats::Look { rounds: 3, alpha: 0.05 }];
    let c = summary(session.clone(), few.clone());
    assert!(words(&c).starts_with("too few pairs to tell a and b apart"), "{}", words(&c));
    let mut c = summary(session, few);
    c.refused = Some("digests".into());
    assert!(words(&c).starts_with("refused"));
    for c in [compared(&[("a", 1.0)], 0.01), compared(&[("a", 1.0), ("a again", 1.0)], 0.01)] {
        assert_eq!(headline(&c).outcome, Outcome::Nothing);
        assert!(!words(&c).contains("faster"));
    }
}

#[test]
fn doubts_are_badges() {
    let busy = |mut t: crate::comparison::Trial| {
        t.outcome.get_or_insert_default().load.other_cpu_s = Some(2.0);
        t
    };
    let c = changed(&[("a", 1.0), ("b", 3.0), ("a again", 1.0)], 0.001, busy);
    assert_eq!(badge_words(&c), ["machine was not quiet"]);
    assert!(headline(&c).badges[0].why.contains("others used"));
    assert!(headline(&c).text().ends_with("8 pairs (machine was not quiet)"));
    // The claim clears the floor, which is the control's median, and not the control's interval.
    let scatter = |mut t: crate::comparison::Trial| {
        if t.arm == "a again" && t.round.is_some_and(|r| r % 2 == 0) {
            t.time_s = Some(1.5);
        }
        t
    };
    let c = changed(&[("a", 1.0), ("b", 1.4), ("a again", 1.0)], 0.001, scatter);
    assert_eq!(headline(&c).outcome, Outcome::BaselineFaster);
    assert!(badge_words(&c).contains(&"within the control's scatter"), "{:?}", headline(&c));
}

#[test]
fn a_tally_counts_every_comparison() {
    let won = compared(&[("a", 1.0), ("b", 3.0), ("a again", 1.0)], 0.001);
    let lost = compared(&[("a", 3.0), ("b", 1.0), ("a again", 3.0)], 0.001);
    let even = compared(&[("a", 1.0), ("b", 1.01), ("a again", 1.0)], 0.1);
    let said = tally(&[won.clone(), lost, even]).unwrap_or_default();
    for part in ["Of 3", "a is faster in 1", "slower in 1", "no difference is shown in 1"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(tally(&[won]), None);
}
