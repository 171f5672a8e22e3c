//! What the outputs of a verb may replace.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg::Error;
use thalweg::new_file::{Existing, Inputs, check_output};
use thalweg::reads::is_index;
use thalweg_io::sidecar::old_indexes;
use thalweg_io::urls::{self, url};

use crate::arrays;
use crate::common::{Failure, VerbResult, complain, is_stream};
use crate::output_name::refuse_stdout;

/// Whether an output that exists is replaced.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ForceArgs {
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
}

impl ForceArgs {
    /// Whether --force is given.
    pub(crate) fn is_given(self) -> bool {
        self.force
    }

    /// Checks that an output is none of the inputs, and that it may be replaced if it exists. A
    /// verb calls this before it reads anything.
    pub(crate) fn check(
        self,
        output: &Path,
        inputs: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> VerbResult {
        self.check_with(output, &named(inputs), Existing::Keep)
    }

    /// [`ForceArgs::check`] for one of many outputs.
    pub(crate) fn check_one(self, output: &Path, inputs: &Inputs) -> VerbResult {
        self.check_with(output, inputs, Existing::Keep)
    }

    /// [`ForceArgs::check`] for an output that may replace files of its own kind, as reports and
    /// indexes do. `is_kind` tells the kind by a file's first bytes.
    pub(crate) fn check_kind(
        self,
        output: &Path,
        inputs: impl IntoIterator<Item = impl AsRef<Path>>,
        is_kind: fn(&[u8]) -> bool,
    ) -> VerbResult {
        self.check_with(output, &named(inputs), Existing::ReplaceKind(is_kind))
    }

    /// Removes the index beside an output that was replaced. It belongs to the old file, and
    /// slow5lib looks up reads in any index that it finds. Files that are no index stay.
    pub(crate) fn remove_old_index(self, output: &Path) {
        if !self.force {
            return;
        }
        for index in old_indexes(output, |head| is_index(head) || arrays::is_index(head)) {
            let name = urls::shown_path(&index);
            let output = urls::shown_path(output);
            match fs::remove_file(&index) {
                Ok(()) => {
                    complain(&format!("{name}: removed: it was the index of the old {output}"));
                }
                Err(error) => {
                    complain(&format!("{name}: delete it, it indexes the old {output}: {error}"));
                }
            }
        }
    }

    fn check_with(self, output: &Path, inputs: &Inputs, without_force: Existing) -> VerbResult {
        refuse_stdout(output)?;
        let existing = if self.force { Existing::Replace } else { without_force };
        inputs.check(output, existing).map_err(Failure::of_argument)
    }
}

/// Inputs, of which `-` is the file that standard input comes from, if there is one.
fn named(inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> Inputs {
    Inputs::new(inputs.into_iter().map(|input| match is_stream(input.as_ref()) {
        true => PathBuf::from("/dev/stdin"),
        false => input.as_ref().to_owned(),
    }))
}

/// Fails if something has the name of a new file.
pub(crate) fn check_free(path: &Path) -> thalweg::Result<()> {
    let is_there = match url(path) {
        Some(_) => match check_output(path, [""; 0], Existing::Keep) {
            Err(Error::Exists { .. }) => true,
            found => found.map(|()| false)?,
        },
        None => path.symlink_metadata().is_ok(),
    };
    if !is_there {
        return Ok(());
    }
    let file = urls::shown_path(path).into();
    Err(Error::Exists { file, what: "", advice: "name another folder" })
}

/// Checks a file that a verb writes beside `file` without being told where. --force is about the
/// output that it names, and not about this one.
pub(crate) fn check_sidecar(sidecar: &Path, file: &Path, is_kind: fn(&[u8]) -> bool) -> VerbResult {
    Inputs::new([file]).check(sidecar, Existing::Sidecar(is_kind)).map_err(Failure::of_argument)
}

/// A path, and the files in it if it is a folder, as a network is: none of them can be an output.
pub(crate) fn files_of(path: &Path) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(path).into_iter().flatten();
    files.filter_map(|file| Some(file.ok()?.path())).chain([path.to_owned()])
}
