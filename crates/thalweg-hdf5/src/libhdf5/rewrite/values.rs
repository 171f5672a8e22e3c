//! Writes the values whose bytes cannot be copied as they are: lists and strings of any length,
//! references, and values in headers.

use hdf5_metno_sys::h5d::{H5Dget_space, H5Dwrite};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use thalweg_io::{Error, Fault, InFile, Result};

use super::dataset::RewrittenDataset;
use super::memory::MemoryForm;
use super::selection::{select, simple};
use super::{Rewrite, malformed, type_in_memory};
use crate::filter::{Contexts, Pipeline};
use crate::grid::{Area, RepackGrid};
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
        let all = whole(&written.shape);
        match &header.layout {
            Layout::Compact(bytes) => {
                let bytes = bytes.get(..(all.len() as usize).saturating_mul(written.form.stored));
                let Some(bytes) = bytes else {
                    let found = "fewer values in the header than the shape has";
                    return Err(malformed(self.store, path, found, "all values"));
                };
                self.write(&written, &all, bytes)
            }
            Layout::Contiguous(at) => {
                let at = at.saturating_add(self.from.superblock().base);
                self.run(&written, &all, at)
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
                let tiles = RepackGrid::chunks(&written.shape, &grid.chunk, written.form.stored);
                let mut contexts = Contexts::default();
                for chunk in chunks {
                    self.step()?;
                    let decoded =
                        self.decoded(&written, &pipeline, &tiles, &chunk, &mut contexts)?;
                    let inside = tiles.inside(chunk.first, &decoded);
                    self.write(&written, &tiles.area(chunk.first), &inside)?;
                }
                Ok(())
            }
            Layout::Virtual(_) => Ok(()),
        }
    }

    /// Writes a part whose elements are stored one after the other from an offset on.
    fn run(&mut self, written: &WrittenDataset, part: &Area, at: u64) -> Result<()> {
        let mut at = at;
        for piece in part.pieces(written.form.stored) {
            let mut bytes = vec![0; (piece.len() as usize).saturating_mul(written.form.stored)];
            self.store.read_at(at, &mut bytes)?;
            at += bytes.len() as u64;
            self.write(written, &piece, &bytes)?;
        }
        Ok(())
    }

    /// The elements of a chunk of a grid of chunks.
    fn decoded(
        &self,
        written: &WrittenDataset,
        pipeline: &Pipeline,
        tiles: &RepackGrid,
        chunk: &Chunk,
        contexts: &mut Contexts,
    ) -> Result<Vec<u8>> {
        let named = |fault: Fault| {
            let what = format!("chunk {} of {}", chunk.first, written.path);
            fault.in_file(self.store.name(), chunk.offset, what)
        };
        let shape = tiles.tile();
        let element = written.form.stored as u64;
        let bytes = shape.iter().try_fold(element, |bytes, &n| bytes.checked_mul(n));
        let Some(bytes) = bytes.filter(|&bytes| bytes.max(chunk.size) <= MOST_CHUNK) else {
            let found = format!("a chunk of {shape:?} elements in {} bytes", chunk.size);
            return Err(named(Fault::new(0, found, format!("at most {MOST_CHUNK} bytes"))));
        };
        let mut stored = vec![0; chunk.size as usize];
        self.store.read_at(chunk.offset, &mut stored)?;
        let needed = tiles.needed_bytes(chunk.first) as usize;
        let decoded = contexts.undo_needed(pipeline, chunk.mask, &stored, needed, bytes as usize);
        decoded.map(<[u8]>::to_vec).map_err(named)
    }

    /// Writes the elements of a part, as they are stored in the original, piece by piece.
    fn write(&mut self, written: &WrittenDataset, part: &Area, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for piece in part.pieces(written.form.stored) {
            self.step()?;
            let len = (piece.len() as usize).saturating_mul(written.form.stored).min(rest.len());
            let (here, behind) = rest.split_at(len);
            rest = behind;
            self.run_locked(&written.path, |rewrite| {
                let values = rewrite.memory_values(&written.form, &written.path, here)?;
                let space = simple(&piece.extent, &piece.extent)?;
                if !piece.extent.is_empty() {
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

/// The elements of a dataset of this shape.
fn whole(shape: &[u64]) -> Area {
    Area { start: vec![0; shape.len()], extent: shape.to_vec() }
}

impl Area {
    /// How many elements it has.
    fn len(&self) -> u64 {
        self.extent.iter().product()
    }

    /// The selection of its elements.
    fn selected(&self) -> Selected {
        let slab = |(&start, &count): (&u64, &u64)| Slab::from(start..start + count);
        Selected::Slabs(self.start.iter().zip(&self.extent).map(slab).collect())
    }

    /// The part in pieces of whole rows, for elements of this size.
    fn pieces(&self, element: usize) -> impl Iterator<Item = Self> + use<> {
        let row = self.extent.iter().skip(1).product::<u64>().saturating_mul(element as u64).max(1);
        let rows = if self.len() == 0 { 0 } else { self.extent.first().copied().unwrap_or(1) };
        let step = (PIECE / row).max(1);
        let whole = self.clone();
        (0..rows.div_ceil(step)).map(move |number| {
            let mut piece = whole.clone();
            if let (Some(start), Some(count)) = (piece.start.first_mut(), piece.extent.first_mut())
            {
                *start += number * step;
                *count = step.min(rows - number * step);
            }
            piece
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Area, whole};

    #[test]
    fn pieces_are_whole_rows() {
        let part = Area { start: vec![10, 0], extent: vec![5, 1 << 16] };
        let starts: Vec<(u64, u64)> =
            part.pieces(8).map(|piece| (piece.start[0], piece.extent[0])).collect();
        assert_eq!(starts, [(10, 2), (12, 2), (14, 1)]);
        assert_eq!(whole(&[]).pieces(16).count(), 1);
        assert_eq!(whole(&[0, 3]).pieces(16).count(), 0);
    }
}
