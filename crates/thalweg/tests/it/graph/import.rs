//! Imports that end at any step: afterwards the network has all of an input or nothing of it, and
//! the store has only files of the network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Schema, SchemaRef};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg::disk::Disk;
use thalweg::graph::{
    EdgeBatch, EdgeSource, ImportOrigin, Imported, Input, Network, NetworkOptions as Options,
    Population, VertexBatch, VertexSource, Writer,
};
use thalweg_testing::{CrashDisk, Failing, one_of};

use super::contents::Contents;
use super::model::{Model, define, schema};

/// A list of edges that is read in pieces.
struct Listed {
    population: Population,
    edges: Vec<(u64, u64)>,
    place: usize,
    /// Whether the list is damaged at its end.
    breaks: bool,
    reads: Arc<AtomicUsize>,
}

const PIECE: usize = 500;

fn rows(first: usize, count: usize) -> RecordBatch {
    let values: Vec<i64> = (first..first + count).map(|value| 3 * value as i64).collect();
    let labels: ArrayRef = Arc::new(StringArray::new_null(values.len()));
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values)), labels]).unwrap()
}

impl EdgeSource for Listed {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        Some(self.edges.len() as u64)
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> thalweg::Result<bool> {
        edges.clear();
        self.reads.fetch_add(1, Ordering::Relaxed);
        let left = &self.edges[self.place..];
        if left.is_empty() && self.breaks {
            return Err(thalweg::Error::Usage("an input that is damaged".into()));
        }
        let piece = &left[..left.len().min(PIECE)];
        for (source, target) in piece {
            edges.runs.push((*source, 1));
            edges.targets.push(*target);
        }
        let has_attributes = !self.population.attributes.fields().is_empty();
        edges.attributes = has_attributes.then(|| rows(self.place, piece.len()));
        self.place += piece.len();
        Ok(!piece.is_empty())
    }
}

struct Described {
    attributes: SchemaRef,
    ids: Vec<u64>,
}

impl VertexSource for Described {
    fn vertex_type(&self) -> &str {
        "site"
    }

    fn attributes(&self) -> &SchemaRef {
        &self.attributes
    }

    fn total(&self) -> Option<u64> {
        None
    }

    fn next(&mut self, vertices: &mut VertexBatch) -> thalweg::Result<bool> {
        vertices.ids = std::mem::take(&mut self.ids);
        vertices.attributes = Some(rows(7, vertices.ids.len()));
        Ok(!vertices.ids.is_empty())
    }
}

/// An input of two populations and some vertices. One population may already exist, and the other
/// one needs a new type.
fn input(seed: u64, breaks: bool) -> Input {
    watched(seed, breaks).0
}

/// An input as from [`input`], and the number of times that edges of its first population were
/// read.
fn watched(seed: u64, breaks: bool) -> (Input, Arc<AtomicUsize>) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut listed =
        |name: &str, source: &str, target: &str, is_directed, is_multi, attributes: SchemaRef| {
            let count = rng.random_range(600..2000);
            let edges =
                (0..count).map(|_| (rng.random_range(0..90), rng.random_range(0..400))).collect();
            let population = Population {
                name: name.into(),
                source: source.into(),
                target: target.into(),
                is_directed,
                is_multi,
                attributes,
            };
            Listed { population, edges, place: 0, breaks: false, reads: Arc::default() }
        };
    let none = Arc::new(Schema::empty());
    let first = listed("cell-site", "cell", "site", false, false, none);
    let mut second = listed("new", "cell", "newcomer", true, true, schema());
    second.breaks = breaks;
    let reads = first.reads.clone();
    let edges: Vec<Box<dyn EdgeSource>> = vec![Box::new(first), Box::new(second)];
    let vertices: Vec<Box<dyn VertexSource>> =
        vec![Box::new(Described { attributes: schema(), ids: (300..500).collect() })];
    (Input { edges, vertices, ..Input::default() }, reads)
}

/// An input as from [`watched`], which comes from a file with this modification time.
fn of_file(seed: u64, modified: u64, breaks: bool) -> (Input, Arc<AtomicUsize>) {
    let (mut input, reads) = watched(seed, breaks);
    input.origin =
        Some(ImportOrigin { path: "a file".into(), bytes: 9, modified, options: String::new() });
    (input, reads)
}

fn resume_import(disk: &Arc<CrashDisk>, input: Input) -> thalweg::Result<Imported> {
    let mut writer = Writer::open_on(disk.clone(), Options::default())?;
    writer.set_checkpoint_interval(Duration::ZERO);
    writer.import(input, &mut |_| {})
}

