//! Fuzzes `thalweg_testing::fuzz::deflate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::deflate(data));
