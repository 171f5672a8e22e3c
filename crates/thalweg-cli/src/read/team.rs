//! Several processes that read the same arrays, each its slice: started here, or by MPI.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thalweg::arrays::Summary;

use crate::common::{Failure, Outcome};

/// Which slice of how many, as in `0/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) size: usize,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(rank, size)| Some((rank.parse().ok()?, size.parse().ok()?)));
        match numbers {
            Some((rank, size)) if rank < size => Ok(Self { rank, size }),
            _ => Err("expected RANK/SIZE, as in 0/4: slices are counted from 0".into()),
        }
    }
}

/// What a member has read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Seconds from the start to the last value.
    pub(super) seconds: f64,
    /// Seconds between the barriers: files are open, and it is known what is read.
    pub(super) between: f64,
    pub(super) cpu: f64,
    pub(super) bytes: u64,
    pub(super) stored: u64,
    pub(super) fetched: u64,
    pub(super) requests: u64,
    /// What the member's values add to each array's checksum.
    pub(super) words: Vec<u64>,
}

impl Tally {
    /// Of a read that took so many seconds, on the wall, of CPU, and between the barriers.
    pub(super) fn new(
        summary: &Summary,
        words: Vec<u64>,
        (seconds, cpu, between): (f64, f64, f64),
    ) -> Self {
        let Summary { bytes, stored, clocks } = *summary;
        Self {
            seconds,
            between,
            cpu,
            bytes,
            stored,
            fetched: clocks.fetch.bytes,
            requests: clocks.requests,
            words,
        }
    }

    /// What several have read.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.seconds = self.seconds.max(other.seconds);
        self.between = self.between.max(other.between);
        self.cpu += other.cpu;
        self.bytes += other.bytes;
        self.stored += other.stored;
        self.fetched += other.fetched;
        self.requests += other.requests;
        self.words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(mine, its)| *mine = mine.wrapping_add(*its));
        self
    }
}

/// Who reads together.
pub(super) enum Team {
    /// One process, of a slice or of everything.
    Alone(Place),
    /// A member of `read --ranks`, which hears from it through standard output.
    Member(Place),
    /// A member of MPI's world.
    #[cfg(feature = "mpi")]
    Mpi(mpi::environment::Universe),
}

impl Team {
    /// Whoever MPI has started with this process; else the process alone.
    pub(super) fn find(slice: Option<Place>, is_member: bool) -> Result<Self, Failure> {
        match (slice, is_member) {
            (Some(place), true) => Ok(Self::Member(place)),
            (Some(place), false) => Ok(Self::Alone(place)),
            (None, _) => Self::world(),
        }
    }

    #[cfg(feature = "mpi")]
    fn world() -> Result<Self, Failure> {
        use mpi::traits::Communicator;
        let universe = mpi::initialize()
            .ok_or_else(|| Failure::Said("MPI cannot be initialised twice".into()))?;
        Ok(match universe.world().size() {
            1 => Self::Alone(Place { rank: 0, size: 1 }),
            _ => Self::Mpi(universe),
        })
    }

    /// Without MPI, many processes would each read everything, and nobody would notice.
    #[cfg(not(feature = "mpi"))]
    fn world() -> Result<Self, Failure> {
        match crate::common::ranks() {
            1 => Ok(Self::Alone(Place { rank: 0, size: 1 })),
            size => Err(Failure::Usage(format!(
                "MPI has started {size} processes, and this thalweg was built without MPI: `make mpi` builds one with it; \
                 --slice RANK/SIZE reads a part in any process, --ranks N starts processes without MPI"
            ))),
        }
    }

    pub(super) fn place(&self) -> Place {
        match self {
            Self::Alone(place) | Self::Member(place) => *place,
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => {
                use mpi::traits::Communicator;
                let world = universe.world();
                Place { rank: world.rank() as usize, size: world.size() as usize }
            }
        }
    }

