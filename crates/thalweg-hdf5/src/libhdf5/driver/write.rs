//! A virtual file driver for writing: libhdf5 writes metadata to a file, and only finds places for
//! values.
//!
//! Bytes that libhdf5 writes into a place of [`DriverFile::reserve`] are dropped. The caller that
//! reserved the place writes the bytes itself, in any order and from any thread.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5F_mem_t, H5Fcreate};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5Pset_driver;
use thalweg_io::{Error, Result};

use super::{
    Base, CLASS_VALUE, CLASS_VERSION, Driven, DriverClass, DriverStatus, H5FDregister, NAME,
};
use crate::libhdf5::allowance;
use crate::libhdf5::handle::{Id, LibraryRefusal, status};

/// `H5FD_FEAT_AGGREGATE_METADATA`, `_ACCUMULATE_METADATA` and `_AGGREGATE_SMALLDATA`
/// (H5FDpublic.h): small pieces are put together. `_DATA_SIEVE` is left out, because it would read
/// values before they exist and write them back.
const FEATURES: c_ulong = 0x01 | 0x06 | 0x10;

/// The signature of a global heap (HDF5 file format specification 3.0, section III.E).
const HEAP: &[u8] = b"GCOL";

/// A file that libhdf5 writes.
#[derive(Debug)]
pub(in crate::libhdf5) struct DriverFile {
    file: File,
    name: Arc<str>,
    status: DriverStatus,
    /// Whether values are dropped and their place is stored in `reserved`.
    reserving: AtomicBool,
    /// The offset of the latest dropped values; `u64::MAX` if there are none.
    reserved: AtomicU64,
}

impl DriverFile {
    /// A driver file over `file`, which must be open for writing and reading. Errors call it
    /// `name`.
    pub(in crate::libhdf5) fn new(file: File, name: Arc<str>) -> Self {
        Self {
            file,
            name,
            status: DriverStatus::default(),
            reserving: AtomicBool::new(false),
            reserved: AtomicU64::new(u64::MAX),
        }
    }

    /// Reserves a place for the values that `write` writes through the library, and returns its
    /// offset. The values are dropped. The lock is held.
    pub(in crate::libhdf5) fn reserve(
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
    pub(in crate::libhdf5) fn take_error(&self) -> Option<Error> {
        self.status.take_error()
    }

    /// Creates an HDF5 file in this file, with these creation and access property lists. The lock
    /// is held.
    pub(in crate::libhdf5) fn create(
        self: &Arc<Self>,
        make: &Id,
        access: &Id,
    ) -> Result<Id, LibraryRefusal> {
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
                self.status.fail(Error::io_at(&self.name, doing, at, error));
                -1
            }
        }
    }
}

/// A file as the library holds it. It starts with the same fields as [`Driven`].
#[repr(C)]
struct Driving {
    base: Base,
    end_of_addresses: u64,
    sink: Arc<DriverFile>,
}

static CLASS: DriverClass = DriverClass {
    version: CLASS_VERSION,
    value: CLASS_VALUE + 1,
    open: Some(open),
    close: Some(close),
    query: Some(query),
    get_eof: Some(get_eof),
    get_eoa: Some(get_eoa),
    set_eoa: Some(set_eoa),
    read: Some(read),
    write: Some(write),
    truncate: Some(truncate),
    ..super::CLASS
};

thread_local! {
    /// The driver file of the HDF5 file that this thread is creating.
    static OPENING: RefCell<Option<Arc<DriverFile>>> = const { RefCell::new(None) };
}

unsafe extern "C" fn open(_: *const c_char, _: c_uint, _: hid_t, _: u64) -> *mut Driven {
    let Some(sink) = OPENING.take() else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(Driving { base: Base::EMPTY, end_of_addresses: 0, sink })).cast()
}

unsafe extern "C" fn close(file: *mut Driven) -> c_int {
    // SAFETY: the library closes each file from `open` once, and does not use it afterwards.
    drop(unsafe { Box::from_raw(file.cast::<Driving>()) });
    0
}

unsafe extern "C" fn query(_: *const Driven, flags: *mut c_ulong) -> c_int {
    if !flags.is_null() {
        // SAFETY: the pointer is to a number of the library.
        unsafe { *flags = FEATURES };
    }
    0
}

unsafe extern "C" fn get_eoa(file: *const Driven, _: H5F_mem_t) -> u64 {
    // SAFETY: `open` made the file; the lock keeps other threads away.
    unsafe { (*file.cast::<Driving>()).end_of_addresses }
}

unsafe extern "C" fn set_eoa(file: *mut Driven, _: H5F_mem_t, address: u64) -> c_int {
    // SAFETY: as above.
    unsafe { (*file.cast::<Driving>()).end_of_addresses = address };
    0
}

unsafe extern "C" fn get_eof(file: *const Driven, _: H5F_mem_t) -> u64 {
    // SAFETY: as above.
    let sink = unsafe { &(*file.cast::<Driving>()).sink };
    sink.file.metadata().map_or(0, |meta| meta.len())
}

unsafe extern "C" fn read(
    file: *mut Driven,
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
        (&(*file.cast::<Driving>()).sink, std::slice::from_raw_parts_mut(out.cast::<u8>(), size))
    };
    sink.status_code("reading again", at, sink.read(at, out))
}

unsafe extern "C" fn write(
    file: *mut Driven,
    kind: H5F_mem_t,
    _: hid_t,
    at: u64,
    size: usize,
    from: *const c_void,
) -> c_int {
    // SAFETY: as above; the buffer has `size` bytes.
    let (sink, bytes) = unsafe {
        (&(*file.cast::<Driving>()).sink, std::slice::from_raw_parts(from.cast::<u8>(), size))
    };
    // The library writes heaps of lists and strings as values, too, at any time when its cache
    // drops them. Their signature tells them apart.
    if kind == H5F_mem_t::H5FD_MEM_DRAW
        && sink.reserving.load(Ordering::Relaxed)
        && !bytes.starts_with(HEAP)
    {
        sink.reserved.store(at, Ordering::Relaxed);
        return 0;
    }
    let written = if allowance::may_write(size as u64) {
        sink.file.write_all_at(bytes, at)
    } else {
        Err(std::io::ErrorKind::OutOfMemory.into())
    };
    sink.status_code("writing", at, written)
}

unsafe extern "C" fn truncate(file: *mut Driven, _: hid_t, _: bool) -> c_int {
    // SAFETY: as above.
    let (sink, end) =
        unsafe { (&(*file.cast::<Driving>()).sink, (*file.cast::<Driving>()).end_of_addresses) };
    sink.status_code("setting the size of", end, sink.file.set_len(end))
}
