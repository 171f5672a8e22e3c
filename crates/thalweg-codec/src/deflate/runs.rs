//! zlib streams with Huffman codes whose only matches are runs of one byte. They suit coded
//! signals.
//!
//! StreamVByte output consists of keys, which are nearly all equal, and low bytes of differences,
//! which are noise. The only repetitions that a compressor can find are runs in the keys, and
//! searching for others takes most of the time. Such streams come out smaller than zlib's at its
//! default level and are quicker to make and to read (`docs/nanopore.md`). RFC 1951 is the format.

use std::ops::Range;

use super::huffman::{self, Code};

/// Bytes whose symbols are counted together. Neighbouring pieces with similar counts share a block.
const PIECE: usize = 8 << 10;
/// The most pieces of a block, so that it fits into a stored block.
const PIECES: usize = 7;
/// The assumed cost of another block: its tables, in bits.
const TABLE_BITS: f32 = 8.0 * 70.0;

/// The shortest run that is written as a match. Shorter runs take no fewer bits as a match.
const LEAST_RUN: usize = 4;
/// The longest match that deflate has.
const MOST_RUN: usize = 258;
const LEAST_MATCH: usize = 3;

/// Symbols of the code of literals and lengths: bytes, the end of a block, lengths.
const SYMBOLS: usize = 286;
const END: usize = 256;
/// The longest code: four such codes and seven waiting bits fit into 64 bits.
const MOST_BITS: u32 = 14;
/// The code of code lengths.
const LENGTH_SYMBOLS: usize = 19;
const MOST_LENGTH_BITS: u32 = 7;
/// The order in which its lengths are written (RFC 1951, section 3.2.7).
const LENGTH_ORDER: [usize; LENGTH_SYMBOLS] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const STORED: u64 = 0;
const DYNAMIC: u64 = 2;

/// The first length of each length symbol from 257 on, and the number of extra bits that select a
/// length from there on (section 3.2.5).
const LENGTHS: [(u16, u8); 29] = {
    let mut lengths = [(MOST_RUN as u16, 0); 29];
    let mut first = LEAST_MATCH as u16;
    let mut i = 0;
    while i < 28 {
        let extra = if i < 8 { 0 } else { (i as u8 - 4) / 4 };
        lengths[i] = (first, extra);
        first += 1 << extra;
        i += 1;
    }
    lengths
};

/// Compresses for one thread.
#[derive(Debug, Default)]
pub struct RunCompressor {
    runs: Vec<ByteRun>,
}

/// A run of bytes that equal the byte before it.
#[derive(Debug, Clone, Copy)]
struct ByteRun {
    start: usize,
    len: usize,
}

/// The number of occurrences of each symbol.
#[derive(Debug, Clone)]
struct Counts {
    symbols: [u32; SYMBOLS],
    /// Bits that do not depend on the code: extra bits of lengths, and distances.
    fixed: u32,
}

impl Default for Counts {
    fn default() -> Self {
        Self { symbols: [0; SYMBOLS], fixed: 0 }
    }
}

impl RunCompressor {
    /// Replaces `out` by `plain` as one zlib stream (RFC 1950).
    pub fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        let tables = (plain.len() / PIECE + 2) * (SYMBOLS * 2 + 64);
        out.resize(plain.len() * MOST_BITS as usize / 8 + tables, 0);
        // Deflate with a window of 32 KiB, by the fastest algorithm.
        out[..2].copy_from_slice(&[0x78, 0x01]);
        let mut bits = BitWriter { out, at: 2, waiting: 0, count: 0 };
        let mut start = 0;
        self.runs.clear();
        let mut block = Counts::default();
        let mut first_run = 0;
        for from in (0..plain.len()).step_by(PIECE) {
            let to = plain.len().min(from + PIECE);
            let run = self.runs.len();
            let piece = self.count(plain, from, to);
            let joined = block.with(&piece);
            let apart = block.bits() + piece.bits() + TABLE_BITS;
            if from > start && (from - start == PIECES * PIECE || joined.bits() > apart) {
                let runs = &self.runs[first_run..run];
                write_block(&mut bits, plain, start..from, runs, &block, false);
                (start, first_run) = (from, run);
                block = piece;
            } else {
                block = joined;
            }
        }
        write_block(&mut bits, plain, start..plain.len(), &self.runs[first_run..], &block, true);
        bits.align();
        let end = bits.at;
        out.truncate(end);
        out.extend(libdeflater::adler32(plain).to_be_bytes());
    }

    /// Finds the runs of a piece, and counts its symbols.
    fn count(&mut self, plain: &[u8], from: usize, to: usize) -> Counts {
        let mut piece = Counts::default();
        let first = self.runs.len();
        find_runs(plain, from, to, &mut self.runs);
        let mut tables = [[0; 256]; 4];
        let mut at = from;
        for run in &self.runs[first..] {
            count_bytes(&plain[at..run.start], &mut tables);
            let (symbol, extra, _) = length_symbol(run.len);
            piece.symbols[symbol] += 1;
            piece.fixed += u32::from(extra) + 1;
            at = run.start + run.len;
        }
        count_bytes(&plain[at..to], &mut tables);
        for (i, count) in piece.symbols[..256].iter_mut().enumerate() {
            *count = tables.iter().map(|table| table[i]).sum();
        }
        piece
    }
}

