//! Fuzzes `thalweg_testing::fuzz::object_cache`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::object_cache(data));
