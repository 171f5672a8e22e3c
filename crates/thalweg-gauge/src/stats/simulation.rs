//! Simulated comparisons with known true ratios, on machines that drift, have outliers, or disturb
//! periodically.
//!
//! The tests here are small versions of the tables in `docs/method.md`, which `full_tables` prints.
#![allow(clippy::panic, clippy::print_stdout)]

use super::{Look, Pair, PairCount, Ratio, RatioFinding, looks, noise_floor, ratio};
use crate::schedule::{ArmOrder, SplitMix};

/// Random numbers that are the same on every machine.
struct Random(SplitMix);

impl Random {
    fn uniform(&mut self) -> f64 {
        (self.0.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let u = self.uniform().max(1e-300);
        let v = self.uniform();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

/// A simulated machine, with the state that it keeps from trial to trial.
struct SimulatedMachine {
    random: Random,
    /// The number of trials so far.
    trial: usize,
    /// The number of arms in a round.
    arms: usize,
    /// The logarithm of a slow drift.
    drift: f64,
    /// Whether a neighbour uses the machine.
    busy: bool,
}

/// Returns the time of the next trial. It would be 1 on an idle, perfect machine.
type Noise = fn(&mut SimulatedMachine) -> f64;

fn steady(m: &mut SimulatedMachine) -> f64 {
    (0.02 * m.random.normal()).exp()
}

fn log_normal(m: &mut SimulatedMachine) -> f64 {
    (0.1 * m.random.normal()).exp()
}

fn linear_drift(m: &mut SimulatedMachine) -> f64 {
    (0.3 * m.trial as f64 / 120.0).exp() * steady(m)
}

/// Drifts by about 10 % to either side, and returns half of the way within 14 trials.
fn wandering(m: &mut SimulatedMachine) -> f64 {
    m.drift = 0.95 * m.drift + 0.1 * (1.0_f64 - 0.95 * 0.95).sqrt() * m.random.normal();
    m.drift.exp() * steady(m)
}

fn random_walk(m: &mut SimulatedMachine) -> f64 {
    m.drift += 0.05 * m.random.normal();
    m.drift.exp() * steady(m)
}

/// One trial in five is delayed by a Pareto time with an infinite mean.
fn pareto_spikes(m: &mut SimulatedMachine) -> f64 {
    let hit = if m.random.chance(0.2) { 0.1 / m.random.uniform().max(1e-9) } else { 0.0 };
    steady(m) * (1.0 + hit)
}

/// A neighbour works for six trials on average, and makes each of them take 1.5 times as long.
fn bursts(m: &mut SimulatedMachine) -> f64 {
    m.busy = if m.busy { m.random.chance(5.0 / 6.0) } else { m.random.chance(0.05) };
    steady(m) * if m.busy { 1.5 } else { 1.0 }
}

/// The first trial of each round is slower.
fn first_pays(m: &mut SimulatedMachine) -> f64 {
    steady(m) * if m.trial.is_multiple_of(m.arms) { 1.1 } else { 1.0 }
}

/// A periodic disturbance: the first and the last trial of every two rounds are slower.
fn in_step(m: &mut SimulatedMachine) -> f64 {
    let place = m.trial % (2 * m.arms);
    steady(m) * if place == 0 || place == 2 * m.arms - 1 { 1.1 } else { 1.0 }
}

fn all_at_once(m: &mut SimulatedMachine) -> f64 {
    (0.3 * m.trial as f64 / 120.0).exp()
        * wandering(m)
        * pareto_spikes(m)
        * bursts(m)
        * log_normal(m)
}

const MACHINES: [(&str, Noise); 10] = [
    ("steady (2 %)", steady),
    ("log-normal (10 %)", log_normal),
    ("drifts by 35 %", linear_drift),
    ("wanders by 10 % (autocorrelated)", wandering),
    ("random walk, 5 % a trial", random_walk),
    ("Pareto delays, infinite mean", pareto_spikes),
    ("busy neighbour, in bursts", bursts),
    ("first of a round pays 10 %", first_pays),
    ("disturbance in step with the rounds", in_step),
    ("drift, delays, bursts and 10 % noise", all_at_once),
];

const ORDERS: [(&str, ArmOrder); 2] =
    [("ABBA", ArmOrder::Abba), ("random", ArmOrder::Random { seed: 0 })];

const AUTO: PairCount = PairCount::Auto { least: 8, most: 40, half_width: 0.05 };

const SEED: u64 = 0x7468_616c_7765_6721;

/// The result of a comparison of three arms: the baseline, an arm that takes `truth` times as long,
/// and the control.
struct SimulatedRun {
    pairs: usize,
    arm: Ratio,
    control: Ratio,
}

fn claims(ratio: &Ratio, floor: f64) -> bool {
    matches!(RatioFinding::of(ratio, floor), RatioFinding::Faster | RatioFinding::Slower)
}

/// The times of `arms` arms in each round. The second arm takes `truth` times as long as the
/// others.
fn rounds(
    noise: Noise,
    order: ArmOrder,
    arms: usize,
    truth: f64,
    seed: u64,
) -> impl Iterator<Item = Vec<f64>> {
    let random = Random(SplitMix(seed.wrapping_mul(SEED)));
    let mut machine = SimulatedMachine { random, trial: 0, arms, drift: 0.0, busy: false };
    let order = match order {
        ArmOrder::Random { .. } => ArmOrder::Random { seed },
        ArmOrder::Abba => ArmOrder::Abba,
    };
    (0..).map(move |round| {
        let mut times = vec![0.0; arms];
        for arm in order.round(arms, round) {
            times[arm] = noise(&mut machine) * if arm == 1 { truth } else { 1.0 };
            machine.trial += 1;
        }
        times
    })
}

fn ratio_of(times: &[Vec<f64>], arm: usize, looks: &[Look]) -> Option<Ratio> {
    let pair = |(round, t): (usize, &Vec<f64>)| Pair { round, arm_s: t[arm], baseline_s: t[0] };
    ratio(&times.iter().enumerate().map(pair).collect::<Vec<_>>(), looks, times.len())
}

/// Runs one comparison until the plan ends it.
fn run(noise: Noise, order: ArmOrder, pairs: PairCount, truth: f64, seed: u64) -> SimulatedRun {
    let looks = pairs.looks();
    let mut times = Vec::new();
    for round in rounds(noise, order, 3, truth, seed) {
        times.push(round);
        if looks.iter().all(|look| look.rounds != times.len()) {
            continue;
        }
        if let (Some(arm), Some(control)) =
            (ratio_of(&times, 1, &looks), ratio_of(&times, 2, &looks))
            && (pairs.enough(&[arm, control]) || times.len() == pairs.most())
        {
            return SimulatedRun { pairs: times.len(), arm, control };
        }
    }
    panic!("the rounds never end");
}

/// Shares of many runs, and their average number of pairs.
#[derive(Debug)]
struct ClaimTally {
    claims: f64,
    /// The share of runs with a claim if the noise between identical arms is ignored.
    without_floor: f64,
    /// The share of runs whose interval misses the true ratio.
    missed: f64,
    pairs: f64,
}

fn tally(noise: Noise, order: ArmOrder, pairs: PairCount, truth: f64, runs: u64) -> ClaimTally {
    let all: Vec<SimulatedRun> =
        (1..=runs).map(|seed| run(noise, order, pairs, truth, seed)).collect();
    let share = |f: &dyn Fn(&SimulatedRun) -> bool| {
        all.iter().filter(|r| f(r)).count() as f64 / runs as f64
    };
    ClaimTally {
        claims: share(&|r| claims(&r.arm, noise_floor(&r.control))),
        without_floor: share(&|r| claims(&r.arm, 1.0)),
        missed: share(&|r| r.arm.interval.is_some_and(|(low, high)| truth < low || truth > high)),
        pairs: all.iter().map(|r| r.pairs as f64).sum::<f64>() / runs as f64,
    }
}

/// The share of false claims, without the noise floor, if the run stops at the first planned look
/// with a claim.
fn impatient(noise: Noise, order: ArmOrder, runs: u64) -> f64 {
    let looks = AUTO.looks();
    let claim = |seed: &u64| {
        let times: Vec<_> = rounds(noise, order, 3, 1.0, *seed).take(AUTO.most()).collect();
        let at = |look: &Look| ratio_of(&times[..look.rounds], 1, &looks);
        looks.iter().filter_map(at).any(|r| claims(&r, 1.0))
    };
    (1..=runs).filter(claim).count() as f64 / runs as f64
}

/// Whether the 95 % interval of the plain percentile bootstrap of the median log-ratio excludes 0,
/// a ratio of 1.
fn bootstrap_claims(logs: &[f64], random: &mut Random) -> bool {
    let n = logs.len();
    let mut sample = vec![0.0; n];
    let mut medians: Vec<f64> = (0..400)
        .map(|_| {
            sample.fill_with(|| logs[(random.uniform() * n as f64) as usize]);
            sample.sort_unstable_by(f64::total_cmp);
            f64::midpoint(sample[n / 2], sample[(n - 1) / 2])
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    medians[10] > 0.0 || medians[389] < 0.0
}

/// The share of false claims of the bootstrap after `pairs` pairs; with `often`, after any pair
/// from the sixth on.
fn bootstrap(noise: Noise, order: ArmOrder, pairs: usize, runs: u64, often: bool) -> f64 {
    let claim = |seed: &u64| {
        let logs: Vec<f64> =
            rounds(noise, order, 3, 1.0, *seed).take(pairs).map(|t| (t[1] / t[0]).ln()).collect();
        let mut random = Random(SplitMix(*seed));
        let first = if often { 6 } else { pairs };
        (first..=pairs).any(|n| bootstrap_claims(&logs[..n], &mut random))
    };
    (1..=runs).filter(claim).count() as f64 / runs as f64
}

/// Of the comparisons of identical arms, at most one in twenty claims a difference.
#[test]
fn identical_arms_are_rarely_told_apart() {
    for (name, noise) in MACHINES {
        for (order_name, order) in ORDERS {
            for pairs in [AUTO, PairCount::Fixed(6), PairCount::Fixed(20)] {
                let tally = tally(noise, order, pairs, 1.0, 2000);
                let context = format!("{name}, {order_name}, {pairs:?}: {tally:?}");
                assert!(tally.claims <= 0.05, "{context}");
                // The interval alone is sufficient, without the noise floor. The standard error of
                // 2,000 runs is half a percent.
                assert!(tally.without_floor <= 0.055 && tally.missed <= 0.055, "{context}");
            }
            let impatient = impatient(noise, order, 2000);
            assert!(impatient <= 0.05, "{name}, {order_name}: {impatient}");
        }
    }
}

/// A difference of 10 % is found. An interval that never claims a difference would pass the test
/// above, and fails here.
#[test]
fn a_difference_of_a_tenth_is_found() {
    for (name, noise, pairs, least) in [
        ("steady", steady as Noise, AUTO, 0.99),
        ("steady, few pairs", steady, PairCount::Fixed(6), 0.95),
        ("drifting", linear_drift, AUTO, 0.99),
        ("wandering", wandering, AUTO, 0.9),
        ("with bursts", bursts, AUTO, 0.9),
    ] {
        for (order_name, order) in ORDERS {
            let tally = tally(noise, order, pairs, 1.1, 500);
            assert!(tally.claims >= least, "{name}, {order_name}: {tally:?}");
            // The bound is 5 % plus 3 standard errors.
            assert!(tally.missed <= 0.08, "{name}, {order_name}: {tally:?}");
        }
    }
}

/// A disturbance in step with the rounds fools a fixed order, but not a random one. This is why the
/// default order is random.
#[test]
fn random_order_breaks_periodic_load() {
    let false_claims = |order| {
        let claim = |seed: &u64| {
            let times: Vec<_> = rounds(in_step, order, 2, 1.0, *seed).take(20).collect();
            ratio_of(&times, 1, &looks(20, 20)).is_some_and(|r| claims(&r, 1.0))
        };
        (1..=500).filter(claim).count()
    };
    assert_eq!(false_claims(ArmOrder::Abba), 500);
    let random = false_claims(ArmOrder::Random { seed: 0 });
    assert!(random <= 35, "{random} of 500; 4.1 % are expected"); // 3 standard errors
}

/// Prints the tables of `docs/method.md`, which takes minutes.
#[test]
#[ignore = "prints tables, and decides nothing"]
fn full_tables() {
    const RUNS: u64 = 10_000;
    let percent = |x: f64| format!("{:.1} %", x * 100.0);
    println!(
        "\n| machine | order | pairs | false claims | without the floor | stopped at the first \
         claim | 6 pairs | 10 | 20 |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for (name, noise) in MACHINES {
        for (order_name, order) in ORDERS {
            let auto = tally(noise, order, AUTO, 1.0, RUNS);
            let fixed = [6, 10, 20].map(|n| {
                percent(tally(noise, order, PairCount::Fixed(n), 1.0, RUNS).without_floor)
            });
            let claims = percent(auto.claims);
            let without = percent(auto.without_floor);
            let pairs = auto.pairs;
            let first = percent(impatient(noise, order, RUNS));
            println!(
                "| {name} | {order_name} | {pairs:.1} | {claims} | {without} | {first} | {} |",
                fixed.join(" | ")
            );
        }
    }
    println!("\n| machine | automatic | its pairs | 6 pairs | 8 | 10 | 15 | 20 | 30 | 40 | 80 |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (name, noise) in MACHINES {
        let order = ArmOrder::Random { seed: 0 };
        let auto = tally(noise, order, AUTO, 1.1, RUNS / 5);
        let power = |n| percent(tally(noise, order, PairCount::Fixed(n), 1.1, RUNS / 5).claims);
        let fixed = [6, 8, 10, 15, 20, 30, 40, 80].map(power).join(" | ");
        println!("| {name} | {} | {:.1} | {fixed} |", percent(auto.claims), auto.pairs);
    }
    println!("\n| machine | 6 pairs | 10 | 20 | a look after each pair, 6 to 20 |");
    println!("|---|---:|---:|---:|---:|");
    for (name, noise) in MACHINES {
        let order = ArmOrder::Random { seed: 0 };
        let once =
            [6, 10, 20].map(|n| percent(bootstrap(noise, order, n, RUNS / 5, false))).join(" | ");
        println!("| {name} | {once} | {} |", percent(bootstrap(noise, order, 20, RUNS / 5, true)));
    }
}