impl Counts {
    fn with(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.symbols.iter_mut().zip(other.symbols).for_each(|(sum, count)| *sum += count);
        sum.fixed += other.fixed;
        sum
    }

    /// The estimated bits of the coded symbols: their entropy and the fixed bits.
    fn bits(&self) -> f32 {
        let log_all = log2(self.symbols.iter().sum());
        let mut bits = self.fixed as f32;
        for count in self.symbols {
            bits += count as f32 * (log_all - log2(count));
        }
        bits
    }
}

/// The base-2 logarithm of a number from one on, within a hundredth, without a branch.
fn log2(x: u32) -> f32 {
    let float = (x as f32).to_bits();
    let exponent = (float >> 23) as f32 - 127.0;
    let mantissa = f32::from_bits(float & 0x007f_ffff | 0x3f80_0000);
    exponent + (mantissa * (-1.0 / 3.0) + 2.0) * mantissa - 5.0 / 3.0
}

/// Counts bytes in four tables, so that increments for equal neighbours do not depend on each
/// other.
fn count_bytes(plain: &[u8], tables: &mut [[u32; 256]; 4]) {
    let [a, b, c, d] = tables;
    let (fours, rest) = plain.as_chunks::<4>();
    for &[p, q, r, s] in fours {
        a[usize::from(p)] += 1;
        b[usize::from(q)] += 1;
        c[usize::from(r)] += 1;
        d[usize::from(s)] += 1;
    }
    for &byte in rest {
        a[usize::from(byte)] += 1;
    }
}

/// Appends the runs in `from..to`, each at most as long as the longest match.
fn find_runs(plain: &[u8], from: usize, to: usize, runs: &mut Vec<ByteRun>) {
    let mut push = |mut start: usize, mut left: usize| {
        while left >= LEAST_RUN {
            let len = left.min(MOST_RUN);
            runs.push(ByteRun { start, len });
            start += len;
            left -= len;
        }
    };
    // The first byte of `plain` has no predecessor.
    let mut at = from.max(1);
    // The length of the run that ends at `at`.
    let mut open = 0;
    while at < to {
        let step = to.min(at + 64) - at;
        let same = equal_to_previous(&plain[at - 1..at + step]);
        let head = same.trailing_ones() as usize;
        open += head;
        if head < step {
            push(at + head - open, open);
            open = same.unbounded_shl(64 - step as u32).leading_ones() as usize;
            // What is left are runs that start and end here.
            let inner = same & u64::MAX.unbounded_shr((64 - step + open) as u32) & u64::MAX << head;
            let mut starts = inner & inner >> 1 & inner >> 2 & inner >> 3;
            while starts != 0 {
                let first = starts.trailing_zeros();
                let len = (inner >> first).trailing_ones();
                push(at + first as usize, len as usize);
                starts &= u64::MAX.unbounded_shl(first + len);
            }
        }
        at += step;
    }
    push(to - open, open);
}

