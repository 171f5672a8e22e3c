//! Fuzzes `thalweg_testing::fuzz::slow5_index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::slow5_index(data));
