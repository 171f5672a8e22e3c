//! Fuzzes `thalweg::testing::fuzz::slow5_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::slow5_frame(data));
