//! Whether the name of an output says what is written. Programs that know formats by names would
//! take the file for another format.

use std::path::Path;

use crate::common::{Failure, VerbResult, is_stream, shown_path};

/// The ends of names that say what a file holds.
const ENDS: [(&str, &str); 26] = [
    ("slow5", "SLOW5"),
    ("blow5", "BLOW5"),
    ("pod5", "POD5"),
    ("fast5", "FAST5"),
    ("fastq", "FASTQ"),
    ("fq", "FASTQ"),
    ("fasta", "FASTA"),
    ("fa", "FASTA"),
    ("bam", "BAM"),
    ("gz", "gzip"),
    ("zst", "zstd"),
    ("bz2", "bzip2"),
    ("xz", "xz"),
    ("nxs", "HDF5"),
    ("h5", "HDF5"),
    ("hdf5", "HDF5"),
    ("arrow", "Arrow IPC"),
    ("parquet", "Parquet"),
    ("csv", "CSV"),
    ("tsv", "TSV"),
    ("npy", "numpy's arrays"),
    ("png", "PNG"),
    ("svg", "SVG"),
    ("html", "HTML"),
    ("json", "JSON"),
    ("idx", "an index"),
];

/// What the end of a name says, in lower case: the end without its dot, and the format.
fn of_name(path: &Path) -> Option<(&'static str, &'static str)> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    ENDS.into_iter().find(|(known, _)| *known == end)
}

/// Whether a name is one of HDF5 files of arrays.
pub(crate) fn is_hdf5_name(path: &Path) -> bool {
    of_name(path).is_some_and(|(_, format)| format == "HDF5")
}

/// Refuses an output whose name says another format than the one that is written. Names that say
/// nothing are good for all. `written`: the format; `ends`: the ends of names that stand for it.
///
/// # Errors
/// [`Failure::Usage`] with both formats.
pub(crate) fn check_name(path: &Path, written: &str, ends: &[&str]) -> VerbResult {
    let Some((end, said)) = of_name(path).filter(|(end, _)| !ends.contains(end)) else {
        return Ok(());
    };
    let names: Vec<String> = ends.iter().map(|end| format!(".{end}")).collect();
    let good = match &names[..] {
        [] => "a name without an end".into(),
        names => format!("a name that ends in {}", names.join(" or ")),
    };
    Err(Failure::Usage(format!(
        "{}: the end .{end} says {said}, but {written} would be written; expected {good}",
        shown_path(path)
    )))
}

/// Refuses `-` as an output that cannot be a stream.
///
/// # Errors
/// [`Failure::Usage`] with what the name stands for.
pub(crate) fn refuse_stdout(path: &Path) -> VerbResult {
    if is_stream(path) {
        let why = "this cannot be written to standard output";
        return Err(Failure::Usage(format!("-: {why}; a file of the name - is ./-")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_format_or_nothing() {
        let check = |name: &str| check_name(Path::new(name), "BLOW5", &["blow5"]);
        for good in ["a.blow5", "a.BLOW5", "a", "a.bak", "a.csv.old", ".csv", "b.csv/a"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for (end, said) in ENDS.iter().filter(|(end, _)| *end != "blow5") {
            let told = format!("{:?}", check(&format!("a.{end}")));
            assert!(told.contains(said) && told.contains(".blow5"), "{told}");
        }
    }
}
