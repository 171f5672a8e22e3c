//! Times an empty command. Each line of output is the wall time of one process in microseconds.
//! `scripts/overhead.py` compares it with the kernel's own account of the same processes.
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
