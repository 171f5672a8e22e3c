//! Fuzzes `thalweg_testing::fuzz::http_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::http_answers(data));
