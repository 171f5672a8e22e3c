//! Reads TOML tables with positions. A key that nothing reads is a mistake. All mistakes of a text
//! are collected, so that the user can correct them in one step.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::SettingValue;
use super::{Settings, Span, WithSpan};

/// The mistakes of a suite, with their positions.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<(Span, String)>);

impl Problems {
    pub(super) fn add(&mut self, at: &Span, what: impl Into<String>) {
        self.0.push((at.clone(), what.into()));
    }

    /// The mistakes as `source:line:column: what`, with one line for each, in the order of the
    /// text; `None` without mistakes.
    pub(super) fn render(mut self, source: &str, text: &str) -> Option<String> {
        self.0.sort_by_key(|(at, _)| at.start);
        self.0.dedup();
        let lines: Vec<String> = self
            .0
            .iter()
            .map(|(at, what)| format!("{}: {what}", position(source, text, at.start)))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The position as `source:line:column`. Lines and columns count from 1, and columns count
/// characters.
pub(super) fn position(source: &str, text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{source}:{line}:{column}")
}

/// The known name that is most similar to a wrong one; `None` if none is similar.
pub fn similar_name<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count() / 4)
        .min();
    near.map(|(_, name)| name)
}

/// "; did you mean ...?" if one of the known names is similar; empty otherwise.
pub(super) fn suggestion<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = similar_name(wrong, known);
    near.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// Names as a list for a message: "a, b or c".
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

pub(super) type TomlValue<'t> = Spanned<DeValue<'t>>;

/// A table that remembers which keys were read.
pub(super) struct TomlTable<'a, 't> {
    /// The kind of table, for messages: "a workload".
    what: &'static str,
    entries: &'a DeTable<'t>,
    pub(super) at: Span,
    asked: Vec<&'static str>,
}

impl<'a, 't> TomlTable<'a, 't> {
    pub(super) fn new(what: &'static str, entries: &'a DeTable<'t>, at: Span) -> Self {
        Self { what, entries, at, asked: Vec::new() }
    }

    /// Reads `value` as a table.
    pub(super) fn of(
        what: &'static str,
        value: &'a TomlValue<'t>,
        problems: &mut Problems,
    ) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(entries) => Some(Self::new(what, entries, value.span())),
            other => {
                problems
                    .add(&value.span(), format!("{what} is a table, found {}", described(other)));
                None
            }
        }
    }

    /// Sets the position of messages about the whole table.
    pub(super) fn located(self, at: Span) -> Self {
        Self { at, ..self }
    }

    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a TomlValue<'t>> {
        self.asked.push(key);
        self.entries.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Reads the value of `key` with `read`. An error of `read` becomes a problem at the value.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<WithSpan<T>> {
        let value = self.get(key)?;
        match read(value.get_ref()) {
            Ok(read) => Some(WithSpan { value: read, at: value.span() }),
            Err(why) => {
                problems.add(&value.span(), format!("`{key}` of {}: {why}", self.what));
                None
            }
        }
    }

    pub(super) fn string(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<WithSpan<String>> {
        self.read(key, problems, string)
    }

    /// Reads a string whose absence is a mistake.
    pub(super) fn required(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<WithSpan<String>> {
        if !self.has(key) {
            problems.add(&self.at, format!("{} needs a `{key}`", self.what));
        }
        self.string(key, problems)
    }

    pub(super) fn flag(&mut self, key: &'static str, problems: &mut Problems) -> Option<bool> {
        let read =
            |value: &DeValue<'_>| value.as_bool().ok_or_else(|| expected("true or false", value));
        self.read(key, problems, read).map(|flag| flag.value)
    }

    /// Every entry whose name the suite chooses, in the order of the text.
    pub(super) fn entries(&self) -> Vec<(&'a Spanned<Cow<'t, str>>, &'a TomlValue<'t>)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
    }

    /// Settings: names that the suite chooses, with plain values.
    pub(super) fn settings(&self, problems: &mut Problems) -> Settings {
        let mut settings = Vec::new();
        for (key, value) in self.entries() {
            match SettingValue::from_toml(value.get_ref()) {
                Ok(scalar) => settings
                    .push((key.get_ref().to_string(), WithSpan { value: scalar, at: key.span() })),
                Err(why) => {
                    problems.add(&value.span(), format!("setting `{}`: {why}", key.get_ref()));
                }
            }
        }
        settings
    }

    /// Reports every key that was not read.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (key, _) in self.entries() {
            let name: &str = key.get_ref();
            if !self.asked.contains(&name) {
                let hint = suggestion(name, self.asked.iter().copied());
                let known = listed(&self.asked);
                problems.add(
                    &key.span(),
                    format!("unknown key `{name}` of {}{hint} (known: {known})", self.what),
                );
            }
        }
    }
}

/// Reads a string.
pub(super) fn string(value: &DeValue<'_>) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| expected("a string", value))
}

/// Reads a whole number that is at least `least`.
pub(super) fn whole(value: &DeValue<'_>, least: u64) -> Result<u64, String> {
    let number = value.as_integer().and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
    number
        .filter(|n| *n >= least)
        .ok_or_else(|| expected(&format!("a whole number, at least {least}"), value))
}

pub(super) fn expected(what: &str, found: &DeValue<'_>) -> String {
    format!("expected {what}, found {}", described(found))
}

fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the string {s:?}"),
        DeValue::Integer(i) => format!("the number {i}"),
        DeValue::Float(f) => format!("the number {f}"),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}
