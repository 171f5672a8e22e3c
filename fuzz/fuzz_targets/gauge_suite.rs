//! Fuzzes `thalweg_gauge::testing::gauge_suite`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_gauge::testing::gauge_suite(data));
