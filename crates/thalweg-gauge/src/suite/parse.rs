//! Parses the text of a suite.

mod workload;

use std::collections::BTreeMap;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::ids::IdList;
use super::references::check_references;
use super::template::Template;
use super::test_files::{TestFileMaker, test_file};
use super::toml_table::{Problems, TomlTable, TomlValue, expected, listed, suggestion, whole};
use super::value::{KNOWN, SettingValue, check, level};
use super::{
    ArmDecl, ComparisonDecl, FileDecl, FileSource, PlaceDecl, Program, Settings, Suite, Sweep,
    WithSpan,
};
use crate::comparison::PairCount;
use crate::stats::MIN_PAIRS;
use crate::units::parse_duration;
use crate::{Error, Result};
use workload::{command, peer, workload};

impl Suite {
    /// Reads the text of a suite. Messages call it `source`, which is usually its path. `maker`
    /// reads the recipes of test files.
    ///
    /// # Errors
    /// [`Error::Suite`] with every mistake that the text shows, each with its line and column.
    pub fn parse(source: &str, text: &str, maker: &dyn TestFileMaker) -> Result<Self> {
        let mut problems = Problems::default();
        let parsed = match DeTable::parse(text) {
            Ok(table) => suite(&table, source, text, maker, &mut problems),
            Err(error) => {
                problems.add(&error.span().unwrap_or(0..0), error.message());
                None
            }
        };
        if let Some(suite) = &parsed {
            check_references(suite, &mut problems);
        }
        match (problems.render(source, text), parsed) {
            (None, Some(suite)) => Ok(suite),
            (message, _) => {
                Err(Error::Suite(message.unwrap_or_else(|| format!("{source}: not a suite"))))
            }
        }
    }
}

fn suite(
    table: &toml::Spanned<DeTable<'_>>,
    source: &str,
    text: &str,
    maker: &dyn TestFileMaker,
    problems: &mut Problems,
) -> Option<Suite> {
    let mut top = TomlTable::new("a suite", table.get_ref(), 0..0);
    let name = top.required("name", problems);
    let about = top.string("about", problems);
    let budget = top.read("budget", problems, duration);
    let pairs = pairs(&mut top, problems);
    let set = settings(&mut top, "set", problems);
    let mut places = named(&mut top, "place", "a place", problems, place);
    // Most suites need only the default place and do not declare it.
    places.entry(DEFAULT_PLACE.into()).or_insert_with(|| {
        let path = Template::new(&WithSpan { value: "{cache}".into(), at: 0..0 });
        PlaceDecl { at: 0..0, path: Some(path), optional: false }
    });
    let files =
        named(&mut top, "file", "a file", problems, |table, problems| file(table, maker, problems));
    let workloads = named(&mut top, "workload", "a workload", problems, workload);
    let comparisons = list(&mut top, "comparison", problems);
    if comparisons.is_empty() {
        problems.add(&(0..0), "a suite needs at least one [[comparison]]");
    }
    let comparisons =
        comparisons.into_iter().filter_map(|value| comparison(value, problems)).collect();
    top.finish(problems);
    Some(Suite {
        source: source.to_owned(),
        text: text.to_owned(),
        name: name?.value,
        about: about.map(|a| a.value).unwrap_or_default(),
        budget: budget.map(|b| b.value),
        pairs: pairs.unwrap_or(AUTO),
        set,
        places,
        files,
        workloads,
        comparisons,
    })
}

/// The place of arms that do not name one.
pub(super) const DEFAULT_PLACE: &str = "data";

/// `[key.NAME]` tables.
fn named<T>(
    top: &mut TomlTable<'_, '_>,
    key: &'static str,
    what: &'static str,
    problems: &mut Problems,
    one: impl Fn(TomlTable<'_, '_>, &mut Problems) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(all) =
        top.get(key).and_then(|value| TomlTable::of("a table of tables", value, problems))
    else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    for (name, value) in all.entries() {
        if let Some(table) = TomlTable::of(what, value, problems)
            && let Some(one) = one(table.located(name.span()), problems)
        {
            found.insert(name.get_ref().to_string(), one);
        }
    }
    found
}

/// `[[key]]` tables, or a list of them.
fn list<'a, 't>(
    table: &mut TomlTable<'a, 't>,
    key: &'static str,
    problems: &mut Problems,
) -> Vec<&'a TomlValue<'t>> {
    match table.get(key).map(|value| (value.get_ref(), value.span())) {
        None => Vec::new(),
        Some((DeValue::Array(items), _)) => items.iter().collect(),
        Some((other, at)) => {
            problems.add(&at, format!("`{key}`: {}", expected("a list", other)));
            Vec::new()
        }
    }
}

fn place(mut table: TomlTable<'_, '_>, problems: &mut Problems) -> Option<PlaceDecl> {
    table.string("about", problems);
    let path = table.string("path", problems).map(|path| Template::new(&path));
    let optional = table.flag("optional", problems).unwrap_or(false);
    if optional && path.is_some() {
        problems
            .add(&table.at, "a place with a `path` is there in any case: it can't be `optional`");
    }
    let at = table.at.clone();
    table.finish(problems);
    Some(PlaceDecl { at, path, optional })
}

