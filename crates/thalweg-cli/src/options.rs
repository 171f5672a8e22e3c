//! Which options a verb has for which kind of file. An option that does not fit is an error: if it
//! were ignored, the result would not be what was asked for.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use thalweg::format::Format;
use thalweg_io::urls::unknown_scheme;

use crate::common::{Failure, VerbResult, is_stream, shown_path};
use crate::output_name::is_hdf5_name;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Reads,
    /// Reads in HDF5, which are [`Kind::Reads`], too.
    Fast5,
    /// Several files of reads, taken together.
    Run,
    Arrays,
    Blow5,
    Pod5,
    Fastq,
    NexusLive,
    Neuroglial,
}

impl Kind {
    /// What such a file holds, in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Fast5 => "FAST5",
            Self::Run => "a run of reads",
            Self::Arrays => "HDF5 arrays",
            Self::Blow5 => "BLOW5",
            Self::Pod5 => "POD5",
            Self::Fastq => "FASTQ",
            Self::NexusLive => "events of a live run",
            Self::Neuroglial => "neuroglial connectivity",
        }
    }
}

/// Options of a verb, and the kinds of files that they are for. If there is no kind, the verb has
/// the option from arguments that verbs share, and has no use for it. Names are those of the
/// arguments, with `_` in the place of `-`.
const OPTIONS: [(&str, &[&str], &[Kind]); 30] = [
    (EVERY, &["gap", "no_index"], &[Kind::Arrays]),
    ("read", &["select", "ranks", "slice", "slices", "arrays", "events", "logs"], &[Kind::Arrays]),
    ("read", &["trusted"], &[Kind::Arrays, Kind::Fast5]),
    ("read", &["ids", "pa", "one_by_one", "no_decode", "consumer_ns", "metadata"], &[Kind::Reads]),
    ("read", &["explain"], &[Kind::Reads, Kind::Arrays]),
    ("info", &["count"], &[Kind::Reads, Kind::Fastq]),
    ("info", &["all"], &[Kind::Reads]),
    ("info", &["trusted"], &[Kind::Arrays, Kind::Fast5]),
    ("check", &["salvage"], &[Kind::Reads]),
    ("index", &["no_index"], &[]),
    ("doctor", &["paths", "measure"], &[Kind::Arrays]),
    ("doctor", &["trusted"], &[Kind::Arrays, Kind::Fast5]),
    ("doctor", &["no_index"], &[]),
    ("plot", &["bank"], &[Kind::Arrays]),
    ("plot", &["trusted"], &[Kind::Arrays, Kind::Fast5]),
    ("plot", &["read", "pa"], &[Kind::Reads]),
    ("convert", CODING, &[Kind::Reads]),
    ("convert", &["ids", "sort", "per_file", "explain", "to"], &[Kind::Reads]),
    ("convert", &["level"], &[Kind::Reads, Kind::Fastq]),
    ("convert", &["single_member", "md5"], &[Kind::Fastq]),
    ("filter", CODING, &[Kind::Reads]),
    ("split", &["table"], &[Kind::Reads]),
    ("split", CODING, &[Kind::Reads]),
    ("split", &["by", "to"], &[Kind::Reads]),
    ("filter", &["to"], &[Kind::Reads]),
    ("synth", &["record"], &[Kind::Blow5]),
    ("synth", &["samples", "signal"], &[Kind::Blow5, Kind::Pod5]),
    ("synth", &["bases", "gzip"], &[Kind::Fastq]),
    (
        "synth",
        &[
            "size",
            "banks",
            "weights",
            "chunk",
            "order",
            "filter",
            "libver",
            "pulse_times",
            "events_per_pulse",
        ],
        &[Kind::NexusLive],
    ),
    ("synth", &["neurons", "astrocytes"], &[Kind::Neuroglial]),
];

/// How files of reads are written.
const CODING: &[&str] =
    &["record", "signal", "experimental", "row_samples", "signal_rows", "reads_rows", "lossy"];

/// All verbs that have an option.
const EVERY: &str = "";

/// The outputs without which there is nothing that --force could replace.
const OUTPUTS: [(&str, &str); 4] =
    [("read", "out"), ("scan", "out"), ("check", "salvage"), ("compare", "html")];

/// The command, in which --force needs an output that can exist, and verbs do not show options of
/// others that they refuse.
pub(crate) fn with_outputs(command: Command) -> Command {
    let command = OUTPUTS.iter().fold(command, |command, (verb, output)| {
        command.mut_subcommand(verb, |verb| verb.mut_arg("force", |arg| arg.requires(*output)))
    });
    let hidden = [("split", "force"), ("view", "force"), ("view", "json"), ("view", "verify")];
    let hidden = hidden.into_iter().chain(["force", "json", "verify"].map(|name| ("get", name)));
    let command = hidden.fold(command, |command, (verb, name)| {
        command.mut_subcommand(verb, |verb| verb.mut_arg(name, |arg| arg.hide(true)))
    });
    command.mut_subcommand("graph", |graph| {
        graph.mut_subcommand("degree", |degree| degree.mut_arg("force", |arg| arg.requires("plot")))
    })
}

