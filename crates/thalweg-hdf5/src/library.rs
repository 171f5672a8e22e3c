//! What only libhdf5 reads: values with filters that this crate does not have. A build without
//! libhdf5 refuses them.

#[cfg(not(feature = "libhdf5"))]
mod absent;
#[cfg(feature = "libhdf5")]
mod present;

#[cfg(not(feature = "libhdf5"))]
pub(crate) use absent::Library;
#[cfg(feature = "libhdf5")]
pub(crate) use present::Library;
