//! Fuzzes `thalweg::testing::fuzz::condition`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::condition(data));
