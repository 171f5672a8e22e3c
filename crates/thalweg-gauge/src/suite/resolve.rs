//! Resolves a suite on this machine: places become folders, peers become programs, sweeps become
//! arms.

mod scope;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;
use thalweg_io::store::throttled::Limits;

use super::files::NeededFile;
use super::parse::DEFAULT_PLACE;
use super::sweep::SweepPoint;
use super::template::Template;
use super::toml_table::{Problems, suggestion};
use super::{
    ArmDecl, ComparisonDecl, Program, SettingValue, Settings, Suite, TimeEstimate, WithSpan,
    WorkloadDecl, value,
};
use crate::cache_level::CacheLevel;
use crate::comparison::{Arm, ComparisonPlan, Counterfactuals, InSuite, Needs, PairCount};
use crate::limit::ProbeOptions;
use crate::workload::Workload;
use crate::{Error, Result, cache};
use scope::{Scope, removal};

/// The context of a suite: this machine, and the options of the command line.
pub struct Context<'a> {
    /// The program that runs thalweg's own verbs.
    pub thalweg: String,
    /// Looks a peer up.
    pub peer: &'a dyn Fn(&str) -> Peer,
    /// Folders of places, which replace those of the suite.
    pub places: BTreeMap<String, PathBuf>,
    /// Paths of files, which replace those of the suite.
    pub files: BTreeMap<String, PathBuf>,
    /// Settings, which replace those that the suite sets for all arms.
    pub set: Vec<(String, SettingValue)>,
    /// The number of pairs, which replaces that of the suite.
    pub pairs: Option<PairCount>,
    /// The folder that `{cache}` stands for.
    pub cache: PathBuf,
    /// The folder that relative paths of the suite start from.
    pub folder: PathBuf,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// The numbers of these cores. Empty if they are unknown; every number is then accepted.
    pub cpus: Vec<usize>,
}

/// The result of looking a peer up.
#[derive(Debug, Clone, PartialEq)]
pub enum Peer {
    /// The program, followed by the arguments that precede those of the workload.
    Found(Vec<String>),
    /// The peer is not on this machine; the text says how to install it.
    Absent(String),
    /// The name is unknown; these names are known.
    Unknown(Vec<String>),
}

/// One comparison of a suite, ready to be run.
#[derive(Debug)]
pub struct ComparisonJob {
    /// What to compare.
    pub plan: ComparisonPlan,
    /// The files that the comparison needs. Each file comes after the files that it is made from.
    pub needed: Vec<NeededFile>,
    /// The folders that the commands write to.
    pub folders: Vec<PathBuf>,
    /// The commands to run once before the first trial.
    pub setup: Vec<Workload>,
    /// The commands to run once after the last trial.
    pub cleanup: Vec<Workload>,
    /// Arms that can't run here, and why.
    pub absent: Vec<String>,
    /// An estimate of the duration.
    pub guess: TimeEstimate,
}

/// The time limit of a trial in seconds, unless the suite sets another one.
const TIMEOUT_S: f64 = 600.0;

/// An arm that reports how many bytes it needs is estimated to read the size of its file divided by
/// this.
const PART: u64 = 20;

impl Suite {
    /// Resolves the suite on this machine. It runs no command, and makes and changes no file.
    ///
    /// # Errors
    /// [`Error::Suite`] with everything that is absent or impossible on this machine;
    /// [`Error::Usage`] for a place, file or setting of the command line that the suite does not
    /// have.
    pub fn plan(&self, context: &Context<'_>) -> Result<Vec<ComparisonJob>> {
        let set = self.checked_set(context)?;
        let mut resolver = Resolver { suite: self, context, set, problems: Problems::default() };
        let mut jobs = Vec::new();
        for comparison in &self.comparisons {
            for point in comparison.sweep.points(context.cores) {
                jobs.extend(resolver.job(comparison, &point));
            }
        }
        let mut names = BTreeSet::new();
        for job in &jobs {
            if !names.insert(job.plan.name.as_str()) {
                return Err(Error::Suite(format!(
                    "{}: two comparisons are called {:?}",
                    self.source, job.plan.name
                )));
            }
        }
        match resolver.problems.render(&self.source, &self.text) {
            Some(message) => Err(Error::Suite(message)),
            None => Ok(jobs),
        }
    }

