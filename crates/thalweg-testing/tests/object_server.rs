//! The command line of the object store for measurements.

#![allow(clippy::unwrap_used)]

use std::process::Command;

fn object_server(args: &[&str]) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_object-server")).args(args).output().unwrap();
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
