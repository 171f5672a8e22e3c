//! szip, a filter of HDF5: CCSDS 121.0-B (adaptive Golomb-Rice codes of differences), with the old
//! library's parameters as libaec interprets them.

use crate::Fault;
use crate::bits::Bits;

/// `SZ_MSB_OPTION_MASK` and `SZ_NN_OPTION_MASK` of szlib.h: most significant byte first, and
/// differences of neighbours.
const MSB: u32 = 16;
const NEIGHBOURS: u32 = 32;

/// The most samples of a block, and the most blocks between two samples that are stored whole.
const MOST_BLOCK: usize = 64;
const MOST_INTERVAL: usize = 4096;

/// The code for zero blocks up to the end of a segment of 64.
const REST_OF_SEGMENT: u32 = 5;
const SEGMENT: usize = 64;

/// The greatest valid code of a pair.
const MOST_PAIR: u32 = 90;

/// The parameters of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SzipParams {
    mask: u32,
    /// Samples of a block.
    block: usize,
    /// Bits of an element.
    bits: u32,
    /// Elements of a scanline: the distance between two elements that are stored whole.
    scanline: usize,
}

impl SzipParams {
    /// Parses the filter's client data: option mask, pixels per block, bits per pixel, pixels per
    /// scanline.
    ///
    /// # Errors
    /// A message about an invalid parameter.
    pub fn parse(values: &[u32]) -> Result<Self, String> {
        let &[mask, block, bits, scanline, ..] = values else {
            return Err(format!("the filter szip with {} parameters", values.len()));
        };
        let block = block as usize;
        let scanline = scanline as usize;
        let interval = scanline.checked_div(block).unwrap_or(0);
        if !(2..=MOST_BLOCK).contains(&block)
            || !block.is_multiple_of(2)
            || scanline == 0
            || interval > MOST_INTERVAL
        {
            return Err(format!("the filter szip in blocks of {block}, scanlines of {scanline}"));
        }
        if !matches!(bits, 1..=32 | 64) {
            return Err(format!("the filter szip of {bits} bits"));
        }
        Ok(Self { mask, block, bits, scanline })
    }

    /// The bytes per element if the bytes are coded separately: all first bytes, then all second
    /// bytes. This is the case for elements of four and eight bytes.
    fn bytes_apart(self) -> Option<usize> {
        matches!(self.bits, 32 | 64).then_some(self.bits as usize / 8)
    }
}

/// Replaces `out` by the decoded bytes of a chunk, at most `most`. The chunk states their number.
///
/// # Errors
/// A chunk that states more than `most` bytes, or a stream that ends too early or is invalid.
pub fn decompress(
    params: SzipParams,
    coded: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let Some((size, stream)) = coded.split_first_chunk::<4>() else {
        return Err(Fault::new(0, format!("{} bytes", coded.len()), "the size of a chunk"));
    };
    let size = u32::from_le_bytes(*size) as usize;
    if size > most {
        return Err(Fault::new(0, format!("a chunk of {size} bytes"), format!("at most {most}")));
    }
    let bits = if params.bytes_apart().is_some() { 8 } else { params.bits };
    let width = match bits {
        ..=8 => 1,
        9..=16 => 2,
        _ => 4,
    };
    // Scanlines are padded to whole blocks.
    let interval = params.scanline.div_ceil(params.block);
    let scanlines = size.div_ceil(width * params.scanline);
    let mut samples = Samples {
        bits: Bits::new(stream),
        width: bits,
        has_differences: params.mask & NEIGHBOURS != 0,
        block: params.block,
        interval,
        line: Vec::with_capacity(interval * params.block),
    };
    out.clear();
    let is_msb = params.mask & MSB != 0;
    for _ in 0..scanlines {
        let left = size.div_ceil(width) - out.len() / width;
        let want = left.min(params.scanline);
        samples.next_line(want).map_err(|fault| fault.shifted(4))?;
        for &sample in &samples.line[..want] {
            let bytes = sample.to_le_bytes();
            match (width, is_msb) {
                (1, _) => out.push(bytes[0]),
                (2, false) => out.extend_from_slice(&bytes[..2]),
                (2, true) => out.extend_from_slice(&[bytes[1], bytes[0]]),
                (_, false) => out.extend_from_slice(&bytes),
                (_, true) => out.extend(bytes.iter().rev()),
            }
        }
    }
    out.truncate(size);
    if let Some(apart) = params.bytes_apart() {
        let sorted = out.clone();
        super::shuffle::undo(&sorted, apart, out);
    }
    Ok(())
}

/// Decodes the samples of a stream, scanline by scanline.
struct Samples<'a> {
    bits: Bits<'a>,
    /// Bits of a sample.
    width: u32,
    has_differences: bool,
    block: usize,
    /// Blocks of a scanline.
    interval: usize,
    line: Vec<u32>,
}

