//! Asks before commands run that another user wrote.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{PlannedSuite, show};
use crate::common::{Failure, VerbResult, shown_path};

/// Lets the commands of a suite run if the user who runs this wrote the file that they are from, or
/// agrees to run them (`--yes`, or an answer on the terminal, after the commands were printed).
pub(super) fn agreed(file: &Path, work: &PlannedSuite, yes: bool) -> VerbResult {
    let Some(writer) = someone_else(file).filter(|_| !yes) else { return Ok(()) };
    let name = shown_path(file);
    show::plan(&work.suite, &work.jobs)?;
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        eprint(&format!("\n{name} is from {writer}. Run these commands? [y/N] "));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Failure::Usage(format!(
        "{name} is from {writer}, and it runs the commands above as you: read them, then agree \
         with --yes"
    )))
}

fn eprint(question: &str) {
    let _ = io::stderr().write_all(question.as_bytes());
}

/// The owner of a file, in words, if that is not the user who runs this.
fn someone_else(file: &Path) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    let owner = fs::metadata(file).ok()?.uid();
    (owner != own).then(|| format!("another user (number {owner})"))
}
