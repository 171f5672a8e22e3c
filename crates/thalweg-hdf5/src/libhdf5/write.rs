//! Writes groups, attributes, and datasets whose one chunk is compressed already.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, CString, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dwrite_chunk};
use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5F_libver_t, H5F_scope_t, H5Fcreate, H5Fflush};
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::H5Olink;
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_FILE_CREATE, H5P_CLS_GROUP_CREATE, H5P_DEFAULT, H5Pcreate,
    H5Pset_chunk, H5Pset_filter, H5Pset_libver_bounds, H5Pset_obj_track_times,
};
use hdf5_metno_sys::h5s::{H5S_class_t, H5Screate, H5Screate_simple};
use hdf5_metno_sys::h5t::{
    H5T_C_S1, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE,
    H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE, H5Tcopy,
    H5Tenum_create, H5Tenum_insert, H5Tset_size,
};
use hdf5_metno_sys::h5z::H5Z_FLAG_OPTIONAL;
use thalweg_io::{Error, Result};

use super::handle::{Id, LibraryRefusal, access, locked, status};

pub use rows::{RowsSpec, RowsWriter};
pub use vector::{Vector, VectorSpec};

#[cfg(test)]
mod layouts;
mod rows;
mod table;
#[cfg(test)]
mod variable;
mod vector;

/// A file that is being written. Errors call it `name`.
#[derive(Debug)]
pub struct Hdf5Writer {
    id: Id,
    scalar: Id,
    /// The property list of new groups. Times are not stored, so the same content gives the same
    /// bytes whenever it is written.
    groups: Id,
    name: Arc<str>,
}

/// A group of a file that is being written.
#[derive(Debug)]
pub struct NewGroup(Id);

/// A type of stored numbers, which are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are what they are called")]
pub enum StoredNumber {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl StoredNumber {
    fn id(self) -> hid_t {
        match self {
            Self::I8 => *H5T_STD_I8LE,
            Self::I16 => *H5T_STD_I16LE,
            Self::I32 => *H5T_STD_I32LE,
            Self::I64 => *H5T_STD_I64LE,
            Self::U8 => *H5T_STD_U8LE,
            Self::U16 => *H5T_STD_U16LE,
            Self::U32 => *H5T_STD_U32LE,
            Self::U64 => *H5T_STD_U64LE,
            Self::F32 => *H5T_IEEE_F32LE,
            Self::F64 => *H5T_IEEE_F64LE,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// An enumeration with codes of one byte, for attributes.
#[derive(Debug)]
pub struct Enumeration(Id);

/// A signal in its stored form.
#[derive(Debug, Clone, Copy)]
pub struct StoredSignal<'a> {
    /// The number of samples.
    pub len: u64,
    /// The number and client data of the filter that was applied, if any.
    pub filter: Option<(i32, &'a [u32])>,
    /// The stored bytes of the one chunk.
    pub chunk: &'a [u8],
}

impl Hdf5Writer {
    /// Starts a file at `path`, and replaces the file that is there. Errors call it `name`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, name: &Arc<str>) -> Result<Self> {
        Self::bounded(path, name, None)
    }

    /// Starts a file for releases of libhdf5: 1.10 and later, which find chunks faster, if
    /// `is_latest` is set; else all.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_for(path: &Path, name: &Arc<str>, is_latest: bool) -> Result<Self> {
        // Formats newer than that of 1.10 bring nothing here, and many programs cannot read them.
        let latest = H5F_libver_t::H5F_LIBVER_V110;
        let low = if is_latest { latest } else { H5F_libver_t::H5F_LIBVER_EARLIEST };
        Self::bounded(path, name, Some((low, latest)))
    }

    fn bounded(
        path: &Path,
        name: &Arc<str>,
        bounds: Option<(H5F_libver_t, H5F_libver_t)>,
    ) -> Result<Self> {
        let at = c_string(path.as_os_str().as_bytes(), name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with a path that ends with NUL.
            unsafe {
                let access = access()?;
                if let Some((low, high)) = bounds {
                    status(H5Pset_libver_bounds(access.raw(), low, high))?;
                }
                let (file, groups) =
                    (untimed(*H5P_CLS_FILE_CREATE)?, untimed(*H5P_CLS_GROUP_CREATE)?);
                let id = Id::new(H5Fcreate(at.as_ptr(), H5F_ACC_TRUNC, file.raw(), access.raw()))?;
                Ok((id, Id::new(H5Screate(H5S_class_t::H5S_SCALAR))?, groups))
            }
        });
        let (id, scalar, groups) = made.map_err(|refused: LibraryRefusal| failed(name, refused))?;
        Ok(Self { id, scalar, groups, name: name.clone() })
    }

