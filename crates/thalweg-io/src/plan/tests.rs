use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::extent::Fetch;
use crate::store::throttled::{Limits, Schedule};

/// A rule that reads gaps up to `gap` bytes.
fn fixed(gap: u64) -> GapRule {
    GapRule::new(&StoreModel::LOCAL).or_given(Some(gap))
}

#[test]
fn merges_over_small_gaps_only() {
    let wanted = [10..20, 25..30, 100..110];
    let fetches: Vec<Fetch> = gather(wanted, fixed(5), 1000, u64::MAX).collect();
    assert_eq!(fetches.len(), 2);
    assert_eq!(fetches[0].range, 10..30);
    assert_eq!(fetches[1].range, 100..110);
    assert_eq!(gather([10..20, 25..30], fixed(4), 1000, u64::MAX).count(), 2);
    assert_eq!(
        gather([10..20, 20..30], fixed(0), 15, u64::MAX).count(),
        2,
        "a request is not longer than a block"
    );
}

#[test]
fn the_gap_is_the_fastest_one_for_the_store() {
    // A range of 10 kB every 100 kB.
    let ranges: Vec<Range<u64>> = (0..1000).map(|i| i * 100_000..i * 100_000 + 10_000).collect();
    let best = |bandwidth, request_rate| {
        let model = StoreModel { bandwidth, request_rate, ..StoreModel::LOCAL };
        Load::of(&ranges, GapRule::new(&model).gap(&ranges, 1 << 20), 1 << 20)
    };
    assert_eq!(
        best(150e6, 20_000.0),
        Load { requests: 1000, bytes: 10_000_000 },
        "a request costs less than a gap"
    );
    let swept = best(150e6, 100.0);
    assert!(swept.requests < 110 && swept.bytes > 90_000_000, "{swept:?}");
    assert_eq!(fixed(7).gap(&ranges, 1 << 20), 7);
    assert_eq!(GapRule::new(&StoreModel::LOCAL).gap(&[], 1 << 20), 0);
}

#[test]
fn a_lean_gap_leaves_bytes_that_save_little_time() {
    // Ranges of 10 kB: 500 at intervals of 14 kB, then 500 at intervals of 60 kB.
    let near = (0..500).map(|i| i * 14_000);
    let ranges: Vec<Range<u64>> =
        near.chain((0..500).map(|i| 7_000_000 + i * 60_000)).map(|at| at..at + 10_000).collect();
    let model = StoreModel { bandwidth: 1e9, request_rate: 14_000.0, ..StoreModel::LOCAL };
    let load = |gap| Load::of(&ranges, gap, 1 << 20);
    let rule = GapRule::new(&model);
    let best = rule.gap(&ranges, 1 << 20);
    let lean = rule.lean().gap(&ranges, 1 << 20);
    assert!(load(lean).bytes < load(best).bytes / 2, "{best} {lean}");
    assert!(load(lean).worth_s(&model) <= load(best).worth_s(&model) * 1.25);
    assert!(load(lean).requests < load(0).requests, "gaps that are worth it are read");
}

#[test]
fn a_prediction_is_the_larger_of_transfer_and_requests_and_a_little_of_the_smaller() {
    let model = StoreModel {
        latency_s: 0.0,
        bandwidth: 1e9,
        request_rate: 1e3,
        depth: 1,
        ..StoreModel::LOCAL
    };
    let seconds = |requests, bytes| Load { requests, bytes }.predicted(&model).as_secs_f64();
    assert_eq!(seconds(8, 2_000_000_000), 2.001);
    assert_eq!(seconds(5_000, 800_000_000), 5.1);
    assert_eq!(seconds(0, 0), 0.0);
    assert_eq!(in_turn(5, &StoreModel { latency_s: 0.1, ..model }), 0.5);
}

