//! gzip (RFC 1952), and the blocks of BGZF (SAM specification, section 4.1).
//!
//! A gzip file is a sequence of members. A BGZF file is a gzip file whose members hold at most 64
//! KiB each, and say in their header how long they are, so that they can be found and decoded
//! independently.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use libdeflater::DecompressionError;

pub use flate2::Crc;

use crate::Fault;
use crate::inflate::{Ahead, AheadInflater, Inflater, Known, Stop, Text, WINDOW};

/// The first bytes of a member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The only compression method.
const DEFLATE: u8 = 8;
/// Bytes of a header without its optional parts.
const FIXED: usize = 10;
/// Bytes after the compressed data: CRC-32, and the size modulo 2^32.
const TRAILER: usize = 8;
/// The longest header that is read. Names and comments have no limit of their own.
const MOST_HEADER: usize = 1 << 20;
/// Bytes that are added at a time to a header that was not whole.
const HEADER_STEP: usize = 256;

// The flags of a header, and those that are reserved.
const FHCRC: u8 = 2;
const FEXTRA: u8 = 4;
const FNAME: u8 = 8;
const FCOMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// The most decoded bytes of a BGZF block.
pub const MOST_PLAIN: usize = 1 << 16;
/// Decoded bytes that writers put into a BGZF block: even if they cannot be compressed, the block
/// is short enough to say so in 16 bits.
pub const PLAIN: usize = 0xff00;
/// The empty block that ends a BGZF file.
pub const END: [u8; 28] =
    *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";

/// The header of a BGZF block, but for the two bytes of its length.
const BLOCK_HEADER: [u8; 16] = *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0";

/// Whether bytes begin like a gzip file.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The header of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its length in bytes.
    pub len: usize,
    /// If it is a BGZF block: the bytes of the whole block.
    pub block: Option<usize>,
}

impl Header {
    /// The header at the start of `bytes`; `None` if it goes on after them.
    ///
    /// # Errors
    /// Bytes that are no header.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        let common = bytes.len().min(MAGIC.len());
        if bytes[..common] != MAGIC[..common] {
            let found = format!("\"{}\"", bytes[..common].escape_ascii());
            return Err(Fault::new(0, found, "a gzip member, which starts with 1f 8b"));
        }
        let Some(fixed) = bytes.first_chunk::<FIXED>() else { return Ok(None) };
        if fixed[2] != DEFLATE {
            return Err(Fault::new(2, format!("compression method {}", fixed[2]), "8, deflate"));
        }
        let flags = fixed[3];
        if flags & RESERVED != 0 {
            return Err(Fault::new(3, format!("flags {flags:#04x}"), "reserved bits of zero"));
        }
        let mut len = FIXED;
        let mut block = None;
        if flags & FEXTRA != 0 {
            let Some(size) = bytes.get(len..).and_then(|rest| rest.first_chunk()) else {
                return Ok(None);
            };
            len += 2;
            let size = usize::from(u16::from_le_bytes(*size));
            let Some(extra) = bytes.get(len..len + size) else { return Ok(None) };
            block = block_size(extra);
            len += size;
        }
        for flag in [FNAME, FCOMMENT] {
            if flags & flag != 0 {
                let Some(zero) = bytes[len..].iter().position(|&byte| byte == 0) else {
                    if bytes.len() > MOST_HEADER {
                        return Err(Fault::new(len, "a name without an end", "a zero byte"));
                    }
                    return Ok(None);
                };
                len += zero + 1;
            }
        }
        if flags & FHCRC != 0 {
            len += 2;
        }
        if bytes.len() < len {
            return Ok(None);
        }
        if block.is_some_and(|size| size < len + TRAILER) {
            let found = format!("a BGZF block of {} bytes", block.unwrap_or(0));
            return Err(Fault::new(0, found, format!("at least {}", len + TRAILER)));
        }
        Ok(Some(Self { len, block }))
    }
}

/// The size of a BGZF block, in the subfield `BC` of the extra field.
fn block_size(mut extra: &[u8]) -> Option<usize> {
    while let [a, b, low, high, rest @ ..] = extra {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        if let (b"BC", [low, high, ..], 2) = (&[*a, *b], rest, len) {
            return Some(usize::from(u16::from_le_bytes([*low, *high])) + 1);
        }
        extra = rest.get(len..)?;
    }
    None
}

/// A decompression context for BGZF blocks, for one thread.
#[derive(Default)]
pub struct BlockDecompressor(libdeflater::Decompressor);

