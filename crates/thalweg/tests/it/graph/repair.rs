//! Random damage: a repaired network is consistent, contains nothing that was never there, and
//! keeps everything that is known from the other end of an edge.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg::disk::Disk;
use thalweg::graph::{
    Change, Network, NetworkOptions as Options, Population, RepairReport, Writer, repair_on,
};
use thalweg_testing::{CrashDisk, Failing, one_of};

use super::contents::Contents;
use super::model::{Model, define, schema};

fn is_part<K: Ord + std::fmt::Debug>(
    part: &BTreeMap<K, Option<i64>>,
    all: &BTreeMap<K, Option<i64>>,
    doubt: bool,
) {
    for (key, value) in part {
        let known = all.get(key).unwrap_or_else(|| panic!("{key:?} never was"));
        assert!(value.is_none() || doubt || value == known, "{key:?} is {value:?}, not {known:?}");
    }
}

/// Repairs a damaged network, and compares it with its last contents (`truth`) and with everything
/// that it ever contained (`ever`).
fn mended(damaged: &CrashDisk, truth: &Contents, ever: &Contents) -> (Contents, RepairReport) {
    let out = Arc::new(CrashDisk::new(Failing::Never));
    let report = repair_on(damaged, &*out, &Options::default()).unwrap();
    let network = Network::open_on(out.clone(), Options::default()).unwrap();
    let checked = network.check(&mut |_| {}).unwrap();
    assert!(checked.defects.is_empty(), "{:?}", checked.defects);
    let found = Contents::of(&network);
    for (number, kept) in report.vertices.iter().enumerate() {
        let all = if kept.is_in_doubt { &ever.vertices[number] } else { &truth.vertices[number] };
        is_part(&found.vertices[number], all, kept.is_in_doubt);
        assert_eq!(kept.kept, found.vertices[number].len() as u64);
        assert!(
            kept.expected.is_none_or(|expected| expected == truth.vertices[number].len() as u64)
        );
    }
    for (number, kept) in report.edges.iter().enumerate() {
        let all = if kept.is_in_doubt { &ever.edges[number] } else { &truth.edges[number] };
        is_part(&found.edges[number], all, false);
        assert_eq!(kept.kept, found.edges[number].len() as u64);
        let count = truth.edges[number].len() as u64;
        assert!(
            kept.expected.is_none_or(|expected| expected == count),
            "{number}: {count} edges, {report:?}"
        );
        let nulls = |of: &Contents| {
            of.edges[number].values().filter(|value| value.is_none()).count() as u64
        };
        if !kept.is_in_doubt && kept.attributes_lost == 0 && kept.lost.is_empty() {
            assert_eq!(nulls(&found), nulls(truth), "{}", kept.name);
        }
    }
    // The repaired network can be changed.
    let mut writer = Writer::open_on(out, Options::default()).unwrap();
    let gone = Change::ClearEdges { population: 0 };
    assert_eq!(writer.commit(vec![gone]).unwrap().edges_removed, found.edges[0].len() as u64);
    writer.compact().unwrap();
    (found, report)
}

/// A network after random changes, its contents, and everything that it ever contained.
fn worked_on(seed: u64) -> (CrashDisk, Contents, Contents) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let disk = CrashDisk::new(Failing::Never);
    let mut writer =
        Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    define(&mut writer);
    let (mut model, mut ever) = (Model::new(), Contents::default());
    for _ in 0..rng.random_range(5..60) {
        let changes = (0..rng.random_range(1..8)).map(|_| model.step(&mut rng)).collect();
        writer.commit(changes).unwrap();
        ever.add(&Contents::of(writer.network()));
        match rng.random_range(0..14) {
            0 => writer.flush().unwrap(),
            1 => writer.compact().unwrap(),
            _ => {}
        }
    }
    model.check(writer.network());
    let truth = Contents::of(writer.network());
    (disk, truth, ever)
}

