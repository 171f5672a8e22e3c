//! Rewrites a file: copies its groups, links, attributes, types and datasets to another file, and
//! finds places for the values.
//!
//! libhdf5 makes everything from its own description of the original, so the new file is sound
//! whatever the bytes of the original are. References are set to the copies of the objects that
//! they name.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

mod attribute;
mod dataset;
mod datatype;
mod link;
mod reference;
mod values;

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_uint};
use std::sync::Arc;

use hdf5_metno_sys::h5ac::{H5AC__CURR_CACHE_CONFIG_VERSION, H5AC_cache_config_t};
use hdf5_metno_sys::h5f::{
    H5F_LIBVER_LATEST, H5F_libver_t, H5F_scope_t, H5Fflush, H5Fget_create_plist, H5Fget_info2,
};
use hdf5_metno_sys::h5g::{H5Gcreate2, H5Gget_create_plist};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type, hid_t};
use hdf5_metno_sys::h5o::{
    H5O_INFO_BASIC, H5O_info2_t, H5Oget_comment, H5Oget_info3, H5Oopen_by_token,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_GROUP_CREATE, H5P_DEFAULT, H5Pcreate, H5Pget_attr_creation_order,
    H5Pget_attr_phase_change, H5Pget_link_creation_order, H5Pget_link_phase_change,
    H5Pget_mdc_config, H5Pget_obj_track_times, H5Pget_sizes, H5Pget_userblock,
    H5Pset_attr_creation_order, H5Pset_attr_phase_change, H5Pset_libver_bounds,
    H5Pset_link_creation_order, H5Pset_link_phase_change, H5Pset_mdc_config,
    H5Pset_meta_block_size, H5Pset_obj_track_times,
};
use thalweg_io::control::Control;
use thalweg_io::{Error, Result};

use super::allowance;
use super::driver::DriverFile;
use super::file::{File, address, token};
use super::handle::{Id, LibraryRefusal, access, locked, status};

use crate::stored::{DatasetForm, TargetStorage, ValueStorage};
pub(crate) use dataset::RewrittenDataset;
#[allow(deprecated, reason = "old files have comments")]
use hdf5_metno_sys::h5o::H5Oset_comment;

/// The version of libhdf5 whose indexes and headers a new file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LibraryVersion {
    /// The version that the superblock of the original shows.
    #[default]
    Keep,
    /// Every libhdf5 can read the file.
    Earliest,
    /// libhdf5 1.8 and newer can read the file.
    V18,
    /// libhdf5 1.10 and newer can read the file. Chunks are found by arrays, not trees.
    V110,
}

/// Why a step of a rewrite fails: the library refuses a call, or there is a complete error.
enum RewriteError {
    Refused(LibraryRefusal),
    Complete(Error),
}

