//! The library itself: its lock, its identifiers, its errors.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_uint, c_void};
use std::sync::Once;

use hdf5_metno_sys::h5::{H5dont_atexit, H5open};
use hdf5_metno_sys::h5ac::{H5AC__CURR_CACHE_CONFIG_VERSION, H5AC_cache_config_t};
use hdf5_metno_sys::h5c::{H5C_cache_decr_mode, H5C_cache_flash_incr_mode, H5C_cache_incr_mode};
use hdf5_metno_sys::h5e::{
    H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2,
};
use hdf5_metno_sys::h5f::H5F_close_degree_t;
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_metno_sys::h5p::{
    H5P_CLS_FILE_ACCESS, H5Pcreate, H5Pget_mdc_config, H5Pset_cache, H5Pset_fclose_degree,
    H5Pset_mdc_config,
};

use super::filter_plugins;

/// The library's version, as in "2.2.0".
pub fn version() -> String {
    let mut major = 0;
    let mut minor = 0;
    let mut release = 0;
    // SAFETY: three numbers that outlive the call.
    locked(|| unsafe {
        hdf5_metno_sys::h5::H5get_libversion(&raw mut major, &raw mut minor, &raw mut release)
    });
    format!("{major}.{minor}.{release}")
}

unsafe extern "C" {
    /// The bindings declare its mask as a pointer.
    fn H5PLset_loading_state(mask: c_uint) -> i32;
}

/// Runs `work` while no other thread is in the library.
pub(super) fn locked<T>(work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    let _guard = hdf5_metno_sys::LOCK.lock();
    // SAFETY: under the lock. Without `H5dont_atexit` the library would close files that a thread
    // still uses; without `H5Eset_auto2` it would print its errors; without `H5PLset_loading_state`
    // a file could make it load plugins.
    ONCE.call_once(|| unsafe {
        H5dont_atexit();
        H5open();
        H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut());
        H5PLset_loading_state(0);
        filter_plugins::register();
    });
    work()
}

/// The library's message for a call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LibraryRefusal(pub(super) String);

/// The status of a call: negative for a failure. The lock must be held since the call, or the error
/// may be that of another thread.
pub(super) fn status<N: Into<i64> + Copy>(code: N) -> Result<N, LibraryRefusal> {
    if code.into() >= 0 { Ok(code) } else { Err(refused()) }
}

/// Takes the innermost error from the library's error stack, and clears the stack.
fn refused() -> LibraryRefusal {
    unsafe extern "C" fn first(_: c_uint, error: *const H5E_error2_t, message: *mut c_void) -> i32 {
        // SAFETY: `message` is the string below; the library passes an error whose text is null or
        // ends with NUL.
        unsafe {
            let message = &mut *message.cast::<String>();
            let error = &*error;
            if message.is_empty() && !error.desc.is_null() {
                message.push_str(&CStr::from_ptr(error.desc).to_string_lossy());
            }
        }
        0
    }
    let mut message = String::new();
    // SAFETY: under the lock; `message` outlives the walk.
    unsafe {
        H5Ewalk2(
            H5E_DEFAULT,
            H5E_direction_t::H5E_WALK_UPWARD,
            Some(first),
            (&raw mut message).cast(),
        );
        H5Eclear2(H5E_DEFAULT);
    }
    if message.is_empty() {
        message.push_str("no reason given");
    }
    LibraryRefusal(filter_plugins::take_refused().unwrap_or(message))
}

/// The identifier of an open object of the library. Dropping it closes the object.
#[derive(Debug)]
pub(super) struct Id(hid_t);

impl Id {
    /// Takes ownership of the identifier that a call returned.
    pub(super) fn new(id: hid_t) -> Result<Self, LibraryRefusal> {
        status(id).map(Self)
    }

    pub(super) fn raw(&self) -> hid_t {
        self.0
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: under the lock, and the identifier is ours.
        locked(|| unsafe { H5Idec_ref(self.0) });
    }
}

/// The most stored bytes of metadata that the library keeps of an open file. In memory they take
/// about ten times as much. The library's own limit is 32 MiB.
const METADATA_CACHE: usize = 256 << 10;

/// The access property list with which files are opened. The lock is held.
pub(super) fn access() -> Result<Id, LibraryRefusal> {
    // SAFETY: under the lock; the structure is the library's own, and its numbers and flags may be
    // zero.
    unsafe {
        let access = Id::new(H5Pcreate(*H5P_CLS_FILE_ACCESS))?;
        status(H5Pset_fclose_degree(access.raw(), H5F_close_degree_t::H5F_CLOSE_STRONG))?;
        // No chunk goes through the library, so it needs no cache for chunks.
        status(H5Pset_cache(access.raw(), 0, 0, 0, 0.75))?;
        let mut cache = std::mem::zeroed::<H5AC_cache_config_t>();
        cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
        status(H5Pget_mdc_config(access.raw(), &raw mut cache))?;
        cache.set_initial_size = 1;
        (cache.initial_size, cache.min_size, cache.max_size) =
            (METADATA_CACHE, METADATA_CACHE, METADATA_CACHE);
        cache.incr_mode = H5C_cache_incr_mode::H5C_incr__off;
        cache.flash_incr_mode = H5C_cache_flash_incr_mode::H5C_flash_incr__off;
        cache.decr_mode = H5C_cache_decr_mode::H5C_decr__off;
        status(H5Pset_mdc_config(access.raw(), &raw mut cache))?;
        Ok(access)
    }
}
