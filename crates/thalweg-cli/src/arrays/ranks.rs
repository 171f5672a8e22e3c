//! Several processes that each read a slice of the same arrays. This process or MPI starts them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thalweg::arrays::ArraySummary;
use thalweg::control::Control;

use crate::common::{Failure, VerbResult};

/// The most slices of a read, and the most processes. The parser of arguments takes ranges of i64.
pub(super) const MOST_SLICES: i64 = 4096;

/// The number of a slice and the number of slices, as in `0/4`: the first of four. Each process
/// reads the slice of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SliceNumber {
    pub(super) rank: usize,
    pub(super) size: usize,
}

impl FromStr for SliceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(rank, size)| Some((rank.parse().ok()?, size.parse().ok()?)));
        match numbers {
            Some((_, size)) if size > MOST_SLICES as usize => {
                Err(format!("{size} slices, and at most {MOST_SLICES} are possible"))
            }
            Some((rank, size)) if rank < size => Ok(Self { rank, size }),
            _ => Err("expected RANK/SIZE, as in 0/4: slices are counted from 0".into()),
        }
    }
}

/// The seconds that a read took in one process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadSeconds {
    /// Wall time from the start to the last value.
    pub(super) wall: f64,
    /// CPU time of the process.
    pub(super) cpu: f64,
    /// Wall time between the barriers.
    pub(super) between: f64,
}

/// The result of a read, by one process or by several together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ReadTally {
    /// Seconds from the start to the last value.
    pub(super) seconds: f64,
    /// Seconds between the barriers: from the moment when all processes know their slices to the
    /// moment when all have read them.
    pub(super) between: f64,
    pub(super) cpu: f64,
    pub(super) bytes: u64,
    pub(super) stored: u64,
    pub(super) fetched: u64,
    pub(super) requests: u64,
    /// The contribution of the values to each array's checksum.
    pub(super) sums: Vec<u64>,
}

impl ReadTally {
    /// The tally of a read that took these seconds.
    pub(super) fn new(summary: &ArraySummary, sums: Vec<u64>, took: ReadSeconds) -> Self {
        let ArraySummary { bytes, stored, clocks } = *summary;
        Self {
            seconds: took.wall,
            between: took.between,
            cpu: took.cpu,
            bytes,
            stored,
            fetched: clocks.fetch.bytes,
            requests: clocks.requests,
            sums,
        }
    }

    /// The sum of two tallies; of the seconds, the maximum.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.seconds = self.seconds.max(other.seconds);
        self.between = self.between.max(other.between);
        self.cpu += other.cpu;
        self.bytes += other.bytes;
        self.stored += other.stored;
        self.fetched += other.fetched;
        self.requests += other.requests;
        self.sums
            .iter_mut()
            .zip(&other.sums)
            .for_each(|(own, other)| *own = own.wrapping_add(*other));
        self
    }
}

/// The processes that read together.
pub(super) enum Ranks {
    /// This process alone: it reads a slice, or everything.
    Alone(SliceNumber),
    /// A process that [`lead`] has started. It reports through standard output.
    Member(SliceNumber),
    /// A rank of MPI's world.
    #[cfg(feature = "mpi")]
    Mpi(mpi::environment::Universe),
}

impl Ranks {
    /// The processes that MPI, or [`lead`], has started together with this one; or this process
    /// alone.
    pub(super) fn find(slice: Option<SliceNumber>, is_member: bool) -> Result<Self, Failure> {
        match (slice, is_member) {
            (Some(own), true) => Ok(Self::Member(own)),
            (Some(own), false) => Ok(Self::Alone(own)),
            (None, _) => Self::world(),
        }
    }

    #[cfg(feature = "mpi")]
    fn world() -> Result<Self, Failure> {
        use mpi::traits::Communicator;
        let universe = mpi::initialize()
            .ok_or_else(|| Failure::Said("MPI cannot be initialised twice".into()))?;
        Ok(match universe.world().size() {
            1 => Self::Alone(SliceNumber { rank: 0, size: 1 }),
            _ => Self::Mpi(universe),
        })
    }

