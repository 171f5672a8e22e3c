//! Fuzzes `thalweg_testing::fuzz::bam`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::bam(data));
