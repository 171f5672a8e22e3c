#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use thalweg_io::Error;
use thalweg_io::open::Options;
use thalweg_io::store::MemoryStore;

use crate::arrays::ArrayFile;
use crate::libhdf5::{Hdf5Writer, StoredNumber, VectorSpec};
use crate::metadata::{Object, Reader, Refused, now};
use crate::types::SampleDataset;

/// Elements of a chunk.
const CHUNK: u64 = 4;

/// A file with a dataset in chunks whose index is a version 1 B-tree. It has the chunks 0, 1 and 3.
fn file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.h5");
    let writer = Hdf5Writer::create(&path, &"chunks.h5".into()).unwrap();
    let group = writer.group(None, "group").unwrap();
    let kind = StoredNumber::I16;
    let spec = VectorSpec { kind, len: 4 * CHUNK, chunk: Some(CHUNK), filters: &[] };
    let vector = writer.vector(&group, "values", spec).unwrap();
    for number in [0, 1, 3] {
        writer.chunk(&vector, number * CHUNK, &[number as u8 + 1; 2 * CHUNK as usize], 0).unwrap();
    }
    drop((vector, group));
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// The values of the dataset in a file.
fn values(file: Vec<u8>) -> Result<Vec<u8>, Error> {
    let file = ArrayFile::from_store(Arc::new(MemoryStore::new("f", file)), Options::default())?;
    let mut values = Vec::new();
    for dataset in file.below("/group/values")? {
        file.values(&dataset, &mut |part| {
            values.extend_from_slice(part);
            Ok(())
        })?;
    }
    Ok(values)
}

/// The dataset as the parser of metadata finds it, without libhdf5.
fn parsed(file: &[u8]) -> Result<SampleDataset, Refused> {
    now(async {
        let reader = Reader::open(&file, 1 << 20).await?;
        let mut at = reader.superblock().root;
        for name in ["group", "values"] {
            at = Object::read(&reader, at).await?.child(&reader, name).await?.unwrap();
        }
        Object::read(&reader, at).await?.samples(&reader).await
    })
}

/// The file with another coordinate for the chunk with this place in the index.
fn with_coordinate(place: usize, coordinate: u64) -> Vec<u8> {
    // A node of chunks is of type 1 (specification, section III.A.1). Behind its head of 24 bytes
    // there is for each chunk: its size and mask, a coordinate, that of the bytes of an element,
    // and the address.
    let mut file = file();
    let node = file.windows(5).position(|bytes| bytes == b"TREE\x01").unwrap();
    let at = node + 24 + place * 32 + 8;
    file[at..at + 8].copy_from_slice(&coordinate.to_le_bytes());
    file
}

#[test]
fn damaged_coordinates_of_chunks_are_errors() {
    let whole = [[1; 8], [2; 8], [0; 8], [4; 8]].concat();
    assert_eq!(values(file()).unwrap(), whole);
    assert!(parsed(&file()).is_ok());
    assert_eq!(values(with_coordinate(1, CHUNK)).unwrap(), whole, "the place is right");
    for (place, coordinate) in [
        // Beyond the end of the dataset: near, and far away.
        (2, 4 * CHUNK),
        (1, 1 << 40),
        // A place that another chunk has, or that is not a multiple of the chunk's length.
        (1, 0),
        (1, CHUNK + 1),
        // A place that no chunk has, but behind that of the next chunk or before the previous one.
        (0, 2 * CHUNK),
    ] {
        let error = values(with_coordinate(place, coordinate)).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{place} {coordinate}: {error}");
        let refused = parsed(&with_coordinate(place, coordinate)).unwrap_err();
        assert!(matches!(refused, Refused::Damaged(_)), "{place} {coordinate}: {refused:?}");
    }
}
