//! The yardstick: verified-cold trials, paired with peers, against this machine's own limit.
//!
//! A *trial* is one fresh process that ran a workload once; a *comparison* interleaves the trials
//! of several arms and compares them pair by pair; the *limit* is what this machine can do with the
//! very same file, probed in the same session. Whatever could not be verified is said to be
//! unverified, and whatever failed its own level is shown but never averaged. `docs/results.md`
//! documents the JSON.
//!
//! ```no_run
//! use thalweg_gauge::comparison::{Arm, Plan, Progress, run};
//! use thalweg_gauge::level::Level;
//!
//! # fn main() -> thalweg_gauge::Result<()> {
//! let arm = |name: &str, program: &str| Arm::new(name, [program, "{file}"], "reads.blow5").level(Level::Cold);
//! let plan = Plan::new("reads", vec![arm("ours", "thalweg-sum"), arm("theirs", "peer-sum")]).rounds(10);
//! let stop = std::sync::atomic::AtomicBool::new(false);
//! let comparison = run(&plan, &mut std::io::stdout(), &stop, &mut |_: Progress<'_>| {})?;
//! print!("{}", thalweg_gauge::report::text(&comparison));
//! # Ok(())
//! # }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!(
    "thalweg-gauge proves what is cached and what was read with Linux's own accounts (procfs, cachestat, posix_fadvise). \
     It does not measure on other systems: it could not tell a cold trial from a hot one there."
);

pub mod cache;
pub mod compare;
pub mod comparison;
pub mod error;
pub mod host;
pub mod level;
pub mod limit;
mod proc;
pub mod report;
pub mod results;
pub mod schedule;
pub mod stats;
pub mod suite;
mod sys;
pub mod testing;
pub mod trial;
pub mod units;
pub mod verdict;
pub mod workload;

pub use error::{Error, Result};
