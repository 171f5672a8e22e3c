//! Fuzzes `thalweg::testing::fuzz::vbz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::vbz(data));
