//! Files, the groups and datasets in them, their links and their attributes.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, H5free_memory};
use hdf5_metno_sys::h5a::{H5A_info_t, H5Aget_space, H5Aget_type, H5Aiterate2, H5Aopen, H5Aread};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type, hid_t};
use hdf5_metno_sys::h5l::{H5L_info2_t, H5L_type_t, H5Literate2};
use hdf5_metno_sys::h5o::{
    H5O_INFO_BASIC, H5O_info2_t, H5O_token_t, H5Oget_info3, H5Oopen, H5Oopen_by_token,
};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::H5Sget_simple_extent_npoints;
use hdf5_metno_sys::h5t::{
    H5T_NATIVE_DOUBLE, H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_class_t, H5T_sign_t, H5Tget_class,
    H5Tget_member_name, H5Tget_member_value, H5Tget_native_type, H5Tget_nmembers, H5Tget_sign,
    H5Tget_size, H5Tis_variable_str,
};
use thalweg_io::control::Control;
use thalweg_io::store::{JoinedStore, Store};
use thalweg_io::{Error, Result};

use super::dataset::DatasetError;
use super::driver::{self, DriverStatus, FileContext};
use super::handle::{Id, LibraryRefusal, locked, status};
use crate::other_files::OtherFiles;
use crate::types::{Chunk, Value};

/// An open file.
#[derive(Debug)]
pub struct File {
    pub(super) id: Id,
    pub(super) shared: Arc<ErrorContext>,
}

/// The state that a file shares with its nodes.
#[derive(Debug)]
pub(super) struct ErrorContext {
    size: u64,
    context: Arc<FileContext>,
    /// The store to which pieces of other files are added, if they can be read.
    pub(super) joined: Option<Arc<JoinedStore>>,
    /// Paths of datasets whose values the inspector has read.
    checked: Mutex<HashSet<String>>,
}

impl ErrorContext {
    fn name(&self) -> &Arc<str> {
        &self.context.name
    }

    fn driver_status(&self) -> &DriverStatus {
        &self.context.driver_status
    }

    /// The other files that the file names.
    pub(super) fn other_files(&self) -> &OtherFiles {
        &self.context.other_files
    }

    /// Lets the inspector read the values of a dataset, then does `check`, once for each dataset.
    /// A store without a path is not inspected.
    ///
    /// # Errors
    /// The error of the inspector or of `check`.
    pub(super) fn check_values(
        &self,
        dataset: &str,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if !checked.contains(dataset) {
            if let Some(path) = self.other_files().path() {
                self.context.control.inspect(path, Some(dataset))?;
            }
            check()?;
            checked.insert(dataset.to_owned());
        }
        Ok(())
    }

