//! A network as plain maps, and random changes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rand::RngExt;
use rand::rngs::SmallRng;
use thalweg::graph::{Change, Direction, Neighbours, Network, Population, Writer};

/// The types. Only the second one has attributes.
pub(super) const TYPES: [&str; 3] = ["cell", "site", "vessel"];

/// Populations of all kinds: name, ends, whether directed, whether several edges between two
/// vertices are allowed, whether there are attributes.
const POPULATIONS: [(&str, usize, usize, bool, bool, bool); 6] = [
    ("cell-site", 0, 1, false, false, false),
    ("site>vessel", 1, 2, true, true, true),
    ("cell-cell", 0, 0, false, false, false),
    ("cell>cell", 0, 0, true, true, false),
    ("vessel-vessel", 2, 2, false, true, true),
    ("cell>site", 0, 1, true, false, true),
];

/// A random id. Most ids come from a small range, so that changes affect the same vertices; a few
/// are very large.
fn id(rng: &mut SmallRng) -> u64 {
    match rng.random_range(0..20) {
        0 => u64::MAX - rng.random_range(0..3),
        1 => 1 << rng.random_range(32..63),
        _ => rng.random_range(0..24),
    }
}

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("weight", DataType::Int64, false),
        Field::new("label", DataType::Utf8, true),
    ]))
}

fn batch(values: &[i64]) -> RecordBatch {
    let labels: StringArray =
        values.iter().map(|v| (v % 3 != 0).then(|| format!("l{v}"))).collect();
    RecordBatch::try_new(
        schema(),
        vec![Arc::new(Int64Array::from(values.to_vec())), Arc::new(labels)],
    )
    .unwrap()
}

pub(super) fn value_of(batch: &RecordBatch, row: usize) -> i64 {
    let values = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    let labels = batch.column(1).as_any().downcast_ref::<StringArray>().unwrap();
    let value = values.value(row);
    assert_eq!(labels.is_null(row), value % 3 == 0);
    if !labels.is_null(row) {
        assert_eq!(labels.value(row), format!("l{value}"));
    }
    value
}

