//! What is measured: files, arms, levels.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::reads::{Options, ReadFile, index_path};
use thalweg_gauge::comparison::{Arm, Needs, Plan};
use thalweg_gauge::level::Level;
use thalweg_gauge::limit::ProbeOptions;

use super::peers::Peers;
use crate::common::{Failure, Outcome};
use crate::synth;

/// The same for every experiment of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) threads: usize,
    pub(super) rounds: Option<usize>,
    pub(super) cpus: Option<Vec<usize>>,
}

/// One comparison.
#[derive(Debug, Clone)]
pub(super) struct Experiment {
    pub(super) name: String,
    data: Data,
    work: Work,
    level: Level,
    rounds: usize,
    probe: bool,
    settings: Settings,
}

#[derive(Debug, Clone)]
enum Data {
    Given(PathBuf),
    Synthetic { path: PathBuf, samples: u64, record: RecordPress, signal: SignalPress },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Every read, in file order; with or without the Python peer.
    Sequential { python: bool },
    /// This many reads by id, shuffled.
    ByIds(usize),
    /// This many reads by id, each waited for.
    OneByOne(usize),
    /// Every read of a file without compression, beside `cat`: how close to the device.
    Raw,
}

/// The peers' own default, and what the published benchmark used.
const BATCH: &str = "1000";

/// Longest that one trial may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Samples of the tour's file: about half a gigabyte.
const TOUR_SAMPLES: u64 = 600_000_000;

/// Samples of the long experiment's files: over a gigabyte each.
const FULL_SAMPLES: u64 = 1_200_000_000;

/// Fewest trials that give a 95 % interval.
const TOUR_ROUNDS: usize = 6;
const FULL_ROUNDS: usize = 10;

/// The seed of synthetic files and shuffles.
const SEED: u64 = 1;

impl Experiment {
    pub(super) fn tour(folder: &Path, settings: &Settings) -> Vec<Self> {
        let data = synthetic(folder, TOUR_SAMPLES, RecordPress::Zstd, SignalPress::SvbZd);
        let make = |name: &str, work, level, probe| Self::new(name, &data, work, level, TOUR_ROUNDS, probe, settings);
        vec![
            make("cold: zstd + svb-zd", Work::Sequential { python: false }, Level::Cold, true),
            make("hot: zstd + svb-zd", Work::Sequential { python: false }, Level::Hot, false),
            make("cold: 1,000 reads by id", Work::ByIds(1000), Level::Cold, false),
        ]
    }

    pub(super) fn full(folder: &Path, settings: &Settings) -> Vec<Self> {
        let data = |record, signal| synthetic(folder, FULL_SAMPLES, record, signal);
        let best = data(RecordPress::Zstd, SignalPress::SvbZd);
        let make = |name: &str, data: &Data, work, level, probe| {
            Self::new(name, data, work, level, FULL_ROUNDS, probe, settings)
        };
        let all = Work::Sequential { python: false };
        vec![
            make("cold: zstd + svb-zd", &best, all, Level::Cold, true),
            make("cold: zstd + ex-zd", &data(RecordPress::Zstd, SignalPress::ExZd), all, Level::Cold, true),
            make("cold: zlib + svb-zd", &data(RecordPress::Zlib, SignalPress::SvbZd), all, Level::Cold, true),
            make("cold: 4,000 reads by id", &best, Work::ByIds(4000), Level::Cold, true),
            make("cold: 200 reads by id", &best, Work::ByIds(200), Level::Cold, false),
            make("cold: 200 reads one by one", &best, Work::OneByOne(200), Level::Cold, false),
            make("hot: zstd + svb-zd", &best, Work::Sequential { python: true }, Level::Hot, true),
            make("cold: no compression", &data(RecordPress::None, SignalPress::None), Work::Raw, Level::Cold, true),
        ]
    }

    pub(super) fn on_file(file: &Path, settings: &Settings) -> Vec<Self> {
        let data = Data::Given(file.to_owned());
        let make = |name: &str, work, level, probe| Self::new(name, &data, work, level, FULL_ROUNDS, probe, settings);
        vec![
            make("cold: every read", Work::Sequential { python: false }, Level::Cold, true),
            make("hot: every read", Work::Sequential { python: false }, Level::Hot, false),
            make("cold: 1,000 reads by id", Work::ByIds(1000), Level::Cold, false),
        ]
    }

    fn new(name: &str, data: &Data, work: Work, level: Level, rounds: usize, probe: bool, settings: &Settings) -> Self {
        let rounds = settings.rounds.unwrap_or(rounds);
        Self { name: name.into(), data: data.clone(), work, level, rounds, probe, settings: settings.clone() }
    }

    fn file(&self) -> &Path {
        match &self.data {
            Data::Given(path) | Data::Synthetic { path, .. } => path,
        }
    }

    fn list(&self) -> PathBuf {
        let count = match self.work {
            Work::ByIds(n) | Work::OneByOne(n) => n,
            Work::Sequential { .. } | Work::Raw => 0,
        };
        let base = thalweg::cache_folder().unwrap_or_else(std::env::temp_dir);
        let name = self.file().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        base.join("bench").join(format!("{name}.{count}.ids"))
    }

