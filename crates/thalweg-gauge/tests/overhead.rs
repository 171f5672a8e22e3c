//! What the harness adds to the time of a command. The test has a process of its own: starting a
//! child copies the tables of pages of its parent, and other tests have large ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use thalweg_gauge::trial::run;
use thalweg_gauge::workload::Workload;

/// The harness adds less than a millisecond to the time of an empty command. `scripts/overhead.py`
/// compares the time with the kernel's own account. The fastest of many runs hardly depends on
/// other load.
#[test]
fn an_empty_command_takes_as_long_as_outside_the_harness() {
    let (mut ours, mut plain) = (f64::INFINITY, f64::INFINITY);
    for attempt in 1..=2000 {
        let outcome = run(&Workload::new(["true"]), &AtomicBool::new(false));
        ours = ours.min(outcome.unwrap().usage.wall_s);
        let start = Instant::now();
        Command::new("true").status().unwrap();
        plain = plain.min(start.elapsed().as_secs_f64());
        if attempt >= 80 && (ours - plain).abs() < 1e-3 {
            return;
        }
    }
    panic!("{ours} {plain}");
}
