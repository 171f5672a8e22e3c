//! Shuffle, a filter of HDF5: the bytes of elements, sorted by significance.
//!
//! ```
//! use thalweg_codec::shuffle;
//!
//! let plain = [1, 10, 2, 20, 3, 30];
//! let mut sorted = Vec::new();
//! shuffle::sort(&plain, 2, &mut sorted);
//! assert_eq!(sorted, [1, 2, 3, 10, 20, 30]);
//! let mut again = [0; 6];
//! shuffle::undo(&sorted, 2, &mut again);
//! assert_eq!(again, plain);
//! ```

/// Undoes the shuffle of elements of `size` bytes, from `sorted` to `out`, which have the same
/// length. Trailing bytes that do not fill an element are copied unchanged.
pub fn undo(sorted: &[u8], size: usize, out: &mut [u8]) {
    let count = sorted.len() / size.max(1);
    let (sorted, rest) = sorted.split_at(count * size);
    let (elements, end) = out.split_at_mut(count * size);
    end.copy_from_slice(rest);
    match size {
        _ if count == 0 => {}
        2 => interleave::<2>(sorted, elements),
        4 => interleave::<4>(sorted, elements),
        8 => interleave::<8>(sorted, elements),
        _ => {
            for (plane, bytes) in sorted.chunks_exact(count).enumerate() {
                elements[plane..]
                    .iter_mut()
                    .step_by(size)
                    .zip(bytes)
                    .for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Undoes the shuffle for an element size that is known at compile time. The compiler vectorises
/// it.
fn interleave<const N: usize>(sorted: &[u8], elements: &mut [u8]) {
    let count = sorted.len() / N;
    let planes: [&[u8]; N] =
        std::array::from_fn(|plane| &sorted[plane * count..(plane + 1) * count]);
    for (i, element) in elements.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *element = std::array::from_fn(|plane| planes[plane][i]);
    }
}

/// Replaces `out` by the shuffled elements of `plain`, each of `size` bytes.
pub fn sort(plain: &[u8], size: usize, out: &mut Vec<u8>) {
    out.clear();
    out.resize(plain.len(), 0);
    let count = plain.len() / size.max(1);
    let (elements, rest) = plain.split_at(count * size);
    let (sorted, end) = out.split_at_mut(count * size);
    end.copy_from_slice(rest);
    match size {
        _ if count == 0 => {}
        2 => spread::<2>(elements, sorted),
        4 => spread::<4>(elements, sorted),
        8 => spread::<8>(elements, sorted),
        _ => {
            for (plane, bytes) in sorted.chunks_exact_mut(count).enumerate() {
                bytes
                    .iter_mut()
                    .zip(elements[plane..].iter().step_by(size))
                    .for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Shuffles elements whose size is known at compile time.
fn spread<const N: usize>(elements: &[u8], sorted: &mut [u8]) {
    let elements = elements.as_chunks::<N>().0;
    for (plane, bytes) in sorted.chunks_exact_mut(elements.len()).enumerate() {
        bytes.iter_mut().zip(elements).for_each(|(to, from)| *to = from[plane]);
    }
}

#[cfg(test)]
mod tests {
    use super::{sort, undo};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_back(
            plain in prop::collection::vec(any::<u8>(), 0..300), size in 1..18_usize,
        ) {
            let count = plain.len() / size;
            let place = |i| i % count.max(1) * size + i / count.max(1);
            let mut sorted: Vec<u8> = (0..size * count).map(|i| plain[place(i)]).collect();
            sorted.extend_from_slice(&plain[size * count..]);
            let mut out = vec![7; plain.len()];
            undo(&sorted, size, &mut out);
            prop_assert_eq!(&out, &plain);
            sort(&plain, size, &mut out);
            prop_assert_eq!(out, sorted);
        }
    }
}