#[test]
fn a_prediction_has_the_slowest_request_and_what_is_decoded_after_it() {
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    let steady = StoreModel { latency_p99_s: None, connection: None, ..StoreModel::S3 };
    let seconds = |load: Load, model: &StoreModel, processor_s| {
        load.predicted_with(model, processor_s).as_secs_f64()
    };
    // One flight: all is decoded after its slowest request.
    let one = Load { requests: 20, bytes: 20 << 20 };
    let slowest_s = StoreModel::S3.slowest_s(20) + (1 << 20) as f64 / 85e6;
    let busy_s = overlapped(one.transfer_s(&StoreModel::S3), one.requests_s(&StoreModel::S3));
    let all_s = overlapped(overlapped(busy_s, 0.2), slowest_s - 0.03 + 0.2);
    near(seconds(one, &StoreModel::S3, 0.2), 0.03 + all_s);
    // Without varying latencies, the store and the processor work at the same time.
    near(seconds(one, &steady, 0.2), 0.03 + overlapped(busy_s, 0.2));
    // Of many flights, one is decoded after a slowest request.
    let many = Load { requests: 20_000, bytes: 20_000 << 20 };
    assert!(seconds(many, &StoreModel::S3, 30.0) < 30.0 * 1.15);
    assert!(seconds(many, &StoreModel::S3, 0.0) > many.transfer_s(&StoreModel::S3));
}

#[test]
fn small_requests_go_deeper() {
    let ranges = |len: u64| (0..1000).map(|i| i << 24..(i << 24) + len).collect::<Vec<_>>();
    let of = |len| {
        let rule = GapRule::new(&StoreModel::LOCAL);
        listed(&ranges(len), &rule, Budget::default(), Delivery::Worker, 0).shape
    };
    assert_eq!((of(4096).depth, of(4096).usual), (32, Some(4096)));
    assert_eq!(of(1 << 20).depth, 4);
    assert_eq!(of(3 << 20).block, 3 << 20, "as long as the longest range");
}

/// Ranges in offset order that may overlap.
fn ordered() -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec((0..3_000_000u64, 1..90_000u64), 1..100).prop_map(|starts| {
        let mut ranges: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges
    })
}

/// Up to 3,000 ranges in offset order, in up to 500 MB.
fn scattered() -> impl Strategy<Value = Vec<Range<u64>>> {
    (1..500_000_000u64, 1..100_000u64, 1..3000usize).prop_flat_map(|(span, longest, count)| {
        prop::collection::vec((0..span, 0..longest), count).prop_map(|starts| {
            let mut ranges: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l + 1).collect();
            ranges.sort_unstable_by_key(|range| (range.start, range.end));
            ranges
        })
    })
}