/// The verb, and the arguments on the command line.
static GIVEN: OnceLock<(String, Vec<String>)> = OnceLock::new();

/// Notes which arguments are on the command line.
pub(crate) fn note(matches: &ArgMatches) {
    let Some((verb, of_verb)) = matches.subcommand() else { return };
    let given =
        |id: &&clap::Id| of_verb.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let given = of_verb.ids().filter(given).map(ToString::to_string).collect();
    // It is called once.
    let _ = GIVEN.set((verb.to_owned(), given));
}

/// Whether an argument is on the command line.
pub(crate) fn is_given(name: &str) -> bool {
    GIVEN.get().is_some_and(|(_, given)| given.iter().any(|given| given == name))
}

/// Refuses arguments of all verbs that are URLs of an unknown kind. A verb would look for a file of
/// such a name, or make one.
///
/// # Errors
/// [`Failure::Usage`] with the argument and the kinds of URLs.
pub(crate) fn check_schemes(matches: &ArgMatches) -> VerbResult {
    for id in matches.ids() {
        let values = matches.get_raw(id.as_str()).into_iter().flatten();
        if let Some(error) = values.map(Path::new).find_map(unknown_scheme) {
            return Err(Failure::of_argument(error));
        }
    }
    matches.subcommand().map_or(Ok(()), |(_, of_verb)| check_schemes(of_verb))
}

/// The arguments, of the verbs named, for which `-` stands for standard input or output.
const STREAMS: [(&str, &[&str]); 7] = [
    ("read", &["paths", "out", "ids"]),
    ("convert", &["paths", "ids"]),
    ("scan", &["out", "ids"]),
    ("filter", &["paths", "out", "ids"]),
    ("merge", &["out"]),
    ("split", &["paths", "table"]),
    ("get", &["list"]),
];

/// Refuses `-` where a verb takes a file or a folder. A verb would look for a file of that name, or
/// make one.
///
/// # Errors
/// [`Failure::Usage`] with the argument.
pub(crate) fn check_streams(matches: &ArgMatches) -> VerbResult {
    let Some((verb, of_verb)) = matches.subcommand() else { return Ok(()) };
    for id in of_verb.ids() {
        let Ok(Some(mut paths)) = of_verb.try_get_many::<PathBuf>(id.as_str()) else { continue };
        let is_stream_here =
            STREAMS.iter().any(|(of, names)| *of == verb && names.contains(&id.as_str()));
        if !is_stream_here && paths.any(|path| is_stream(path)) {
            return Err(Failure::Usage(
                "-: neither standard input nor standard output can be used here; a file of the \
                 name - is ./-"
                    .into(),
            ));
        }
    }
    check_streams(of_verb)
}

/// Refuses options on the command line that are not for the kind of a file.
///
/// # Errors
/// [`Failure::Usage`] with the option and the kind.
pub(crate) fn check(path: &Path, kind: Kind) -> VerbResult {
    let Some((verb, given)) = GIVEN.get() else { return Ok(()) };
    let is_fast5 =
        kind == Kind::Reads && (Format::of_path(path) == Some(Format::Fast5) || is_hdf5_name(path));
    let fits = |of: &Kind| *of == kind || *of == Kind::Fast5 && is_fast5;
    for (_, names, kinds) in OPTIONS.iter().filter(|(of, ..)| [EVERY, verb].contains(of)) {
        let unfit = names.iter().find(|name| given.iter().any(|given| given == *name));
        let Some(unfit) = unfit.filter(|_| !kinds.iter().any(fits)) else { continue };
        let option = match *unfit {
            "paths" => "a path in the file".to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        };
        if kinds.is_empty() {
            return Err(Failure::Usage(format!("{option} changes nothing of what {verb} does")));
        }
        let fit: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        return Err(Failure::Usage(format!(
            "{}: {option} is for {}, and not for {}",
            shown_path(path),
            fit.join(" and "),
            kind.name()
        )));
    }
    Ok(())
}

#[cfg(all(test, feature = "hdf5"))]
mod tests {
    use clap::CommandFactory;

    use super::{EVERY, OPTIONS};
    use crate::Cli;

    #[test]
    fn all_names_are_arguments() {
        let command = Cli::command();
        for (verb, names, _) in OPTIONS.into_iter().filter(|(verb, ..)| *verb != EVERY) {
            let of = command.find_subcommand(verb).map(|verb| verb.get_arguments());
            let known: Vec<&str> =
                of.into_iter().flatten().map(|arg| arg.get_id().as_str()).collect();
            for name in names {
                assert!(known.contains(name), "{verb} --{name}");
            }
        }
    }
}
