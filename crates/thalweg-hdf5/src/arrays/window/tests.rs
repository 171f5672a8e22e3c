#![allow(clippy::unwrap_used, unsafe_code)]

use proptest::prelude::*;

use super::*;
use crate::arrays::row_bands::WindowParts;
use crate::arrays::selection::Slab;
use crate::dtype::Dtype;
use crate::filter::{Filter, Pipeline};
use crate::types::Chunk;

const FILL: u16 = 0xabcd;
const HEAD: u64 = 13;

/// The coordinates of all elements of an array, in C order.
fn places(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |all, &length| {
        all.iter().flat_map(|at| (0..length).map(move |i| [&at[..], &[i]].concat())).collect()
    })
}

fn number(at: &[u64], lengths: &[u64]) -> u64 {
    at.iter().zip(lengths).fold(0, |number, (at, length)| number * length + at)
}

/// A file with an array of big-endian numbers, and the values that a read of it gives.
#[derive(Debug)]
struct StoredArray {
    subject: Subject,
    file: Vec<u8>,
    values: Vec<u16>,
}

impl StoredArray {
    /// An array in one run, or in chunks. A chunk is stored if its bit in `kept` is set. `order`
    /// seeds the order of the chunks in the file.
    fn new(shape: &[u64], chunk: Option<&[u64]>, shuffled: bool, kept: u64, order: u64) -> Self {
        let values: Vec<u16> = (0..shape.iter().product::<u64>()).map(|i| i as u16).collect();
        let mut file = vec![0xff; HEAD as usize];
        let mut values_kept = values.clone();
        let place = match chunk {
            None => {
                values.iter().for_each(|value| file.extend(value.to_be_bytes()));
                ElementPlace::Contiguous(Some(HEAD))
            }
            Some(chunk) => {
                let grid: Vec<u64> =
                    shape.iter().zip(chunk).map(|(length, part)| length.div_ceil(*part)).collect();
                let mut origins: Vec<(u64, Vec<u64>)> = (0..).zip(places(&grid)).collect();
                origins.sort_by_key(|(number, _)| {
                    thalweg_io::store::throttled::splitmix(order ^ *number)
                });
                let mut chunks = Vec::new();
                for (first, origin) in origins {
                    let is_kept = kept >> (first % 64) & 1 == 1;
                    let mut bytes = Vec::new();
                    for inside in places(chunk) {
                        let at: Vec<u64> =
                            (0..shape.len()).map(|d| origin[d] * chunk[d] + inside[d]).collect();
                        // Elements beyond the edge of the array hold garbage.
                        let is_inside = at.iter().zip(shape).all(|(at, length)| at < length);
                        let value =
                            if is_inside { number(&at, shape) as usize } else { usize::MAX };
                        bytes.extend(values.get(value).copied().unwrap_or(0xeeee).to_be_bytes());
                        if let (Some(value), false) = (values_kept.get_mut(value), is_kept) {
                            *value = FILL;
                        }
                    }
                    if !is_kept {
                        continue;
                    }
                    if shuffled {
                        let (high, low): (Vec<u8>, Vec<u8>) =
                            bytes.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
                        bytes = [high, low].concat();
                    }
                    chunks.push(Chunk {
                        first,
                        offset: file.len() as u64,
                        size: bytes.len() as u64,
                        mask: 0,
                    });
                    file.extend(bytes);
                }
                chunks.sort_by_key(|chunk| chunk.first);
                ElementPlace::Chunked(chunk.to_vec(), chunks)
            }
        };
        let filters = if shuffled { vec![Filter::Shuffle(2)] } else { Vec::new() };
        let array = Array {
            shape: shape.to_vec(),
            dtype: Dtype::number('u', 2, true),
            fill: FILL.to_be_bytes().to_vec(),
            place,
            pipeline: Pipeline(filters),
        };
        let subject =
            Subject { file: "file".into(), path: "/array".into(), array: Arc::new(array) };
        Self { subject, file, values: values_kept }
    }

    /// Fills a window as a run does, the last entry first.
    fn filled(&self, mut window: Window) -> Vec<u16> {
        let entries = window.entries.clone();
        let windows = Arc::new(Windows::of(Window::new()));
        let mut worker = WorkerState::default();
        for (place, (_, entry)) in entries.iter().enumerate().rev() {
            let stored = entry.stored.start as usize..entry.stored.end as usize;
            let extent = Extent {
                offset: entry.stored.start,
                ordinal: place as u64,
                bytes: &self.file[stored],
            };
            assert!(window.check_filled().is_err(), "an entry is missing");
            let buffer = windows.buffer(window.target(place));
            worker.fill(&window, place, &extent, buffer, 1 << 20).unwrap();
        }
        // Nothing is fetched of an array without elements, or without stored ones.
        window.check_filled().unwrap();
        let target = window.targets.remove(0);
        windows.buffer(&target);
        target.into_bytes().chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
    }

    fn selected(&self, selection: &Selection, piece: u64) -> Vec<u16> {
        let mut window = Window::new();
        window.add(0, self.subject.clone(), Grid::new(&self.subject.array, selection, piece));
        self.filled(window)
    }
}

prop_compose! {
    fn stored()(
        dimensions in prop::collection::vec((1..8_u64, 1..9_u64), 0..4),
        is_empty in 0..20, is_chunked in any::<bool>(), shuffled in any::<bool>(),
        kept in any::<u64>(), order in any::<u64>(),
    ) -> StoredArray {
        let (mut shape, chunk): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        if let (0, Some(length)) = (is_empty, shape.last_mut()) {
            *length = 0;
        }
        let is_chunked = is_chunked && !shape.is_empty();
        StoredArray::new(&shape, is_chunked.then_some(&chunk), shuffled && is_chunked, kept, order)
    }
}

