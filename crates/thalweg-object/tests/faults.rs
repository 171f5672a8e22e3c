//! Reads from a server that fails as servers fail, over many seeds: every read gives the bytes of
//! the object, or, if the object was replaced, an error that says so. No read hangs.
//!
//! A few hundred seeds by default, `FAULTS=10000` for more. `FAULT_SEED=7` runs one of them, as a
//! failure names it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_codec::splitmix::checksum;
use thalweg_hdf5::array::Found;
use thalweg_hdf5::arrays::ArrayFile;
use thalweg_hdf5::synth::{DatasetLayout, NexusRecipe, NexusWriter, SynthRun};
use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::random::{Chance, hash01};
use thalweg_io::store::{MemoryStore, Store};
use thalweg_nanopore::pod5::write::Pod5Layout;
use thalweg_nanopore::reads::{ReadFile, Selection};
use thalweg_nanopore::slow5::{Encoding, RecordPress, SignalPress};
use thalweg_object::{Counts, Patience, open};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::{Script, no_hang, pod5, sample, slow5};

/// Seeds without `FAULTS`.
const FEW: u64 = 300;
/// Seeds at a time. Most of them wait.
const TOGETHER: usize = 16;
/// Of so many objects, one is replaced while it is read.
const REPLACED: u64 = 100;
/// A request that gets no byte is tried again soon. A read goes on for longer than a busy machine
/// takes for it.
const PATIENCE: Patience =
    Patience { read: Duration::from_secs(300), request: Duration::from_secs(2) };

/// How an object is read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Bytes,
    Blow5,
    Pod5,
    Hdf5,
}

/// What reading gave: names, and checksums of values.
type Values = Vec<(String, u64)>;

/// An object to read.
struct Sample {
    kind: Kind,
    bytes: Vec<u8>,
    /// What reading all of it gives.
    found: Values,
}

