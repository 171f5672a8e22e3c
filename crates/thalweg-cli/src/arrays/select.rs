//! `--select`: parts of arrays in the notation of h5py, as in `0:100:2,:,5`, or single elements.

use std::str::FromStr;

use thalweg::arrays::{Selection, Slab};

use crate::common::Failure;

/// The part of each array that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Select {
    /// Slices of the first dimensions; the other dimensions are read completely.
    Slices(Vec<DimensionSlice>),
    /// These elements.
    Points(Vec<Vec<u64>>),
}

/// The part of one dimension that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DimensionSlice {
    /// One index. The result lacks this dimension.
    At(u64),
    /// From, to (`None`: the end), step.
    Range(u64, Option<u64>, u64),
}

impl FromStr for Select {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let wrong = || {
                format!(
                    "{text:?} is no place in an array: places are counted from 0, and not from \
                     the end"
                )
            };
            text.trim().parse::<u64>().map_err(|_| wrong())
        };
        if text.contains(';') {
            let point = |point: &str| point.split(',').map(number).collect::<Result<Vec<_>, _>>();
            let points = text.split(';').filter(|point| !point.trim().is_empty());
            return Ok(Self::Points(points.map(point).collect::<Result<_, _>>()?));
        }
        let slice = |text: &str| {
            let or = |text: Option<&&str>, other| {
                text.filter(|t| !t.trim().is_empty()).map_or(Ok(other), |t| number(t).map(Some))
            };
            let parts: Vec<&str> = text.split(':').collect();
            match parts.len() {
                1 => Ok(DimensionSlice::At(number(text)?)),
                2 | 3 => {
                    let from = or(parts.first(), Some(0))?;
                    let to = or(parts.get(1), None)?;
                    let step = or(parts.get(2), Some(1))?;
                    match step {
                        Some(step @ 1..) => Ok(DimensionSlice::Range(from.unwrap_or(0), to, step)),
                        _ => Err("a step is at least 1".into()),
                    }
                }
                _ => Err(format!("expected FROM:TO:STEP, not {text:?}")),
            }
        };
        Ok(Self::Slices(text.split(',').map(slice).collect::<Result<_, _>>()?))
    }
}

impl Select {
    /// The selection of an array of this shape, and the shape of the result.
    pub(super) fn of(&self, path: &str, shape: &[u64]) -> Result<(Selection, Vec<u64>), Failure> {
        let wrong = |what: String| Failure::Usage(format!("--select does not fit {path}: {what}"));
        let (selection, kept) = match self {
            Self::Points(points) => (Selection::Points(points.clone()), vec![points.len() as u64]),
            Self::Slices(slices) if slices.len() > shape.len() => {
                return Err(wrong(format!("{} dimensions of {}", slices.len(), shape.len())));
            }
            Self::Slices(slices) => {
                let all = std::iter::repeat(&DimensionSlice::Range(0, None, 1));
                let mut kept = Vec::new();
                let slab = |(slice, &length): (&DimensionSlice, &u64)| match *slice {
                    // Not from a range: the last of all numbers has no next one.
                    DimensionSlice::At(at) => Slab { start: at, count: 1, step: 1, block: 1 },
                    DimensionSlice::Range(from, to, step) => {
                        // As in numpy, what lies beyond the end is left out.
                        let to = to.unwrap_or(length).min(length);
                        let count = to.saturating_sub(from).div_ceil(step);
                        kept.push(count);
                        Slab { start: from.min(length), count, step, block: 1 }
                    }
                };
                let slabs = slices.iter().chain(all).zip(shape).map(slab).collect();
                (Selection::Slab(slabs), kept)
            }
        };
        selection.count(shape).map_err(wrong)?;
        Ok((selection, kept))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str, shape: &[u64]) -> Result<(u64, Vec<u64>), ()> {
        let (selection, kept) =
            text.parse::<Select>().map_err(|_| ())?.of("/a", shape).map_err(|_| ())?;
        Ok((selection.count(shape).unwrap(), kept))
    }

    #[test]
    fn slices_are_numpys() {
        assert_eq!(of("1:9:3", &[100]), Ok((3, vec![3])));
        assert_eq!(of(":", &[7, 5]), Ok((35, vec![7, 5])));
        assert_eq!(of("::2,3", &[7, 5]), Ok((4, vec![4])));
        assert_eq!(of("5:100,:2", &[7, 5]), Ok((4, vec![2, 2])));
        assert_eq!(of("9:", &[7]), Ok((0, vec![0])));
        assert_eq!(of("6", &[7]), Ok((1, vec![])));
        assert_eq!(of("1,2;3,4;1,2", &[7, 5]), Ok((3, vec![3])));
        assert_eq!(of("4;", &[7]), Ok((1, vec![1])));
        let last = u64::MAX.to_string();
        for wrong in ["7", "0,0", "-1", "::0", "1:2:3:4", "a", "9;", &last, &format!("{last};")] {
            assert!(of(wrong, &[7]).is_err(), "{wrong}");
        }
        assert_eq!(of(&format!("2:{last}"), &[7]), Ok((5, vec![5])));
        assert_eq!(of(&format!("{last}:"), &[7]), Ok((0, vec![0])));
    }
}
