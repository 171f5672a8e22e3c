//! The C interface of thalweg: what `include/thalweg.h` declares, over the crate `thalweg`.
//!
//! It knows no format. `exports` has the functions, with C's pointers; `pointers` makes references
//! of these. The other modules have no unsafe code.

mod arrays;
mod exports;
mod network;
mod pointers;
mod reads;
mod status;
mod types;
