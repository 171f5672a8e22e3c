//! Digests of lists of neighbours: the SHA-256 of the ids as little-endian u64.

use sha2::{Digest, Sha256};
use thalweg::graph::{Adjacency, Neighbours, Network, Side};

use crate::digest::hex;

/// Vertices whose neighbours are in memory at a time, however many neighbours they have.
const VERTICES_AT_ONCE: usize = 64;

/// The digest of a list of ids.
pub(super) fn sha256(ids: &[u64]) -> String {
    let mut hash = Sha256::new();
    update(&mut hash, ids);
    hex(&hash.finalize())
}

/// The digest of all neighbours, population after population, in the order of the vertices that
/// the edges leave.
pub(in crate::graph) fn of_network(network: &Network) -> thalweg::Result<String> {
    let mut hash = Sha256::new();
    let mut list = Neighbours::default();
    for (population, edges) in network.populations().iter().enumerate() {
        let adjacencies = [Adjacency { population, side: Side::Out }];
        let source = network.type_of(&edges.population.source)?;
        network.vertices(source, 0..=u64::MAX, &mut |ids| {
            add_neighbours(&mut hash, network, &adjacencies, ids, &mut list)
        })?;
    }
    Ok(hex(&hash.finalize()))
}

/// The digest of the neighbours of some vertices.
pub(in crate::graph) fn of_vertices(
    network: &Network,
    adjacencies: &[Adjacency],
    ids: &[u64],
) -> thalweg::Result<String> {
    let mut hash = Sha256::new();
    add_neighbours(&mut hash, network, adjacencies, ids, &mut Neighbours::default())?;
    Ok(hex(&hash.finalize()))
}

/// Adds the neighbours of vertices to a hash. `list` is memory that is used again.
fn add_neighbours(
    hash: &mut Sha256,
    network: &Network,
    adjacencies: &[Adjacency],
    ids: &[u64],
    list: &mut Neighbours,
) -> thalweg::Result<()> {
    for ids in ids.chunks(VERTICES_AT_ONCE) {
        network.neighbours(adjacencies, ids, list)?;
        update(hash, &list.ids);
    }
    Ok(())
}

fn update(hash: &mut Sha256, ids: &[u64]) {
    // Ids are collected, because a call of the hash costs more than hashing eight bytes.
    let mut bytes = [0; 4096];
    for ids in ids.chunks(bytes.len() / 8) {
        for (bytes, id) in bytes.as_chunks_mut().0.iter_mut().zip(ids) {
            *bytes = id.to_le_bytes();
        }
        hash.update(bytes.get(..ids.len() * 8).unwrap_or_default());
    }
}
