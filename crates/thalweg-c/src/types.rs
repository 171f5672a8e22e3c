//! The structures of `thalweg.h`, by its names.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

/// Dimensions of an array: those of HDF5 are at most as many (HDF5 user guide, "Dataspaces").
pub(crate) const MOST_DIMENSIONS: usize = 32;

/// Bytes for the name of an element type.
pub(crate) const TYPE_NAME: usize = 64;

/// How something is opened.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct thw_options {
    pub(crate) size: usize,
    pub(crate) threads: u32,
    pub(crate) memory: u64,
}

/// One read.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct thw_read {
    pub(crate) id: *const c_char,
    pub(crate) id_length: usize,
    pub(crate) samples: *const i16,
    pub(crate) sample_count: u64,
    pub(crate) digitisation: f64,
    pub(crate) offset: f64,
    pub(crate) range: f64,
    pub(crate) sampling_rate: f64,
    pub(crate) read_group: u32,
    pub(crate) file: u32,
}

/// Some reads as columns.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct thw_batch {
    pub(crate) reads: u64,
    pub(crate) ids: *const c_char,
    pub(crate) id_offsets: *const i32,
    pub(crate) samples: *const i16,
    pub(crate) sample_offsets: *const i32,
    pub(crate) digitisation: *const f64,
    pub(crate) offset: *const f64,
    pub(crate) range: *const f64,
    pub(crate) sampling_rate: *const f64,
    pub(crate) read_group: *const u32,
    pub(crate) file: u32,
}

/// What an array is.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct thw_array {
    pub(crate) rank: u32,
    pub(crate) shape: [u64; MOST_DIMENSIONS],
    pub(crate) element_size: u64,
    pub(crate) bytes: u64,
    pub(crate) r#type: [c_char; TYPE_NAME],
}

/// Lists of ids.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct thw_lists {
    pub(crate) count: u64,
    pub(crate) offsets: *const u64,
    pub(crate) ids: *const u64,
    pub(crate) owner: *mut c_void,
}