    /// Makes a group in another, or in the root.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name exists already.
    pub fn group(&self, parent: Option<&NewGroup>, name: &str) -> Result<NewGroup> {
        let name = self.c_string(name)?;
        let parent = self.at(parent);
        let made = locked(|| {
            // SAFETY: under the lock, with an open parent and a name that ends with NUL.
            Id::new(unsafe {
                H5Gcreate2(parent, name.as_ptr(), H5P_DEFAULT, self.groups.raw(), H5P_DEFAULT)
            })
        });
        made.map(NewGroup).map_err(|refused| self.failed(refused))
    }

    /// Adds a hard link to a group.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name exists already.
    pub fn link(&self, group: &NewGroup, parent: &NewGroup, name: &str) -> Result<()> {
        let name = self.c_string(name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with open groups and a name that ends with NUL.
            status(unsafe {
                H5Olink(group.0.raw(), parent.0.raw(), name.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
            })
        });
        made.map(drop).map_err(|refused| self.failed(refused))
    }

    /// Writes a numeric attribute of a group, or of the root. `bytes` are little-endian.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn number(
        &self,
        group: Option<&NewGroup>,
        name: &str,
        kind: StoredNumber,
        bytes: &[u8],
    ) -> Result<()> {
        locked(|| self.attribute(self.at(group), name, kind.id(), kind.bytes(), bytes))
    }

    /// Writes a string attribute of a group, or of the root.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for a string with a NUL in it.
    pub fn text(&self, group: Option<&NewGroup>, name: &str, text: &str) -> Result<()> {
        self.text_at(self.at(group), name, text)
    }

    fn text_at(&self, at: hid_t, name: &str, text: &str) -> Result<()> {
        let text = self.c_string(text)?;
        let bytes = text.as_bytes_with_nul();
        locked(|| {
            let kind = string_of(bytes.len()).map_err(|refused| self.failed(refused))?;
            self.attribute(at, name, kind.raw(), bytes.len(), bytes)
        })
    }