    fn checked_set(&self, context: &Context<'_>) -> Result<Settings> {
        let unknown = |kind: &str, name: &str, all: Vec<&str>| {
            let hint = suggestion(name, all.iter().copied());
            Err(Error::Usage(format!("the suite {:?} has no {kind} {name:?}{hint}", self.name)))
        };
        if let Some(name) = context.places.keys().find(|name| !self.places.contains_key(*name)) {
            return unknown("place", name, self.places.keys().map(String::as_str).collect());
        }
        if let Some(name) = context.files.keys().find(|name| !self.files.contains_key(*name)) {
            return unknown("file", name, self.files.keys().map(String::as_str).collect());
        }
        let mut set = self.set.clone();
        for (name, scalar) in &context.set {
            value::check(name, scalar).map_err(Error::Usage)?;
            let known: Vec<&str> =
                set.iter().map(|(n, _)| n.as_str()).chain(value::KNOWN).collect();
            if !known.contains(&name.as_str()) {
                return unknown("setting", name, known);
            }
            set.retain(|(n, _)| n != name);
            set.push((name.clone(), WithSpan { value: scalar.clone(), at: 0..0 }));
        }
        Ok(set)
    }
}

struct Resolver<'a> {
    suite: &'a Suite,
    context: &'a Context<'a>,
    set: Settings,
    problems: Problems,
}

/// The parts of a job while its arms are resolved.
#[derive(Default)]
struct JobParts {
    arms: Vec<Arm>,
    needed: Vec<NeededFile>,
    folders: Vec<PathBuf>,
    setup: Vec<Workload>,
    cleanup: Vec<Workload>,
    absent: Vec<String>,
}

