//! The time that the processor takes for a read.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use thalweg_codec::Fault;
use thalweg_codec::splitmix::{STEP, mix};
use thalweg_codec::vbz::{VbzCompressor, VbzDecompressor, VbzParams};
use thalweg_io::engine::Delivery;
use thalweg_io::urls::url;

use super::ReadFile;
use crate::format::Format;
use crate::pod5::RowCoding;
use crate::record::{RecordPress, SignalPress};

/// Nanoseconds of one thread for a byte that is fetched from the page cache, and for one of an
/// object. The kernel copies the latter twice.
const FETCH_NS: f64 = 0.6;
const FETCH_OBJECT_NS: f64 = 2.0;

/// Nanoseconds in which the machine of these figures decodes a stored byte of [`sample`].
const SAMPLE_NS: f64 = 2.26;

impl ReadFile {
    /// The predicted seconds of one of `threads` threads for a run over `wanted` stored bytes, for
    /// which `fetched` bytes are fetched. Figures of one machine are scaled by how fast this one
    /// decodes a sample.
    pub(super) fn processor_s(
        &self,
        [wanted, fetched]: [u64; 2],
        threads: usize,
        delivery: Delivery,
    ) -> f64 {
        let is_object = self.file.path.as_deref().is_some_and(|path| url(path).is_some());
        let fetch = if is_object { FETCH_OBJECT_NS } else { FETCH_NS };
        // Batches are filled, and used.
        let deliver = if delivery == Delivery::Worker { 0.0 } else { FETCH_NS };
        let ns = fetched as f64 * fetch + wanted as f64 * (self.decoding_ns() + deliver);
        ns * 1e-9 * slowness() / threads.max(1) as f64
    }

    /// Nanoseconds of one thread for decoding a stored byte. Measured with `thalweg read -t 1` on
    /// synthetic files of 40 million samples (docs/planner.md).
    fn decoding_ns(&self) -> f64 {
        match self.format() {
            Format::Slow5 => 7.8,
            Format::Blow5 => {
                let header = &self.file.header;
                match (header.record_press, header.signal_press) {
                    (RecordPress::None, SignalPress::None) => 0.2,
                    (RecordPress::Zlib, _) => 5.5,
                    (RecordPress::Zstd, SignalPress::None) => 1.9,
                    (RecordPress::Zstd, _) => 3.0,
                    _ => 0.7,
                }
            }
            Format::Pod5 => match self.signal_coding() {
                Some(RowCoding::Plain) => 0.2,
                _ => 2.9,
            },
            Format::Fast5 | Format::Other(_) => 3.6,
        }
    }
}

/// How much longer this machine takes than that of the figures.
fn slowness() -> f64 {
    static SLOWNESS: OnceLock<f64> = OnceLock::new();
    // Without a measurement, the figures stand as they are.
    *SLOWNESS.get_or_init(|| measured().map_or(1.0, |ns| ns / SAMPLE_NS))
}

/// Nanoseconds in which this machine decodes a stored byte of the sample.
fn measured() -> Result<f64, Fault> {
    let mut stored = Vec::new();
    VbzCompressor::new(1)?.chunk(&sample(), &mut stored)?;
    let (mut decompressor, mut samples) = (VbzDecompressor::default(), Vec::with_capacity(SAMPLES));
    least_ns(stored.len(), || {
        let start = Instant::now();
        decode(&mut decompressor, &stored, &mut samples)?;
        Ok(start.elapsed())
    })
}

/// Samples of the signal that is decoded to learn how fast the processor is.
const SAMPLES: usize = 1 << 16;

/// The signal: levels that stay for some samples, with noise.
fn sample() -> Vec<i16> {
    let random =
        |number: usize, below: u64| (mix((number as u64).wrapping_mul(STEP)) % below) as i16;
    let at = |i: usize| 400 + random(i / 10, 300) + random(i + SAMPLES, 20);
    (0..SAMPLES).map(at).collect()
}

/// Decodes the stored signal.
fn decode(
    decompressor: &mut VbzDecompressor,
    stored: &[u8],
    samples: &mut Vec<i16>,
) -> Result<(), Fault> {
    samples.clear();
    decompressor.samples(VbzParams::SIGNAL, stored, SAMPLES * size_of::<i16>(), samples)
}

/// How often the sample is decoded.
const TRIES: usize = 5;

/// Nanoseconds for each of `bytes`, in the quickest try of work that says how long it took. Other
/// programs disturb that try least.
fn least_ns(bytes: usize, mut work: impl FnMut() -> Result<Duration, Fault>) -> Result<f64, Fault> {
    let mut least = Duration::MAX;
    for _ in 0..TRIES {
        least = least.min(work()?);
    }
    Ok(least.as_secs_f64() * 1e9 / bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure is of the quickest try, in nanoseconds, and for each stored byte.
    #[test]
    fn the_quickest_try_counts() -> Result<(), Fault> {
        let mut tries = 0;
        let work = || {
            tries += 1;
            Ok(Duration::from_millis(if tries == 3 { 5 } else { 300 }))
        };
        let ns = least_ns(1000, work)?;
        assert_eq!(tries, TRIES);
        // 5 ms for 1,000 bytes.
        assert_eq!(ns, 5_000.0);
        Ok(())
    }

    #[test]
    fn the_processor_is_measured() -> Result<(), Fault> {
        let mut stored = Vec::new();
        VbzCompressor::new(1)?.chunk(&sample(), &mut stored)?;
        // What is timed is decoding of all the sample, which compresses as a signal does.
        let (mut decompressor, mut samples) = (VbzDecompressor::default(), Vec::new());
        decode(&mut decompressor, &stored, &mut samples)?;
        assert!(samples == sample());
        let bits = stored.len() as f64 * 8.0 / SAMPLES as f64;
        assert!((6.0..10.0).contains(&bits), "{bits} bits a sample");
        // A busy machine may be slow without a bound. No processor decodes 100 GB/s.
        let least = measured()?;
        assert!(least > 0.01 && least.is_finite(), "{least} ns");
        assert!(slowness() > 0.01 / SAMPLE_NS && slowness().is_finite(), "{}", slowness());
        Ok(())
    }
}
