//! Benchmarks of programs that read files: verified-cold trials, compared in pairs with other
//! programs, and with the limit of this machine. The crate knows no file format.
//!
//! A *trial* is one fresh process that runs a workload once. A *comparison* interleaves the trials
//! of several arms and compares them pair by pair. The *limit* is the shortest time that this
//! machine allows for the same file, probed in the same session. A trial whose evidence is missing
//! counts as unverified; a trial that fails its cache level is shown but never averaged.
//! `docs/results.md` documents the JSON.
//!
//! # Modules
//!
//! An arrow means "uses". The arrows form no cycle.
//!
//! ```text
//!  suite ────────┐   report ──> cross_run ──> results
//!  (TOML files)  │   (text, Markdown, HTML)      │
//!                v                               │
//!            comparison <────────────────────────┘
//!                │
//!     ┌──────────┼────────────┬───────────┬──────────┐
//!     v          v            v           v          v
//!   trial   cache_level    verdict      stats     schedule
//!     │          │            │           ^
//!     v          │            v           │
//!  workload      ├──> host  limit ────────┤
//!                v            │           │
//!              cache <────────┘           │
//!                └────────────────────────┘
//! ```
//!
//! `procfs` and `syscalls` read the counters of Linux; `units` prints and parses quantities.
//!
//! # Examples
//!
//! The statistics alone, on times that were measured elsewhere:
//!
//! ```
//! use thalweg_gauge::stats::{RatioFinding, Pair, looks, median, ratio};
//!
//! // Seconds of two programs in eight rounds.
//! let ours = [1.02, 0.98, 1.01, 0.99, 1.05, 0.97, 1.00, 1.03];
//! let theirs = [1.31, 1.28, 1.35, 1.29, 1.40, 1.27, 1.30, 1.33];
//! let pair = |round: usize| Pair { round, arm_s: theirs[round], baseline_s: ours[round] };
//! let pairs: Vec<Pair> = (0..8).map(pair).collect();
//! let ratio = ratio(&pairs, &looks(8, 8), 8).unwrap();
//!
//! assert_eq!(median(&theirs[..7]), Some(1.3));
//! assert!((ratio.median - 1.305).abs() < 0.005);
//! let (low, high) = ratio.interval.unwrap();
//! assert!(1.28 < low && high < 1.34);
//! // Identical arms differed by 2 %; the whole interval lies beyond that.
//! assert_eq!(RatioFinding::of(&ratio, 1.02), RatioFinding::Slower);
//! ```
//!
//! A comparison of two commands, with every raw trial on standard output:
//!
//! ```no_run
//! use thalweg_gauge::cache_level::CacheLevel;
//! use thalweg_gauge::comparison::{Arm, ComparisonPlan, ComparisonProgress, run};
//!
//! # fn main() -> thalweg_gauge::Result<()> {
//! let arm = |name: &str, program: &str| {
//!     Arm::new(name, [program, "{file}"], "reads.blow5").level(CacheLevel::Cold)
//! };
//! let arms = vec![arm("ours", "thalweg-sum"), arm("theirs", "peer-sum")];
//! let plan = ComparisonPlan::new("reads", arms).rounds(10);
//! let stop = std::sync::atomic::AtomicBool::new(false);
//! let mut on_progress = |_: ComparisonProgress<'_>| {};
//! let comparison = run(&plan, &mut std::io::stdout(), &stop, &mut on_progress)?;
//! print!("{}", thalweg_gauge::report::text(&comparison, None));
//! # Ok(())
//! # }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!(
    "thalweg-gauge proves what is cached and what was read with Linux's own accounts \
     (procfs, cachestat, posix_fadvise). It does not measure on other systems: it could not tell \
     a cold trial from a hot one there."
);

pub mod cache;
pub mod cache_level;
pub mod comparison;
pub mod cross_run;
pub mod error;
pub mod host;
pub mod limit;
mod procfs;
pub mod report;
pub mod results;
pub mod schedule;
pub mod stats;
pub mod suite;
mod syscalls;
// Public for the fuzz targets, which are a package of their own.
#[doc(hidden)]
pub mod testing;
pub mod trial;
pub mod units;
pub mod verdict;
pub mod workload;

pub use error::{Error, Result};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
