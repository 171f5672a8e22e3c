//! Commands of the command line as a suite: `thalweg bench -- 'gzip -dc a.gz' 'pigz -dc a.gz'`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use thalweg_gauge::cache_level::CacheLevel;
use thalweg_gauge::suite::{SettingValue, SuiteRecord, literal_template};

use super::shipped::{NamedSuite, parsed};
use super::{BenchArgs, absolute};
use crate::common::{Failure, VerbResult, shown_path};

/// What messages call the text of such a suite. Records of runs have it, too.
const SOURCE: &str = "the command line";

/// Whether a run is one of commands that the command line gave.
pub(super) fn is_of_commands(record: &SuiteRecord) -> bool {
    record.source == SOURCE
}

/// Refuses to go on with commands in another folder: they may name files by relative paths.
pub(super) fn check_folder(record: &SuiteRecord) -> VerbResult {
    let here = absolute(Path::new("."));
    let is_there = |folder: &Path| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if is_of_commands(record) && is_there(&record.folder) != is_there(&here) {
        let folder = shown_path(&record.folder);
        return Err(Failure::Usage(format!(
            "the commands of this run began in {folder}, and go on only there: cd {folder}"
        )));
    }
    Ok(())
}

/// The commands with their options, as a suite with one comparison. The first command is the
/// baseline.
pub(super) fn suite(args: &BenchArgs) -> Result<NamedSuite, Failure> {
    check(args)?;
    let mut inputs = Vec::new();
    let of_commands: Vec<Vec<usize>> = args
        .commands
        .iter()
        .map(|command| {
            let files = files_named_in(command).into_iter().filter(|file| !is_given(file, args));
            files.map(|file| number_of(file, &mut inputs)).collect()
        })
        .collect();
    let level = level(args, &of_commands)?;
    let mut text = format!(
        "name = \"commands\"\nabout = \"commands of the command line\"\n\n[set]\nlevel = \
         \"{level}\"\n"
    );
    for (name, _) in &args.file {
        text.push_str(&format!("\n[file.{}]\n", string(name)));
    }
    for (number, path) in inputs.iter().enumerate() {
        let path = path.to_str().ok_or_else(|| {
            Failure::Usage(format!("{}: results need file names in UTF-8", shown_path(path)))
        })?;
        let path = string(&literal_template(path, |_| false));
        text.push_str(&format!("\n[file.\"{}\"]\npath = {path}\n", input(number)));
    }
    let is_file = |name: &str| {
        name.strip_prefix("file:").is_some_and(|name| args.file.iter().any(|(n, _)| n == name))
    };
    for (number, command) in args.commands.iter().enumerate() {
        let command = string(&literal_template(command, is_file));
        text.push_str(&format!(
            "\n[workload.{number}]\ncommand = {command}\nneeds = \"unknown\"\n"
        ));
        let given = args.file.iter().map(|(name, _)| name.clone());
        let named = of_commands.get(number).into_iter().flatten().map(|&number| input(number));
        let also: Vec<String> =
            given.chain(named).map(|name| string(&format!("{{file:{name}}}"))).collect();
        if !also.is_empty() {
            text.push_str(&format!("also = [{}]\n", also.join(", ")));
        }
        if let Some(before) = args.prepare.get(number).or(args.prepare.first()) {
            text.push_str(&format!("prepare = {}\n", string(&literal_template(before, is_file))));
        }
    }
    text.push_str("\n[[comparison]]\nname = \"commands\"\narms = [\n");
    for (number, name) in names(args)?.iter().enumerate() {
        let name = string(&literal_template(name, |_| false));
        text.push_str(&format!("    {{ workload = \"{number}\", name = {name} }},\n"));
    }
    text.push_str("]\n");
    parsed(SOURCE.into(), &text, PathBuf::new(), BTreeMap::new())
}

/// Checks what would be a mistake in the text of the suite, in words of the command line.
fn check(args: &BenchArgs) -> VerbResult {
    let usage = |what: String| Err(Failure::Usage(what));
    let count = args.commands.len();
    if args.commands.iter().chain(&args.prepare).any(|command| command.trim().is_empty()) {
        return usage("a command is empty; each command is one argument, in quotes".into());
    }
    if args.name.len() > count {
        return usage(format!("--name: {} names for {count} commands", args.name.len()));
    }
    if args.prepare.len() > 1 && args.prepare.len() != count {
        return usage(format!(
            "--prepare: {} for {count} commands; give one for all, or one for each",
            args.prepare.len()
        ));
    }
    let is_odd = |c: char| !c.is_alphanumeric() && !"_-. +".contains(c);
    match args.file.iter().find(|(name, _)| name.is_empty() || name.contains(is_odd)) {
        Some((name, _)) => {
            usage(format!("--file {name}=..: a name has letters, digits and _-. + only"))
        }
        None => Ok(()),
    }
}

