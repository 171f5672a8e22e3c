//! A writer and its compactions under many interleavings of their threads: `make schedules`.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use thalweg::graph::{Network, NetworkOptions as Options, Writer};
use thalweg_io::sync::explore;
use thalweg_testing::{CrashDisk, Failing};

use super::model::{Model, define};

/// Flushes of a run. Each makes a segment, so a compaction begins after the seventh, and is
/// installed by a later one.
const FLUSHES: usize = 12;

/// Changes before a flush.
const CHANGES: usize = 3;

#[test]
fn a_compaction_beside_changes_loses_none() {
    explore(|| {
        let mut rng = SmallRng::seed_from_u64(1);
        let disk = CrashDisk::new(Failing::Never);
        let open = || {
            let disk = Arc::new(disk.after_kill(Failing::Never));
            Writer::open_on(disk, Options::default()).unwrap()
        };
        let mut model = Model::new();
        let mut writer = open();
        define(&mut writer);
        for flush in 0..FLUSHES {
            let changes = (0..CHANGES).map(|_| model.step(&mut rng)).collect();
            writer.commit(changes).unwrap();
            writer.flush().unwrap();
            if flush == FLUSHES / 2 {
                model.check(writer.network());
            }
        }
        model.check(writer.network());
        // A compaction may still run.
        drop(writer);
        model.check(open().network());
        let read = Arc::new(disk.after_kill(Failing::Never));
        model.check(&Network::open_on(read, Options::default()).unwrap());
    });
}