impl std::fmt::Debug for BlockDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("gzip::BlockDecompressor")
    }
}

impl BlockDecompressor {
    /// Appends the decoded bytes of a whole block, at most [`MOST_PLAIN`].
    ///
    /// # Errors
    /// A block that is cut, has another checksum or size than it says, or is longer.
    pub fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let start = Header::parse(block)?.map_or(block.len(), |header| header.len);
        let rest = block.get(start..).unwrap_or_default();
        let Some((body, [a, b, c, d, size @ ..])) = rest.split_last_chunk::<TRAILER>() else {
            return Err(Fault::new(0, format!("a block of {} bytes", block.len()), "a whole one"));
        };
        let (crc_of, size) = (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes(*size));
        let at = block.len() - TRAILER;
        if size as usize > MOST_PLAIN {
            let expected = format!("at most {MOST_PLAIN} in a BGZF block");
            return Err(Fault::new(at + 4, format!("{size} decoded bytes"), expected));
        }
        let before = out.len();
        out.resize(before + size as usize, 0);
        let outcome = match self.0.deflate_decompress(body, &mut out[before..]) {
            Ok(n) if n == size as usize => match crc(&out[before..]).sum() {
                sum if sum == crc_of => return Ok(()),
                sum => {
                    let found = format!("CRC-32 {crc_of:08x}");
                    Err(Fault::new(at, found, format!("{sum:08x}, as calculated")))
                }
            },
            Ok(n) => Err(Fault::new(at + 4, format!("a size of {size}"), format!("{n}"))),
            Err(DecompressionError::InsufficientSpace) => {
                Err(Fault::new(at + 4, format!("a size of {size}"), "the size of the data"))
            }
            Err(DecompressionError::BadData) => Err(Fault::new(
                start,
                "bytes that are no deflate data",
                "a valid stream (RFC 1951)",
            )),
        };
        out.truncate(before);
        outcome
    }
}

/// A compression context for BGZF blocks, for one thread.
pub struct BlockCompressor(libdeflater::Compressor);

impl std::fmt::Debug for BlockCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("gzip::BlockCompressor")
    }
}

impl BlockCompressor {
    /// A new context; `level` is 0 to 12.
    ///
    /// # Errors
    /// Another level.
    pub fn new(level: i32) -> Result<Self, Fault> {
        let level = libdeflater::CompressionLvl::new(level)
            .map_err(|_| Fault::new(0, format!("deflate level {level}"), "a level from 0 to 12"))?;
        Ok(Self(libdeflater::Compressor::new(level)))
    }

    /// Appends `plain` as blocks of [`PLAIN`] bytes; none if it is empty.
    ///
    /// # Errors
    /// None are known: libdeflate's bound holds.
    pub fn append(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        for part in plain.chunks(PLAIN) {
            let start = out.len();
            let body = start + BLOCK_HEADER.len() + 2;
            out.extend_from_slice(&BLOCK_HEADER);
            out.resize(body + self.0.deflate_compress_bound(part.len()), 0);
            let packed = self.0.deflate_compress(part, &mut out[body..]);
            let packed = packed.map_err(|_| Fault::new(0, "no room", "libdeflate's own bound"))?;
            out.truncate(body + packed);
            out.extend_from_slice(&crc(part).sum().to_le_bytes());
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            let size = u16::try_from(out.len() - start - 1).map_err(|_| {
                Fault::new(0, "a block of over 64 KiB", "one whose length has 16 bits")
            })?;
            out[body - 2..body].copy_from_slice(&size.to_le_bytes());
        }
        Ok(())
    }
}

/// Compresses the parts of one member of a gzip file, each without the others, so that several
/// threads can do it.
pub struct PartCompressor(Compress);

impl std::fmt::Debug for PartCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("gzip::PartCompressor")
    }
}

impl PartCompressor {
    /// A new context; `level` is 0 to 9.
    ///
    /// # Errors
    /// Another level.
    pub fn new(level: u32) -> Result<Self, Fault> {
        if level > 9 {
            return Err(Fault::new(0, format!("gzip level {level}"), "a level from 0 to 9"));
        }
        Ok(Self(Compress::new(Compression::new(level), false)))
    }

