//! The filters of chunks, and their decoding without libhdf5.

use std::fmt;

use thalweg_codec::{
    bitshuffle, blosc, blosc2, bzip2, deflate, lz4, lzf, nbit, scale_offset, shuffle, szip, vbz,
    zfp, zstd,
};
use thalweg_io::Fault;

use crate::convert::Conversion;

/// `H5Z_FILTER_DEFLATE`, `_SHUFFLE`, `_FLETCHER32`, `_SZIP`, `_NBIT`, `_SCALEOFFSET` of the HDF5
/// specification, section IV.A.2.l.
pub(super) const DEFLATE: i32 = 1;
pub(super) const SHUFFLE: i32 = 2;
pub(super) const FLETCHER32: i32 = 3;
const SZIP: i32 = 4;
const NBIT: i32 = 5;
const SCALE_OFFSET: i32 = 6;
/// Filters that are registered with the HDF Group.
const BZIP2: i32 = 307;
const LZF: i32 = 32000;
const BLOSC: i32 = 32001;
pub(super) const LZ4: i32 = 32004;
const BITSHUFFLE: i32 = 32008;
pub(super) const ZSTD: i32 = 32015;
const ZFP: i32 = 32013;
const BLOSC2: i32 = 32026;

/// Filters that this crate decodes and this build of libhdf5 does not. VBZ is not in the list,
/// because its decoder needs to know the size of the chunk.
#[cfg(feature = "libhdf5")]
pub(super) const OUTSIDE: [i32; 10] =
    [DEFLATE, SZIP, BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZFP, ZSTD, BLOSC2];

/// Bytes of the Fletcher-32 checksum at the end of a chunk.
const SUM_BYTES: usize = 4;

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// zlib streams.
    Deflate,
    /// The bytes of elements of this size, sorted by significance.
    Shuffle(usize),
    /// A checksum at the end.
    Fletcher32,
    /// Golomb-Rice codes of differences.
    Szip(szip::SzipParams),
    /// VBZ.
    Vbz(vbz::VbzParams),
    /// LZF, as h5py writes it.
    Lzf,
    /// LZ4 in blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
    /// Blosc 1.
    Blosc,
    /// A frame of Blosc 2.
    Blosc2,
    /// A bzip2 stream.
    Bzip2,
    /// A ZFP stream.
    Zfp(zfp::ZfpParams),
    /// The bits of elements, sorted by significance.
    Bitshuffle(Bitshuffle),
    /// The significant bits of numbers.
    Nbit(nbit::NbitParams),
    /// Differences to a minimum.
    ScaleOffset(scale_offset::ScaleOffsetParams),
    /// The conversion of elements. It is no filter of HDF5, and comes before all filters.
    Convert(Conversion),
    /// A filter that this crate does not have, in words.
    Unknown(String),
    /// One that no stored chunk went through.
    Skipped(String),
}

/// The parameters of the filter bitshuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bitshuffle {
    /// Bytes of an element.
    size: usize,
    /// Elements per block, if blocks are not compressed.
    block: usize,
    inner: Option<Inner>,
}

/// The compressor of a bitshuffled block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    Lz4,
    Zstd,
}

impl Bitshuffle {
    /// Parses the client data: two version numbers, the size of an element, elements per block,
    /// compression.
    fn parse(values: &[u32]) -> Result<Self, String> {
        let &[_, _, size, ref more @ ..] = values else {
            return Err("the filter bitshuffle without parameters".into());
        };
        let size = size as usize;
        if size == 0 {
            return Err("the filter bitshuffle of elements without bytes".into());
        }
        let inner = match more.get(1) {
            None | Some(0) => None,
            Some(2) => Some(Inner::Lz4),
            Some(3) => Some(Inner::Zstd),
            Some(other) => return Err(format!("the compression {other} of the filter bitshuffle")),
        };
        // The library's default block size: about 8 KiB.
        let usual = (8192 / size / bitshuffle::GROUP * bitshuffle::GROUP).max(128);
        let block = more.first().map_or(0, |&block| block as usize);
        if !block.is_multiple_of(bitshuffle::GROUP) {
            return Err(format!("the filter bitshuffle in blocks of {block} elements"));
        }
        Ok(Self { size, block: if block == 0 { usual } else { block }, inner })
    }

