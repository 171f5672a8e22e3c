use super::*;
use crate::comparison::made_up::{session, trial};
use crate::comparison::{Earlier, summarise};

const ROUNDS: usize = 12;

/// The flags of a run on a quiet machine in which the arm takes twice as long as the baseline.
/// `change` gets each round with the trial of the baseline and that of the arm, and may change
/// both.
fn flagged(change: impl Fn(usize, &mut Trial, &mut Trial)) -> Vec<Flag> {
    let wobble = |round: usize| [1.0, 1.01, 0.995, 1.004][round % 4];
    let mut trials = Vec::new();
    for round in 0..ROUNDS {
        let (mut a, mut b) =
            (trial("a", round, wobble(round)), trial("b", round, 2.0 * wobble(round + 1)));
        change(round, &mut a, &mut b);
        trials.extend([a, b]);
    }
    let kept = Earlier {
        session: session(&["a", "b"], ROUNDS),
        trials,
        probes: Vec::new(),
        resumed: Vec::new(),
        ended: None,
    };
    let c = summarise(kept);
    assert_eq!(c.summaries[1].trials, ROUNDS, "whatever is odd still counts");
    c.flags
}

fn slow(trial: &mut Trial, factor: f64) {
    trial.time_s = trial.time_s.map(|t| t * factor);
}

fn load(trial: &mut Trial) -> &mut MachineLoad {
    &mut trial.outcome.get_or_insert_default().load
}

#[test]
fn a_quiet_run_has_no_flags() {
    assert_eq!(flagged(|_, _, _| {}), []);
}

#[test]
fn a_slowing_machine_differs_from_a_moving_ratio() {
    let both = flagged(|round, a, b| {
        let factor = 1.0 + 0.02 * round as f64;
        slow(a, factor);
        slow(b, factor);
    });
    assert!(
        matches!(both[..], [Flag::BaselineDrift { factor }] if (1.15..1.3).contains(&factor)),
        "{both:?}"
    );
    let one = flagged(|round, _, b| slow(b, 1.0 - 0.02 * round as f64));
    assert!(
        matches!(&one[..], [Flag::RatioDrift { arm, factor }] if arm == "b" && *factor < 0.85),
        "{one:?}"
    );
    assert!(one[0].to_string().contains("the ratio of b fell by"), "{}", one[0]);
}

#[test]
fn outliers_are_named() {
    let flags = flagged(|round, _, b| slow(b, if round == 3 || round == 7 { 1.5 } else { 1.0 }));
    assert!(
        matches!(
            &flags[..],
            [Flag::Outliers { arm, rounds, .. }] if arm == "b" && rounds == &[3, 7]
        ),
        "{flags:?}"
    );
    assert!(flags[0].to_string().contains("b in rounds 4, 8, up to 1.49 times"), "{}", flags[0]);
}

#[test]
fn load_of_other_programs_is_reported() {
    let flags = flagged(|round, a, b| {
        load(a).stolen_cpu_s = Some(if round == 5 { 0.4 } else { 0.0 });
        load(b).other_cpu_s = Some(0.8);
        load(b).cpu_pressure = Some(if round == 2 { 0.9 } else { 0.1 });
    });
    let told: Vec<String> = flags.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|t| t.contains("hypervisor") && t.contains("up to 9.90 % in a trial")),
        "{told:?}"
    );
    assert!(told.iter().any(|t| t.contains("others used 9.98 %")), "{told:?}");
    assert!(
        told.iter().any(|t| t.contains("b in round 3 waited for a CPU up to 90.0 %")),
        "{told:?}"
    );
    let ticks = flagged(|_, a, _| load(a).stolen_cpu_s = Some(0.001));
    assert_eq!(ticks, [], "under a tick a trial, and 0.01 % of it all");
}

#[test]
fn a_clock_that_was_set_is_reported() {
    let flags = flagged(|round, a, _| a.clock_step_s = Some(if round == 1 { -3.0 } else { 1e-5 }));
    assert_eq!(flags, [Flag::ClockStep { arm: "a".into(), round: Some(1), step_s: -3.0 }]);
    assert!(flags[0].to_string().contains("set back by 3"), "{}", flags[0]);
}
