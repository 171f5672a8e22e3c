//! The layout that the caller asks for, and the layout that a dataset gets.

use std::fmt;
use std::str::FromStr;

use thalweg_codec::deflate;
use thalweg_io::{Error, Result};

use super::Repack;
use crate::encode::Coder;
use crate::grid::RepackGrid;
use crate::stored::{DatasetForm, TargetStorage, ValueStorage};

/// The requested layout of datasets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetLayout {
    /// The chunks; `None` keeps them.
    pub chunk: Option<Chunking>,
    /// The filters; `None` keeps them.
    pub coders: Option<Vec<Coder>>,
}

/// The shape of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunking {
    /// No chunks: the values are contiguous.
    Contiguous,
    /// This number of elements of the first dimension. The other dimensions stay as they are.
    Rows(u64),
    /// This shape, for datasets with the same number of dimensions.
    Shape(Vec<u64>),
}

impl FromStr for Chunking {
    type Err = String;

    /// Parses `contiguous`, a number of rows such as `1Mi`, or a shape such as `128x64`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "contiguous" {
            return Ok(Self::Contiguous);
        }
        let lengths = text.split('x').map(length).collect::<Option<Vec<u64>>>();
        match lengths.as_deref() {
            Some(&[rows]) => Ok(Self::Rows(rows)),
            Some(shape) => Ok(Self::Shape(shape.to_vec())),
            None => Err(format!(
                "`{text}` is neither a number (1Mi, 65536), a shape (128x64), `contiguous` \
                 nor `keep`"
            )),
        }
    }
}

/// Parses a length from 1 on, such as `1Mi` or `4096`.
fn length(text: &str) -> Option<u64> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("k", 1000), ("M", 1_000_000)];
    let unit = units.iter().find_map(|(name, size)| Some((text.strip_suffix(name)?, *size)));
    let (digits, size) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(size).filter(|&length| length > 0)
}

/// Parses filters, such as `none`, `gzip`, `shuffle+gzip:4`, `zstd:3`, `shuffle+zstd`, `lz4` or
/// `fletcher32`.
///
/// # Errors
/// A message about invalid text.
pub fn coders(text: &str) -> Result<Vec<Coder>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split('+').map(coder).collect()
}

fn coder(text: &str) -> Result<Coder, String> {
    let (name, level) =
        text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
    let level = |usual: u8, most: u8| match level.map(str::parse) {
        None => Ok(usual),
        Some(Ok(level)) if (1..=most).contains(&level) => Ok(level),
        Some(_) => Err(format!("`{text}`: a level from 1 to {most} is needed")),
    };
    Ok(match name {
        "shuffle" => Coder::Shuffle,
        "gzip" | "deflate" => Coder::Deflate(level(4, 9)?),
        "zstd" => Coder::Zstd(level(3, 19)?),
        "lz4" => Coder::Lz4,
        "fletcher32" => Coder::Fletcher32,
        _ => {
            return Err(format!(
                "`{name}` is no filter: use none, keep, gzip, zstd, lz4, shuffle or fletcher32, or \
                 several in their order, as in shuffle+zstd:3"
            ));
        }
    })
}

impl fmt::Display for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shuffle => f.write_str("shuffle"),
            Self::Deflate(level) => write!(f, "deflate:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Fletcher32 => f.write_str("fletcher32"),
        }
    }
}

/// In bytes. Smaller datasets keep their storage, unless they are named.
const LEAST: u64 = 64 << 10;

/// The most bytes of a chunk that is given as a number of rows, for datasets with more than one
/// dimension.
const MOST_WIDE: u64 = 16 << 20;

/// The most bytes of a chunk that HDF5 can represent.
const MOST: u64 = u32::MAX as u64;

/// The most chunks of a dataset.
const MOST_CHUNKS: u64 = 1 << 28;

