//! Compares commands that read one file, cold: `compare FILE 'cat {file}' 'md5sum {file}'`.
//!
//! Each command is split at blanks. Raw trials are written to `results.jsonl` in the current
//! folder, and a page to `results.html`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // an example prints

use std::sync::atomic::AtomicBool;

use thalweg_gauge::comparison::{Arm, ComparisonPlan, ComparisonProgress, Needs, run};
use thalweg_gauge::limit::ProbeOptions;
use thalweg_gauge::report::{html, machine, text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: compare FILE COMMAND...")?;
    let arm = |c: String| {
        Arm::new(c.clone(), c.split_whitespace(), &file).needs(Needs::WholeFiles).without_report()
    };
    let plan = ComparisonPlan::new("compare", args.map(arm).collect())
        .rounds(6)
        .probe(ProbeOptions::default());
    let mut out = std::fs::File::create("results.jsonl")?;
    let comparison = run(&plan, &mut out, &AtomicBool::new(false), &mut |p| match p {
        ComparisonProgress::Starting { arm, done, total, .. } => eprintln!("{done}/{total} {arm}"),
        ComparisonProgress::Probing { done, total } => eprintln!("probing {done}/{total}"),
        _ => {}
    })?;
    print!("{}{}", text(&comparison, None), machine(&comparison, None));
    std::fs::write("results.html", html(&[comparison]))?;
    Ok(())
}
