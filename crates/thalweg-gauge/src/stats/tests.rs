use super::*;

#[test]
fn medians() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[1.0, f64::NAN]), None);
}

/// Ranks from the published table of the sign test's 95 % interval.
#[test]
fn ranks_agree_with_the_published_table() {
    let table = [
        (5, None),
        (6, Some(1)),
        (8, Some(1)),
        (9, Some(2)),
        (12, Some(3)),
        (15, Some(4)),
        (20, Some(6)),
        (30, Some(10)),
        (100, Some(40)),
    ];
    for (n, k) in table {
        assert_eq!(ranks(&[(n, 0.05)])[0], k, "{n} pairs");
    }
    assert!(ranks(&[(5000, 0.05)])[0].is_some(), "no overflow");
    assert_eq!(ranks(&[(MIN_PAIRS - 1, 1.0 - CONFIDENCE)])[0], None);
    assert!(ranks(&[(MIN_PAIRS, 1.0 - CONFIDENCE)])[0].is_some());
}

/// Compares pairs of (arm, baseline) at a single look after the last pair.
fn at_the_end(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let pair = |(round, &(arm_s, baseline_s))| Pair { round, arm_s, baseline_s };
    ratio(
        &pairs.iter().enumerate().map(pair).collect::<Vec<_>>(),
        &looks(pairs.len(), pairs.len()),
        pairs.len(),
    )
}

#[test]
fn a_ratio_needs_times() {
    assert_eq!(at_the_end(&[]), None);
    assert_eq!(at_the_end(&[(1.0, 0.0)]), None);
    let five = at_the_end(&[(2.0, 1.0); 5]);
    assert_eq!(five.map(|r| RatioFinding::of(&r, 1.0)), Some(RatioFinding::TooFewPairs));
    let six = at_the_end(&[(2.0, 1.0); 6]);
    assert!(six.is_some_and(|r| (r.median - 2.0).abs() < 1e-12));
    assert_eq!(six.map(|r| RatioFinding::of(&r, 1.0)), Some(RatioFinding::Slower));
    assert_eq!(
        at_the_end(&[(1.0, 2.0); 6]).map(|r| RatioFinding::of(&r, 1.0)),
        Some(RatioFinding::Faster)
    );
}

#[test]
fn a_claim_must_clear_the_noise_of_identical_arms() {
    let r = Ratio { median: 1.05, interval: Some((1.02, 1.08)), pairs: 10 };
    assert_eq!(RatioFinding::of(&r, 1.0), RatioFinding::Slower);
    assert_eq!(RatioFinding::of(&r, 1.03), RatioFinding::NoDifferenceShown);
    let control = |median, low, high| Ratio { median, interval: Some((low, high)), pairs: 10 };
    assert_eq!(noise_floor(&control(1.25, 0.9, 1.3)), 1.25);
    assert_eq!(noise_floor(&control(0.8, 0.7, 1.1)), 1.25, "noise has no direction");
    assert_eq!(
        noise_floor(&control(0.8, 0.5, 0.9)),
        2.0,
        "identical arms that differ are out by as much as they may be"
    );
    assert_eq!(noise_floor(&control(1.1, 1.05, 1.5)), 1.5);
}
