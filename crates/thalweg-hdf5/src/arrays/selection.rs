//! Selections of the elements of an array.

use std::ops::Range;

use crate::slab::beyond;

pub use crate::slab::Slab;

/// A selection of the elements of an array, and their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Elements that follow each other in C order. Where chunks divide a dimension other than the
    /// first, they must be whole rows of the first.
    Elements(Range<u64>),
    /// A hyperslab: a [`Slab`] for each dimension. The selected elements form an array whose length
    /// in each dimension is [`Slab::len`].
    Slab(Vec<Slab>),
    /// Single elements by their coordinates, in this order. An element may appear twice.
    Points(Vec<Vec<u64>>),
}

impl Selection {
    /// How many elements of an array of this shape are selected.
    ///
    /// # Errors
    /// What is wrong with the selection, in words.
    pub fn count(&self, shape: &[u64]) -> Result<u64, String> {
        match self {
            Self::All => Ok(shape.iter().product()),
            Self::Elements(range) => match shape.iter().product::<u64>() {
                count if range.start <= range.end && range.end <= count => {
                    Ok(range.end - range.start)
                }
                count => Err(format!(
                    "the elements from {} on and before {} are not among the {count} there are",
                    range.start, range.end
                )),
            },
            Self::Slab(slabs) if slabs.len() != shape.len() => Err(format!(
                "a hyperslab of {} dimensions, of an array of {}",
                slabs.len(),
                shape.len()
            )),
            Self::Slab(slabs) => {
                for (dimension, (slab, length)) in slabs.iter().zip(shape).enumerate() {
                    slab.check(dimension, *length)?;
                }
                Ok(slabs.iter().map(Slab::len).product())
            }
            Self::Points(points) => {
                let inside = |point: &&Vec<u64>| {
                    point.len() == shape.len()
                        && point.iter().zip(shape).all(|(at, length)| at < length)
                };
                match points.iter().find(|point| !inside(point)) {
                    Some(point) => Err(outside(point, shape)),
                    None => Ok(points.len() as u64),
                }
            }
        }
    }
}

/// What is wrong with an element that is not one of an array of this shape.
fn outside(point: &[u64], shape: &[u64]) -> String {
    if point.len() != shape.len() {
        return format!("an element of {} dimensions, of an array of {}", point.len(), shape.len());
    }
    let wrong = point.iter().zip(shape).position(|(at, length)| at >= length).unwrap_or(0);
    beyond(point[wrong], wrong, shape[wrong])
}

#[cfg(test)]
mod tests {
    use super::{Selection, Slab};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_selected_elements(
            start in 0..20_u64, count in 0..6_u64, block in 0..5_u64, apart in 0..4_u64,
            from in 0..60_u64, len in 0..40_u64,
        ) {
            let slab = Slab { start, count, step: (block + apart).max(1), block };
            let all = slab.elements();
            let here: Vec<(u64, u64)> = (0..)
                .zip(&all)
                .filter(|(_, at)| (from..from + len).contains(at))
                .map(|(i, at)| (*at, i))
                .collect();
            for slab in [slab, slab.scaled(1)] {
                let runs = slab.runs(from..from + len);
                let each = |(at, to, n)| (0..n).map(move |i| (at + i, to + i));
                let found: Vec<(u64, u64)> = runs.flat_map(each).collect();
                prop_assert_eq!(&found, &here);
            }
            let span = here.first().zip(here.last()).map(|(first, last)| first.0..last.0 + 1);
            prop_assert_eq!(slab.within(from..from + len), span);
            prop_assert_eq!(slab.first_from(from), all.iter().copied().find(|at| *at >= from));
            let thrice = |at: &u64| [3 * at, 3 * at + 1, 3 * at + 2];
            let scaled: Vec<u64> = all.iter().flat_map(thrice).collect();
            prop_assert_eq!(slab.scaled(3).elements(), scaled);
            let fits = all.last().is_none_or(|last| *last < 40);
            prop_assert_eq!(Selection::Slab(vec![slab]).count(&[40]).is_ok(), fits);
        }
    }

    #[test]
    fn selections_that_make_no_sense_are_refused() {
        let slab = Slab { start: 0, count: 2, step: 1, block: 2 };
        assert!(Selection::Slab(vec![slab]).count(&[9]).is_err(), "blocks that overlap");
        let far = Slab { start: u64::MAX, count: 2, step: u64::MAX, block: 1 };
        assert!(Selection::Slab(vec![far]).count(&[9]).is_err());
        assert!(Selection::Slab(vec![slab]).count(&[9, 9]).is_err(), "too few dimensions");
        assert!(Selection::Points(vec![vec![3, 2]]).count(&[3, 3]).is_err());
        assert_eq!(Selection::Points(vec![vec![2, 2], vec![2, 2]]).count(&[3, 3]), Ok(2));
        assert_eq!(Selection::All.count(&[]), Ok(1));
    }

    #[test]
    fn messages_name_the_place_and_the_dimension() {
        let at = |at: u64| Slab { start: at, count: 1, step: 1, block: 1 };
        let count = |selection: Selection| selection.count(&[9, 180]);
        let beyond = Err("999 is beyond dimension 1, which has 180".to_owned());
        assert_eq!(count(Selection::Slab(vec![at(0), at(999)])), beyond);
        assert_eq!(count(Selection::Points(vec![vec![0, 999]])), beyond);
        let beyond = Err(format!("{} is beyond dimension 0, which has 9", u64::MAX));
        assert_eq!(count(Selection::Slab(vec![at(u64::MAX), at(0)])), beyond);
        assert_eq!(count(Selection::Points(vec![vec![u64::MAX, 0]])), beyond);
    }
}
