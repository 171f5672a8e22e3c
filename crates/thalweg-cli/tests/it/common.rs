//! Runs the built program in a folder of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    /// A folder beside the program, which is on a disk. A folder for temporary files may be in
    /// memory.
    pub(crate) fn new() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_thalweg"));
        Self(tempfile::tempdir_in(program.parent().unwrap()).unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this exit code, and returns its standard error.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a command that must succeed and print JSON lines, and returns the lines.
    pub(crate) fn json(&self, args: &[&str]) -> Vec<serde_json::Value> {
        json(&self.ok(args))
    }

    /// Writes a file of synthetic reads.
    pub(crate) fn synth(&self, name: &str, samples: &str) {
        self.ok(&["synth", name, "--samples", samples]);
    }
}

pub(crate) fn json(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}
