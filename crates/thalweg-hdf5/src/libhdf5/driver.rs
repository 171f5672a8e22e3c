//! A virtual file driver for writing: libhdf5 writes metadata to a file, and only finds places for
//! values.
//!
//! Bytes that libhdf5 writes into a place of [`DriverFile::reserve`] are dropped. The caller that
//! reserved the place writes the bytes itself, in any order and from any thread. The first error of
//! the system is kept, because it says more than the error of libhdf5.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5F_close_degree_t, H5F_mem_t, H5Fcreate};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5Pset_driver;
use thalweg_io::Error;

use super::handle::{Id, LibraryRefusal, status};

/// The version of the class structure that libhdf5 2 expects (`H5FD_CLASS_VERSION`).
const CLASS_VERSION: c_uint = 1;
/// The driver's number, one of those for drivers that are not registered with the HDF Group (256 to
/// 511).
const CLASS_VALUE: c_int = 384;

/// `H5FD_FEAT_AGGREGATE_METADATA`, `_ACCUMULATE_METADATA` and `_AGGREGATE_SMALLDATA`
/// (H5FDpublic.h): small pieces are put together. `_DATA_SIEVE` is left out, because it would read
/// values before they exist and write them back.
const FEATURES: c_ulong = 0x01 | 0x06 | 0x10;

/// The signature of a global heap (HDF5 file format specification 3.0, section III.E).
const HEAP: &[u8] = b"GCOL";

/// A file that libhdf5 writes.
#[derive(Debug)]
pub(super) struct DriverFile {
    file: File,
    name: Arc<str>,
    /// The first error of the system.
    error: Mutex<Option<Error>>,
    /// Whether values are dropped and their place is stored in `reserved`.
    reserving: AtomicBool,
    /// The offset of the latest dropped values; `u64::MAX` if there are none.
    reserved: AtomicU64,
}

impl DriverFile {
    /// A driver file over `file`, which must be open for writing and reading. Errors call it
    /// `name`.
    pub(super) fn new(file: File, name: Arc<str>) -> Self {
        Self {
            file,
            name,
            error: Mutex::default(),
            reserving: AtomicBool::new(false),
            reserved: AtomicU64::new(u64::MAX),
        }
    }

    /// Reserves a place for the values that `write` writes through the library, and returns its
    /// offset. The values are dropped. The lock is held.
    pub(super) fn reserve(
        &self,
        write: impl FnOnce() -> Result<(), LibraryRefusal>,
    ) -> Result<u64, LibraryRefusal> {
        self.reserved.store(u64::MAX, Ordering::Relaxed);
        self.reserving.store(true, Ordering::Relaxed);
        let written = write();
        self.reserving.store(false, Ordering::Relaxed);
        written?;
        match self.reserved.load(Ordering::Relaxed) {
            u64::MAX => Err(LibraryRefusal("values without a place".into())),
            place => Ok(place),
        }
    }

    /// Takes the first error of the system, if there was one.
    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Creates an HDF5 file in this file, with these creation and access property lists. The lock
    /// is held.
    pub(super) fn create(self: &Arc<Self>, make: &Id, access: &Id) -> Result<Id, LibraryRefusal> {
        static DRIVER: OnceLock<hid_t> = OnceLock::new();
        // SAFETY: under the lock; the class is a constant with the layout that the library expects;
        // the lists are open.
        unsafe {
            let driver = *DRIVER.get_or_init(|| H5FDregister(&raw const CLASS));
            status(driver)?;
            status(H5Pset_driver(access.raw(), driver, std::ptr::null()))?;
            OPENING.set(Some(self.clone()));
            let made = H5Fcreate(NAME.as_ptr(), H5F_ACC_TRUNC, make.raw(), access.raw());
            OPENING.set(None);
            Id::new(made)
        }
    }

