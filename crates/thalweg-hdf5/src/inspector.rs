//! Rewrites an HDF5 file in a child process first, so that a malformed file crashes the child only.
//!
//! libhdf5 trusts much of what a file says. Malformed files make it crash, loop forever, or take
//! all memory. It opens files of others only when they are repacked. Before that, an [`Inspector`]
//! starts a command with the path of the file. The command calls [`look`], which copies all groups
//! and attributes to memory within limits of processor time and memory, and prints the [`Answer`].
//! The file is opened only after an answer that allows it; if the child ends in any other way, the
//! file is an error. The child ends if the parent ends.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, MemfdFlags, fstat, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use thalweg_io::control::Control;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::plan::Budget;
use thalweg_io::pool::Background;
use thalweg_io::text::escaped;
use thalweg_io::{Error, Result};

use crate::libhdf5 as hdf5;
use crate::libhdf5::{LibraryVersion, Rewrite, allowance};
use crate::metadata::MetadataFile;
use crate::stored::{DatasetForm, TargetStorage};

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
const LONGEST_ANSWER: u64 = 4096;

/// What the child says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// libhdf5 can copy the file.
    Harmless,
    /// The own reader or libhdf5 refuses the file with this error. libhdf5 is then not asked again:
    /// with another layout it might go further, to where nothing was looked at.
    Refused(String),
    /// libhdf5 asks for more memory than such a file may take.
    Memory,
    /// The system starts no thread, so nothing was learnt about the file.
    NoThread,
}

/// What stands before the error of a refusal.
const REFUSED: &str = "refused: ";

impl Answer {
    /// The line that the child prints to standard output.
    pub fn line(&self) -> String {
        match self {
            Self::Harmless => "harmless\n".into(),
            Self::Refused(error) => format!("{REFUSED}{}\n", escaped(error)),
            Self::Memory => "memory\n".into(),
            Self::NoThread => "no thread\n".into(),
        }
    }

    /// The answer in what the child printed; `None` if it is no answer.
    fn parse(printed: &str) -> Option<Self> {
        if let Some(error) = printed.strip_prefix(REFUSED) {
            return Some(Self::Refused(error.trim_end().to_owned()));
        }
        let all = [Self::Harmless, Self::Memory, Self::NoThread];
        all.into_iter().find(|known| known.line() == printed)
    }
}

/// A command that inspects files in a child process.
#[derive(Debug, Clone)]
pub struct Inspector {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Inspector {
    /// An inspector that runs `program` with `arguments`, then the path of the file. The command
    /// must pass it to [`look`], print [`Answer::line`], and do nothing else. Its standard input is
    /// a pipe that ends with this process.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Inspects a file.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless the child answers that the file may be opened, [`Error::Io`] if
    /// it could not be started or can start no thread, [`Error::Cancelled`].
    pub fn check(&self, path: &Path, control: &Control) -> Result<()> {
        let name = path.to_string_lossy().into();
        let failed =
            |e| Error::io(&name, "starting a process that looks through the file first", e);
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(path)
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
            what: "HDF5 file".into(),
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
    Ok(match Answer::parse(answer).filter(|_| status.success()) {
        Some(Answer::Harmless) => None,
        Some(Answer::Refused(error)) => Some(format!("cannot be copied: {error}")),
        Some(Answer::NoThread) => {
            let doing = "starting a thread in the process that looks through the file first";
            return Err(Error::io(name, doing, Errno::AGAIN));
        }
        Some(Answer::Memory) => Some("makes libhdf5 take too much memory for its size".into()),
        None => Some(format!("the process that looks through it cannot judge ({status})")),
    })
}

/// The work of the child: copies groups, links, attributes, types, and the values that libhdf5
/// copies, to a file in memory. It sets limits of time and memory that stay in force for the
/// process, which should do nothing else. If standard input is a pipe, the process ends with it.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn look(path: &Path, options: Options) -> Result<Answer> {
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
    allowance::limit(SECONDS, size.saturating_mul(READS).saturating_add(MORE_READS), memory);
    match copy_to_memory(path, &options) {
        Err(Error::Cancelled) => Err(Error::Cancelled),
        _ if allowance::had_no_memory() => Ok(Answer::Memory),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
            Ok(Answer::NoThread)
        }
        Ok(()) => Ok(Answer::Harmless),
        // Nothing was learnt about the file.
        Err(error @ Error::Io { .. }) => Err(error),
        Err(error) => Ok(Answer::Refused(error.to_string())),
    }
}

/// Copies groups, links, attributes, types, and the values that libhdf5 copies, to a file in
/// memory.
fn copy_to_memory(path: &Path, options: &Options) -> Result<()> {
    let OpenedStore { store, model: (model, _), .. } = OpenedStore::new(path, options)?;
    let Options { budget: Budget { threads, memory }, control, .. } = options;
    let found = MetadataFile::open(&store, control, model, *threads, *memory as u64)?;
    let from = hdf5::File::open(&store, control)?;
    let name = store.name();
    let out = memfd_create("repack", MemfdFlags::CLOEXEC)
        .map_err(|e| Error::io(name, "creating a file in memory", io::Error::from(e)))?;
    let version = LibraryVersion::Keep;
    let mut rewrite = Rewrite::begin(&from, out.into(), name, version, 0, control)?;
    rewrite.objects_of(&mut |address, path| {
        Ok((DatasetForm::read(&found, address, path, false)?, TargetStorage::Keep))
    })?;
    rewrite.finish()
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
        let checked = inspector.check(Path::new("some.h5"), &Control::new());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_process_that_is_killed_is_an_error() {
        assert_eq!(said("echo harmless"), "");
        assert!(said("echo refused: a link").contains("a file that cannot be copied: a link,"));
        assert!(said("echo memory").contains("too much memory"));
        assert!(said("kill -SEGV $$").contains(
            "some.h5: HDF5 file, byte 0: found a file that makes libhdf5 crash (signal 11)"
        ));
        assert!(said("kill -XCPU $$").contains("2 s without progress"));
        assert_eq!(said("kill -TERM $$"), "cancelled");
        let no_thread = said("echo no thread");
        assert!(no_thread.starts_with("some.h5: starting a thread"), "{no_thread}");
        let none =
            Inspector::new("/nonexistent", [""; 0]).check(Path::new("some.h5"), &Control::new());
        assert!(none.is_err_and(|error| error.to_string().contains("some.h5: starting a process")));
    }

    #[test]
    fn only_a_clean_answer_lets_a_file_be_opened() {
        for script in
            ["exit 0", "exit 1", "echo harmless; exit 1", "echo harmless x", "echo refused", "echo"]
        {
            assert!(said(script).contains("cannot judge"), "{script}: {}", said(script));
        }
        assert_eq!(said("exit 143"), "cancelled");
    }

    #[test]
    fn cancelling_does_not_wait() {
        let control = Control::new();
        control.cancel();
        let checked =
            Inspector::new("/bin/sh", ["-c", "sleep 100"]).check(Path::new("some.h5"), &control);
        assert!(matches!(checked, Err(thalweg_io::Error::Cancelled)));
    }
}