    /// Runs `work` under the lock. The library may open other files for it.
    ///
    /// # Errors
    /// The store's own error, even if the library ignored it; else the error that `refused` makes
    /// of the library's.
    pub(super) fn locked<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
        refused: impl FnOnce(E) -> Result<T>,
    ) -> Result<T> {
        let done = self.context.locked(work);
        match self.driver_status().take_error() {
            Some(error) => Err(error),
            None => done.or_else(refused),
        }
    }

    /// The store's error if it has one, else the library's.
    pub(super) fn error(&self, what: &str, refused: LibraryRefusal) -> Error {
        if let Some(error) = self.driver_status().take_error() {
            return error;
        }
        let LibraryRefusal(said) = refused;
        if said.starts_with("truncated file") {
            return Error::Truncated {
                file: self.name().clone(),
                what: "an HDF5 file".into(),
                offset: 0,
                size: self.size,
                advice: ", or still being written; fetch the file again, or close it in its writer",
            };
        }
        Error::Malformed {
            file: self.name().clone(),
            what: what.to_owned().into(),
            offset: 0,
            found: format!("what libhdf5 refuses ({said})").into(),
            expected: if self.driver_status().is_unclosed() {
                "HDF5 that was closed: this file is still being written, or its writer was killed"
            } else {
                "HDF5"
            }
            .into(),
        }
    }

    /// Checks that bytes with values of the dataset `path` lie inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub(super) fn check_inside(&self, path: &str, offset: u64, len: u64) -> Result<()> {
        let size = self.size();
        if offset.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        let found = format!("{len} bytes from byte {offset} on");
        let expected = format!("data inside the {size} bytes of the file");
        Err(self.malformed(path, offset.min(size), found, expected))
    }

    /// Checks that the chunks of the dataset `path` have bytes, and lie inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub(super) fn check_chunks(&self, path: &str, chunks: &[Chunk]) -> Result<()> {
        if let Some(empty) = chunks.iter().find(|chunk| chunk.size == 0) {
            let found = "a chunk of no bytes".into();
            return Err(self.malformed(path, empty.offset, found, "some".into()));
        }
        chunks.iter().try_for_each(|chunk| self.check_inside(path, chunk.offset, chunk.size))
    }

    pub(super) fn malformed(
        &self,
        what: &str,
        offset: u64,
        found: String,
        expected: String,
    ) -> Error {
        let what = what.to_owned().into();
        Error::Malformed {
            file: self.name().clone(),
            what,
            offset,
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub(super) fn unsupported(&self, what: String, advice: &'static str) -> Error {
        Error::Unsupported { file: self.name().clone(), what: what.into(), advice: advice.into() }
    }

    /// The error for the dataset at `path`. `advice`: what a user can do if it is not supported.
    pub(super) fn dataset_error(
        &self,
        path: &str,
        error: DatasetError,
        advice: &'static str,
    ) -> Error {
        match error {
            DatasetError::Refused(refused) => self.error(path, refused),
            DatasetError::Unsupported(what) => self.unsupported(format!("{path}: {what}"), advice),
            DatasetError::Malformed(at, found, expected) => {
                self.malformed(path, at, found, expected)
            }
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// A hard link: a name, and the object that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name.
    pub name: String,
    /// The address of the object's header. Addresses give the order in which objects were made, as
    /// far as there is one.
    pub address: u64,
    path: String,
    token: ObjectToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObjectToken(H5O_token_t);

/// A group or a dataset.
#[derive(Debug)]
pub struct Node {
    pub(super) id: Id,
    pub(super) path: String,
    pub(super) shared: Arc<ErrorContext>,
}

impl File {
    /// Opens a store as an HDF5 file. Later reads from it end when `control` is cancelled.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is not HDF5; [`Error::Truncated`]; the store's own errors.
    pub fn open(store: &Arc<dyn Store>, control: &Control) -> Result<Self> {
        Self::open_within(store, None, OtherFiles::default(), control)
    }

    /// Opens an HDF5 file whose virtual datasets may have sources in other files. The sources say
    /// how long an unlimited one is.
    ///
    /// # Errors
    /// As [`File::open`].
    pub(crate) fn open_beside(
        store: &Arc<dyn Store>,
        other_files: OtherFiles,
        control: &Control,
    ) -> Result<Self> {
        Self::open_within(store, None, other_files, control)
    }

    /// Opens an HDF5 file whose datasets may have values in other files. External datasets are read
    /// through the joined store.
    ///
    /// # Errors
    /// As [`File::open`].
    pub(crate) fn open_joined(
        store: &Arc<JoinedStore>,
        other_files: OtherFiles,
        control: &Control,
    ) -> Result<Self> {
        Self::open_within(store.main(), Some(store.clone()), other_files, control)
    }

    fn open_within(
        store: &Arc<dyn Store>,
        joined: Option<Arc<JoinedStore>>,
        other_files: OtherFiles,
        control: &Control,
    ) -> Result<Self> {
        let (opened, driver_status) = driver::open(store, &other_files, control);
        let context = Arc::new(FileContext {
            name: store.name().clone(),
            other_files,
            control: control.clone(),
            driver_status,
        });
        let shared = Arc::new(ErrorContext {
            size: store.size(),
            context,
            joined,
            checked: Mutex::default(),
        });
        match opened {
            Ok(id) => Ok(Self { id, shared }),
            Err(refused) => Err(shared.error("HDF5 file", refused)),
        }
    }

    /// The root group.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn root(&self) -> Result<Node> {
        self.open_node("/", |file| {
            // SAFETY: under the lock, an open file, a name that ends with NUL.
            unsafe { H5Oopen(file, c"/".as_ptr(), H5P_DEFAULT) }
        })
    }

    /// The object that a link leads to.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn follow(&self, link: &Link) -> Result<Node> {
        // SAFETY: under the lock; the library checks what is at the address.
        self.open_node(&link.path, |file| unsafe { H5Oopen_by_token(file, link.token.0) })
    }

    /// The object whose header is at an address. Errors call it `path`.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn at(&self, address: u64, path: &str) -> Result<Node> {
        // SAFETY: as above.
        self.open_node(path, |file| unsafe { H5Oopen_by_token(file, token(address)) })
    }

    fn open_node(&self, path: &str, open: impl FnOnce(hid_t) -> hid_t) -> Result<Node> {
        let opened = || Id::new(open(self.id.raw()));
        let id = self.shared.locked(opened, |refused| Err(self.shared.error(path, refused)))?;
        Ok(Node { id, path: path.to_owned(), shared: self.shared.clone() })
    }
}

impl Node {
    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is a group.
    pub fn is_group(&self) -> bool {
        // SAFETY: under the lock, an open object.
        locked(|| unsafe { H5Iget_type(self.id.raw()) == H5I_type_t::H5I_GROUP })
    }

    /// The group's hard links, in the order of the file's index. Other links are left out.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn links(&self) -> Result<Vec<Link>> {
        unsafe extern "C" fn visit(
            _: hid_t,
            name: *const c_char,
            info: *const H5L_info2_t,
            out: *mut c_void,
        ) -> c_int {
            // SAFETY: `out` is the vector below; the library passes a name that ends with NUL and a
            // filled structure.
            unsafe {
                let mut info = *info;
                if info.type_ == H5L_type_t::H5L_TYPE_HARD {
                    let name = CStr::from_ptr(name).to_string_lossy().into_owned();
                    let token = *info.u.token();
                    (*out.cast::<Vec<(String, H5O_token_t)>>()).push((name, token));
                }
            }
            0
        }
        let mut found: Vec<(String, H5O_token_t)> = Vec::new();
        // SAFETY: under the lock; the vector outlives the call.
        let outcome = locked(|| unsafe {
            let out = (&raw mut found).cast();
            let by = H5_index_t::H5_INDEX_NAME;
            status(H5Literate2(
                self.id.raw(),
                by,
                H5_iter_order_t::H5_ITER_NATIVE,
                std::ptr::null_mut(),
                Some(visit),
                out,
            ))
        });
        outcome.map_err(|refused| self.refused(refused))?;
        let link = |(name, token)| {
            let path = format!("{}/{name}", self.path.trim_end_matches('/'));
            Link { name, address: address(&token), path, token: ObjectToken(token) }
        };
        Ok(found.into_iter().map(link).collect())
    }

    /// The address of the object's header.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn address(&self) -> Result<u64> {
        self.info(H5O_INFO_BASIC).map(|info| address(&info.token))
    }

    fn info(&self, fields: u32) -> Result<H5O_info2_t> {
        locked(|| self.info_locked(fields)).map_err(|refused| self.refused(refused))
    }

    /// Information about the object. The lock is held.
    fn info_locked(&self, fields: u32) -> Result<H5O_info2_t, LibraryRefusal> {
        let mut info = std::mem::MaybeUninit::<H5O_info2_t>::zeroed();
        // SAFETY: under the lock; zeros are a valid structure, which outlives the call.
        unsafe {
            status(H5Oget_info3(self.id.raw(), info.as_mut_ptr(), fields))?;
            Ok(info.assume_init())
        }
    }

    /// Its attributes, by name.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what libhdf5 refuses.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        let outcome: Result<_, LibraryRefusal> = locked(|| {
            self.attribute_names(H5_iter_order_t::H5_ITER_NATIVE)?
                .iter()
                .map(|name| Ok((name.to_string_lossy().into_owned(), read(self.id.raw(), name)?)))
                .collect()
        });
        outcome.map_err(|refused| self.refused(refused))
    }

    /// The names of its attributes, in this order of names. The lock is held.
    pub(super) fn attribute_names(
        &self,
        order: H5_iter_order_t,
    ) -> Result<Vec<CString>, LibraryRefusal> {
        unsafe extern "C" fn visit(
            _: hid_t,
            name: *const c_char,
            _: *const H5A_info_t,
            out: *mut c_void,
        ) -> c_int {
            // SAFETY: `out` is the vector below; the library passes a name that ends with NUL.
            unsafe { (*out.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned()) };
            0
        }
        let mut names: Vec<CString> = Vec::new();
        let by = H5_index_t::H5_INDEX_NAME;
        // SAFETY: under the lock; the vector outlives the call.
        status(unsafe {
            let out = (&raw mut names).cast();
            H5Aiterate2(self.id.raw(), by, order, std::ptr::null_mut(), Some(visit), out)
        })?;
        Ok(names)
    }

    pub(super) fn refused(&self, refused: LibraryRefusal) -> Error {
        self.shared.error(&self.path, refused)
    }
}

