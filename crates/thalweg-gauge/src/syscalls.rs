//! System calls that no safe crate wraps: `cachestat(2)`, `wait4(2)`, and the version of the C
//! library.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// `struct cachestat` of `linux/mman.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CacheStat {
    pub(crate) cached: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    pub(crate) evicted: u64,
    pub(crate) recently_evicted: u64,
}

/// `struct cachestat_range` of `linux/mman.h`; length 0 means "to the end of the file".
#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// The number of `cachestat(2)`, which exists since Linux 6.5. It is the same on every architecture
/// that `libc` supports except alpha (asm-generic/unistd.h).
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts the cached pages of a whole file. Fails with ENOSYS before Linux 6.5, and with EPERM on
/// files of other users.
pub(crate) fn cachestat(file: BorrowedFd<'_>) -> io::Result<CacheStat> {
    let range = Range { offset: 0, len: 0 };
    let mut stat = CacheStat::default();
    // SAFETY: the kernel reads one `Range` and writes one `CacheStat`, both of which outlive the
    // call and have the layout of the C structures; the descriptor is open for as long as it is
    // borrowed. No flags are defined.
    let rc = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            std::ptr::from_ref(&range),
            std::ptr::from_mut(&mut stat),
            0 as libc::c_uint,
        )
    };
    if rc == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
}

/// How a child process exited, and the resources that it used. They include those of the
/// descendants that it waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildExit {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) max_rss_bytes: u64,
}

/// Waits for the child `pid` and reaps it. Afterwards, the system may give the id to another
/// process.
pub(crate) fn wait4(pid: u32) -> io::Result<ChildExit> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status: libc::c_int = 0;
    // SAFETY: `rusage` is a plain C structure of integers, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the kernel writes one int and one `rusage`, both of which outlive the call.
        let rc = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if rc >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(ChildExit {
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        // Linux counts `ru_maxrss` in KiB (getrusage(2)).
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    })
}

/// The version of glibc; `None` with another C library.
pub(crate) fn glibc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function returns a static string of the library that ends with a zero byte
        // and is never freed or changed.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(version.to_string_lossy().into_owned())
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

fn duration(t: libc::timeval) -> Duration {
    let micros = u64::try_from(t.tv_usec).unwrap_or(0);
    Duration::from_secs(u64::try_from(t.tv_sec).unwrap_or(0)) + Duration::from_micros(micros)
}
