//! Fuzzes `thalweg::testing::fuzz::svb16`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::svb16(data));
