//! Decides which files `thalweg convert` writes, and the inputs of each.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thalweg::format::slow5::{Encoding, Framing};
use thalweg::format::{Format, pod5};
use thalweg::new_file::Inputs;
use thalweg::reads::{Options, ReadFile, ReadSet};

use super::ConvertArgs;
use crate::common::{Failure, VerbResult};
use crate::write::format_of;

/// A file to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedOutput {
    pub(super) path: PathBuf,
    /// The files of the set that go into it.
    pub(super) files: Range<usize>,
}

/// The format to write.
pub(super) fn format(args: &ConvertArgs) -> Result<Format, Failure> {
    match args.to {
        None if args.per_file => {
            Err(Failure::Usage("--per-file needs --to, as a folder's name tells no format".into()))
        }
        asked => format_of(asked, "--to", &args.output),
    }
}

/// The files to write, in the order of the set.
pub(super) fn outputs(
    args: &ConvertArgs,
    format: Format,
    set: &ReadSet,
) -> Result<Vec<PlannedOutput>, Failure> {
    let inputs: Vec<&Path> = set.paths().collect();
    let outputs = if args.per_file {
        let output = |(i, input): (usize, &&Path)| {
            let below = args.inputs.iter().find_map(|folder| {
                input.strip_prefix(folder).ok().filter(|p| !p.as_os_str().is_empty())
            });
            let below = below.or_else(|| input.file_name().map(Path::new)).unwrap_or(input);
            let path = args.output.join(below).with_extension(format.extension());
            PlannedOutput { path, files: i..i + 1 }
        };
        inputs.iter().enumerate().map(output).collect()
    } else {
        vec![PlannedOutput { path: args.output.clone(), files: 0..inputs.len() }]
    };
    check(args, &outputs, &inputs)?;
    Ok(outputs)
}

/// Refuses an output that would be written twice, one that is an input, and one that exists. With
/// --resume, outputs that exist are looked at one by one.
fn check(args: &ConvertArgs, outputs: &[PlannedOutput], inputs: &[&Path]) -> VerbResult {
    let mut from: HashMap<&Path, usize> = HashMap::new();
    let all = Inputs::new(inputs.iter().copied().chain(args.ids.as_deref()));
    for (i, output) in outputs.iter().enumerate() {
        if let Some(&other) = from.get(output.path.as_path()) {
            let name =
                |i: usize| inputs.get(i).map(|path| path.display().to_string()).unwrap_or_default();
            let message = format!(
                "{} and {} would both become {}",
                name(other),
                name(i),
                output.path.display()
            );
            return Err(Failure::Usage(message));
        }
        from.insert(&output.path, i);
        if !args.resume {
            args.write.force.check_one(&output.path, &all)?;
        }
    }
    Ok(())
}

/// Whether a file is complete, and newer than its inputs.
pub(super) fn is_whole<'a>(
    path: &Path,
    mut inputs: impl Iterator<Item = &'a Path>,
    options: &Options,
) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(written) = changed(path) else { return false };
    if !inputs.all(|input| changed(input).is_some_and(|changed| changed <= written)) {
        return false;
    }
    let Ok(file) = ReadFile::open(path, options.clone()) else { return false };
    // A truncated file may still open: the tables of POD5 are found even without its footer.
    let end: &[u8] = match file.format() {
        Format::Slow5 => b"\n",
        Format::Blow5 => Framing::new(Encoding::Binary).end_marker(),
        Format::Pod5 => &pod5::SIGNATURE,
        _ => &[],
    };
    let mut found = vec![0; end.len()];
    let at = file.store().size().saturating_sub(end.len() as u64);
    file.store().read_at(at, &mut found).is_ok() && found == end
}