fn file(
    mut table: TomlTable<'_, '_>,
    maker: &dyn TestFileMaker,
    problems: &mut Problems,
) -> Option<FileDecl> {
    table.string("about", problems);
    let place = table.string("place", problems);
    let sources = ["path", "synth", "ids", "command", "peer"];
    let given: Vec<&str> = sources.into_iter().filter(|key| table.has(key)).collect();
    if given.len() > 1 {
        problems.add(
            &table.at,
            format!(
                "a file comes from one of {}, not from {}",
                listed(&sources),
                given.join(" and ")
            ),
        );
    }
    let path = table.string("path", problems).map(|path| FileSource::Path(Template::new(&path)));
    let synth = table.get("synth").and_then(|value| TomlTable::of("`synth`", value, problems));
    let synth = synth.and_then(|table| test_file(table, maker, problems)).map(FileSource::Synth);
    let ids = table.get("ids").and_then(|value| TomlTable::of("`ids`", value, problems));
    let ids = ids.and_then(|table| ids_of(table, problems));
    let command =
        command(&mut table, "command", problems).map(|command| (Program::Command, command));
    let made = command.or(peer(&mut table, problems));
    if let Some((_, command)) = &made
        && !command.templates().any(|t| t.names().any(|name| name == "out"))
    {
        problems.add(&table.at, "the command of a file must write it to {out}");
    }
    let at = table.at.clone();
    table.finish(problems);
    let source = path
        .or(synth)
        .or(ids)
        .or(made.map(|(program, command)| FileSource::Command(program, command)));
    // A mistake in the source was reported already, so the file is not taken for one that the
    // command line gives.
    if source.is_none() && !given.is_empty() {
        return None;
    }
    Some(FileDecl { at, place, source: source.unwrap_or(FileSource::CommandLine) })
}

fn ids_of(mut table: TomlTable<'_, '_>, problems: &mut Problems) -> Option<FileSource> {
    let of = table.required("of", problems);
    let list = IdList::parse(&mut table, problems);
    table.finish(problems);
    Some(FileSource::Ids { of: of?, list: list? })
}

fn duration(value: &DeValue<'_>) -> Result<Duration, String> {
    let text = value.as_str().ok_or_else(|| expected("a duration as in \"20 min\"", value))?;
    parse_duration(text)
}

/// More pairs than this are taken for a mistake.
const MOST_PAIRS: u64 = 10_000;

/// The meaning of `pairs = "auto"`: looks after 10, 15 and 20 rounds, until intervals of +-5 % are
/// reached.
pub const AUTO: PairCount = PairCount::Auto { least: 10, most: 20, half_width: 0.05 };

/// "auto", a number, or a table with `least`, `most` and `half_width`.
fn pairs(table: &mut TomlTable<'_, '_>, problems: &mut Problems) -> Option<PairCount> {
    let value = table.get("pairs")?;
    match value.get_ref() {
        DeValue::String(text) if text == "auto" => Some(AUTO),
        DeValue::Table(_) => {
            let mut auto = TomlTable::of("`pairs`", value, problems)?;
            let mut number =
                |key, default| auto.read(key, problems, some_pairs).map_or(default, |n| n.value);
            let least = number("least", 10);
            let most = number("most", 20);
            let half_width = auto.read("half_width", problems, |v| {
                let share =
                    SettingValue::from_toml(v).ok().and_then(|s| s.to_string().parse::<f64>().ok());
                share
                    .filter(|x| *x > 0.0 && *x < 1.0)
                    .ok_or_else(|| expected("a share between 0 and 1, as in 0.05", v))
            });
            if least < MIN_PAIRS || most < least {
                problems.add(
                    &auto.at,
                    format!(
                        "`pairs`: an interval needs {MIN_PAIRS} at least, and `most` not \
                         below `least`"
                    ),
                );
            }
            auto.finish(problems);
            Some(PairCount::Auto { least, most, half_width: half_width.map_or(0.05, |h| h.value) })
        }
        other => match some_pairs(other) {
            Ok(n) => Some(PairCount::Fixed(n)),
            Err(_) => {
                let what = format!(
                    "\"auto\", a number from 1 to {MOST_PAIRS}, or a table with least, most and \
                     half_width"
                );
                problems.add(&value.span(), format!("`pairs`: {}", expected(&what, other)));
                None
            }
        },
    }
}

fn some_pairs(value: &DeValue<'_>) -> Result<usize, String> {
    let n = whole(value, 1).ok().filter(|n| *n <= MOST_PAIRS).and_then(|n| usize::try_from(n).ok());
    n.ok_or_else(|| expected(&format!("a number from 1 to {MOST_PAIRS}"), value))
}

/// Settings below `key`; the values of those that the harness knows are checked.
fn settings(table: &mut TomlTable<'_, '_>, key: &'static str, problems: &mut Problems) -> Settings {
    let Some(value) = table.get(key) else { return Settings::new() };
    let set = TomlTable::of("`set`", value, problems)
        .map(|set| set.settings(problems))
        .unwrap_or_default();
    for (name, value) in &set {
        check_setting(name, value, problems);
    }
    set
}

