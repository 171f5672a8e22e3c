//! Fuzzes `thalweg::testing::fuzz::zstd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::zstd(data));
