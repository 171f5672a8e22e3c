use proptest::prelude::*;

use super::*;

const T: i64 = 1_000_000;

/// Ascending times of `pulses` pulses.
fn times(pulses: usize) -> Option<Vec<i64>> {
    Some((0..pulses as i64).map(|pulse| pulse * T).collect())
}

/// Makes pulses. Returns them and the findings: defect, entry, count.
fn read(index: &[u64], pulses: usize, events: u64) -> (Pulses, Vec<(Defect, Option<u64>, u64)>) {
    let (pulses, found) = Pulses::new(index.to_vec(), times(pulses), events);
    (pulses, found.iter().map(|finding| (finding.defect, finding.at, finding.count)).collect())
}

fn starts(index: &[u64], pulses: usize, events: u64) -> Vec<u64> {
    read(index, pulses, events).0.starts
}

#[test]
fn sound_indexes_are_accepted() {
    for (index, events) in
        [([0, 3, 3, 7], 8), ([0, 0, 0, 0], 0), ([0, 0, 0, 0], 1), ([0, 1, 2, 7], 7)]
    {
        assert_eq!(read(&index, 4, events).1, []);
        assert_eq!(starts(&index, 4, events), index);
    }
    assert_eq!(read(&[], 0, 0).1, []);
}

#[test]
fn truncated_indexes_leave_the_last_pulses_empty() {
    assert_eq!(starts(&[0, 3], 4, 8), [0, 3, 8, 8]);
    assert_eq!(read(&[0, 3], 4, 8).1, [(Defect::Truncated, Some(2), 2)]);
}

#[test]
fn an_index_that_is_one_short_lacks_its_last_entry_or_its_first() {
    assert_eq!(starts(&[0, 3, 5], 4, 8), [0, 3, 5, 8]);
    assert_eq!(starts(&[3, 5, 6], 4, 8), [0, 3, 5, 6]);
    for index in [[0, 3, 5], [3, 5, 6]] {
        assert_eq!(read(&index, 4, 8).1, [(Defect::OneShort, Some(3), 1)]);
    }
}

#[test]
fn longer_indexes_have_an_end_or_pulses_without_times() {
    assert_eq!(starts(&[0, 3, 8], 2, 8), [0, 3]);
    assert_eq!(read(&[0, 3, 8], 2, 8).1, [(Defect::Longer, Some(2), 1)]);
    let (pulses, found) = read(&[0, 3, 5, 6], 2, 8);
    assert_eq!(
        (pulses.starts.as_slice(), found),
        (&[0, 3, 5, 6][..], vec![(Defect::Longer, Some(2), 2)])
    );
    assert_eq!((pulses.time(1), pulses.time(2)), (Some(T), None));
}

#[test]
fn entries_that_decrease_are_set_aside() {
    assert_eq!(starts(&[0, 3, 7, 4, 5], 5, 8), [0, 3, 4, 4, 5]);
    assert_eq!(read(&[0, 3, 7, 4, 5], 5, 8).1, [(Defect::Decreasing, Some(3), 1)]);
    // An index written twice.
    assert_eq!(
        starts(&[0, 3, 7, 0, 3, 7], 6, 8).windows(2).filter(|pair| pair[0] > pair[1]).count(),
        0
    );
}

#[test]
fn entries_beyond_the_events_are_set_aside() {
    assert_eq!(starts(&[0, 9_000, 4, 5], 4, 8), [0, 4, 4, 5]);
    assert_eq!(read(&[0, 9_000, 4, 5], 4, 8).1, [(Defect::Beyond, Some(1), 1)]);
    // Events that were never written.
    assert_eq!(starts(&[0, 4, 9, 12], 4, 6), [0, 4, 6, 6]);
    assert_eq!(read(&[u64::MAX; 3], 3, 6).1[0], (Defect::Beyond, Some(0), 3));
}

#[test]
fn an_index_that_does_not_ascend_is_reported() {
    let index = [0, 2, 4, 5, 5, 5];
    assert_eq!(read(&index, 6, 100).1, [(Defect::Repeated, Some(3), 3)]);
    assert_eq!(starts(&index, 6, 100), index);
    // Pulses without events are no defect.
    assert_eq!(read(&index, 6, 7).1, []);
}

#[test]
fn events_before_the_first_pulse_have_none() {
    let (pulses, found) = read(&[2, 4], 2, 6);
    assert_eq!(found, [(Defect::BeforeFirst, Some(0), 2)]);
    let (mut numbers, mut at) = (Vec::new(), Vec::new());
    pulses.of_events(0..6, &mut numbers, &mut at);
    assert_eq!((numbers, at), (vec![-1, -1, 0, 0, 1, 1], vec![NO_TIME, NO_TIME, 0, 0, T, T]));
}

