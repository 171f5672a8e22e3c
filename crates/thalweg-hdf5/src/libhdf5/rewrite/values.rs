//! Copies the values that only libhdf5 can copy: lists and strings of any length, references, and
//! values in headers.

use std::ffi::c_void;

use hdf5_metno_sys::h5d::{H5Dget_space, H5Dget_type, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_class_t, H5Screate, H5Screate_simple};
use hdf5_metno_sys::h5t::{H5Tget_size, H5Treclaim};
use thalweg_io::Error;

use super::dataset::{RewrittenDataset, select_rows};
use super::datatype::contents;
use super::{Rewrite, RewriteError};
use crate::libhdf5::handle::{Id, status};

/// Bytes of elements that are copied at a time, without the strings and lists that they point to.
const PIECE: u64 = 1 << 20;

impl Rewrite<'_> {
    /// Copies the values of a dataset. The lock is held.
    pub(super) fn values(&mut self, made: &RewrittenDataset) -> Result<(), RewriteError> {
        let form = &made.form;
        let rows = form.shape.first().copied().unwrap_or(1);
        // Strings, lists and references take other bytes in memory than in the file.
        // SAFETY: under the lock, an open dataset.
        let element = unsafe {
            let stored = Id::new(H5Dget_type(self.open_from(made.from)?.raw()))?;
            H5Tget_size(stored.raw()) as u64
        };
        let elements = form.shape.iter().product::<u64>();
        let Some(bytes) = elements.checked_mul(element) else {
            let found = format!("{elements} elements of {element} bytes");
            return Err(self.malformed(&form.path, found, "fewer".into()));
        };
        if bytes == 0 {
            return Ok(());
        }
        let row = bytes / rows;
        let step = (PIECE / row.max(1)).clamp(1, rows);
        let room = self.from.size().saturating_mul(8).max(PIECE);
        if row * step > room {
            return Err(self.malformed(
                &form.path,
                format!("rows of {row} bytes"),
                "fewer than the file has".into(),
            ));
        }
        self.copy(made, rows, step, row)
    }

    fn copy(
        &mut self,
        made: &RewrittenDataset,
        rows: u64,
        step: u64,
        row: u64,
    ) -> Result<(), RewriteError> {
        let form = &made.form;
        let mut values = Vec::<u64>::new();
        // SAFETY: under the lock, with identifiers that are open; the buffer has room for the
        // selected elements, whose size in memory is that of the type.
        unsafe {
            let from = self.open_from(made.from)?;
            let to = self.open_to(made.to)?;
            let kind = Id::new(H5Dget_type(from.raw()))?;
            let held = contents(&kind, 0)?;
            let (there, then) =
                (Id::new(H5Dget_space(from.raw()))?, Id::new(H5Dget_space(to.raw()))?);
            let mut at = 0;
            while at < rows {
                self.check_cancelled().map_err(|_: Error| Error::Cancelled)?;
                let here = step.min(rows - at);
                let mut shape = form.shape.clone();
                if let Some(first) = shape.first_mut() {
                    *first = here;
                }
                let space = if shape.is_empty() {
                    Id::new(H5Screate(H5S_class_t::H5S_SCALAR))?
                } else {
                    Id::new(H5Screate_simple(shape.len() as i32, shape.as_ptr(), std::ptr::null()))?
                };
                values.clear();
                values.resize(((row * here) as usize).div_ceil(8), 0);
                let bytes = values.as_mut_ptr().cast::<c_void>();
                let from_space = select_rows(&there, &form.shape, at, here)?;
                let to_space = select_rows(&then, &form.shape, at, here)?;
                status(H5Dread(
                    from.raw(),
                    kind.raw(),
                    space.raw(),
                    from_space,
                    H5P_DEFAULT,
                    bytes,
                ))?;
                let count = shape.iter().product::<u64>() as usize;
                let set =
                    if held.references { self.set(&kind, bytes.cast(), count, 0) } else { Ok(()) };
                let written = set.and_then(|()| {
                    status(H5Dwrite(
                        to.raw(),
                        kind.raw(),
                        space.raw(),
                        to_space,
                        H5P_DEFAULT,
                        bytes,
                    ))
                });
                if held.pointers || held.references {
                    status(H5Treclaim(kind.raw(), space.raw(), H5P_DEFAULT, bytes))?;
                }
                written?;
                at += here;
            }
        }
        Ok(())
    }
}
