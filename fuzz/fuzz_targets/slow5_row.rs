//! Fuzzes `thalweg_testing::fuzz::slow5_row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::slow5_row(data));
