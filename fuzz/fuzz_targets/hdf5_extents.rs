//! Fuzzes `thalweg_testing::fuzz::hdf5_extents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| thalweg_testing::fuzz::hdf5_extents(data));