/// Whether a dataset is at `path` or in that group.
fn is_below(dataset: &str, path: &str) -> bool {
    let path = path.trim_matches('/');
    let rest = dataset.trim_matches('/').strip_prefix(path);
    rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// Checks that each path of the options is that of a dataset, or of a group with datasets.
///
/// # Errors
/// [`Error::Usage`] about the first path that is not.
pub(super) fn check_paths<'a>(
    how: &Repack,
    datasets: impl Iterator<Item = &'a str> + Clone,
    file: &str,
) -> Result<()> {
    let is_wrong = |path: &str| {
        let mut datasets = datasets.clone();
        !path.trim_matches('/').is_empty() && !datasets.any(|dataset| is_below(dataset, path))
    };
    let wrong = how.paths.iter().map(|(path, _)| path).find(|path| is_wrong(path));
    wrong.map_or(Ok(()), |path| {
        let message = format!(
            "{file}: found no dataset at or below {path:?}, expected one: `thalweg info` lists \
             them; one with several names goes by its first"
        );
        Err(Error::Usage(message.into()))
    })
}

/// Decides the new storage of a dataset. If the requested layout cannot be applied, the storage is
/// kept and the reason is appended to `kept`; for a dataset that the options name itself, it is an
/// error.
pub(super) fn decide(
    form: &DatasetForm,
    how: &Repack,
    memory: usize,
    kept: &mut Vec<(String, String)>,
) -> Result<TargetStorage> {
    let named = how.paths.iter().rev().find(|(path, _)| is_below(&form.path, path));
    let is_exact =
        named.is_some_and(|(path, _)| path.trim_matches('/') == form.path.trim_matches('/'));
    let layout = named.map_or(&how.layout, |(_, layout)| layout);
    if *layout == TargetLayout::default() {
        return Ok(TargetStorage::Keep);
    }
    let is_eligible = named.is_some() || (form.numbers && form.bytes() >= LEAST);
    match target(form, layout, named.is_some(), memory) {
        _ if !is_eligible => Ok(TargetStorage::Keep),
        Ok(target) => Ok(target),
        Err(why) if is_exact => Err(Error::Usage(format!("{}: {why}", form.path).into())),
        Err(why) => {
            kept.push((form.path.clone(), why));
            Ok(TargetStorage::Keep)
        }
    }
}

/// The new storage of a dataset, or why the layout cannot be applied to it.
fn target(
    form: &DatasetForm,
    layout: &TargetLayout,
    is_named: bool,
    memory: usize,
) -> Result<TargetStorage, String> {
    let (chunk, chunks) = match &form.storage {
        ValueStorage::Elsewhere { why, .. } => return Err((*why).into()),
        ValueStorage::Contiguous(_) => (None, None),
        ValueStorage::Chunked(chunk, chunks) => (Some(chunk), Some(chunks)),
    };
    let shape = &form.shape;
    if form.bytes() == 0 || shape.is_empty() {
        return Err("it has no elements to cut into chunks".into());
    }
    if layout.chunk == Some(Chunking::Contiguous) {
        if chunk.is_none() {
            return Ok(TargetStorage::Keep);
        }
        check_contiguous(form, layout, chunk.zip(chunks))?;
        check_decodes(form, chunk, chunks, memory)?;
        return Ok(TargetStorage::Contiguous);
    }
    if chunk.is_none() && !is_named && layout.coders.as_ref().is_none_or(Vec::is_empty) {
        // A contiguous dataset needs no change.
        return Ok(TargetStorage::Keep);
    }
    let Some(after) = new_chunk(form, layout, chunk)? else { return Ok(TargetStorage::Keep) };
    let coders = match (&layout.coders, &form.coders) {
        (Some(coders), _) => coders.clone(),
        (None, Some(coders)) => coders.clone(),
        (None, None) if chunk == Some(&after) => return Ok(TargetStorage::Keep),
        (None, None) => {
            return Err("its filters are not applied here; say which it shall have instead".into());
        }
    };
    if chunk == Some(&after) && form.coders.as_ref() == Some(&coders) {
        return Ok(TargetStorage::Keep);
    }
    check_fits(&after, form.element, memory)?;
    check_decodes(form, chunk, chunks, memory)?;
    let to = RepackGrid::chunks(shape, &after, form.element);
    if to.count() > MOST_CHUNKS {
        return Err(format!("that would make {} chunks", to.count()));
    }
    let mut numbers: Vec<u64> = match (chunk, chunks) {
        (Some(chunk), Some(chunks)) => {
            let from = RepackGrid::chunks(shape, chunk, form.element);
            chunks.iter().flat_map(|chunk| to.over(&from.area(chunk.first))).collect()
        }
        _ if form.storage == ValueStorage::Contiguous(None) => Vec::new(),
        _ => (0..to.count()).collect(),
    };
    numbers.sort_unstable();
    numbers.dedup();
    Ok(TargetStorage::Chunked { chunk: after, coders, numbers })
}