fn check_setting(name: &str, value: &WithSpan<SettingValue>, problems: &mut Problems) {
    if let Err(why) = check(name, &value.value) {
        let hint = match &value.value {
            SettingValue::Text(text) if name == "level" && level(&value.value).is_err() => {
                suggestion(text, ["hot", "lukewarm", "client-cold", "cold", "unverified"])
            }
            _ => String::new(),
        };
        problems.add(&value.at, format!("{why}{hint}"));
    }
}

/// The values that a sweep gives to the setting `name`. Doublings stay as they are, because they
/// depend on the machine.
fn swept_values(
    name: &str,
    items: &[&TomlValue<'_>],
    problems: &mut Problems,
) -> Vec<SettingValue> {
    let mut values = Vec::new();
    for item in items {
        match SettingValue::from_toml(item.get_ref()) {
            Ok(value) => {
                let doublings = match &value {
                    SettingValue::Text(text) => super::sweep::doublings(text, 1),
                    _ => None,
                };
                if doublings.is_none() {
                    let value = WithSpan { value: value.clone(), at: item.span() };
                    check_setting(name, &value, problems);
                }
                values.push(value);
            }
            Err(why) => problems.add(&item.span(), format!("sweep over `{name}`: {why}")),
        }
    }
    values
}

fn sweep(table: &mut TomlTable<'_, '_>, problems: &mut Problems) -> Sweep {
    let mut over = Vec::new();
    let lists = table.get("sweep").and_then(|value| TomlTable::of("`sweep`", value, problems));
    for (key, value) in lists.iter().flat_map(TomlTable::entries) {
        let name = key.get_ref().to_string();
        let items: Vec<&TomlValue<'_>> = match value.get_ref() {
            DeValue::Array(items) if !items.is_empty() => items.iter().collect(),
            DeValue::String(text) if super::sweep::doublings(text, 1).is_some() => vec![value],
            other => {
                let what = "a list of values, or doublings as in \"1..all\"";
                problems
                    .add(&value.span(), format!("sweep over `{name}`: {}", expected(what, other)));
                continue;
            }
        };
        let values = swept_values(&name, &items, problems);
        over.push((name, WithSpan { value: values, at: key.span() }));
    }
    let mut points = |key: &'static str| -> Vec<Settings> {
        let items = list(table, key, problems);
        let tables = items
            .into_iter()
            .filter_map(|item| TomlTable::of("a point of a sweep", item, problems))
            .collect::<Vec<_>>();
        tables.iter().map(|table| table.settings(problems)).collect()
    };
    let exclude = points("exclude");
    let include = points("include");
    Sweep { over, exclude, include }
}

fn comparison(value: &TomlValue<'_>, problems: &mut Problems) -> Option<ComparisonDecl> {
    let mut table = TomlTable::of("a comparison", value, problems)?;
    let name = table.required("name", problems);
    let step = table.string("step", problems);
    let set = settings(&mut table, "set", problems);
    let sweep = sweep(&mut table, problems);
    let pairs = pairs(&mut table, problems);
    let budget = table.read("budget", problems, duration);
    let probe = table.flag("probe", problems);
    let control = table.flag("control", problems);
    let arms = list(&mut table, "arms", problems);
    let at = name.as_ref().map_or_else(|| table.at.clone(), |name| name.at.clone());
    if arms.is_empty() {
        problems.add(&at, "a comparison needs at least one arm in `arms`");
    }
    let arms = arms.into_iter().filter_map(|value| arm(value, problems)).collect();
    table.finish(problems);
    Some(ComparisonDecl {
        at,
        name: Template::new(&name?),
        step: step.map(|s| s.value),
        set,
        sweep,
        pairs,
        budget: budget.map(|b| b.value),
        probe: probe.unwrap_or(false),
        control: control.unwrap_or(true),
        arms,
    })
}

/// The name of a workload, or a table with more settings.
fn arm(value: &TomlValue<'_>, problems: &mut Problems) -> Option<ArmDecl> {
    if let Some(name) = value.get_ref().as_str() {
        let workload = WithSpan { value: name.to_owned(), at: value.span() };
        return Some(ArmDecl {
            at: value.span(),
            workload,
            name: None,
            set: Settings::new(),
            sweep: Sweep::default(),
        });
    }
    let mut table = TomlTable::of(
        "an arm (the name of a workload, or a table that names one)",
        value,
        problems,
    )?;
    let workload = table.required("workload", problems);
    let name = table.string("name", problems).map(|name| Template::new(&name));
    let set = settings(&mut table, "set", problems);
    let sweep = sweep(&mut table, problems);
    let at = table.at.clone();
    table.finish(problems);
    Some(ArmDecl { at, workload: workload?, name, set, sweep })
}

/// Settings that need not be set.
pub(super) fn is_always_set(name: &str) -> bool {
    matches!(name, "file" | "folder" | "out" | "cache" | "threads" | "place" | "thalweg")
        || name.starts_with("file:")
}

/// Whether the harness itself uses a setting.
pub(super) fn is_known_setting(name: &str) -> bool {
    KNOWN.contains(&name)
}
