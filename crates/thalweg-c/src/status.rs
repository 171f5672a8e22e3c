//! Codes and messages of failures, and the boundary that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg::{Error, Result};

pub(crate) const OK: i32 = 0;
pub(crate) const END: i32 = 1;
pub(crate) const MISSING: i32 = 2;
const ARGUMENT: i32 = -1;
const IO: i32 = -2;
const FORMAT: i32 = -3;
const UNSUPPORTED: i32 = -4;
const NOT_FOUND: i32 = -5;
const INTERNAL: i32 = -6;
const CANCELLED: i32 = -7;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn code(error: &Error) -> i32 {
    match error {
        Error::Io { .. } => IO,
        Error::Malformed { .. } | Error::Truncated { .. } => FORMAT,
        Error::Unsupported { .. } => UNSUPPORTED,
        Error::NotFound { .. } => NOT_FOUND,
        Error::Cancelled => CANCELLED,
        _ => ARGUMENT,
    }
}

/// A text for C. What follows a zero byte is left out.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

fn failed(code: i32, message: &str) -> i32 {
    MESSAGE.with(|last| *last.borrow_mut() = c_text(message));
    code
}

/// Runs the body of a function of C. Failures and panics become codes.
pub(crate) fn run(body: impl FnOnce() -> Result<i32>) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => failed(code(&error), &error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            failed(INTERNAL, &format!("a defect of thalweg: {said}"))
        }
    }
}

/// The message of the last failure on this thread.
pub(crate) fn message() -> *const c_char {
    MESSAGE.with(|last| last.borrow().as_ptr())
}

/// The version of the library.
pub(crate) fn version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The error about an argument.
pub(crate) fn wrong(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::Usage(what.into())
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn last() -> String {
        MESSAGE.with(|last| last.borrow().to_string_lossy().into_owned())
    }

    #[test]
    fn panics_and_failures_become_codes() {
        assert_eq!(run(|| Ok(END)), END);
        assert_eq!(run(|| panic!("a test {}", 1)), INTERNAL);
        assert_eq!(last(), "a defect of thalweg: a test 1");
        assert_eq!(run(|| Err(wrong("what\0follows"))), ARGUMENT);
        assert!(last().starts_with("what"), "{}", last());
        assert_eq!(run(|| Err(Error::Cancelled)), CANCELLED);
    }
}