impl From<LibraryRefusal> for RewriteError {
    fn from(refused: LibraryRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl From<Error> for RewriteError {
    fn from(error: Error) -> Self {
        Self::Complete(error)
    }
}

/// How the dataset at an address is stored, and how its copy is to be stored. Errors call the
/// dataset by its path.
pub(crate) type Plan<'a> = dyn FnMut(u64, &str) -> Result<(DatasetForm, TargetStorage)> + 'a;

/// An object of the original and its copy, by the addresses of their headers.
#[derive(Debug)]
struct CopiedObject {
    from: u64,
    to: u64,
    path: String,
}

/// A new file that is made from another.
#[derive(Debug)]
pub(crate) struct Rewrite<'a> {
    from: &'a File,
    sink: Arc<DriverFile>,
    to: Id,
    /// The earliest version whose structures the new file may have.
    low: H5F_libver_t,
    /// The address of each copy, by the address of its original.
    copies: HashMap<u64, u64>,
    /// The objects in the order in which they were copied.
    made: Vec<CopiedObject>,
    user_block: u64,
    cleared: u64,
    /// Zeros that the library gets in place of the bytes of chunks, which are written later.
    blank: Vec<u8>,
    control: Control,
}

/// The least and the most bytes of the file that the library allocates for metadata at a time.
const METADATA_BLOCKS: (u64, u64) = (2 << 10, 1 << 20);

/// Bytes of the new file's metadata that the library keeps in memory.
const METADATA_CACHE: usize = 16 << 20;

/// The most levels of nested types that are copied.
const MOST_TYPE_LEVELS: usize = 32;

/// The longest comment that is copied, in bytes.
const MOST_COMMENT: usize = 1 << 16;

impl<'a> Rewrite<'a> {
    /// Starts a new file with the creation properties of `from`. `out` must be empty. `metadata` is
    /// the approximate size of the chunk indexes in bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; what libhdf5 refuses.
    pub(crate) fn begin(
        from: &'a File,
        out: std::fs::File,
        name: &Arc<str>,
        version: LibraryVersion,
        metadata: u64,
        control: &Control,
    ) -> Result<Self> {
        let sink = Arc::new(DriverFile::new(out, name.clone()));
        let mut address_bytes = 0;
        let mut length_bytes = 0;
        let begun = locked(|| -> Result<_, LibraryRefusal> {
            // SAFETY: under the lock, with lists that are open and numbers that outlive the calls.
            unsafe {
                let make = Id::new(H5Fget_create_plist(from.id.raw()))?;
                status(H5Pget_sizes(make.raw(), &raw mut address_bytes, &raw mut length_bytes))?;
                // With shorter addresses or lengths, libhdf5 2 fails once there are new chunks.
                if (address_bytes, length_bytes) != (8, 8) {
                    return Ok(None);
                }
                let mut user_block = 0;
                status(H5Pget_userblock(make.raw(), &raw mut user_block))?;
                // The properties of the root group belong to the file.
                let root = Id::new(H5Oopen_by_token(from.id.raw(), token(root_address(from)?)))?;
                let group = Id::new(H5Gget_create_plist(root.raw()))?;
                copy_group_properties(&group, &make)?;
                let access = access()?;
                keep_metadata(&access)?;
                let low = match version {
                    LibraryVersion::Keep => {
                        let mut info = std::mem::zeroed();
                        status(H5Fget_info2(from.id.raw(), &raw mut info))?;
                        match info.super_.version {
                            0 | 1 => H5F_libver_t::H5F_LIBVER_EARLIEST,
                            2 => H5F_libver_t::H5F_LIBVER_V18,
                            _ => H5F_libver_t::H5F_LIBVER_V110,
                        }
                    }
                    LibraryVersion::Earliest => H5F_libver_t::H5F_LIBVER_EARLIEST,
                    LibraryVersion::V18 => H5F_libver_t::H5F_LIBVER_V18,
                    LibraryVersion::V110 => H5F_libver_t::H5F_LIBVER_V110,
                };
                status(H5Pset_libver_bounds(access.raw(), low, H5F_LIBVER_LATEST))?;
                let (least, most) = METADATA_BLOCKS;
                status(H5Pset_meta_block_size(
                    access.raw(),
                    metadata.next_power_of_two().clamp(least, most),
                ))?;
                let to = sink.create(&make, &access)?;
                let here = address(&info(to.raw())?.token);
                Ok(Some((to, low, address(&info(root.raw())?.token), here, user_block)))
            }
        });
        let begun = begun.map_err(|refused| refused_by(from, &sink, "/", refused))?;
        let Some((to, low, root, here, user_block)) = begun else {
            let what = format!(
                "addresses of {address_bytes} bytes and lengths of {length_bytes} in a \
                 file to be made anew"
            );
            return Err(from.unsupported(what, "make it one of 8 and 8 with h5py first"));
        };
        Ok(Self {
            from,
            sink,
            to,
            low,
            copies: HashMap::from([(root, here)]),
            made: vec![CopiedObject { from: root, to: here, path: "/".into() }],
            user_block,
            cleared: 0,
            blank: Vec::new(),
            control: control.clone(),
        })
    }

    /// The size in bytes of the user block, which comes before the HDF5 data.
    pub(crate) fn user_block(&self) -> u64 {
        self.user_block
    }

    /// The number of references to objects that no link leads to. The copies of these references
    /// are null.
    pub(crate) fn cleared(&self) -> u64 {
        self.cleared
    }

    /// The number of objects that were made.
    pub(crate) fn objects(&self) -> u64 {
        self.made.len() as u64
    }

