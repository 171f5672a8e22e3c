//! The size that a SONATA file will have.

use std::ops::Range;

use arrow_schema::{DataType, Fields};
use thalweg_io::Result;

use super::index::EdgeIndex;
use super::indices::greatest_id;
use crate::read::network::Network;

/// The bytes of a number: an id, the place of attributes, an end of a range.
const NUMBER: u64 = 8;
/// What a string takes in its own dataset and in the heap of the file, if it is short.
const TEXT: u64 = 48;

/// About how many bytes a SONATA file takes with some populations and vertex types. It is less if
/// edges are left out, and more if they have long strings.
///
/// # Errors
/// Those of reading the vertices, whose greatest ids are looked for.
pub fn sonata_bytes(
    network: &Network,
    populations: Range<usize>,
    types: Range<usize>,
) -> Result<u64> {
    let mut bytes: u64 = 0;
    for number in populations {
        let edges = &network.populations()[number].population;
        let count = network.edge_count(number);
        // Both ends and the place, and a range for each edge in the index by target.
        let row = (3 + 2) * NUMBER + row_bytes(edges.attributes.fields());
        bytes = bytes.saturating_add(count.saturating_mul(row));
        for kind in [&edges.source, &edges.target] {
            let last = greatest_id(network, network.type_of(kind)?)?;
            let ids = last.map_or(0, |id| id.saturating_add(1));
            bytes = bytes.saturating_add(EdgeIndex::bytes(ids, count));
        }
    }
    for number in types {
        let row = 2 * NUMBER + row_bytes(network.types()[number].attributes.fields());
        bytes = bytes.saturating_add(network.vertex_count(number).saturating_mul(row));
    }
    Ok(bytes)
}

/// The bytes of the attributes of an edge or a node.
fn row_bytes(fields: &Fields) -> u64 {
    let one = |data_type: &DataType| match data_type {
        DataType::Boolean => 1,
        other => other.primitive_width().map_or(TEXT, |width| width as u64),
    };
    fields.iter().map(|field| one(field.data_type())).sum()
}
