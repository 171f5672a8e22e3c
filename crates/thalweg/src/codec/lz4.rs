//! LZ4 blocks, and the container that HDF5's filter 32004 puts them into.

use crate::Fault;

/// Replaces `out` by what a block decodes to, which may be `most` bytes.
///
/// # Errors
/// A block that is malformed, or decodes to more.
pub fn block(coded: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    out.resize(most, 0);
    let decoded = lz4_flex::block::decompress_into(coded, out);
    let len = decoded.map_err(|error| Fault::new(0, format!("an LZ4 block with {error}"), "a valid one"))?;
    out.truncate(len);
    Ok(())
}

/// Replaces `out` by the values of a chunk, which may be `most` bytes: their number, the bytes of a block, and the blocks with
/// the size of each, numbers being big-endian (H5Zlz4.c of the HDF Group's filter plugins).
///
/// # Errors
/// What is wrong with the chunk.
pub fn chunk(coded: &[u8], most: usize, out: &mut Vec<u8>, part: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    let short = |at: usize| Fault::new(at, format!("{} bytes in all", coded.len()), "more");
    let total = coded.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or_else(|| short(0))?;
    let mut at = 8;
    let size = |at: usize| -> Result<usize, Fault> {
        let bytes = coded.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or_else(|| short(at))?;
        Ok(u32::from_be_bytes(*bytes) as usize)
    };
    let total = usize::try_from(total).ok().filter(|&total| total <= most);
    let total = total.ok_or_else(|| Fault::new(0, "more values than a chunk has", format!("{most} bytes")))?;
    if total == 0 {
        return Ok(());
    }
    let each = size(at)?.min(total);
    if each == 0 {
        return Err(Fault::new(at, "blocks without bytes", "some"));
    }
    at += 4;
    while out.len() < total {
        let plain = each.min(total - out.len());
        let stored = size(at)?;
        at += 4;
        let bytes = coded.get(at..at.saturating_add(stored)).ok_or_else(|| short(at))?;
        if stored == plain {
            out.extend_from_slice(bytes);
        } else {
            block(bytes, plain, part).map_err(|fault| fault.shifted(at))?;
            if part.len() != plain {
                return Err(Fault::new(at, format!("a block of {} bytes", part.len()), format!("{plain}")));
            }
            out.extend_from_slice(part);
        }
        at += stored;
    }
    Ok(())
}
