//! Imports that end anywhere: all of an input is there afterwards or nothing of it, and no file that is not of the network.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Schema, SchemaRef};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg::graph::disk::Disk;
use thalweg::graph::{
    EdgeSource, Edges, Imported, Input, Network, Options, Population, VertexSource, Vertices, Writer,
};
use thalweg::testing::{CrashDisk, Failing};

use super::contents::Contents;
use super::model::{Model, define, schema};

/// Edges of a list, some at a time.
struct Listed {
    population: Population,
    edges: Vec<(u64, u64)>,
    place: usize,
    /// Whether it is damaged at its end.
    breaks: bool,
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

    fn next(&mut self, edges: &mut Edges) -> thalweg::Result<bool> {
        edges.clear();
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

    fn next(&mut self, vertices: &mut Vertices) -> thalweg::Result<bool> {
        vertices.ids = std::mem::take(&mut self.ids);
        vertices.attributes = Some(rows(7, vertices.ids.len()));
        Ok(!vertices.ids.is_empty())
    }
}

/// An input of two populations, of which one may be there, with a type that is not, and of vertices.
fn input(seed: u64, breaks: bool) -> Input {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut listed = |name: &str, source: &str, target: &str, is_directed, is_multi, attributes: SchemaRef| {
        let count = rng.random_range(600..2000);
        let edges = (0..count).map(|_| (rng.random_range(0..90), rng.random_range(0..400))).collect();
        let population = Population {
            name: name.into(),
            source: source.into(),
            target: target.into(),
            is_directed,
            is_multi,
            attributes,
        };
        Listed { population, edges, place: 0, breaks: false }
    };
    let none = Arc::new(Schema::empty());
    let first = listed("cell-site", "cell", "site", false, false, none);
    let mut second = listed("new", "cell", "newcomer", true, true, schema());
    second.breaks = breaks;
    let edges: Vec<Box<dyn EdgeSource>> = vec![Box::new(first), Box::new(second)];
    let vertices: Vec<Box<dyn VertexSource>> =
        vec![Box::new(Described { attributes: schema(), ids: (300..500).collect() })];
    Input { edges, vertices, ..Input::default() }
}

fn bring_in(disk: &Arc<CrashDisk>, seed: u64) -> thalweg::Result<(Writer, Imported)> {
    let mut writer = Writer::open_on(disk.clone(), Options::default())?;
    let done = writer.import(input(seed, false), &mut |_| {})?;
    Ok((writer, done))
}

fn contents(disk: &CrashDisk) -> Contents {
    let network = Network::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    let checked = network.check(&mut |_| {}).unwrap();
    assert!(checked.defects.is_empty(), "{:?}", checked.defects);
    Contents::of(&network)
}

/// The files of a network of so many segments.
fn is_tidy(disk: &CrashDisk, writer: &Writer) -> bool {
    let mut names = disk.list().unwrap();
    names.retain(|name| !name.ends_with(".seg"));
    let segments = disk.list().unwrap().len() - names.len();
    let [log, manifest, copy] = names.as_slice() else { return false };
    let named = log.ends_with(".log") && manifest == "manifest" && copy == "manifest.copy";
    named && segments == writer.network().storage().segments
}

/// A network that something is brought into.
fn worked_on(seed: u64) -> CrashDisk {
    let mut rng = SmallRng::seed_from_u64(seed);
    let disk = CrashDisk::new(Failing::Never);
    let mut writer = Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
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
        for step in 0..steps {
            for fails in [Failing::From(step), Failing::Once(step)] {
                let disk = Arc::new(base.copy().after_kill(fails));
                let outcome = bring_in(&disk, seed).map(drop);
                runs += 1;
                let left = if runs % 2 == 0 { disk.after_crash(runs, Failing::Never) } else { disk.copy() };
                let found = contents(&left);
                assert!(
                    found == after || outcome.is_err() && found == before,
                    "seed {seed}, {fails:?}: half an import"
                );
                if found == before {
                    before_it += 1
                } else {
                    after_it += 1
                }
                // Once more, it is there, and all else is gone.
                let left = Arc::new(left);
                let (writer, _) = bring_in(&left, seed).unwrap();
                assert_eq!(writer.network().populations().len(), 7);
                let again = contents(&left);
                // Several edges between two vertices are brought in again.
                assert!(again == after || found == after, "seed {seed}, {fails:?}");
                assert!(is_tidy(&left, &writer), "seed {seed}, {fails:?}: {:?}", left.list());
            }
        }
    }
    assert!(before_it > 50 && after_it > 10, "{before_it} {after_it}");
}

#[test]
fn of_an_import_that_fails_nothing_is_left() {
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
        // The same writer goes on.
        writer.import(input(seed, false), &mut |_| {}).unwrap();
        assert_eq!(contents(&disk).names.len(), before.names.len() + 2);
        assert!(is_tidy(&disk, &writer), "{:?}", disk.list());
    }
}