impl Samples<'_> {
    /// Bits of a block's option.
    fn option_bits(&self) -> u32 {
        match self.width {
            ..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// Decodes the next scanline. Of the last scanline, only `want` samples need to exist.
    fn next_line(&mut self, want: usize) -> Result<(), Fault> {
        self.line.clear();
        while self.line.len() < want {
            self.next_block()?;
        }
        if self.has_differences {
            undo_differences(&mut self.line, self.width);
        }
        // The padding of a scanline is coded too, except in the last scanline.
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), Fault> {
        let start = self.line.len();
        let option = self.bits.number(self.option_bits())?;
        let whole = u32::from(self.has_differences && start == 0);
        let end = start + self.block;
        if option == (1 << self.option_bits()) - 1 {
            for _ in 0..self.block {
                let sample = self.bits.number(self.width)?;
                self.line.push(sample);
            }
            return Ok(());
        }
        let has_pairs = option == 0 && self.bits.number(1)? == 1;
        if whole == 1 {
            let sample = self.bits.number(self.width)?;
            self.line.push(sample);
        }
        if option > 0 {
            let low = option - 1;
            for _ in self.line.len()..end {
                let high = self.bits.zeros()?;
                self.line.push(high.wrapping_shl(low));
            }
            for at in start + whole as usize..end {
                let bits = self.bits.number(low)?;
                self.line[at] |= bits;
            }
        } else if has_pairs {
            while self.line.len() < end {
                let at = self.bits.at / 8;
                let code = self.bits.zeros()?;
                if code > MOST_PAIR {
                    return Err(Fault::new(
                        at,
                        format!("the code {code} of a pair"),
                        format!("at most {MOST_PAIR}"),
                    ));
                }
                // The sum of the pair is the index of the greatest triangular number up to the
                // code. The rest is the second value.
                let sum = (0..).take_while(|n| n * (n + 1) / 2 <= code).last().unwrap_or(0);
                let second = code - sum * (sum + 1) / 2;
                if (self.line.len() - start).is_multiple_of(2) {
                    self.line.push(sum - second);
                }
                self.line.push(second);
            }
        } else {
            let at = self.bits.at / 8;
            let done = start / self.block;
            let blocks = match self.bits.zeros()? + 1 {
                REST_OF_SEGMENT => (self.interval - done).min(SEGMENT - done % SEGMENT),
                run if run > REST_OF_SEGMENT => run as usize - 1,
                run => run as usize,
            };
            if blocks > self.interval - done {
                let found = format!("{blocks} blocks of zeros");
                return Err(Fault::new(at, found, format!("at most {}", self.interval - done)));
            }
            self.line.resize(start + blocks * self.block, 0);
        }
        Ok(())
    }
}

/// Undoes the differences of a scanline. The first sample is stored whole. Each other is stored as
/// its mapped difference from the sample before: small differences of both signs map to small
/// numbers, as far as both signs are in range.
fn undo_differences(line: &mut [u32], width: u32) {
    let most = u32::MAX >> (32 - width);
    let middle = most / 2 + 1;
    let Some((&mut mut last, rest)) = line.split_first_mut() else { return };
    for sample in rest {
        let mapped = *sample;
        let mask = if last & middle == 0 { 0 } else { most };
        last = if mapped / 2 + (mapped & 1) <= (mask ^ last) {
            let half = mapped >> 1;
            last.wrapping_add(if mapped & 1 == 1 { !half } else { half }) & most
        } else {
            (mask ^ mapped) & most
        };
        *sample = last;
    }
}

#[cfg(test)]
mod tests {
    use super::{SzipParams, decompress};

    fn decoded(values: [u32; 4], coded: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![7];
        decompress(SzipParams::parse(&values)?, coded, most, &mut out)
            .map_err(|fault| fault.to_string())?;
        Ok(out)
    }

    /// Chunks that h5py wrote: with zero blocks, pairs and whole samples; 16 bits big-endian
    /// without differences; elements of four bytes coded byte by byte.
    #[test]
    fn chunks_of_libhdf5_decode() {
        let bytes = [32, 0, 0, 0, 0, 89, 0, 127, 149, 145, 222, 7, 145, 220, 181, 245, 252, 3, 0];
        let values =
            [[5; 8], [0; 8], [1, 0, 0, 2, 0, 0, 0, 1], [3, 200, 17, 90, 250, 1, 0, 128]].concat();
        assert_eq!(decoded([169, 8, 8, 32], &bytes, 32), Ok(values));
        let numbers = [16, 0, 0, 0, 192, 56, 136, 80, 96, 24, 65, 32, 26, 0, 16];
        let values: Vec<u8> = [1u32, 2, 3, 70000].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(decoded([169, 4, 32, 4], &numbers, 16), Ok(values));
    }

    #[test]
    fn chunks_with_false_sizes_are_reported() {
        let bytes = [32, 0, 0, 0, 0, 89, 0, 127, 149, 145, 222, 7, 145, 220, 181, 245, 252, 3, 0];
        let told =
            |coded: &[u8], most| decoded([169, 8, 8, 32], coded, most).err().unwrap_or_default();
        assert!(told(&bytes, 31).contains("a chunk of 32 bytes, expected at most 31"));
        assert!(told(&bytes[..10], 32).contains("the end of the stream"));
        assert!(told(&[1], 32).contains("the size of a chunk"));
        assert_eq!(
            decoded([169, 7, 8, 32], &bytes, 32).err().unwrap_or_default(),
            "the filter szip in blocks of 7, scanlines of 32"
        );
        assert!(
            SzipParams::parse(&[0, 8, 8]).is_err() && SzipParams::parse(&[0, 8, 40, 32]).is_err()
        );
    }
}