    /// Replaces `out` by the values of a chunk, at most `most` bytes.
    fn undo(
        self,
        input: &[u8],
        most: usize,
        zstd: &mut zstd::ZstdDecompressor,
        part: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let short = |at: usize| Fault::new(at, format!("{} bytes in all", input.len()), "more");
        let mut at = 0;
        let mut bytes = input.len();
        let mut block = self.block * self.size;
        if self.inner.is_some() {
            // The bytes of the chunk and of a block, big-endian.
            let Some(&[b0, b1, b2, b3, b4, b5, b6, b7, n0, n1, n2, n3]) = input.first_chunk()
            else {
                return Err(short(0));
            };
            bytes = usize::try_from(u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]))
                .unwrap_or(usize::MAX);
            block = u32::from_be_bytes([n0, n1, n2, n3]) as usize;
            at = 12;
        }
        if bytes > most {
            return Err(Fault::new(
                0,
                format!("a chunk of {bytes} bytes"),
                format!("at most {most}"),
            ));
        }
        let group = bitshuffle::GROUP * self.size;
        if block == 0 || !block.is_multiple_of(group) {
            return Err(Fault::new(
                8,
                format!("blocks of {block} bytes"),
                format!("a multiple of {group}"),
            ));
        }
        out.clear();
        out.resize(bytes, 0);
        // Trailing elements that do not fill a group are stored unchanged.
        let sorted = bytes / group * group;
        let (blocks, rest) = out.split_at_mut(sorted);
        for block in blocks.chunks_mut(block) {
            let stored = if self.inner.is_some() {
                let size =
                    input.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or_else(|| short(at))?;
                at += size.len();
                u32::from_be_bytes(*size) as usize
            } else {
                block.len()
            };
            let coded = input.get(at..at.saturating_add(stored)).ok_or_else(|| short(at))?;
            let sorted = match self.inner {
                None => coded,
                Some(inner) => {
                    let decoded = match inner {
                        Inner::Lz4 => lz4::block(coded, block.len(), part),
                        Inner::Zstd => zstd.decompress(coded, part, block.len()),
                    };
                    decoded.map_err(|fault| fault.shifted(at))?;
                    if part.len() != block.len() {
                        return Err(Fault::new(
                            at,
                            format!("a block of {} bytes", part.len()),
                            format!("{}", block.len()),
                        ));
                    }
                    &part[..]
                }
            };
            bitshuffle::undo(sorted, self.size, block);
            at += stored;
        }
        rest.copy_from_slice(input.get(at..at + rest.len()).ok_or_else(|| short(at))?);
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Convert(conversion) => return write!(f, "{conversion}"),
            Self::Unknown(filter) | Self::Skipped(filter) => filter,
            Self::Nbit(_) => "nbit",
            Self::ScaleOffset(_) => "scale-offset",
            Self::Deflate => "deflate",
            Self::Shuffle(_) => "shuffle",
            Self::Fletcher32 => "fletcher32",
            Self::Szip(_) => "szip",
            Self::Vbz(_) => "vbz",
            Self::Lzf => "lzf",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Blosc => "blosc",
            Self::Blosc2 => "blosc 2",
            Self::Bzip2 => "bzip2",
            Self::Zfp(_) => "zfp",
            Self::Bitshuffle(Bitshuffle { inner: None, .. }) => "bitshuffle",
            Self::Bitshuffle(Bitshuffle { inner: Some(Inner::Lz4), .. }) => "bitshuffle with lz4",
            Self::Bitshuffle(Bitshuffle { inner: Some(Inner::Zstd), .. }) => "bitshuffle with zstd",
        })
    }
}

impl Filter {
    /// The filter with this number and client data.
    ///
    /// # Errors
    /// A message for a filter that this crate cannot decode: its name and number, or the defect of
    /// its client data.
    pub fn new(number: i32, name: &str, values: &[u32]) -> Result<Self, String> {
        match number {
            DEFLATE => Ok(Self::Deflate),
            SHUFFLE => match values.first() {
                Some(&size) if size > 0 => Ok(Self::Shuffle(size as usize)),
                _ => Err("the filter shuffle without its element size".into()),
            },
            FLETCHER32 => Ok(Self::Fletcher32),
            SZIP => szip::SzipParams::parse(values).map(Self::Szip),
            NBIT => nbit::NbitParams::parse(values).map(Self::Nbit),
            SCALE_OFFSET => scale_offset::ScaleOffsetParams::parse(values).map(Self::ScaleOffset),
            vbz::FILTER => {
                let params = vbz::VbzParams::parse(values);
                params
                    .map(Self::Vbz)
                    .map_err(|fault| format!("{} (expected {})", fault.found, fault.expected))
            }
            LZF => Ok(Self::Lzf),
            LZ4 => Ok(Self::Lz4),
            ZSTD => Ok(Self::Zstd),
            BLOSC => Ok(Self::Blosc),
            BLOSC2 => Ok(Self::Blosc2),
            BZIP2 => Ok(Self::Bzip2),
            ZFP => zfp::ZfpParams::parse(values).map(Self::Zfp),
            BITSHUFFLE => Bitshuffle::parse(values).map(Self::Bitshuffle),
            _ => Err(format!("the HDF5 filter {number} ({name:?})")),
        }
    }
}

