//! Export of networks to files of other formats.

#[cfg(not(feature = "hdf5"))]
mod no_hdf5;
#[cfg(feature = "hdf5")]
mod sonata;

#[cfg(not(feature = "hdf5"))]
pub use no_hdf5::{SonataWriter, sonata_bytes};
#[cfg(feature = "hdf5")]
pub use sonata::{SonataWriter, sonata_bytes};
