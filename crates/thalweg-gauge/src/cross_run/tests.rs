use super::*;

fn entry(arm: &str, times: &[f64]) -> ResultEntry {
    ResultEntry {
        experiment: "e".into(),
        arm: arm.into(),
        times: times.to_vec(),
        time_s: crate::comparison::Spread::of(times),
        digest: Some("d".into()),
        stored_bytes: Some(1_000_000),
        ..ResultEntry::default()
    }
}

fn against(entry: &ResultEntry, base: &ResultEntry) -> Against {
    unpaired(1, "before", entry, base)
}

#[test]
fn unpaired_intervals_need_seven_trials_of_each() {
    let many: Vec<f64> = (0..7).map(|i| 1.0 + 0.01 * f64::from(i)).collect();
    let slow: Vec<f64> = many.iter().map(|t| t * 2.0).collect();
    let a = against(&entry("x", &slow), &entry("x", &many));
    let ratio = a.ratio.map(|r| (r.median, r.interval));
    // The interval reaches from the smallest time over the largest to the largest over the
    // smallest, because the trials are not paired.
    assert_eq!(ratio.map(|r| (r.0 * 1000.0).round()), Some(2000.0));
    let (low, high) = ratio.and_then(|r| r.1).unwrap_or_default();
    assert!((low - 2.0 / 1.06).abs() < 1e-9 && (high - 2.12).abs() < 1e-9, "{low} {high}");
    assert_eq!((a.finding, a.paired), (Some(RatioFinding::Slower), false));
    let few = against(&entry("x", &slow[..6]), &entry("x", &many));
    assert_eq!(few.finding, Some(RatioFinding::TooFewPairs));
}

#[test]
fn a_difference_inside_the_noise_of_either_session_is_none() {
    let base: Vec<f64> = vec![1.0; 9];
    let slow: Vec<f64> = vec![1.1; 9];
    let noisy = ResultEntry { noise: Some(1.2), ..entry("x", &base) };
    assert_eq!(against(&entry("x", &slow), &entry("x", &base)).finding, Some(RatioFinding::Slower));
    assert_eq!(against(&entry("x", &slow), &noisy).finding, Some(RatioFinding::NoDifferenceShown));
}

#[test]
fn other_data_are_compared_by_the_byte_and_said_so() {
    let base = entry("x", &[1.0]);
    let double = ResultEntry {
        digest: Some("other".into()),
        stored_bytes: Some(2_000_000),
        ..entry("x", &[2.0])
    };
    let a = against(&double, &base);
    assert_eq!((a.basis, a.ratio.map(|r| r.median)), (Basis::TimePerStoredByte, Some(1.0)));
    let unknown = ResultEntry { digest: None, stored_bytes: None, ..entry("x", &[2.0]) };
    assert!(against(&unknown, &base).note.is_some_and(|n| n.contains("not known")));
    let refused = ResultEntry { trouble: Some("digests differ".into()), ..entry("x", &[2.0]) };
    assert!(against(&refused, &base).ratio.is_none());
}

#[test]
fn a_slower_machine_can_be_nearer_to_its_own_limit() {
    let fast = ResultEntry { limit_s: Some(0.5), ..entry("x", &[1.0]) };
    let slow = ResultEntry { limit_s: Some(1.8), ..entry("x", &[2.0]) };
    let a = against(&slow, &fast);
    assert_eq!(a.ratio.map(|r| r.median), Some(2.0));
    assert!(a.normalised.is_some_and(|n| (n - 0.5 / 0.9).abs() < 1e-12));
}

fn verdict(condition: &str, a: &Against) -> ConditionVerdict {
    let base = entry("x", &[1.0]);
    let row = ComparedRow {
        experiment: "e".into(),
        arm: "x".into(),
        cells: vec![Some(base.clone()), Some(entry("x", &[1.1]))],
        against: Vec::new(),
    };
    ResultCondition::parse(condition)
        .map_or(ConditionVerdict::Unknown, |c| c.check(&row, a, Some(&base)))
}

#[test]
fn conditions_hold_or_fail_or_are_undecided() {
    let a = against(&entry("x", &[1.1]), &entry("x", &[1.0]));
    assert_eq!(verdict("ratio > 1.05", &a), ConditionVerdict::Holds);
    assert_eq!(verdict("ratio>1.2", &a), ConditionVerdict::DoesNot);
    assert_eq!(verdict("low > 1.05", &a), ConditionVerdict::Unknown);
    assert_eq!(verdict("low > 1.05 and ratio > 1.2", &a), ConditionVerdict::DoesNot);
    assert_eq!(verdict("low > 1.05 or ratio >= 1.1", &a), ConditionVerdict::Holds);
    assert_eq!(verdict("time_s <= 1.1", &a), ConditionVerdict::Holds);
    assert_eq!(verdict("memory_ratio > 1", &a), ConditionVerdict::Unknown);
}

#[test]
fn conditions_are_refused_with_the_column() {
    for (text, column, expected) in [
        ("", 1, "ratio"),
        ("speed > 1", 1, "one of ratio"),
        ("ratio 1.05", 7, "one of > >="),
        ("ratio == 1", 7, "one of > >="),
        ("ratio > fast", 9, "a number"),
        ("ratio >", 8, "a number"),
        ("ratio > 1 , low > 1", 11, "\"and\""),
        ("ratio > 1 and", 14, "one of ratio"),
        ("ratio > nan", 9, "a number"),
    ] {
        let error = ResultCondition::parse(text).err().unwrap_or_default();
        assert!(
            error.starts_with(&format!("column {column}: ")) && error.contains(expected),
            "{text}: {error}"
        );
    }
}