#[test]
fn one_damaged_byte_loses_no_edge_of_a_segment() {
    let (mut segments, mut others) = (0, 0);
    for seed in (0..16).step_by(one_of()) {
        let (disk, truth, ever) = worked_on(seed);
        let mut rng = SmallRng::seed_from_u64(seed);
        for file in disk.list().unwrap() {
            for _ in 0..8 {
                let damaged = disk.copy();
                let mut at = 0;
                damaged.damage(&file, |bytes| {
                    at = rng.random_range(0..bytes.len());
                    bytes[at] ^= 1 << rng.random_range(0..8);
                });
                let (found, report) = mended(&damaged, &truth, &ever);
                if file.ends_with(".log") {
                    assert!(!report.log.is_empty() || found == truth, "{file} byte {at}");
                } else if file.ends_with(".seg") {
                    segments += 1;
                    let same = found
                        .edges
                        .iter()
                        .zip(&truth.edges)
                        .all(|(one, two)| one.keys().eq(two.keys()));
                    assert!(same, "{file} byte {at}, seed {seed}: {report:?}");
                    assert!(
                        report.edges.iter().all(|kept| kept.lost.is_empty() && !kept.is_in_doubt)
                    );
                } else {
                    others += 1;
                    assert_eq!(found, truth, "{file} byte {at}");
                }
                let is_told =
                    !report.defects.is_empty() || file == "manifest.copy" || found == truth;
                assert!(is_told, "{file} byte {at}");
            }
        }
    }
    assert!(segments > 100 / one_of() && others > 100 / one_of(), "{segments} {others}");
}

#[test]
fn repair_never_invents_edges() {
    let mut losses = 0;
    for seed in (100..124).step_by(one_of()) {
        let (disk, truth, ever) = worked_on(seed);
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..12 {
            let damaged = disk.copy();
            for _ in 0..rng.random_range(1..6) {
                let files = damaged.list().unwrap();
                let file = &files[rng.random_range(0..files.len())];
                match rng.random_range(0..8) {
                    0 if !file.starts_with("manifest") => damaged.remove(file).unwrap(),
                    1 if !file.starts_with("manifest") => damaged.damage(file, |bytes| {
                        bytes.truncate(rng.random_range(0..=bytes.len()));
                    }),
                    2 if file.ends_with(".seg") => damaged.damage(file, |bytes| {
                        let page = rng.random_range(0..=bytes.len() / 4096);
                        let end = bytes.len().min(page * 4096 + 4096);
                        bytes[page * 4096..end].fill(0);
                    }),
                    _ if file != "manifest" => damaged.damage(file, |bytes| {
                        if !bytes.is_empty() {
                            let at = rng.random_range(0..bytes.len());
                            bytes[at] ^= 1 << rng.random_range(0..8);
                        }
                    }),
                    _ => {}
                }
            }
            let (found, report) = mended(&damaged, &truth, &ever);
            losses += usize::from(found != truth);
            assert!(found == truth || !report.defects.is_empty());
        }
    }
    assert!(losses > 40 / one_of(), "{losses}");
}

/// A network whose lists of neighbours take many pages.
fn large() -> (CrashDisk, Contents) {
    let disk = CrashDisk::new(Failing::Never);
    let mut writer =
        Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    for (name, is_multi, attributes) in [("plain", false, None), ("rich", true, Some(schema()))] {
        let is_rich = attributes.is_some();
        let population = Population {
            name: name.into(),
            source: "cell".into(),
            target: "site".into(),
            is_directed: true,
            is_multi,
            attributes: attributes.unwrap_or_else(|| Arc::new(arrow_schema::Schema::empty())),
        };
        let population = writer.population(&population).unwrap();
        let count = if is_rich { 20_000 } else { 60_000 };
        let edges = (0..count)
            .map(|_| (rng.random_range(0..9000) * 7, rng.random_range(0..40_000) * 3))
            .collect();
        let values: Vec<i64> = (0..count).map(|value| 3 * value).collect();
        let labels = arrow_array::StringArray::new_null(values.len());
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(arrow_array::Int64Array::from(values)), Arc::new(labels)];
        let attributes =
            is_rich.then(|| arrow_array::RecordBatch::try_new(schema(), columns).unwrap());
        writer.commit(vec![Change::AddEdges { population, edges, attributes }]).unwrap();
    }
    writer.compact().unwrap();
    let truth = Contents::of(writer.network());
    (disk, truth)
}

