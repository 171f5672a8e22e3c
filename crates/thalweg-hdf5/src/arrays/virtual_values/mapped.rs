//! The elements of a mapping in some rows of a virtual dataset, and those of the source that they
//! correspond to.

use std::ops::Range;

use crate::arrays::selection::Selection;
use crate::mapping::Chosen;
use crate::slab::Slab;

/// The elements of a mapping that lie in some rows of its virtual dataset.
pub(super) struct MappedElements {
    /// Their numbers in the mapping; they follow each other, or are single ones.
    numbers: Numbers,
    /// Their places among the elements of the rows.
    pub(super) places: Vec<(u64, u64)>,
}

enum Numbers {
    Run(Range<u64>),
    Single(Vec<u64>),
}

impl MappedElements {
    pub(super) fn of(target: &Chosen, shape: &[u64], rows: &Range<u64>) -> Self {
        let row: u64 = shape.iter().skip(1).product();
        let Some(slabs) = target.slabs(shape) else {
            let Chosen::Points(points) = target else { return Self::none() };
            let mut numbers = Vec::new();
            let mut places = Vec::new();
            for (number, point) in (0..).zip(points) {
                let flat = point.iter().zip(shape).fold(0, |flat, (at, length)| flat * length + at);
                if point.first().is_some_and(|at| rows.contains(at)) {
                    numbers.push(number);
                    places.push((flat - rows.start * row, 1));
                }
            }
            return Self { numbers: Numbers::Single(numbers), places };
        };
        let Some((outer, inner)) = slabs.split_first() else {
            // A single element.
            return Self { numbers: Numbers::Run(0..1), places: vec![(0, 1)] };
        };
        let mut numbers: Option<Range<u64>> = None;
        for (_, place, count) in outer.runs(rows.clone()) {
            let start = numbers.map_or(place, |numbers| numbers.start);
            numbers = Some(start..place + count);
        }
        let Some(Range { start, end }) = numbers else { return Self::none() };
        let in_row: u64 = inner.iter().map(Slab::len).product();
        let mut places = Vec::new();
        places_of(&slabs, shape, rows.clone(), 0, &mut places);
        Self { numbers: Numbers::Run(start * in_row..end * in_row), places }
    }

    fn none() -> Self {
        Self { numbers: Numbers::Run(0..0), places: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The selections of the elements with these numbers of a source of this shape.
    pub(super) fn selections(
        &self,
        source: &Chosen,
        shape: &[u64],
    ) -> Result<Vec<(Selection, u64)>, String> {
        let of_points = |points: Vec<Vec<u64>>| {
            let count = points.len() as u64;
            vec![(Selection::Points(points), count)]
        };
        let short = || format!("{shape:?} elements");
        if let Chosen::Points(points) = source {
            let point = |number: u64| points.get(number as usize).cloned().ok_or_else(short);
            return Ok(of_points(match &self.numbers {
                Numbers::Run(run) => run.clone().map(point).collect::<Result<_, _>>()?,
                Numbers::Single(numbers) => {
                    numbers.iter().map(|&number| point(number)).collect::<Result<_, _>>()?
                }
            }));
        }
        let slabs = source.slabs(shape).unwrap_or_default();
        let lengths: Vec<u64> = slabs.iter().map(Slab::len).collect();
        let all = lengths.iter().try_fold(1u64, |all, &length| all.checked_mul(length));
        let all = all.ok_or_else(short)?;
        match &self.numbers {
            Numbers::Run(run) if run.end > all => Err(short()),
            Numbers::Run(run) if slabs.is_empty() => {
                Ok(vec![(Selection::All, run.end - run.start)])
            }
            Numbers::Run(run) => {
                let mut selections = Vec::new();
                boxes(&slabs, run.clone(), &mut Vec::new(), &mut selections);
                Ok(selections)
            }
            Numbers::Single(numbers) if numbers.iter().any(|&number| number >= all) => Err(short()),
            Numbers::Single(numbers) => {
                let point = |&number: &u64| {
                    let mut left = number;
                    let mut point: Vec<u64> = slabs
                        .iter()
                        .rev()
                        .map(|slab| {
                            let place = left % slab.len();
                            left /= slab.len();
                            slab.start + place / slab.block * slab.step + place % slab.block
                        })
                        .collect();
                    point.reverse();
                    point
                };
                Ok(of_points(numbers.iter().map(point).collect()))
            }
        }
    }
}

/// Adds the runs of elements that slabs select among the `rows` of an array of this shape. The
/// first row begins at the place `from`. A run that follows the one before extends it.
fn places_of(
    slabs: &[Slab],
    shape: &[u64],
    rows: Range<u64>,
    from: u64,
    places: &mut Vec<(u64, u64)>,
) {
    let Some((outer, inner)) = slabs.split_first() else { return };
    let inner_shape = shape.get(1..).unwrap_or_default();
    let row: u64 = inner_shape.iter().product();
    let is_whole = inner.iter().zip(inner_shape).all(|(slab, &length)| slab.is_whole(length));
    for (at, _, count) in outer.runs(rows.clone()) {
        let at = from + (at - rows.start) * row;
        if !is_whole {
            let length = inner_shape.first().copied().unwrap_or(0);
            for row_number in 0..count {
                places_of(inner, inner_shape, 0..length, at + row_number * row, places);
            }
            continue;
        }
        match places.last_mut() {
            Some((last, len)) if *last + *len == at => *len += count * row,
            _ => places.push((at, count * row)),
        }
    }
}

/// Adds the slabs that hold a run of the elements of these slabs, in C order. `outer` are the slabs
/// of the dimensions before.
fn boxes(
    slabs: &[Slab],
    run: Range<u64>,
    outer: &mut Vec<Slab>,
    selections: &mut Vec<(Selection, u64)>,
) {
    let Range { mut start, end } = run;
    if start >= end {
        return;
    }
    let Some((slab, inner)) = slabs.split_first() else {
        selections.push((Selection::Slab(outer.clone()), 1));
        return;
    };
    let step: u64 = inner.iter().map(Slab::len).product();
    let part_of = |place: u64,
                   run: Range<u64>,
                   outer: &mut Vec<Slab>,
                   selections: &mut Vec<(Selection, u64)>| {
        outer.extend(slab.parts(place..place + 1));
        boxes(inner, run, outer, selections);
        outer.pop();
    };
    // The rest of the first place, all of the places between, and the begin of the last.
    if !start.is_multiple_of(step) {
        let place = start / step;
        let until = end.min((place + 1) * step);
        part_of(place, start % step..until - place * step, outer, selections);
        start = until;
    }
    let whole = end / step;
    if start / step < whole {
        for part in slab.parts(start / step..whole) {
            let all = outer.iter().chain([&part]).chain(inner).copied().collect();
            selections.push((Selection::Slab(all), part.len() * step));
        }
    }
    if start <= whole * step && whole * step < end {
        part_of(whole, 0..end - whole * step, outer, selections);
    }
}