fn bring_in(disk: &Arc<CrashDisk>, seed: u64) -> thalweg::Result<(Writer, Imported)> {
    let mut writer = Writer::open_on(disk.clone(), Options::default())?;
    let done = writer.import(input(seed, false), &mut |_| {})?;
    Ok((writer, done))
}

fn contents(disk: &CrashDisk) -> Contents {
    let network =
        Network::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    let checked = network.check(&mut |_| {}).unwrap();
    assert!(checked.defects.is_empty(), "{:?}", checked.defects);
    Contents::of(&network)
}

/// Whether the store has only the files of its network.
fn is_tidy(disk: &CrashDisk, writer: &Writer) -> bool {
    let mut names = disk.list().unwrap();
    names.retain(|name| !name.ends_with(".seg"));
    let segments = disk.list().unwrap().len() - names.len();
    let [log, manifest, copy] = names.as_slice() else { return false };
    let named = log.ends_with(".log") && manifest == "manifest" && copy == "manifest.copy";
    named && segments == writer.network().storage().segments
}

/// A network with some contents, into which an input is imported.
fn worked_on(seed: u64) -> CrashDisk {
    let mut rng = SmallRng::seed_from_u64(seed);
    let disk = CrashDisk::new(Failing::Never);
    let mut writer =
        Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    define(&mut writer);
    let mut model = Model::new();
    for _ in 0..rng.random_range(0..12) {
        writer.commit((0..4).map(|_| model.step(&mut rng)).collect()).unwrap();
        if rng.random_bool(0.2) {
            writer.flush().unwrap();
        }
    }
    disk
}

#[test]
fn an_import_may_end_anywhere() {
    let (mut before_it, mut after_it, mut runs) = (0, 0, 0);
    for seed in 0..4 {
        let base = worked_on(seed);
        let before = contents(&base);
        let done = Arc::new(base.copy());
        drop(bring_in(&done, seed).unwrap());
        let (steps, after) = (done.steps(), contents(&done));
        assert!(steps > 12 && before != after);
        for step in (seed..steps).step_by(one_of()) {
            for fails in [Failing::From(step), Failing::Once(step)] {
                let disk = Arc::new(base.copy().after_kill(fails));
                let outcome = bring_in(&disk, seed).map(drop);
                runs += 1;
                let left = if runs % 2 == 0 {
                    disk.after_crash(runs, Failing::Never)
                } else {
                    disk.copy()
                };
                let found = contents(&left);
                assert!(
                    found == after || outcome.is_err() && found == before,
                    "seed {seed}, {fails:?}: half an import"
                );
                if found == before {
                    before_it += 1;
                } else {
                    after_it += 1;
                }
                // After another import, the input is complete, and all other files are gone.
                let left = Arc::new(left);
                let (writer, _) = bring_in(&left, seed).unwrap();
                assert_eq!(writer.network().populations().len(), 7);
                let again = contents(&left);
                // The second import adds the edges of the multi-edge population again.
                assert!(again == after || found == after, "seed {seed}, {fails:?}");
                assert!(is_tidy(&left, &writer), "seed {seed}, {fails:?}: {:?}", left.list());
            }
        }
    }
    assert!(before_it > 50 / one_of() && after_it > 10 / one_of(), "{before_it} {after_it}");
}

#[test]
fn a_failed_import_leaves_nothing() {
    for seed in 0..10 {
        let base = worked_on(seed);
        let disk = Arc::new(base.copy());
        let before = contents(&base);
        let mut writer = Writer::open_on(disk.clone(), Options::default()).unwrap();
        let failed = writer.import(input(seed, true), &mut |_| {}).unwrap_err();
        assert!(failed.to_string().contains("damaged"), "{failed}");
        assert_eq!(contents(&disk), before, "no type, no population");
        assert_eq!(Contents::of(writer.network()), before);
        assert!(is_tidy(&disk, &writer), "{:?}", disk.list());
        // The same writer can continue.
        writer.import(input(seed, false), &mut |_| {}).unwrap();
        assert_eq!(contents(&disk).names.len(), before.names.len() + 2);
        assert!(is_tidy(&disk, &writer), "{:?}", disk.list());
    }
}

