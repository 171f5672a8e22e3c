//! Fuzzes `thalweg::testing::fuzz::slow5_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::slow5_header(data));