proptest! {
    #[test]
    fn hyperslabs_and_points_are_numpys(
        stored in stored(),
        picks in prop::collection::vec((0..8_u64, 1..4_u64, 1..4_u64, 0..3_u64), 3),
        points in prop::collection::vec(any::<[u64; 3]>(), 0..20), piece in 1..200_u64,
    ) {
        let shape = &stored.subject.array.shape;
        prop_assert_eq!(&stored.selected(&Selection::All, piece), &stored.values);

        let slab = |(length, (start, count, block, apart)): (&u64, &(u64, u64, u64, u64))| {
            let (start, block, step) = (start % length.max(&1), *block, block + apart);
            let block = block.min(length - start);
            Slab { start, count: (*count).min((length - start - block) / step + 1), step, block }
        };
        let slabs: Vec<Slab> = shape.iter().zip(&picks).map(slab).collect();
        let within = |slab: &Slab| -> Vec<u64> {
            let block = |i| (0..slab.block).map(move |j| slab.start + i * slab.step + j);
            (0..slab.count).flat_map(block).collect()
        };
        let lengths: Vec<u64> = slabs.iter().map(Slab::len).collect();
        let elements = places(&lengths).into_iter().map(|place| {
            let dimensions = place.iter().zip(&slabs);
            let at: Vec<u64> = dimensions.map(|(i, slab)| within(slab)[*i as usize]).collect();
            stored.values[number(&at, shape) as usize]
        });
        let expected: Vec<u16> = elements.collect();
        let selection = Selection::Slab(slabs);
        prop_assert_eq!(selection.count(shape), Ok(expected.len() as u64));
        prop_assert_eq!(stored.selected(&selection, piece), expected, "{:?}", selection);

        let inside = |point: &[u64; 3]| -> Vec<u64> {
            point.iter().zip(shape).map(|(at, length)| at % length).collect()
        };
        let points: Vec<Vec<u64>> =
            points.iter().filter(|_| !shape.contains(&0)).map(inside).collect();
        let value = |at: &Vec<u64>| stored.values[number(at, shape) as usize];
        let expected: Vec<u16> = points.iter().map(value).collect();
        prop_assert_eq!(stored.selected(&Selection::Points(points), piece), expected);
    }

    /// Windows hold every element once, in C order.
    #[test]
    fn windows_make_the_arrays(
        arrays in prop::collection::vec(stored(), 1..4), size in 1..400_u64, piece in 1..200_u64,
    ) {
        let subjects: Vec<Subject> = arrays.iter().map(|stored| stored.subject.clone()).collect();
        let all: Vec<Range<u64>> = subjects.iter().map(|subject| 0..subject.array.len()).collect();
        let mut made = vec![Vec::new(); arrays.len()];
        for parts in WindowParts::new(&subjects, &all, size, piece) {
            for part in parts {
                let Subject { array, .. } = &subjects[part.dataset];
                prop_assert_eq!(made[part.dataset].len() as u64, part.elements.start);
                subjects[part.dataset].check(&part.elements, piece).unwrap();
                let grid = Grid::new(array, &Selection::Elements(part.elements.clone()), piece);
                let mut window = Window::new();
                window.add(0, subjects[part.dataset].clone(), grid);
                made[part.dataset].extend(arrays[part.dataset].filled(window));
            }
        }
        for (made, stored) in made.iter().zip(&arrays) {
            prop_assert_eq!(made, &stored.values);
        }
    }
}

#[test]
fn a_window_beyond_the_budget_is_filled_alone() {
    let window = || {
        let array = StoredArray::new(&[6], Some(&[3]), false, 0b11, 0);
        let grid = Grid::new(&array.subject.array, &Selection::All, 100);
        let mut window = Window::new();
        window.add(0, array.subject, grid);
        Ok(window)
    };
    for (memory, horizon) in [(11, 1), (12, 2)] {
        let windows = Windows::new([window(), window()].into_iter(), memory);
        assert_eq!(windows.horizon(), ordinal(horizon, 0), "{memory} bytes of memory");
    }
}

/// Windows that are delivered while later ones are planned, under many interleavings of the two:
/// `make schedules`.
#[cfg(feature = "schedules")]
#[test]
fn windows_are_delivered_under_all_schedules() {
    use thalweg_io::model::StoreModel;
    use thalweg_io::pool::scope;
    use thalweg_io::sync::explore;
    use thalweg_io::sync::mpsc::sync_channel;

    /// Stored chunks of each window.
    const STORED: [u32; 7] = [0, 2, 0, 0, 1, 0, 2];

    explore(|| {
        let coming = STORED.into_iter().map(|stored| {
            let kept = (1 << stored) - 1;
            let array = StoredArray::new(&[6], Some(&[3]), false, kept, 0);
            let mut window = Window::new();
            window.add(
                0,
                array.subject.clone(),
                Grid::new(&array.subject.array, &Selection::All, 100),
            );
            Ok(window)
        });
        let windows = Arc::new(Windows::new(coming, usize::MAX));
        let fetches = windows.fetches(GapRule::new(&StoreModel::MEMORY), 4096);
        let (sender, receiver) = sync_channel(1);
        scope(|threads| {
            let plan = move || {
                fetches.map(|fetch| fetch.extents.len()).all(|count| sender.send(count).is_ok())
            };
            threads.start("plan", plan).unwrap();
            for stored in STORED {
                let (_, window) = windows.head().unwrap().unwrap();
                assert_eq!(window.entries.len(), stored as usize);
                drop(window);
                let mut filled = 0;
                while filled < stored as usize {
                    filled += receiver.recv().unwrap();
                }
                windows.deliver(|_| Ok(Vec::new())).unwrap();
            }
            assert!(windows.head().unwrap().is_none());
        });
    });
}