impl Resolver<'_> {
    /// Resolves a comparison at one point of its sweep. `None` if it can't be resolved at all; the
    /// problems then have the reason.
    fn job(&mut self, comparison: &ComparisonDecl, point: &SweepPoint) -> Option<ComparisonJob> {
        let settings = self.settings(&[&self.set, &comparison.set], point);
        let shown = self.resolved(point, &settings);
        let name = titled(&comparison.name, &self.named(&settings), &shown);
        let mut parts = JobParts::default();
        for decl in &comparison.arms {
            for arm_point in decl.sweep.points(self.context.cores) {
                self.add_arm(&name, comparison, decl, [point, &arm_point], &mut parts)?;
            }
        }
        let JobParts { arms, needed, folders, setup, cleanup, absent } = parts;
        if arms.is_empty() && absent.is_empty() {
            return None; // the problems have the reason
        }
        let pairs = self.context.pairs.or(comparison.pairs).unwrap_or(self.suite.pairs);
        let guess = estimate(comparison, &arms, &needed, pairs);
        let throttle = arms.iter().find_map(|arm| throttle(&arm.workload.argv));
        let mut plan = ComparisonPlan::new(&name, arms).control(comparison.control).pairs(pairs);
        plan.budget = comparison.budget;
        if comparison.probe {
            plan = plan.probe(ProbeOptions { throttle, ..ProbeOptions::default() });
        }
        plan.suite = Some(InSuite {
            name: self.suite.name.clone(),
            step: comparison.step.clone(),
            settings: shown.into_iter().map(|(name, value)| (name, json(&value))).collect(),
        });
        Some(ComparisonJob { plan, needed, folders, setup, cleanup, absent, guess })
    }

    /// Resolves one arm at one point of its own sweep, and adds it to `parts`. An arm that can't
    /// run on this machine is added to the absent arms. `points` are the points of the comparison
    /// and of the arm. `None` if a mistake ends the whole comparison.
    fn add_arm(
        &mut self,
        comparison_name: &str,
        comparison: &ComparisonDecl,
        decl: &ArmDecl,
        points: [&SweepPoint; 2],
        parts: &mut JobParts,
    ) -> Option<()> {
        let Some(workload) = self.suite.workloads.get(&decl.workload.value) else {
            return Some(());
        };
        let [point, arm_point] = points;
        let mut settings = self.settings(&[&self.set, &comparison.set], point);
        settings.extend(self.settings(&[&decl.set], arm_point));
        let arm_name = self.arm_name(decl, arm_point, &settings);
        if let Some(why) = self.not_given(&settings) {
            parts.absent.push(why);
            return Some(());
        }
        if let Some(why) = self.not_made(&settings) {
            parts.absent.push(format!("{arm_name}: {why}"));
            return Some(());
        }
        let program = match self.program(&workload.program) {
            Ok(program) => program,
            Err(why) => {
                parts.absent.extend(why.map(|why| format!("{arm_name}: {why}")));
                return Some(());
            }
        };
        if parts.arms.iter().any(|arm| arm.name == arm_name) {
            let what =
                format!("two arms of {comparison_name:?} are called {arm_name:?}; give a `name`");
            self.problems.add(&decl.at, what);
            return Some(());
        }
        let set = decl.set.iter().map(|(name, value)| (name.clone(), value.value.clone()));
        let own: SweepPoint = set.chain(arm_point.clone()).collect();
        let own = self.resolved(&own, &settings);
        let identity = format!("{comparison_name}\0{arm_name}");
        let mut scope = self.scope(settings, decl, &identity)?;
        let mut arm = self.arm(&arm_name, decl, workload, program, &mut scope)?;
        arm.settings = own.into_iter().map(|(name, value)| (name, json(&value))).collect();
        if self.suite.places.len() > 1 && !arm.files.is_empty() {
            arm.settings.entry("place".into()).or_insert_with(|| scope.place.clone().into());
        }
        self.add_commands(workload, &mut scope, parts);
        for file in scope.needed {
            if !parts.needed.contains(&file) {
                parts.needed.push(file);
            }
        }
        parts.arms.push(arm);
        Some(())
    }

    /// Adds the commands that run once before and after the trials.
    fn add_commands(&mut self, workload: &WorkloadDecl, scope: &mut Scope, parts: &mut JobParts) {
        let lists = [(&workload.setup, &mut parts.setup), (&workload.cleanup, &mut parts.cleanup)];
        for (command, list) in lists {
            let made = command.as_ref().and_then(|command| self.command(command, &[], scope));
            list.extend(made.filter(|made| !list.contains(made)));
        }
        if scope.out_used {
            parts.cleanup.push(removal(&scope.out));
            parts.folders.push(scope.folder.clone());
        }
    }

    fn arm_name(
        &self,
        decl: &ArmDecl,
        arm_point: &SweepPoint,
        settings: &BTreeMap<String, SettingValue>,
    ) -> String {
        let point = self.resolved(arm_point, settings);
        match &decl.name {
            Some(template) => titled(template, &self.named(settings), &point),
            None => untitled(&decl.workload.value, &point),
        }
    }

    /// Merges layers of settings: later layers replace earlier ones, and the point replaces all.
    fn settings(&self, layers: &[&Settings], point: &SweepPoint) -> BTreeMap<String, SettingValue> {
        let set = layers
            .iter()
            .flat_map(|layer| layer.iter())
            .map(|(name, value)| (name.clone(), value.value.clone()));
        set.chain(point.iter().cloned()).collect()
    }

    /// A point with `all` threads replaced by their number.
    fn resolved(
        &self,
        point: &SweepPoint,
        settings: &BTreeMap<String, SettingValue>,
    ) -> SweepPoint {
        let all = self.all_threads(settings);
        let one = |(name, scalar): &(String, SettingValue)| {
            let number = value::threads(scalar, all).ok().filter(|_| name == "threads");
            let number = number.and_then(|n| i64::try_from(n).ok()).map(SettingValue::Integer);
            (name.clone(), number.unwrap_or_else(|| scalar.clone()))
        };
        point.iter().map(one).collect()
    }

    /// The settings that templates of names may use, with the defaults of `threads` and `place`.
    fn named(&self, settings: &BTreeMap<String, SettingValue>) -> BTreeMap<String, SettingValue> {
        let mut named = settings.clone();
        let threads = named
            .entry("threads".into())
            .or_insert_with(|| SettingValue::Text("all".into()))
            .clone();
        named.extend(self.resolved(&vec![("threads".into(), threads)], settings));
        named.entry("place".into()).or_insert_with(|| SettingValue::Text(DEFAULT_PLACE.into()));
        named
    }

    /// The number that `all` threads stands for: the number of CPUs that the arm may use.
    fn all_threads(&self, settings: &BTreeMap<String, SettingValue>) -> usize {
        let pinned = settings.get("cpus").and_then(|cpus| value::cpus(cpus).ok());
        pinned.map_or(self.context.cores, |cpus| cpus.len())
    }

    fn program(&mut self, program: &Program) -> Result<Vec<String>, Option<String>> {
        match program {
            Program::Command => Ok(Vec::new()),
            Program::Thalweg => Ok(vec![self.context.thalweg.clone()]),
            Program::Peer(name) => match (self.context.peer)(&name.value) {
                Peer::Found(program) => Ok(program),
                Peer::Absent(why) => Err(Some(why)),
                Peer::Unknown(known) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let hint = suggestion(&name.value, known.iter().copied());
                    let all = super::toml_table::listed(&known);
                    self.problems.add(
                        &name.at,
                        format!("no peer is called {:?}{hint} (known: {all})", name.value),
                    );
                    Err(None)
                }
            },
        }
    }

    fn arm(
        &mut self,
        name: &str,
        decl: &ArmDecl,
        workload: &WorkloadDecl,
        program: Vec<String>,
        scope: &mut Scope,
    ) -> Option<Arm> {
        let mut command = self.command(&workload.command, &program, scope)?;
        for (variable, template) in &workload.env {
            command.env.insert(variable.clone(), self.fill(template, scope, false)?);
        }
        command.cpus.clone_from(&scope.cpus);
        let timeout = match scope.settings.get("timeout").map(value::timeout) {
            Some(Ok(timeout)) => timeout.as_secs_f64(),
            _ => TIMEOUT_S,
        };
        command.timeout_s = Some(timeout);
        let mut files = Vec::new();
        if workload.command.templates().flat_map(Template::names).any(|name| name == "file") {
            files.push(self.main_file(scope, &decl.at)?);
        }
        for template in &workload.also {
            files.push(PathBuf::from(self.fill(template, scope, false)?));
        }
        let mut prepare = Vec::new();
        if let Some(template) = &workload.prepare {
            let mut before = self.command(template, &[], scope)?;
            before.timeout_s = Some(timeout);
            prepare.push(before);
        }
        let mut check = None;
        if let Some(template) = &workload.check {
            let mut after = self.command(template, &[], scope)?;
            after.timeout_s = Some(timeout);
            check = Some(after);
        }
        if scope.out_used {
            prepare.insert(0, removal(&scope.out));
        }
        let level = match scope.settings.get("level").map(value::level) {
            Some(Ok(level)) => level,
            _ if files.is_empty() => CacheLevel::Lukewarm,
            _ => CacheLevel::Cold,
        };
        let mut arm =
            Arm::new(name, Vec::<String>::new(), PathBuf::new()).level(level).needs(workload.needs);
        // What a template has left is the command's own.
        arm.is_complete = command.argv.iter().any(|word| word.contains("{file"));
        arm.workload = command;
        arm.files = files;
        arm.must_report = workload.report;
        arm.values.clone_from(&workload.values);
        arm.sample_bytes = workload.sample_bytes;
        arm.label.clone_from(&workload.label);
        arm.prepare = prepare;
        arm.check = check;
        arm.counterfactuals = counterfactuals(&workload.program, &arm.workload.argv);
        Some(arm)
    }
}