/// The names of the arms: those given, then the commands themselves.
fn names(args: &BenchArgs) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for (number, command) in args.commands.iter().enumerate() {
        let given = args.name.get(number);
        let name = given.map_or(command.trim(), String::as_str);
        let is_taken = |name: &str, names: &[String]| names.iter().any(|other| other == name);
        if given.is_some() && is_taken(name, &names) {
            return Err(Failure::Usage(format!("--name: two commands are called {name:?}")));
        }
        let numbered = (2..).map(|n| format!("{name} ({n})"));
        let mut free = std::iter::once(name.to_owned()).chain(numbered);
        names.extend(free.find(|name| !is_taken(name, &names)));
    }
    Ok(names)
}

/// The level of the caches: in memory, where all commands have files that can be. A level that is
/// asked for needs files of every command.
fn level(args: &BenchArgs, of_commands: &[Vec<usize>]) -> Result<CacheLevel, Failure> {
    let without = of_commands.iter().position(|files| files.is_empty() && args.file.is_empty());
    let asked = args.set.iter().rev().find(|(name, _)| name == "level");
    let asked = asked.and_then(|(_, level): &(_, SettingValue)| level.to_string().parse().ok());
    match (without.and_then(|number| args.commands.get(number)), asked) {
        (Some(command), Some(level))
            if !matches!(level, CacheLevel::Lukewarm | CacheLevel::Unverified) =>
        {
            Err(Failure::Usage(format!(
                "{command}: no word of it is a file that is there, so nothing can be shown to be \
                 {level}; name what it reads with --file NAME=PATH"
            )))
        }
        (Some(_), None) => Ok(CacheLevel::Lukewarm),
        (_, asked) => Ok(asked.unwrap_or(CacheLevel::Hot)),
    }
}

/// The name of a file in the suite that a command names.
fn input(number: usize) -> String {
    format!("input {}", number + 1)
}

/// The number of a file among the inputs, to which it is added.
fn number_of(file: PathBuf, inputs: &mut Vec<PathBuf>) -> usize {
    inputs.iter().position(|input| *input == file).unwrap_or_else(|| {
        inputs.push(file);
        inputs.len() - 1
    })
}

/// Whether `--file` names a file, too.
fn is_given(file: &Path, args: &BenchArgs) -> bool {
    let same = |given: &PathBuf| fs::canonicalize(given).ok() == fs::canonicalize(file).ok();
    args.file.iter().any(|(_, given)| same(given))
}

/// A string of TOML. The escapes of JSON are those of TOML, which also wants one for DEL.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The regular files that words of a shell command name, each once, by absolute paths. Left out are
/// the targets of `>`, empty files, and programs. Patterns and variables are not looked into.
fn files_named_in(command: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for word in words(command) {
        let option = word.split_once('=').map(|(_, value)| value.to_owned());
        for path in [Some(word), option].into_iter().flatten() {
            let path = absolute(Path::new(&path));
            if is_input(&path) && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

fn is_input(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
    is_file && !is_program(path)
}

/// Whether a file begins as a program does. Programs are in use, so they cannot be evicted.
fn is_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    let head = head.get(..read).unwrap_or_default();
    head.starts_with(b"#!") || head == b"\x7fELF"
}

/// The words of a shell command, without quotes, but for those that `>` writes to.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_target = false;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(rest.next()),
            (_, Some(mark)) if c == mark => quote = None,
            (_, Some(_)) => word.push(c),
            ('\'' | '"', None) => quote = Some(c),
            (_, None) if c.is_whitespace() || "|&;()<>`".contains(c) => {
                if !word.is_empty() {
                    let ended = std::mem::take(&mut word);
                    words.extend(Some(ended).filter(|_| !is_target));
                    is_target = false;
                }
                is_target = c == '>' || is_target && c.is_whitespace();
            }
            (_, None) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty() && !is_target));
    words
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_shell() {
        let of = |command| words(command).join(",");
        assert_eq!(of(r#"a 'b c' "d\" e" f\ g"#), r#"a,b c,d" e,f g"#);
        assert_eq!(of("a <in >out 2>>err | b; c&&d > 'o ut' e"), "a,in,2,b,c,d,e");
        assert_eq!(of("cat $(ls x) `ls y` > z"), "cat,$,ls,x,ls,y");
        assert_eq!(of(""), "");
    }

    #[test]
    fn files_are_inputs_and_no_programs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for (name, text) in [("in", "data"), ("a b", "data"), ("out", "old"), ("empty", "")] {
            fs::write(at(name), text).unwrap();
        }
        fs::write(at("script"), "#!/bin/sh\n").unwrap();
        let [input, spaced, out, empty, script] = ["in", "a b", "out", "empty", "script"].map(at);
        let command = format!(
            "{script} {input} --of={input} '{spaced}' {empty} {} {} > {out}",
            folder.path().display(),
            at("absent")
        );
        assert_eq!(files_named_in(&command), [PathBuf::from(input), spaced.into()]);
    }

    #[test]
    fn strings_are_toml() {
        assert_eq!(string("a\"b\\\n\u{1}\u{7f}é"), r#""a\"b\\\n\u0001\u007fé""#);
    }
}
