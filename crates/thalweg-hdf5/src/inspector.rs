//! Opens an HDF5 file in a child process first, so that a malformed file crashes the child only.
//!
//! libhdf5 trusts much of what a file says. Malformed files make it crash, loop forever, or take
//! all memory. An [`Inspector`] in a [`Control`] inspects every file before libhdf5 opens it. Its
//! command calls [`look`] with the path, which looks at every object and attribute within limits of
//! processor time and memory, and prints the [`Answer`]. The file is opened only after an answer
//! that allows it; if the child ends in any other way, the file is an error. The child ends if the
//! parent ends. An inspection costs one process (a few milliseconds) and a second look at all
//! objects. Values that only libhdf5 reads (virtual datasets, strings) are read twice.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use thalweg_io::control::Control;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::pool::Background;
use thalweg_io::{Error, Result};

use crate::array::Found;
use crate::arrays::{ArrayFile, Dataset};
use crate::libhdf5::allowance;
use crate::libhdf5::look::unless_cancelled;

/// Memory that the child may take for a small file, and the most for any file, in bytes. Between
/// them, it may take [`MEMORY_SHARE`] times the size of the file, because a large file may have
/// many objects and chunks.
const MEMORY: std::ops::RangeInclusive<u64> = 384 << 20..=4 << 30;
const MEMORY_SHARE: u64 = 4;
/// Address space that the child may take beside that: its program, its libraries, its stacks.
const ADDRESSES: u64 = 1 << 30;
/// Processor time that the child may take without progress, in seconds.
const SECONDS: u64 = 2;
/// The child may read this many times the size of the file, and this much more, in bytes, until
/// reading is no progress any more.
const READS: u64 = 8;
const MORE_READS: u64 = 1 << 20;
/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 64;

/// The path that stands for the values of all datasets.
pub const ALL: &str = "/";

/// What the child says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// libhdf5 can be asked for everything in the file.
    Harmless,
    /// libhdf5 refuses the file with an error, as it will in the parent.
    Refused,
    /// libhdf5 asks for more memory than such a file may take.
    Memory,
    /// The system starts no thread, so nothing was learnt about the file.
    NoThread,
}

impl Answer {
    const ALL: [Self; 4] = [Self::Harmless, Self::Refused, Self::Memory, Self::NoThread];

    /// The line that the child prints to standard output.
    pub fn line(self) -> &'static str {
        match self {
            Self::Harmless => "harmless\n",
            Self::Refused => "refused\n",
            Self::Memory => "memory\n",
            Self::NoThread => "no thread\n",
        }
    }
}

/// A command that inspects files in a child process.
#[derive(Debug, Clone)]
pub struct Inspector {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Inspector {
    /// An inspector that runs `program` with `arguments`, then the path of the file, then the paths
    /// of datasets whose values are to be read. The command must pass these to [`look`], print
    /// [`Answer::line`], and do nothing else. Its standard input is a pipe that ends with this
    /// process.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Inspects every file that work with this handle opens.
    pub fn watch(self, control: &Control) {
        control.inspect_with(Box::new(move |path, dataset, control| {
            self.check(path, dataset, control)
        }));
    }

    /// Inspects a file, or the values of one of its datasets.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless the child answers that the file may be opened, [`Error::Io`] if
    /// it could not be started or can start no thread, [`Error::Cancelled`].
    pub fn check(&self, path: &Path, dataset: Option<&str>, control: &Control) -> Result<()> {
        let name = path.to_string_lossy().into();
        let failed =
            |e| Error::io(&name, "starting a process that looks through the file first", e);
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(path)
            .args(dataset)
            // This end of the pipe stays open until the child has ended.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let status = wait(&mut child, control).map_err(failed)?;
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let mut answer = String::new();
        if let Some(out) = child.stdout.take() {
            // What cannot be read is no answer.
            let _ = out.take(LONGEST_ANSWER).read_to_string(&mut answer);
        }
        let Some(why) = harm(status, &answer, &name)? else { return Ok(()) };
        Err(Error::Malformed {
            file: name,
            what: dataset.map_or_else(|| "HDF5 file".into(), |dataset| dataset.to_owned().into()),
            offset: 0,
            found: format!("a file that {why}").into(),
            expected: "HDF5; it is damaged, or made to do harm".into(),
        })
    }
}

/// Waits for the child. If the work is cancelled, the child is killed.
fn wait(child: &mut Child, control: &Control) -> std::io::Result<ExitStatus> {
    let mut nap = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if control.is_cancelled() {
            let _ = child.kill();
            return child.wait();
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(10));
    }
}

/// The harm that the file does; `None` if it may be opened.
fn harm(status: ExitStatus, answer: &str, name: &Arc<str>) -> Result<Option<String>> {
    // These signals ask both processes to end.
    let asked = [Signal::INT, Signal::TERM, Signal::HUP];
    let signal = status.signal();
    if asked
        .iter()
        .any(|asked| signal == Some(asked.as_raw()) || status.code() == Some(128 + asked.as_raw()))
    {
        return Err(Error::Cancelled);
    }
    if let Some(signal) = signal {
        return Ok(Some(match Signal::from_named_raw(signal) {
            Some(Signal::XCPU) => format!("keeps libhdf5 busy for {SECONDS} s without progress"),
            Some(Signal::KILL) => "makes libhdf5 take too much time or memory".into(),
            _ => format!("makes libhdf5 crash (signal {signal})"),
        }));
    }
    let said = Answer::ALL.into_iter().find(|known| known.line() == answer);
    Ok(match said.filter(|_| status.success()) {
        // After a refusal, the parent gets the same error, with the place.
        Some(Answer::Harmless | Answer::Refused) => None,
        Some(Answer::NoThread) => {
            let doing = "starting a thread in the process that looks through the file first";
            return Err(Error::io(name, doing, Errno::AGAIN));
        }
        Some(Answer::Memory) => Some("makes libhdf5 take too much memory for its size".into()),
        None => Some(format!("the process that looks through it cannot judge ({status})")),
    })
}

