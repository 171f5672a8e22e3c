//! Decoding speed of one core, in bytes of decoded samples. `cargo bench -p thalweg --bench codecs`
#![allow(clippy::unwrap_used)] // A benchmark.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use thalweg_codec::picoampere::Calibration;
use thalweg_codec::{Kernel, deflate, ex_zd, svb, svb16, zstd};

fn main() {
    divan::main();
}

/// Samples of one read: about ten seconds.
const SAMPLES: usize = 50_000;

/// A signal like that of a nanopore at 5 kHz: levels that last ten samples on average, 60 to 200
/// units apart, under noise with a standard deviation of 9. About five in a hundred differences
/// then take two bytes.
fn signal() -> Vec<i16> {
    let mut state = 0x853c_49e6_748f_ea9b_u64;
    let mut uniform = || {
        // Numbers from Knuth's MMIX generator; the high bits are good enough here.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let mut level = 500.0;
    (0..SAMPLES)
        .map(|_| {
            if uniform() < 0.1 {
                let jump = 60.0 + 140.0 * uniform();
                let up = uniform() < (900.0 - level) / 800.0;
                level += if up { jump } else { -jump };
            }
            // The sum of twelve uniform numbers has a variance of one.
            let noise: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            (level + 9.0 * noise) as i16
        })
        .collect()
}

fn decode(bencher: Bencher<'_, '_>, coded: &[u8], decode: impl Fn(&[u8], &mut Vec<i16>) + Sync) {
    let samples = signal();
    let mut check = Vec::new();
    decode(coded, &mut check);
    assert_eq!(check, samples);
    bencher.counter(BytesCount::new(2 * SAMPLES)).bench_local(|| {
        check.clear();
        decode(black_box(coded), &mut check);
        black_box(&mut check);
    });
}

#[divan::bench(args = Kernel::available())]
fn picoampere(bencher: Bencher<'_, '_>, kernel: Kernel) {
    let samples = signal();
    let mut values = Vec::new();
    let calibration = Calibration::new(10.0, 1467.61, 8192.0);
    bencher.counter(BytesCount::new(2 * SAMPLES)).bench_local(|| {
        values.clear();
        calibration.convert_with(kernel, black_box(&samples), &mut values);
        black_box(&mut values);
    });
}

#[divan::bench(args = Kernel::available())]
fn svb_zd(bencher: Bencher<'_, '_>, kernel: Kernel) {
    let mut coded = Vec::new();
    svb::zd::encode(&signal(), &mut coded).unwrap();
    decode(bencher, &coded, |coded, out| svb::zd::decode_with(kernel, coded, out).unwrap());
}

#[divan::bench(args = Kernel::available())]
fn svb16(bencher: Bencher<'_, '_>, kernel: Kernel) {
    let mut coded = Vec::new();
    svb16::encode(&signal(), &mut coded);
    decode(bencher, &coded, |coded, out| svb16::decode_with(kernel, coded, SAMPLES, out).unwrap());
}

#[divan::bench(args = Kernel::available())]
fn ex_zd(bencher: Bencher<'_, '_>, kernel: Kernel) {
    let mut coded = Vec::new();
    ex_zd::encode(&signal(), &mut coded).unwrap();
    decode(bencher, &coded, |coded, out| ex_zd::decode_with(kernel, coded, out).unwrap());
}

mod encode {
    use super::*;

    fn encode(bencher: Bencher<'_, '_>, encode: impl Fn(&[i16], &mut Vec<u8>) + Sync) {
        let (samples, mut out) = (signal(), Vec::new());
        bencher.counter(BytesCount::new(2 * SAMPLES)).bench_local(|| {
            out.clear();
            encode(black_box(&samples), &mut out);
            black_box(&mut out);
        });
    }

    #[divan::bench(args = Kernel::available())]
    fn svb_zd(bencher: Bencher<'_, '_>, kernel: Kernel) {
        encode(bencher, |samples, out| svb::zd::encode_exact_with(kernel, samples, out));
    }

    #[divan::bench(args = Kernel::available())]
    fn svb16(bencher: Bencher<'_, '_>, kernel: Kernel) {
        encode(bencher, |samples, out| svb16::encode_with(kernel, samples, out));
    }

    #[divan::bench]
    fn ex_zd(bencher: Bencher<'_, '_>) {
        encode(bencher, |samples, out| ex_zd::encode(samples, out).unwrap());
    }
}

/// The outer codec alone, in bytes of its decoded output.
mod outer {
    use super::*;

    fn plain() -> Vec<u8> {
        let mut plain = Vec::new();
        svb::zd::encode(&signal(), &mut plain).unwrap();
        plain
    }

    #[divan::bench]
    fn zstd_of_svb_zd(bencher: Bencher<'_, '_>) {
        let (plain, mut coded, mut out) = (plain(), Vec::new(), Vec::new());
        zstd::ZstdCompressor::new(1).unwrap().compress(&plain, &mut coded).unwrap();
        let mut codec = zstd::ZstdDecompressor::new();
        bencher.counter(BytesCount::new(plain.len())).bench_local(|| {
            codec.decompress(black_box(&coded), &mut out, usize::MAX).unwrap();
        });
    }

    #[divan::bench]
    fn zlib_of_svb_zd(bencher: Bencher<'_, '_>) {
        let (plain, mut coded, mut out) = (plain(), Vec::new(), Vec::new());
        deflate::DeflateCompressor::new(6).unwrap().compress(&plain, &mut coded).unwrap();
        let mut codec = deflate::DeflateDecompressor::new();
        bencher.counter(BytesCount::new(plain.len())).bench_local(|| {
            codec.decompress(black_box(&coded), &mut out, usize::MAX).unwrap();
        });
    }
}

/// Both codecs of a BLOW5 file, in bytes of samples.
#[divan::bench]
fn zstd_then_svb_zd(bencher: Bencher<'_, '_>) {
    let (mut plain, mut coded) = (Vec::new(), Vec::new());
    svb::zd::encode(&signal(), &mut plain).unwrap();
    zstd::ZstdCompressor::new(1).unwrap().compress(&plain, &mut coded).unwrap();
    let (mut codec, mut samples) = (zstd::ZstdDecompressor::new(), Vec::new());
    bencher.counter(BytesCount::new(2 * SAMPLES)).bench_local(|| {
        samples.clear();
        codec.decompress(black_box(&coded), &mut plain, usize::MAX).unwrap();
        svb::zd::decode(&plain, &mut samples).unwrap();
    });
}