    /// Appends deflate data of `plain` that end with a whole byte, and do not end the stream.
    ///
    /// # Errors
    /// None are known.
    pub fn append(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.0.reset();
        // At its lowest level zlib-rs 0.6 writes damaged data where it has to ask for more room.
        // Its longest code for a byte has nine bits.
        out.reserve(plain.len() + plain.len() / 7 + 64);
        let packed = self.0.compress_vec(plain, out, FlushCompress::Sync);
        packed.map_err(|error| Fault::new(0, error.to_string(), "compressed data"))?;
        if self.0.total_in() < plain.len() as u64 || out.len() == out.capacity() {
            return Err(Fault::new(
                0,
                "no room",
                "a code of nine bits for a byte to be the longest",
            ));
        }
        Ok(())
    }
}

/// Whether a part of a member decodes to `plain`.
pub fn is_part_of(part: &[u8], plain: &[u8]) -> bool {
    let mut out = Vec::with_capacity(plain.len() + 1);
    let decoded = Decompress::new(false).decompress_vec(part, &mut out, FlushDecompress::Sync);
    decoded.is_ok() && out == plain
}

/// The bytes around the parts of one member, and its checksum.
#[derive(Debug, Default)]
pub struct MemberFrame(Crc);

impl MemberFrame {
    /// What comes before the parts: a header without a name or a time.
    pub const HEADER: [u8; FIXED] = *b"\x1f\x8b\x08\0\0\0\0\0\0\xff";

    /// Takes the checksum of the next part.
    pub fn push(&mut self, part: &Crc) {
        self.0.combine(part);
    }

    /// What comes after the parts: an empty last block, the checksum, and the size.
    pub fn end(&self) -> [u8; 2 + TRAILER] {
        let mut end = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        end[2..6].copy_from_slice(&self.0.sum().to_le_bytes());
        end[6..].copy_from_slice(&self.0.amount().to_le_bytes());
        end
    }
}

/// The CRC-32 of some bytes.
pub fn crc(bytes: &[u8]) -> Crc {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc
}

/// Decompresses the parts of a gzip file, each without the others, as far as that can be done, so
/// that several threads can do it.
#[derive(Default)]
pub struct PartDecompressor(AheadInflater);

/// What was decompressed of a part of a gzip file, for [`GzipStream::offer`].
#[derive(Debug, Default)]
pub struct Part(Option<Ahead>);

impl std::fmt::Debug for PartDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("gzip::PartDecompressor")
    }
}

impl PartDecompressor {
    /// Decompresses the blocks of a part of a file, from the first one that is found. The text has
    /// less than `most` bytes. It takes the room of `old`, and grows it if need be.
    pub fn run(&mut self, stored: &[u8], most: usize, old: Part) -> Part {
        let symbols = old.0.map(Ahead::into_symbols).unwrap_or_default();
        Part(self.0.run(stored, most, symbols))
    }
}

/// Decompresses the members of a gzip file that comes in parts.
pub struct GzipStream {
    state: State,
    inflater: Inflater,
    /// The text of the member: what matches may copy, and what was not given out.
    text: Text<u8>,
    /// Where the text starts that was not given out.
    given: usize,
    /// Stored bytes that were taken, but not decompressed.
    carry: Vec<u8>,
    /// The bits of the first byte of those, or else of the next one, that were decompressed.
    bit: usize,
    crc: Crc,
    /// Decompressed bytes of the member.
    decoded: u64,
    /// Bytes that were taken.
    taken: u64,
    /// Where the current member starts.
    start: u64,
    members: u64,
    known: Known,
    ahead: Option<Next>,
}

enum State {
    /// Between members, or in a header, of which these bytes were taken.
    Header(Vec<u8>),
    Body,
    /// In text that was decompressed ahead, of which so much was given out.
    Ahead(Next, usize),
    /// After the last block, of which text may be left.
    End,
    /// After a defect. Text before it may be left.
    Failed(Fault),
    Trailer(Vec<u8>),
    /// After zero bytes that pad the file.
    Padding,
}

/// What was decompressed ahead.
struct Next {
    ahead: Ahead,
    /// Where the part of the file starts that it is of.
    part: u64,
}

/// Text of the member that is kept: what matches may copy, and as much again and more, so that it
/// is seldom moved.
const TEXT: usize = 8 * WINDOW;
/// Bytes that are added at a time to those that were taken and not decompressed.
const CARRY_STEP: usize = 1024;

impl std::fmt::Debug for GzipStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GzipStream").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Default for GzipStream {
    fn default() -> Self {
        Self {
            state: State::Header(Vec::new()),
            inflater: Inflater::default(),
            text: Text { symbols: vec![0; TEXT], at: 0, start: 0 },
            given: 0,
            carry: Vec::new(),
            bit: 0,
            crc: Crc::new(),
            decoded: 0,
            taken: 0,
            start: 0,
            members: 0,
            known: Known::default(),
            ahead: None,
        }
    }
}