    /// Members that share this machine's cores.
    pub(super) fn neighbours(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::Member(place) => place.size,
            #[cfg(feature = "mpi")]
            Self::Mpi(universe) => {
                use mpi::traits::Communicator;
                universe.world().split_shared(0).size() as usize
            }
        }
    }

    /// Waits until the first has come, where nothing is measured: for members, their leader has
    /// done what was to do.
    pub(super) fn meet(&self) {
        #[cfg(feature = "mpi")]
        if let Self::Mpi(universe) = self {
            use mpi::traits::CommunicatorCollectives;
            universe.world().barrier();
        }
    }

    /// Ends the others too, who would wait for this one.
    pub(super) fn broken_up(&self, failure: Failure) -> Failure {
        #[cfg(feature = "mpi")]
        if let Self::Mpi(universe) = self {
            use mpi::traits::Communicator;
            crate::common::exit(Err(failure));
            // What ends the others ends the launcher too, with what it has not passed on of the
            // message.
            std::thread::sleep(std::time::Duration::from_millis(300));
            universe.world().abort(1)
        }
        failure
    }

    /// Waits for the others.
    pub(super) fn barrier(&self) -> Outcome {
        match self {
            Self::Alone(_) => Ok(()),
            Self::Member(_) => {
                println_now("ready")?;
                let mut go = String::new();
                match std::io::stdin().lock().read_line(&mut go) {
                    Ok(1..) => Ok(()),
                    // Whoever leads is gone.
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

    /// What all have read together, to the one who says it.
    pub(super) fn together(&self, tally: Tally) -> Result<Option<Tally>, Failure> {
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

/// The sum of what all ranks have, on the first.
#[cfg(feature = "mpi")]
fn gathered(world: &mpi::topology::SimpleCommunicator, tally: &Tally) -> Option<Tally> {
    use mpi::collective::SystemOperation;
    use mpi::traits::{Communicator, CommunicatorCollectives};
    let sums = [tally.bytes, tally.stored, tally.fetched, tally.requests];
    let sums = [&sums[..], &tally.words].concat();
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
    let [bytes, stored, fetched, requests, ref words @ ..] = all[..] else { return None };
    let [seconds, between] = longest;
    let words = words.to_vec();
    (world.rank() == 0).then_some(Tally {
        seconds,
        between,
        cpu,
        bytes,
        stored,
        fetched,
        requests,
        words,
    })
}

fn println_now(line: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// A member as its leader sees it.
struct Member {
    child: Child,
    tell: ChildStdin,
    hear: BufReader<std::process::ChildStdout>,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Member {
    fn start(place: Place) -> Result<Self, Failure> {
        let failed =
            |e| Failure::Failed(thalweg::Error::io(&"thalweg".into(), "starting a process of", e));
        let own = std::env::args_os().skip(1);
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(own)
            .args(["--member", "--trusted", "--slice", &format!("{}/{}", place.rank, place.size)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(tell), Some(hear)) => Ok(Self { child, tell, hear: BufReader::new(hear) }),
            _ => Err(Failure::Said("a process without pipes".into())),
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let read = self.hear.read_line(&mut line);
        match (read, line.is_empty()) {
            (Ok(_), false) => Ok(line),
            // It has said why.
            _ => Err(Failure::Said(String::new())),
        }
    }

    fn go(&mut self) -> Outcome {
        self.tell.write_all(b"go\n").map_err(|_| Failure::Said(String::new()))
    }
}

/// Starts processes that read a slice each, and adds up what they have read.
pub(super) fn lead(size: usize) -> Result<Tally, Failure> {
    let mut members =
        (0..size).map(|rank| Member::start(Place { rank, size })).collect::<Result<Vec<_>, _>>()?;
    // Before the clock starts, and before it is read.
    for _ in 0..2 {
        for member in &mut members {
            member.line()?;
        }
        members.iter_mut().try_for_each(Member::go)?;
    }
    let mut tallies = members.iter_mut().map(|member| {
        let line = member.line()?;
        serde_json::from_str(&line)
            .map_err(|e| Failure::Said(format!("a process said {line:?}: {e}")))
    });
    let first: Tally =
        tallies.next().unwrap_or_else(|| Err(Failure::Said("no processes".into())))?;
    tallies.try_fold(first, |all, tally| Ok(all.and(&tally?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_counted_from_none() {
        assert_eq!("0/4".parse(), Ok(Place { rank: 0, size: 4 }));
        for wrong in ["4/4", "1", "/", "-1/2", "0/0", "a/b"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