/// The address in a token of the library's native connector. It is in the low bytes; the others are
/// zeros.
pub(super) fn address(token: &H5O_token_t) -> u64 {
    // SAFETY: a token is 16 plain bytes.
    let bytes: [u8; 16] = unsafe { std::mem::transmute(*token) };
    u128::from_le_bytes(bytes) as u64
}

/// The token of an address.
pub(super) fn token(address: u64) -> H5O_token_t {
    // SAFETY: as above.
    unsafe { std::mem::transmute(u128::from(address).to_le_bytes()) }
}

/// An attribute's value. The lock is held.
fn read(object: hid_t, name: &CStr) -> Result<Value, LibraryRefusal> {
    // SAFETY: under the lock, with identifiers that are open; each buffer has the size of the type
    // that is read into it.
    unsafe {
        let attribute = Id::new(H5Aopen(object, name.as_ptr(), H5P_DEFAULT))?;
        let space = Id::new(H5Aget_space(attribute.raw()))?;
        if H5Sget_simple_extent_npoints(space.raw()) != 1 {
            return Ok(Value::ARRAY);
        }
        let kind = Id::new(H5Aget_type(attribute.raw()))?;
        let size = H5Tget_size(kind.raw());
        match H5Tget_class(kind.raw()) {
            H5T_class_t::H5T_INTEGER
                if size <= 8 && H5Tget_sign(kind.raw()) == H5T_sign_t::H5T_SGN_NONE =>
            {
                let mut value = 0u64;
                status(H5Aread(attribute.raw(), *H5T_NATIVE_UINT64, (&raw mut value).cast()))?;
                Ok(Value::Unsigned(value, size))
            }
            H5T_class_t::H5T_INTEGER if size <= 8 => {
                let mut value = 0i64;
                status(H5Aread(attribute.raw(), *H5T_NATIVE_INT64, (&raw mut value).cast()))?;
                Ok(Value::Signed(value, size))
            }
            H5T_class_t::H5T_FLOAT if size <= 8 => {
                let mut value = 0f64;
                status(H5Aread(attribute.raw(), *H5T_NATIVE_DOUBLE, (&raw mut value).cast()))?;
                Ok(Value::Float(value, size))
            }
            H5T_class_t::H5T_STRING if status(H5Tis_variable_str(kind.raw()))? > 0 => {
                let mut text: *mut c_char = std::ptr::null_mut();
                status(H5Aread(attribute.raw(), kind.raw(), (&raw mut text).cast()))?;
                if text.is_null() {
                    return Ok(Value::Text(String::new()));
                }
                let value = CStr::from_ptr(text).to_string_lossy().into_owned();
                H5free_memory(text.cast());
                Ok(Value::Text(value))
            }
            H5T_class_t::H5T_STRING if size <= Value::MOST_TEXT => {
                let mut bytes = vec![0u8; size];
                status(H5Aread(attribute.raw(), kind.raw(), bytes.as_mut_ptr().cast()))?;
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                bytes.truncate(end);
                Ok(Value::Text(String::from_utf8_lossy(&bytes).into_owned()))
            }
            H5T_class_t::H5T_ENUM if size <= 8 => {
                let native = Id::new(H5Tget_native_type(
                    kind.raw(),
                    hdf5_metno_sys::h5t::H5T_direction_t::H5T_DIR_ASCEND,
                ))?;
                let size = H5Tget_size(native.raw());
                if size > 8 {
                    return Ok(Value::LONG_CODES);
                }
                let mut code = [0u8; 8];
                status(H5Aread(attribute.raw(), native.raw(), code.as_mut_ptr().cast()))?;
                Ok(Value::Enum(integer(code, size), Arc::new(labels(&native, size)?)))
            }
            _ => Ok(Value::STRANGE),
        }
    }
}

