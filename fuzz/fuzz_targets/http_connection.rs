//! Fuzzes `thalweg_testing::fuzz::http_connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::http_connection(data));
