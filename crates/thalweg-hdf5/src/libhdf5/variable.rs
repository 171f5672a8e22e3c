//! Lists of any length in memory.

use std::ffi::c_void;

/// `hvl_t`: a list in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct VariableList {
    pub(super) len: usize,
    pub(super) items: *const c_void,
}
