//! Times an empty command: each line is the process's wall time in microseconds.
//! `scripts/overhead.py` compares these times with the kernel's own figures for the same processes.
//!
//! ```text
//! cargo run --release --example empty -- 200
//! ```
#![allow(clippy::print_stdout)]

use std::sync::atomic::AtomicBool;

use thalweg_gauge::trial::run;
use thalweg_gauge::workload::Workload;

fn main() -> thalweg_gauge::Result<()> {
    let times = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    for _ in 0..times {
        let outcome = run(&Workload::new(["true"]), &AtomicBool::new(false))?;
        println!("{:.1}", outcome.usage.wall_s * 1e6);
    }
    Ok(())
}
