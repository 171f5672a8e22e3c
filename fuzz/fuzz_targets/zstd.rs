//! Fuzzes `thalweg_testing::fuzz::zstd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::zstd(data));
