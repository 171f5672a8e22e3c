//! Crashes at any moment: every acknowledged change remains, and no change is stored in part.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg::Error;
use thalweg::graph::{Change, Network, NetworkOptions as Options, Writer};
use thalweg_testing::{CrashDisk, Failing, one_of};

use super::model::{Model, define, try_define};

/// The number of runs. Each run ends in three crashes, so there are more than a thousand.
const RUNS: u64 = 400;

/// The number of commits of a run that nothing ends.
const COMMITS: usize = 30;

fn open(disk: &CrashDisk, failing: Failing) -> thalweg::Result<(Writer, Arc<CrashDisk>)> {
    let disk = Arc::new(disk.after_kill(failing));
    Ok((Writer::open_on(disk.clone(), Options::default())?, disk))
}

/// Works on a network until something fails. Returns the states that the network may then have.
fn work(writer: &mut Writer, model: &mut Model, rng: &mut SmallRng) -> Vec<Model> {
    for _ in 0..COMMITS {
        let mut after = model.clone();
        let changes = match rng.random_range(1..7) {
            6 => vec![after.clear(rng)],
            count => (0..count).map(|_| after.step(rng)).collect(),
        };
        // A change that failed after it was written to the log may still remain.
        let outcome = writer.commit(changes);
        if outcome.is_err() {
            return vec![model.clone(), after];
        }
        *model = after;
        let outcome = match rng.random_range(0..8) {
            0 => writer.flush(),
            1 => writer.compact(),
            _ => Ok(()),
        };
        // Acknowledged changes remain, also those after a failed flush or compaction.
        drop(outcome);
    }
    vec![model.clone()]
}

fn is_any(network: &Network, models: &[Model]) -> Option<usize> {
    let quiet = std::panic::AssertUnwindSafe(|model: &Model| model.check(network));
    models.iter().position(|model| std::panic::catch_unwind(|| quiet(model)).is_ok())
}

