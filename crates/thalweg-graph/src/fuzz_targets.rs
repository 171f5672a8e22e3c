//! The bodies of the fuzz targets: they read arbitrary bytes as parts of a network, with correct
//! checksums. Files are written to an empty disk that the caller provides.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use thalweg_io::control::Control;
use thalweg_io::disk::Disk;
use twox_hash::XxHash3_64;

use crate::read::neighbours::Neighbours;
use crate::read::network::{Adjacency, Network, NetworkOptions};
use crate::read::snapshot::Snapshot;
use crate::storage::footer::{Footer, VERSION};
use crate::storage::manifest::{self, Manifest};
use crate::storage::schema::{Population, PopulationEntry, Side, VertexType};
use crate::storage::segment::SegmentEntry;
use crate::storage::segment::{PAGE, SegmentWriter};
use crate::storage::segment_reader::SegmentReader;
use crate::storage::{log, log_record};

/// The most rows of a list or a column that are read.
const MOST: u64 = 1 << 16;

/// Decodes a change of the log. A change that decodes must survive encoding and a second decoding.
pub fn change(data: &[u8]) {
    let Ok(records) = log_record::of_bytes(data, 3, 3) else { return };
    let mut memtable = crate::read::memtable::Memtable::default();
    let control = Control::new();
    records.iter().for_each(|record| drop(memtable.apply(record, &control)));
    let Ok(bytes) = log_record::to_bytes(&records) else { return };
    let again =
        log_record::of_bytes(&bytes, 3, 3).map(|again| (again.len(), log_record::to_bytes(&again)));
    match again {
        Ok((len, Ok(same))) => {
            assert!(
                len == records.len() && same == bytes,
                "a change that comes back as another one"
            );
        }
        other => panic!("a change that does not come back: {other:?}"),
    }
}

/// Replays a log. The replay must end for any bytes.
pub fn log(data: &[u8], disk: &dyn Disk) {
    put(disk, "00000000.log", data);
    let _ = log::replay(disk, "00000000.log", 0, &Control::new(), &mut |_, change| {
        log_record::of_bytes(change, 3, 3).map(drop)
    });
}

/// Opens a network from a manifest. The checksum is added here.
pub fn manifest(data: &[u8], disk: Arc<dyn Disk>) {
    let sum = format!("\n{:016x}\n", XxHash3_64::oneshot(data));
    put(&*disk, manifest::FILE, &[data, sum.as_bytes()].concat());
    let _ = Network::open_on(disk, NetworkOptions::default());
}

fn put(disk: &dyn Disk, file: &str, bytes: &[u8]) {
    if let Ok(mut sink) = disk.create(file) {
        let _ = sink.write(bytes);
    }
}

/// Reads a segment: the bytes are a footer (JSON, up to a zero byte), then pages. Checksums are
/// added here.
pub fn segment(data: &[u8], disk: Arc<dyn Disk>) {
    let (json, pages) =
        data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let Ok(footer) = serde_json::from_slice::<Footer>(json) else { return };
    let Ok(mut segment) = SegmentWriter::create(&*disk, "00000001.seg") else { return };
    let mut pages = pages.get(1..).unwrap_or_default().to_vec();
    pages.resize(pages.len().next_multiple_of(PAGE), 0);
    if segment.append(&pages).is_err() {
        return;
    }
    let Ok(entry) = segment.finish(&Footer { version: VERSION, ..footer }) else { return };
    let Ok(reader) = SegmentReader::open(&*disk, &entry, &Manifest::new()) else { return };
    for edges in reader.all_edges().flatten() {
        for lists in [&edges.added, &edges.removed].into_iter().flatten() {
            let mut cursor = lists.cursor();
            for _ in 0..MOST {
                if !matches!(cursor.next(&reader.segment), Ok(Some(_))) {
                    break;
                }
            }
            for vertex in [0, 1, 77, u64::MAX] {
                let _ = lists.of(&reader.segment, vertex);
                let _ = lists.between(&reader.segment, vertex, 1);
            }
        }
        if let Some(table) = &edges.table {
            (0..table.batches()).for_each(|number| drop(table.batch(&reader.segment, number)));
        }
    }
    let network = network(disk, reader);
    let mut out = Neighbours::default();
    for population in 0..network.populations().len() {
        for side in [Side::Out, Side::In] {
            let adjacencies = [Adjacency { population, side }];
            let _ = network.neighbours(&adjacencies, &[0, 1, 2, 77, u64::MAX], &mut out);
            let _ = network.numbered_neighbours(&adjacencies, &[0, 1, 2], &mut out);
        }
    }
    for vertex_type in 0..network.types().len() {
        let _ = network.has_vertex(vertex_type, 1);
        let _ = network.vertex_attributes(vertex_type, &[0, 1, 2]);
        let mut seen = 0;
        let _ = network.vertices(vertex_type, 0..=MOST, &mut |ids| {
            seen += ids.len() as u64;
            if seen > MOST { Err(thalweg_io::Error::Cancelled) } else { Ok(()) }
        });
    }
}

