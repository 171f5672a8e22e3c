//! Fuzzes `thalweg_testing::fuzz::gzip_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::gzip_stream(data));
