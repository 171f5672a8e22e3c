//! Fuzzes `thalweg_testing::fuzz::graph_segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::graph_segment(data));
