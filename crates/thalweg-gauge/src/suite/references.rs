//! Mistakes between the parts of a suite: unknown names and unused settings.

use std::collections::BTreeSet;

use super::parse::{is_always_set, is_known_setting};
use super::sweep::MOST_POINTS;
use super::template::Template;
use super::toml_table::{Problems, suggestion};
use super::{
    ArmDecl, ComparisonDecl, FileSource, SettingValue, Settings, Span, Suite, Sweep, WithSpan,
    WorkloadDecl,
};

/// Reports every reference to a name that the suite does not define.
pub(super) fn check_references(suite: &Suite, problems: &mut Problems) {
    for file in suite.files.values() {
        if let Some(place) = &file.place {
            known("place", place, suite.places.keys(), problems);
        }
        match &file.source {
            FileSource::Ids { of, .. } => known("file", of, suite.files.keys(), problems),
            FileSource::Command(_, command) => {
                for template in command.templates() {
                    names(suite, template, &|name| name != "file" && is_always_set(name), problems);
                }
            }
            FileSource::Path(path) => {
                names(suite, path, &|name| matches!(name, "folder" | "cache" | "place"), problems);
            }
            FileSource::CommandLine | FileSource::Synth(_) => {}
        }
    }
    for place in suite.places.values() {
        if let Some(path) = &place.path {
            names(suite, path, &|name| name == "cache", problems);
        }
    }
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for workload in suite.workloads.values() {
        used.extend(workload.templates().flat_map(Template::names));
    }
    for comparison in &suite.comparisons {
        used.extend(comparison.name.names());
        used.extend(
            comparison.arms.iter().filter_map(|arm| arm.name.as_ref()).flat_map(Template::names),
        );
    }
    unused(&suite.set, &used, problems);
    values(suite, &suite.set, problems);
    let mut arms = 0_usize;
    for comparison in &suite.comparisons {
        of_comparison(suite, comparison, problems);
        let each: usize = comparison.arms.iter().map(|arm| arm.sweep.points(LARGE).len()).sum();
        arms = arms.saturating_add(comparison.sweep.points(LARGE).len().saturating_mul(each));
        if arms > MOST_POINTS {
            problems.add(
                &comparison.at,
                format!("with this, the suite has more than {MOST_POINTS} arms"),
            );
            return;
        }
    }
}

/// The number of cores of a large machine. Sweeps to "all" must also stay small there.
const LARGE: usize = 1024;

fn of_comparison(suite: &Suite, comparison: &ComparisonDecl, problems: &mut Problems) {
    let mut used: BTreeSet<&str> = comparison.name.names().collect();
    for arm in &comparison.arms {
        let mut of_arm: BTreeSet<&str> = arm.name.iter().flat_map(Template::names).collect();
        if let Some(workload) = suite.workloads.get(&arm.workload.value) {
            of_arm.extend(workload.templates().flat_map(Template::names));
            let there = |name: &str| is_always_set(name) || setting(suite, comparison, arm, name);
            for template in workload.templates() {
                names(suite, template, &there, problems);
            }
        } else {
            known("workload", &arm.workload, suite.workloads.keys(), problems);
        }
        let plain = |name: &str| {
            setting(suite, comparison, arm, name) || matches!(name, "threads" | "place")
        };
        arm.name.iter().for_each(|name| names(suite, name, &plain, problems));
        unused(&arm.set, &of_arm, problems);
        swept(suite, &arm.sweep, &arm.set, &of_arm, problems);
        values(suite, &arm.set, problems);
        used.extend(of_arm);
    }
    let plain = |name: &str| {
        has(&suite.set, name)
            || has(&comparison.set, name)
            || comparison.sweep.names().any(|n| n == name)
    };
    names(suite, &comparison.name, &plain, problems);
    unused(&comparison.set, &used, problems);
    swept(suite, &comparison.sweep, &comparison.set, &used, problems);
    values(suite, &comparison.set, problems);
}

fn has(settings: &Settings, name: &str) -> bool {
    settings.iter().any(|(n, _)| n == name)
}

fn setting(suite: &Suite, comparison: &ComparisonDecl, arm: &ArmDecl, name: &str) -> bool {
    [&suite.set, &comparison.set, &arm.set].into_iter().any(|set| has(set, name))
        || comparison.sweep.names().chain(arm.sweep.names()).any(|n| n == name)
}

