//! The contents of a network, for comparison with another one.

use std::collections::BTreeMap;

use arrow_array::Array;
use thalweg::graph::{Adjacency, Neighbours, Network, Side};

use super::model::value_of;

/// The contents of a network: vertices and edges by type and population, with their first attribute
/// if they have any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Names of types and populations.
    pub(super) names: Vec<String>,
    pub(super) vertices: Vec<BTreeMap<u64, Option<i64>>>,
    pub(super) edges: Vec<BTreeMap<(u64, u64, u64), Option<i64>>>,
}

impl Contents {
    pub(super) fn of(network: &Network) -> Self {
        let mut contents = Self::default();
        contents.names.extend(network.types().iter().map(|known| known.name.clone()));
        contents
            .names
            .extend(network.populations().iter().map(|known| known.population.name.clone()));
        for vertex_type in 0..network.types().len() {
            let mut ids = Vec::new();
            let mut take = |some: &[u64]| {
                ids.extend_from_slice(some);
                Ok(())
            };
            network.vertices(vertex_type, 0..=u64::MAX, &mut take).unwrap();
            let mut all: BTreeMap<u64, Option<i64>> = ids.iter().map(|id| (*id, None)).collect();
            let (places, rows) = network.vertex_attributes(vertex_type, &ids).unwrap();
            for (row, place) in places.into_iter().enumerate() {
                all.insert(ids[place], Some(value_of(&rows, row)));
            }
            contents.vertices.push(all);
        }
        for (population, known) in network.populations().iter().enumerate() {
            let sides = [Side::Out, Side::In].map(|side| {
                let here = if side == Side::Out {
                    &known.population.source
                } else {
                    &known.population.target
                };
                let ids: Vec<u64> =
                    contents.vertices[network.type_of(here).unwrap()].keys().copied().collect();
                let mut lists = Neighbours::default();
                network
                    .numbered_neighbours(&[Adjacency { population, side }], &ids, &mut lists)
                    .unwrap();
                let mut edges = Vec::new();
                for (place, id) in ids.iter().enumerate() {
                    for at in lists.offsets[place] as usize..lists.offsets[place + 1] as usize {
                        let (other, number) = (lists.ids[at], lists.numbers[at]);
                        edges.push(if side == Side::Out {
                            (*id, other, number)
                        } else {
                            (other, *id, number)
                        });
                    }
                }
                edges.sort_unstable();
                edges
            });
            assert_eq!(sides[0], sides[1], "both sides of {:?}", known.population.name);
            let edges = &sides[0];
            assert_eq!(network.edge_count(population), edges.len() as u64);
            let mut values = vec![None; edges.len()];
            if !known.population.attributes.fields().is_empty() {
                let numbers: Vec<u64> = edges.iter().map(|edge| edge.2).collect();
                let rows = network.edge_attributes(population, &numbers).unwrap();
                let is_there = |row: &usize| !rows.column(0).is_null(*row);
                (0..edges.len())
                    .filter(is_there)
                    .for_each(|row| values[row] = Some(value_of(&rows, row)));
            }
            contents.edges.push(edges.iter().copied().zip(values).collect());
        }
        contents
    }

    /// Adds the contents of another network.
    pub(super) fn add(&mut self, other: &Self) {
        self.vertices.resize_with(other.vertices.len(), BTreeMap::new);
        self.edges.resize_with(other.edges.len(), BTreeMap::new);
        for (own, more) in self.vertices.iter_mut().zip(&other.vertices) {
            own.extend(more);
        }
        for (own, more) in self.edges.iter_mut().zip(&other.edges) {
            own.extend(more);
        }
    }
}