/// A native integer of `size` bytes. Codes are small and not negative in practice.
fn integer(bytes: [u8; 8], size: usize) -> i64 {
    let mut wide = [0; 8];
    let at = if cfg!(target_endian = "big") { 8 - size } else { 0 };
    wide[at..at + size].copy_from_slice(&bytes[..size]);
    i64::from_ne_bytes(wide)
}

/// The codes of an enumeration and their names. The lock is held; a code has `size` bytes, at most
/// eight.
pub(super) unsafe fn labels(kind: &Id, size: usize) -> Result<Vec<(i64, String)>, LibraryRefusal> {
    // SAFETY: under the lock; each number is that of a member; a name is memory of the library,
    // which is given back.
    unsafe {
        let count = status(H5Tget_nmembers(kind.raw()))?;
        let mut labels = Vec::new();
        for member in 0..count.cast_unsigned() {
            let mut code = [0u8; 8];
            status(H5Tget_member_value(kind.raw(), member, code.as_mut_ptr().cast()))?;
            let name = H5Tget_member_name(kind.raw(), member);
            if name.is_null() {
                return Err(LibraryRefusal("an enumeration without names".into()));
            }
            labels.push((integer(code, size), CStr::from_ptr(name).to_string_lossy().into_owned()));
            H5free_memory(name.cast());
        }
        Ok(labels)
    }
}
