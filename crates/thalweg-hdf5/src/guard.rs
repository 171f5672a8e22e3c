//! Another process that looks through an HDF5 file first, so that it is that one which libhdf5
//! takes down.
//!
//! libhdf5 believes much of what a file says, and malformed ones make it crash, or go round in
//! circles. A [`Guard`] in a [`Control`] makes every file that
//! libhdf5 is going to open be looked through beforehand: by a command that calls [`look`] with the
//! path, which does what will be done, within limits. What it is refused is found again by whoever
//! reads the file next; what kills it is an error. It costs a process (a few milliseconds) and
//! finding the datasets once more; for values that only libhdf5 reads (virtual datasets, strings),
//! reading all of the dataset once more.

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

/// What a process may take that looks through a file.
const MEMORY: u64 = 4 << 30;
/// Seconds of processor time, and for each part of values that it reads as many again.
const SECONDS: u64 = 60;
/// Seconds after which it is taken for one that waits for ever, if no more time than this passes on
/// the processor.
const PATIENCE: Duration = Duration::from_secs(4 * SECONDS);

/// A command that looks through files.
#[derive(Debug, Clone)]
pub struct Guard {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Guard {
    /// The command, which is given the path of the file, and then those of datasets whose values
    /// are to be read: it has to call [`look`] with them, and do nothing else.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Has every file that work with this handle opens looked through first.
    pub fn watch(self, control: &Control) {
        control.inspect_with(Box::new(move |path, dataset, control| {
            self.check(path, dataset, control)
        }));
    }

    /// Has a file looked through, or the values of one of its datasets.
    ///
    /// # Errors
    /// [`Error::Malformed`] where that process was killed, [`Error::Io`] where it could not be
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

/// What became of the process, if it did not end by itself.
fn killed(status: ExitStatus, waits: bool) -> Result<Option<String>> {
    let Some(signal) = status.signal() else { return Ok(None) };
    Ok(Some(match Signal::from_named_raw(signal) {
        // Somebody wants both processes to end.
        Some(Signal::INT | Signal::TERM | Signal::HUP) => return Err(Error::Cancelled),
        Some(Signal::XCPU) => format!("takes libhdf5 more than {SECONDS} s to look through"),
        Some(Signal::KILL) if waits => {
            format!("keeps libhdf5 waiting for more than {} s", PATIENCE.as_secs())
        }
        Some(Signal::KILL) => "makes libhdf5 take too much time or memory".into(),
        _ => format!("makes libhdf5 crash (signal {signal})"),
    }))
}

/// Does what will be done to a file, within limits that stay in force for this process: finds its
/// datasets, or reads the values of some datasets. The process should have nothing else to do.
/// `reads` goes through files of reads (FAST5) instead; it says whether the file was one.
///
/// # Errors
/// As opening and reading the file; nobody needs to see them.
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
        file.datasets()?;
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
    // A lower limit that is there stays.
    let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
}

/// Allows so many seconds of the processor from now on.
fn more_time() {
    let used =
        rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec.cast_unsigned();
    let maximum = getrlimit(Resource::Cpu).maximum;
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(used + SECONDS), maximum });
}

#[cfg(test)]
mod tests {
    use super::Guard;
    use std::path::Path;
    use thalweg_io::control::Control;

    fn said(script: &str) -> String {
        let guard = Guard::new("/bin/sh", ["-c", script]);
        let checked = guard.check(Path::new("some.h5"), None, &Control::new());
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
        let none =
            Guard::new("/nonexistent", [""; 0]).check(Path::new("some.h5"), None, &Control::new());
        assert!(none.is_err_and(|error| error.to_string().contains("some.h5: starting a process")));
    }

    #[test]
    fn whoever_cancels_does_not_wait() {
        let control = Control::new();
        control.cancel();
        let checked =
            Guard::new("/bin/sh", ["-c", "sleep 100"]).check(Path::new("some.h5"), None, &control);
        assert!(matches!(checked, Err(thalweg_io::Error::Cancelled)));
    }
}
