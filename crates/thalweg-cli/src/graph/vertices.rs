//! Parses vertices and edges that are named on the command line.

use std::path::Path;
use std::sync::Arc;

use thalweg::graph::Network;

use crate::common::Failure;

/// The vertices of a type that are named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenVertices {
    pub(super) vertex_type: usize,
    /// Their ids as they were given; `None` for all vertices of the type.
    pub(super) ids: Option<Vec<u64>>,
}

/// Parses `TYPE`, `TYPE:0-9,17`, or `TYPE:FILE` with one id per line. The name of a type may
/// contain a colon.
pub(super) fn parse(network: &Network, text: &str) -> Result<ChosenVertices, Failure> {
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
    Ok(ChosenVertices { vertex_type: network.type_of(name)?, ids: Some(parse_ids(ids)?) })
}

/// Parses `0-9,17`, or reads a file with one id per line.
pub(super) fn parse_ids(text: &str) -> Result<Vec<u64>, Failure> {
    if names_file(text) {
        return lines(text)?.iter().map(|line| number(line, text)).collect();
    }
    let mut ids = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let first = number(first, text)?;
                let last = number(last, text)?;
                if last < first || last - first >= MAX_RANGE {
                    return Err(Failure::Usage(format!(
                        "{part:?} in {text:?} is no range of at most {MAX_RANGE} ids"
                    )));
                }
                ids.extend(first..=last);
            }
            None => ids.push(number(part, text)?),
        }
    }
    Ok(ids)
}

/// The most ids of a range: a longer one is most likely a mistake.
const MAX_RANGE: u64 = 1 << 32;

/// Parses `1-2,3-4`, or reads a file with two ids per line.
pub(super) fn parse_pairs(text: &str) -> Result<Vec<(u64, u64)>, Failure> {
    let pair = |part: &str, of: &str| {
        let ends =
            part.split(['-', ',', '\t', ' ']).filter(|end| !end.is_empty()).collect::<Vec<_>>();
        match ends[..] {
            [source, target] => Ok((number(source, of)?, number(target, of)?)),
            _ => Err(Failure::Usage(format!("{part:?} in {of:?} is no pair of ids, as in 1-2"))),
        }
    };
    if names_file(text) {
        return lines(text)?.iter().map(|line| pair(line, text)).collect();
    }
    text.split(',').map(|part| pair(part, text)).collect()
}

/// Whether a text names a file rather than a list of ids.
fn names_file(text: &str) -> bool {
    let is_list = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'-'));
    text.is_empty() || !is_list || Path::new(text).is_file()
}

/// The lines of a file that are not empty.
fn lines(path: &str) -> Result<Vec<String>, Failure> {
    let name: Arc<str> = path.into();
    let text = if path == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|e| thalweg::Error::io(&name, "reading ids from", e))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Parses an id in the argument `of`.
fn number(text: &str, of: &str) -> Result<u64, Failure> {
    text.trim().parse().map_err(|_| {
        Failure::Usage(format!("{text:?} in {of:?} is no id: a whole number below 2^64"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_pairs_are_lists_and_ranges() {
        assert_eq!(parse_ids("3").unwrap(), [3]);
        assert_eq!(parse_ids("0-2,9,7-7").unwrap(), [0, 1, 2, 9, 7]);
        assert!(matches!(parse_ids("5-2"), Err(Failure::Usage(_))));
        assert!(matches!(parse_ids("1,,2"), Err(Failure::Usage(_))));
        assert_eq!(parse_pairs("1-2,3-4").unwrap(), [(1, 2), (3, 4)]);
        assert!(matches!(parse_pairs("1-2-3"), Err(Failure::Usage(_))));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1 2\n\n3,4\n5\t6\n").unwrap();
        assert_eq!(parse_pairs(file.path().to_str().unwrap()).unwrap(), [(1, 2), (3, 4), (5, 6)]);
    }
}