/// For each byte but the first, of at most 65, a bit that states whether it equals the byte before.
fn equal_to_previous(bytes: &[u8]) -> u64 {
    let mut same = 0;
    if let Some(window) = bytes.first_chunk::<65>() {
        for i in 0..8 {
            let word =
                |at: usize| window[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            same |= zero_bytes(word(8 * i) ^ word(8 * i + 1)) << (8 * i);
        }
    } else {
        for (i, pair) in bytes.windows(2).enumerate() {
            same |= u64::from(pair[0] == pair[1]) << i;
        }
    }
    same
}

/// For each byte of a word, lowest first, a bit that states whether it is zero.
const fn zero_bytes(word: u64) -> u64 {
    const SEVENS: u64 = u64::MAX / 0xff * 0x7f;
    let zeros = !(((word & SEVENS) + SEVENS) | word | SEVENS);
    // Moves the top bit of each byte to the top byte.
    (zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The symbol of a match length, the number of its extra bits, and their value.
fn length_symbol(len: usize) -> (usize, u8, u64) {
    let i = LENGTHS.partition_point(|&(first, _)| usize::from(first) <= len) - 1;
    let (first, extra) = LENGTHS[i];
    (END + 1 + i, extra, (len - usize::from(first)) as u64)
}

/// Packs bits into bytes, low bits first.
struct BitWriter<'a> {
    /// The output buffer, long enough for the longest possible stream.
    out: &'a mut [u8],
    at: usize,
    waiting: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Adds bits to the waiting bits. After [`BitWriter::flush`], at most seven bits wait.
    #[inline(always)]
    fn add(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        self.count += count;
    }

    /// Writes whole bytes.
    #[inline(always)]
    fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.waiting.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.waiting = self.waiting.checked_shr(self.count & !7).unwrap_or(0);
        self.count &= 7;
    }

    fn put(&mut self, bits: u64, count: u32) {
        self.add(bits, count);
        self.flush();
    }

    /// Fills up the last byte with zero bits.
    fn align(&mut self) {
        self.count = self.count.next_multiple_of(8);
        self.flush();
    }
}

/// Writes a block with its own codes, or as a stored block if that is shorter.
fn write_block(
    bits: &mut BitWriter<'_>,
    plain: &[u8],
    range: Range<usize>,
    runs: &[ByteRun],
    counts: &Counts,
    is_last: bool,
) {
    if counts.bits() + TABLE_BITS >= (range.len() * 8) as f32 {
        return write_stored(bits, &plain[range], is_last);
    }
    let mut symbols = counts.symbols;
    symbols[END] = 1;
    let codes = huffman::codes(&symbols, MOST_BITS);
    bits.put(u64::from(is_last) | DYNAMIC << 1, 3);
    write_tables(bits, &codes, !runs.is_empty());
    let mut at = range.start;
    for run in runs {
        write_bytes(bits, &plain[at..run.start], &codes);
        let (symbol, extra, value) = length_symbol(run.len);
        bits.add(codes[symbol].bits, codes[symbol].len);
        bits.add(value, u32::from(extra));
        // The distance, which is always one.
        bits.put(0, 1);
        at = run.start + run.len;
    }
    write_bytes(bits, &plain[at..range.end], &codes);
    bits.put(codes[END].bits, codes[END].len);
}

fn write_bytes(bits: &mut BitWriter<'_>, plain: &[u8], codes: &[Code; SYMBOLS]) {
    let (fours, rest) = plain.as_chunks::<4>();
    for four in fours {
        for &byte in four {
            let code = codes[usize::from(byte)];
            bits.add(code.bits, code.len);
        }
        bits.flush();
    }
    for &byte in rest {
        let code = codes[usize::from(byte)];
        bits.put(code.bits, code.len);
    }
}

/// Writes a stored block: the number of bytes, its complement, and the bytes.
fn write_stored(bits: &mut BitWriter<'_>, plain: &[u8], is_last: bool) {
    bits.put(u64::from(is_last) | STORED << 1, 3);
    bits.align();
    let len = plain.len() as u64;
    bits.put(len | (!len & 0xffff) << 16, 32);
    bits.out[bits.at..bits.at + plain.len()].copy_from_slice(plain);
    bits.at += plain.len();
}

/// Writes the code lengths in coded form (section 3.2.7).
fn write_tables(bits: &mut BitWriter<'_>, codes: &[Code; SYMBOLS], has_runs: bool) {
    let used = codes.iter().rposition(|code| code.len > 0).map_or(0, |last| last + 1);
    // One distance code follows: of one bit, or of none if there are no matches.
    let lengths: Vec<u8> =
        codes[..used].iter().map(|code| code.len as u8).chain([u8::from(has_runs)]).collect();
    // Each token is a code length, or a symbol from 16 to 18 with a repeat count and its number of
    // bits.
    let mut tokens: Vec<(usize, u64, u32)> = Vec::new();
    let mut rest = &lengths[..];
    while let [length, ..] = *rest {
        let same = rest.iter().take_while(|&&other| other == length).count();
        let before =
            rest.len() < lengths.len() && lengths[lengths.len() - rest.len() - 1] == length;
        let (token, taken) = match (length, same) {
            (0, 11..) => ((18, same.min(138) as u64 - 11, 7), same.min(138)),
            (0, 3..) => ((17, same as u64 - 3, 3), same),
            (_, 3..) if before => ((16, same.min(6) as u64 - 3, 2), same.min(6)),
            _ => ((usize::from(length), 0, 0), 1),
        };
        tokens.push(token);
        rest = &rest[taken..];
    }
    let mut counts = [0; LENGTH_SYMBOLS];
    tokens.iter().for_each(|&(symbol, ..)| counts[symbol] += 1);
    let length_codes = huffman::codes(&counts, MOST_LENGTH_BITS);
    let ordered = LENGTH_ORDER.map(|symbol| length_codes[symbol].len);
    let listed = ordered.iter().rposition(|&len| len > 0).map_or(0, |last| last + 1).max(4);
    bits.put((used - 257) as u64 | (listed as u64 - 4) << 10, 14);
    ordered[..listed].iter().for_each(|&len| bits.put(u64::from(len), 3));
    for (symbol, value, extra) in tokens {
        bits.add(length_codes[symbol].bits, length_codes[symbol].len);
        bits.put(value, extra);
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_RUN, PIECE, PIECES, RunCompressor};
    use crate::splitmix::{STEP, mix};
    use proptest::prelude::*;

    /// Compresses `plain` and checks the stream with two decoders. Returns the stream.
    fn proved(plain: &[u8]) -> Vec<u8> {
        let mut stream = vec![1, 2, 3];
        RunCompressor::default().compress(plain, &mut stream);
        let mut out = vec![0; plain.len()];
        assert_eq!(
            libdeflater::Decompressor::new().zlib_decompress(&stream, &mut out),
            Ok(plain.len())
        );
        assert!(out == plain, "libdeflate reads another stream");
        let mut out = Vec::new();
        let mut inflate = flate2::Decompress::new(true);
        out.reserve(plain.len() + 1);
        let status = inflate.decompress_vec(&stream, &mut out, flate2::FlushDecompress::Finish);
        assert_eq!(status.ok(), Some(flate2::Status::StreamEnd));
        assert!(
            out == plain && inflate.total_in() == stream.len() as u64,
            "flate2 reads another stream"
        );
        stream
    }

    fn noise(len: usize, values: u64, seed: u64) -> Vec<u8> {
        (0..len as u64)
            .map(|i| (mix(seed.wrapping_add(i.wrapping_mul(STEP))) % values) as u8)
            .collect()
    }

    #[test]
    fn streams_are_what_decoders_expect() {
        for len in [
            0,
            1,
            2,
            3,
            4,
            5,
            9,
            257,
            258,
            259,
            260,
            261,
            262,
            263,
            516,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            100_000,
        ] {
            proved(&vec![7; len]);
            proved(&noise(len, 256, 1));
            proved(&noise(len, 2, 2));
        }
        let block = PIECE * PIECES;
        for len in [block - 1, block, block + 1, 3 * block] {
            proved(&noise(len, 50, 3));
        }
    }

    #[test]
    fn every_length_of_run_is_found() {
        for len in 0..=2 * MOST_RUN + 9 {
            for before in 0..9 {
                let mut plain = noise(before, 256, 4);
                plain.extend(vec![1; len]);
                plain.extend([2, 3]);
                let stream = proved(&plain);
                assert!(stream.len() < 100, "{len} after {before}: {}", stream.len());
            }
        }
    }

    #[test]
    fn noise_hardly_grows_and_runs_vanish() {
        let plain = noise(200_000, 256, 5);
        assert!(proved(&plain).len() < plain.len() + 64);
        assert!(proved(&vec![0; 200_000]).len() < 1000);
    }

    /// Bytes like a coded signal: nearly equal keys, then noise.
    #[test]
    fn parts_that_differ_get_codes_of_their_own() {
        let keys: Vec<u8> =
            noise(50_000, 40, 6).iter().map(|&x| if x < 39 { 0 } else { 1 }).collect();
        let data = noise(200_000, 60, 7);
        let together = proved(&[keys.clone(), data.clone()].concat()).len();
        assert!(together < proved(&keys).len() + proved(&data).len() + 100);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(parts in prop::collection::vec(
            (any::<u8>(), 1..600_usize, 1..257_u64, any::<u64>()), 0..60,
        )) {
            let parts = parts.into_iter().map(|(byte, len, values, seed)| {
                if seed % 2 == 0 { vec![byte; len] } else { noise(len * 20, values, seed) }
            });
            proved(&parts.collect::<Vec<_>>().concat());
        }
    }
}
