//! Queries on a network whose files are far away: each read is counted, and nothing is mapped.

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::{Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use thalweg_io::condition::Condition;
use thalweg_io::disk::{Disk, Folder, Sink};
use thalweg_io::model::StoreModel;
use thalweg_io::plan::Budget;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use crate::{
    Adjacency, Change, Direction, EdgeSelection, Neighbours, Network, NetworkOptions, NumberCoding,
    Population, Side, Writer,
};

/// A folder that is read as one that is far away. A byte of a file is damaged as it is read.
#[derive(Debug)]
struct Far {
    folder: Folder,
    reads: Arc<Mutex<Vec<Range<u64>>>>,
    /// The file, and the offset of the byte.
    damage: Option<(&'static str, u64)>,
}

#[derive(Debug)]
struct FarStore {
    store: Arc<dyn Store>,
    reads: Arc<Mutex<Vec<Range<u64>>>>,
    damage: Option<u64>,
}

impl Store for FarStore {
    fn name(&self) -> &Arc<str> {
        self.store.name()
    }

    fn size(&self) -> u64 {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset + buf.len() as u64;
        self.reads.lock().unwrap().push(offset..end);
        self.store.read_at(offset, buf)?;
        if let Some(at) = self.damage.filter(|at| (offset..end).contains(at)) {
            buf[(at - offset) as usize] ^= 1;
        }
        Ok(())
    }
}

impl Disk for Far {
    fn name(&self) -> &Arc<str> {
        self.folder.name()
    }

    fn is_far(&self) -> bool {
        true
    }

    fn at_once(&self) -> usize {
        4
    }

    fn model(&self) -> StoreModel {
        StoreModel::S3
    }

    fn list(&self) -> Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, file: &str) -> Result<Arc<dyn Store>> {
        let store = self.folder.open(file)?;
        let damage = self.damage.filter(|(name, _)| *name == file).map(|(_, at)| at);
        Ok(Arc::new(FarStore { store, reads: self.reads.clone(), damage }))
    }

    fn create(&self, _: &str) -> Result<Box<dyn Sink>> {
        Err(Error::Cancelled)
    }

    fn append(&self, _: &str, _: u64) -> Result<Box<dyn Sink>> {
        Err(Error::Cancelled)
    }

    fn rename(&self, _: &str, _: &str) -> Result<()> {
        Err(Error::Cancelled)
    }

    fn remove(&self, _: &str) -> Result<()> {
        Err(Error::Cancelled)
    }

    fn sync(&self) -> Result<()> {
        Err(Error::Cancelled)
    }

    fn lock(&self) -> Result<Option<Box<dyn Any + Send + Sync>>> {
        Ok(None)
    }
}

type Reads = Arc<Mutex<Vec<Range<u64>>>>;

fn far(
    path: &Path,
    memory: usize,
    damage: Option<(&'static str, u64)>,
) -> (Result<Network>, Reads) {
    let reads = Reads::default();
    let disk = Far { folder: Folder::new(path, false), reads: reads.clone(), damage };
    let budget = Budget { threads: 2, memory };
    let options = NetworkOptions { budget, ..NetworkOptions::default() };
    (Network::open_on(Arc::new(disk), options), reads)
}

/// A network with edges within a type and between two, in two segments and the log, with attributes
/// of edges and vertices.
fn network(path: &Path) {
    let weights = Arc::new(Schema::new(vec![Field::new("weight", DataType::Float64, false)]));
    let rows = |count: usize, from: u64| {
        let values = (0..count).map(|row| (from + row as u64) as f64);
        RecordBatch::try_new(
            weights.clone(),
            vec![Arc::new(Float64Array::from_iter_values(values))],
        )
        .unwrap()
    };
    let mut writer = Writer::open(path, NetworkOptions::default()).unwrap();
    writer.set_coding(NumberCoding::Raw);
    let population = |name: &str, target: &str, attributes| Population {
        name: name.into(),
        source: "Cell".into(),
        target: target.into(),
        is_directed: true,
        is_multi: false,
        attributes,
    };
    let within =
        writer.population(&population("within", "Cell", Arc::new(Schema::empty()))).unwrap();
    let between = writer.population(&population("between", "Site", weights.clone())).unwrap();
    let cell = writer.vertex_type("Cell", &weights).unwrap();
    for round in 0..3_u64 {
        let edges: Vec<(u64, u64)> = (0..60_000_u64)
            .map(|i| (i / 12 * 7 % 9_001, (i * 31 + round * 17) % 9_001))
            .chain((0..200).map(|i| (i * 44 + round, i * 44 + round)))
            .collect();
        let edges: BTreeSet<(u64, u64)> = edges.into_iter().collect();
        let edges: Vec<(u64, u64)> = edges.into_iter().collect();
        let sites: Vec<(u64, u64)> = (0..20_000).map(|i| (i * 7 % 9_001, i * 3 + round)).collect();
        let weights = rows(sites.len(), round * 100_000);
        writer
            .commit(vec![
                Change::AddEdges { population: within, edges, attributes: None },
                Change::AddEdges { population: between, edges: sites, attributes: Some(weights) },
            ])
            .unwrap();
        let ids: Vec<u64> = (0..3_000).map(|i| i * 3 + round).filter(|id| *id < 9_001).collect();
        let attributes = rows(ids.len(), round);
        writer.commit(vec![Change::SetVertices { vertex_type: cell, ids, attributes }]).unwrap();
        let gone = (0..500).map(|i| (i * 14 % 9_001, (i * 24 * 31) % 9_001)).collect();
        let few = Change::RemoveVertices { vertex_type: cell, ids: vec![5 + round, 2_000 + round] };
        writer.commit(vec![Change::RemoveEdges { population: within, edges: gone }, few]).unwrap();
        if round < 2 {
            writer.flush().unwrap();
        }
    }
}

/// What all queries of a network return.
fn answers(network: &Network) -> Vec<String> {
    let mut told = Vec::new();
    let mut ids = Vec::new();
    let cell = network.type_of("Cell").unwrap();
    for vertex_type in 0..network.types().len() {
        network
            .vertices(vertex_type, 0..=u64::MAX, &mut |some| {
                ids.extend_from_slice(some);
                Ok(())
            })
            .unwrap();
        told.push(format!("{ids:?}"));
    }
    let all: Vec<u64> = (0..9_100).collect();
    let mut out = Neighbours::default();
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        let adjacencies = network.adjacencies(cell, None, direction);
        for some in [&all[..], &all[100..1_100], &all[77..78]] {
            network.neighbours(&adjacencies, some, &mut out).unwrap();
            told.push(format!("{out:?}"));
            told.push(format!("{:?}", network.degrees(&adjacencies, some).unwrap()));
        }
    }
    let within = network.population_of("within").unwrap();
    let between = network.population_of("between").unwrap();
    let adjacency = Adjacency { population: between, side: Side::Out };
    network.numbered_neighbours(&[adjacency], &all, &mut out).unwrap();
    told.push(format!("{out:?}"));
    let condition = Condition::parse("weight > 50 and from.weight < 2000").unwrap();
    network.neighbours_where(&[adjacency], &all, &condition, &mut out).unwrap();
    told.push(format!("{out:?}"));
    let lists = network.visit(&[adjacency], &all, || {
        let mut sum = 0_u64;
        move |id: u64, list: &[u64]| sum = sum.wrapping_mul(31) + id + list.len() as u64
    });
    assert!(lists.is_ok());
    told.push(format!("{:?}", network.has_vertices(cell, &all).unwrap()));
    told.push(format!("{:?}", network.vertex_attributes(cell, &all[..999]).unwrap()));
    told.push(format!("{:?}", network.edges_between(within, 7, 8_000).unwrap()));
    for population in [within, between] {
        network
            .edges(population, EdgeSelection::default(), &mut |batch| {
                told.push(format!("{batch:?}"));
                Ok(())
            })
            .unwrap();
    }
    network
        .vertex_rows(cell, None, &mut |batch| {
            told.push(format!("{batch:?}"));
            Ok(())
        })
        .unwrap();
    let steps = network.adjacencies(cell, Some(cell), Direction::Out);
    told.push(format!("{:?}", network.reachable(&steps, &[3, 9], 2).unwrap()));
    let checked = network.check(&mut |_| {}).unwrap();
    told.push(format!("{checked:?}"));
    told
}

#[test]
fn queries_return_what_they_do_in_a_folder_with_any_memory() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path());
    let near = Network::open(folder.path(), NetworkOptions::default()).unwrap();
    assert!(near.state.readers.len() > 1 && !near.state.memtable.is_empty());
    for memory in [64 << 20, 1 << 20] {
        // How many rows come at a time depends on the memory.
        let budget = Budget { threads: 2, memory };
        let options = NetworkOptions { budget, ..NetworkOptions::default() };
        let wanted = answers(&Network::open(folder.path(), options).unwrap());
        let (network, reads) = far(folder.path(), memory, None);
        let found = answers(&network.unwrap());
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(found == wanted, "{memory}: {found:.300} is not {wanted:.300}");
        }
        // If the cache holds all, nothing is fetched twice.
        let reads = reads.lock().unwrap();
        let fetched: u64 = reads.iter().map(|read| read.end - read.start).sum();
        let log = folder.path().join(near.state.manifest.log_file());
        let stored = near.storage().bytes + std::fs::metadata(log).unwrap().len();
        if memory == 64 << 20 {
            assert!(fetched < stored + stored / 4, "{fetched} of {stored}");
        }
        assert!(reads.len() < 20_000, "{}", reads.len());
    }
}

