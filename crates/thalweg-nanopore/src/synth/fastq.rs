//! Synthetic basecalled reads as FASTQ text.

use std::io::Write as _;

use thalweg_codec::splitmix::mix;
use thalweg_io::random::Chance;
use thalweg_io::{Error, Result};

/// The description of a synthetic basecalled run. The defaults imitate nanopore reads of R10.4.1
/// chemistry, called with a high-accuracy model.
///
/// A record depends only on this description and its number, as the signal of
/// [`Synth`](super::Synth) does.
///
/// ```
/// use thalweg_nanopore::synth::Basecalls;
///
/// # fn main() -> thalweg_io::Result<()> {
/// let calls = Basecalls::with_bases(1, 100_000)?;
/// let mut text = Vec::new();
/// calls.record(0, &mut text);
/// assert_eq!(text.split(|&b| b == b'\n').filter(|line| !line.is_empty()).count(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Basecalls {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of reads of the run.
    pub reads: u64,
    /// Mean number of bases of a read. Lengths are log-normal.
    pub mean_length: f64,
    /// Standard deviation of the logarithm of the lengths.
    pub length_sigma: f64,
    /// The least length of a read, in bases.
    pub min_length: u32,
    /// The greatest length of a read, in bases.
    pub max_length: u32,
    /// Share of G and C among the bases.
    pub gc: f64,
    /// Mean over the reads of their mean quality (Phred).
    pub mean_quality: f64,
    /// Spread of the reads' mean qualities.
    pub quality_sd: f64,
}

impl Default for Basecalls {
    fn default() -> Self {
        Self {
            seed: 1,
            reads: 125_000,
            mean_length: 8_000.0,
            length_sigma: 0.9,
            min_length: 150,
            max_length: 500_000,
            gc: 0.41,
            mean_quality: 22.0,
            quality_sd: 4.0,
        }
    }
}

/// The largest quality that basecallers give: 'S' in FASTQ.
const MOST_QUALITY: f64 = 50.0;
/// The share of a base's deviation from the mean quality of its read that the next base keeps.
const KEPT_SHARE: f64 = 0.75;
/// Standard deviation of the new random part of each base's quality.
const NEW_SD: f64 = 6.0;

impl Basecalls {
    /// The defaults with about `total` bases.
    ///
    /// # Errors
    /// [`Error::Usage`] for no bases at all.
    pub fn with_bases(seed: u64, total: u64) -> Result<Self> {
        if total == 0 {
            return Err(Error::Usage("a FASTQ file needs at least one base".into()));
        }
        let calls = Self { seed, ..Self::default() };
        Ok(Self { reads: (total as f64 / calls.mean_length).ceil() as u64, ..calls })
    }

    /// Appends record number `i`: four lines.
    pub fn record(&self, i: u64, out: &mut Vec<u8>) {
        let mut chance = Chance::new(self.seed ^ mix(u64::from_be_bytes(*b"basecall")), i);
        let sigma = self.length_sigma;
        let length = self.mean_length * libm::exp(sigma * chance.normal() - 0.5 * sigma * sigma);
        let length = (length.round() as u32).clamp(self.min_length, self.max_length) as usize;
        let high = chance.bits();
        let low = chance.bits();
        let channel = 1 + chance.bits() % 3000;
        let second = i.wrapping_mul(3) % 86_400;
        // Writing to a vector cannot fail.
        let _ = writeln!(
            out,
            "@{:08x}-{:04x}-4{:03x}-{:04x}-{:012x} runid=5f1e{:012x} \
             read={} ch={channel} start_time=2024-05-14T{:02}:{:02}:{:02}Z",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff,
            mix(self.seed) & 0xffff_ffff_ffff,
            i + 1,
            second / 3600,
            second / 60 % 60,
            second % 60,
        );
        // Bytes below this number become G or C.
        let gc = (self.gc.clamp(0.0, 1.0) * 256.0) as u64;
        for _ in 0..length.div_ceil(8) {
            let mut bits = chance.bits();
            // The lowest bit of each byte is used twice. It is equally often 0 and 1 among the
            // bytes below `gc` and among the others.
            for _ in 0..8 {
                let value = bits & 0xff;
                let odd = bits & 1 == 1;
                out.push(match (value < gc, odd) {
                    (true, true) => b'G',
                    (true, false) => b'C',
                    (false, true) => b'A',
                    (false, false) => b'T',
                });
                bits >>= 8;
            }
        }
        out.truncate(out.len() - (length.div_ceil(8) * 8 - length));
        out.extend_from_slice(b"\n+\n");
        let mean = (self.mean_quality + self.quality_sd * chance.normal()).clamp(5.0, 40.0);
        let mut deviation = 0.0;
        let mut bits = 0;
        let mut left = 0;
        for _ in 0..length {
            if left == 0 {
                (bits, left) = (chance.bits(), 2);
            }
            // The sum of four uniform bytes is close enough to normal: mean 510, standard deviation
            // 147.8.
            let sum =
                (bits & 0xff) + (bits >> 8 & 0xff) + (bits >> 16 & 0xff) + (bits >> 24 & 0xff);
            (bits, left) = (bits >> 32, left - 1);
            deviation = KEPT_SHARE * deviation + NEW_SD * (sum as f64 - 510.0) / 147.8;
            let quality = (mean + deviation).clamp(1.0, MOST_QUALITY) as u8;
            out.push(b'!' + quality);
        }
        out.push(b'\n');
    }
}