impl Sample {
    fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        assert!(bytes.len() > 100_000, "{kind:?}: {} bytes are few", bytes.len());
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new("sample", bytes.clone()));
        let found = match kind {
            Kind::Bytes => Vec::new(),
            Kind::Blow5 | Kind::Pod5 => reads(memory, Options::default(), &Selection::All).unwrap(),
            Kind::Hdf5 => arrays(memory, Options::default()).unwrap(),
        };
        assert!(kind == Kind::Bytes || found.len() > 3, "{kind:?}: {found:?}");
        Self { kind, bytes, found }
    }

    fn all() -> Vec<Self> {
        let header = slow5::header(Encoding::Binary, RecordPress::Zlib, SignalPress::SvbZd);
        let lengths: Vec<usize> = (0..90).map(|i| 500 + i * 97 % 6000).collect();
        let longer: Vec<usize> = lengths.iter().map(|len| len * 4).collect();
        let blow5 = slow5::sample("faults", &header, &lengths).bytes;
        let layout = Pod5Layout { row_samples: 2000, signal_rows: 20, ..Pod5Layout::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.nxs");
        let layout_of_events = DatasetLayout::Chunked(512);
        let recipe = NexusRecipe {
            banks: 3,
            layout: layout_of_events,
            ..NexusRecipe::with_bytes(1, 300_000)
        };
        NexusWriter::write(&path, &SynthRun::new(recipe).unwrap()).unwrap();
        vec![
            Self::new(Kind::Bytes, sample(300_000)),
            Self::new(Kind::Blow5, blow5),
            Self::new(Kind::Pod5, pod5::file(layout, &longer)),
            Self::new(Kind::Hdf5, std::fs::read(path).unwrap()),
        ]
    }

    /// Reads the object in a way that the seed says, and checks what comes.
    fn read(&self, store: &Arc<dyn Store>, seed: u64) -> Result<()> {
        let mut chance = Chance::new(seed, 1);
        match self.kind {
            Kind::Bytes => self.read_bytes(store, &mut chance),
            Kind::Blow5 | Kind::Pod5 => {
                let selection = match chance.unit() {
                    0.0..0.5 => Selection::All,
                    _ => Selection::Ids(Arc::new(self.some(&mut chance))),
                };
                let found = reads(store.clone(), options(&mut chance), &selection)?;
                let Selection::Ids(ids) = selection else {
                    assert_eq!(found, self.found);
                    return Ok(());
                };
                let known: HashMap<_, _> = self.found.iter().cloned().collect();
                let wanted: Values = ids.iter().map(|id| (id.clone(), known[id])).collect();
                assert_eq!(found, wanted);
                Ok(())
            }
            Kind::Hdf5 => {
                assert_eq!(arrays(store.clone(), options(&mut chance))?, self.found);
                Ok(())
            }
        }
    }

    /// Some of the ids, in another order than in the file.
    fn some(&self, chance: &mut Chance) -> Vec<String> {
        let mut ids: Vec<(u64, String)> = Vec::new();
        for (id, _) in &self.found {
            if chance.unit() < 0.3 {
                ids.push((chance.bits(), id.clone()));
            }
        }
        ids.sort();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Single reads, and requests that the store serves many at a time.
    fn read_bytes(&self, store: &Arc<dyn Store>, chance: &mut Chance) -> Result<()> {
        for _ in 0..5 {
            let Range { start, end } = self.range(chance);
            let mut buf = vec![0; end - start];
            store.read_at(start as u64, &mut buf)?;
            assert!(buf == self.bytes[start..end], "wrong bytes in {start}..{end}");
        }
        let depth = 1 + chance.bits() as usize % 8;
        let wanted = (0..20).map(|_| self.range(chance)).map(|r| (r.start as u64, r.len()));
        let script = Script::new(store, &self.bytes, wanted.collect());
        script.serve_here(depth);
        script.outcomes().into_iter().collect()
    }

    /// A range of up to a tenth of the object.
    fn range(&self, chance: &mut Chance) -> Range<usize> {
        let len = 1 + (self.bytes.len() as f64 / 10.0 * chance.unit()) as usize;
        let start = chance.bits() as usize % (self.bytes.len() - len);
        start..start + len
    }
}

/// A budget and a model, and so a plan, by chance.
fn options(chance: &mut Chance) -> Options {
    let threads = 1 + chance.bits() as usize % 3;
    let model = StoreModel {
        latency_s: 1e-3 + 30e-3 * chance.unit(),
        bandwidth: 1e6 + 1e9 * chance.unit(),
        request_rate: 100.0 + 5000.0 * chance.unit(),
        depth: 1 + chance.bits() as usize % 8,
        block: 4096 << (chance.bits() % 8),
        ..StoreModel::S3
    };
    Options {
        budget: Budget { threads, memory: 4 << (20 + chance.bits() % 3) },
        model: Some(model),
        finds_in_rounds: chance.unit() < 0.5,
        ..Options::default()
    }
}

fn reads(store: Arc<dyn Store>, options: Options, selection: &Selection) -> Result<Values> {
    let file = ReadFile::from_store(store, options)?;
    let found = file.map(selection, |read| {
        let bytes: Vec<u8> = read.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        (read.record.read_id.to_owned(), checksum(&bytes))
    });
    found?.collect()
}

fn arrays(store: Arc<dyn Store>, options: Options) -> Result<Values> {
    let file = ArrayFile::from_store(store, options)?;
    let mut found = Vec::new();
    for dataset in
        file.datasets()?.iter().filter(|dataset| matches!(dataset.found, Found::Array(_)))
    {
        let mut bytes = Vec::new();
        file.values(dataset, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        found.push((dataset.path().to_owned(), checksum(&bytes)));
    }
    Ok(found)
}

/// What the server knows of the object of a seed.
#[derive(Default)]
struct Asking {
    /// Since it was opened. Until then, no version is the right one.
    requests: u64,
    is_open: bool,
    /// Tries by the first byte that is asked for.
    tries: HashMap<u64, u64>,
    is_replaced: bool,
}

/// The server's answers. Which they are depends on the seed, the range and the try, not on the
/// order in which requests of several threads arrive.
#[derive(Default)]
struct Faults(Mutex<HashMap<u64, Asking>>);

impl Faults {
    fn answer(&self, asked: &Asked) -> Answer {
        let seed = asked.target[1..].split('/').next().unwrap().parse().unwrap();
        let start = asked.range.as_ref().map_or(0, |range| range.start);
        let mut seeds = self.0.lock().unwrap();
        let Asking { requests, is_open, tries, is_replaced } = seeds.entry(seed).or_default();
        let count = tries.entry(start).or_default();
        *count += 1;
        *requests += u64::from(*is_open);
        let chance = |purpose| hash01(seed, purpose, start << 8 | *count & 0xff);
        if let Some(at) = replaced_at(seed).filter(|at| *requests >= *at) {
            *is_replaced = true;
            // Every second server does not know conditions.
            if seed % 2 == 0 {
                return Answer::OtherVersion;
            }
            if *requests == at {
                return Answer::Replaced;
            }
        }
        let part = chance(3);
        match chance(2) {
            0.0..0.05 => Answer::Refused(503, "SlowDown"),
            0.05..0.06 => Answer::Torn(part),
            0.06..0.063 => Answer::Reset(part),
            0.063..0.066 => Answer::Short(part),
            0.066..0.069 => Answer::TooLong(1000),
            0.069..0.072 => Answer::Closed,
            0.072..0.0725 => Answer::Stuck(part),
            0.0725..0.073 => Answer::Never,
            // A millisecond or two, and now and then twenty.
            _ => Answer::Late(Duration::from_secs_f64(0.02 * part.powi(12))),
        }
    }
}

/// The request before whose answer the object of a seed is replaced.
fn replaced_at(seed: u64) -> Option<u64> {
    let is_replaced = (hash01(seed, 4, 0) * REPLACED as f64) < 1.0;
    is_replaced.then(|| 1 + (hash01(seed, 5, 0) * 8.0) as u64)
}

/// What came of the seeds.
#[derive(Debug, Default)]
struct Summary {
    read: u64,
    /// Errors that say that the object was replaced.
    told: u64,
    /// Whole reads of objects that were replaced, though no longer asked for.
    done_before: u64,
    counts: Counts,
}

#[test]
fn faults_change_no_byte_and_hang_no_read() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FAULTS").unwrap_or(FEW),
    };
    let samples: Arc<[Sample]> = Sample::all().into();
    let faults = Arc::new(Faults::default());
    let answers = faults.clone();
    let server = Arc::new(ObjectServer::start([], move |asked| answers.answer(asked)));
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary::default());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.end {
                        return;
                    }
                    let (samples, server) = (samples.clone(), server.clone());
                    let of_run = faults.clone();
                    let run = || no_hang(move || one(&samples, &server, &of_run, seed));
                    let run = AssertUnwindSafe(run);
                    let Ok((outcome, counts)) = catch_unwind(run) else {
                        failed.lock().unwrap().push(seed);
                        continue;
                    };
                    let asking = faults.0.lock().unwrap().remove(&seed).unwrap();
                    let mut summary = summary.lock().unwrap();
                    summary.add(counts);
                    match outcome {
                        Ok(()) if asking.is_replaced => summary.done_before += 1,
                        Ok(()) => summary.read += 1,
                        Err(error) if asking.is_replaced && error.contains("replaced") => {
                            summary.told += 1;
                        }
                        Err(error) => {
                            println!("seed {seed}: {error}");
                            failed.lock().unwrap().push(seed);
                        }
                    }
                }
            });
        }
    });
    let summary = summary.into_inner().unwrap();
    println!("{seeds:?}: {summary:?}");
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "FAULT_SEED= one of {failed:?}");
    assert!(summary.told >= summary.done_before, "{summary:?}");
}

/// Reads the object of a seed. Returns the error in words, and what it took.
fn one(
    samples: &[Sample],
    server: &ObjectServer,
    faults: &Faults,
    seed: u64,
) -> (std::result::Result<(), String>, Counts) {
    let sample = &samples[(hash01(seed, 6, 0) * samples.len() as f64) as usize];
    let path = format!("/{seed}/object");
    server.put(&path, sample.bytes.clone());
    let opened = open(&server.url(&path), &Control::new(), PATIENCE).map(Arc::new);
    faults.0.lock().unwrap().entry(seed).or_default().is_open = true;
    let read = opened.as_ref().map_err(ToString::to_string).and_then(|object| {
        let store: Arc<dyn Store> = object.clone();
        sample.read(&store, seed).map_err(|error| error.to_string())
    });
    server.remove(&path);
    server.forget();
    (read, opened.map(|object| object.counts()).unwrap_or_default())
}

impl Summary {
    fn add(&mut self, counts: Counts) {
        self.counts.requests += counts.requests;
        self.counts.retries += counts.retries;
        self.counts.hedges += counts.hedges;
        self.counts.bytes += counts.bytes;
    }
}
