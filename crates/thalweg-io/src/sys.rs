//! System calls that no safe crate wraps.
#![allow(unsafe_code)] // Each block states its contract.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::store::PAGE;

/// `cachestat(2)`, the same number on every architecture (include/uapi/asm-generic/unistd.h, Linux
/// 6.5).
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
struct CachestatRange {
    off: u64,
    len: u64,
}

/// `struct cachestat` of linux/mman.h: pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cachestat {
    pub(crate) cache: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    pub(crate) evicted: u64,
    pub(crate) recently_evicted: u64,
}

/// Makes the C library give blocks of 256 KiB and more back to the system when they are freed. It
/// keeps larger blocks, too, the more of them a program frees: with 64 threads and 64 MiB for all,
/// these were as much memory again. Does nothing where the C library is not glibc.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call sets a threshold of the allocator, at any time and from any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
    }
}

/// Whether this process was started with a standard output that is closed or cannot be written.
/// Rust's runtime opens `/dev/null` in the place of a closed one, and ignores that the other cannot
/// be written, so that what is written vanishes without an error.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before Rust's runtime does: the loader calls what is in this section before `main`.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    // SAFETY: the call asks for the flags of a descriptor, open or not, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let is_closed = flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY;
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// In bytes. Less memory has no huge page of its own.
const LEAST_HUGE: usize = 4 << 20;

/// Asks for huge pages for memory that is about to be filled: the kernel clears 2 MiB at a time
/// then, and not 4 KiB. Has no effect where there are none.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    if size_of_val(memory) < LEAST_HUGE {
        return;
    }
    let address = memory.as_mut_ptr().addr();
    let start = address.next_multiple_of(PAGE);
    let len = (address + size_of_val(memory)).saturating_sub(start) / PAGE * PAGE;
    #[cfg(target_os = "linux")]
    if len > 0 {
        let memory = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the range lies within `memory`, which is borrowed meanwhile. The advice changes
        // no byte of it.
        unsafe {
            libc::madvise(memory.add(start - address).cast(), len, libc::MADV_HUGEPAGE);
        }
    }
}

/// Has the process that `command` starts killed when the calling thread ends, however it ends. What
/// that process starts in turn is not killed.
pub fn end_with_this_thread(command: &mut Command) {
    let parent = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that ended before the call above sends no signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between `fork` and `exec`, a child may only do what a handler of signals may do.
    // `tie` makes two system calls. It allocates nothing, takes no lock and cannot panic: the
    // error is a number.
    unsafe { command.pre_exec(tie) };
}

/// The kernel's page cache counts for `range`, which must not be empty. `None` if the call fails.
pub(crate) fn cachestat(file: &File, range: &Range<u64>) -> Option<Cachestat> {
    let asked = CachestatRange { off: range.start, len: range.end - range.start };
    let mut told = Cachestat::default();
    // SAFETY: the descriptor stays open while `file` is borrowed, and both structures have the
    // kernel's layout and outlive the call. Kernels without the call, and sandboxes that forbid it,
    // return an error number.
    let status = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            &raw const asked,
            &raw mut told,
            0 as libc::c_uint,
        )
    };
    (status == 0).then_some(told)
}
