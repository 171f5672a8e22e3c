//! Which files are written, and from which.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thalweg::format::Format;
use thalweg::reads::{Options, ReadFile, ReadSet};

use super::Args;
use crate::common::Failure;

/// A file to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    /// The files of the set that go into it.
    pub(super) files: Range<usize>,
}

/// The files to write, in the order of the set.
pub(super) fn outputs(args: &Args, set: &ReadSet) -> Result<Vec<Output>, Failure> {
    let format = args.coding.format((!args.per_file).then_some(&args.output))?;
    let inputs: Vec<&Path> = set.paths().collect();
    let outputs = if args.per_file {
        let place = |(i, input): (usize, &&Path)| {
            let below = args
                .inputs
                .iter()
                .find_map(|folder| input.strip_prefix(folder).ok().filter(|p| !p.as_os_str().is_empty()));
            let below = below.or_else(|| input.file_name().map(Path::new)).unwrap_or(input);
            let path = args.output.join(below).with_extension(format.extension());
            Output { path, format, files: i..i + 1 }
        };
        inputs.iter().enumerate().map(place).collect()
    } else {
        vec![Output { path: args.output.clone(), format, files: 0..inputs.len() }]
    };
    check(&outputs, &inputs)?;
    Ok(outputs)
}

/// No output twice, and none that is an input of another: it would be gone before it was read.
fn check(outputs: &[Output], inputs: &[&Path]) -> Result<(), Failure> {
    let mut from: HashMap<&Path, usize> = HashMap::new();
    for (i, output) in outputs.iter().enumerate() {
        if let Some(&other) = from.get(output.path.as_path()) {
            let name = |i: usize| inputs.get(i).map(|path| path.display().to_string()).unwrap_or_default();
            let message = format!("{} and {} would both become {}", name(other), name(i), output.path.display());
            return Err(Failure::Usage(message));
        }
        from.insert(&output.path, i);
        let same = |input: &&Path| fs::canonicalize(input).ok() == fs::canonicalize(&output.path).ok();
        if output.path.exists() && outputs.len() > 1 && inputs.iter().any(same) {
            let message = format!("{} is one of the files to convert; write to another folder", output.path.display());
            return Err(Failure::Usage(message));
        }
    }
    Ok(())
}

/// Whether a file was finished after its inputs were last changed. Files appear when they are whole, so what opens is
/// whole.
pub(super) fn is_whole<'a>(path: &Path, mut inputs: impl Iterator<Item = &'a Path>, options: &Options) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(written) = changed(path) else { return false };
    inputs.all(|input| changed(input).is_some_and(|changed| changed <= written))
        && ReadFile::open(path, options.clone()).is_ok()
}
