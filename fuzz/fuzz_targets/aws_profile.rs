//! Fuzzes `thalweg_testing::fuzz::aws_profile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::aws_profile(data));
