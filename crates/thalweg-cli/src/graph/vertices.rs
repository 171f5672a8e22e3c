//! Parses vertices and edges that are named on the command line.

use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use thalweg::graph::Network;

pub(super) use super::id_ranges::{FoundVertices, IdRanges};
use crate::common::Failure;
use crate::id_list::for_each_line;

/// The vertices of a type that are named on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChosenVertices {
    pub(super) vertex_type: usize,
    /// Their ids; `None` for all vertices of the type.
    pub(super) ids: Option<IdRanges>,
}

/// Parses `TYPE`, `TYPE:0-9,17`, or `TYPE:FILE` with one id per line. The name of a type may
/// contain a colon.
/// `most_bytes`: what a list may take.
pub(super) fn parse(
    network: &Network,
    text: &str,
    most_bytes: usize,
) -> Result<ChosenVertices, Failure> {
    if let Ok(vertex_type) = network.type_of(text) {
        return Ok(ChosenVertices { vertex_type, ids: None });
    }
    let Some((name, ids)) = text
        .rsplit_once(':')
        .filter(|(name, _)| network.type_of(name).is_ok())
        .or(text.split_once(':'))
    else {
        return network
            .type_of(text)
            .map(|vertex_type| ChosenVertices { vertex_type, ids: None })
            .map_err(Failure::from);
    };
    let vertex_type = network.type_of(name)?;
    Ok(ChosenVertices { vertex_type, ids: Some(parse_ids(ids, most_bytes)?) })
}

/// The paths that `TYPE:FILE` may name, before the types are known: the name of a type may contain
/// a colon, and so may a path.
pub(super) fn files_in(text: &str) -> impl Iterator<Item = PathBuf> {
    text.match_indices(':').map(|(at, _)| PathBuf::from(&text[at + 1..]))
}

/// Parses `0-9,17`, or reads a file with one id per line, which may take `most_bytes`.
pub(super) fn parse_ids(text: &str, most_bytes: usize) -> Result<IdRanges, Failure> {
    if names_file(text) {
        let ids = items(text, most_bytes, |line| number(line, text).map(|id| id..=id))?;
        return Ok(IdRanges::new(ids));
    }
    text.split(',').map(|part| parse_range(part, text)).collect::<Result<_, _>>().map(IdRanges::new)
}

/// Parses a range of ids, or one id, in the argument `of`.
fn parse_range(part: &str, of: &str) -> Result<RangeInclusive<u64>, Failure> {
    let Some((first, last)) = part.split_once('-') else {
        let id = number(part, of)?;
        return Ok(id..=id);
    };
    let first = number(first, of)?;
    let last = number(last, of)?;
    if last < first {
        let what = format!("the range {part} ends before it begins; {last}-{first} may be meant");
        return Err(Failure::Usage(what));
    }
    Ok(first..=last)
}

/// Parses `1-2,3-4`, or reads a file with two ids per line, which may take `most_bytes`.
pub(super) fn parse_pairs(text: &str, most_bytes: usize) -> Result<Vec<(u64, u64)>, Failure> {
    let pair = |part: &str, of: &str| {
        let ends =
            part.split(['-', ',', '\t', ' ']).filter(|end| !end.is_empty()).collect::<Vec<_>>();
        match ends[..] {
            [source, target] => Ok((number(source, of)?, number(target, of)?)),
            _ => Err(Failure::Usage(format!("{part:?} in {of:?} is no pair of ids, as in 1-2"))),
        }
    };
    if names_file(text) {
        return items(text, most_bytes, |line| pair(line, text));
    }
    text.split(',').map(|part| pair(part, text)).collect()
}

/// Whether a text names a file rather than a list of ids.
fn names_file(text: &str) -> bool {
    let is_list = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'-'));
    text == "-" || text.is_empty() || !is_list || Path::new(text).is_file()
}

/// What the lines of a file say, if it takes no more memory than `most_bytes`.
fn items<T>(
    path: &str,
    most_bytes: usize,
    parse: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    if path != "-" && std::fs::metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Err(Failure::Usage(format!(
            "{path:?} is neither ids, as in 0-9,17 or 1-2,3-4, nor a file with ids"
        )));
    }
    let most = most_bytes / size_of::<T>();
    let mut items = Vec::new();
    for_each_line(Path::new(path), "list of ids", |line| {
        if items.len() == most {
            let what = format!("more than {most} lines need more than {most_bytes} bytes");
            return Err(Failure::Usage(format!("{path:?}: {what}; give more --memory")));
        }
        items.push(parse(line)?);
        Ok(())
    })?;
    Ok(items)
}

/// Parses an id in the argument `of`.
fn number(text: &str, of: &str) -> Result<u64, Failure> {
    text.trim().parse().map_err(|_| {
        Failure::Usage(format!("{text:?} in {of:?} is no id: a whole number below 2^64"))
    })
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_pairs_are_lists_and_ranges() {
        let ids = |text| parse_ids(text, usize::MAX).unwrap().expand(usize::MAX).unwrap();
        assert_eq!(ids("3"), [3]);
        assert_eq!(ids("0-2,9,7-7,1-3,8"), [0, 1, 2, 3, 7, 8, 9]);
        for (wrong, why) in [("5-2", "before it begins"), ("abc", "neither ids")] {
            match parse_ids(wrong, usize::MAX) {
                Err(Failure::Usage(message)) => assert!(message.contains(why), "{message}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(parse_ids("1,,2", usize::MAX), Err(Failure::Usage(_))));
        assert_eq!(parse_pairs("1-2,3-4", usize::MAX).unwrap(), [(1, 2), (3, 4)]);
        assert!(matches!(parse_pairs("1-2-3", usize::MAX), Err(Failure::Usage(_))));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1 2\n\n3,4\n5\t6\n").unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(parse_pairs(path, 48).unwrap(), [(1, 2), (3, 4), (5, 6)]);
        assert!(matches!(parse_pairs(path, 47), Err(Failure::Usage(_))));
    }
}
