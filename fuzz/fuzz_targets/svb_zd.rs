//! Fuzzes `thalweg_testing::fuzz::svb_zd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::svb_zd(data));