#[test]
fn losses_in_lists_of_many_pages_are_reported_exactly() {
    let (disk, truth) = large();
    let file = disk.list().unwrap().into_iter().find(|file| file.ends_with(".seg")).unwrap();
    let pages = disk.open(&file).unwrap().size() as usize / 4096;
    assert!(pages > 150, "{pages}");
    let mut rng = SmallRng::seed_from_u64(2);
    let (mut lost, mut attributes) = (0, 0);
    for round in (0..14).step_by(if one_of() > 1 { 2 } else { 1 }) {
        let damaged = disk.copy();
        let count = if round < 5 { 1 } else { rng.random_range(2..40) };
        for _ in 0..count {
            damaged.damage(&file, |bytes| bytes[rng.random_range(0..pages) * 4096 + 77] ^= 0x40);
        }
        let (found, report) = mended(&damaged, &truth, &truth);
        for (number, kept) in report.edges.iter().enumerate() {
            let gone: Vec<_> = truth.edges[number]
                .keys()
                .filter(|edge| !found.edges[number].contains_key(edge))
                .collect();
            assert_eq!(
                gone.len() as u64,
                kept.lost.iter().map(|lost| lost.count.unwrap()).sum::<u64>()
            );
            for (source, target, _) in &gone {
                let is_told = |lost: &thalweg::graph::LostRecords| {
                    lost.sources.iter().any(|range| range.contains(source))
                        && lost.targets.iter().any(|range| range.contains(target))
                };
                assert!(kept.lost.iter().any(is_told), "{source} {target}");
            }
            let blank = found.edges[number].values().filter(|value| value.is_none()).count() as u64;
            assert_eq!(kept.attributes_lost, if number == 0 { 0 } else { blank });
            lost += gone.len();
            attributes += kept.attributes_lost;
            assert!(count > 1 || gone.is_empty(), "one page took {} edges", gone.len());
        }
    }
    assert!(lost > 20 && attributes > 20, "{lost} {attributes}");
}

#[test]
fn a_damaged_change_loses_no_other_change() {
    let disk = CrashDisk::new(Failing::Never);
    let mut writer =
        Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default()).unwrap();
    define(&mut writer);
    let mut begins = Vec::new();
    let log = disk.list().unwrap().into_iter().find(|file| file.ends_with(".log")).unwrap();
    for id in 0..20 {
        begins.push(disk.open(&log).unwrap().size() as usize);
        writer
            .commit(vec![Change::AddEdges {
                population: 0,
                edges: vec![(id, 100 + id)],
                attributes: None,
            }])
            .unwrap();
    }
    let truth = Contents::of(writer.network());
    for (number, begin) in begins.iter().enumerate() {
        for at in [0, 5, 9, 17, 30] {
            let damaged = disk.copy();
            damaged.damage(&log, |bytes| bytes[begin + at] ^= 0x21);
            let (found, report) = mended(&damaged, &truth, &truth);
            let id = number as u64;
            let expected: Vec<_> =
                truth.edges[0].keys().filter(|edge| edge.0 != id).copied().collect();
            assert_eq!(
                found.edges[0].keys().copied().collect::<Vec<_>>(),
                expected,
                "change {number}, byte {at}"
            );
            let end =
                begins.get(number + 1).map_or(disk.open(&log).unwrap().size(), |end| *end as u64);
            assert_eq!(report.log, vec![*begin as u64..end]);
        }
    }
}

#[test]
fn repairs_that_fail_leave_no_files() {
    let (disk, ..) = worked_on(7);
    let out = CrashDisk::new(Failing::Never);
    let damaged = disk.copy();
    for file in ["manifest", "manifest.copy"] {
        damaged.damage(file, |bytes| bytes[9] ^= 1);
    }
    let failed = repair_on(&damaged, &out, &Options::default()).unwrap_err();
    assert!(
        failed.to_string().contains("names of types and populations are nowhere else"),
        "{failed}"
    );
    assert!(out.list().unwrap().is_empty());
    // If a repair fails in the middle, it leaves no files.
    for step in 0..12 {
        let out = CrashDisk::new(Failing::Once(step));
        if repair_on(&disk, &out, &Options::default()).is_err() {
            assert!(out.list().unwrap().is_empty(), "step {step}: {:?}", out.list());
        }
    }
    let full = CrashDisk::new(Failing::Never);
    full.create("something").unwrap();
    let failed = repair_on(&disk, &full, &Options::default()).unwrap_err();
    assert!(failed.to_string().contains("there is something already"), "{failed}");
    assert_eq!(full.list().unwrap(), ["something"]);
}
