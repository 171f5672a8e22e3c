#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::{
    DatasetChunks, Extents, HEAD, IndexedFile, SavedMetadata, checksum, unzigzag_64, zigzag_64,
};
use crate::types::Chunk;

const SIZE: u64 = 1 << 40;

fn state() -> IndexedFile {
    IndexedFile { size: SIZE, modified: -5, start: 7 }
}

fn encoded(grids: Vec<DatasetChunks>) -> Vec<u8> {
    Extents::encode(state(), grids, &SavedMetadata::default()).unwrap()
}

/// Datasets whose chunks lie anywhere in the file, with holes in the grid.
fn grids() -> impl Strategy<Value = Vec<DatasetChunks>> {
    let chunk = (
        0..4u64,
        0..SIZE / 2,
        prop_oneof![Just(8192), 1..SIZE / 2],
        prop_oneof![4 => Just(0), 1 => any::<u32>()],
    );
    let grid = (
        0..SIZE,
        prop::collection::vec((1..1000u64, 1..100u64), 0..4),
        prop::collection::vec(chunk, 0..50),
    );
    let grid = grid.prop_map(|(address, dimensions, chunks)| {
        let cells = super::cells(&dimensions).unwrap();
        let mut next = 0;
        let chunks = chunks.into_iter().map(|(gap, offset, size, mask)| {
            next += gap + 1;
            Chunk { first: next - 1, offset, size, mask }
        });
        DatasetChunks {
            address,
            dimensions,
            chunks: chunks.filter(|chunk| chunk.first < cells).collect(),
        }
    });
    prop::collection::vec(grid, 0..8)
}

proptest! {
    #[test]
    fn saved_models_are_found(mut grids in grids()) {
        let extents = Extents::parse(encoded(grids.clone())).unwrap();
        grids.sort_by_key(|grid| grid.address);
        grids.dedup_by_key(|grid| grid.address);
        prop_assert_eq!(extents.state(), state());
        let chunks: u64 = grids.iter().map(|grid| grid.chunks.len() as u64).sum();
        prop_assert_eq!(extents.chunks(), chunks);
        for grid in &grids {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = grid.dimensions.iter().copied().unzip();
            prop_assert_eq!(extents.get(grid.address, &shape, &chunk), Some(grid.chunks.clone()));
            if let Some(longer) = shape.first().map(|first| [&[first + 1], &shape[1..]].concat()) {
                prop_assert_eq!(extents.get(grid.address, &longer, &chunk), None);
            }
            // Found without the dimensions of an array type.
            let (mut with, more) = (grid.clone(), [(3, 3), (1, 1)]);
            with.dimensions.extend(more);
            let with = Extents::parse(encoded(vec![with])).unwrap();
            prop_assert_eq!(with.get(grid.address, &shape, &chunk), Some(grid.chunks.clone()));
        }
        prop_assert_eq!(extents.grids().collect::<Vec<_>>(), grids);
    }

    #[test]
    fn differences_come_back(difference: i64) {
        prop_assert_eq!(unzigzag_64(zigzag_64(difference)), difference);
    }

    #[test]
    fn damage_is_noticed(grids in grids(), at: prop::sample::Index, bit in 0..8u32) {
        let mut bytes = encoded(grids);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Extents::parse(bytes).is_err());
    }
}

/// An index with this body and correct checksums.
fn sealed(datasets: u64, body: &[u8]) -> Vec<u8> {
    let state = IndexedFile { size: 1000, ..state() };
    let mut bytes = Extents::encode(state, Vec::new(), &SavedMetadata::default()).unwrap();
    let body = [body, &bytes[HEAD..bytes.len() - 8]].concat();
    bytes.truncate(40);
    bytes.extend(datasets.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(checksum(&bytes).to_le_bytes());
    assert_eq!(bytes.len(), HEAD);
    bytes.extend(&body);
    bytes.extend(checksum(&body).to_le_bytes());
    bytes
}

#[test]
fn saved_metadata_are_found() {
    let mut saved = SavedMetadata::default();
    saved.push(10, b"abc");
    saved.push(40, &[7; 10_000]);
    let bytes = Extents::encode(state(), Vec::new(), &saved).unwrap();
    assert!(bytes.len() < 200, "{}", bytes.len());
    let found = Extents::parse(bytes).unwrap().take_metadata();
    assert_eq!(found, saved);
    assert_eq!(found.get(&(10..13)), Some(&b"abc"[..]));
    assert_eq!(found.get(&(11..12)), Some(&b"b"[..]));
    assert_eq!(found.get(&(50..10_040)).map(<[u8]>::len), Some(9_990));
    for range in [0..3, 9..11, 12..14, 13..40, 10..50, 50..10_041] {
        assert_eq!(found.get(&range), None, "{range:?}");
    }
    // Beyond the end of the file.
    let short = IndexedFile { size: 10_039, ..state() };
    assert!(Extents::parse(Extents::encode(short, Vec::new(), &saved).unwrap()).is_err());
}

#[test]
fn impossible_numbers_are_refused() {
    let said = |body: &[u8]| {
        Extents::parse(sealed(1, body)).err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    // Address 100, one dimension of 10 in chunks of 5, two chunks in eight bytes: at 16 with 8, at
    // 40 with 9.
    let good = [100, 1, 10, 5, 2, 8, 0, 32, 16, 0, 0, 32, 2, 0];
    let found = Extents::parse(sealed(1, &good)).unwrap().get(100, &[10], &[5]).unwrap();
    let chunk = |first, offset, size| Chunk { first, offset, size, mask: 0 };
    assert_eq!(found, [chunk(0, 16, 8), chunk(1, 40, 9)]);
    let with = |at: usize, byte: u8| {
        let mut body = good;
        body[at] = byte;
        said(&body)
    };
    assert!(with(1, 65).contains("65 dimensions"));
    assert!(with(3, 0).contains("chunks of one element"));
    assert!(with(4, 3).contains("3 chunks in 8 bytes"));
    assert!(with(5, 127).contains("2 chunks in 127 bytes"));
    assert!(with(10, 1).contains("first: 2"), "beyond the grid");
    assert!(with(8, 0).contains("size: 0"));
    assert!(with(7, 31).contains("inside the file"), "before the file");
    assert!(said(&good[..13]).contains("found"));
    assert!(!said(&[&good[..], &[0]].concat()).is_empty(), "bytes behind the datasets");
    assert!(said(&[0xe8, 7, 1, 10, 5, 0, 0]).contains("further on in the file"));
    assert!(
        said(&[100, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 5, 0, 0])
            .contains("64 bits")
    );
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert!(
        said(&[&[100, 2][..], &huge, &[1], &huge, &[1, 0, 0]].concat())
            .contains("chunks of one element")
    );
    assert!(
        said(&[&[100, 1, 10, 5][..], &huge, &huge].concat())
            .contains("as many as the bytes can hold")
    );
    let twice = [&good[..], &[0], &good[1..]].concat();
    assert!(Extents::parse(sealed(2, &twice)).unwrap_err().to_string().contains("further on"));
    assert!(Extents::parse(b"SLOW5IDX".to_vec()).unwrap_err().to_string().contains("\"SLOW5IDX\""));
}
