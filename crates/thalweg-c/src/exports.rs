//! The functions of `thalweg.h`.
//!
//! What the header asks of its callers is the contract of each: pointers are null or lead to what
//! the header says, and a handle is not used after it was freed.
#![allow(unsafe_code)]
#![allow(non_camel_case_types)]

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::ptr;

use thalweg::graph::Neighbours;
use thalweg::{Options, Result, open_urls};

use crate::arrays::Arrays as thw_arrays;
use crate::network::{Network as thw_network, shown};
use crate::pointers::{Place, free, handle, handle_mut, memory, text, values};
use crate::reads::{Reads as thw_reads, Run as thw_run, null_id};
use crate::status::{self, END, MISSING, OK, run, wrong};
use crate::types::{thw_array, thw_batch, thw_lists, thw_options, thw_read};

/// What a caller asks for. Its pointer is null, or leads to a structure of the size that its first
/// field says.
unsafe fn options(given: *const thw_options) -> Result<Options> {
    open_urls();
    if given.is_null() {
        return Ok(Options::limited(None, None));
    }
    // SAFETY: the caller's contract. The structure of another version may be shorter.
    let found = unsafe { given.cast::<usize>().read() };
    let expected = size_of::<thw_options>();
    if found != expected {
        return Err(wrong(format!("options.size: found {found}, expected {expected}")));
    }
    // SAFETY: the caller's contract, and the size.
    let given = unsafe { given.read() };
    let threads = (given.threads > 0).then_some(given.threads as usize);
    let memory = usize::try_from(given.memory).unwrap_or(usize::MAX);
    Ok(Options::limited(threads, (memory > 0).then_some(memory)))
}

