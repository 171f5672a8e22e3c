//! Trials: runs a workload once as a fresh process, and measures its resources and the load of the
//! machine.
//!
//! CPU and device bytes include every descendant that was waited for. Peak memory is sampled every
//! 20 ms, and more often at the start. It is summed over the process tree, separately for private
//! and file-backed memory.

mod guard;
mod tail;

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use thalweg_io::pool;

use crate::workload::{Workload, WorkloadReport};
use crate::{Error, Result, procfs, syscalls};
use guard::GuardedGroup;
use tail::Tail;

/// The resources of one process and its descendants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Wall time in seconds, from before the process is started until it has ended.
    pub wall_s: f64,
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel on its behalf.
    pub system_s: f64,
    /// Peak resident memory. `None` if there was no sample, and the kernel's figure may be the
    /// parent's: after vfork, Linux reports the larger of the two.
    pub max_rss_bytes: Option<u64>,
    /// Sampled peak of private (and shared) memory, summed over the process tree; `None` if the
    /// process ended before the first sample.
    pub peak_anon_bytes: Option<u64>,
    /// Sampled peak of file-backed memory (mapped files, program text), summed over the process
    /// tree.
    pub peak_file_bytes: Option<u64>,
    /// Bytes that came from block devices or file servers; `None` where the system does not account
    /// them.
    pub device_read_bytes: Option<u64>,
    /// The number of samples of memory.
    pub memory_samples: u64,
}

impl Usage {
    /// All CPU seconds.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// The load of the machine; `None` where this kernel doesn't report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// The one-minute load average right before the trial.
    pub load_average_before: Option<f64>,
    /// Share of the ten seconds before the trial in which some task waited for a CPU (PSI).
    pub cpu_pressure_before: Option<f64>,
    /// Share of the ten seconds before the trial in which some task waited for I/O (PSI).
    pub io_pressure_before: Option<f64>,
    /// Share of the trial in which some task waited for memory (PSI).
    pub memory_pressure: Option<f64>,
    /// Share of the trial in which some task of the machine waited for a CPU (PSI).
    pub cpu_pressure: Option<f64>,
    /// Share of the trial in which some task of the machine, the workload's own included, waited
    /// for I/O (PSI).
    pub io_pressure: Option<f64>,
    /// CPU seconds that other processes used during the trial.
    pub other_cpu_s: Option<f64>,
    /// CPU seconds that a hypervisor took away during the trial.
    pub stolen_cpu_s: Option<f64>,
}

/// The outcome of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The resources that it used.
    pub usage: Usage,
    /// The load of the machine.
    pub load: MachineLoad,
    /// Its own report, if it printed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<WorkloadReport>,
    /// The end of its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// The number of bytes of standard output that are kept. The end suffices, because the report is
/// the last line of JSON.
const STDOUT_KEPT: usize = 4 << 20;
const STDERR_KEPT: usize = 16 << 10;
/// How long to wait for a descendant that keeps the pipe open.
const DRAIN: Duration = Duration::from_secs(2);
/// How long `stop` may come after the failure of a workload that the same signal ended.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Runs `workload` once and waits for it. When `stop` becomes true, or the time limit is reached,
/// its process group is killed.
///
/// # Errors
/// When the workload can't be started, fails, is killed, or prints an invalid report.
/// [`Error::Cancelled`] if `stop` is true by the end, whatever became of the workload: a signal may
/// have reached it, too.
pub fn run(workload: &Workload, stop: &AtomicBool) -> Result<Outcome> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    guard::start();
    let before = MachineCounters::now();
    let own_device_bytes = procfs::own_device_bytes();
    let (mut child, start) = spawn(workload)?;
    let guarded = GuardedGroup::new(child.id());
    let accounts = procfs::Accounts::of(child.id());
    // A time limit that exceeds the range of `Duration` means no limit.
    let timeout = workload.timeout_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let observed = observe(&mut child, workload, start, timeout, stop);
    // The zombie still has its own accounts. Reaping adds them to the accounts of this process,
    // which are only the fallback.
    let zombie_bytes = accounts.and_then(|a| a.device_bytes());
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // Descendants that still run would disturb the next trial. The id of the group can't be
        // reused before the child is reaped.
        let _ = kill_process_group(group, Signal::KILL);
    }
    drop(guarded);
    let ended = syscalls::wait4(child.id())
        .map_err(|e| Error::io(program(workload), "waiting for it", e))?;
    let Observed { stdout, stderr, watched } = observed?;
    let wall = watched.ended.unwrap_or_else(Instant::now) - start;
    let device_read_bytes =
        zombie_bytes.or_else(|| procfs::own_device_bytes()?.checked_sub(own_device_bytes?));
    let load =
        before.load(&MachineCounters::now(), wall, (ended.user + ended.system).as_secs_f64());
    let stderr = stderr.finish(DRAIN);
    let command = || workload.command_line();
    match watched.why_killed {
        Some(Killed::Stopped) => return Err(Error::Cancelled),
        Some(Killed::TimedOut) => {
            let limit_s = workload.timeout_s.unwrap_or_default();
            return Err(Error::TimedOut { command: command(), limit_s, stderr });
        }
        None => {}
    }
    let failure = failure(&ended);
    // A signal to all processes of a session, as a batch system sends it, may end the workload
    // before it has raised `stop` here.
    if failure.is_some() && stops_within(SAME_SIGNAL, stop) || stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    if let Some(how) = failure {
        return Err(Error::Failed { command: command(), how, stderr });
    }
    let report = WorkloadReport::find(&stdout.finish(DRAIN))
        .map_err(|e| Error::Report { command: command(), what: format!("can't be read: {e}") })?;
    let usage = Usage {
        wall_s: wall.as_secs_f64(),
        user_s: ended.user.as_secs_f64(),
        system_s: ended.system.as_secs_f64(),
        max_rss_bytes: max_rss(ended.max_rss_bytes, &watched),
        peak_anon_bytes: watched.seen.map(|m| m.anon),
        peak_file_bytes: watched.seen.map(|m| m.file),
        device_read_bytes,
        memory_samples: watched.samples,
    };
    Ok(Outcome { usage, load, report, stderr })
}

