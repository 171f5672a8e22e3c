//! Suites: experiments as TOML files. A suite names workloads, files in named places, settings
//! (fixed or swept) and comparisons. `docs/suites.md` documents the format.
//!
//! [`Suite::parse`] finds all mistakes that the text alone shows, each with its line and column.
//! [`Suite::plan`] resolves a suite on a machine, reports the files and programs that are absent
//! there, and returns a [`ComparisonJob`] for each comparison.
//!
//! ```
//! use thalweg_gauge::suite::{NoTestFiles, Suite};
//!
//! let text = r#"
//! name = "mine"
//! [workload.cat]
//! command = "cat {file} > /dev/null"
//! [[comparison]]
//! name = "reading"
//! arms = ["cta"]
//! "#;
//! let suite = Suite::parse("mine.toml", text, &NoTestFiles);
//! let message = suite.map(|_| String::new()).unwrap_or_else(|e| e.to_string());
//! assert!(message.starts_with("mine.toml:7:9: no workload is called \"cta\""));
//! assert!(message.contains("did you mean \"cat\"?"));
//! ```

mod estimate;
mod files;
mod ids;
mod parse;
mod record;
mod references;
mod resolve;
mod sweep;
mod template;
mod test_files;
#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests;
mod toml_table;
mod value;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::comparison::{Needs, PairCount};
use template::Template;

pub use estimate::TimeEstimate;
pub use files::{FileOrigin, NeededFile};
pub use ids::{IdList, Many};
pub use parse::AUTO;
pub use record::SuiteRecord;
pub use resolve::{ComparisonJob, Context, Peer};
pub use template::literal as literal_template;
pub use test_files::{NoTestFiles, SynthTable, TestFile, TestFileMaker};
pub use toml_table::similar_name;
pub use value::SettingValue;

/// A range of the suite's text, in bytes.
type Span = Range<usize>;

/// A value with its position in the text.
#[derive(Debug, Clone, PartialEq)]
struct WithSpan<T> {
    value: T,
    at: Span,
}

/// Settings by name, in the order of the text.
type Settings = Vec<(String, WithSpan<SettingValue>)>;

/// A parsed suite, before it is resolved on a machine.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The name of the suite in messages: its path, or the name of a shipped suite.
    source: String,
    text: String,
    name: String,
    about: String,
    budget: Option<Duration>,
    pairs: PairCount,
    set: Settings,
    places: BTreeMap<String, PlaceDecl>,
    files: BTreeMap<String, FileDecl>,
    workloads: BTreeMap<String, WorkloadDecl>,
    comparisons: Vec<ComparisonDecl>,
}

/// A folder that the command line may replace.
#[derive(Debug, Clone)]
struct PlaceDecl {
    at: Span,
    path: Option<Template>,
    /// Whether arms in this place are left out when the command line does not give its folder.
    optional: bool,
}

#[derive(Debug, Clone)]
struct FileDecl {
    at: Span,
    /// The place where the file is made; `None` for the place of the arm.
    place: Option<WithSpan<String>>,
    source: FileSource,
}

#[derive(Debug, Clone)]
enum FileSource {
    /// The command line gives the file.
    CommandLine,
    /// An existing file.
    Path(Template),
    /// The caller makes the file.
    Synth(Arc<dyn TestFile>),
    /// A list of read ids of another file.
    Ids { of: WithSpan<String>, list: IdList },
    /// The output that a command or a peer writes to `{out}`.
    Command(Program, Command),
}

#[derive(Debug, Clone)]
enum Command {
    /// A command line for `sh -c`.
    Shell(Template),
    /// A program and its arguments, without a shell.
    Argv(Vec<Template>),
}

#[derive(Debug, Clone)]
enum Program {
    /// A verb of thalweg itself.
    Thalweg,
    /// A peer, by name.
    Peer(WithSpan<String>),
    /// Any other program.
    Command,
}

#[derive(Debug, Clone)]
struct WorkloadDecl {
    program: Program,
    /// The command. For thalweg and peers, it lacks the program.
    command: Command,
    setup: Option<Command>,
    prepare: Option<Command>,
    /// A command that reads the output after each trial.
    check: Option<Command>,
    cleanup: Option<Command>,
    env: Vec<(String, Template)>,
    /// Files besides `{file}` that are brought to the cache level.
    also: Vec<Template>,
    /// Whether the workload must report its time and digest.
    report: bool,
    needs: Needs,
    values: Option<String>,
    sample_bytes: Option<u64>,
    label: Option<String>,
}

/// A sweep: every combination of the values, without the excluded points, and with the included
/// points.
#[derive(Debug, Clone, Default)]
struct Sweep {
    over: Vec<(String, WithSpan<Vec<SettingValue>>)>,
    exclude: Vec<Settings>,
    include: Vec<Settings>,
}

#[derive(Debug, Clone)]
struct ArmDecl {
    at: Span,
    workload: WithSpan<String>,
    name: Option<Template>,
    set: Settings,
    sweep: Sweep,
}

#[derive(Debug, Clone)]
struct ComparisonDecl {
    at: Span,
    name: Template,
    step: Option<String>,
    set: Settings,
    sweep: Sweep,
    pairs: Option<PairCount>,
    budget: Option<Duration>,
    probe: bool,
    control: bool,
    arms: Vec<ArmDecl>,
}

impl Suite {
    /// The name of the suite.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The purpose of the suite, in one or two sentences.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The text that the suite was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The time budget of the whole suite.
    pub fn budget(&self) -> Option<Duration> {
        self.budget
    }
}
