//! The filters that a chunk went through, and their undoing outside libhdf5.

use crate::Fault;
use crate::codec::{deflate, vbz};

/// `H5Z_FILTER_DEFLATE`, `_SHUFFLE`, `_FLETCHER32` of the HDF5 specification, section IV.A.2.l.
const DEFLATE: i32 = 1;
const SHUFFLE: i32 = 2;
const FLETCHER32: i32 = 3;

/// Bytes of a Fletcher-32 checksum, which stands last.
const SUM_BYTES: usize = 4;

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// zlib streams.
    Deflate,
    /// Bytes of elements of this size sorted by significance.
    Shuffle(usize),
    /// A checksum at the end.
    Fletcher32,
    /// VBZ.
    Vbz(vbz::Params),
}

impl Filter {
    /// The filter with this number and client data; what it is in words where it cannot be undone here.
    ///
    /// # Errors
    /// The filter's name and number, or what is wrong with its client data.
    pub fn new(number: i32, name: &str, values: &[u32]) -> Result<Self, String> {
        match number {
            DEFLATE => Ok(Self::Deflate),
            SHUFFLE => match values.first() {
                Some(&size) if size > 0 => Ok(Self::Shuffle(size as usize)),
                _ => Err("the filter shuffle without its element size".into()),
            },
            FLETCHER32 => Ok(Self::Fletcher32),
            vbz::FILTER => {
                let params = vbz::Params::parse(values);
                params.map(Self::Vbz).map_err(|fault| format!("{} (expected {})", fault.found, fault.expected))
            }
            _ => Err(format!("the HDF5 filter {number} ({name:?})")),
        }
    }
}

/// Filters in the order in which they were applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pipeline(pub Vec<Filter>);

/// What undoing pipelines needs; one for a thread.
#[derive(Debug, Default)]
pub struct Contexts {
    deflate: deflate::Decompressor,
    vbz: vbz::Decompressor,
    front: Vec<u8>,
    back: Vec<u8>,
}

impl Contexts {
    /// Appends the little-endian 16-bit samples of a chunk that decodes to `bytes` bytes. A bit of `mask` says that the
    /// filter at its place was skipped.
    ///
    /// # Errors
    /// Whatever is wrong with the stored bytes; `out` is left as it was.
    pub fn samples(
        &mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &[u8],
        bytes: usize,
        out: &mut Vec<i16>,
    ) -> Result<(), Fault> {
        if let ([Filter::Vbz(params)], 0) = (&*pipeline.0, mask & 1) {
            return self.vbz.samples(*params, stored, bytes, out);
        }
        let decoded = self.undo(pipeline, mask, stored, bytes)?;
        out.extend(decoded.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])));
        Ok(())
    }

    /// The bytes before the filters: exactly `bytes` of them.
    fn undo<'a>(
        &'a mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &'a [u8],
        bytes: usize,
    ) -> Result<&'a [u8], Fault> {
        let active = |place: usize| mask >> place.min(31) & 1 == 0;
        let sums =
            pipeline.0.iter().enumerate().filter(|(place, filter)| active(*place) && **filter == Filter::Fletcher32);
        // Between filters there may be checksums of the inner ones.
        let most = bytes.saturating_add(SUM_BYTES * sums.count());
        let mut here: Option<()> = None;
        for (place, filter) in pipeline.0.iter().enumerate().rev() {
            if !active(place) {
                continue;
            }
            let Self { deflate, vbz, front, back } = self;
            let input: &[u8] = if here.is_some() { front } else { stored };
            match filter {
                Filter::Deflate => deflate.decompress(input, back, most)?,
                Filter::Vbz(params) => vbz.bytes(*params, input, bytes, back)?,
                Filter::Shuffle(size) => unshuffle(input, *size, back),
                Filter::Fletcher32 => check_sum(input, back)?,
            }
            std::mem::swap(front, back);
            here = Some(());
        }
        let decoded: &[u8] = if here.is_some() { &self.front } else { stored };
        if decoded.len() != bytes {
            return Err(Fault::new(0, format!("a chunk of {} bytes", decoded.len()), format!("{bytes} bytes")));
        }
        Ok(decoded)
    }

    /// Gives back scratch memory beyond `keep` bytes.
    pub fn trim(&mut self, keep: usize) {
        self.vbz.trim(keep);
        for scratch in [&mut self.front, &mut self.back] {
            if scratch.capacity() > keep {
                scratch.truncate(keep);
                scratch.shrink_to(keep);
            }
        }
    }
}

/// Bytes that do not fill an element stand unshuffled at the end.
fn unshuffle(input: &[u8], size: usize, out: &mut Vec<u8>) {
    let count = input.len() / size;
    out.clear();
    out.resize(input.len(), 0);
    for (plane, bytes) in input[..count * size].chunks_exact(count.max(1)).enumerate() {
        for (element, &byte) in bytes.iter().enumerate() {
            out[element * size + plane] = byte;
        }
    }
    out[count * size..].copy_from_slice(&input[count * size..]);
}

fn check_sum(input: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let Some((data, sum)) = input.split_last_chunk::<SUM_BYTES>() else {
        return Err(Fault::new(0, format!("{} bytes", input.len()), "data and a Fletcher-32 checksum"));
    };
    let stored = u32::from_le_bytes(*sum);
    let computed = fletcher32(data);
    // libhdf5 before 1.6.3 swapped the bytes of each half on little-endian machines, and its successors read that.
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if stored != computed && stored != swapped {
        return Err(Fault::new(
            data.len(),
            format!("the checksum {stored:08x}"),
            format!("{computed:08x}, as of the data"),
        ));
    }
    out.clear();
    out.extend_from_slice(data);
    Ok(())
}

/// Fletcher's checksum over big-endian 16-bit words, as libhdf5 takes it.
fn fletcher32(data: &[u8]) -> u32 {
    let (mut low, mut high) = (0u32, 0u32);
    // As many words as cannot overflow between two reductions.
    for block in data.chunks(720) {
        for word in block.chunks(2) {
            low += u32::from(word[0]) << 8 | word.get(1).map_or(0, |&byte| u32::from(byte));
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    high << 16 | low
}