impl WorkloadDecl {
    /// All templates of the workload.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        let commands = [
            Some(&self.command),
            self.setup.as_ref(),
            self.prepare.as_ref(),
            self.check.as_ref(),
            self.cleanup.as_ref(),
        ];
        let commands = commands.into_iter().flatten().flat_map(|command| command.templates());
        commands.chain(self.env.iter().map(|(_, template)| template)).chain(&self.also)
    }
}

/// Reports a name that no entry of its kind has.
fn known<'a>(
    kind: &str,
    name: &WithSpan<String>,
    all: impl Iterator<Item = &'a String> + Clone,
    problems: &mut Problems,
) {
    if !all.clone().any(|n| *n == name.value) {
        let hint = suggestion(&name.value, all.map(String::as_str));
        problems.add(&name.at, format!("no {kind} is called {:?}{hint}", name.value));
    }
}

/// Reports names in braces that have no value.
fn names(
    suite: &Suite,
    template: &Template,
    there: &dyn Fn(&str) -> bool,
    problems: &mut Problems,
) {
    for name in template.names() {
        if let Some(file) = name.strip_prefix("file:").filter(|_| there(name)) {
            let file = WithSpan { value: file.to_owned(), at: template.at.clone() };
            known("file", &file, suite.files.keys(), problems);
        } else if !there(name) {
            let all: Vec<&str> = ["file", "folder", "out", "cache", "threads", "place", "thalweg"]
                .into_iter()
                .chain(suite.set.iter().map(|(n, _)| n.as_str()))
                .filter(|n| there(n))
                .collect();
            let hint = suggestion(name, all);
            let what = format!(
                "{{{name}}} stands for nothing here{hint}; for the braces themselves write \
                 {{{{{name}}}}}"
            );
            problems.add(&template.at, what);
        }
    }
}

/// Reports settings that neither the harness nor a command uses.
fn unused(settings: &Settings, used: &BTreeSet<&str>, problems: &mut Problems) {
    for (name, value) in settings {
        without_use(name, &value.at, used, problems);
    }
}

fn without_use(name: &str, at: &Span, used: &BTreeSet<&str>, problems: &mut Problems) {
    if !is_known_setting(name) && !used.contains(name) {
        let hint = suggestion(name, used.iter().copied().chain(super::value::KNOWN));
        problems.add(at, format!("nothing uses the setting `{name}`{hint}"));
    }
}

fn swept(
    suite: &Suite,
    sweep: &Sweep,
    set: &Settings,
    used: &BTreeSet<&str>,
    problems: &mut Problems,
) {
    for (name, values) in &sweep.over {
        without_use(name, &values.at, used, problems);
        if has(set, name) {
            problems.add(&values.at, format!("`{name}` is both set and swept"));
        }
        for value in &values.value {
            refers(suite, name, value, &values.at, problems);
        }
    }
    let over: Vec<&str> = sweep.names().collect();
    for (name, value) in sweep.exclude.iter().chain(&sweep.include).flatten() {
        if !over.contains(&name.as_str()) {
            let hint = suggestion(name, over.iter().copied());
            problems.add(&value.at, format!("the sweep does not go over `{name}`{hint}"));
        }
        refers(suite, name, &value.value, &value.at, problems);
    }
    for point in &sweep.include {
        let missing: Vec<&str> = over.iter().copied().filter(|name| !has(point, name)).collect();
        if let (Some((_, first)), false) = (point.first(), missing.is_empty()) {
            problems.add(
                &first.at,
                format!(
                    "an included point gives every swept setting; missing: {}",
                    missing.join(", ")
                ),
            );
        }
    }
    if sweep.points(LARGE).len() > MOST_POINTS {
        let at = sweep.over.first().map_or(0..0, |(_, values)| values.at.clone());
        problems.add(&at, format!("more than {MOST_POINTS} combinations"));
    }
}

fn values(suite: &Suite, settings: &Settings, problems: &mut Problems) {
    for (name, value) in settings {
        refers(suite, name, &value.value, &value.at, problems);
    }
}

/// Checks settings whose values are names of files or places.
fn refers(suite: &Suite, setting: &str, value: &SettingValue, at: &Span, problems: &mut Problems) {
    let name = WithSpan { value: value.to_string(), at: at.clone() };
    match setting {
        "file" | "ids" => known("file", &name, suite.files.keys(), problems),
        "place" => known("place", &name, suite.places.keys(), problems),
        _ => {}
    }
}
