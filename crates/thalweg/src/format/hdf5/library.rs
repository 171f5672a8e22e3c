//! The library itself: its lock, its identifiers, its errors.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_uint, c_void};
use std::sync::Once;

use hdf5_metno_sys::h5::{H5dont_atexit, H5open};
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2};
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};

/// The library's version, as in "2.2.0".
pub fn version() -> String {
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: three numbers that outlive the call.
    locked(|| unsafe { hdf5_metno_sys::h5::H5get_libversion(&raw mut major, &raw mut minor, &raw mut release) });
    format!("{major}.{minor}.{release}")
}

/// Runs `work` while no other thread is in the library.
pub(super) fn locked<T>(work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    let _guard = hdf5_metno_sys::LOCK.lock();
    // SAFETY: under the lock. Without `H5dont_atexit` the library would close files that a thread still uses; without
    // `H5Eset_auto2` it would print its errors.
    ONCE.call_once(|| unsafe {
        H5dont_atexit();
        H5open();
        H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut());
    });
    work()
}

/// What the library said when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

/// The status of a call: negative for a failure. The lock must be held since the call, or another thread's error is told.
pub(super) fn status<N: Into<i64> + Copy>(code: N) -> Result<N, Refused> {
    if code.into() >= 0 { Ok(code) } else { Err(refused()) }
}

/// The innermost error of the library's stack, which is emptied.
fn refused() -> Refused {
    unsafe extern "C" fn first(_: c_uint, error: *const H5E_error2_t, told: *mut c_void) -> i32 {
        // SAFETY: `told` is the string below; the library passes an error whose text is null or ends with NUL.
        unsafe {
            let (told, error) = (&mut *told.cast::<String>(), &*error);
            if told.is_empty() && !error.desc.is_null() {
                told.push_str(&CStr::from_ptr(error.desc).to_string_lossy());
            }
        }
        0
    }
    let mut told = String::new();
    // SAFETY: under the lock; `told` outlives the walk.
    unsafe {
        H5Ewalk2(H5E_DEFAULT, H5E_direction_t::H5E_WALK_UPWARD, Some(first), (&raw mut told).cast());
        H5Eclear2(H5E_DEFAULT);
    }
    if told.is_empty() {
        told.push_str("no reason given");
    }
    Refused(told)
}

/// An open thing of the library's, closed when dropped.
#[derive(Debug)]
pub(super) struct Id(hid_t);

impl Id {
    /// Takes over what a call returned.
    pub(super) fn new(id: hid_t) -> Result<Self, Refused> {
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
