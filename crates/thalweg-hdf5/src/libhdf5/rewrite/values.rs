//! Copies the values that only libhdf5 can copy: lists and strings of any length, references, and
//! values in headers.

use std::ffi::c_void;

use hdf5_metno_sys::h5d::{
    H5D_layout_t, H5Dget_create_plist, H5Dget_space, H5Dget_type, H5Dread, H5Dwrite,
};
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_external_count, H5Pget_layout};
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5S_seloper_t, H5Screate, H5Screate_simple, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::{H5Tget_size, H5Treclaim};

use super::dataset::{RewrittenDataset, first_of};
use super::datatype::contents;
use super::{Rewrite, RewriteError};
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::stored::CopiedParts;

/// Bytes of elements that are copied at a time, without the strings and lists that they point to.
const PIECE: u64 = 1 << 20;

impl Rewrite<'_> {
    /// Copies parts of a dataset. The lock is held.
    pub(super) fn values(
        &mut self,
        made: &RewrittenDataset,
        parts: &CopiedParts,
    ) -> Result<(), RewriteError> {
        let shape = &made.form.shape;
        match parts {
            CopiedParts::None => Ok(()),
            CopiedParts::Whole => self.part(made, &vec![0; shape.len()], shape),
            CopiedParts::Chunks(chunk, numbers) => numbers.iter().try_for_each(|&number| {
                let start = first_of(number, shape, chunk);
                let left = shape.iter().zip(&start).map(|(length, at)| length.saturating_sub(*at));
                let count: Vec<u64> = left.zip(chunk).map(|(left, part)| left.min(*part)).collect();
                self.part(made, &start, &count)
            }),
        }
    }

    /// Copies the elements from `start` on, `count` in each dimension. The lock is held.
    fn part(
        &mut self,
        made: &RewrittenDataset,
        start: &[u64],
        count: &[u64],
    ) -> Result<(), RewriteError> {
        let path = &made.form.path;
        // SAFETY: under the lock, with identifiers that are open; the buffer has room for the
        // selected elements, whose size in memory is that of the type.
        unsafe {
            let from = self.open_from(made.from)?;
            let to = self.open_to(made.to)?;
            let make = Id::new(H5Dget_create_plist(from.raw()))?;
            // libhdf5 would open other files itself.
            if H5Pget_layout(make.raw()) == H5D_layout_t::H5D_VIRTUAL
                || H5Pget_external_count(make.raw()) != 0
            {
                let found = "values in other files, as libhdf5 reads it".into();
                return Err(self.malformed(path, found, "values in this file".into()));
            }
            let kind = Id::new(H5Dget_type(from.raw()))?;
            // Strings, lists and references take other bytes in memory than in the file.
            let element = H5Tget_size(kind.raw()) as u64;
            let row = count.iter().skip(1).try_fold(element, |bytes, &n| bytes.checked_mul(n));
            let rows = count.first().copied().unwrap_or(1);
            let room = self.from.size().saturating_mul(8).max(PIECE);
            let Some(row) = row.filter(|&row| row <= room) else {
                let found = format!("rows of {count:?} elements");
                return Err(self.malformed(path, found, "fewer than the file has".into()));
            };
            if row == 0 || rows == 0 {
                return Ok(());
            }
            let step = (PIECE / row).clamp(1, rows);
            let held = contents(&kind, 0)?;
            let source = Id::new(H5Dget_space(from.raw()))?;
            let target = Id::new(H5Dget_space(to.raw()))?;
            let (mut start, mut count) = (start.to_vec(), count.to_vec());
            let mut values = Vec::<u64>::new();
            let mut done = 0;
            while done < rows {
                self.step()?;
                let here = step.min(rows - done);
                if let Some(first) = count.first_mut() {
                    *first = here;
                }
                let space = memory_space(&count)?;
                values.clear();
                values.resize(((row * here) as usize).div_ceil(8), 0);
                let bytes = values.as_mut_ptr().cast::<c_void>();
                select(&source, &start, &count)?;
                select(&target, &start, &count)?;
                let none = H5P_DEFAULT;
                status(H5Dread(from.raw(), kind.raw(), space.raw(), source.raw(), none, bytes))?;
                let elements = count.iter().product::<u64>() as usize;
                let set = if held.references {
                    self.set(&kind, bytes.cast(), elements, 0)
                } else {
                    Ok(())
                };
                let written = set.and_then(|()| {
                    status(H5Dwrite(to.raw(), kind.raw(), space.raw(), target.raw(), none, bytes))
                });
                if held.pointers || held.references {
                    status(H5Treclaim(kind.raw(), space.raw(), none, bytes))?;
                }
                written?;
                done += here;
                if let Some(first) = start.first_mut() {
                    *first += here;
                }
            }
        }
        Ok(())
    }
}

/// The space of elements in memory. The lock is held.
unsafe fn memory_space(count: &[u64]) -> Result<Id, LibraryRefusal> {
    // SAFETY: under the lock; the shape is as long as the call is given.
    Id::new(unsafe {
        if count.is_empty() {
            H5Screate(H5S_class_t::H5S_SCALAR)
        } else {
            H5Screate_simple(count.len() as i32, count.as_ptr(), std::ptr::null())
        }
    })
}

/// Selects elements of a dataset's space, which has as many dimensions. The lock is held.
unsafe fn select(space: &Id, start: &[u64], count: &[u64]) -> Result<(), LibraryRefusal> {
    if count.is_empty() {
        return Ok(());
    }
    let set = H5S_seloper_t::H5S_SELECT_SET;
    let none = std::ptr::null();
    // SAFETY: under the lock, an open space; the caller's promise.
    status(unsafe {
        H5Sselect_hyperslab(space.raw(), set, start.as_ptr(), none, count.as_ptr(), none)
    })
    .map(drop)
}
