//! Stores on object stores and HTTP servers.
//!
//! [`open`] opens the object at a URL as a [`Store`](thalweg_io::store::Store). The engine reads it
//! like a file: in ranges, many at a time. Every range is of the version of the object that was
//! opened; an object that is replaced meanwhile is an error.
//!
//! The `object_store` crate knows the protocols: addresses, credentials, signatures, lists. Its
//! requests go through a transport of this crate, which keeps connections, and [`Object`] decides
//! what is asked again.
//!
//! [`Upload`] writes an object, in parts that go out while it grows.
//!
//! A read waits in the calling thread. It must not be called from an asynchronous task, only from a
//! thread that may wait (`spawn_blocking` in tokio).

mod address;
mod admission;
mod background;
mod bucket;
mod checksums;
mod cloud;
mod connection;
mod lane;
mod list;
mod lister;
mod object;
mod pace;
mod profile;
#[cfg(feature = "aws-profiles")]
mod profile_keys;
mod refusal;
mod retries;
mod signing;
#[doc(hidden)]
pub mod testing;
mod totals;
mod transport;
mod upload;
mod urls;

pub use bucket::{Bucket, Condition, Head, Metadata, PartsUpload};
pub use list::{has_bucket, list, list_buckets};
pub use object::{Object, open, open_at, open_version, open_with_end};
pub use retries::Patience;
pub use thalweg_io::open::Counts;
pub use upload::Upload;
pub use urls::register;