impl GzipStream {
    /// Offers the result for the bytes that the caller pushes next. They must be the bytes that it
    /// was made of. It is used if the stream has such blocks.
    pub fn offer(&mut self, part: Part) {
        self.ahead = part.0.map(|ahead| Next { ahead, part: self.taken });
    }

    /// What was offered last, for use as room for other text.
    pub fn take_back(&mut self) -> Option<Part> {
        self.ahead.take().map(|next| Part(Some(next.ahead)))
    }

    /// Takes stored bytes off the front of `stored`, and appends what they decode to. Returns
    /// whether that is all: if not, `out` has no capacity left, and more comes with the next call.
    ///
    /// # Errors
    /// Bytes that are no members, and members whose checksum or size is another. Offsets count from
    /// the first byte of the stream.
    pub fn push(&mut self, stored: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
        loop {
            match &mut self.state {
                State::Header(taken) => {
                    let Some(first) = stored.first() else { return Ok(true) };
                    if taken.is_empty() && self.members > 0 && *first == 0 {
                        self.state = State::Padding;
                        continue;
                    }
                    // Most headers are whole. Of others, few bytes are copied at a time.
                    let before = taken.len();
                    let parsed = if before == 0 {
                        Header::parse(stored)
                    } else {
                        taken.extend_from_slice(&stored[..stored.len().min(HEADER_STEP)]);
                        Header::parse(taken)
                    };
                    let header = parsed.map_err(|fault| fault.shifted(self.start as usize))?;
                    let used = match header {
                        Some(header) => header.len - before,
                        None if before == 0 => {
                            taken.extend_from_slice(stored);
                            stored.len()
                        }
                        None => taken.len() - before,
                    };
                    if header.is_some() {
                        self.state = State::Body;
                        self.inflater.reset();
                        (self.text.at, self.given) = (0, 0);
                        self.crc.reset();
                        self.decoded = 0;
                    }
                    self.take(stored, used);
                }
                State::Body => {
                    if !self.give(out) {
                        return Ok(false);
                    }
                    self.make_room();
                    match self.inflate(stored) {
                        Ok(Stop::Input) => return Ok(self.give(out)),
                        Ok(Stop::Room) => {}
                        Ok(Stop::Block) => self.look_ahead(stored),
                        Ok(Stop::End) => self.state = State::End,
                        Err(fault) => {
                            let found = format!("{}{}", fault.found, self.place());
                            self.state = State::Failed(Fault { found: found.into(), ..fault });
                        }
                    }
                }
                State::Failed(fault) => {
                    let fault = fault.clone();
                    return if self.give(out) { Err(fault) } else { Ok(false) };
                }
                State::Ahead(..) => {
                    if !self.give(out) {
                        return Ok(false);
                    }
                    let State::Ahead(Next { ahead, part }, given) = &mut self.state else {
                        continue;
                    };
                    let (from, start) = (*given, out.len());
                    let to = ahead.len().min(from + out.capacity() - start);
                    ahead.append(from, to, &self.known, out);
                    self.crc.update(&out[start..]);
                    self.decoded += (to - from) as u64;
                    *given = to;
                    if to < ahead.len() {
                        return Ok(false);
                    }
                    self.text.symbols[..WINDOW].copy_from_slice(&ahead.window(&self.known));
                    (self.text.at, self.given) = (WINDOW, WINDOW);
                    self.bit = ahead.end % 8;
                    let used = *part + ahead.end as u64 / 8 - self.taken;
                    let after = if ahead.is_end { State::End } else { State::Body };
                    if let State::Ahead(next, _) = std::mem::replace(&mut self.state, after) {
                        self.ahead = Some(next);
                    }
                    self.take(stored, used as usize);
                }
                State::End => {
                    if !self.give(out) {
                        return Ok(false);
                    }
                    // What is left of a byte is no part of the stream.
                    self.take(stored, self.bit.div_ceil(8));
                    self.bit = 0;
                    self.state = State::Trailer(Vec::new());
                }
                State::Trailer(taken) => {
                    let more = (TRAILER - taken.len()).min(stored.len());
                    taken.extend_from_slice(&stored[..more]);
                    let whole = taken.first_chunk::<TRAILER>().copied();
                    self.take(stored, more);
                    let Some([a, b, c, d, size @ ..]) = whole else { return Ok(true) };
                    self.check(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(size))?;
                    self.state = State::Header(Vec::new());
                    self.start = self.taken;
                    self.members += 1;
                }
                State::Padding => {
                    if let Some(place) = stored.iter().position(|&byte| byte != 0) {
                        let at = self.taken as usize + place;
                        return Err(Fault::new(at, "more bytes", "zeros up to the file's end"));
                    }
                    self.take(stored, stored.len());
                    return Ok(true);
                }
            }
        }
    }