#[test]
fn a_stopped_import_is_resumed() {
    let (mut resumed, mut anew) = (0, 0);
    for seed in 0..6 {
        let base = worked_on(seed);
        let before = contents(&base);
        let done = Arc::new(base.copy());
        let counts = resume_import(&done, of_file(seed, 1, false).0).unwrap();
        let (steps, after) = (done.steps(), contents(&done));
        for step in (seed..steps).step_by(one_of()) {
            let disk = Arc::new(base.copy().after_kill(Failing::From(step)));
            let outcome = resume_import(&disk, of_file(seed, 1, false).0);
            let left =
                if step % 2 == 0 { disk.after_crash(step, Failing::Never) } else { disk.copy() };
            let found = contents(&left);
            assert!(
                found == after || outcome.is_err() && found == before,
                "seed {seed}, step {step}: half of it shows"
            );
            if found == after {
                continue;
            }
            // Another change invalidates the part of the import that was kept.
            if step % 5 == 0 {
                let other = Arc::new(left.copy());
                let mut writer = Writer::open_on(other.clone(), Options::default()).unwrap();
                let gone = thalweg::graph::Change::ClearEdges { population: 0 };
                if writer.commit(vec![gone]).unwrap().edges_removed > 0 {
                    drop(writer);
                    assert_eq!(
                        resume_import(&other, of_file(seed, 1, false).0).unwrap().resumed,
                        0
                    );
                    contents(&other);
                }
            }
            let left = Arc::new(left);
            let (input, reads) = of_file(seed, 1, false);
            let again = resume_import(&left, input).unwrap();
            assert_eq!(again, Imported { resumed: again.resumed, ..counts });
            assert_eq!(
                reads.load(Ordering::Relaxed) == 0,
                again.resumed > 0,
                "what is there is not read again"
            );
            if again.resumed > 0 {
                resumed += 1;
            } else {
                anew += 1;
            }
            assert!(contents(&left) == after, "seed {seed}, step {step}");
            let writer = Writer::open_on(left.clone(), Options::default()).unwrap();
            assert!(is_tidy(&left, &writer), "{:?}", left.list());
        }
    }
    assert!(resumed > 20 / one_of() && anew > 20 / one_of(), "{resumed} {anew}");
}

#[test]
fn an_import_is_resumed_with_the_same_file_only() {
    let (seed, mut stopped) = (3, 0);
    let base = worked_on(seed);
    let done = Arc::new(base.copy());
    resume_import(&done, of_file(seed, 1, false).0).unwrap();
    let (steps, after) = (done.steps(), contents(&done));
    for step in 0..steps {
        let disk = Arc::new(base.copy().after_kill(Failing::From(step)));
        let _ = resume_import(&disk, of_file(seed, 1, false).0);
        let left = Arc::new(disk.copy());
        let before = contents(&left);
        let Err(changed) = resume_import(&left, of_file(seed, 2, false).0) else { continue };
        stopped += 1;
        let words = "the file or the options were others when an import of it into disk was \
            stopped, which kept 1 of its 2";
        assert!(changed.to_string().contains(words), "{changed}");
        assert_eq!(contents(&left), before);
        // The import can still be resumed, or started anew.
        let same = Arc::new(left.copy());
        assert_eq!(resume_import(&same, of_file(seed, 1, false).0).unwrap().resumed, 1);
        let mut writer = Writer::open_on(left.clone(), Options::default()).unwrap();
        writer.forget_import().unwrap();
        assert!(is_tidy(&left, &writer), "{:?}", left.list());
        drop(writer);
        assert_eq!(resume_import(&left, of_file(seed, 2, false).0).unwrap().resumed, 0);
        assert_eq!(contents(&left), after);
        // An import with damaged pages is not resumed.
        let damaged = Arc::new(disk.copy());
        let mut kept = String::new();
        damaged.damage("manifest", |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let (_, import) = text.split_once("unfinished_import").unwrap();
            let (_, file) = import.split_once("\"file\":\"").unwrap();
            kept = file[..12].to_owned();
        });
        damaged.damage(&kept, |bytes| bytes[99] ^= 1);
        assert_eq!(resume_import(&damaged, of_file(seed, 1, false).0).unwrap().resumed, 0);
        assert_eq!(contents(&damaged), after);
    }
    assert!(stopped > 4, "{stopped}");
    // An import of a damaged input is not resumed, and nothing of it is kept.
    let disk = Arc::new(base.copy());
    resume_import(&disk, of_file(seed, 1, true).0).unwrap_err();
    let writer = Writer::open_on(disk.clone(), Options::default()).unwrap();
    assert!(is_tidy(&disk, &writer), "{:?}", disk.list());
    drop(writer);
    assert_eq!(resume_import(&disk, of_file(seed, 2, false).0).unwrap().resumed, 0);
}
