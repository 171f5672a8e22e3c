//! The numbers of errors that programs get.

use std::io::ErrorKind;

use fuser::Errno;
use thalweg_io::Error;

/// What kind of failure of input or output an error is, if it is one.
pub(crate) fn io_kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Io { source, .. } => Some(source.kind()),
        _ => None,
    }
}

/// Whether an object is another version than the one that was wanted.
pub(crate) fn is_stale(error: &Error) -> bool {
    io_kind(error) == Some(ErrorKind::StaleNetworkFileHandle)
}

/// The number for an error: what a program can tell apart, or else `EIO`.
pub(crate) fn errno(error: &Error) -> Errno {
    let Error::Io { source, .. } = error else {
        return if matches!(error, Error::Cancelled) { Errno::EINTR } else { Errno::EIO };
    };
    if let Some(number) = source.raw_os_error() {
        return Errno::from_i32(number);
    }
    match source.kind() {
        ErrorKind::NotFound => Errno::ENOENT,
        ErrorKind::AlreadyExists => Errno::EEXIST,
        ErrorKind::PermissionDenied => Errno::EACCES,
        ErrorKind::StaleNetworkFileHandle => Errno::ESTALE,
        ErrorKind::TimedOut => Errno::ETIMEDOUT,
        ErrorKind::StorageFull => Errno::ENOSPC,
        ErrorKind::FileTooLarge => Errno::EFBIG,
        ErrorKind::InvalidInput => Errno::EINVAL,
        _ => Errno::EIO,
    }
}
