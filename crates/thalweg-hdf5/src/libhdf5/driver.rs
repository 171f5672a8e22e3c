//! A virtual file driver: libhdf5 reads a [`Store`].
//!
//! The driver only reads, and never beyond the store's end. It reads blocks and keeps them for the
//! next read: metadata often lie close together, and a request for each piece would be slow on any
//! store. The first error of the store is kept, because it says more than the error of libhdf5.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

mod backing;
mod write;

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hdf5_metno_sys::h5f::{
    H5F_ACC_RDONLY, H5F_ACC_SWMR_READ, H5F_close_degree_t, H5F_mem_t, H5Fopen,
};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{H5Pset_driver, H5Pset_metadata_read_attempts};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::handle::{Id, LibraryRefusal, access, locked, status};
use backing::Backing;

pub(super) use write::DriverFile;

/// The version of the class structure that libhdf5 2 expects (`H5FD_CLASS_VERSION`).
const CLASS_VERSION: c_uint = 1;
/// The driver's number, one of those for drivers that are not registered with the HDF Group (256 to
/// 511).
const CLASS_VALUE: c_int = 384;

/// `H5FD_FEAT_SUPPORTS_SWMR_IO`: files that are being written can be opened.
const READS_WHILE_WRITTEN: c_ulong = 0x1000;

/// Versions of the superblock whose twelfth byte has flags of an open file (specification, section
/// II.A).
const FLAGGED_VERSIONS: std::ops::RangeInclusive<u8> = 3..=3;
/// The flag of a file that is open for writing (`H5F_SUPER_WRITE_ACCESS`).
const WRITTEN: u8 = 1;
/// The flag of a file that is written while others may read it (`H5F_SUPER_SWMR_ACCESS`).
const WRITTEN_FOR_READERS: u8 = 4;

/// How often metadata with a wrong checksum are read again in a file that is being written. The
/// library waits one nanosecond after the first attempt and twice as long after each further one
/// (`H5C__load_entry`): 0.27 s in all. Its own limit of 100 attempts would take centuries.
const READ_ATTEMPTS: c_uint = 28;

/// The first error of the store behind a file, and whether the file was closed.
#[derive(Debug, Default)]
pub(super) struct DriverStatus {
    error: Mutex<Option<Error>>,
    /// Whether the file's flags say that it is open for writing.
    unclosed: AtomicBool,
}

impl DriverStatus {
    /// Whether the file is still open for writing, or its writer was killed.
    pub(super) fn is_unclosed(&self) -> bool {
        self.unclosed.load(Ordering::Relaxed)
    }