/// A network of one segment, with three types and three populations.
fn network(disk: Arc<dyn Disk>, reader: Arc<SegmentReader>) -> Network {
    let mut manifest = Manifest::new();
    let attributes = Arc::new(Schema::new(vec![Field::new("weight", DataType::Int64, true)]));
    for number in 0..3 {
        manifest.types.push(VertexType {
            name: format!("{number}"),
            attributes: attributes.clone(),
            count: 0,
            since: 0,
        });
        let population = Population {
            name: format!("{number}"),
            source: "0".into(),
            target: "1".into(),
            is_directed: number == 0,
            is_multi: true,
            attributes: attributes.clone(),
        };
        manifest.edges.push(PopulationEntry {
            population,
            source: 0,
            target: 1,
            count: 0,
            next: 1,
            since: 0,
        });
    }
    manifest.segments.push(SegmentEntry { file: reader.file.clone(), bytes: 0, trailer: None });
    let state =
        Snapshot { manifest: Arc::new(manifest), readers: vec![reader], memtable: Arc::default() };
    Network::of_state(disk, state)
}

/// Seeds for the fuzz targets: the files of a small network, in the forms that the targets read.
///
/// # Panics
/// If the writer fails.
pub fn seeds(disk: Arc<dyn Disk>) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    use crate::write::change::Change;
    use crate::write::writer::Writer;

    let fits = "a network in memory";
    let mut writer = Writer::open_on(disk.clone(), NetworkOptions::default()).expect(fits);
    let attributes = Arc::new(Schema::new(vec![Field::new("weight", DataType::Int64, true)]));
    let none = Arc::new(Schema::empty());
    for (number, attributes) in [&none, &attributes].into_iter().enumerate() {
        let population = Population {
            name: format!("{number}"),
            source: "0".into(),
            target: "1".into(),
            is_directed: number == 0,
            is_multi: number == 1,
            attributes: attributes.clone(),
        };
        writer.population(&population).expect(fits);
    }
    let values = Arc::new(arrow_array::Int64Array::from(vec![Some(1), None, Some(3)]));
    let batch = arrow_array::RecordBatch::try_new(attributes, vec![values]).expect(fits);
    let scattered: Vec<(u64, u64)> = (0..140).map(|i| (i * i % 7, i * 37 % 1009)).collect();
    let add = |population, edges, attributes| Change::AddEdges { population, edges, attributes };
    writer
        .commit(vec![add(0, scattered, None), add(1, vec![(1, 2), (1, 2), (77, 3)], Some(batch))])
        .expect(fits);
    let log = bytes_of(&*disk, "00000000.log");
    let first = log.get(40..).unwrap_or_default().to_vec();
    writer.compact().expect(fits);
    let manifest = bytes_of(&*disk, manifest::FILE);
    let line = manifest.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
    let file =
        writer.network().state.readers.last().map(|reader| reader.file.clone()).unwrap_or_default();
    let segment = bytes_of(&*disk, &file);
    let word = |at: usize| thalweg_codec::splitmix::word(&segment[at..at + 8]) as usize;
    let pages = word(segment.len() - 40);
    let json = word(segment.len() - 32);
    let footer = &segment[segment.len() - 40 - json..segment.len() - 40];
    let split = [footer, &[0], &segment[..pages * PAGE]].concat();
    vec![
        ("graph_change", "edges", first),
        ("graph_log", "two", log),
        ("graph_manifest", "small", line),
        ("graph_segment", "small", split),
    ]
}

fn bytes_of(disk: &dyn Disk, file: &str) -> Vec<u8> {
    let store = disk.open(file).expect("a file that was written");
    let mut bytes = vec![0; store.size() as usize];
    store.read_at(0, &mut bytes).expect("a store in memory");
    bytes
}
