//! LZ4 blocks, and the container of HDF5's filter 32004.

use crate::Fault;

/// Replaces `out` by the decoded bytes of a block, at most `most`.
///
/// # Errors
/// A block that is malformed or decodes to more than `most` bytes.
pub fn block(coded: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    out.resize(most, 0);
    let decoded = lz4_flex::block::decompress_into(coded, out);
    let len = decoded
        .map_err(|error| Fault::new(0, format!("an LZ4 block with {error}"), "a valid one"))?;
    out.truncate(len);
    Ok(())
}

/// Replaces `out` by the values of a chunk, at most `most` bytes. A chunk holds the number of
/// decoded bytes, the decoded bytes per block, and the blocks, each after its stored size. Numbers
/// are big-endian (H5Zlz4.c of the HDF Group's filter plugins).
///
/// # Errors
/// The defect of the chunk.
pub fn chunk(
    coded: &[u8],
    most: usize,
    out: &mut Vec<u8>,
    part: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.clear();
    let short = |at: usize| Fault::new(at, format!("{} bytes in all", coded.len()), "more");
    let total =
        coded.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or_else(|| short(0))?;
    let mut at = 8;
    let size = |at: usize| -> Result<usize, Fault> {
        let bytes = coded.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or_else(|| short(at))?;
        Ok(u32::from_be_bytes(*bytes) as usize)
    };
    let total = usize::try_from(total).ok().filter(|&total| total <= most);
    let total = total
        .ok_or_else(|| Fault::new(0, "more values than a chunk has", format!("{most} bytes")))?;
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
                return Err(Fault::new(
                    at,
                    format!("a block of {} bytes", part.len()),
                    format!("{plain}"),
                ));
            }
            out.extend_from_slice(part);
        }
        at += stored;
    }
    Ok(())
}

/// Decoded bytes per block. The filter's default is 1 GiB, but readers hold a whole block in
/// memory.
const BLOCK: usize = 1 << 20;

/// Replaces `out` by the chunk that [`chunk`] decodes to `plain`.
pub fn pack(plain: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend((plain.len() as u64).to_be_bytes());
    out.extend((BLOCK.min(plain.len()) as u32).to_be_bytes());
    for bytes in plain.chunks(BLOCK) {
        let packed = lz4_flex::block::compress(bytes);
        // A block that does not get shorter is stored uncompressed.
        let stored = if packed.len() < bytes.len() { &packed[..] } else { bytes };
        out.extend((stored.len() as u32).to_be_bytes());
        out.extend_from_slice(stored);
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, chunk, pack};

    #[test]
    fn packed_values_round_trip() {
        let noise = |n: usize| {
            (0..n as u64).map(|i| (crate::splitmix::mix(i) >> 7) as u8).collect::<Vec<u8>>()
        };
        for plain in [
            vec![],
            vec![7; 100_000],
            noise(1),
            noise(5000),
            [noise(BLOCK), vec![1; BLOCK + 5]].concat(),
        ] {
            let (mut packed, mut out, mut part) = (vec![9], Vec::new(), Vec::new());
            pack(&plain, &mut packed);
            let outcome = chunk(&packed, plain.len(), &mut out, &mut part);
            assert_eq!((outcome, &out), (Ok(()), &plain));
        }
    }
}
