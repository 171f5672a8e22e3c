//! The signature at the start of an HDF5 file, and the search for it.

use thalweg_io::Result;
use thalweg_io::store::Store;

/// First bytes of the superblock (HDF5 file format specification 3.0, section II.A).
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// The first offset after byte 0 at which a superblock may start. Each further offset is twice the
/// previous one (HDF5 file format specification 3.0, section II.A).
const FIRST_USER_BLOCK: u64 = 512;

/// Whether a store holds an HDF5 file. The signature is at byte 0, or after a user block of
/// 512, 1024, 2048, ... bytes.
///
/// # Errors
/// [`Error::Io`](thalweg_io::Error::Io) if the store cannot be read.
pub fn is_hdf5(store: &dyn Store) -> Result<bool> {
    Ok(find_signature(store)?.is_some())
}

/// The offset of the signature; `None` if the store holds no HDF5 file.
///
/// # Errors
/// [`Error::Io`](thalweg_io::Error::Io) if the store cannot be read.
pub(crate) fn find_signature(store: &dyn Store) -> Result<Option<u64>> {
    for offset in offsets(store.size()) {
        let mut bytes = [0; SIGNATURE.len()];
        store.read_at(offset, &mut bytes)?;
        if bytes == SIGNATURE {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}

/// The offsets at which the signature may be in a file of `size` bytes.
pub(crate) fn offsets(size: u64) -> impl Iterator<Item = u64> {
    let next = |at: &u64| Some(at.saturating_mul(2).max(FIRST_USER_BLOCK));
    let end = size.saturating_sub(SIGNATURE.len() as u64 - 1);
    std::iter::successors(Some(0), next).take_while(move |at| *at < end)
}
