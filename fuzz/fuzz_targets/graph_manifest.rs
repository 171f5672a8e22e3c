//! Fuzzes `thalweg_testing::fuzz::graph_manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::graph_manifest(data));