/// The expected contents of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    vertices: Vec<BTreeMap<u64, Option<i64>>>,
    /// For each pair of vertices, the attribute of each edge, in the order in which the edges were
    /// added.
    edges: Vec<BTreeMap<(u64, u64), Vec<i64>>>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            vertices: vec![BTreeMap::new(); TYPES.len()],
            edges: vec![BTreeMap::new(); POPULATIONS.len()],
        }
    }

    /// Makes a random change to the model, and returns the change for a writer.
    pub(super) fn step(&mut self, rng: &mut SmallRng) -> Change {
        let vertex_type = rng.random_range(0..TYPES.len());
        let population = rng.random_range(0..POPULATIONS.len());
        let (_, source, target, directed, several, attributed) = POPULATIONS[population];
        let count =
            if rng.random_bool(0.9) { rng.random_range(1..4) } else { rng.random_range(10..60) };
        let ids: Vec<u64> = (0..count).map(|_| id(rng)).collect();
        let values: Vec<i64> = (0..count).map(|_| rng.random_range(0..1000)).collect();
        let pairs: Vec<(u64, u64)> = (0..count).map(|_| (id(rng), id(rng))).collect();
        let in_order = |(s, t): (u64, u64)| {
            if !directed && source == target && s > t { (t, s) } else { (s, t) }
        };
        match rng.random_range(0..100) {
            0..10 => {
                let described = vertex_type == 1 && rng.random_bool(0.7);
                let (own, known) = (&values, &mut self.vertices[vertex_type]);
                for (id, value) in ids.iter().zip(own) {
                    known.entry(*id).or_insert(described.then_some(*value));
                }
                Change::AddVertices {
                    vertex_type,
                    ids,
                    attributes: described.then(|| batch(&values)),
                }
            }
            10..18 => {
                for (id, value) in ids.iter().zip(&values) {
                    self.vertices[1].insert(*id, Some(*value));
                }
                Change::SetVertices { vertex_type: 1, ids, attributes: batch(&values) }
            }
            18..24 => {
                let ids = ids.into_iter().take(2).collect::<Vec<_>>();
                self.remove(vertex_type, &ids);
                Change::RemoveVertices { vertex_type, ids }
            }
            24..40 => {
                for pair in &pairs {
                    self.edges[population].remove(&in_order(*pair));
                }
                Change::RemoveEdges { population, edges: pairs }
            }
            40 if rng.random_bool(0.4) => self.clear(rng),
            _ => {
                for (pair, value) in pairs.iter().zip(&values) {
                    let (s, t) = in_order(*pair);
                    let list = self.edges[population].entry((s, t)).or_default();
                    if several || list.is_empty() {
                        list.push(if attributed { *value } else { 0 });
                        self.vertices[source].entry(s).or_insert(None);
                        self.vertices[target].entry(t).or_insert(None);
                    }
                }
                Change::AddEdges {
                    population,
                    edges: pairs,
                    attributes: attributed.then(|| batch(&values)),
                }
            }
        }
    }

    /// Clears a random population or type in the model, and returns the change for a writer.
    pub(super) fn clear(&mut self, rng: &mut SmallRng) -> Change {
        if rng.random_bool(0.5) {
            let population = rng.random_range(0..POPULATIONS.len());
            self.edges[population].clear();
            return Change::ClearEdges { population };
        }
        let vertex_type = rng.random_range(0..TYPES.len());
        let ids: Vec<u64> = self.vertices[vertex_type].keys().copied().collect();
        self.remove(vertex_type, &ids);
        Change::ClearVertices { vertex_type }
    }

    fn remove(&mut self, vertex_type: usize, ids: &[u64]) {
        let gone: BTreeSet<u64> = ids.iter().copied().collect();
        self.vertices[vertex_type].retain(|id, _| !gone.contains(id));
        for ((_, source, target, ..), edges) in POPULATIONS.iter().zip(&mut self.edges) {
            edges.retain(|(s, t), _| {
                !(*source == vertex_type && gone.contains(s)
                    || *target == vertex_type && gone.contains(t))
            });
        }
    }

    /// Panics if the contents of a network differ from the model.
    pub(super) fn check(&self, network: &Network) {
        for (vertex_type, expected) in self.vertices.iter().enumerate() {
            let mut ids = Vec::new();
            network
                .vertices(vertex_type, 0..=u64::MAX, &mut |some| {
                    ids.extend_from_slice(some);
                    Ok(())
                })
                .unwrap();
            assert_eq!(
                ids,
                expected.keys().copied().collect::<Vec<_>>(),
                "vertices of {}",
                TYPES[vertex_type]
            );
            assert_eq!(network.vertex_count(vertex_type), expected.len() as u64);
            for id in [0, 5, 23, 1 << 40, u64::MAX] {
                assert_eq!(
                    network.has_vertex(vertex_type, id).unwrap(),
                    expected.contains_key(&id)
                );
            }
            if vertex_type == 1 {
                let (found, batch) = network.vertex_attributes(vertex_type, &ids).unwrap();
                let described: Vec<(u64, i64)> =
                    expected.iter().filter_map(|(id, v)| Some((*id, (*v)?))).collect();
                assert_eq!(
                    found.iter().map(|place| ids[*place]).collect::<Vec<_>>(),
                    described.iter().map(|d| d.0).collect::<Vec<_>>()
                );
                for (row, (_, value)) in described.iter().enumerate() {
                    assert_eq!(value_of(&batch, row), *value);
                }
            }
        }
        for (population, expected) in self.edges.iter().enumerate() {
            let (name, source, target, directed, several, attributed) = POPULATIONS[population];
            let total: usize = expected.values().map(Vec::len).sum();
            assert_eq!(network.edge_count(population), total as u64, "{name}");
            for (s, t) in [(0, 0), (1, 2), (2, 1), (7, 7)] {
                let (a, b) = if !directed && source == target && s > t { (t, s) } else { (s, t) };
                assert_eq!(
                    network.has_edge(population, s, t).unwrap(),
                    expected.contains_key(&(a, b)),
                    "{name} {s} {t}"
                );
            }
            let _ = several;
            if attributed {
                let mut out = Neighbours::default();
                let ids: Vec<u64> = self.vertices[source].keys().copied().collect();
                let way =
                    [thalweg::graph::Adjacency { population, side: thalweg::graph::Side::Out }];
                network.numbered_neighbours(&way, &ids, &mut out).unwrap();
                let batch = network.edge_attributes(population, &out.numbers).unwrap();
                let mut found: BTreeMap<(u64, u64), Vec<i64>> = BTreeMap::new();
                for (place, id) in ids.iter().enumerate() {
                    for at in out.offsets[place]..out.offsets[place + 1] {
                        found
                            .entry((*id, out.ids[at as usize]))
                            .or_default()
                            .push(value_of(&batch, at as usize));
                    }
                }
                assert_eq!(&found, expected, "{name}");
            }
        }
        for from in 0..TYPES.len() {
            for to in [None, Some(0), Some(1), Some(2)] {
                for direction in [Direction::Out, Direction::In, Direction::Both] {
                    self.check_neighbours(network, from, to, direction);
                }
            }
        }
    }

    fn check_neighbours(
        &self,
        network: &Network,
        from: usize,
        to: Option<usize>,
        direction: Direction,
    ) {
        let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for ((_, source, target, directed, ..), edges) in POPULATIONS.iter().zip(&self.edges) {
            for ((s, t), list) in edges {
                let out = *source == from
                    && to.is_none_or(|to| to == *target)
                    && (!directed || direction != Direction::In);
                let into = *target == from
                    && to.is_none_or(|to| to == *source)
                    && (!directed || direction != Direction::Out);
                for _ in list {
                    if out {
                        expected.entry(*s).or_default().push(*t);
                    }
                    // An edge from a vertex to itself counts once.
                    if into && !(out && source == target && s == t) {
                        expected.entry(*t).or_default().push(*s);
                    }
                }
            }
        }
        expected.values_mut().for_each(|list| list.sort_unstable());
        let all = expected;
        let ids: Vec<u64> = self.vertices[from].keys().copied().chain([999]).collect();
        let ways = network.adjacencies(from, to, direction);
        let mut out = Neighbours::default();
        network.neighbours(&ways, &ids, &mut out).unwrap();
        let degrees = network.degrees(&ways, &ids).unwrap();
        let seen = Mutex::new(BTreeMap::new());
        let visitor = || |id, list: &[u64]| drop(seen.lock().unwrap().insert(id, list.to_vec()));
        network.visit(&ways, &ids, visitor).unwrap();
        let seen = seen.into_inner().unwrap();
        for (place, id) in ids.iter().enumerate() {
            let expected = all.get(id).cloned().unwrap_or_default();
            assert_eq!(
                out.of(place),
                expected,
                "neighbours of {from} {id} to {to:?} {direction:?}"
            );
            assert_eq!(degrees[place], expected.len() as u64);
            assert_eq!(seen[id], expected);
            if place % 8 == 0 {
                let hops = usize::from(to == Some(from)) + 1;
                let reached = network.reachable(&ways, &[*id], hops);
                match to {
                    Some(to) if to == from => {
                        let mut two: Vec<u64> = expected
                            .iter()
                            .flat_map(|next| all.get(next).into_iter().flatten())
                            .chain(&expected)
                            .copied()
                            .collect();
                        two.retain(|reached| reached != id);
                        two.sort_unstable();
                        two.dedup();
                        assert_eq!(reached.unwrap(), two);
                    }
                    Some(_) => {
                        let mut one = expected.clone();
                        one.dedup();
                        assert_eq!(reached.unwrap(), one);
                    }
                    None => {}
                }
            }
        }
    }
}

/// Adds the types and populations to a network.
pub(super) fn define(writer: &mut Writer) {
    let none = Arc::new(Schema::empty());
    for (number, name) in TYPES.iter().enumerate() {
        writer.vertex_type(name, &if number == 1 { schema() } else { none.clone() }).unwrap();
    }
    try_define(writer).unwrap();
}

pub(super) fn try_define(writer: &mut Writer) -> thalweg::Result<()> {
    let none = Arc::new(Schema::empty());
    for (number, name) in TYPES.iter().enumerate() {
        writer.vertex_type(name, &if number == 1 { schema() } else { none.clone() })?;
    }
    for (name, source, target, is_directed, is_multi, attributed) in POPULATIONS {
        writer.population(&Population {
            name: name.into(),
            source: TYPES[source].into(),
            target: TYPES[target].into(),
            is_directed,
            is_multi,
            attributes: if attributed { schema() } else { none.clone() },
        })?;
    }
    Ok(())
}