proptest! {
    /// The counted load equals the load of the fetches.
    #[test]
    fn loads_are_those_of_the_fetches(
        starts in prop::collection::vec((0..100_000u64, 1..900u64), 1..200),
        gap in 0..3000u64, block in 1..9000usize,
    ) {
        let mut ranges: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let fetches: Vec<Fetch> = gather(ranges.clone(), fixed(gap), block, u64::MAX).collect();
        let bytes = fetches.iter().map(|fetch| fetch.range.end - fetch.range.start).sum();
        let requests = fetches.len() as u64;
        prop_assert_eq!(Load::of(&ranges, gap, block), Load { requests, bytes });
    }

    /// No other gap saves a tenth of the latency. A lean rule takes at most a quarter more time
    /// than the best, and chooses no longer gap.
    #[test]
    fn no_other_gap_is_quicker(
        ranges in ordered(), bandwidth in 1e7..1e10, rate in 50.0..5e5, log in 16..22u32,
    ) {
        let model = StoreModel { bandwidth, request_rate: rate, ..StoreModel::LOCAL };
        let block = 1 << log;
        let load = |gap| Load::of(&ranges, gap, block);
        let rule = GapRule::new(&model);
        let best = rule.gap(&ranges, block);
        let lean = rule.lean().gap(&ranges, block);
        for gap in [0, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152, 65_536] {
            let most_s = load(gap).worth_s(&model) + model.latency_s / 10.0;
            prop_assert!(load(best).worth_s(&model) <= most_s);
            let most_s = load(gap).worth_s(&model) * LEAN + model.latency_s / 10.0;
            prop_assert!(load(lean).worth_s(&model) <= most_s);
        }
        prop_assert!(lean <= best);
        prop_assert_eq!(rule.or_given(Some(77)).gap(&ranges, block), 77);
    }

    /// With the latency, a plan for an object store costs at most a tenth more than the best of all
    /// plans, which knows all ranges and may draw the line at any of their gaps.
    #[test]
    fn no_plan_of_all_is_much_quicker(ranges in scattered()) {
        let (model, block) = (StoreModel::S3, 1 << 20);
        let cost_s = |gap| model.latency_s + Load::of(&ranges, gap, block).worth_s(&model);
        let planned_s = cost_s(GapRule::new(&model).gap(&ranges, block));
        let gaps = ranges.windows(2).map(|pair| pair[1].start.saturating_sub(pair[0].end));
        let best_s = gaps.chain([0]).map(cost_s).fold(f64::INFINITY, f64::min);
        prop_assert!(planned_s <= best_s * 1.1, "{} {}", planned_s, best_s);
    }

    /// A prediction grows with requests and bytes, and is never below the time that either takes
    /// alone.
    #[test]
    fn predictions_are_bounds(
        requests in 1..100_000u64, bytes in 0..1u64 << 36, more in 0..1000u64,
        bandwidth in 1e6..1e10, rate in 1.0..1e6, latency_s in 0.0..0.1,
    ) {
        let model = StoreModel { latency_s, bandwidth, request_rate: rate, ..StoreModel::LOCAL };
        let load = Load { requests, bytes };
        let time_s = load.predicted(&model).as_secs_f64() + 1e-6;
        prop_assert!(time_s >= latency_s + load.transfer_s(&model).max(load.requests_s(&model)));
        let sum_s = latency_s + load.transfer_s(&model) + load.requests_s(&model);
        prop_assert!(time_s <= sum_s + 2e-6);
        let heavier = Load { requests: requests + more, bytes: bytes + more };
        prop_assert!(heavier.predicted(&model) >= load.predicted(&model));
    }

    #[test]
    fn every_extent_is_fetched_once_inside_its_fetch(
        starts in prop::collection::vec((0..10_000u64, 1..500u64), 0..200),
        gap in prop::option::of(0..300u64), block in 1..2000usize, window in 1..5000u64,
    ) {
        let wanted: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l).collect();
        let longest = wanted.iter().map(|r| r.end - r.start).max().unwrap_or(0);
        let mut seen = vec![false; wanted.len()];
        let mut latest = 0;
        let rule = GapRule::new(&StoreModel::LOCAL).or_given(gap);
        for fetch in gather(wanted.clone(), rule, block, window) {
            prop_assert!(fetch.range.end - fetch.range.start <= longest.max(block as u64));
            for extent in &fetch.extents {
                let i = extent.ordinal as usize;
                prop_assert!(!std::mem::replace(&mut seen[i], true));
                prop_assert_eq!(&extent.range, &wanted[i]);
                prop_assert!(extent.range.start >= fetch.range.start);
                prop_assert!(extent.range.end <= fetch.range.end);
            }
            // A window ends before the next begins, so nothing overtakes more than a window's
            // bytes.
            for extent in &fetch.extents {
                let i = extent.ordinal as usize;
                latest = latest.max(i);
                let overtaken: u64 = wanted[i..latest].iter().map(|r| r.end - r.start).sum();
                prop_assert!(overtaken <= window + longest);
            }
        }
        prop_assert!(seen.into_iter().all(|s| s));
    }

    #[test]
    fn shapes_stay_within_the_budget(
        threads in 1..64usize, mib in 16..512usize, depth in 1..64usize, log in 12..24u32,
        ranges in ordered(),
    ) {
        let model = StoreModel { depth, block: 1 << log, ..StoreModel::LOCAL };
        let budget = Budget { threads, memory: mib << 20 };
        let rule = GapRule::new(&model);
        let of_list = listed(&ranges, &rule, budget, Delivery::Ordered, 4096);
        prop_assert_eq!(of_list.shape.usual, Some(of_list.load.usual()));
        for shape in [shape(&model, budget, Delivery::Ordered), of_list.shape] {
            prop_assert!(shape.buffers * (shape.block + shape.headroom) <= budget.memory / 2);
            prop_assert!(shape.depth <= shape.max_depth && shape.max_depth < shape.buffers);
            prop_assert!(shape.depth >= 1);
            prop_assert!(shape.block.is_multiple_of(crate::store::PAGE));
            prop_assert!(shape.headroom.is_multiple_of(crate::store::PAGE));
        }
        prop_assert!((1..=16).contains(&side_depth(&model, 16)));
    }
}

