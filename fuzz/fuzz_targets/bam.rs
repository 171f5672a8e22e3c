//! Fuzzes `thalweg::testing::fuzz::bam`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg::testing::fuzz::bam(data));