/// Refuses a contiguous target for a dataset that can grow, has filters to apply, or lacks chunks.
fn check_contiguous(
    form: &DatasetForm,
    layout: &TargetLayout,
    stored: Option<(&Vec<u64>, &Vec<crate::types::Chunk>)>,
) -> Result<(), String> {
    let is_fixed = form.shape.iter().zip(&form.most).all(|(length, most)| Some(*length) == *most);
    if !is_fixed {
        return Err("it can grow, which takes chunks".into());
    }
    if layout.coders.as_ref().is_some_and(|coders| !coders.is_empty()) {
        return Err("filters take chunks".into());
    }
    let is_sparse = stored.is_some_and(|(chunk, chunks)| {
        !chunks.is_empty()
            && (chunks.len() as u64) < RepackGrid::chunks(&form.shape, chunk, form.element).count()
    });
    if is_sparse {
        return Err("some of its chunks were never written, which takes chunks".into());
    }
    Ok(())
}

/// The shape of the new chunks; `None` if a contiguous dataset stays contiguous. `chunk` is the
/// shape of the stored chunks.
fn new_chunk(
    form: &DatasetForm,
    layout: &TargetLayout,
    chunk: Option<&Vec<u64>>,
) -> Result<Option<Vec<u64>>, String> {
    let shape = &form.shape;
    let mut after = match (&layout.chunk, chunk) {
        (Some(Chunking::Shape(lengths)), _) if lengths.len() != shape.len() => {
            return Err(format!("it has {} dimensions", shape.len()));
        }
        (Some(Chunking::Shape(lengths)), _) => lengths.clone(),
        (Some(Chunking::Rows(rows)), _) => {
            let mut lengths = chunk.cloned().unwrap_or_else(|| shape.clone());
            let row: u64 = lengths.iter().skip(1).product::<u64>() * form.element as u64;
            let most = if lengths.len() > 1 { (MOST_WIDE / row.max(1)).max(1) } else { u64::MAX };
            lengths[0] = (*rows).min(most);
            lengths
        }
        (_, Some(chunk)) => chunk.clone(),
        (_, None) if layout.coders.as_ref().is_none_or(Vec::is_empty) => return Ok(None),
        // A contiguous dataset is cut into chunks only if there are filters to apply.
        (_, None) => RepackGrid::run(shape, form.element, 1 << 20).tile().to_vec(),
    };
    for (d, length) in after.iter_mut().enumerate() {
        // No longer than the dimension, unless the stored chunks already were.
        let most = shape[d].max(chunk.map_or(1, |chunk| chunk[d]));
        *length = (*length).min(most).min(form.most[d].unwrap_or(u64::MAX)).max(1);
    }
    Ok(Some(after))
}

/// Refuses new chunks that take more than half of the memory, or more than HDF5 allows.
fn check_fits(chunk: &[u64], element: usize, memory: usize) -> Result<(), String> {
    let bytes = chunk
        .iter()
        .try_fold(element as u64, |bytes, &n| bytes.checked_mul(n))
        .filter(|&bytes| bytes <= MOST);
    if bytes.is_none_or(|bytes| bytes > (memory / 2) as u64) {
        return Err(format!(
            "chunks of {chunk:?} elements do not fit into the memory that there is"
        ));
    }
    Ok(())
}

