//! Object stores as file systems: the objects below a URL are the files of a folder.
//!
//! [`Mount::new`] mounts, and [`Mount::run`] answers the kernel until the folder is unmounted. What
//! was read stays in the kernel's page cache, and in the cache on disc if there is one; files that
//! are complete there are read by the kernel without this program. What is written waits in a
//! folder of this machine until the store has it.
//!
//! A file is one version of an object. An object that is replaced while a file is open is an error
//! (`ESTALE`) for who reads on, and never a mix of two versions.

mod ahead;
mod attributes;
mod bucket;
mod buckets;
mod change;
mod changes;
mod draft;
mod errors;
mod fetcher;
mod files;
mod finisher;
mod fs;
mod handles;
mod kernel;
mod memory;
mod mount;
mod moving;
mod names;
mod parts;
mod ranges;
mod reading;
mod rename;
mod staging;
mod status;
mod storing;
mod tree;
mod view;
mod windows;
mod writing;

pub use mount::{
    DEFAULT_MEMORY, ENDED, Mount, MountOptions, NotRecovered, Unmounter, WriteOptions, recover,
};
pub use status::{FLUSH, METRICS, STATUS, Status};
pub use writing::Close;