    /// Refuses several processes of MPI in a build without MPI: each would read everything, without
    /// any warning.
    #[cfg(not(feature = "mpi"))]
    fn world() -> Result<Self, Failure> {
        match crate::common::ranks() {
            1 => Ok(Self::Alone(SliceNumber { rank: 0, size: 1 })),
            size => Err(Failure::Usage(format!(
                "MPI has started {size} processes, and this thalweg was built without MPI: \
                 `make mpi` builds one with it; --slice RANK/SIZE reads a part in any process, \
                 --ranks N starts processes without MPI"
            ))),
        }
    }

    /// The slice of this process.
    pub(super) fn own(&self) -> SliceNumber {
        match self {
            Self::Alone(own) | Self::Member(own) => *own,
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => {
                use mpi::traits::Communicator;
                let world = universe.world();
                SliceNumber { rank: world.rank() as usize, size: world.size() as usize }
            }
        }
    }

    /// How many of the processes share this machine's cores.
    pub(super) fn on_this_machine(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::Member(own) => own.size,
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => {
                use mpi::traits::Communicator;
                universe.world().split_shared(0).size() as usize
            }
        }
    }

    /// Waits for the other ranks of MPI before the file is opened.
    pub(super) fn meet(&self) {
        #[cfg(feature = "mpi")]
        if let Self::Mpi(universe) = self {
            use mpi::traits::CommunicatorCollectives;
            universe.world().barrier();
        }
    }

    /// Ends the other processes too: they would wait for this one forever.
    pub(super) fn abort(&self, failure: Failure) -> Failure {
        #[cfg(feature = "mpi")]
        if let Self::Mpi(universe) = self {
            use mpi::traits::Communicator;
            crate::common::exit(Err(failure), crate::signals::exit_code());
            // Aborting ends the launcher too, which may need a moment to pass on the message.
            std::thread::sleep(std::time::Duration::from_millis(300));
            universe.world().abort(1)
        }
        failure
    }

    /// Waits for the other processes.
    pub(super) fn barrier(&self) -> VerbResult {
        match self {
            Self::Alone(_) => Ok(()),
            Self::Member(_) => {
                println_now("ready")?;
                let mut go = String::new();
                match std::io::stdin().lock().read_line(&mut go) {
                    Ok(1..) => Ok(()),
                    // The leading process has ended.
                    _ => Err(thalweg::Error::Cancelled.into()),
                }
            }
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => {
                use mpi::traits::CommunicatorCollectives;
                universe.world().barrier();
                Ok(())
            }
        }
    }

    /// The tally of all processes. `None` except in the process that reports it.
    pub(super) fn together(&self, tally: ReadTally) -> Result<Option<ReadTally>, Failure> {
        match self {
            Self::Alone(_) => Ok(Some(tally)),
            Self::Member(_) => {
                println_now(
                    &serde_json::to_string(&tally).map_err(|e| Failure::Said(e.to_string()))?,
                )?;
                Ok(None)
            }
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => Ok(gathered(&universe.world(), &tally)),
        }
    }
}

/// The sum of all ranks' tallies; `None` except on rank 0.
#[cfg(feature = "mpi")]
fn gathered(world: &mpi::topology::SimpleCommunicator, tally: &ReadTally) -> Option<ReadTally> {
    use mpi::collective::SystemOperation;
    use mpi::traits::{Communicator, CommunicatorCollectives};
    let sums = [tally.bytes, tally.stored, tally.fetched, tally.requests];
    let sums = [&sums[..], &tally.sums].concat();
    let mut all = vec![0_u64; sums.len()];
    world.all_reduce_into(&sums[..], &mut all[..], SystemOperation::sum());
    let mut longest = [0.0; 2];
    world.all_reduce_into(
        &[tally.seconds, tally.between][..],
        &mut longest[..],
        SystemOperation::max(),
    );
    let mut cpu = 0.0;
    world.all_reduce_into(&tally.cpu, &mut cpu, SystemOperation::sum());
    let [bytes, stored, fetched, requests, ref sums @ ..] = all[..] else { return None };
    let [seconds, between] = longest;
    let sums = sums.to_vec();
    (world.rank() == 0).then_some(ReadTally {
        seconds,
        between,
        cpu,
        bytes,
        stored,
        fetched,
        requests,
        sums,
    })
}

