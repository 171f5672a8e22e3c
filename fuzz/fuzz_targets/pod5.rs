//! Fuzzes `thalweg::testing::fuzz::pod5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::pod5(data));