    /// Makes every object that links lead to, with its attributes, and the values that only libhdf5
    /// can copy. `plan` says how a dataset is stored, and how its copy is to be stored. Places for
    /// values are found at once, except for chunks whose filters are still to be applied.
    ///
    /// # Errors
    /// The first defect of the original; [`Error::Unsupported`] for an object that cannot be
    /// copied; [`Error::Io`].
    pub(crate) fn objects_of(&mut self, plan: &mut Plan<'_>) -> Result<Vec<RewrittenDataset>> {
        let mut datasets = Vec::new();
        let mut next = 0;
        // A group appends the objects that its links lead to.
        while let Some(object) = self.made.get(next) {
            let (from, to, path) = (object.from, object.to, object.path.clone());
            self.step()?;
            self.run_locked(&path, |rewrite| {
                let from = rewrite.open_from(from)?;
                // SAFETY: under the lock, an open object.
                if unsafe { H5Iget_type(from.raw()) } == H5I_type_t::H5I_GROUP {
                    let to = rewrite.open_to(to)?;
                    rewrite.links(&from, &to, &path, plan, &mut datasets)?;
                }
                Ok(())
            })?;
            next += 1;
        }
        // References can be set once all objects are copied.
        let mut next = 0;
        while let Some(object) = self.made.get(next) {
            let (from, to, path) = (object.from, object.to, object.path.clone());
            self.step()?;
            self.run_locked(&path, |rewrite| {
                let from = rewrite.open_from(from)?;
                let to = rewrite.open_to(to)?;
                rewrite.attributes(&from, &to)?;
                comment(&from, &to)?;
                Ok(())
            })?;
            next += 1;
        }
        for made in &datasets {
            if let ValueStorage::Elsewhere { copied, .. } = &made.form.storage {
                self.run_locked(&made.form.path, |rewrite| rewrite.values(made, copied))?;
            }
        }
        Ok(datasets)
    }

