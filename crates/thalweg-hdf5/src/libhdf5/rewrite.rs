//! Rewrites a file: makes its groups, links, attributes, types and datasets anew in another file,
//! and finds places for the values.
//!
//! The metadata reader of this crate reads the original, and libhdf5 only writes. References are
//! set to the copies of the objects that they name.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

mod attribute;
mod dataset;
mod link;
mod memory;
mod reference;
mod selection;
mod values;

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use hdf5_metno_sys::h5ac::{H5AC__CURR_CACHE_CONFIG_VERSION, H5AC_cache_config_t};
use hdf5_metno_sys::h5f::{
    H5F_LIBVER_LATEST, H5F_fspace_strategy_t, H5F_libver_t, H5F_scope_t, H5Fflush,
};
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5o::{
    H5O_INFO_BASIC, H5O_info2_t, H5O_token_t, H5Oget_info3, H5Oopen_by_token,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATATYPE_CREATE, H5P_CLS_FILE_CREATE, H5P_CLS_GROUP_CREATE, H5P_DEFAULT, H5Pcreate,
    H5Pget_mdc_config, H5Pset_attr_creation_order, H5Pset_attr_phase_change,
    H5Pset_file_space_page_size, H5Pset_file_space_strategy, H5Pset_istore_k, H5Pset_libver_bounds,
    H5Pset_link_creation_order, H5Pset_link_phase_change, H5Pset_mdc_config,
    H5Pset_meta_block_size, H5Pset_obj_track_times, H5Pset_shared_mesg_index,
    H5Pset_shared_mesg_nindexes, H5Pset_shared_mesg_phase_change, H5Pset_sym_k, H5Pset_userblock,
};
use hdf5_metno_sys::h5t::{H5Tcommit_anon, H5Tdecode2};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::driver::DriverFile;
use super::handle::{Id, LibraryRefusal, access, locked, status};
use crate::metadata::dataset::DatasetHeader;
use crate::metadata::datatype::TypeMessage;
use crate::metadata::stored_object::{FileSpace, ObjectProperties, StoredGroup, StoredKind};
use crate::metadata::{Link, MetadataFile};
use crate::stored::{DatasetForm, TargetStorage, ValueStorage};

pub(crate) use dataset::RewrittenDataset;
#[allow(deprecated, reason = "old files have comments")]
use hdf5_metno_sys::h5o::H5Oset_comment;
use link::NewLink;

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

/// How a dataset is stored, and how its copy is to be stored. Errors call the dataset by its path.
pub(crate) type Plan<'a> =
    dyn FnMut(&DatasetHeader, &str) -> Result<(DatasetForm, TargetStorage)> + 'a;

/// An object of the original and its copy, by the addresses of their headers.
#[derive(Debug)]
struct CopiedObject {
    from: u64,
    to: u64,
    path: String,
    /// Links of a group that are still to be copied.
    links: Vec<Link>,
}

/// A new file that is made from another.
#[derive(Debug)]
pub(crate) struct Rewrite<'a> {
    from: &'a MetadataFile,
    store: &'a Arc<dyn Store>,
    sink: Arc<DriverFile>,
    to: Id,
    /// The earliest version whose structures the new file may have.
    low: H5F_libver_t,
    /// The address of each copy, by the address of its original.
    copies: HashMap<u64, u64>,
    /// The objects in the order in which they were copied.
    made: Vec<CopiedObject>,
    cleared: u64,
    /// Zeros that the library gets in place of the bytes of chunks, which are written later.
    blank: Vec<u8>,
    control: Control,
}

/// The least and the most bytes of the file that the library allocates for metadata at a time.
const METADATA_BLOCKS: (u64, u64) = (2 << 10, 1 << 20);

/// Bytes of the new file's metadata that the library keeps in memory.
const METADATA_CACHE: usize = 16 << 20;

