//! Decides which file `thalweg convert` writes for each input.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use thalweg::format::slow5::{Encoding, Framing};
use thalweg::format::{Format, pod5};
use thalweg::new_file::{Inputs, file_path};
use thalweg::reads::{Options, ReadFile};
use thalweg_io::urls;

use super::ConvertArgs;
use crate::common::{Failure, VerbResult};
use crate::output_name::refuse_stdout;
use crate::write::format_of;

/// The format to write.
pub(super) fn format(args: &ConvertArgs) -> Result<Format, Failure> {
    match args.to {
        None if args.per_file => {
            Err(Failure::Usage("--per-file needs --to, as a folder's name tells no format".into()))
        }
        Some(asked) if args.per_file => refuse_stdout(args.output()).map(|()| asked),
        asked => format_of(asked, args.output()),
    }
}

/// The file to write for each input.
pub(super) fn outputs(
    args: &ConvertArgs,
    format: Format,
    inputs: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let to = file_path(args.output())?;
    let output = |input: &PathBuf| {
        let below = args.inputs().iter().find_map(|folder| {
            input.strip_prefix(folder).ok().filter(|p| !p.as_os_str().is_empty())
        });
        let below = below.or_else(|| input.file_name().map(Path::new)).unwrap_or(input);
        to.join(below).with_extension(format.extension())
    };
    let outputs: Vec<PathBuf> = inputs.iter().map(output).collect();
    check(args, &outputs, inputs)?;
    Ok(outputs)
}

/// Refuses an output that would be written twice, one that is an input, and one that exists. With
/// --resume, outputs that exist are looked at one by one.
fn check(args: &ConvertArgs, outputs: &[PathBuf], inputs: &[PathBuf]) -> VerbResult {
    let mut from: HashMap<&Path, usize> = HashMap::new();
    let all = Inputs::new(inputs.iter().map(PathBuf::as_path).chain(args.ids.as_deref()));
    for (i, output) in outputs.iter().enumerate() {
        if let Some(&other) = from.get(output.as_path()) {
            let name =
                |i: usize| inputs.get(i).map(|path| urls::shown_path(path)).unwrap_or_default();
            let message = format!(
                "{} and {} would both become {}",
                name(other),
                name(i),
                urls::shown_path(output)
            );
            return Err(Failure::Usage(message));
        }
        from.insert(output, i);
        if !args.resume {
            args.write.force.check_one(output, &all)?;
        }
    }
    Ok(())
}

/// Whether a file is complete, and newer than its input.
pub(super) fn is_whole(path: &Path, input: &Path, options: &Options) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(written) = changed(path) else { return false };
    if changed(input).is_none_or(|changed| changed > written) {
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