#[test]
fn a_query_takes_few_requests_and_few_bytes() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path());
    let (network, reads) = far(folder.path(), 64 << 20, None);
    let network = network.unwrap();
    let opened = reads.lock().unwrap().len();
    // The manifest, the pieces of the log, and of each segment the trailer and the end.
    let log = folder.path().join(network.state.manifest.log_file());
    let pieces = std::fs::metadata(log).unwrap().len().div_ceil(256 << 10) as usize;
    assert!(opened <= 1 + pieces + 2 * network.state.readers.len(), "{opened}");
    let cell = network.type_of("Cell").unwrap();
    let adjacencies = network.adjacencies(cell, Some(cell), Direction::Out);
    let vertices: Vec<u64> = (0..1_000).map(|i| 4_000 + i).collect();
    let mut out = Neighbours::default();
    network.neighbours(&adjacencies, &vertices, &mut out).unwrap();
    let reads: Vec<Range<u64>> = reads.lock().unwrap()[opened..].to_vec();
    let bytes: u64 = reads.iter().map(|read| read.end - read.start).sum();
    assert!(out.ids.len() > 10_000 && reads.len() < 60, "{}", reads.len());
    assert!(bytes < network.storage().bytes / 2, "{bytes} of {}", network.storage().bytes);
    let planned = network.planned();
    assert!(planned.load.requests as usize >= reads.len(), "{planned:?} {}", reads.len());
    // Everything is in the cache now.
    let before = network.planned();
    network.neighbours(&adjacencies, &vertices, &mut out).unwrap();
    assert_eq!(network.planned(), before);
}