/// Filters in the order in which they were applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pipeline(pub Vec<Filter>);

impl Pipeline {
    /// How its elements are converted, if they are.
    pub fn conversion(&self) -> Option<&Conversion> {
        match self.0.first() {
            Some(Filter::Convert(conversion)) => Some(conversion),
            _ => None,
        }
    }

    /// The pipeline of stored chunks with these masks. A filter that this crate does not have does
    /// not matter if all chunks skipped it, as chunks of strings skip shuffle in libhdf5.
    #[must_use]
    pub(crate) fn of_chunks(mut self, masks: impl Iterator<Item = u32> + Clone) -> Self {
        for (place, filter) in self.0.iter_mut().enumerate() {
            if let Filter::Unknown(name) = filter
                && masks.clone().all(|mask| mask >> place.min(31) & 1 == 1)
            {
                *filter = Filter::Skipped(std::mem::take(name));
            }
        }
        self
    }

    /// The first filter that this crate does not have, in words.
    pub fn unknown(&self) -> Option<&str> {
        self.0.iter().find_map(|filter| match filter {
            Filter::Unknown(filter) => Some(filter.as_str()),
            _ => None,
        })
    }
}

/// The state for decoding pipelines, for one thread.
#[derive(Debug, Default)]
pub struct Contexts {
    deflate: deflate::DeflateDecompressor,
    vbz: vbz::VbzDecompressor,
    zstd: zstd::ZstdDecompressor,
    blosc: blosc::BloscDecompressor,
    blosc2: blosc2::Blosc2Decompressor,
    part: Vec<u8>,
    front: Vec<u8>,
    back: Vec<u8>,
}

