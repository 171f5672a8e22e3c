//! The signature of HDF5: where it stands in a file.

use thalweg_io::Result;
use thalweg_io::store::Store;

/// First bytes of an HDF5 file without a user block (HDF5 file format specification 3.0,
/// "Superblock").
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Whether a file is HDF5: the signature stands at its start, or after a user block of 512 bytes,
/// 1024, and so on (HDF5 file format specification 3.0, section II.A).
///
/// # Errors
/// [`Error::Io`](thalweg_io::Error::Io).
pub fn is_hdf5(store: &dyn Store) -> Result<bool> {
    Ok(signature(store)?.is_some())
}

/// The offset of the signature; `None` if the file has none.
pub(crate) fn signature(store: &dyn Store) -> Result<Option<u64>> {
    let mut at = 0;
    while at + SIGNATURE.len() as u64 <= store.size() {
        let mut head = [0; SIGNATURE.len()];
        store.read_at(at, &mut head)?;
        if head == SIGNATURE {
            return Ok(Some(at));
        }
        at = (at * 2).max(512);
    }
    Ok(None)
}