    /// Fills `out` from byte `at` of the file on, with zeros beyond its end.
    fn read(&self, mut at: u64, mut out: &mut [u8]) -> std::io::Result<()> {
        while !out.is_empty() {
            match self.file.read_at(out, at) {
                Ok(0) => {
                    out.fill(0);
                    return Ok(());
                }
                Ok(n) => (at, out) = (at + n as u64, &mut out[n..]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The library's status code of an outcome. The error is kept.
    fn status_code(&self, doing: &'static str, at: u64, outcome: std::io::Result<()>) -> c_int {
        match outcome {
            Ok(()) => 0,
            Err(error) => {
                let error = Error::io_at(&self.name, doing, at, error);
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                -1
            }
        }
    }
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

/// A file as the library holds it. It starts with the same fields as [`Driven`].
#[repr(C)]
struct Driving {
    base: Base,
    end_of_addresses: u64,
    sink: Arc<DriverFile>,
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
    open: Option<unsafe extern "C" fn(*const c_char, c_uint, hid_t, u64) -> *mut Driving>,
    close: Option<unsafe extern "C" fn(*mut Driving) -> c_int>,
    compare: Unused,
    query: Option<unsafe extern "C" fn(*const Driving, *mut c_ulong) -> c_int>,
    type_map: Unused,
    allocate: Unused,
    free: Unused,
    get_eoa: Option<unsafe extern "C" fn(*const Driving, H5F_mem_t) -> u64>,
    set_eoa: Option<unsafe extern "C" fn(*mut Driving, H5F_mem_t, u64) -> c_int>,
    get_eof: Option<unsafe extern "C" fn(*const Driving, H5F_mem_t) -> u64>,
    handle: Unused,
    read: Option<
        unsafe extern "C" fn(*mut Driving, H5F_mem_t, hid_t, u64, usize, *mut c_void) -> c_int,
    >,
    write: Option<
        unsafe extern "C" fn(*mut Driving, H5F_mem_t, hid_t, u64, usize, *const c_void) -> c_int,
    >,
    read_vector: Unused,
    write_vector: Unused,
    read_selection: Unused,
    write_selection: Unused,
    flush: Unused,
    truncate: Option<unsafe extern "C" fn(*mut Driving, hid_t, bool) -> c_int>,
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
    open: Some(open),
    close: Some(close),
    compare: None,
    query: Some(query),
    type_map: None,
    allocate: None,
    free: None,
    get_eoa: Some(get_eoa),
    set_eoa: Some(set_eoa),
    get_eof: Some(get_eof),
    handle: None,
    read: Some(read),
    write: Some(write),
    read_vector: None,
    write_vector: None,
    read_selection: None,
    write_selection: None,
    flush: None,
    truncate: Some(truncate),
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
    /// The driver file of the HDF5 file that this thread is creating.
    static OPENING: RefCell<Option<Arc<DriverFile>>> = const { RefCell::new(None) };
}

unsafe extern "C" fn open(_: *const c_char, _: c_uint, _: hid_t, _: u64) -> *mut Driving {
    let Some(sink) = OPENING.take() else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(Driving { base: Base::EMPTY, end_of_addresses: 0, sink }))
}

unsafe extern "C" fn close(file: *mut Driving) -> c_int {
    // SAFETY: the library closes each file from `open` once, and does not use it afterwards.
    drop(unsafe { Box::from_raw(file) });
    0
}

unsafe extern "C" fn query(_: *const Driving, flags: *mut c_ulong) -> c_int {
    if !flags.is_null() {
        // SAFETY: the pointer is to a number of the library.
        unsafe { *flags = FEATURES };
    }
    0
}

unsafe extern "C" fn get_eoa(file: *const Driving, _: H5F_mem_t) -> u64 {
    // SAFETY: `open` made the file; the lock keeps other threads away.
    unsafe { (*file).end_of_addresses }
}

unsafe extern "C" fn set_eoa(file: *mut Driving, _: H5F_mem_t, address: u64) -> c_int {
    // SAFETY: as above.
    unsafe { (*file).end_of_addresses = address };
    0
}

unsafe extern "C" fn get_eof(file: *const Driving, _: H5F_mem_t) -> u64 {
    // SAFETY: as above.
    let sink = unsafe { &(*file).sink };
    sink.file.metadata().map_or(0, |meta| meta.len())
}

unsafe extern "C" fn read(
    file: *mut Driving,
    _: H5F_mem_t,
    _: hid_t,
    at: u64,
    size: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: as above; the buffer has `size` bytes, which the library need not have initialised,
    // so they are zeroed.
    let (sink, out) = unsafe {
        std::ptr::write_bytes(out.cast::<u8>(), 0, size);
        (&(*file).sink, std::slice::from_raw_parts_mut(out.cast::<u8>(), size))
    };
    sink.status_code("reading again", at, sink.read(at, out))
}

unsafe extern "C" fn write(
    file: *mut Driving,
    kind: H5F_mem_t,
    _: hid_t,
    at: u64,
    size: usize,
    from: *const c_void,
) -> c_int {
    // SAFETY: as above; the buffer has `size` bytes.
    let (sink, bytes) =
        unsafe { (&(*file).sink, std::slice::from_raw_parts(from.cast::<u8>(), size)) };
    // The library writes heaps of lists and strings as values, too, at any time when its cache
    // drops them. Their signature tells them apart.
    if kind == H5F_mem_t::H5FD_MEM_DRAW
        && sink.reserving.load(Ordering::Relaxed)
        && !bytes.starts_with(HEAP)
    {
        sink.reserved.store(at, Ordering::Relaxed);
        return 0;
    }
    sink.status_code("writing", at, sink.file.write_all_at(bytes, at))
}

unsafe extern "C" fn truncate(file: *mut Driving, _: hid_t, _: bool) -> c_int {
    // SAFETY: as above.
    let (sink, end) = unsafe { (&(*file).sink, (*file).end_of_addresses) };
    sink.status_code("setting the size of", end, sink.file.set_len(end))
}
