//! Fuzzes `thalweg_testing::fuzz::hdf5_filters`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::hdf5_filters(data));