/// Prints a line, and flushes it.
fn println_now(line: &str) -> VerbResult {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// Signals are looked for this often while a process has nothing to say.
const BETWEEN_SIGNALS: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A process that this one has started, with its standard input and output.
struct MemberProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Drop for MemberProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MemberProcess {
    fn start(place: SliceNumber) -> Result<Self, Failure> {
        let failed =
            |e| Failure::Failed(thalweg::Error::io(&"thalweg".into(), "starting a process of", e));
        let own = std::env::args_os().skip(1);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        // This thread leads until all have ended. If this process is killed, none must go on.
        thalweg_io::end_with_this_thread(&mut command);
        let mut child = command
            .args(own)
            .args(["--member", "--slice", &format!("{}/{}", place.rank, place.size)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err(Failure::Said("a process without pipes".into())),
        }
    }

    /// Waits for a line that the process prints, unless a signal cancels `control`.
    fn line(&mut self, control: &Control) -> Result<String, Failure> {
        // Nothing is in the reader's buffer: a process prints one line, and then waits or ends.
        let mut printed = [PollFd::new(self.stdout.get_ref(), PollFlags::IN)];
        while matches!(poll(&mut printed, Some(&BETWEEN_SIGNALS)), Ok(0) | Err(Errno::INTR)) {
            control.check()?;
        }
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        match (read, line.is_empty()) {
            (Ok(_), false) => Ok(line),
            // The process has printed the reason.
            _ => Err(Failure::Said(String::new())),
        }
    }

    /// Lets a process continue that waits at a barrier.
    fn go(&mut self) -> VerbResult {
        self.stdin.write_all(b"go\n").map_err(|_| Failure::Said(String::new()))
    }
}

/// Starts processes that each read a slice, and returns the tally of all.
pub(super) fn lead(size: usize, control: &Control) -> Result<ReadTally, Failure> {
    let mut members = (0..size)
        .map(|rank| MemberProcess::start(SliceNumber { rank, size }))
        .collect::<Result<Vec<_>, _>>()?;
    // The two barriers: before the clock starts, and before it is read.
    for _ in 0..2 {
        for member in &mut members {
            member.line(control)?;
        }
        members.iter_mut().try_for_each(MemberProcess::go)?;
    }
    let mut tallies = members.iter_mut().map(|member| {
        let line = member.line(control)?;
        serde_json::from_str(&line)
            .map_err(|e| Failure::Said(format!("a process said {line:?}: {e}")))
    });
    let first: ReadTally =
        tallies.next().unwrap_or_else(|| Err(Failure::Said("no processes".into())))?;
    tallies.try_fold(first, |all, tally| Ok(all.and(&tally?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbered_from_zero() {
        assert_eq!("0/4".parse(), Ok(SliceNumber { rank: 0, size: 4 }));
        for wrong in ["4/4", "1", "/", "-1/2", "0/0", "a/b"] {
            assert!(wrong.parse::<SliceNumber>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn slices_are_as_many_as_processes_can_be() {
        assert_eq!("4095/4096".parse(), Ok(SliceNumber { rank: 4095, size: 4096 }));
        for many in ["0/4097", "0/18446744073709551615"] {
            let told = many.parse::<SliceNumber>().unwrap_err();
            assert!(told.contains("at most 4096"), "{told}");
        }
    }
}
