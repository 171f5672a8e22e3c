//! Fuzzes `thalweg::testing::fuzz::deflate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::deflate(data));