    /// Writes what the library holds in memory, and closes the file. Values may be written to their
    /// places before or after.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { to, sink, from, .. } = self;
        let flushed = locked(|| {
            // SAFETY: under the lock, an open file.
            let flushed = status(unsafe { H5Fflush(to.raw(), H5F_scope_t::H5F_SCOPE_GLOBAL) });
            drop(to);
            flushed
        });
        match (sink.take_error(), flushed) {
            (Some(error), _) => Err(error),
            (None, Err(refused)) => Err(refused_by(from, &sink, "/", refused)),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// Records progress. Fails if the work is cancelled.
    fn step(&self) -> Result<()> {
        allowance::progress();
        if self.control.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Runs `work` under the lock. If the library refuses a call, the error is about `path`.
    fn run_locked<T>(
        &mut self,
        path: &str,
        work: impl FnOnce(&mut Self) -> Result<T, RewriteError>,
    ) -> Result<T> {
        let from = self.from;
        let sink = self.sink.clone();
        locked(|| work(self)).map_err(|trouble| match trouble {
            RewriteError::Refused(refused) => refused_by(from, &sink, path, refused),
            RewriteError::Complete(error) => error,
        })
    }

    fn unsupported(&self, path: &str, what: &str, advice: &'static str) -> RewriteError {
        self.from.unsupported(format!("{path}: {what}"), advice).into()
    }

    fn malformed(&self, path: &str, found: String, expected: String) -> RewriteError {
        self.from.malformed(path, found, expected).into()
    }

    fn open_from(&self, address: u64) -> Result<Id, LibraryRefusal> {
        // SAFETY: under the lock; the library checks what is at the address.
        Id::new(unsafe { H5Oopen_by_token(self.from.id.raw(), token(address)) })
    }

    fn open_to(&self, address: u64) -> Result<Id, LibraryRefusal> {
        // SAFETY: as above.
        Id::new(unsafe { H5Oopen_by_token(self.to.raw(), token(address)) })
    }

    /// Records the copy of an object, and returns its address.
    fn record_copy(&mut self, from: u64, to: &Id, path: &str) -> Result<u64, LibraryRefusal> {
        // SAFETY: under the lock, an open object.
        let to = address(&unsafe { info(to.raw()) }?.token);
        self.copies.insert(from, to);
        self.made.push(CopiedObject { from, to, path: path.to_owned() });
        Ok(to)
    }

    /// Makes a group. The lock is held.
    fn group(
        &self,
        from: &Id,
        parent: &Id,
        name: &CString,
        link: &Id,
    ) -> Result<Id, LibraryRefusal> {
        // SAFETY: under the lock, with objects that are open and a name that ends with NUL.
        unsafe {
            // The group's own list also says where its links are, so only some of its properties
            // are copied.
            let make = Id::new(H5Pcreate(*H5P_CLS_GROUP_CREATE))?;
            copy_group_properties(&Id::new(H5Gget_create_plist(from.raw()))?, &make)?;
            Id::new(H5Gcreate2(parent.raw(), name.as_ptr(), link.raw(), make.raw(), H5P_DEFAULT))
        }
    }
}

/// The system's error if there is one; else the library's error about the original.
fn refused_by(from: &File, sink: &DriverFile, path: &str, refused: LibraryRefusal) -> Error {
    sink.take_error().unwrap_or_else(|| from.error(path, refused))
}

/// Information about an object.
///
/// # Safety
/// The lock is held.
unsafe fn info(object: hid_t) -> Result<H5O_info2_t, LibraryRefusal> {
    let mut info = std::mem::MaybeUninit::<H5O_info2_t>::zeroed();
    // SAFETY: under the lock; zeros are a valid structure, which outlives the call.
    unsafe {
        status(H5Oget_info3(object, info.as_mut_ptr(), H5O_INFO_BASIC))?;
        Ok(info.assume_init())
    }
}

/// The address of the root group's header. The lock is held.
fn root_address(file: &File) -> Result<u64, LibraryRefusal> {
    // SAFETY: under the lock, an open file.
    Ok(address(&unsafe { info(file.id.raw()) }?.token))
}

/// Lets the library keep more metadata than for files that are only read. A group of many links is
/// one heap, which would otherwise be written and read again for each link.
///
/// # Safety
/// The lock is held; `access` is a file's access list.
unsafe fn keep_metadata(access: &Id) -> Result<(), LibraryRefusal> {
    // SAFETY: as the caller says; the structure is the library's own, and its numbers and flags may
    // be zero.
    unsafe {
        let mut cache = std::mem::zeroed::<H5AC_cache_config_t>();
        cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
        status(H5Pget_mdc_config(access.raw(), &raw mut cache))?;
        (cache.initial_size, cache.min_size, cache.max_size) =
            (METADATA_CACHE, METADATA_CACHE, METADATA_CACHE);
        status(H5Pset_mdc_config(access.raw(), &raw mut cache)).map(drop)
    }
}

/// Copies the properties that groups and files have from one creation property list to another.
///
/// # Safety
/// The lock is held; `from` is of a group, `to` of a group or file.
unsafe fn copy_group_properties(from: &Id, to: &Id) -> Result<(), LibraryRefusal> {
    let (mut order, mut least, mut most, mut times): (c_uint, c_uint, c_uint, _) = (0, 0, 0, 0);
    // SAFETY: under the lock; the numbers outlive the calls.
    unsafe {
        status(H5Pget_link_creation_order(from.raw(), &raw mut order))?;
        status(H5Pset_link_creation_order(to.raw(), order))?;
        status(H5Pget_link_phase_change(from.raw(), &raw mut most, &raw mut least))?;
        status(H5Pset_link_phase_change(to.raw(), most, least))?;
        status(H5Pget_attr_creation_order(from.raw(), &raw mut order))?;
        status(H5Pset_attr_creation_order(to.raw(), order))?;
        status(H5Pget_attr_phase_change(from.raw(), &raw mut most, &raw mut least))?;
        status(H5Pset_attr_phase_change(to.raw(), most, least))?;
        status(H5Pget_obj_track_times(from.raw(), &raw mut times))?;
        status(H5Pset_obj_track_times(to.raw(), times))?;
    }
    Ok(())
}

#[allow(deprecated, reason = "old files have comments")]
/// Copies an object's comment, a feature older than attributes. The lock is held.
fn comment(from: &Id, to: &Id) -> Result<(), LibraryRefusal> {
    // SAFETY: under the lock, with open objects; the buffer has the size that the call is given.
    unsafe {
        let len = status(H5Oget_comment(from.raw(), std::ptr::null_mut(), 0) as i64)?
            .cast_unsigned() as usize;
        if len == 0 || len > MOST_COMMENT {
            return Ok(());
        }
        let mut text = vec![0_u8; len + 1];
        status(H5Oget_comment(from.raw(), text.as_mut_ptr().cast(), text.len()) as i64)?;
        status(H5Oset_comment(to.raw(), text.as_ptr().cast::<c_char>())).map(drop)
    }
}
