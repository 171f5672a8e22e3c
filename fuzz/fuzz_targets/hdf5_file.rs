//! Fuzzes `thalweg_testing::fuzz::hdf5_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::hdf5_file(data));
