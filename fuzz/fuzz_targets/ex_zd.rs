//! Fuzzes `thalweg::testing::fuzz::ex_zd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::ex_zd(data));
