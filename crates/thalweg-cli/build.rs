//! Notes how the program is built, for the results of benchmarks.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| env::var(name).unwrap_or_default();
    let compiler = Command::new(var("RUSTC")).arg("--version").output();
    let compiler = compiler.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let extra = var("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    let flags = format!("{} opt-level={} {} {extra}", var("PROFILE"), var("OPT_LEVEL"), var("TARGET"));
    println!("cargo::rustc-env=THALWEG_COMPILER={compiler}");
    println!("cargo::rustc-env=THALWEG_FLAGS={}", flags.trim_end());
}