/// The work of the child: looks at all objects of a file, or reads the values of some datasets. It
/// sets limits of time and memory that stay in force for the process, which should do nothing else.
/// If standard input is a pipe, the process ends with it.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn look(path: &Path, datasets: &[String], options: Options) -> Result<Answer> {
    if end_with_parent().is_err() {
        return Ok(Answer::NoThread);
    }
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    let memory =
        size.saturating_mul(MEMORY_SHARE).saturating_add(*MEMORY.start()).min(*MEMORY.end());
    limit(Resource::Core, 0);
    limit(Resource::Data, memory);
    limit(Resource::As, memory + ADDRESSES);
    // Stacks count as memory.
    let options = Options { budget: Budget { threads: 1, ..options.budget }, ..options };
    allowance::limit(SECONDS, size.saturating_mul(READS).saturating_add(MORE_READS));
    let looked = ArrayFile::open(path, options).and_then(|file| {
        if datasets.is_empty() || datasets == [ALL] {
            return everything(&file, !datasets.is_empty());
        }
        for path in datasets {
            file.below(path)?.iter().try_for_each(|dataset| values(&file, dataset))?;
        }
        Ok(())
    });
    match looked {
        Err(Error::Cancelled) => Err(Error::Cancelled),
        _ if allowance::had_no_memory() => Ok(Answer::Memory),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
            Ok(Answer::NoThread)
        }
        Ok(()) => Ok(Answer::Harmless),
        Err(_) => Ok(Answer::Refused),
    }
}

/// Looks at all objects that hard links lead to, and at values that only libhdf5 reads, if asked.
fn everything(file: &ArrayFile, with_values: bool) -> Result<()> {
    let library = &file.library()?.0;
    let root = library.root()?;
    let mut seen = HashSet::from([root.address()?]);
    let mut left = root.look()?;
    while let Some(link) = left.pop() {
        if !seen.insert(link.address) {
            continue;
        }
        // What the library refuses here, it refuses in the parent.
        if let Ok(node) = library.follow(&link) {
            left.extend(node.look()?);
        }
        let node = || file.metadata().at(link.address, &link.name);
        if with_values && let Ok(Some(dataset)) = file.dataset(&node()) {
            values(file, &dataset)?;
        }
        allowance::progress();
    }
    Ok(())
}

/// Reads the values of a dataset, if only libhdf5 reads them.
fn values(file: &ArrayFile, dataset: &Dataset) -> Result<()> {
    let mut look = |_: &[u8]| {
        allowance::progress();
        Ok(())
    };
    unless_cancelled(match &dataset.found {
        Found::Array(array) if array.library().is_none() => Ok(()),
        Found::Array(_) => file.values(dataset, &mut look),
        Found::Other(_) => file.each_variable(dataset, &mut look),
    })
}

fn limit(resource: Resource, most: u64) {
    let most = Some(most);
    // A lower limit that is already set stays.
    let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
}

/// Ends this process when its standard input ends, if that is a pipe. The system closes the
/// parent's end of the pipe, however the parent ends.
fn end_with_parent() -> Result<()> {
    let is_pipe = fstat(std::io::stdin())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe {
        Background::start("parent", &"the end of the parent process".into(), || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            // Leaving by `exit` would wait for libhdf5.
            let _ = kill_process(getpid(), Signal::KILL);
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Inspector;
    use std::path::Path;
    use thalweg_io::control::Control;

    fn said(script: &str) -> String {
        let inspector = Inspector::new("/bin/sh", ["-c", script]);
        let checked = inspector.check(Path::new("some.h5"), None, &Control::new());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_process_that_is_killed_is_an_error() {
        assert_eq!(said("echo harmless"), "");
        assert_eq!(said("echo refused"), "");
        assert!(said("echo memory").contains("too much memory"));
        assert!(said("kill -SEGV $$").contains(
            "some.h5: HDF5 file, byte 0: found a file that makes libhdf5 crash (signal 11)"
        ));
        assert!(said("kill -XCPU $$").contains("2 s without progress"));
        assert_eq!(said("kill -TERM $$"), "cancelled");
        let no_thread = said("echo no thread");
        assert!(no_thread.starts_with("some.h5: starting a thread"), "{no_thread}");
        let none = Inspector::new("/nonexistent", [""; 0]).check(
            Path::new("some.h5"),
            None,
            &Control::new(),
        );
        assert!(none.is_err_and(|error| error.to_string().contains("some.h5: starting a process")));
    }

    #[test]
    fn only_a_clean_answer_lets_a_file_be_opened() {
        for script in ["exit 0", "exit 1", "echo harmless; exit 1", "echo harmless x", "echo"] {
            assert!(said(script).contains("cannot judge"), "{script}: {}", said(script));
        }
        assert_eq!(said("exit 143"), "cancelled");
    }

    #[test]
    fn cancelling_does_not_wait() {
        let control = Control::new();
        control.cancel();
        let checked = Inspector::new("/bin/sh", ["-c", "sleep 100"]).check(
            Path::new("some.h5"),
            None,
            &control,
        );
        assert!(matches!(checked, Err(thalweg_io::Error::Cancelled)));
    }
}
