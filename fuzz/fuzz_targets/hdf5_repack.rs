//! Fuzzes `thalweg_testing::fuzz::hdf5_repack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::hdf5_repack(data));
