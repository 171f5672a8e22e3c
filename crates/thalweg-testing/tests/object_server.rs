//! The command line of the object store for measurements.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

fn object_server(args: &[&str]) -> (bool, String) {
    // A shell between cargo and the compiler drops variables with a hyphen, such as
    // CARGO_BIN_EXE_object-server. This test is in the folder `deps` beside the programs.
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("object-server");
    let done = Command::new(program).args(args).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn help_is_printed_and_no_server_starts() {
    for args in [&["--help"][..], &["-h"], &["folder", "--port", "0", "--help"]] {
        let (is_done, said) = object_server(args);
        assert!(is_done && said.contains("--latency-ms P50,P99  time to the first byte"), "{said}");
    }
    for args in [&[][..], &["no such folder"], &["--port", "1"]] {
        let (is_done, said) = object_server(args);
        assert!(!is_done && said.contains("usage: object-server FOLDER"), "{said}");
    }
}