/// Puts a value into its place, if it is there.
fn put<T>(place: Place<T>, value: Option<T>, otherwise: i32) -> Result<i32> {
    let Some(value) = value else { return Ok(otherwise) };
    place.put(value);
    Ok(OK)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn thw_version() -> *const c_char {
    status::version()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn thw_error() -> *const c_char {
    status::message()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_open(
    path: *const c_char,
    options: *const thw_options,
    reads: *mut *mut thw_reads,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, path, given) =
            unsafe { (Place::at(reads, "reads")?, text(path, "path")?, self::options(options)?) };
        place.put_handle(thw_reads::open(path, given)?);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_free(reads: *mut thw_reads) {
    run(|| {
        // SAFETY: the header's contract.
        unsafe { free(reads) };
        Ok(OK)
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_count(reads: *const thw_reads, count: *mut u64) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, reads) = unsafe { (Place::at(count, "count")?, handle(reads, "reads")?) };
        put(place, Some(reads.count()?), OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_header(
    reads: *const thw_reads,
    file: u32,
    read_group: u32,
    name: *const c_char,
    text: *mut *const c_char,
) -> i32 {
    thread_local! {
        static LAST: RefCell<CString> = RefCell::default();
    }
    run(|| {
        // SAFETY: the header's contract.
        let (place, reads, name) = unsafe {
            (Place::at(text, "text")?, handle(reads, "reads")?, self::text(name, "name")?)
        };
        let found = reads.header(file, read_group, name)?;
        let kept = found.map(|text| {
            LAST.with(|last| {
                *last.borrow_mut() = text;
                last.borrow().as_ptr()
            })
        });
        put(place, kept, MISSING)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_all(
    reads: *const thw_reads,
    run: *mut *mut thw_run,
) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract.
        let (place, reads) = unsafe { (Place::at(run, "run")?, handle(reads, "reads")?) };
        place.put_handle(reads.run(None)?);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_get(
    reads: *const thw_reads,
    ids: *const *const c_char,
    count: usize,
    run: *mut *mut thw_run,
) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract.
        let (place, reads, ids) = unsafe {
            (Place::at(run, "run")?, handle(reads, "reads")?, values(ids, count, "ids")?)
        };
        let id = |(at, id): (usize, &*const c_char)| {
            if id.is_null() {
                return Err(null_id(at));
            }
            // SAFETY: the header's contract, of each of the pointers.
            Ok(unsafe { text(*id, "ids") }?.to_owned())
        };
        place.put_handle(reads.run(Some(ids.iter().enumerate().map(id).collect::<Result<_>>()?))?);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_reads_cancel(reads: *const thw_reads) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        unsafe { handle(reads, "reads") }?.cancel();
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_next(run: *mut thw_run, read: *mut thw_read) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract; a run is for one thread.
        let (place, run) = unsafe { (Place::at(read, "read")?, handle_mut(run, "run")?) };
        put(place, run.next()?, END)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_next_batch(run: *mut thw_run, batch: *mut thw_batch) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract; a run is for one thread.
        let (place, run) = unsafe { (Place::at(batch, "batch")?, handle_mut(run, "run")?) };
        put(place, run.next_batch()?, END)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_read_integer(
    run: *mut thw_run,
    name: *const c_char,
    value: *mut i64,
) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract; a run is for one thread.
        let (place, run, name) =
            unsafe { (Place::at(value, "value")?, handle_mut(run, "run")?, text(name, "name")?) };
        put(place, run.integer(name)?, MISSING)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_read_real(
    run: *mut thw_run,
    name: *const c_char,
    value: *mut f64,
) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract; a run is for one thread.
        let (place, run, name) =
            unsafe { (Place::at(value, "value")?, handle_mut(run, "run")?, text(name, "name")?) };
        put(place, run.real(name)?, MISSING)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_read_text(
    run: *mut thw_run,
    name: *const c_char,
    text: *mut *const c_char,
) -> i32 {
    status::run(|| {
        // SAFETY: the header's contract; a run is for one thread.
        let (place, run, name) = unsafe {
            (Place::at(text, "text")?, handle_mut(run, "run")?, self::text(name, "name")?)
        };
        put(place, run.text(name)?, MISSING)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_run_free(run: *mut thw_run) {
    status::run(|| {
        // SAFETY: the header's contract.
        unsafe { free(run) };
        Ok(OK)
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_arrays_open(
    path: *const c_char,
    options: *const thw_options,
    arrays: *mut *mut thw_arrays,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, path, given) =
            unsafe { (Place::at(arrays, "arrays")?, text(path, "path")?, self::options(options)?) };
        place.put_handle(thw_arrays::open(path, given)?);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_arrays_free(arrays: *mut thw_arrays) {
    run(|| {
        // SAFETY: the header's contract.
        unsafe { free(arrays) };
        Ok(OK)
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_arrays_info(
    arrays: *const thw_arrays,
    path: *const c_char,
    info: *mut thw_array,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, arrays, path) =
            unsafe { (Place::at(info, "info")?, handle(arrays, "arrays")?, text(path, "path")?) };
        put(place, Some(arrays.info(path)?), OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_arrays_read(
    arrays: *const thw_arrays,
    path: *const c_char,
    start: *const u64,
    count: *const u64,
    memory: *mut c_void,
    bytes: usize,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (arrays, path, out) = unsafe {
            let out = self::memory(memory.cast(), bytes, "memory")?;
            (handle(arrays, "arrays")?, text(path, "path")?, out)
        };
        let part = if start.is_null() && count.is_null() {
            None
        } else {
            let rank = arrays.rank(path)?;
            // SAFETY: the header's contract: a number for each dimension.
            unsafe { Some((values(start, rank, "start")?, values(count, rank, "count")?)) }
        };
        arrays.read(path, part, out)?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_network_open(
    path: *const c_char,
    options: *const thw_options,
    network: *mut *mut thw_network,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, path, given) = unsafe {
            (Place::at(network, "network")?, text(path, "path")?, self::options(options)?)
        };
        place.put_handle(thw_network::open(path, given)?);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_network_free(network: *mut thw_network) {
    run(|| {
        // SAFETY: the header's contract.
        unsafe { free(network) };
        Ok(OK)
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_vertex_count(
    network: *const thw_network,
    r#type: *const c_char,
    count: *mut u64,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, network, of) = unsafe {
            (Place::at(count, "count")?, handle(network, "network")?, text(r#type, "type")?)
        };
        put(place, Some(network.count(of)?), OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_neighbors(
    network: *const thw_network,
    from: *const c_char,
    to: *const c_char,
    ids: *const u64,
    count: usize,
    lists: *mut thw_lists,
) -> i32 {
    run(|| {
        // SAFETY: the header's contract.
        let (place, network, from, to, ids) = unsafe {
            (
                Place::at(lists, "lists")?,
                handle(network, "network")?,
                text(from, "from")?,
                if to.is_null() { None } else { Some(text(to, "to")?) },
                values(ids, count, "ids")?,
            )
        };
        let owner = Box::into_raw(Box::new(network.neighbours(from, to, ids)?));
        // SAFETY: it was made just now, and nobody else has it.
        place.put(shown(unsafe { &*owner }, owner));
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn thw_lists_free(lists: *mut thw_lists) {
    run(|| {
        // SAFETY: the header's contract; the owner is null or came from `thw_neighbors`.
        unsafe {
            if let Some(lists) = lists.as_mut() {
                free(lists.owner.cast::<Neighbours>());
                *lists = thw_lists {
                    count: 0,
                    offsets: ptr::null(),
                    ids: ptr::null(),
                    owner: ptr::null_mut(),
                };
            }
        }
        Ok(OK)
    });
}