    /// Takes the first error of the store, if there was one.
    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// The flags that a file has while it is open; zero for a file that was closed.
fn open_flags(store: &dyn Store) -> Result<u8> {
    let Some(start) = crate::superblock::find_signature(store)? else { return Ok(0) };
    let mut head = [0; 12];
    if start + head.len() as u64 > store.size() {
        return Ok(0);
    }
    store.read_at(start, &mut head)?;
    Ok(if FLAGGED_VERSIONS.contains(&head[8]) { head[11] } else { 0 })
}

/// `H5FD_t` of libhdf5 2 (H5FDdevelop.h): the fields with which the files of every driver begin.
/// The library fills them in.
#[repr(C)]
struct Base {
    driver_id: hid_t,
    class: *const DriverClass,
    file_number: c_ulong,
    access_flags: c_uint,
    feature_flags: c_ulong,
    max_address: u64,
    base_address: u64,
    threshold: u64,
    alignment: u64,
    paged_aggregation: bool,
}

impl Base {
    const EMPTY: Self = Self {
        driver_id: 0,
        class: std::ptr::null(),
        file_number: 0,
        access_flags: 0,
        feature_flags: 0,
        max_address: 0,
        base_address: 0,
        threshold: 0,
        alignment: 0,
        paged_aggregation: false,
    };
}

/// The file that the library holds.
#[repr(C)]
struct Driven {
    base: Base,
    end_of_addresses: u64,
    backing: Backing,
}

type Unused = Option<unsafe extern "C" fn()>;

/// `H5FD_class_t` of libhdf5 2 (H5FDdevelop.h); the bindings' own lacks members.
#[repr(C)]
struct DriverClass {
    version: c_uint,
    value: c_int,
    name: *const c_char,
    max_address: u64,
    close_degree: H5F_close_degree_t,
    terminate: Unused,
    superblock_size: Unused,
    superblock_encode: Unused,
    superblock_decode: Unused,
    access_size: usize,
    access_get: Unused,
    access_copy: Unused,
    access_free: Unused,
    transfer_size: usize,
    transfer_copy: Unused,
    transfer_free: Unused,
    open: Option<unsafe extern "C" fn(*const c_char, c_uint, hid_t, u64) -> *mut Driven>,
    close: Option<unsafe extern "C" fn(*mut Driven) -> c_int>,
    compare: Unused,
    query: Option<unsafe extern "C" fn(*const Driven, *mut c_ulong) -> c_int>,
    type_map: Unused,
    allocate: Unused,
    free: Unused,
    get_eoa: Option<unsafe extern "C" fn(*const Driven, H5F_mem_t) -> u64>,
    set_eoa: Option<unsafe extern "C" fn(*mut Driven, H5F_mem_t, u64) -> c_int>,
    get_eof: Option<unsafe extern "C" fn(*const Driven, H5F_mem_t) -> u64>,
    handle: Unused,
    read: Option<
        unsafe extern "C" fn(*mut Driven, H5F_mem_t, hid_t, u64, usize, *mut c_void) -> c_int,
    >,
    write: Option<
        unsafe extern "C" fn(*mut Driven, H5F_mem_t, hid_t, u64, usize, *const c_void) -> c_int,
    >,
    read_vector: Unused,
    write_vector: Unused,
    read_selection: Unused,
    write_selection: Unused,
    flush: Unused,
    truncate: Option<unsafe extern "C" fn(*mut Driven, hid_t, bool) -> c_int>,
    lock: Unused,
    unlock: Unused,
    delete: Unused,
    control: Unused,
    free_list_map: [H5F_mem_t; 7],
}

// SAFETY: the class never changes, and its one pointer is to a string constant.
unsafe impl Sync for DriverClass {}

const NAME: &CStr = c"thalweg";

static CLASS: DriverClass = DriverClass {
    version: CLASS_VERSION,
    value: CLASS_VALUE,
    name: NAME.as_ptr(),
    max_address: i64::MAX as u64,
    close_degree: H5F_close_degree_t::H5F_CLOSE_STRONG,
    terminate: None,
    superblock_size: None,
    superblock_encode: None,
    superblock_decode: None,
    access_size: 0,
    access_get: None,
    access_copy: None,
    access_free: None,
    transfer_size: 0,
    transfer_copy: None,
    transfer_free: None,
    open: Some(driver_open),
    close: Some(driver_close),
    compare: None,
    query: Some(driver_query),
    type_map: None,
    allocate: None,
    free: None,
    get_eoa: Some(driver_get_eoa),
    set_eoa: Some(driver_set_eoa),
    get_eof: Some(driver_get_eof),
    handle: None,
    read: Some(driver_read),
    write: Some(driver_write),
    read_vector: None,
    write_vector: None,
    read_selection: None,
    write_selection: None,
    flush: None,
    truncate: None,
    lock: None,
    unlock: None,
    delete: None,
    control: None,
    free_list_map: [H5F_mem_t::H5FD_MEM_DEFAULT; 7],
};

unsafe extern "C" {
    /// The bindings declare it with their own class structure.
    fn H5FDregister(class: *const DriverClass) -> hid_t;
}

thread_local! {
    /// The backing of the file that this thread is opening.
    static OPENING: RefCell<Option<Backing>> = const { RefCell::new(None) };
}

/// Opens a store as an HDF5 file.
pub(super) fn open(
    store: &Arc<dyn Store>,
    control: &Control,
) -> (Result<Id, LibraryRefusal>, Arc<DriverStatus>) {
    let driver_status = Arc::new(DriverStatus::default());
    let flags = open_flags(&**store).unwrap_or_else(|error| {
        driver_status.fail(error);
        0
    });
    driver_status.unclosed.store(flags & WRITTEN != 0, Ordering::Relaxed);
    let changes = flags & WRITTEN_FOR_READERS != 0;
    let backing = Backing::new(store.clone(), changes, control, &driver_status);
    let opened = locked(|| {
        OPENING.set(Some(backing));
        let opened = open_with(changes);
        OPENING.set(None);
        opened
    });
    (opened, driver_status)
}

/// The name by which libhdf5 knows files that it reads. No file can know it before, so that a
/// reference into another file is told from one into the file itself.
pub(super) fn open_name() -> &'static CStr {
    static OPEN_NAME: OnceLock<CString> = OnceLock::new();
    OPEN_NAME.get_or_init(|| {
        let random = RandomState::new().build_hasher().finish();
        CString::new(format!("thalweg-{random:016x}")).unwrap_or_default()
    })
}