impl Contexts {
    /// Appends the little-endian 16-bit samples of a chunk that decodes to `bytes` bytes, of which
    /// the first `needed` must be there ([`Contexts::undo_needed`]). A filter was skipped if the
    /// bit of its index in `mask` is set.
    ///
    /// # Errors
    /// The defect of the stored bytes. `out` is then unchanged.
    pub fn samples(
        &mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &[u8],
        (needed, bytes): (usize, usize),
        out: &mut Vec<i16>,
    ) -> Result<(), Fault> {
        if let ([Filter::Vbz(params)], 0) = (&*pipeline.0, mask & 1) {
            return self.vbz.samples(*params, stored, bytes, out);
        }
        let decoded = self.undo_needed(pipeline, mask, stored, needed, bytes)?;
        out.extend(decoded.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])));
        Ok(())
    }

    /// Fills `out` with the decoded bytes of a chunk. Their number must be the length of `out`.
    ///
    /// # Errors
    /// Whatever is wrong with the stored bytes.
    pub fn fill(
        &mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let mut active =
            (0..).zip(&pipeline.0).filter(|(place, _)| mask >> 31.min(*place) & 1 == 0);
        // The filter that is decoded last writes directly to `out`.
        match (active.next(), active.next()) {
            (Some((_, Filter::Deflate)), None) => {
                return self.deflate.decompress_exact(stored, out);
            }
            (Some((place @ 0..31, Filter::Shuffle(size))), _) => {
                shuffle::undo(
                    self.undo(pipeline, mask | 1 << place, stored, out.len())?,
                    *size,
                    out,
                );
            }
            _ => out.copy_from_slice(self.undo(pipeline, mask, stored, out.len())?),
        }
        Ok(())
    }

    /// Decodes a chunk to exactly `bytes` bytes.
    ///
    /// # Errors
    /// Whatever is wrong with the stored bytes.
    pub fn undo<'a>(
        &'a mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &'a [u8],
        bytes: usize,
    ) -> Result<&'a [u8], Fault> {
        self.undo_needed(pipeline, mask, stored, bytes, bytes)
    }

    /// Decodes a chunk to `bytes` bytes. A filtered chunk at the edge of its dataset may lack what
    /// follows the first `needed` bytes, which lies outside of the dataset; zeros stand there then.
    /// Some writers store only the dataset's elements, and libhdf5 reads such chunks.
    ///
    /// # Errors
    /// Whatever is wrong with the stored bytes.
    pub fn undo_needed<'a>(
        &'a mut self,
        pipeline: &Pipeline,
        mask: u32,
        stored: &'a [u8],
        needed: usize,
        bytes: usize,
    ) -> Result<&'a [u8], Fault> {
        let active = |place: usize| mask >> place.min(31) & 1 == 0;
        let sums = pipeline
            .0
            .iter()
            .enumerate()
            .filter(|(place, filter)| active(*place) && **filter == Filter::Fletcher32);
        // Between filters, the bytes may include checksums of inner filters.
        let most = bytes.saturating_add(SUM_BYTES * sums.count());
        let mut here: Option<()> = None;
        for (place, filter) in pipeline.0.iter().enumerate().rev() {
            if !active(place) {
                continue;
            }
            let mut front = std::mem::take(&mut self.front);
            let undone =
                self.step(filter, if here.is_some() { &front } else { stored }, bytes, most);
            std::mem::swap(&mut front, &mut self.back);
            self.front = front;
            undone?;
            here = Some(());
        }
        if here.is_some() && (needed..bytes).contains(&self.front.len()) {
            self.front.resize(bytes, 0);
        }
        let decoded: &[u8] = if here.is_some() { &self.front } else { stored };
        if decoded.len() != bytes {
            return Err(Fault::new(
                0,
                format!("a chunk of {} bytes", decoded.len()),
                format!("{bytes} bytes"),
            ));
        }
        Ok(decoded)
    }

    /// Decodes one filter into `back`, to at most `most` bytes.
    fn step(
        &mut self,
        filter: &Filter,
        input: &[u8],
        bytes: usize,
        most: usize,
    ) -> Result<(), Fault> {
        let Self { deflate, vbz, zstd, blosc, blosc2, part, back, .. } = self;
        match filter {
            Filter::Deflate => deflate.decompress(input, back, most),
            Filter::Vbz(params) => vbz.bytes(*params, input, bytes, back),
            Filter::Shuffle(size) => {
                back.resize(input.len(), 0);
                shuffle::undo(input, *size, back);
                Ok(())
            }
            Filter::Lzf => lzf::decompress(input, most, back),
            Filter::Lz4 => lz4::chunk(input, most, back, part),
            Filter::Zstd => zstd.decompress(input, back, most),
            Filter::Blosc => blosc.decompress(input, most, back),
            Filter::Blosc2 => blosc2.decompress(input, most, back),
            Filter::Bzip2 => bzip2::decompress(input, most, back),
            Filter::Zfp(params) => zfp::decompress(params, input, most, back),
            Filter::Bitshuffle(how) => how.undo(input, most, zstd, part, back),
            Filter::Nbit(params) => nbit::decompress(params, input, most, back),
            Filter::ScaleOffset(params) => scale_offset::decompress(params, input, most, back),
            Filter::Convert(conversion) => conversion.apply(input, back),
            Filter::Szip(params) => szip::decompress(*params, input, most, back),
            Filter::Fletcher32 => check_sum(input, back),
            Filter::Unknown(filter) | Filter::Skipped(filter) => {
                Err(Fault::new(0, filter.clone(), "a filter that thalweg has"))
            }
        }
    }

    /// Decodes one filter, to at most `most` bytes.
    ///
    /// # Errors
    /// The defect of the input.
    #[cfg(feature = "libhdf5")]
    pub(super) fn undo_one(
        &mut self,
        filter: &Filter,
        input: &[u8],
        most: usize,
    ) -> Result<&[u8], Fault> {
        self.step(filter, input, most, most)?;
        Ok(&self.back)
    }

    /// Frees scratch memory beyond `keep` bytes.
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

fn check_sum(input: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let Some((data, sum)) = input.split_last_chunk::<SUM_BYTES>() else {
        return Err(Fault::new(
            0,
            format!("{} bytes", input.len()),
            "data and a Fletcher-32 checksum",
        ));
    };
    let stored = u32::from_le_bytes(*sum);
    let computed = fletcher32(data);
    // libhdf5 before 1.6.3 swapped the bytes of each half on little-endian machines. Later versions
    // still accept such checksums.
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

/// Fletcher's checksum over big-endian 16-bit words, as libhdf5 computes it.
pub(super) fn fletcher32(data: &[u8]) -> u32 {
    let mut low = 0u32;
    let mut high = 0u32;
    // A block has so few words that the sums cannot overflow between two reductions.
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
