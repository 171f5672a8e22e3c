//! Writes the values whose bytes cannot be copied as they are: lists and strings of any length,
//! references, and values in headers.

use hdf5_metno_sys::h5d::{H5Dget_space, H5Dwrite};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use thalweg_io::{Error, Fault, InFile, Result};

use super::dataset::{RewrittenDataset, first_of};
use super::memory::MemoryForm;
use super::selection::{select, simple};
use super::{Rewrite, malformed, type_in_memory};
use crate::filter::{Contexts, Pipeline};
use crate::libhdf5::handle::{Id, status};
use crate::metadata::dataset::Layout;
use crate::metadata::selection::Selected;
use crate::metadata::stored_object::StoredKind;
use crate::slab::Slab;
use crate::types::Chunk;

/// Bytes of elements that are written at a time, without the strings and lists that they point to.
const PIECE: u64 = 1 << 20;
/// The most bytes of the elements of a chunk.
const MOST_CHUNK: u64 = 1 << 30;

/// A dataset of the new file whose values are written.
struct WrittenDataset {
    path: String,
    dataset: Id,
    /// Its space, for selections.
    space: Id,
    /// The type of its elements in memory.
    memory: Id,
    form: MemoryForm,
    shape: Vec<u64>,
}

impl Rewrite<'_> {
    /// Writes the values of a dataset that are stored in the original.
    pub(super) fn values(&mut self, made: &RewrittenDataset) -> Result<()> {
        let path = &made.form.path;
        let StoredKind::Dataset(header) = self.from.object(made.from, path)?.kind else {
            return Err(malformed(self.store, path, "another object", "a dataset"));
        };
        let written = self.run_locked(path, |rewrite| {
            let dataset = rewrite.open_to(made.to)?;
            let memory = type_in_memory(&header.type_message)?;
            Ok(WrittenDataset {
                path: path.clone(),
                // SAFETY: under the lock, an open dataset.
                space: Id::new(unsafe { H5Dget_space(dataset.raw()) })?,
                dataset,
                form: MemoryForm::of(&header.datatype, &memory)?,
                memory,
                shape: made.form.shape.clone(),
            })
        })?;
        let whole = Part::whole(&written.shape);
        match &header.layout {
            Layout::Compact(bytes) => {
                let bytes = bytes.get(..(whole.len() as usize).saturating_mul(written.form.stored));
                let Some(bytes) = bytes else {
                    let found = "fewer values in the header than the shape has";
                    return Err(malformed(self.store, path, found, "all values"));
                };
                self.write(&written, &whole, bytes)
            }
            Layout::Contiguous(at) => {
                let at = at.saturating_add(self.from.superblock().base);
                self.run(&written, &whole, at)
            }
            Layout::Chunked(grid) => {
                let chunks = self.from.chunks(&header, path)?;
                let pipeline = header.pipeline().of_chunks(chunks.iter().map(|chunk| chunk.mask));
                if let Some(filter) = pipeline.unknown() {
                    return Err(Error::Unsupported {
                        file: self.store.name().clone(),
                        what: format!("{path}: {filter}").into(),
                        advice: "store it without this filter first".into(),
                    });
                }
                let mut contexts = Contexts::default();
                for chunk in chunks {
                    self.step()?;
                    let part = Part::of_chunk(&written.shape, &grid.chunk, chunk.first);
                    let decoded = self.decoded(
                        &written,
                        &pipeline,
                        &grid.chunk,
                        &part,
                        &chunk,
                        &mut contexts,
                    )?;
                    let bytes = part.cut(&decoded, &grid.chunk, written.form.stored);
                    self.write(&written, &part, &bytes)?;
                }
                Ok(())
            }
            Layout::Virtual(_) => Ok(()),
        }
    }

    /// Writes a part whose elements are stored one after the other from an offset on.
    fn run(&mut self, written: &WrittenDataset, part: &Part, at: u64) -> Result<()> {
        let mut at = at;
        for piece in part.pieces(written.form.stored) {
            let mut bytes = vec![0; (piece.len() as usize).saturating_mul(written.form.stored)];
            self.store.read_at(at, &mut bytes)?;
            at += bytes.len() as u64;
            self.write(written, &piece, &bytes)?;
        }
        Ok(())
    }

    /// The elements of a chunk of this shape, of which `part` is inside of the dataset.
    fn decoded(
        &self,
        written: &WrittenDataset,
        pipeline: &Pipeline,
        shape: &[u64],
        part: &Part,
        chunk: &Chunk,
        contexts: &mut Contexts,
    ) -> Result<Vec<u8>> {
        let named = |fault: Fault| {
            let what = format!("chunk {} of {}", chunk.first, written.path);
            fault.in_file(self.store.name(), chunk.offset, what)
        };
        let element = written.form.stored as u64;
        let bytes = shape.iter().try_fold(element, |bytes, &n| bytes.checked_mul(n));
        let Some(bytes) = bytes.filter(|&bytes| bytes.max(chunk.size) <= MOST_CHUNK) else {
            let found = format!("a chunk of {shape:?} elements in {} bytes", chunk.size);
            return Err(named(Fault::new(0, found, format!("at most {MOST_CHUNK} bytes"))));
        };
        let mut stored = vec![0; chunk.size as usize];
        self.store.read_at(chunk.offset, &mut stored)?;
        let needed = part.needed(shape).saturating_mul(element);
        let decoded =
            contexts.undo_needed(pipeline, chunk.mask, &stored, needed as usize, bytes as usize);
        decoded.map(<[u8]>::to_vec).map_err(named)
    }

    /// Writes the elements of a part, as they are stored in the original, piece by piece.
    fn write(&mut self, written: &WrittenDataset, part: &Part, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for piece in part.pieces(written.form.stored) {
            self.step()?;
            let len = (piece.len() as usize).saturating_mul(written.form.stored).min(rest.len());
            let (here, behind) = rest.split_at(len);
            rest = behind;
            self.run_locked(&written.path, |rewrite| {
                let values = rewrite.memory_values(&written.form, &written.path, here)?;
                let space = simple(&piece.count, &piece.count)?;
                if !piece.count.is_empty() {
                    select(&written.space, &piece.selected())?;
                }
                // SAFETY: under the lock, with identifiers that are open; there are as many values
                // as selected elements, of the size of the type in memory.
                status(unsafe {
                    H5Dwrite(
                        written.dataset.raw(),
                        written.memory.raw(),
                        space.raw(),
                        written.space.raw(),
                        H5P_DEFAULT,
                        values.bytes.as_ptr().cast(),
                    )
                })?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// A box of elements of a dataset.
#[derive(Debug, Clone)]
struct Part {
    /// Its first element in each dimension.
    start: Vec<u64>,
    /// Its length in each dimension.
    count: Vec<u64>,
}

impl Part {
    /// All elements of a dataset of this shape.
    fn whole(shape: &[u64]) -> Self {
        Self { start: vec![0; shape.len()], count: shape.to_vec() }
    }

    /// The elements of a chunk that are inside of the dataset. The chunk has this number in the
    /// grid of chunks of the shape `chunk`, in C order.
    fn of_chunk(shape: &[u64], chunk: &[u64], number: u64) -> Self {
        let start = first_of(number, shape, chunk);
        let left = shape.iter().zip(&start).map(|(length, at)| length.saturating_sub(*at));
        let count = left.zip(chunk).map(|(left, part)| left.min(*part)).collect();
        Self { start, count }
    }

    /// How many elements it has.
    fn len(&self) -> u64 {
        self.count.iter().product()
    }

    /// How many elements of a chunk of this shape there are up to the last one of this part.
    fn needed(&self, chunk: &[u64]) -> u64 {
        if self.count.contains(&0) {
            return 0;
        }
        let last = |sum: u64, (&count, &length): (&u64, &u64)| sum * length + (count - 1);
        self.count.iter().zip(chunk).fold(0, last) + 1
    }

    /// The selection of its elements.
    fn selected(&self) -> Selected {
        let slab = |(&start, &count): (&u64, &u64)| Slab::from(start..start + count);
        Selected::Slabs(self.start.iter().zip(&self.count).map(slab).collect())
    }

    /// Its elements out of the bytes of a chunk of this shape, whose first element is its own.
    fn cut(&self, bytes: &[u8], chunk: &[u64], element: usize) -> Vec<u8> {
        let (Some((&row, before)), Some((&full, _))) =
            (self.count.split_last(), chunk.split_last())
        else {
            return bytes.to_vec();
        };
        let rows: u64 = before.iter().product();
        let (row, full) = (row as usize * element, full as usize * element);
        let mut out = Vec::with_capacity(rows as usize * row);
        for number in 0..rows {
            // The place of the row in the part becomes its number in the chunk.
            let mut left = number;
            let mut at = 0;
            let mut stride = 1;
            for (&length, &in_chunk) in before.iter().zip(chunk).rev() {
                at += left % length * stride;
                left /= length;
                stride *= in_chunk;
            }
            let start = at as usize * full;
            out.extend_from_slice(&bytes[start..start + row]);
        }
        out
    }

    /// The part in pieces of whole rows, for elements of this size.
    fn pieces(&self, element: usize) -> impl Iterator<Item = Self> + use<> {
        let row = self.count.iter().skip(1).product::<u64>().saturating_mul(element as u64).max(1);
        let rows = if self.len() == 0 { 0 } else { self.count.first().copied().unwrap_or(1) };
        let step = (PIECE / row).max(1);
        let whole = self.clone();
        (0..rows.div_ceil(step)).map(move |number| {
            let mut piece = whole.clone();
            if let (Some(start), Some(count)) = (piece.start.first_mut(), piece.count.first_mut()) {
                *start += number * step;
                *count = step.min(rows - number * step);
            }
            piece
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Part;

    #[test]
    fn a_chunk_at_the_edge_is_cut() {
        let (shape, chunk) = ([5, 7], [3, 4]);
        // The last chunk holds two rows and three columns of the dataset.
        let part = Part::of_chunk(&shape, &chunk, 3);
        assert_eq!((&part.start[..], &part.count[..]), (&[3, 4][..], &[2, 3][..]));
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!(part.cut(&bytes, &chunk, 2), [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13]);
        assert_eq!(part.needed(&chunk), 4 + 3);
        assert_eq!(Part::whole(&[]).cut(&[7, 8], &[], 2), [7, 8]);
    }

    #[test]
    fn pieces_are_whole_rows() {
        let part = Part { start: vec![10, 0], count: vec![5, 1 << 16] };
        let starts: Vec<(u64, u64)> =
            part.pieces(8).map(|piece| (piece.start[0], piece.count[0])).collect();
        assert_eq!(starts, [(10, 2), (12, 2), (14, 1)]);
        assert_eq!(Part::whole(&[]).pieces(16).count(), 1);
        assert_eq!(Part::whole(&[0, 3]).pieces(16).count(), 0);
    }
}
