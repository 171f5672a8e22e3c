//! Applies random changes to a network and to a model.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thalweg::graph::{Network, NetworkOptions as Options, NumberCoding, Writer};
use thalweg_testing::{CrashDisk, Failing, one_of};

use super::model::{Model, define};

/// The number of random changes, over all threads.
const STEPS: usize = 100_000;

#[test]
fn a_network_is_what_a_model_in_memory_is() {
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let mut disk = CrashDisk::new(Failing::Never);
                let mut model = Model::new();
                let mut writer =
                    Writer::open_on(Arc::new(disk.after_kill(Failing::Never)), Options::default())
                        .unwrap();
                define(&mut writer);
                if seed % 2 == 0 {
                    writer.set_coding(NumberCoding::Raw);
                }
                let mut step = 0;
                while step < STEPS / 4 / one_of() {
                    let count = rng.random_range(1..12);
                    let changes = (0..count).map(|_| model.step(&mut rng)).collect();
                    writer.commit(changes).unwrap();
                    step += count;
                    match rng.random_range(0..100) {
                        0..3 => writer.flush().unwrap(),
                        3..5 => writer.compact().unwrap(),
                        5 => {
                            drop(writer);
                            disk = disk.after_kill(Failing::Never);
                            writer = Writer::open_on(
                                Arc::new(disk.after_kill(Failing::Never)),
                                Options::default(),
                            )
                            .unwrap();
                        }
                        6..8 => model.check(writer.network()),
                        8 => model.check(
                            &Network::open_on(
                                Arc::new(disk.after_kill(Failing::Never)),
                                Options::default(),
                            )
                            .unwrap(),
                        ),
                        9 if rng.random_bool(0.3) => {
                            let change = model.clear(&mut rng);
                            writer.commit(vec![change]).unwrap();
                            model.check(writer.network());
                        }
                        _ => {}
                    }
                }
                model.check(writer.network());
                writer.compact().unwrap();
                model.check(writer.network());
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
