//! Runs the command with a time limit.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    #[allow(dead_code, reason = "shown where a test fails")]
    pub(crate) signal: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) const THALWEG: &str = env!("CARGO_BIN_EXE_thalweg");

/// This limit only ends a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A cache folder for the tests. The user's cache folder must neither matter nor change.
fn cache() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
}

pub(crate) fn thalweg(args: &[&str]) -> Ended {
    let mut command = Command::new(THALWEG);
    command.args(args).env("XDG_CACHE_HOME", cache());
    run(command)
}

/// Interrupts a command, as Ctrl-C does, once `count` has reached `least`.
pub(crate) fn interrupt_at(mut child: Child, count: impl Fn() -> usize, least: usize) -> Output {
    let began = Instant::now();
    while count() < least {
        assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    output
}

/// Runs the command from a shell, after `before`, which sets limits and traps.
pub(crate) fn after(before: &str, args: &[&str]) -> Ended {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(THALWEG).args(args);
    command.env("XDG_CACHE_HOME", cache());
    run(command)
}

pub(crate) fn run(mut command: Command) -> Ended {
    wait(
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    )
}

/// Waits for a command whose output is small.
pub(crate) fn wait(mut child: Child) -> Ended {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("still running after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        signal: output.status.signal(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the command as a user who is not root, with a cache folder. Permissions do not apply to
/// root.
pub(crate) fn as_nobody(args: &[&str], cache: &Path) -> Ended {
    let mut command = Command::new(THALWEG);
    command.args(args).env("XDG_CACHE_HOME", cache);
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    run(command)
}

pub(crate) const NOBODY: u32 = 65_534;

/// Whether the user `nobody` may run the binary in its folder.
pub(crate) fn nobody_can_run() -> bool {
    let mut command = Command::new(THALWEG);
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.arg("--version").output().is_ok_and(|output| output.status.success())
}

impl Ended {
    /// Asserts that the command failed with one message that names the file.
    #[track_caller]
    pub(crate) fn told(&self, file: &str, words: &str) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(
            self.err.starts_with("thalweg: ")
                && self.err.contains(file)
                && self.err.contains(words),
            "{self:?}"
        );
        assert!(!self.err.contains("panicked"), "{self:?}");
    }
}