#[test]
fn damage_is_found_when_the_page_is_used() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path());
    let near = Network::open(folder.path(), NetworkOptions::default()).unwrap();
    let file: &'static str = Box::leak(near.state.readers[0].file.clone().into_boxed_str());
    let cell = near.type_of("Cell").unwrap();
    let adjacencies = near.adjacencies(cell, None, Direction::Both);
    let all: Vec<u64> = (0..9_001).collect();
    let mut out = Neighbours::default();
    let (mut found, mut unused) = (0, 0);
    for page in (0..near.state.readers[0].segment.pages()).step_by(149) {
        let at = page * 4096 + 100;
        let (network, _) = far(folder.path(), 64 << 20, Some((file, at)));
        match network.unwrap().neighbours(&adjacencies, &all, &mut out) {
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains(&format!("page {page}")) && told.contains(file), "{told}");
                found += 1;
            }
            Ok(()) => unused += 1,
        }
    }
    assert!(found > 1 && unused > 0, "{found} {unused}");
}

#[test]
fn a_segment_of_another_network_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    network(folder.path());
    network(other.path());
    let mut writer = Writer::open(other.path(), NetworkOptions::default()).unwrap();
    let within = writer.network().population_of("within").unwrap();
    let change = Change::AddEdges { population: within, edges: vec![(1, 9)], attributes: None };
    writer.commit(vec![change]).unwrap();
    writer.compact().unwrap();
    let own = Network::open(folder.path(), NetworkOptions::default()).unwrap();
    let there = Network::open(other.path(), NetworkOptions::default()).unwrap();
    std::fs::copy(
        other.path().join(&there.state.readers[0].file),
        folder.path().join(&own.state.readers[0].file),
    )
    .unwrap();
    for error in [
        Network::open(folder.path(), NetworkOptions::default()).err(),
        far(folder.path(), 64 << 20, None).0.err(),
    ] {
        let told = error.unwrap().to_string();
        assert!(told.contains("another segment") && told.contains("manifest last"), "{told}");
    }
}