/// Waits until `stop` is true, for at most `patience`. Returns whether it is.
fn stops_within(patience: Duration, stop: &AtomicBool) -> bool {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// How a child failed; `None` for exit status 0.
fn failure(ended: &syscalls::ChildExit) -> Option<String> {
    match (ended.exit_code, ended.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(exit_status(code)),
        (None, signal) => Some(format!("killed by {}", ExitStatus::from_raw(signal.unwrap_or(0)))),
    }
}

/// Describes an exit status. If a signal killed a child of a shell, the shell exits with 128 plus
/// the number of the signal.
fn exit_status(code: i32) -> String {
    match code {
        129..=192 => {
            format!(
                "exit status {code} (a process that it started was probably killed by signal {})",
                code - 128
            )
        }
        _ => format!("exit status {code}"),
    }
}

fn program(workload: &Workload) -> &Path {
    Path::new(workload.argv.first().map_or("", String::as_str))
}

fn spawn(workload: &Workload) -> Result<(Child, Instant)> {
    let Some((name, args)) = workload.argv.split_first() else {
        return Err(Error::Usage("a workload needs a program to run".into()));
    };
    let mut command = Command::new(name);
    command
        .args(args)
        .envs(&workload.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // The child gets its own process group, so that it can be killed with all processes that it
    // started.
    command.process_group(0);
    // This thread waits for the child. If this process is killed, the child must not go on, even
    // if there is no guard.
    thalweg_io::end_with_this_thread(&mut command);
    let unpin = workload.cpus.as_deref().map(pin).transpose()?;
    let start = Instant::now();
    let child = command.spawn();
    if let Some(all) = unpin {
        sched_setaffinity(None, &all).map_err(|e| Error::io(name, "restoring the CPU list", e))?;
    }
    Ok((child.map_err(|e| Error::io(name, "starting it", e))?, start))
}

/// Pins the calling thread, because a child inherits the CPUs of the thread that starts it. Returns
/// the earlier CPUs.
fn pin(cpus: &[usize]) -> Result<CpuSet> {
    let usage = |e| Error::Usage(format!("CPUs {cpus:?}: {e}"));
    let all = sched_getaffinity(None).map_err(usage)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        // The kernel would silently ignore CPUs that do not exist.
        if cpu >= CpuSet::MAX_CPU || !all.is_set(cpu) {
            return Err(Error::Usage(format!("CPU {cpu} is not one that this process may use")));
        }
        wanted.set(cpu);
    }
    sched_setaffinity(None, &wanted).map_err(usage)?;
    Ok(all)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    TimedOut,
    Stopped,
}

#[derive(Default)]
struct Watched {
    ended: Option<Instant>,
    why_killed: Option<Killed>,
    seen: Option<procfs::ProcessMemory>,
    samples: u64,
}

/// The output of a child, and the samples of its memory.
struct Observed {
    stdout: Tail,
    stderr: Tail,
    watched: Watched,
}

/// Reads the child's output and samples the child until it has ended.
fn observe(
    child: &mut Child,
    workload: &Workload,
    start: Instant,
    timeout: Option<Duration>,
    stop: &AtomicBool,
) -> Result<Observed> {
    let name = program(workload).to_string_lossy().into();
    let stdout = Tail::of(&name, child.stdout.take(), STDOUT_KEPT)?;
    let stderr = Tail::of(&name, child.stderr.take(), STDERR_KEPT)?;
    let watched = watch(child, start, timeout, stop)
        .map_err(|e| Error::io(program(workload), "starting a thread to watch", e))?;
    Ok(Observed { stdout, stderr, watched })
}

const PERIOD: Duration = Duration::from_millis(20);

/// Samples the child until it has ended, but does not reap it.
fn watch(
    child: &Child,
    start: Instant,
    timeout: Option<Duration>,
    stop: &AtomicBool,
) -> io::Result<Watched> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else {
        return Ok(Watched::default());
    };
    let (end_sender, end_receiver) = channel();
    pool::scope(|threads| {
        let sampler = threads
            .start("thalweg-watch", move || sample(pid, start, timeout, stop, &end_receiver))?;
        // A signal that the caller handles interrupts the wait.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        let ended = Instant::now();
        let _ = end_sender.send(());
        Ok(Watched { ended: Some(ended), ..sampler.join() })
    })
}

