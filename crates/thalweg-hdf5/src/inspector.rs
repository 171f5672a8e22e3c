//! Opens an HDF5 file in a child process first, so that a malformed file crashes the child only.
//!
//! libhdf5 trusts much of what a file says. Malformed files make it crash or loop forever. A
//! [`Inspector`] in a [`Control`] inspects every file before libhdf5
//! opens it. Its command calls [`look`] with the path, which performs the same work within limits
//! of time and memory. If the child is killed, the file is an error. If the child fails, the parent
//! reports the error itself when it reads the file. An inspection costs one process (a few
//! milliseconds) and a second search for the datasets. Values that only libhdf5 reads (virtual
//! datasets, strings) are read twice.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use thalweg_io::control::Control;
use thalweg_io::open::Options;
use thalweg_io::{Error, Result};

use crate::arrays::ArrayFile;
use crate::libhdf5::Found;

/// Memory that the child may take, in bytes.
const MEMORY: u64 = 4 << 30;
/// Processor time that the child may take, in seconds. Each part of values that it reads allows as
/// many seconds more.
const SECONDS: u64 = 60;
/// Time after which the child is considered to wait forever.
const PATIENCE: Duration = Duration::from_secs(4 * SECONDS);

/// A command that inspects files in a child process.
#[derive(Debug, Clone)]
pub struct Inspector {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Inspector {
    /// An inspector that runs `program` with `arguments`, then the path of the file, then the paths
    /// of datasets whose values are to be read. The command must pass these to [`look`] and do
    /// nothing else.
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
    /// [`Error::Malformed`] if the child process was killed, [`Error::Io`] if it could not be
    /// started, [`Error::Cancelled`].
    pub fn check(&self, path: &Path, dataset: Option<&str>, control: &Control) -> Result<()> {
        let name = path.to_string_lossy().into();
        let failed =
            |e| Error::io(&name, "starting a process that looks through the file first:", e);
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(path)
            .args(dataset)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let started = Instant::now();
        let mut nap = Duration::from_micros(200);
        let mut waits = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            waits = dataset.is_none() && started.elapsed() > PATIENCE;
            if control.is_cancelled() || waits {
                let _ = child.kill();
                break child.wait().map_err(failed)?;
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(10));
        };
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let why = match killed(status, waits)? {
            Some(why) => why,
            None => return Ok(()),
        };
        Err(Error::Malformed {
            file: name,
            what: dataset.map_or_else(|| "HDF5 file".into(), |dataset| dataset.to_owned().into()),
            offset: 0,
            found: format!("a file that {why}").into(),
            expected: "HDF5; it is damaged, or made to do harm".into(),
        })
    }
}

/// Why the child was killed; `None` if it ended by itself.
fn killed(status: ExitStatus, waits: bool) -> Result<Option<String>> {
    let Some(signal) = status.signal() else { return Ok(None) };
    Ok(Some(match Signal::from_named_raw(signal) {
        // These signals ask both processes to end.
        Some(Signal::INT | Signal::TERM | Signal::HUP) => return Err(Error::Cancelled),
        Some(Signal::XCPU) => format!("takes libhdf5 more than {SECONDS} s to look through"),
        Some(Signal::KILL) if waits => {
            format!("keeps libhdf5 waiting for more than {} s", PATIENCE.as_secs())
        }
        Some(Signal::KILL) => "makes libhdf5 take too much time or memory".into(),
        _ => format!("makes libhdf5 crash (signal {signal})"),
    }))
}

/// The work of the child: finds the datasets of a file, or reads the values of some datasets. It
/// sets limits of time and memory that stay in force for the process, which should do nothing else.
/// `reads` inspects files of nanopore reads (FAST5) and returns whether the file was one.
///
/// # Errors
/// The errors of opening and reading the file. The parent ignores them.
pub fn look(
    path: &Path,
    datasets: &[String],
    options: Options,
    reads: impl FnOnce(&ArrayFile) -> Result<bool>,
) -> Result<()> {
    limit(Resource::Core, 0);
    limit(Resource::As, MEMORY);
    more_time();
    let file = ArrayFile::open(path, options)?;
    if !reads(&file)? && datasets.is_empty() {
        file.survey_below("/")?;
    }
    for dataset in datasets {
        for dataset in file.below(dataset)? {
            let mut time = Instant::now();
            let mut look = |_: &[u8]| {
                if time.elapsed() > Duration::from_secs(1) {
                    more_time();
                    time = Instant::now();
                }
                Ok(())
            };
            match dataset.found {
                Found::Array(_) => file.values(&dataset, &mut look)?,
                Found::Other(_) => file.each_variable(&dataset, &mut look)?,
            }
        }
    }
    Ok(())
}

fn limit(resource: Resource, most: u64) {
    let most = Some(most);
    // A lower limit that is already set stays.
    let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
}

/// Sets the limit of processor time to [`SECONDS`] from now on.
fn more_time() {
    let used =
        rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec.cast_unsigned();
    let maximum = getrlimit(Resource::Cpu).maximum;
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(used + SECONDS), maximum });
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
        assert_eq!(said("exit 0"), "");
        assert_eq!(said("exit 1"), "");
        assert!(said("kill -SEGV $$").contains(
            "some.h5: HDF5 file, byte 0: found a file that makes libhdf5 crash (signal 11)"
        ));
        assert!(said("kill -XCPU $$").contains("more than 60 s"));
        assert_eq!(said("kill -TERM $$"), "cancelled");
        let none = Inspector::new("/nonexistent", [""; 0]).check(
            Path::new("some.h5"),
            None,
            &Control::new(),
        );
        assert!(none.is_err_and(|error| error.to_string().contains("some.h5: starting a process")));
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
