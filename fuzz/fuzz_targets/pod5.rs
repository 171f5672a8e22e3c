//! Fuzzes `thalweg_testing::fuzz::pod5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::pod5(data));
