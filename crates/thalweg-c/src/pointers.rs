//! References out of C's pointers, and handles.
//!
//! The functions are unsafe because only C's caller can know that a pointer leads where the header
//! says. All else, null pointers and texts that are not UTF-8, is an error.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use thalweg::Result;

use crate::status::wrong;

/// The text at a pointer. `name` is the argument's.
///
/// # Safety
/// The pointer is null, or leads to bytes that end with a zero byte and stay as they are for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's contract.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|_| wrong(format!("{name}: found bytes that are not UTF-8")))
}

/// The `count` values at a pointer, which may be null if there are none.
///
/// # Safety
/// The pointer is null, or leads to so many values that stay as they are for `'a`.
pub(crate) unsafe fn values<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    check::<T>(pointer, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's contract; it is not null, aligned, and of a size that can be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The memory of `bytes` bytes at a pointer, to write to.
///
/// # Safety
/// The pointer is null, or leads to so many bytes that nobody else uses for `'a`.
pub(crate) unsafe fn memory<'a>(
    pointer: *mut u8,
    bytes: usize,
    name: &str,
) -> Result<&'a mut [u8]> {
    check::<u8>(pointer, bytes, name)?;
    if bytes == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `values`. The bytes are only written to.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
}

fn check<T>(pointer: *const T, count: usize, name: &str) -> Result<()> {
    if count > 0 && pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        return Err(wrong(format!("{name}: found a pointer that is not aligned")));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(wrong(format!("{name}: found {count} values, more than memory can have"))),
    }
}

/// The value at a pointer; `None` if it is null.
///
/// # Safety
/// The pointer is null, or leads to a value that lives for `'a`, and that nobody writes to.
pub(crate) unsafe fn optional<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller's contract.
    unsafe { pointer.as_ref() }
}

/// The value of a handle.
///
/// # Safety
/// As of [`optional`].
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller's contract.
    unsafe { optional(pointer) }.ok_or_else(|| null(name))
}

/// The value of a handle that one thread at a time uses.
///
/// # Safety
/// The pointer is null, or leads to a value that nobody else uses for `'a`.
pub(crate) unsafe fn handle_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: the caller's contract.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// The place for a result.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// The place at a pointer.
    ///
    /// # Safety
    /// The pointer is null, or leads to memory for a value that nobody else uses while the place is
    /// there.
    pub(crate) unsafe fn at(pointer: *mut T, name: &str) -> Result<Self> {
        if pointer.is_null() { Err(null(name)) } else { Ok(Self(pointer)) }
    }

    pub(crate) fn put(self, value: T) {
        // SAFETY: the contract of `at`. What was there before is C's, and is not dropped.
        unsafe { self.0.write(value) };
    }
}

impl<T> Place<*mut T> {
    /// Puts a value into memory of its own, and its handle into the place.
    pub(crate) fn put_handle(self, value: T) {
        self.put(Box::into_raw(Box::new(value)));
    }
}

/// Drops the value of a handle.
///
/// # Safety
/// The pointer is null, or came from [`Place::put_handle`] and is not used again.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's contract.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

fn null(name: &str) -> thalweg::Error {
    wrong(format!("{name}: found a null pointer"))
}
