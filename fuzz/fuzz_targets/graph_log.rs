//! Fuzzes `thalweg_testing::fuzz::graph_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::graph_log(data));
