//! The values of the names in one arm's templates, and the paths of its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thalweg_io::urls::url;

use super::{Peer, Resolver};
use crate::cache;
use crate::suite::files::{FileOrigin, NeededFile};
use crate::suite::parse::DEFAULT_PLACE;
use crate::suite::template::{Template, quoted};
use crate::suite::{ArmDecl, Command, FileDecl, FileSource, Program, SettingValue, Span, value};
use crate::workload::Workload;

/// The values that the templates of one arm may use.
pub(super) struct Scope {
    pub(super) settings: BTreeMap<String, SettingValue>,
    pub(super) threads: usize,
    pub(super) cpus: Option<Vec<usize>>,
    /// Name of the place.
    pub(super) place: String,
    pub(super) folder: PathBuf,
    pub(super) out: PathBuf,
    pub(super) out_used: bool,
    /// The files that were resolved for this arm.
    pub(super) needed: Vec<NeededFile>,
    /// Their paths by name.
    pub(super) files: BTreeMap<String, PathBuf>,
}

impl Resolver<'_> {
    pub(super) fn scope(
        &mut self,
        settings: BTreeMap<String, SettingValue>,
        decl: &ArmDecl,
        identity: &str,
    ) -> Option<Scope> {
        let place =
            settings.get("place").map_or_else(|| DEFAULT_PLACE.to_owned(), SettingValue::to_string);
        let folder = self.folder(&place, &decl.at)?;
        let threads =
            settings.get("threads").cloned().unwrap_or_else(|| SettingValue::Text("all".into()));
        let threads = value::threads(&threads, self.all_threads(&settings));
        let threads = threads.map_err(|why| self.problems.add(&decl.at, why)).ok()?;
        let cpus = settings.get("cpus").and_then(|cpus| value::cpus(cpus).ok());
        let usable = &self.context.cpus;
        if let Some(cpu) =
            cpus.iter().flatten().find(|cpu| !usable.is_empty() && !usable.contains(cpu))
        {
            self.problems.add(
                &decl.at,
                format!("CPU {cpu} is not among those that may be used here: {usable:?}"),
            );
        }
        let out = folder.join(format!("thalweg-out-{:016x}", fnv(identity)));
        Some(Scope {
            settings,
            threads,
            cpus,
            place,
            folder,
            out,
            out_used: false,
            needed: Vec::new(),
            files: BTreeMap::new(),
        })
    }

    /// Why arms with these settings are left out: their optional place has no folder.
    pub(super) fn not_given(&self, settings: &BTreeMap<String, SettingValue>) -> Option<String> {
        let place = settings.get("place")?.to_string();
        let optional =
            self.suite.places.get(&place)?.optional && !self.context.places.contains_key(&place);
        optional.then(|| {
            format!("no folder was given for the place {place:?} (--place {place}=FOLDER)")
        })
    }

    /// Why arms with these settings are left out: the peer that makes their file is absent.
    pub(super) fn not_made(&self, settings: &BTreeMap<String, SettingValue>) -> Option<String> {
        let file = settings.get("file")?.to_string();
        let given = self.context.files.contains_key(&file);
        match &self.suite.files.get(&file)?.source {
            FileSource::Command(Program::Peer(name), _) if !given => {
                match (self.context.peer)(&name.value) {
                    Peer::Absent(why) => Some(format!("its file {file:?}: {why}")),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn folder(&mut self, place: &str, at: &Span) -> Option<PathBuf> {
        let decl = self.suite.places.get(place)?;
        if let Some(folder) = self.context.places.get(place) {
            return Some(folder.clone());
        }
        let Some(path) = &decl.path else {
            let at = if decl.at.is_empty() { at } else { &decl.at };
            self.problems
                .add(at, format!("the place {place:?} needs a folder: --place {place}=FOLDER"));
            return None;
        };
        let cache = self.context.cache.display().to_string();
        let path = path.fill(|_| Ok::<_, ()>(cache.clone())).unwrap_or_default();
        Some(self.context.folder.join(path))
    }

    pub(super) fn command(
        &mut self,
        command: &Command,
        program: &[String],
        scope: &mut Scope,
    ) -> Option<Workload> {
        let mut argv = program.to_vec();
        match command {
            Command::Shell(template) => {
                argv.extend(["sh".into(), "-c".into(), self.fill(template, scope, true)?]);
            }
            Command::Argv(templates) => {
                for template in templates {
                    argv.push(self.fill(template, scope, false)?);
                }
            }
        }
        Some(Workload::new(argv))
    }

    /// Replaces the names of a template. For a shell, each value is quoted as one word.
    pub(super) fn fill(
        &mut self,
        template: &Template,
        scope: &mut Scope,
        shell: bool,
    ) -> Option<String> {
        let filled = template.fill(|name| {
            let value = self.value(name, scope, &template.at)?;
            Ok::<_, AlreadyReported>(if shell { quoted(&value) } else { value })
        });
        filled.ok()
    }

    fn value(
        &mut self,
        name: &str,
        scope: &mut Scope,
        at: &Span,
    ) -> Result<String, AlreadyReported> {
        let shown = |path: &Path| path.display().to_string();
        match name {
            "file" => Ok(shown(&self.main_file(scope, at).ok_or(AlreadyReported)?)),
            "ids" if scope.settings.contains_key("ids") => {
                Ok(shown(&self.named_file("ids", scope).ok_or(AlreadyReported)?))
            }
            "folder" => Ok(shown(&scope.folder)),
            "thalweg" => Ok(self.context.thalweg.clone()),
            "cache" => Ok(shown(&self.context.cache)),
            "place" => Ok(scope.place.clone()),
            "threads" => Ok(scope.threads.to_string()),
            "out" => {
                scope.out_used = true;
                Ok(shown(&scope.out))
            }
            _ => match name.strip_prefix("file:") {
                Some(file) => {
                    Ok(shown(&self.file(file, scope, &mut Vec::new()).ok_or(AlreadyReported)?))
                }
                None => scope.settings.get(name).map(SettingValue::to_string).ok_or_else(|| {
                    self.problems.add(at, format!("{{{name}}} is not set"));
                    AlreadyReported
                }),
            },
        }
    }

    pub(super) fn main_file(&mut self, scope: &mut Scope, at: &Span) -> Option<PathBuf> {
        if !scope.settings.contains_key("file") {
            self.problems.add(at, "{file} is used here, and no `file` is set");
        }
        self.named_file("file", scope)
    }

    /// The file that a setting names.
    fn named_file(&mut self, setting: &str, scope: &mut Scope) -> Option<PathBuf> {
        let name = scope.settings.get(setting)?.to_string();
        self.file(&name, scope, &mut Vec::new())
    }

    /// The path of a file for an arm. The scope collects the files that it needs.
    /// `being_resolved` holds the names of the files that lead to this one.
    fn file(
        &mut self,
        name: &str,
        scope: &mut Scope,
        being_resolved: &mut Vec<String>,
    ) -> Option<PathBuf> {
        if let Some(path) = scope.files.get(name) {
            return Some(path.clone());
        }
        let suite = self.suite;
        let decl = suite.files.get(name)?;
        if being_resolved.iter().any(|n| n == name) {
            self.problems.add(&decl.at, format!("the file {name:?} is made from itself"));
            return None;
        }
        being_resolved.push(name.to_owned());
        let needed = self.needed(name, decl, scope, being_resolved);
        being_resolved.pop();
        let needed = needed?;
        let path = needed.path.clone();
        if !scope.needed.contains(&needed) {
            scope.needed.push(needed);
        }
        scope.files.insert(name.to_owned(), path.clone());
        Some(path)
    }

    fn needed(
        &mut self,
        name: &str,
        decl: &FileDecl,
        scope: &mut Scope,
        being_resolved: &mut Vec<String>,
    ) -> Option<NeededFile> {
        if let Some(path) = self.context.files.get(name) {
            return self.given(name, decl, path.clone());
        }
        let folder = match &decl.place {
            Some(place) => self.folder(&place.value, &place.at)?,
            None => scope.folder.clone(),
        };
        match &decl.source {
            FileSource::CommandLine => {
                self.problems.add(
                    &decl.at,
                    format!("the file {name:?} is yours to give: --file {name}=PATH"),
                );
                None
            }
            FileSource::Path(template) => {
                let path = template.fill(|word| self.value(word, scope, &template.at)).ok()?;
                let path = PathBuf::from(path);
                let is_url = url(&path).is_some();
                let path = if is_url { path } else { self.context.folder.join(path) };
                self.given(name, decl, path)
            }
            FileSource::Synth(synthetic) => Some(NeededFile {
                path: folder.join(synthetic.file_name()),
                make: FileOrigin::Synth(synthetic.clone()),
            }),
            FileSource::Ids { of, list } => {
                let of = self.file(&of.value, scope, being_resolved)?;
                let base = of.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // The list does not lie beside the reads, because their folder may be read-only.
                // The hash of the folder distinguishes files of the same name in different folders.
                let near = fnv(&of.parent().unwrap_or(Path::new("")).display().to_string());
                let path =
                    self.context.cache.join(format!("{base}.{near:08x}.{}.ids", list.name()));
                Some(NeededFile { path, make: FileOrigin::Ids { of, list: *list } })
            }
            FileSource::Command(program, command) => {
                let program = match self.program(program) {
                    Ok(program) => program,
                    Err(why) => {
                        let why = why.map(|why| format!("the file {name:?}: {why}"));
                        why.into_iter().for_each(|why| self.problems.add(&decl.at, why));
                        return None;
                    }
                };
                self.made_by_command(name, &folder, &program, command, scope, being_resolved)
            }
        }
    }

    /// The path of a file that a command writes. The name contains a hash of the command, so that
    /// another command makes another file.
    fn made_by_command(
        &mut self,
        name: &str,
        folder: &Path,
        program: &[String],
        command: &Command,
        scope: &mut Scope,
        being_resolved: &mut Vec<String>,
    ) -> Option<NeededFile> {
        // The command is resolved with a placeholder first, because the name of the file depends
        // on the command.
        let arm_out = std::mem::replace(&mut scope.out, PathBuf::from("OUT"));
        let out_used = scope.out_used;
        let placeholder = self.file_command(program, command, scope, being_resolved);
        let command_line = placeholder.map(|w| w.command_line()).unwrap_or_default();
        let (stem, end) =
            name.split_once('.').map_or((name, String::new()), |(s, e)| (s, format!(".{e}")));
        let file_name = format!("{stem}-{:08x}{end}", fnv(&command_line) & 0xffff_ffff);
        let partial = folder.join(format!("partial-{file_name}"));
        scope.out.clone_from(&partial);
        let workload = self.file_command(program, command, scope, being_resolved);
        scope.out = arm_out;
        scope.out_used = out_used;
        let make = FileOrigin::Command { workload: workload?, partial };
        Some(NeededFile { path: folder.join(file_name), make })
    }

    /// Resolves the command of a file. The files that the command names are resolved first, which
    /// detects a file that is made from itself.
    fn file_command(
        &mut self,
        program: &[String],
        command: &Command,
        scope: &mut Scope,
        being_resolved: &mut Vec<String>,
    ) -> Option<Workload> {
        for template in command.templates() {
            for file in template.names().filter_map(|name| name.strip_prefix("file:")) {
                self.file(file, scope, being_resolved)?;
            }
        }
        self.command(command, program, scope)
    }

    fn given(&mut self, name: &str, decl: &FileDecl, path: PathBuf) -> Option<NeededFile> {
        if url(&path).is_some() {
            if let Err(e) = cache::state_of(&path) {
                self.problems.add(&decl.at, format!("the file {name:?}: {e}"));
                return None;
            }
            return Some(NeededFile { path, make: FileOrigin::Given });
        }
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() || meta.is_dir() => {
                Some(NeededFile { path, make: FileOrigin::Given })
            }
            Ok(_) => {
                self.problems.add(
                    &decl.at,
                    format!(
                        "the file {name:?}: {} is neither a regular file nor a folder",
                        path.display()
                    ),
                );
                None
            }
            Err(e) => {
                let hint = format!("give it with --file {name}=PATH");
                self.problems
                    .add(&decl.at, format!("the file {name:?}: {}: {e}; {hint}", path.display()));
                None
            }
        }
    }
}

/// An error whose message was already added to the problems.
struct AlreadyReported;

pub(super) fn removal(out: &Path) -> Workload {
    Workload::new(["rm".to_owned(), "-rf".into(), "--".into(), out.display().to_string()])
}

/// The 64-bit FNV-1a hash. Names of files must be the same on every machine and in every version.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
