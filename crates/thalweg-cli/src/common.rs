//! What every verb needs: failures and exit codes, and output to a pipe that may be closed.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use rustix::io::Errno;
use serde_json::Value;
use thalweg::Error;
use thalweg::new_file::NewFile;
use thalweg::text::{Shown, escaped};
use thalweg_io::stdout_was_closed;
use thalweg_io::urls::{self, url};

pub(crate) use thalweg_gauge::units::{parse_bytes, parse_count};

use crate::printable::Printable;
use crate::progress::without_bar;

/// Why a verb stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error, most often about a file.
    Failed(thalweg::Error),
    /// Any other failure, with its message. The message is empty if it was printed already.
    Said(String),
    /// The arguments make no sense together.
    Usage(String),
    /// A comparison was refused or a bar was missed.
    FellShort(String),
    /// Standard output is closed (`| head`): there is nothing left to print.
    OutputClosed,
}

impl Failure {
    /// The failure for a library error that may be about an argument.
    pub(crate) fn of_argument(error: thalweg::Error) -> Self {
        match error {
            thalweg::Error::Usage(message) => Self::Usage(Shown(message).to_string()),
            other => Self::Failed(other),
        }
    }
}

impl From<thalweg::Error> for Failure {
    fn from(error: thalweg::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<thalweg_gauge::Error> for Failure {
    fn from(error: thalweg_gauge::Error) -> Self {
        match error {
            thalweg_gauge::Error::Cancelled => Self::Failed(thalweg::Error::Cancelled),
            thalweg_gauge::Error::Store(error) => Self::Failed(error),
            thalweg_gauge::Error::Usage(message) | thalweg_gauge::Error::Suite(message) => {
                Self::Usage(message)
            }
            other => Self::Said(other.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(thalweg::Error::io(&"standard output".into(), "writing", error)),
        }
    }
}

/// The result of a verb.
pub(crate) type VerbResult = Result<(), Failure>;

/// How many processes MPI has started with this one, by the variables that MPI sets.
pub(crate) fn ranks() -> usize {
    let size = |name| std::env::var(name).ok()?.parse().ok();
    ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]
        .into_iter()
        .find_map(size)
        .map_or(1, |size: usize| size.max(1))
}

/// Refuses to run in several processes of MPI, where each would do the whole job.
pub(crate) fn alone() -> VerbResult {
    match ranks() {
        1 => Ok(()),
        ranks => Err(Failure::Usage(format!(
            "MPI has started {ranks} processes, and each would do all of this: ranks share the \
             reading of whole arrays, as in `thalweg read FILE PATH..`, and no more; suites of \
             `thalweg bench` start ranks by themselves"
        ))),
    }
}

/// Exit codes: 0 done, 1 failed, 2 usage, 3 a bar or comparison fell short; 130, 143 and 129 after
/// SIGINT, SIGTERM and SIGHUP.
///
/// `interrupted`: the exit code of a verb that a signal ended.
pub(crate) fn exit(outcome: VerbResult, interrupted: u8) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Failed(thalweg::Error::Cancelled)) => {
            complain(&"interrupted");
            ExitCode::from(interrupted)
        }
        Err(Failure::Failed(error)) => {
            complain(&error);
            ExitCode::from(1)
        }
        Err(Failure::FellShort(message)) => {
            complain(&message);
            ExitCode::from(3)
        }
        Err(Failure::Said(message)) => {
            if !message.is_empty() {
                complain_in_lines(&message);
            }
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            complain_in_lines(&message);
            ExitCode::from(2)
        }
    }
}

/// Does the same with each of several files. A file that fails is named on standard error, and does
/// not keep the others from being done. A single file's failure is returned as it is.
pub(crate) fn for_each_file<T>(
    files: impl ExactSizeIterator<Item = T>,
    mut f: impl FnMut(T) -> VerbResult,
) -> VerbResult {
    let count = files.len();
    let mut failed = 0;
    for file in files {
        match f(file) {
            Err(Failure::Failed(error)) if count > 1 && !matches!(error, Error::Cancelled) => {
                complain(&error);
                failed += 1;
            }
            outcome => outcome?,
        }
    }
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Said(format!("1 of {count} files was not done"))),
        _ => Err(Failure::Said(format!("{failed} of {count} files were not done"))),
    }
}

/// Names on standard error what is wrong with one of several files, so that the others are done.
/// What ends the verb is returned: that it was stopped, or a mistake in its arguments.
pub(crate) fn go_on_after(failure: Failure) -> VerbResult {
    match failure {
        Failure::Failed(error) if !matches!(error, Error::Cancelled) => complain(&error),
        Failure::Said(message) => complain(&message),
        other => return Err(other),
    }
    Ok(())
}

/// The end of a verb that has printed what failed, if anything did.
pub(crate) fn ended(failed: bool) -> VerbResult {
    if failed { Err(Failure::Said(String::new())) } else { Ok(()) }
}

/// A folder for outputs that was made. Dropped without files in it, it is removed.
pub(crate) struct NewFolder<'a>(Option<&'a Path>);

impl<'a> NewFolder<'a> {
    /// Makes a folder, unless it is there. At a URL, none is needed.
    pub(crate) fn create(path: &'a Path) -> Result<Self, Failure> {
        if url(path).is_some() || path.is_dir() {
            return Ok(Self(None));
        }
        let failed = |e| thalweg::Error::io(&urls::shown_path(path).into(), "creating", e);
        std::fs::create_dir_all(path).map_err(failed)?;
        Ok(Self(Some(path)))
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        // One that is not empty cannot be removed.
        let _ = self.0.map(std::fs::remove_dir);
    }
}

