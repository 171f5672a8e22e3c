//! Workloads and their commands.

use toml::de::DeValue;

use crate::comparison::Needs;
use crate::suite::template::Template;
use crate::suite::toml_table::{Problems, TomlTable, expected, listed, string, whole};
use crate::suite::{Command, Program, WithSpan, WorkloadDecl};
use crate::units::parse_bytes;

impl Command {
    pub(in crate::suite) fn templates(&self) -> impl Iterator<Item = &Template> {
        match self {
            Self::Shell(template) => std::slice::from_ref(template).iter(),
            Self::Argv(templates) => templates.iter(),
        }
    }
}

/// Reads a command: a string for the shell, or a list of a program and its arguments.
pub(super) fn command(
    table: &mut TomlTable<'_, '_>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<Command> {
    let value = table.get(key)?;
    match value.get_ref() {
        DeValue::String(text) if !text.trim().is_empty() => {
            Some(Command::Shell(Template::new(&WithSpan {
                value: text.to_string(),
                at: value.span(),
            })))
        }
        DeValue::Array(items) if !items.is_empty() => {
            let mut argv = Vec::new();
            for item in items.iter() {
                match string(item.get_ref()) {
                    Ok(text) => {
                        argv.push(Template::new(&WithSpan { value: text, at: item.span() }));
                    }
                    Err(why) => problems.add(&item.span(), format!("`{key}`: {why}")),
                }
            }
            Some(Command::Argv(argv))
        }
        other => {
            let what = "a string for the shell, or a list: a program and its arguments";
            problems.add(&value.span(), format!("`{key}`: {}", expected(what, other)));
            None
        }
    }
}

pub(super) fn workload(
    mut table: TomlTable<'_, '_>,
    problems: &mut Problems,
) -> Option<WorkloadDecl> {
    table.string("about", problems);
    let kinds = ["thalweg", "peer", "command"];
    let given: Vec<&str> = kinds.into_iter().filter(|key| table.has(key)).collect();
    if given.len() != 1 {
        let found = if given.is_empty() { "none".into() } else { given.join(" and ") };
        problems
            .add(&table.at, format!("a workload runs one of {}, found {found}", listed(&kinds)));
    }
    let any = command(&mut table, "command", problems).map(|command| (Program::Command, command));
    let ours = arguments(&mut table, "thalweg", problems)
        .map(|argv| (Program::Thalweg, Command::Argv(argv)));
    let peer = peer(&mut table, problems);
    let setup = command(&mut table, "setup", problems);
    let prepare = command(&mut table, "prepare", problems);
    let check = command(&mut table, "check", problems);
    let cleanup = command(&mut table, "cleanup", problems);
    let env = environment(&mut table, problems);
    let also = arguments(&mut table, "also", problems).unwrap_or_default();
    let needs = table.read("needs", problems, needs);
    let report = table.flag("report", problems);
    let values = table.string("values", problems);
    let sample_bytes = table.read("sample_bytes", problems, |v| whole(v, 1));
    let label = table.string("label", problems);
    table.finish(problems);
    let (program, command) = any.or(ours).or(peer)?;
    Some(WorkloadDecl {
        report: report.unwrap_or(!matches!(program, Program::Command)),
        program,
        command,
        setup,
        prepare,
        check,
        cleanup,
        env,
        also,
        needs: needs.map_or(Needs::WholeFiles, |n| n.value),
        values: values.map(|v| v.value),
        sample_bytes: sample_bytes.map(|b| b.value),
        label: label.map(|l| l.value),
    })
}

/// Reads environment variables with their values, in the order of the text.
fn environment(table: &mut TomlTable<'_, '_>, problems: &mut Problems) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    let env = table.get("env").and_then(|value| TomlTable::of("`env`", value, problems));
    for (key, value) in env.iter().flat_map(TomlTable::entries) {
        let name = key.get_ref().to_string();
        match string(value.get_ref()) {
            _ if name.is_empty() || name.contains(['=', '\0']) => {
                let what = format!("{name:?} can't be the name of an environment variable");
                problems.add(&key.span(), what);
            }
            Ok(text) => {
                let template = Template::new(&WithSpan { value: text, at: value.span() });
                variables.push((name, template));
            }
            Err(why) => problems.add(&value.span(), format!("`env`: {why}")),
        }
    }
    variables
}

/// Reads the name of a peer and its arguments.
pub(super) fn peer(
    table: &mut TomlTable<'_, '_>,
    problems: &mut Problems,
) -> Option<(Program, Command)> {
    let mut argv = arguments(table, "peer", problems)?;
    let first = (!argv.is_empty()).then(|| argv.remove(0))?;
    let name = first.fill(|name| Err(name.to_owned()));
    let name =
        name.map_err(|_| problems.add(&first.at, "the name of a peer must be plain")).ok()?;
    Some((Program::Peer(WithSpan { value: name, at: first.at }), Command::Argv(argv)))
}

/// Reads a list of strings, which may have names in braces.
fn arguments(
    table: &mut TomlTable<'_, '_>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<Vec<Template>> {
    let value = table.get(key)?;
    match value.get_ref() {
        DeValue::Array(_) => match command(table, key, problems) {
            Some(Command::Argv(argv)) => Some(argv),
            _ => None,
        },
        other => {
            problems
                .add(&value.span(), format!("`{key}`: {}", expected("a list of strings", other)));
            None
        }
    }
}

fn needs(value: &DeValue<'_>) -> Result<Needs, String> {
    match value.as_str() {
        Some("whole") => Ok(Needs::WholeFiles),
        Some("reported") => Ok(Needs::Reported),
        Some("unknown") => Ok(Needs::Unknown),
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            parse_bytes(text).map(Needs::Bytes)
        }
        _ => {
            Err(expected("\"whole\", \"reported\", \"unknown\" or a size as in \"1.2 GB\"", value))
        }
    }
}
