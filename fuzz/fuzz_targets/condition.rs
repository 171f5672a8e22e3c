//! Fuzzes `thalweg_testing::fuzz::condition`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::condition(data));
