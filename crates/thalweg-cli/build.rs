//! Records how the program is built, for the results of benchmarks.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| env::var(name).unwrap_or_default();
    let compiler = Command::new(var("RUSTC")).arg("--version").output();
    let compiler =
        compiler.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let extra = var("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    let flags =
        format!("{} opt-level={} {} {extra}", var("PROFILE"), var("OPT_LEVEL"), var("TARGET"));
    println!("cargo::rustc-env=THALWEG_COMPILER={compiler}");
    println!("cargo::rustc-env=THALWEG_FLAGS={}", flags.trim_end());
    if env::var_os("CARGO_FEATURE_MPI").is_some() {
        find_mpi();
    }
}

/// Adds the library folders of MPI's compiler wrapper to the program's library search path, because
/// MPI may be installed outside the system's folders.
fn find_mpi() {
    println!("cargo::rerun-if-env-changed=MPICC");
    let wrapper = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let says = Command::new(wrapper).arg("-show").output();
    let says = says.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    for folder in says.split_whitespace().filter_map(|word| word.strip_prefix("-L")) {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
    }
}