/// The most that a lean rule may take, relative to the least time, with room for rounding.
const LEAN: f64 = 1.25 + 1e-9;

#[test]
fn only_lines_with_a_long_latency_are_filled() {
    let flight = |model: &StoreModel| {
        let shape = shape(model, Budget::default(), Delivery::Worker);
        (shape.flight_bytes, shape.flight_requests)
    };
    for near in [StoreModel::LOCAL, StoreModel::SSD, StoreModel::NVME, StoreModel::MEMORY] {
        assert_eq!(flight(&near), (0, 0), "{near:?}");
    }
    assert_eq!(flight(&StoreModel::S3), (33_000_000 + (32 << 20), 165));
}

/// The seconds that a store under these limits takes for requests of this length, without a clock.
/// In flight are as many as a run with this shape permits at its start.
fn simulated(limits: Limits, shape: &Shape, requests: u64, len: usize) -> f64 {
    let mut schedule = Schedule::new(limits);
    let mut answers: BinaryHeap<Reverse<Duration>> = BinaryHeap::new();
    let mut now = Duration::ZERO;
    let mut last = now;
    for number in 0..requests {
        let is_filled = answers.len() * len >= shape.flight_bytes;
        let flight = if is_filled { 0 } else { shape.flight_requests.min(shape.max_depth) };
        if answers.len() >= shape.depth.max(flight)
            && let Some(Reverse(answered)) = answers.pop()
        {
            now = now.max(answered);
        }
        let answered = schedule.admit(now, number, len);
        answers.push(Reverse(answered));
        last = last.max(answered);
    }
    last.as_secs_f64()
}

#[test]
fn predictions_hold_from_the_start_of_a_run() -> crate::Result<()> {
    // The throttles of docs/planner.md, an object store, and one at the other end of the world. A
    // throttle's latency does not vary, and it has no connections.
    let object = StoreModel { latency_p99_s: None, connection: None, ..StoreModel::S3 };
    let stores = [
        ("bandwidth=20MB/s,latency=2ms,requests=1000/s,parallel=16", StoreModel::LOCAL),
        ("bandwidth=100MB/s,latency=5ms,requests=50/s,parallel=16", StoreModel::LOCAL),
        ("bandwidth=40MB/s,latency=30ms,requests=500/s,parallel=32", StoreModel::LOCAL),
        ("bandwidth=1GB/s,latency=30ms,requests=2000/s", object),
        ("bandwidth=10MB/s,latency=150ms,requests=500/s", object),
    ];
    for (limits, model) in stores {
        let limits: Limits = limits.parse()?;
        let model = limits.applied_to(&model);
        let shape = shape(&model, Budget { threads: 2, ..Budget::default() }, Delivery::Worker);
        for len in [8_000, 80_000, 800_000] {
            for requests in [20, 75, 400] {
                let load = Load { requests, bytes: requests * len as u64 };
                let predicted_s = load.predicted(&model).as_secs_f64();
                let ratio = predicted_s / simulated(limits, &shape, requests, len);
                assert!((0.8..1.25).contains(&ratio), "{limits}: {requests} x {len}: {ratio}");
            }
        }
    }
    Ok(())
}
