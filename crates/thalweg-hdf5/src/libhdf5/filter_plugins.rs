//! Registers our encoders and decoders as filters of libhdf5. Our build of libhdf5 has no filter
//! that needs another library, and strings and references that it writes may be compressed with
//! one.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory};
use hdf5_metno_sys::h5z::{H5Z_FLAG_REVERSE, H5Z_class2_t};

use crate::encode::{ChunkEncoder, Coder};
use crate::filter::{Contexts, Filter, OUTSIDE};

/// The version of the class structure that libhdf5 expects (`H5Z_CLASS_T_VERS`).
const CLASS_VERSION: c_int = 1;

/// The most bytes of a decoded chunk that goes through libhdf5. libhdf5 does not say how large the
/// chunk should be.
const MOST: usize = 1 << 30;

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
    static ENCODER: RefCell<ChunkEncoder> = RefCell::default();
    /// Why a filter failed. It says more than the library's error.
    static REFUSED: RefCell<Option<String>> = const { RefCell::new(None) };
}

unsafe extern "C" {
    /// `H5Zregister` refuses filter numbers that belong to the library, and then calls this
    /// function.
    fn H5Z_register(class: *const H5Z_class2_t) -> c_int;
}

/// Takes the reason why a filter failed in this thread since the last call.
pub(super) fn take_refused() -> Option<String> {
    REFUSED.take()
}

/// Registers the filters. The lock is held, and the library is open.
pub(super) fn register() {
    let [deflate, szip, bzip2, lzf, blosc, lz4, bitshuffle, zfp, zstd, blosc2] = OUTSIDE;
    let filters: [(i32, Function); OUTSIDE.len()] = [
        (deflate, apply::<{ OUTSIDE[0] }>),
        (szip, apply::<{ OUTSIDE[1] }>),
        (bzip2, apply::<{ OUTSIDE[2] }>),
        (lzf, apply::<{ OUTSIDE[3] }>),
        (blosc, apply::<{ OUTSIDE[4] }>),
        (lz4, apply::<{ OUTSIDE[5] }>),
        (bitshuffle, apply::<{ OUTSIDE[6] }>),
        (zfp, apply::<{ OUTSIDE[7] }>),
        (zstd, apply::<{ OUTSIDE[8] }>),
        (blosc2, apply::<{ OUTSIDE[9] }>),
    ];
    for (id, function) in filters {
        let class = H5Z_class2_t {
            version: CLASS_VERSION,
            id,
            // The library only writes files with chunks that were encoded elsewhere if there is an
            // encoder.
            encoder_present: 1,
            decoder_present: 1,
            filter: Some(function),
            ..Default::default()
        };
        // SAFETY: under the lock; the library copies the structure. If it refuses, the filter stays
        // unknown, and reads report that.
        unsafe { H5Z_register(&raw const class) };
    }
}

type Function = unsafe extern "C" fn(
    c_uint,
    usize,
    *const c_uint,
    usize,
    *mut usize,
    *mut *mut c_void,
) -> usize;

/// Applies a filter to a chunk, or undoes it. Returns the size of the result, or 0 for a failure.
unsafe extern "C" fn apply<const NUMBER: i32>(
    flags: c_uint,
    count: usize,
    values: *const c_uint,
    size: usize,
    room: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    // SAFETY: the library passes `count` numbers and a buffer that holds `size` bytes, which it
    // allocated itself.
    let (values, chunk) = unsafe {
        let values = if count == 0 { &[] } else { std::slice::from_raw_parts(values, count) };
        (values, std::slice::from_raw_parts((*buffer).cast::<u8>(), size))
    };
    let made = if flags & H5Z_FLAG_REVERSE == 0 {
        encoded(NUMBER, values, chunk)
    } else {
        decoded(NUMBER, values, chunk)
    };
    let replaced = made.and_then(|bytes| {
        // SAFETY: the library frees what it allocates itself; the new buffer has room for all
        // bytes.
        unsafe {
            let out = H5allocate_memory(bytes.len(), 0);
            if out.is_null() {
                return Err(format!("no memory for {} bytes", bytes.len()));
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast::<u8>(), bytes.len());
            H5free_memory(*buffer);
            (*buffer, *room) = (out, bytes.len());
        }
        Ok(bytes.len())
    });
    replaced.unwrap_or_else(|why| {
        REFUSED.set(Some(why));
        0
    })
}

/// A chunk to which a filter is applied. A filter that does not shrink the chunk fails; if it is
/// optional, the library then stores the chunk without it.
fn encoded(number: i32, values: &[u32], chunk: &[u8]) -> Result<Vec<u8>, String> {
    let Some(coder) = Coder::of(number, values) else {
        return Err(format!("filter {number}, which this crate does not apply"));
    };
    let mut chunk = chunk.to_vec();
    let mask = ENCODER.with_borrow_mut(|encoder| encoder.encode(&[coder], 1, &mut chunk));
    match mask {
        Ok(0) => Ok(chunk),
        Ok(_) => Err(format!("{coder}, which does not shrink a chunk")),
        Err(fault) => Err(format!("{coder}: {fault}")),
    }
}

/// A chunk without a filter.
fn decoded(number: i32, values: &[u32], chunk: &[u8]) -> Result<Vec<u8>, String> {
    CONTEXTS.with_borrow_mut(|contexts| {
        let filter = Filter::new(number, "", values)?;
        let bytes = contexts
            .undo_one(&filter, chunk, MOST)
            .map_err(|fault| format!("{filter}: {fault}"))?;
        if bytes.is_empty() {
            return Err(format!("{filter}: a chunk of no bytes"));
        }
        Ok(bytes.to_vec())
    })
}