    /// Gives out text, as far as `out` has capacity. Returns whether that is all.
    fn give(&mut self, out: &mut Vec<u8>) -> bool {
        let text = &self.text.symbols[self.given..self.text.at];
        let part = &text[..text.len().min(out.capacity() - out.len())];
        out.extend_from_slice(part);
        self.crc.update(part);
        self.decoded += part.len() as u64;
        self.given += part.len();
        self.given == self.text.at
    }

    /// Forgets text that no match can copy if there is little room. All was given out.
    fn make_room(&mut self) {
        if self.text.at < TEXT / 2 {
            return;
        }
        let kept = self.text.at.min(WINDOW);
        self.text.symbols.copy_within(self.text.at - kept..self.text.at, 0);
        (self.text.at, self.given) = (kept, kept);
    }

    /// Goes on with what was decompressed ahead if it starts here.
    fn look_ahead(&mut self, stored: &[u8]) {
        let Some(Next { ahead, part }) = &self.ahead else { return };
        let here = (self.taken - part) as usize;
        let is_here = self.carry.is_empty() && here * 8 + self.bit == ahead.start;
        let is_there = ahead.end.div_ceil(8) <= here + stored.len();
        if is_here
            && is_there
            && self.text.at >= WINDOW
            && let Some(next) = self.ahead.take()
        {
            self.known.set(&self.text.symbols[self.text.at - WINDOW..self.text.at]);
            self.state = State::Ahead(next, 0);
        }
    }

    /// Decompresses stored bytes up to a stop.
    ///
    /// # Errors
    /// What is no deflate stream. Offsets count from the first byte of the stream.
    fn inflate(&mut self, stored: &mut &[u8]) -> Result<Stop, Fault> {
        loop {
            let before = self.carry.len();
            let base = self.taken as usize - before;
            let mut at = self.bit;
            // What was not whole is whole with some of what follows it.
            let more = if before == 0 { 0 } else { stored.len().min(CARRY_STEP) };
            self.carry.extend_from_slice(&stored[..more]);
            let bytes = if before == 0 { *stored } else { &self.carry };
            let stop = self.inflater.run(bytes, &mut at, &mut self.text);
            let stop = stop.map_err(|fault| fault.shifted(base))?;
            self.bit = at % 8;
            match (at / 8).checked_sub(before) {
                // Bytes were carried because an item was not whole. It ends after them, and so
                // does all that follows it.
                Some(used) => {
                    self.carry.clear();
                    self.take(stored, used);
                }
                None if stop == Stop::Input => {
                    let added = self.carry.len() - before;
                    self.take(stored, added);
                    self.carry.drain(..at / 8);
                }
                None => {
                    self.carry.truncate(before);
                    self.carry.drain(..at / 8);
                }
            }
            if stop != Stop::Input || stored.is_empty() {
                return Ok(stop);
            }
            if before == 0 {
                self.carry.extend_from_slice(stored);
                self.take(stored, stored.len());
                return Ok(stop);
            }
        }
    }

    fn take(&mut self, stored: &mut &[u8], used: usize) {
        *stored = &stored[used..];
        self.taken += used as u64;
    }

    fn place(&self) -> String {
        match self.members {
            0 => String::new(),
            members => format!(" in member {}, which starts at byte {}", members + 1, self.start),
        }
    }

    fn check(&self, crc: u32, size: u32) -> Result<(), Fault> {
        let at = self.taken as usize - TRAILER;
        if crc != self.crc.sum() {
            let found = format!("CRC-32 {crc:08x}{}", self.place());
            return Err(Fault::new(at, found, format!("{:08x}, as calculated", self.crc.sum())));
        }
        if size != self.decoded as u32 {
            let found = format!("a size of {size}{}", self.place());
            return Err(Fault::new(at + 4, found, format!("{} (modulo 2^32)", self.decoded)));
        }
        Ok(())
    }

    /// Where the member starts that the bytes so far do not end; `None` if they end with a member.
    pub fn unfinished(&self) -> Option<u64> {
        match &self.state {
            State::Header(taken) if taken.is_empty() && self.members > 0 => None,
            State::Padding => None,
            _ => Some(self.start),
        }
    }
}

#[cfg(test)]
mod tests;
