//! Ends the trials of a process that is killed, with all processes that they started.
//!
//! A process that is killed can end nothing itself, and the system ends only what it started, not
//! what that started in turn. So a shell stands by, which knows the process groups of the trials.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Reads lines until this process has ended, however it ended. Each line has the groups of the
/// trials that run, so the last one has those that are left.
const SCRIPT: &str = "while read -r line; do groups=$line; done; \
                      for group in $groups; do kill -s KILL -- \"-$group\"; done";

/// The shell that stands by, and the groups that it was told last.
struct Guard {
    lines: ChildStdin,
    groups: BTreeSet<u32>,
}

static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

/// Starts the shell, unless it stands by already. Without a shell, trials go on without a guard.
pub(super) fn start() {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_some() {
        return;
    }
    let mut shell = Command::new("sh");
    // In a group of its own, it outlives a Ctrl-C that ends this process's group.
    shell.args(["-c", SCRIPT]).process_group(0).current_dir("/");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let lines = shell.spawn().ok().and_then(|mut shell| shell.stdin.take());
    *guard = lines.map(|lines| Guard { lines, groups: BTreeSet::new() });
}

/// A process group that the guard knows until this is dropped.
pub(super) struct GuardedGroup(u32);

impl GuardedGroup {
    pub(super) fn new(group: u32) -> Self {
        tell(|groups| groups.insert(group));
        Self(group)
    }
}

impl Drop for GuardedGroup {
    fn drop(&mut self) {
        tell(|groups| groups.remove(&self.0));
    }
}

/// Tells the guard the groups after a change.
fn tell(change: impl FnOnce(&mut BTreeSet<u32>) -> bool) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Guard { lines, groups }) = &mut *guard else { return };
    change(groups);
    let line: String = groups.iter().map(|group| format!("{group} ")).collect();
    // A guard that was ended is missed only if this process is killed, too.
    let _ = lines.write_all(format!("{line}\n").as_bytes());
}