fn sample(
    pid: Pid,
    start: Instant,
    timeout: Option<Duration>,
    stop: &AtomicBool,
    ended: &Receiver<()>,
) -> Watched {
    let mut watched = Watched::default();
    let mut period = Duration::from_millis(1); // so that short processes are sampled
    loop {
        if let Some(now) = procfs::tree_memory(pid.as_raw_nonzero().get().cast_unsigned()) {
            let seen = watched.seen.get_or_insert_default();
            seen.anon = seen.anon.max(now.anon);
            seen.file = seen.file.max(now.file);
            seen.peak = seen.peak.max(now.peak);
            watched.samples += 1;
        }
        if watched.why_killed.is_none() {
            watched.why_killed = if stop.load(Ordering::Relaxed) {
                Some(Killed::Stopped)
            } else {
                timeout.filter(|&t| start.elapsed() >= t).map(|_| Killed::TimedOut)
            };
            if watched.why_killed.is_some() {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        match ended.recv_timeout(period) {
            Err(RecvTimeoutError::Timeout) => period = (period * 2).min(PERIOD),
            _ => return watched,
        }
    }
}

/// The peak resident memory in bytes. The peak that the system reports for a child of `vfork`
/// starts at that of its parent, so it counts only if it is higher.
fn max_rss(by_system: u64, watched: &Watched) -> Option<u64> {
    let ours = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|s| procfs::status_field(&s, "VmHWM"));
    let believed = ours.is_some_and(|ours| by_system > ours).then_some(by_system);
    believed.max(watched.seen.map(|m| m.peak))
}

struct MachineCounters {
    load_average: Option<f64>,
    cpu_recent: Option<f64>,
    io_recent: Option<f64>,
    memory_us: Option<u64>,
    cpu_us: Option<u64>,
    io_us: Option<u64>,
    cpu_s: Option<(f64, f64)>,
}

impl MachineCounters {
    fn now() -> Self {
        Self {
            load_average: procfs::load_average(),
            cpu_recent: procfs::recent_pressure("cpu"),
            io_recent: procfs::recent_pressure("io"),
            memory_us: procfs::pressure_us("memory"),
            cpu_us: procfs::pressure_us("cpu"),
            io_us: procfs::pressure_us("io"),
            cpu_s: procfs::machine_cpu_s(),
        }
    }

    fn load(&self, after: &Self, wall: Duration, own_cpu_s: f64) -> MachineLoad {
        let wall_us = (wall.as_secs_f64() * 1e6).max(1.0);
        let share = |before: Option<u64>, after: Option<u64>| {
            Some((after?.saturating_sub(before?) as f64 / wall_us).clamp(0.0, 1.0))
        };
        let cpu = self.cpu_s.zip(after.cpu_s);
        MachineLoad {
            load_average_before: self.load_average,
            cpu_pressure_before: self.cpu_recent,
            io_pressure_before: self.io_recent,
            memory_pressure: share(self.memory_us, after.memory_us),
            cpu_pressure: share(self.cpu_us, after.cpu_us),
            io_pressure: share(self.io_us, after.io_us),
            // The machine's time is counted in ticks, and that of the process in microseconds. A
            // small negative difference comes from rounding.
            other_cpu_s: cpu.map(|(b, a)| (a.0 - b.0 - own_cpu_s).max(0.0)),
            stolen_cpu_s: cpu.map(|(b, a)| (a.1 - b.1).max(0.0)),
        }
    }
}