impl<'a> Rewrite<'a> {
    /// Starts a new file with the creation properties of `from`, which is in `store`. `out` must be
    /// empty. `metadata` is the approximate size of the chunk indexes in bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Malformed`]; what libhdf5 refuses.
    pub(crate) fn begin(
        from: &'a MetadataFile,
        store: &'a Arc<dyn Store>,
        out: std::fs::File,
        name: &Arc<str>,
        version: LibraryVersion,
        metadata: u64,
        control: &Control,
    ) -> Result<Self> {
        let superblock = from.superblock();
        let sink = Arc::new(DriverFile::new(out, name.clone()));
        let widths = superblock.widths();
        if widths != (8, 8) {
            // With shorter addresses or lengths, libhdf5 2 fails once there are new chunks.
            return Err(Error::Unsupported {
                file: store.name().clone(),
                what: format!(
                    "addresses of {} bytes and lengths of {} in a file to be made anew",
                    widths.0, widths.1
                )
                .into(),
                advice: "make it one of 8 and 8 with h5py first".into(),
            });
        }
        let root = from.object(superblock.root, "/")?;
        let StoredKind::Group(group) = root.kind else {
            return Err(malformed(store, "/", "a root object that is no group", "a group"));
        };
        let space = from.file_space()?;
        let low = match version {
            LibraryVersion::Keep => match superblock.version {
                0 | 1 => H5F_libver_t::H5F_LIBVER_EARLIEST,
                2 => H5F_libver_t::H5F_LIBVER_V18,
                _ => H5F_libver_t::H5F_LIBVER_V110,
            },
            LibraryVersion::Earliest => H5F_libver_t::H5F_LIBVER_EARLIEST,
            LibraryVersion::V18 => H5F_libver_t::H5F_LIBVER_V18,
            LibraryVersion::V110 => H5F_libver_t::H5F_LIBVER_V110,
        };
        let begun = locked(|| -> Result<_, LibraryRefusal> {
            // SAFETY: under the lock, with lists that are open.
            unsafe {
                let make = Id::new(H5Pcreate(*H5P_CLS_FILE_CREATE))?;
                set_file_properties(&make, from, space)?;
                // The properties of the root group belong to the file.
                set_group_properties(&make, &root.properties, &group)?;
                let access = access()?;
                keep_metadata(&access)?;
                status(H5Pset_libver_bounds(access.raw(), low, H5F_LIBVER_LATEST))?;
                let (least, most) = METADATA_BLOCKS;
                status(H5Pset_meta_block_size(
                    access.raw(),
                    metadata.next_power_of_two().clamp(least, most),
                ))?;
                let to = sink.create(&make, &access)?;
                let here = address_of(&to)?;
                Ok((to, here))
            }
        });
        let (to, here) = begun.map_err(|refused| refused_by(store, &sink, "/", refused))?;
        let root = superblock.root;
        Ok(Self {
            from,
            store,
            sink,
            to,
            low,
            copies: HashMap::from([(root, here)]),
            made: vec![CopiedObject { from: root, to: here, path: "/".into(), links: group.links }],
            cleared: 0,
            blank: Vec::new(),
            control: control.clone(),
        })
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

    /// Makes every object that links lead to, with its attributes, and the values that libhdf5
    /// writes. `plan` says how a dataset is stored, and how its copy is to be stored. Places for
    /// values are found at once, except for chunks whose filters are still to be applied.
    ///
    /// # Errors
    /// The first defect of the original; [`Error::Unsupported`] for an object that cannot be
    /// copied; [`Error::Io`].
    pub(crate) fn objects_of(&mut self, plan: &mut Plan<'_>) -> Result<Vec<RewrittenDataset>> {
        let mut datasets = Vec::new();
        let mut next = 0;
        // A group appends the objects that its links lead to.
        while let Some(object) = self.made.get_mut(next) {
            let links = std::mem::take(&mut object.links);
            if !links.is_empty() {
                let to = object.to;
                let path = object.path.clone();
                self.step()?;
                self.run_locked(&path, |rewrite| {
                    let to = rewrite.open_to(to)?;
                    rewrite.links(&links, &to, &path, plan, &mut datasets)
                })?;
            }
            next += 1;
        }
        // References can be set once all objects are copied. An attribute may bring in a type.
        let mut next = 0;
        while let Some(object) = self.made.get(next) {
            let from = object.from;
            let to = object.to;
            let path = object.path.clone();
            self.step()?;
            let (attributes, comment) = self.from.stored_attributes(from, &path)?;
            self.run_locked(&path, |rewrite| {
                let to = rewrite.open_to(to)?;
                rewrite.attributes(&attributes, &to, &path)?;
                if let Some(comment) = comment {
                    set_comment(&to, &rewrite.c_string(comment, &path)?)?;
                }
                Ok(())
            })?;
            next += 1;
        }
        for made in &datasets {
            if let ValueStorage::Elsewhere { is_written: true, .. } = &made.form.storage {
                self.values(made)?;
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
        let Self { to, sink, store, .. } = self;
        let flushed = locked(|| {
            // SAFETY: under the lock, an open file.
            let flushed = status(unsafe { H5Fflush(to.raw(), H5F_scope_t::H5F_SCOPE_GLOBAL) });
            drop(to);
            flushed
        });
        match (sink.take_error(), flushed) {
            (Some(error), _) => Err(error),
            (None, Err(refused)) => Err(refused_by(store, &sink, "/", refused)),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// Fails if the work is cancelled.
    fn step(&self) -> Result<()> {
        if self.control.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Runs `work` under the lock. If the library refuses a call, the error is about `path`.
    fn run_locked<T>(
        &mut self,
        path: &str,
        work: impl FnOnce(&mut Self) -> Result<T, RewriteError>,
    ) -> Result<T> {
        let store = self.store;
        let sink = self.sink.clone();
        locked(|| work(self)).map_err(|trouble| match trouble {
            RewriteError::Refused(refused) => refused_by(store, &sink, path, refused),
            RewriteError::Complete(error) => error,
        })
    }

    fn unsupported(&self, path: &str, what: &str, advice: &'static str) -> RewriteError {
        RewriteError::Complete(Error::Unsupported {
            file: self.store.name().clone(),
            what: format!("{path}: {what}").into(),
            advice: advice.into(),
        })
    }

    /// A name or a path as the library takes it.
    fn c_string(&self, name: impl Into<Vec<u8>>, path: &str) -> Result<CString, RewriteError> {
        CString::new(name).map_err(|_| {
            malformed(self.store, path, "a NUL inside of a name", "one at its end").into()
        })
    }

    fn open_to(&self, address: u64) -> Result<Id, LibraryRefusal> {
        // SAFETY: under the lock; the library checks what is at the address.
        Id::new(unsafe { H5Oopen_by_token(self.to.raw(), token(address)) })
    }

    /// Records the copy of an object.
    fn record_copy(
        &mut self,
        from: u64,
        to: &Id,
        path: &str,
        links: Vec<Link>,
    ) -> Result<u64, LibraryRefusal> {
        let to = address_of(to)?;
        self.copies.insert(from, to);
        self.made.push(CopiedObject { from, to, path: path.to_owned(), links });
        Ok(to)
    }

    /// Makes a group. The lock is held.
    fn group(
        &self,
        properties: &ObjectProperties,
        group: &StoredGroup,
        link: &NewLink<'_>,
    ) -> Result<Id, LibraryRefusal> {
        // SAFETY: under the lock, with objects that are open and a name that ends with NUL.
        unsafe {
            let make = Id::new(H5Pcreate(*H5P_CLS_GROUP_CREATE))?;
            set_group_properties(&make, properties, group)?;
            let parent = link.parent.raw();
            let name = &link.name;
            let how = link.properties.raw();
            Id::new(H5Gcreate2(parent, name.as_ptr(), how, make.raw(), H5P_DEFAULT))
        }
    }

    /// The type in the new file: the copy in the file of a committed type, else a type in memory.
    /// The lock is held.
    fn type_in_file(&mut self, message: &TypeMessage, path: &str) -> Result<Id, RewriteError> {
        let Some(from) = message.committed else { return Ok(type_in_memory(message)?) };
        if let Some(&copied) = self.copies.get(&from) {
            return Ok(self.open_to(copied)?);
        }
        let properties = self.from.object(from, path)?.properties;
        let copy = type_in_memory(message)?;
        // SAFETY: under the lock, with identifiers that are open.
        unsafe {
            let make = Id::new(H5Pcreate(*H5P_CLS_DATATYPE_CREATE))?;
            set_properties(&make, &properties)?;
            // A link, or an object of this type, keeps it in the file.
            status(H5Tcommit_anon(self.to.raw(), copy.raw(), make.raw(), H5P_DEFAULT))?;
        }
        self.record_copy(from, &copy, path, Vec::new())?;
        Ok(copy)
    }
}

/// The type of elements in memory. The metadata reader has checked the message. The lock is held.
fn type_in_memory(message: &TypeMessage) -> Result<Id, LibraryRefusal> {
    /// The type of the message, and the version of what `H5Tencode` makes of it (H5T.c).
    const HEAD: [u8; 2] = [3, 0];
    let encoded = [&HEAD[..], &message.bytes].concat();
    // SAFETY: under the lock; the buffer has the size that the call is given.
    Id::new(unsafe { H5Tdecode2(encoded.as_ptr().cast(), encoded.len()) })
}

/// The system's error if there is one; else the library's error about the original.
fn refused_by(
    from: &Arc<dyn Store>,
    sink: &DriverFile,
    path: &str,
    refused: LibraryRefusal,
) -> Error {
    let LibraryRefusal(said) = refused;
    sink.take_error().unwrap_or_else(|| {
        malformed(from, path, format!("what libhdf5 cannot write ({said})"), "HDF5")
    })
}

fn malformed(
    file: &Arc<dyn Store>,
    path: &str,
    found: impl Into<std::borrow::Cow<'static, str>>,
    expected: impl Into<std::borrow::Cow<'static, str>>,
) -> Error {
    Error::Malformed {
        file: file.name().clone(),
        what: path.to_owned().into(),
        offset: 0,
        found: found.into(),
        expected: expected.into(),
    }
}

/// The address of the header of an object of the new file. The lock is held.
fn address_of(object: &Id) -> Result<u64, LibraryRefusal> {
    let mut info = std::mem::MaybeUninit::<H5O_info2_t>::zeroed();
    // SAFETY: under the lock, an open object; zeros are a valid structure, which outlives the call.
    // A token is 16 plain bytes.
    let bytes: [u8; 16] = unsafe {
        status(H5Oget_info3(object.raw(), info.as_mut_ptr(), H5O_INFO_BASIC))?;
        std::mem::transmute(info.assume_init().token)
    };
    // The address is in the low bytes; the others are zeros.
    Ok(u128::from_le_bytes(bytes) as u64)
}

/// The token of an address, as the library's native connector has it.
fn token(address: u64) -> H5O_token_t {
    // SAFETY: a token is 16 plain bytes.
    unsafe { std::mem::transmute(u128::from(address).to_le_bytes()) }
}

/// Lets the library keep more metadata than for other files. A group of many links is one heap,
/// which would otherwise be written and read again for each link.
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

/// Sets the properties of a file: its user block, the sizes of its trees, the messages that objects
/// share, how its space is managed.
///
/// # Safety
/// The lock is held; `list` is a file's creation property list.
unsafe fn set_file_properties(
    list: &Id,
    from: &MetadataFile,
    space: Option<FileSpace>,
) -> Result<(), LibraryRefusal> {
    let superblock = from.superblock();
    // SAFETY: as the caller says.
    unsafe {
        status(H5Pset_userblock(list.raw(), superblock.base))?;
        let group = superblock.group_k.into();
        let leaf = superblock.leaf_k.into();
        status(H5Pset_sym_k(list.raw(), group, leaf))?;
        status(H5Pset_istore_k(list.raw(), superblock.chunk_k.into()))?;
        let indexes = &superblock.shared_messages;
        if let Some(first) = indexes.first() {
            status(H5Pset_shared_mesg_nindexes(list.raw(), indexes.len() as u32))?;
            for (number, index) in (0..).zip(indexes.iter()) {
                let types = index.types.into();
                status(H5Pset_shared_mesg_index(list.raw(), number, types, index.least))?;
            }
            let most = first.phases.0.into();
            let least = first.phases.1.into();
            status(H5Pset_shared_mesg_phase_change(list.raw(), most, least))?;
        }
        if let Some(space) = space {
            let strategy = match space.strategy {
                0 => H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_FSM_AGGR,
                1 => H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_PAGE,
                2 => H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_AGGR,
                _ => H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_NONE,
            };
            let persists = space.is_persistent.into();
            let threshold = space.threshold;
            status(H5Pset_file_space_strategy(list.raw(), strategy, persists, threshold))?;
            if let Some(page) = space.page {
                status(H5Pset_file_space_page_size(list.raw(), page))?;
            }
        }
    }
    Ok(())
}

/// Sets the properties of a group.
///
/// # Safety
/// The lock is held; `list` is a creation property list of a group or file.
unsafe fn set_group_properties(
    list: &Id,
    properties: &ObjectProperties,
    group: &StoredGroup,
) -> Result<(), LibraryRefusal> {
    // SAFETY: as the caller says.
    unsafe {
        set_properties(list, properties)?;
        status(H5Pset_link_creation_order(list.raw(), group.link_order.into()))?;
        if let Some((most, least)) = group.link_phases {
            status(H5Pset_link_phase_change(list.raw(), most.into(), least.into()))?;
        }
    }
    Ok(())
}

/// Sets the properties of an object's header.
///
/// # Safety
/// The lock is held; `list` is a creation property list.
unsafe fn set_properties(list: &Id, properties: &ObjectProperties) -> Result<(), LibraryRefusal> {
    // SAFETY: as the caller says.
    unsafe {
        status(H5Pset_attr_creation_order(list.raw(), properties.attribute_order.into()))?;
        if let Some((most, least)) = properties.attribute_phases {
            status(H5Pset_attr_phase_change(list.raw(), most.into(), least.into()))?;
        }
        status(H5Pset_obj_track_times(list.raw(), properties.has_times.into()))?;
    }
    Ok(())
}

#[allow(deprecated, reason = "old files have comments")]
/// Sets an object's comment, a feature older than attributes. The lock is held.
fn set_comment(object: &Id, comment: &CString) -> Result<(), LibraryRefusal> {
    // SAFETY: under the lock, with an open object.
    status(unsafe { H5Oset_comment(object.raw(), comment.as_ptr()) }).map(drop)
}