/// Checks that this crate can decode the chunks within the memory budget.
fn check_decodes(
    form: &DatasetForm,
    chunk: Option<&Vec<u64>>,
    chunks: Option<&Vec<crate::types::Chunk>>,
    memory: usize,
) -> Result<(), String> {
    if let Some(filter) = form.pipeline.unknown() {
        return Err(format!("{filter} is not undone here"));
    }
    let Some(chunk) = chunk else { return Ok(()) };
    let bytes = chunk.iter().try_fold(form.element as u64, |bytes, &n| bytes.checked_mul(n));
    let least = chunks.into_iter().flatten().map(|chunk| chunk.size).min().unwrap_or(u64::MAX);
    let likely = least.saturating_mul(deflate::MOST_BYTES_PER_BYTE as u64);
    match bytes {
        Some(bytes)
            if bytes <= (memory as u64 / 4).max(1 << 20)
                || bytes <= likely.min(memory as u64 / 2) =>
        {
            Ok(())
        }
        _ => Err(format!("chunks of {chunk:?} elements do not fit into the memory that there is")),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use crate::filter::Pipeline;
    use crate::types::Chunk;

    fn form(shape: &[u64], chunk: Option<&[u64]>) -> DatasetForm {
        let storage = match chunk {
            None => ValueStorage::Contiguous(Some(0)),
            Some(chunk) => {
                let grid = RepackGrid::chunks(shape, chunk, 4);
                let one =
                    |first| Chunk { first, offset: first * 100, size: grid.bytes(first), mask: 0 };
                ValueStorage::Chunked(chunk.to_vec(), (0..grid.count()).map(one).collect())
            }
        };
        DatasetForm {
            path: "/entry/bank1/event_id".into(),
            shape: shape.to_vec(),
            most: shape.iter().map(|_| None).collect(),
            element: 4,
            numbers: true,
            fill: Vec::new(),
            storage,
            pipeline: Pipeline::default(),
            coders: Some(Vec::new()),
        }
    }

    fn decided(form: &DatasetForm, how: &Repack) -> (Result<TargetStorage>, Vec<(String, String)>) {
        let mut kept = Vec::new();
        (decide(form, how, 192 << 20, &mut kept), kept)
    }

    fn layout(chunk: &str) -> TargetLayout {
        TargetLayout { chunk: Some(chunk.parse().unwrap()), coders: None }
    }

    #[test]
    fn keywords_are_parsed() {
        assert_eq!("1Mi".parse(), Ok(Chunking::Rows(1 << 20)));
        assert_eq!("128x64".parse(), Ok(Chunking::Shape(vec![128, 64])));
        for wrong in ["", "0", "1Mi x", "x", "-4", "1Ti"] {
            assert!(wrong.parse::<Chunking>().is_err(), "{wrong}");
        }
        assert_eq!(coders("shuffle+gzip:4"), Ok(vec![Coder::Shuffle, Coder::Deflate(4)]));
        assert_eq!(coders("none"), Ok(Vec::new()));
        for wrong in ["", "gzip:0", "gzip:10", "szip", "zstd:x"] {
            assert!(coders(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn chunks_are_no_longer_than_what_is_in_them() {
        let how = Repack { layout: layout("1Mi"), ..Repack::default() };
        let chunk = |form: &DatasetForm| match decided(form, &how).0.unwrap() {
            TargetStorage::Chunked { chunk, .. } => chunk,
            other => panic!("{other:?}"),
        };
        assert_eq!(chunk(&form(&[4 << 20], Some(&[2048]))), [1 << 20]);
        assert_eq!(chunk(&form(&[300_000], Some(&[2048]))), [300_000]);
        assert_eq!(chunk(&form(&[100_000, 64], Some(&[16, 64]))), [65_536, 64], "16 MiB");
        assert_eq!(
            decided(&form(&[100], Some(&[10])), &how).0.unwrap(),
            TargetStorage::Keep,
            "too small to matter"
        );
    }

    #[test]
    fn the_last_path_counts_and_must_make_sense() {
        let paths =
            vec![("/entry".into(), layout("512")), ("entry/bank1/event_id".into(), layout("8x8"))];
        let mut how = Repack { paths, ..Repack::default() };
        let form = form(&[1 << 20], Some(&[2048]));
        assert!(matches!(decided(&form, &how).0, Err(Error::Usage(_))));
        how.paths.reverse();
        let TargetStorage::Chunked { chunk, .. } = decided(&form, &how).0.unwrap() else {
            panic!("the target is not chunked")
        };
        assert_eq!(chunk, [512]);
        how.paths = vec![("/entry/bank".into(), layout("512"))];
        assert_eq!(decided(&form, &how).0.unwrap(), TargetStorage::Keep, "a path is no prefix");
    }

    #[test]
    fn growable_datasets_stay_chunked() {
        let how = Repack { layout: layout("contiguous"), ..Repack::default() };
        let mut form = form(&[1 << 20], Some(&[2048]));
        let (target, kept) = decided(&form, &how);
        assert_eq!((target.unwrap(), kept.len()), (TargetStorage::Keep, 1));
        form.most = vec![Some(1 << 20)];
        assert_eq!(decided(&form, &how).0.unwrap(), TargetStorage::Contiguous);
    }
}