#[test]
fn decreasing_times_are_reported_and_selected_pulse_by_pulse() {
    let (pulses, found) = Pulses::new(vec![0, 2, 4, 6], Some(vec![0, 5, 3, NO_TIME]), 8);
    assert_eq!(
        found.iter().map(|finding| (finding.defect, finding.at, finding.count)).collect::<Vec<_>>(),
        [(Defect::TimesDecrease, Some(2), 1), (Defect::NoTime, Some(3), 1),]
    );
    assert_eq!(pulses.ranges(None, Some(0..4)), [0..2, 4..6]);
    assert_eq!(pulses.span(), Some((0, 5)));
}

#[test]
fn without_times_pulses_have_numbers() {
    let (pulses, found) = Pulses::new(vec![0, 2], None, 3);
    assert_eq!(found[0].defect, Defect::NoTimes);
    let first = |ranges: Vec<Range<u64>>| (ranges.len(), ranges.first().cloned());
    assert_eq!(first(pulses.ranges(Some(&(1..9)), None)), (1, Some(2..3)));
    assert_eq!(pulses.ranges(None, Some(0..9)), []);
    assert_eq!(first(Pulses::none(3).ranges(None, None)), (1, Some(0..3)));
    assert_eq!(Pulses::none(0).ranges(None, None), []);
}

/// The pulse of an event, found by a search over all entries.
fn naive(starts: &[u64], event: u64) -> i64 {
    starts.iter().rposition(|&start| start <= event).map_or(-1, |pulse| pulse as i64)
}

proptest! {
    /// For any index: the kept entries never decrease and stay inside the events, as few entries as
    /// possible are dropped, and a sound index gives no finding.
    #[test]
    fn any_index_is_mended(index in prop::collection::vec(0..30_u64, 0..40), events in 0..25_u64) {
        let (pulses, found) = Pulses::new(index.clone(), times(index.len()), events);
        prop_assert_eq!(pulses.len(), index.len());
        prop_assert!(pulses.starts.is_sorted());
        prop_assert!(pulses.starts.iter().all(|&start| start <= events));
        // The longest valid subsequence, by the textbook algorithm.
        let mut best = vec![0; index.len()];
        for (at, &start) in index.iter().enumerate().filter(|(_, start)| **start <= events) {
            let before = (0..at).filter(|&from| index[from] <= start).map(|from| best[from]);
            best[at] = 1 + before.max().unwrap_or(0);
        }
        let most = best.iter().max().copied().unwrap_or(0);
        let is_aside = |finding: &&EventFinding| {
            matches!(finding.defect, Defect::Decreasing | Defect::Beyond)
        };
        let aside: u64 = found.iter().filter(is_aside).map(|finding| finding.count).sum();
        prop_assert_eq!(aside, (index.len() - most) as u64);
        let kept = index.iter().zip(&pulses.starts).filter(|(was, is)| was == is).count();
        prop_assert!(kept >= most);
        if aside == 0 {
            prop_assert_eq!(&pulses.starts, &index);
        }
    }

    /// Ranges hold the same events as a loop over all events.
    #[test]
    fn ranges_are_those_of_a_loop(
        mut index in prop::collection::vec(0..60_u64, 0..30),
        times in prop::collection::vec(prop::option::weighted(0.9, 0..50_i64), 0..30),
        from in 0..40_u64, pulses in 0..40_u64, start in 0..50_i64, span in 0..50_i64,
        by_pulse: bool, by_time: bool,
    ) {
        index.sort_unstable();
        let times: Vec<i64> = times.into_iter().map(|time| time.unwrap_or(NO_TIME)).collect();
        let (read, _) = Pulses::new(index, Some(times), 60);
        let (pulses, times) = (from..from + pulses, start..start + span);
        let ranges = read.ranges(by_pulse.then_some(&pulses), by_time.then_some(times.clone()));
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert!(ranges.iter().all(|range| range.start < range.end));
        let (mut numbers, mut at) = (Vec::new(), Vec::new());
        read.of_events(0..60, &mut numbers, &mut at);
        for event in 0..60 {
            let pulse = naive(&read.starts, event);
            prop_assert_eq!(numbers[event as usize], pulse);
            let time = usize::try_from(pulse).ok().and_then(|pulse| read.time(pulse));
            prop_assert_eq!(at[event as usize], time.unwrap_or(NO_TIME));
            let wanted = (!by_pulse || pulse >= 0 && pulses.contains(&(pulse as u64)))
                && (!by_time || time.is_some_and(|time| times.contains(&time)));
            let found = ranges.iter().any(|range| range.contains(&event));
            prop_assert_eq!(found, wanted, "event {}", event);
        }
    }

    /// A part of the events gives the same values as the whole.
    #[test]
    fn parts_of_events_agree(
        mut index in prop::collection::vec(0..40_u64, 0..20),
        start in 0..40_u64, count in 0..40_u64,
    ) {
        index.sort_unstable();
        let (read, _) = Pulses::new(index.clone(), times(index.len()), 40);
        let part = start..(start + count).min(40).max(start);
        let (mut all, mut some, mut at) = (Vec::new(), Vec::new(), Vec::new());
        read.of_events(0..40, &mut all, &mut at);
        read.of_events(part.clone(), &mut some, &mut at);
        prop_assert_eq!(&all[part.start as usize..part.end as usize], &some[..]);
    }
}
