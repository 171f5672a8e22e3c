//! The suites inside the program, and the lookup of the argument of `bench`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thalweg::store::FileStore;
use thalweg::{Fault, InFile};
use thalweg_gauge::suite::{Suite, SuiteRecord, similar_name};

use super::given::GivenFile;
use crate::common::{Failure, shown_path};
use crate::synth::SyntheticFiles;

/// Name and text. The first suite runs by default; `file` and `arrays` measure on a file of the
/// user.
pub(super) const SHIPPED: [(&str, &str); 13] = [
    ("tour", include_str!("../../suites/tour.toml")),
    ("file", include_str!("../../suites/file.toml")),
    ("arrays", include_str!("../../suites/arrays.toml")),
    ("slow5", include_str!("../../suites/slow5.toml")),
    ("nanopore", include_str!("../../suites/nanopore.toml")),
    ("neutron", include_str!("../../suites/neutron.toml")),
    ("objects", include_str!("../../suites/objects.toml")),
    ("remote", include_str!("../../suites/remote.toml")),
    ("connectome", include_str!("../../suites/connectome.toml")),
    ("python", include_str!("../../suites/python.toml")),
    ("pipeline", include_str!("../../suites/pipeline.toml")),
    ("mounts", include_str!("../../suites/mounts.toml")),
    ("scaling", include_str!("../../suites/scaling.toml")),
];

/// The most bytes of a suite. The shipped ones have some ten thousand.
const MOST_BYTES: u64 = 1 << 20;

/// The text of a shipped suite.
pub(super) fn text_of(suite: &str) -> &'static str {
    SHIPPED.iter().find(|(name, _)| *name == suite).map_or("", |(_, text)| text)
}

/// The file of a run, if its suite is one for files of the user. The name of a user's own suite may
/// be that of a shipped one.
pub(super) fn given_in(record: &SuiteRecord) -> Result<Option<GivenFile>, Failure> {
    let is_shipped = SHIPPED.iter().any(|(_, text)| *text == record.text);
    if is_shipped { GivenFile::of_run(record) } else { Ok(None) }
}

/// A suite, the folder that its relative paths start from, and the files that the argument gives.
pub(super) struct NamedSuite {
    pub(super) suite: Suite,
    pub(super) source: String,
    pub(super) folder: PathBuf,
    pub(super) files: BTreeMap<String, PathBuf>,
    /// The file of a suite that is not shipped.
    pub(super) file: Option<PathBuf>,
}

/// Finds the suite by the argument: a shipped suite, a TOML file, or the suite for a data file.
pub(super) fn named(what: Option<&str>) -> Result<NamedSuite, Failure> {
    let what = what.unwrap_or("tour");
    if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == what) {
        return parsed(format!("{name}.toml"), text, PathBuf::new(), BTreeMap::new());
    }
    let path = Path::new(what);
    if path.extension().is_some_and(|e| e == "toml") {
        let text = FileStore::open(path)?.contents("a suite", MOST_BYTES)?;
        let text = String::from_utf8(text).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Fault::new(at, "bytes that are not UTF-8", "text").in_file(
                &what.to_owned().into(),
                0,
                "a suite",
            )
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let suite = parsed(what.to_owned(), &text, folder, BTreeMap::new())?;
        return Ok(NamedSuite { file: Some(path.to_owned()), ..suite });
    }
    if path.is_file() {
        let (suite, file) = GivenFile::new(path)?.suite();
        let files = BTreeMap::from([(file.to_owned(), path.to_owned())]);
        return parsed(format!("{suite}.toml"), text_of(suite), PathBuf::new(), files);
    }
    let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
    let near = similar_name(what, names.iter().copied());
    let meant = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Err(Failure::Usage(format!(
        "{}: neither a file nor a suite{meant} (suites: {}, and any .toml file that holds one)",
        shown_path(path),
        names.join(", ")
    )))
}

/// The suite of a text, which messages call `source`.
pub(super) fn parsed(
    source: String,
    text: &str,
    folder: PathBuf,
    files: BTreeMap<String, PathBuf>,
) -> Result<NamedSuite, Failure> {
    let suite = Suite::parse(&source, text, &SyntheticFiles)?;
    Ok(NamedSuite { suite, source, folder, files, file: None })
}

#[cfg(all(test, feature = "hdf5"))]
mod tests {
    use clap::CommandFactory;

    use super::SHIPPED;
    use crate::Cli;

    /// The words of thalweg's own commands in a suite.
    fn commands(text: &str) -> Vec<Vec<String>> {
        let words = |line: &str| -> Option<Vec<String>> {
            let (key, list) = line.split_once(" = ")?;
            let words: Vec<String> = serde_json::from_str(list).ok()?;
            let own = words.iter().position(|word| word == "{thalweg}");
            match key {
                "thalweg" => Some(words),
                "peer" => own.map(|at| words[at + 1..].to_vec()),
                _ => None,
            }
        };
        text.lines().filter_map(words).collect()
    }

    #[test]
    fn the_suites_name_options_that_exist() {
        let mut seen = 0;
        for (suite, text) in SHIPPED {
            for words in commands(text) {
                let mut verb = &Cli::command();
                let mut rest = words.iter();
                while let Some(below) =
                    rest.clone().next().and_then(|word| verb.find_subcommand(word))
                {
                    verb = below;
                    rest.next();
                }
                for option in rest.filter_map(|word| word.strip_prefix("--")) {
                    let is_known =
                        verb.get_arguments().any(|argument| argument.get_long() == Some(option));
                    assert!(is_known, "{suite}: {} has no --{option}", verb.get_name());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