/// The limits of `--throttle` in a command line. The probe uses the same limits.
fn throttle(argv: &[String]) -> Option<Limits> {
    argv.windows(2).find_map(|pair| match pair {
        [option, limits] if option == "--throttle" => limits.parse().ok(),
        _ => None,
    })
}

/// The arguments with which `thalweg read` runs without a stage; `None` for other verbs and
/// programs.
fn counterfactuals(program: &Program, argv: &[String]) -> Option<Counterfactuals> {
    let has = |word: &str| argv.iter().any(|arg| arg == word);
    (matches!(program, Program::Thalweg) && has("read") && has("--json"))
        .then(Counterfactuals::of_thalweg)
}

/// Estimates the duration of the trials, of the probes and of making the files.
fn estimate(
    comparison: &ComparisonDecl,
    arms: &[Arm],
    needed: &[NeededFile],
    pairs: PairCount,
) -> TimeEstimate {
    let first_files: BTreeSet<_> = arms.iter().filter_map(|arm| arm.files.first()).collect();
    let probed = if comparison.probe { first_files.len() } else { 0 };
    let bytes: Vec<u64> = arms.iter().map(|arm| about_bytes(arm, needed)).collect();
    let control = bytes.first().filter(|_| comparison.control).copied();
    let bytes: Vec<u64> = bytes.into_iter().chain(control).collect();
    TimeEstimate::new(&bytes, pairs.most(), needed, probed)
}

/// The approximate number of bytes that an arm reads from its files.
fn about_bytes(arm: &Arm, needed: &[NeededFile]) -> u64 {
    let of = |path: &PathBuf| {
        let known =
            needed.iter().find(|needed| needed.path == *path).and_then(NeededFile::about_bytes);
        known.or_else(|| Some(cache::state_of(path).ok()?.0)).unwrap_or(0)
    };
    let all = arm.files.iter().map(of).sum::<u64>();
    match arm.needs {
        Needs::WholeFiles | Needs::Unknown => all,
        Needs::Bytes(bytes) => bytes,
        Needs::Reported => all / PART,
    }
}

/// Fills the template of a name, and appends the settings of `point` that it does not mention.
fn titled(
    template: &Template,
    settings: &BTreeMap<String, SettingValue>,
    point: &SweepPoint,
) -> String {
    let value = |name: &str| {
        let swept = point.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        Ok::<_, ()>(
            swept.or_else(|| settings.get(name)).map(SettingValue::to_string).unwrap_or_default(),
        )
    };
    let name = template.fill(value).unwrap_or_default();
    let mentioned: Vec<&str> = template.names().collect();
    let unmentioned: SweepPoint =
        point.iter().filter(|(n, _)| !mentioned.contains(&n.as_str())).cloned().collect();
    untitled(&name, &unmentioned)
}

fn untitled(name: &str, point: &SweepPoint) -> String {
    point
        .iter()
        .fold(name.to_owned(), |name, (setting, value)| format!("{name}, {setting}={value}"))
}

fn json(scalar: &SettingValue) -> Value {
    serde_json::to_value(scalar).unwrap_or_default()
}