    /// Writes an enumeration attribute of a group, with this code.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn code(&self, group: &NewGroup, name: &str, kind: &Enumeration, code: u8) -> Result<()> {
        locked(|| self.attribute(group.0.raw(), name, kind.0.raw(), 1, &[code]))
    }

    /// An enumeration whose codes number the labels from zero. It has at most 256 labels; more are
    /// left out.
    ///
    /// # Errors
    /// [`Error::Io`] for a label that appears twice.
    pub fn enumeration(&self, labels: &[String]) -> Result<Enumeration> {
        let names: Vec<CString> =
            labels.iter().map(|label| self.c_string(label)).collect::<Result<_>>()?;
        let made = locked(|| {
            // SAFETY: under the lock, with names that end with NUL and codes of one byte, as the
            // base type has.
            unsafe {
                let kind = Id::new(H5Tenum_create(*H5T_STD_U8LE))?;
                for (code, name) in (0..=u8::MAX).zip(&names) {
                    status(H5Tenum_insert(kind.raw(), name.as_ptr(), (&raw const code).cast()))?;
                }
                Ok(kind)
            }
        });
        made.map(Enumeration).map_err(|refused| self.failed(refused))
    }

    /// Writes an attribute of one element. The lock is held; `size` is that of the type.
    fn attribute(
        &self,
        at: hid_t,
        name: &str,
        kind: hid_t,
        size: usize,
        bytes: &[u8],
    ) -> Result<()> {
        if bytes.len() != size {
            return Err(Error::Usage(
                format!("{}: {} bytes for {name}, not {size}", self.name, bytes.len()).into(),
            ));
        }
        let name = self.c_string(name)?;
        // SAFETY: under the lock, with an open object, and as many bytes as the type takes.
        let made = unsafe {
            Id::new(H5Acreate2(
                at,
                name.as_ptr(),
                kind,
                self.scalar.raw(),
                H5P_DEFAULT,
                H5P_DEFAULT,
            ))
            .and_then(|made| status(H5Awrite(made.raw(), kind, bytes.as_ptr().cast())))
        };
        made.map(drop).map_err(|refused| self.failed(refused))
    }

    /// Writes a dataset of 16-bit samples.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn signal(&self, group: &NewGroup, name: &str, stored: StoredSignal<'_>) -> Result<()> {
        let name = self.c_string(name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with open objects; one dimension, so one number each; the
            // chunk has as many bytes as the call is given.
            unsafe {
                let space = Id::new(H5Screate_simple(1, &raw const stored.len, std::ptr::null()))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                if stored.len > 0 {
                    status(H5Pset_chunk(make.raw(), 1, &raw const stored.len))?;
                    if let Some((filter, values)) = stored.filter {
                        // Optional, because the library itself does not have the filter.
                        let optional: c_uint = H5Z_FLAG_OPTIONAL;
                        status(H5Pset_filter(
                            make.raw(),
                            filter,
                            optional,
                            values.len(),
                            values.as_ptr(),
                        ))?;
                    }
                }
                let parent = group.0.raw();
                let kind = *H5T_STD_I16LE;
                let made = Id::new(H5Dcreate2(
                    parent,
                    name.as_ptr(),
                    kind,
                    space.raw(),
                    H5P_DEFAULT,
                    make.raw(),
                    H5P_DEFAULT,
                ))?;
                if stored.len > 0 {
                    let first = 0;
                    let bytes = stored.chunk;
                    status(H5Dwrite_chunk(
                        made.raw(),
                        H5P_DEFAULT,
                        0,
                        &raw const first,
                        bytes.len(),
                        bytes.as_ptr().cast(),
                    ))?;
                }
                Ok(())
            }
        });
        made.map_err(|refused| self.failed(refused))
    }

    /// Writes what the library holds in memory, and closes the file.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(self) -> Result<()> {
        // SAFETY: under the lock, an open file.
        let flushed =
            locked(|| status(unsafe { H5Fflush(self.id.raw(), H5F_scope_t::H5F_SCOPE_GLOBAL) }));
        flushed.map(drop).map_err(|refused| self.failed(refused))
    }

    /// The identifier of a group, or of the file for the root.
    fn at(&self, group: Option<&NewGroup>) -> hid_t {
        group.map_or(self.id.raw(), |group| group.0.raw())
    }

    fn c_string(&self, text: &str) -> Result<CString> {
        c_string(text.as_bytes(), &self.name)
    }

    fn failed(&self, refused: LibraryRefusal) -> Error {
        failed(&self.name, refused)
    }
}

/// The type of strings of `bytes` bytes, with the NUL at their end. The lock is held.
fn string_of(bytes: usize) -> Result<Id, LibraryRefusal> {
    // SAFETY: under the lock; the copy is ours.
    unsafe {
        Id::new(H5Tcopy(*H5T_C_S1))
            .and_then(|kind| status(H5Tset_size(kind.raw(), bytes)).map(|_| kind))
    }
}

/// A property list of a class, for new objects without times.
///
/// # Safety
/// The lock is held, and the objects of the class can have times.
unsafe fn untimed(class: hid_t) -> Result<Id, LibraryRefusal> {
    // SAFETY: under the lock, a list that is ours.
    unsafe {
        let properties = Id::new(H5Pcreate(class))?;
        status(H5Pset_obj_track_times(properties.raw(), 0)).map(|_| properties)
    }
}

fn c_string(bytes: &[u8], file: &Arc<str>) -> Result<CString> {
    CString::new(bytes).map_err(|_| {
        Error::Usage(format!("{file}: {bytes:?} has a NUL, which HDF5 cannot hold").into())
    })
}

fn failed(file: &Arc<str>, refused: LibraryRefusal) -> Error {
    Error::io(file, "writing HDF5 to", std::io::Error::other(refused.0))
}

/// Whether a text can be the name of a group or an attribute: it is not empty or `.`, and has no
/// slash and no NUL.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text != "."
        && !text.contains('/')
        && CStr::from_bytes_until_nul(text.as_bytes()).is_err()
}
