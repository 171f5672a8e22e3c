//! Object stores as file systems: the objects below a URL are the files of a folder.
//!
//! [`Mount::new`] mounts, and [`Mount::run`] answers the kernel until the folder is unmounted. The
//! objects can be read. What was read stays in the kernel's page cache, and in the cache on disc if
//! there is one; files that are complete there are read by the kernel without this program.
//!
//! A file is one version of an object. An object that is replaced while a file is open is an error
//! (`ESTALE`) for who reads on, and never a mix of two versions.

mod ahead;
mod bucket;
mod errors;
mod fetcher;
mod files;
mod fs;
mod memory;
mod mount;
mod names;
mod reading;
mod status;
mod tree;
mod windows;

pub use mount::{DEFAULT_MEMORY, Mount, MountOptions, Unmounter};
pub use status::{METRICS, STATUS, Status};