    /// Makes the files that are not there yet.
    pub(super) fn prepare(&self, stop: &AtomicBool) -> Outcome {
        if let Data::Synthetic { path, samples, record, signal } = &self.data
            && !path.is_file()
        {
            create_folder(path)?;
            synth::write(path, *samples, SEED, (*record, *signal), &|| stop.load(Ordering::SeqCst))?;
        }
        if let Work::ByIds(count) | Work::OneByOne(count) = self.work {
            let file = ReadFile::open(self.file(), Options::default())?;
            let (index, _) = file.index()?;
            let mut ids: Vec<&str> = index.iter().map(|(id, _)| id).collect();
            shuffle(&mut ids, SEED);
            ids.truncate(count);
            let list = self.list();
            create_folder(&list)?;
            std::fs::write(&list, ids.join("\n") + "\n")
                .map_err(|e| thalweg::Error::io(&list.to_string_lossy().into(), "writing", e))?;
        }
        Ok(())
    }

    pub(super) fn plan(&self, peers: &Peers) -> Result<Plan, Failure> {
        let thalweg = std::env::current_exe()
            .map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding the program itself:", e))?;
        let thalweg = thalweg.to_string_lossy().into_owned();
        let threads = self.settings.threads.to_string();
        let list = self.list().to_string_lossy().into_owned();
        let slow5lib = peers.slow5lib.as_ref().map(|p| p.to_string_lossy().into_owned());
        let ours = |args: &[&str]| command(&thalweg, &[&["read", "{file}", "--json"], args].concat());
        let theirs = |mode: &str, args: &[&str]| {
            let peer = slow5lib.as_ref()?;
            Some(command(peer, &[&[mode, "{file}"], args, &["--threads", &threads, "--batch", BATCH]].concat()))
        };
        // Name, command line where the program is there, remark.
        type Row = (&'static str, Option<Vec<String>>, Option<&'static str>);
        let mut arms: Vec<Row> = Vec::new();
        match self.work {
            Work::Sequential { python } => {
                arms.push(("thalweg", Some(ours(&["--threads", &threads])), None));
                arms.push(("slow5lib fork-join", theirs("seq", &[]), Some("the published benchmark's driver")));
                arms.push(("slow5lib slow5_mt", theirs("mt", &[]), Some("its own batch interface")));
                if python && let Some((interpreter, program)) = &peers.pyslow5 {
                    let program = program.to_string_lossy();
                    let args = [&*program, "seq", "{file}", "--threads", &threads, "--batch", BATCH];
                    let argv = command(&interpreter.to_string_lossy(), &args);
                    arms.push(("pyslow5", Some(argv), Some("runs an interpreter; its start is not timed")));
                }
            }
            Work::ByIds(_) => {
                arms.push(("thalweg", Some(ours(&["--threads", &threads, "--ids", &list])), None));
                arms.push(("slow5lib slow5_mt", theirs("get", &["--ids", &list]), Some("its own batch interface")));
            }
            Work::OneByOne(_) => {
                arms.push(("thalweg", Some(ours(&["--one-by-one", "--ids", &list])), Some("one thread")));
                arms.push(("slow5lib", theirs("get1", &["--ids", &list]), Some("slow5_get, one thread")));
            }
            Work::Raw => {
                arms.push(("thalweg", Some(ours(&["--threads", &threads])), None));
                arms.push(("thalweg direct", Some(ours(&["--threads", &threads, "--store", "direct"])), None));
                arms.push(("slow5lib fork-join", theirs("seq", &[]), Some("the published benchmark's driver")));
            }
        }
        let arms = arms.into_iter().filter_map(|(name, argv, label)| Some(self.arm(name, argv?, label))).collect();
        let mut plan = Plan::new(&self.name, arms).rounds(self.rounds);
        if self.probe {
            plan = plan.probe(ProbeOptions::default());
        }
        Ok(plan)
    }

    fn arm(&self, name: &str, argv: Vec<String>, label: Option<&str>) -> Arm {
        let mut arm = Arm::new(name, argv, self.file()).level(self.level).timeout(TIMEOUT);
        arm.sample_bytes = Some(2);
        arm.label = label.map(str::to_owned);
        if matches!(self.work, Work::ByIds(_) | Work::OneByOne(_)) {
            arm = arm.needs(Needs::Reported);
            arm.files.push(index_path(self.file()));
        }
        match &self.settings.cpus {
            Some(cpus) => arm.cpus(cpus.clone()),
            None => arm,
        }
    }
}

fn command(program: &str, args: &[&str]) -> Vec<String> {
    std::iter::once(program).chain(args.iter().copied()).map(str::to_owned).collect()
}

fn synthetic(folder: &Path, samples: u64, record: RecordPress, signal: SignalPress) -> Data {
    let name = format!("synth-{}M-{}-{}-v1.blow5", samples / 1_000_000, record.name(), signal.name());
    Data::Synthetic { path: folder.join(name), samples, record, signal }
}

fn create_folder(path: &Path) -> Outcome {
    let folder = path.parent().unwrap_or(Path::new("."));
    Ok(std::fs::create_dir_all(folder)
        .map_err(|e| thalweg::Error::io(&folder.to_string_lossy().into(), "creating", e))?)
}

/// Fisher-Yates with splitmix64 (Steele, Lea, Flood 2014): the same order everywhere.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for i in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        items.swap(i, ((z ^ (z >> 31)) % (i as u64 + 1)) as usize);
    }
}
