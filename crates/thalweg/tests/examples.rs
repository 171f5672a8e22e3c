//! Runs the example programs without arguments: each makes its own input.
#![cfg(feature = "hdf5")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::Command;

/// The folder of the example programs, which `cargo test` builds beside the tests.
fn folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples")
}

/// Runs an example and returns its output.
fn run(name: &str) -> String {
    let program = folder().join(name);
    let output = Command::new(&program).output().unwrap_or_else(|e| {
        panic!("{}: {e}; `cargo build -p thalweg --examples` builds it", program.display())
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_example_runs_and_prints_what_it_read() {
    for (name, word) in [
        ("read_blow5", " pA"),
        ("pod5_by_id", "largest sample Some"),
        ("hdf5_selection", "16000 bytes out of"),
        ("nexus_events", "events of that time"),
        ("neighbours", "astrocyte 3: "),
        ("own_store", "requests of"),
    ] {
        let printed = run(name);
        assert!(printed.contains(word), "{name} printed {printed:?}");
    }
}
