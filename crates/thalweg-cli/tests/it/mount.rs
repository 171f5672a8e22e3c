//! A bucket as files of a folder. Where the system mounts nothing, these tests say so and pass.

mod buckets;
mod fault;
mod kill;
mod model;
mod mounted;
mod read;
mod rename;
mod semantics;
mod store;
mod write;
mod write_back;