/// Prints a message on standard error, in one line: line breaks and control characters of names are
/// escaped. A closed standard error is ignored.
pub(crate) fn complain(message: &dyn Display) {
    let _ = without_bar(|| writeln!(io::stderr(), "thalweg: {}", Shown(message)));
}

/// [`complain`] for a message that may have several lines, as one about the mistakes of a suite.
fn complain_in_lines(message: &str) {
    let lines: Vec<String> = message.lines().map(|line| Shown(line).to_string()).collect();
    let _ = writeln!(io::stderr(), "thalweg: {}", lines.join("\n"));
}

/// A number of things in words, as in "1 read" or "2 vertices". `one`: the word for one of them.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    match (count.into(), one) {
        (1, one) => format!("1 {one}"),
        (count, "vertex") => format!("{count} vertices"),
        (count, one) => format!("{count} {one}s"),
    }
}

/// Whether a path stands for the standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A path in words that are printed.
pub(crate) fn shown_path(path: &Path) -> String {
    escaped(&urls::shown_path(path)).into_owned()
}

/// Prints one line of JSON on standard output.
pub(crate) fn print_json(line: &Value) -> VerbResult {
    without_bar(|| print_line(line))
}

/// Buffered standard output. When its reader has gone, as after `| head`, what is written is
/// dropped, and the verb goes on to its result and its exit code.
pub(crate) fn output() -> BufWriter<Printable<OutputOrNothing>> {
    let output = OutputOrNothing(Some(standard_output()));
    BufWriter::with_capacity(OUTPUT_BUFFER, Printable::new(output))
}

/// Buffered standard output of a verb that does nothing but list. When its reader has gone, writing
/// fails, and the verb ends with [`Failure::OutputClosed`].
pub(crate) fn listing() -> BufWriter<Printable<StandardOutput>> {
    BufWriter::with_capacity(OUTPUT_BUFFER, Printable::new(standard_output()))
}

/// Standard output without a buffer of its own. Writing to one that is closed is an error.
pub(crate) struct StandardOutput(StdoutLock<'static>);

/// Standard output without a buffer of its own.
pub(crate) fn standard_output() -> StandardOutput {
    StandardOutput(io::stdout().lock())
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if stdout_was_closed() {
            return Err(Errno::BADF.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The name of standard output in messages.
const STDOUT: &str = "standard output";

/// What was done by [`to_stdout`] or with [`stdout_file`]. Nobody may read standard output any
/// more.
pub(crate) fn streamed<T>(done: thalweg::Result<T>) -> Result<T, Failure> {
    done.map_err(|error| match &error {
        Error::Io { file, source, .. }
            if &**file == STDOUT && source.kind() == io::ErrorKind::BrokenPipe =>
        {
            Failure::OutputClosed
        }
        _ => error.into(),
    })
}

/// Writes to standard output.
pub(crate) fn to_stdout(part: &[u8]) -> thalweg::Result<()> {
    let mut out = standard_output();
    let written = out.write_all(part).and_then(|()| out.flush());
    written.map_err(|error| Error::io(&STDOUT.into(), "writing", error))
}

/// Refuses inputs that standard output would write into, as `view a.slow5 >> a.slow5` would.
pub(crate) fn check_not_stdout(inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> VerbResult {
    let Ok(out) = rustix::fs::fstat(io::stdout()) else { return Ok(()) };
    if rustix::fs::FileType::from_raw_mode(out.st_mode) != rustix::fs::FileType::RegularFile {
        return Ok(());
    }
    for input in inputs {
        let input = input.as_ref();
        let is_same =
            |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == (out.st_dev, out.st_ino);
        if std::fs::metadata(input).is_ok_and(is_same) {
            let input = shown_path(input);
            return Err(Failure::Usage(format!(
                "{input}: the standard output writes into this input"
            )));
        }
    }
    Ok(())
}

/// Standard output as the file of a conversion. A terminal gets no control characters.
pub(crate) fn stdout_file() -> NewFile {
    struct Stdout;
    impl Write for Stdout {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            standard_output().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            standard_output().flush()
        }
    }
    let out = BufWriter::with_capacity(OUTPUT_BUFFER, Stdout);
    if io::stdout().is_terminal() {
        NewFile::stream(STDOUT, Printable::new(out))
    } else {
        NewFile::stream(STDOUT, out)
    }
}

/// Prints a line on standard output.
pub(crate) fn print_line(line: &dyn Display) -> VerbResult {
    let mut out = output();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

const OUTPUT_BUFFER: usize = 1 << 16;

/// Standard output until its reader has gone.
pub(crate) struct OutputOrNothing(Option<StandardOutput>);

impl OutputOrNothing {
    /// Does something with the output, if it has a reader; otherwise returns `dropped`.
    fn with<T>(
        &mut self,
        dropped: T,
        f: impl FnOnce(&mut StandardOutput) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(output) = &mut self.0 else { return Ok(dropped) };
        match f(output) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(dropped)
            }
            done => done,
        }
    }
}

impl Write for OutputOrNothing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(bytes.len(), |output| output.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with((), Write::flush)
    }
}

/// The heading of options that only measurements need.
pub(crate) const MEASURING: &str = "For measurements";

/// The least memory that holds the smallest buffers, one batch and the codecs' state.
const LEAST_MEMORY: usize = 4 << 20;

/// Parses a memory budget, as in 64MiB or 1GB.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)? as usize;
    if bytes < LEAST_MEMORY {
        Err(format!("at least {LEAST_MEMORY} bytes are needed"))
    } else {
        Ok(bytes)
    }
}

/// Longer attribute values are cut in text output, never in JSON.
const SHOWN_CHARACTERS: usize = 60;

/// A text for people: everything beyond 60 characters is replaced by an ellipsis.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