/// Opens a file through the driver. The lock is held.
fn open_with(changes: bool) -> Result<Id, LibraryRefusal> {
    static DRIVER: OnceLock<hid_t> = OnceLock::new();
    // SAFETY: under the lock; the class is a constant with the layout that the library expects.
    let driver = *DRIVER.get_or_init(|| unsafe { H5FDregister(&raw const CLASS) });
    status(driver)?;
    // SAFETY: under the lock, with identifiers that are open; the name ends with NUL.
    unsafe {
        let access = access()?;
        status(H5Pset_driver(access.raw(), driver, std::ptr::null()))?;
        if changes {
            status(H5Pset_metadata_read_attempts(access.raw(), READ_ATTEMPTS))?;
        }
        let how = if changes { H5F_ACC_RDONLY | H5F_ACC_SWMR_READ } else { H5F_ACC_RDONLY };
        Id::new(H5Fopen(open_name().as_ptr(), how, access.raw()))
    }
}

/// Opens the file that this thread opens. A file that the library opens of itself, as the source
/// of a virtual dataset, counts as one that does not exist.
unsafe extern "C" fn driver_open(_: *const c_char, _: c_uint, _: hid_t, _: u64) -> *mut Driven {
    let Some(backing) = OPENING.take() else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(Driven { base: Base::EMPTY, end_of_addresses: 0, backing }))
}

unsafe extern "C" fn driver_close(file: *mut Driven) -> c_int {
    // SAFETY: the library closes each file from `driver_open` once, and does not use it afterwards.
    drop(unsafe { Box::from_raw(file) });
    0
}

unsafe extern "C" fn driver_query(_: *const Driven, flags: *mut c_ulong) -> c_int {
    if !flags.is_null() {
        // SAFETY: the pointer is to a number of the library.
        unsafe { *flags = READS_WHILE_WRITTEN };
    }
    0
}

unsafe extern "C" fn driver_get_eoa(file: *const Driven, _: H5F_mem_t) -> u64 {
    // SAFETY: `driver_open` made the file; the lock keeps other threads away.
    unsafe { (*file).end_of_addresses }
}

unsafe extern "C" fn driver_set_eoa(file: *mut Driven, _: H5F_mem_t, address: u64) -> c_int {
    // SAFETY: as above.
    unsafe { (*file).end_of_addresses = address };
    0
}

unsafe extern "C" fn driver_get_eof(file: *const Driven, _: H5F_mem_t) -> u64 {
    // SAFETY: as above.
    unsafe { (*file).backing.size() }
}

unsafe extern "C" fn driver_read(
    file: *mut Driven,
    _: H5F_mem_t,
    _: hid_t,
    at: u64,
    size: usize,
    buffer: *mut c_void,
) -> c_int {
    // SAFETY: as above; the buffer has `size` bytes, which the library need not have initialised,
    // so they are zeroed.
    let (backing, out) = unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), 0, size);
        let out = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size);
        (&mut (*file).backing, out)
    };
    match backing.read(at, out) {
        Ok(()) => 0,
        Err(error) => {
            backing.fail(error);
            -1
        }
    }
}

unsafe extern "C" fn driver_write(
    _: *mut Driven,
    _: H5F_mem_t,
    _: hid_t,
    _: u64,
    _: usize,
    _: *const c_void,
) -> c_int {
    -1
}

#[cfg(test)]
mod tests;
