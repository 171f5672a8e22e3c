//! What a query of a network plans, and that a throttle holds it back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::Schema;
use thalweg::graph::{
    Change, Direction, Neighbours, Network, NetworkOptions, PlannedFetches, Population, Writer,
};
use thalweg::store::throttled::Limits;

const LATENCY: Duration = Duration::from_millis(20);

#[test]
fn a_throttled_query_plans_its_pages_once_and_takes_as_long_as_predicted_at_least() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path(), NetworkOptions::default()).unwrap();
    let population = writer
        .population(&Population {
            name: "A-B".into(),
            source: "A".into(),
            target: "B".into(),
            is_directed: true,
            is_multi: false,
            attributes: Arc::new(Schema::empty()),
        })
        .unwrap();
    let edges: Vec<(u64, u64)> =
        (0..200_000).map(|edge| (edge / 100, edge * 2_654_435_761 % (1 << 32))).collect();
    writer.commit(vec![Change::AddEdges { population, edges, attributes: None }]).unwrap();
    writer.compact().unwrap();
    drop(writer);

    let throttle = Some(Limits { latency: LATENCY, ..Limits::default() });
    let options = NetworkOptions { throttle, ..NetworkOptions::default() };
    let network = Network::open(dir.path(), options).unwrap();
    assert_eq!(network.planned(), PlannedFetches::default());
    let from = network.type_of("A").unwrap();
    let adjacencies = network.adjacencies(from, None, Direction::Out);
    let ids: Vec<u64> = (0..2_000).collect();
    let mut found = Neighbours::default();
    let began = Instant::now();
    network.neighbours(&adjacencies, &ids, &mut found).unwrap();
    let took = began.elapsed();
    let planned = network.planned();
    assert!(planned.load.requests > 0, "{planned:?}");
    assert!(planned.load.bytes > 400_000, "32 bits an id at least: {planned:?}");
    assert!(planned.predicted_s >= LATENCY.as_secs_f64(), "{planned:?}");
    // A lower bound: a store that is held back cannot be faster.
    assert!(took >= LATENCY, "{took:?}");

    network.neighbours(&adjacencies, &ids, &mut found).unwrap();
    assert_eq!(network.planned(), planned, "pages that were fetched before are in memory");
}