#[test]
fn acknowledged_changes_survive_and_none_is_partial() {
    // Some models are expected not to match, so their panics are not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let jobs: Vec<_> = (0..2)
        .map(|part| {
            std::thread::spawn(move || (part..RUNS).step_by(2 * one_of()).try_for_each(run))
        })
        .collect();
    let outcomes: Vec<_> = jobs.into_iter().map(std::thread::JoinHandle::join).collect();
    let _ = std::panic::take_hook();
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => outcome.unwrap(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn run(seed: u64) -> Result<(), String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = CrashDisk::new(Failing::Never);
    let mut model = Model::new();
    {
        let (mut writer, _) = open(&disk, Failing::Never).map_err(|e| format!("{seed}: {e}"))?;
        define(&mut writer);
    }
    // Several processes work on the disk one after the other, and each ends in the middle of its
    // work.
    for life in 0..3 {
        let failing = Failing::From(rng.random_range(0..60));
        let mut may_be = vec![model.clone()];
        let failed = Arc::new(disk.after_kill(failing));
        if let Ok(mut writer) = Writer::open_on(failed.clone(), Options::default()) {
            may_be = work(&mut writer, &mut model, &mut rng);
        }
        disk = if rng.random_bool(0.5) {
            failed.after_crash(rng.random(), Failing::Never)
        } else {
            failed.after_kill(Failing::Never)
        };
        let seen = |what: &str, network: thalweg::Result<Network>| -> Result<usize, String> {
            let network = network.map_err(|e| format!("run {seed}, life {life}, {what}: {e}"))?;
            is_any(&network, &may_be)
                .ok_or_else(|| format!("run {seed}, life {life}, {what}: neither before nor after"))
        };
        let read = Arc::new(disk.after_kill(Failing::Never));
        let which = seen("read", Network::open_on(read, Options::default()))?;
        let (writer, _) = open(&disk, Failing::Never)
            .map_err(|e| format!("run {seed}, life {life}, to write: {e}"))?;
        if seen("written on", Ok(writer.network().clone()))? != which {
            return Err(format!(
                "run {seed}, life {life}: a reader and a writer see different networks"
            ));
        }
        model = may_be.swap_remove(which);
    }
    Ok(())
}

#[test]
fn making_a_network_may_end_anywhere() {
    for step in 0..60 {
        for seed in 0..8 {
            let disk = Arc::new(CrashDisk::new(Failing::From(step)));
            let made = Writer::open_on(disk.clone(), Options::default())
                .and_then(|mut writer| try_define(&mut writer));
            let left = disk.after_crash(seed, Failing::Never);
            let (mut writer, _) = open(&left, Failing::Never).unwrap();
            if made.is_err() {
                define(&mut writer);
            }
            Model::new().check(writer.network());
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_network_stays() {
    for step in (0..400).step_by(5) {
        let mut rng = SmallRng::seed_from_u64(step);
        let disk = CrashDisk::new(Failing::Never);
        let (mut writer, _) = open(&disk, Failing::Never).unwrap();
        define(&mut writer);
        drop(writer);
        let mut model = Model::new();
        let (writer, failing) = open(&disk, Failing::Once(step))
            .map_or_else(|_| (None, None), |(w, d)| (Some(w), Some(d)));
        let Some(mut writer) = writer else { continue };
        let may_be = work(&mut writer, &mut model, &mut rng);
        let left = failing.unwrap().after_kill(Failing::Never);
        // The open network shows the state that is on the disk or will be.
        assert!(is_any(writer.network(), &may_be).is_some(), "step {step}");
        drop(writer);
        let network = Network::open_on(Arc::new(left), Options::default()).unwrap();
        assert!(is_any(&network, &may_be).is_some(), "step {step}");
    }
}

#[test]
fn changes_acknowledged_after_a_failure_are_kept() {
    let (mut failures, mut acknowledged) = (0, 0);
    for step in 0..60 {
        for compacts in [false, true] {
            let disk = CrashDisk::new(Failing::Never);
            let (mut writer, _) = open(&disk, Failing::Never).unwrap();
            define(&mut writer);
            let mut rng = SmallRng::seed_from_u64(7);
            let mut model = Model::new();
            let mut changes =
                |model: &mut Model| (0..4).map(|_| model.step(&mut rng)).collect::<Vec<_>>();
            writer.commit(changes(&mut model)).unwrap();
            writer.flush().unwrap();
            writer.commit(changes(&mut model)).unwrap();
            drop(writer);
            let Ok((mut writer, failing)) = open(&disk, Failing::Once(step)) else { continue };
            let outcome = if compacts { writer.compact() } else { writer.flush() };
            failures += usize::from(outcome.is_err());
            let before = model.clone();
            let outcome = writer.commit(changes(&mut model));
            acknowledged += usize::from(outcome.is_ok());
            drop(writer);
            let network =
                Network::open_on(Arc::new(failing.after_kill(Failing::Never)), Options::default())
                    .unwrap();
            if outcome.is_ok() {
                model.check(&network);
            } else {
                assert!(is_any(&network, &[before, model]).is_some(), "step {step}");
            }
        }
    }
    assert!(failures > 10 && acknowledged > 10, "{failures} failures, {acknowledged} commits");
}

#[test]
fn a_compaction_that_is_cancelled_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let control = options.control.clone();
    let mut writer = Writer::open(folder.path(), options).unwrap();
    define(&mut writer);
    for first in [0, 100_000] {
        let ids = (first..first + 20_000).collect();
        let added = Change::AddVertices { vertex_type: 0, ids, attributes: None };
        writer.commit(vec![added]).unwrap();
        writer.flush().unwrap();
    }
    let names = || -> Vec<_> {
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    control.cancel();
    assert!(matches!(writer.compact(), Err(Error::Cancelled)));
    let after = names();
    assert!(after.iter().all(|name| before.contains(name)), "{before:?}, {after:?}");
}

#[test]
fn opening_a_new_network_that_is_cancelled_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    options.control.cancel();
    let inside = folder.path().join("outer/store");
    for store in [folder.path(), &inside] {
        let opened = Writer::open(store, options.clone());
        assert!(matches!(opened, Err(Error::Cancelled)), "{opened:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn only_one_writes() {
    let disk = Arc::new(CrashDisk::new(Failing::Never));
    let first = Writer::open_on(disk.clone(), Options::default()).unwrap();
    let second = Writer::open_on(disk.clone(), Options::default());
    assert!(
        matches!(&second, Err(Error::Usage(what)) if what.contains("another process writes")),
        "{second:?}"
    );
    drop(first);
    Writer::open_on(disk, Options::default()).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let first = Writer::open(folder.path(), Options::default()).unwrap();
    let second = Writer::open(folder.path(), Options::default());
    assert!(
        matches!(&second, Err(Error::Usage(what)) if what.contains("another process writes")),
        "{second:?}"
    );
    drop(first);
    Writer::open(folder.path(), Options::default()).unwrap();
}
