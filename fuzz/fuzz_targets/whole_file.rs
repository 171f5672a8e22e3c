//! Fuzzes `thalweg_testing::fuzz::whole_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::whole_file(data));
